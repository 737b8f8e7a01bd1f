//! Must-gather folders for `--from`, and the output of commands that read them.

use std::path::Path;

use olm_core::api::object;
use olm_core::finding::Severity;
use olm_core::lint::{Fix, Known, lint};
use olm_core::metrics;
use olm_core::world::Reader;
use olm_shell::cli::flags::{NamespaceFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::output::Output;
use olm_shell::installplan::list;
use tempfile::TempDir;

use super::parts::{folder, parts, write};
use super::shown::{Data, render_error, shown, value};

/// Writes the parts as files of a folder; an input without parts is a single file.
pub(super) fn gathered(bytes: &[u8]) -> TempDir {
    let folder = folder();
    let (head, parts) = parts(bytes);
    if parts.is_empty() {
        write(folder.path(), "all.yaml", head);
    }
    for part in &parts {
        write(folder.path(), part.name, part.bytes);
    }
    folder
}

/// Returns the flags that name such a folder, and no cluster.
pub(super) fn source(folder: &Path) -> SourceFlags {
    SourceFlags { from: vec![folder.to_owned()], ..SourceFlags::default() }
}

/// Returns the flags for all namespaces.
pub(super) fn everywhere() -> NamespaceFlags {
    NamespaceFlags { namespace: None, all_namespaces: true }
}

/// Reads a folder.
///
/// # Panics
/// The output contains terminal control characters, or invalid data.
pub(super) fn run(bytes: &[u8]) {
    let folder = gathered(bytes);
    let source = source(folder.path());
    let (seen, _) = shown(|printer| source.read_files(&everywhere(), &[], printer));
    match seen {
        Ok(seen) => {
            for object in seen.world.objects() {
                assert!(
                    !object::name(object.json()).is_empty() || object.json()["metadata"]["generateName"].is_string()
                );
            }
            let linted = lint(&seen.world, &Known::of_files(&seen.world, "the files may be incomplete"), seen.at);
            for problem in &linted.problems {
                let _ = (problem.document(), problem.fingerprint());
                let commands = problem.fix.iter().filter_map(Fix::command);
                commands.for_each(|command| only_words(&command));
                assert!(problem.severity <= Severity::Info);
            }
            let _ = metrics::objects(&Reader::new(&seen.world));
            let _ = seen.served.kinds().count();
        }
        Err(error) => render_error(error),
    }
    for output in
        ["", "wide", "name", "json", "yaml", "custom-columns=A:.metadata.name,B:.spec", "jsonpath={.items[*].status}"]
    {
        plans(&source, output);
    }
}

/// Lists the InstallPlans.
fn plans(source: &SourceFlags, output: &str) {
    let mut list = ListFlags::default();
    list.output.output = output.parse::<Output>().unwrap_or_default();
    let source = source.clone();
    let options = list::Options { source, namespaces: everywhere(), names: Vec::new(), pending: false, list };
    let (_, shown) = shown(|printer| list::run(&options, printer));
    let _ = match output {
        "json" => value(&shown, Data::Json),
        "yaml" => value(&shown, Data::Yaml),
        _ => serde_json::Value::Null,
    };
}

/// Returns whether a shell reads the command as one or several commands of literal words.
fn only_words(command: &str) {
    let mut is_quoted = false;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '\\' => assert_eq!(rest.next(), Some('\''), "{command}"),
            '&' => assert_eq!(rest.next(), Some('&'), "{command}"),
            c => assert!(c.is_ascii_alphanumeric() || " -_./:=@,+%".contains(c), "{c:?} in {command}"),
        }
    }
    assert!(!is_quoted, "{command}");
}
