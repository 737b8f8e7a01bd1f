//! Citations in comments and documents: documents of this repository, their headings, and existing files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use regex::Regex;

use super::{Finding, sources};

/// The folder of documents that comments cite by their relative path.
const DOCUMENTS: &str = "shared/docs";

/// The first components of paths that documents cite, relative to the root of the repository or to `shared`.
const FOLDERS: [&str; 7] = [".ci", "core", "krew", "plugins", "shared", "shell", "tests"];

/// A file: its path from the root of the repository, and its text.
pub type File = (PathBuf, String);

/// Returns citations of documents, headings and files that do not exist in the repository.
///
/// # Errors
/// A file cannot be read.
pub fn broken() -> Result<Vec<Finding>> {
    let mut files = Vec::new();
    for file in sources::files()? {
        let text = sources::text(&file)?.unwrap_or_default();
        files.push((file, text));
    }
    broken_in(&files)
}

/// Does the same for these files, as if they were the complete repository.
///
/// # Errors
/// None, unless a pattern of this module is invalid.
pub fn broken_in(files: &[File]) -> Result<Vec<Finding>> {
    let citable = Citable::new(files);
    let patterns = Patterns::new()?;
    let mut findings = Vec::new();
    for (file, text) in files {
        let broken = match file.extension().and_then(|extension| extension.to_str()) {
            Some("md") => in_document(file, text, &citable, &patterns),
            _ => in_source(file, text, &citable, &patterns),
        };
        findings.extend(broken.into_iter().map(|(line, what)| Finding::new(file, line, what)));
    }
    Ok(findings)
}

struct Patterns {
    document: Regex,
    link: Regex,
    code: Regex,
    path: Regex,
}

impl Patterns {
    fn new() -> Result<Self> {
        Ok(Self {
            document: Regex::new(r"[A-Za-z0-9_.][A-Za-z0-9_./-]*\.md(?:#[A-Za-z0-9_-]+)?")?,
            link: Regex::new(r"\]\(([^)\s]+)\)")?,
            code: Regex::new(r"`([^`]+)`")?,
            path: Regex::new(r"^[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+/?$")?,
        })
    }
}

/// The paths of files and folders, and the headings of documents.
struct Citable {
    paths: BTreeSet<PathBuf>,
    headings: BTreeMap<PathBuf, BTreeSet<String>>,
}

impl Citable {
    fn new(files: &[File]) -> Self {
        let paths = files.iter().flat_map(|(file, _)| file.ancestors().map(Path::to_owned)).collect();
        let documents = files.iter().filter(|(file, _)| file.extension().is_some_and(|extension| extension == "md"));
        Self { paths, headings: documents.map(|(file, text)| (file.clone(), headings(text))).collect() }
    }

    /// Returns what is wrong with a citation that may refer to any of these paths; the first existing one is used.
    fn fault(&self, cited: &str, candidates: &[PathBuf]) -> Option<String> {
        let anchor = cited.split_once('#').map(|(_, anchor)| anchor);
        let Some(path) = candidates.iter().find(|path| self.paths.contains(*path)) else {
            return Some(format!("{cited} does not exist in this repository"));
        };
        let missing = anchor.filter(|anchor| !self.headings.get(path).is_some_and(|found| found.contains(*anchor)));
        missing.map(|anchor| format!("{} has no heading #{anchor}", path.display()))
    }
}

/// Returns the lines outside of code blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!in_code && !is_fence).then_some((number, line))
    })
}

/// Returns the anchors of a document's headings, as GitHub generates them.
fn headings(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        anchors.extend(std::iter::once(anchor.clone()).chain(again).find(|anchor| !anchors.contains(anchor)));
    }
    anchors
}

/// Returns the faults of a document with their lines.
fn in_document(file: &Path, text: &str, citable: &Citable, patterns: &Patterns) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    for (number, line) in prose(text) {
        let without_code = patterns.code.replace_all(line, "");
        let links = patterns.link.captures_iter(&without_code).map(|found| found[1].to_owned());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let path = link.split('#').next().unwrap_or_default();
            let path = if path.is_empty() { file.to_owned() } else { beside(file, path) };
            faults.extend(citable.fault(&link, &[path]).map(|what| (number, what)));
        }
        for code in patterns.code.captures_iter(line).map(|found| found[1].to_owned()) {
            let is_citation = patterns.document.find(&code).is_some_and(|found| found.as_str() == code);
            let first = code.split('/').next().unwrap_or_default();
            let fault = if is_citation && code.contains('#') {
                citable.fault(&code, &of_a_source(file, &code))
            } else if patterns.path.is_match(&code) && FOLDERS.contains(&first) {
                let path = code.trim_end_matches('/');
                citable.fault(&code, &[PathBuf::from(path), Path::new("shared").join(path)])
            } else {
                None
            };
            faults.extend(fault.map(|what| (number, what)));
        }
    }
    faults
}

/// Returns the faults of the comments of a source file with their lines.
fn in_source(file: &Path, text: &str, citable: &Citable, patterns: &Patterns) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    for (number, comment) in (1..).zip(text.lines()).filter_map(|(number, line)| Some((number, comment(file, line)?))) {
        if comment.contains('§') && !comment.contains("RFC") {
            faults.push((number, format!("cite a heading of {DOCUMENTS}, not the section of another document")));
        }
        if comment.contains("(seed ") {
            faults.push((number, format!("cite a heading of {DOCUMENTS}, not a document outside of this repository")));
        }
        for word in comment.split_whitespace().filter(|word| !word.contains("://")) {
            for cited in patterns.document.find_iter(word).map(|found| found.as_str()) {
                let fault = citable.fault(cited, &of_a_source(file, cited));
                faults.extend(fault.map(|what| (number, what)));
            }
        }
    }
    faults
}

/// Returns the comment in a line of Rust, or a comment line of TOML, YAML or a shell script.
fn comment<'l>(file: &Path, line: &'l str) -> Option<&'l str> {
    let line = line.trim_start();
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => line.strip_prefix("//").or_else(|| line.split_once(" //").map(|(_, comment)| comment)),
        None | Some("toml" | "yaml" | "sh") => line.strip_prefix('#'),
        Some(_) => None,
    }
}

/// Returns the paths to which a citation in a source file may refer.
fn of_a_source(file: &Path, cited: &str) -> [PathBuf; 3] {
    let path = cited.split('#').next().unwrap_or_default();
    [Path::new(DOCUMENTS).join(path), PathBuf::from(path), beside(file, path)]
}

/// Resolves a path relative to the folder of a file.
fn beside(file: &Path, path: &str) -> PathBuf {
    let mut from_root = file.parent().map(Path::to_owned).unwrap_or_default();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => {
                from_root.pop();
            }
            Component::Normal(name) => from_root.push(name),
            _ => {}
        }
    }
    from_root
}
