//! Reads objects from YAML and JSON files, from directories, and from a must-gather.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use olm_core::api::metadata::Metadata;
use olm_core::api::object;
use olm_core::budget;
use olm_core::yaml::{self, Step};
use serde_json::Value;

use super::error::Error;

/// An object and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InputObject {
    pub(crate) object: Value,
    /// `file:line`
    pub(crate) place: String,
    /// Whether the file was found in a directory and not named.
    pub(crate) is_found: bool,
    /// The indices in the List that contains it; several for nested Lists.
    items: Vec<usize>,
}

impl InputObject {
    /// Returns `file:line` of a part of the object, or of the object if the file cannot be read again.
    pub(crate) fn place_of(&self, path: &[Step]) -> String {
        let place = || {
            let (file, line) = self.place.rsplit_once(':')?;
            let bytes = if Path::new(file) == Path::new(STDIN) { None } else { fs::read(file).ok() }?;
            let documents = yaml::documents(&bytes).ok()?;
            let line: usize = line.parse().ok()?;
            let document = documents.iter().find(|document| document.line == line)?;
            let items = self.items.iter().flat_map(|n| [Step::Field("items".to_owned()), Step::Item(*n)]);
            let path: Vec<Step> = items.chain(path.iter().cloned()).collect();
            Some(format!("{file}:{}", document.line_of(&path)))
        };
        place().unwrap_or_else(|| self.place.clone())
    }
}

/// The name of standard input, as in kubectl.
const STDIN: &str = "-";

/// The subdirectory of a named directory that contains directories of catalogs.
const CATALOGS: &str = "catalogs";

/// Reads all objects of the files and directories, in the order in which they can be created: namespaces and CRDs come first.
///
/// # Errors
/// Files or documents cannot be read. The error contains all of them.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<InputObject>, Error> {
    let (mut given, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        let files = if path.is_dir() { files_in(path, CATALOGS) } else { Ok(vec![path.clone()]) };
        match files {
            Ok(files) => files.iter().for_each(|file| {
                read_file(file, &mut |value, place| add(value, place, &[], &mut given), &mut errors);
            }),
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)?;
    given.sort_by_key(|g| match object::text(&g.object, &["kind"]) {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    });
    Ok(given)
}

/// The content of files that were gathered from a cluster.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) given: Vec<InputObject>,
    /// The discovery documents of the API server.
    pub(crate) discovery: Vec<Value>,
    /// Why files of directories, or parts of them, were ignored.
    pub(crate) left_out: Vec<Error>,
}

/// The kinds of discovery documents.
const DISCOVERY: [&str; 2] = ["APIResourceList", "APIGroupDiscoveryList"];

/// Reads files that were gathered from a cluster. In a directory, content that is not an object is ignored; a named file must be valid.
pub(crate) fn gather(paths: &[PathBuf]) -> Result<Gathered, Error> {
    let mut gathered = Gathered::default();
    for path in paths {
        if !path.is_dir() {
            gathered.take(path)?;
            continue;
        }
        for file in files_in(path, CATALOGS)? {
            let before = gathered.given.len();
            if let Err(why) = gathered.take(&file) {
                gathered.left_out.push(why);
            }
            gathered.given[before..].iter_mut().for_each(|given| given.is_found = true);
        }
    }
    Ok(gathered)
}

impl Gathered {
    fn take(&mut self, file: &Path) -> Result<(), Error> {
        let Self { given, discovery, .. } = self;
        let mut errors = Vec::new();
        let mut take = |value: Value, place: &str| {
            if DISCOVERY.contains(&object::text(&value, &["kind"])) {
                discovery.push(value);
                return Ok(());
            }
            add(value, place, &[], given)
        };
        read_file(file, &mut take, &mut errors);
        Error::all(errors)
    }
}

/// Returns the YAML and JSON files below a directory in lexical order, without those in subdirectories named `skipped`.
/// Symbolic links are followed; a directory to which several lead is read once.
pub(crate) fn files_in(folder: &Path, skipped: &str) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    add_files_in(folder, skipped, &mut BTreeSet::new(), &mut files)?;
    Ok(files)
}

/// Adds the files of a directory that is not in `seen`: symbolic links can lead to it again, also without end.
fn add_files_in(
    folder: &Path,
    skipped: &str,
    seen: &mut BTreeSet<PathBuf>,
    files: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let unreadable = |e| Error::unreadable(folder, e);
    if !seen.insert(folder.canonicalize().map_err(unreadable)?) {
        return Ok(());
    }
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect()).map_err(unreadable)?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == skipped {
            continue;
        }
        if entry.is_dir() {
            add_files_in(&entry, skipped, seen, files)?;
        } else if entry.extension().is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e == *known)) {
            files.push(entry);
        }
    }
    Ok(())
}

/// Returns the catalogs of a named directory, `catalogs/NAME/`, by name.
pub(crate) fn catalogs_in(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let catalogs = folder.join(CATALOGS);
    if !catalogs.is_dir() {
        return Ok(Vec::new());
    }
    let mut found: Vec<(String, PathBuf)> = fs::read_dir(&catalogs)
        .and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>())
        .map_err(|e| Error::unreadable(&catalogs, e))?
        .into_iter()
        .filter(|path| path.is_dir())
        .map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path))
        .collect();
    found.sort();
    Ok(found)
}

fn stdin() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Passes every document of a file with its place to `take`, and collects the errors.
fn read_file(file: &Path, take: &mut dyn FnMut(Value, &str) -> Result<(), Error>, errors: &mut Vec<Error>) {
    let bytes = if file == Path::new(STDIN) { stdin() } else { fs::read(file) };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(e) => return errors.push(Error::unreadable(file, e)),
    };
    let broken = |error| Error::Syntax { file: file.to_owned(), error };
    let documents = match yaml::documents(&bytes) {
        Ok(documents) => documents,
        Err(e) => return errors.push(broken(e)),
    };
    for document in documents {
        let place = format!("{}:{}", file.display(), document.line);
        let taken = document
            .parse_within(budget::Document::FILE)
            .map(|(value, _)| value)
            .map_err(broken)
            .and_then(|value| take(value, &place));
        errors.extend(taken.err());
    }
}

fn add(value: Value, place: &str, items: &[usize], given: &mut Vec<InputObject>) -> Result<(), Error> {
    if value.is_null() {
        return Ok(());
    }
    let here = || place.to_owned();
    if !value.is_object() {
        return Err(Error::NotAnObject { place: here() });
    }
    let kind = object::text(&value, &["kind"]).to_owned();
    if kind.is_empty() || object::text(&value, &["apiVersion"]).is_empty() {
        return Err(Error::NoKind { place: here() });
    }
    if kind.ends_with("List")
        && let Some(list) = value.get("items").and_then(Value::as_array)
    {
        let add_item = |(n, item): (usize, &Value)| {
            let items: Vec<usize> = items.iter().copied().chain([n]).collect();
            add(item.clone(), place, &items, given).err()
        };
        let errors: Vec<Error> = list.iter().enumerate().filter_map(add_item).collect();
        return Error::all(errors);
    }
    let named = !object::name(&value).is_empty() || !Metadata::new(&value).generate_name().is_empty();
    if !named {
        return Err(Error::NoName { kind, place: here() });
    }
    given.push(InputObject { object: value, place: here(), is_found: false, items: items.to_vec() });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::CliError;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn names(given: &[InputObject]) -> Vec<&str> {
        given.iter().map(|g| object::name(&g.object)).collect()
    }

    #[test]
    fn directories_are_read_without_catalogs_and_namespaces_come_first() {
        let folder = folder(&[
            ("b.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: n}\n---\n# nothing\n---\n"),
            ("z/n.json", r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}"#),
            ("list.yml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: one}}\n"),
            ("catalogs/tea/catalog.yaml", "schema: olm.package\n"),
            ("README.md", "# not an object\n"),
        ]);
        let given = read(&[folder.path().to_owned()]).unwrap();
        assert_eq!(names(&given), ["n", "s", "one"]);
        let catalogs = catalogs_in(folder.path()).unwrap();
        assert_eq!(catalogs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["tea"]);
    }

    #[test]
    fn invalid_documents_are_reported_with_their_line_and_a_hint() {
        for (text, line, what) in [
            ("a: 1\n---\nkind: [\n", 4, ""),
            ("---\n# one\n---\napiVersion: v1\n", 4, "no kind"),
            ("apiVersion: v1\nkind: Secret\n", 1, "no metadata.name"),
            ("- a\n", 1, "not a Kubernetes object"),
        ] {
            let text = text.replacen("a: 1\n", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n", 1);
            let folder = folder(&[("x.yaml", &text)]);
            let error = CliError::from(read(&[folder.path().join("x.yaml")]).unwrap_err());
            let place = error.location.clone().unwrap();
            assert!(place.contains("x.yaml:"), "{place}");
            assert!(error.message.contains(what), "{error:?} should contain {what:?} at line {line}");
            assert!(!error.hints.is_empty());
        }
    }

    #[test]
    fn all_errors_of_all_files_are_reported() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {kind: Node}\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n- 1\n";
        let folder =
            folder(&[("a.yaml", "a: [\n---\nkind: Secret\n"), ("b.yaml", list), ("c.json", "{\"a\": }\n---\n{}")]);
        let error = read(&[folder.path().to_owned(), folder.path().join("nowhere.yaml")]).unwrap_err();
        let error = CliError::from(error);
        let file = |e: &CliError| {
            let place = e.location.as_deref().unwrap().rsplit_once('/').unwrap().1;
            place.split(':').next().unwrap().to_owned()
        };
        let files: Vec<String> = error.each().map(file).collect();
        assert_eq!(files, ["a.yaml", "a.yaml", "b.yaml", "b.yaml", "c.json", "c.json", "nowhere.yaml"]);
    }

    #[test]
    fn a_part_of_an_object_has_a_place() {
        let text = "# tea\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: b\n    nmae: c\n";
        let folder = folder(&[("x.yaml", text)]);
        let given = read(&[folder.path().to_owned()]).unwrap();
        let place = given[1].place_of(&["metadata", "nmae"].map(|field| Step::Field(field.to_owned())));
        assert!(place.ends_with("x.yaml:11"), "{place}");
        assert!(given[1].place.ends_with("x.yaml:3"));
    }

    #[test]
    fn other_files_of_a_directory_are_ignored() {
        let folder = folder(&[
            (
                "namespaces/n/core/secrets.yaml",
                "apiVersion: v1\nkind: SecretList\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n",
            ),
            ("metrics.json", "[1, 2]"),
            ("broken.yaml", "a: ["),
            ("apis.json", r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[]}"#),
        ]);
        let gathered = gather(&[folder.path().to_owned()]).unwrap();
        assert_eq!(names(&gathered.given), ["s"]);
        assert_eq!((gathered.discovery.len(), gathered.left_out.len()), (1, 2));
        assert!(gather(&[folder.path().join("broken.yaml")]).is_err());
    }

    #[test]
    fn a_missing_file_is_reported() {
        let error = read(&[PathBuf::from("/does/not/exist.yaml")]).unwrap_err();
        assert_eq!(error.place().as_deref(), Some("/does/not/exist.yaml"));
    }
}
