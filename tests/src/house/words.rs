//! Text that must not occur in the repository, and documentation of commands that do not exist.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use regex::Regex;

use super::sources::{self, Source, code};
use super::{Finding, manifests};

/// The maximum number of lines of a Rust file.
const MOST_LINES: usize = 700;

/// Paths of a single machine and hosts that a mirror may replace, each in two halves because this file is searched, too.
const MACHINES: [(&str, &str); 8] = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("/tmp/", "olm"),
    ("index.crates", ".io"),
    ("static.crates", ".io"),
    ("proxy.golang", ".org"),
    ("sum.golang", ".org"),
];

/// Unfinished or disabled code.
const UNFINISHED: [(&str, &str); 6] =
    [("TO", "DO"), ("FIX", "ME"), ("todo", "!("), ("unimplemented", "!("), ("#[ign", "ore]"), ("thread::sl", "eep")];

/// The commands of `kubectl olm` that are not plugins.
const BUILT_IN: [&str; 9] =
    ["completion", "hand-back", "help", "install", "status", "take-over", "uninstall", "upgrade", "version"];

/// Returns whether a file is written by other tools or projects.
fn is_foreign(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == "Cargo.lock" || name == "go.sum" || name == "LICENSE")
}

/// Returns machine-specific paths and hosts, and unfinished code.
pub fn forbidden() -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in sources::files()?.into_iter().filter(|file| !is_foreign(file)) {
        let Some(text) = sources::text(&file)? else { continue };
        for (index, line) in text.lines().enumerate() {
            for (a, b) in MACHINES {
                let word = format!("{a}{b}");
                if line.contains(&word) {
                    findings.push(Finding::new(&file, index + 1, format!("{word} belongs to one machine")));
                }
            }
            for (a, b) in UNFINISHED {
                let word = format!("{a}{b}");
                if line.contains(&word) && file.extension().is_some_and(|e| e == "rs") {
                    findings.push(Finding::new(
                        &file,
                        index + 1,
                        format!("{word}: finish it, or wait for a condition"),
                    ));
                }
            }
        }
    }
    Ok(findings)
}

/// Returns Rust files that are too long.
pub fn too_long(sources: &[Source]) -> Vec<Finding> {
    let long = sources.iter().map(|source| (source, source.text.lines().count()));
    long.filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(source, lines)| Finding::new(&source.file, lines, format!("more than {MOST_LINES} lines: split it")))
        .collect()
}

/// Returns modules without documentation of their purpose. Unit tests need none.
pub fn without_a_job(sources: &[Source]) -> Vec<Finding> {
    let silent = sources.iter().filter(|source| {
        let documented = source.syntax.attrs.iter().any(|attribute| attribute.path().is_ident("doc"));
        let beside = source.file.components().skip_while(|folder| folder.as_os_str() != "src");
        let of_tests = beside.into_iter().any(|name| name.as_os_str() == "tests" || name.as_os_str() == "tests.rs");
        !documented && !of_tests
    });
    silent.map(|source| Finding::new(&source.file, 1, "begin with //! and the purpose of this module")).collect()
}

/// The existing commands, flags and packages.
pub struct Promises {
    packages: BTreeSet<String>,
    commands: BTreeSet<String>,
    run_help: String,
    command: Regex,
    package: Regex,
    run: Regex,
    flag: Regex,
}

impl Promises {
    /// Reads the crates and commands of the workspace, and the flags on the help page of `kubectl olm run`.
    pub fn kept() -> Result<Self> {
        let packages: BTreeSet<String> = manifests::members()?.into_iter().map(|member| member.name).collect();
        let plugins = packages.iter().filter_map(|name| name.strip_prefix("kubectl-olm-"));
        let plugins = plugins.map(|word| word.replace('_', "-"));
        let commands = plugins.chain(BUILT_IN.map(str::to_owned)).collect();
        let run_help = Path::new("plugins/kubectl-olm-run/tests/it/snapshots/it__the_help_page.snap");
        Ok(Self {
            packages,
            commands,
            run_help: sources::text(run_help)?.unwrap_or_default(),
            command: Regex::new(r"kubectl olm ([a-z][a-z-]*)")?,
            package: Regex::new(r"cargo [a-z]+ .*-p ([a-z_-]+)")?,
            run: Regex::new(r"(?:kubectl olm run|-p kubectl-olm-run --)( [^`|;#]+)")?,
            flag: Regex::new(r"--[a-z][a-z-]*")?,
        })
    }

    /// Returns the commands, flags and packages in a text that do not exist.
    pub fn broken_by(&self, text: &str) -> Vec<String> {
        let commands = self.command.captures_iter(text).map(|found| found[1].to_owned());
        let commands = commands.filter(|word| !self.commands.contains(word));
        let packages = self.package.captures_iter(text).map(|found| found[1].to_owned());
        let packages = packages.filter(|name| !self.packages.contains(name));
        let mut broken: Vec<_> = commands.map(|word| format!("`kubectl olm {word}` does not exist")).collect();
        broken.extend(packages.map(|name| format!("package {name} does not exist")));
        for arguments in self.run.captures_iter(text) {
            let flags = self.flag.find_iter(arguments.get(1).map_or("", |all| all.as_str())).map(|flag| flag.as_str());
            let unknown = flags.filter(|flag| !self.run_help.split_whitespace().any(|word| word == *flag));
            broken.extend(unknown.map(|flag| format!("`kubectl olm run` has no {flag}")));
        }
        broken
    }
}

/// Returns documentation, help and hints that name a `kubectl olm` command, a flag of `run` or a package that does not exist.
pub fn promises(sources: &[Source]) -> Result<Vec<Finding>> {
    let promises = Promises::kept()?;
    let mut findings = Vec::new();
    for file in sources::files()? {
        let is_documentation = file.extension().is_some_and(|e| e == "md") || file.starts_with("krew");
        let Some(text) = sources::text(&file)?.filter(|_| is_documentation) else { continue };
        for (index, line) in text.lines().enumerate() {
            findings.extend(promises.broken_by(line).into_iter().map(|what| Finding::new(&file, index + 1, what)));
        }
    }
    for source in sources {
        for (text, line) in code(source).strings {
            findings.extend(promises.broken_by(&text).into_iter().map(|what| Finding::new(&source.file, line, what)));
        }
    }
    Ok(findings)
}
