//! What was gathered from a cluster: folders for `--from`, and what commands say of them.

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
use super::shown::{Data, shown, told, value};

/// The parts as the files of a folder; all of the input as one when it has none.
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

/// The flags that name such a folder, and no cluster.
pub(super) fn source(folder: &Path) -> SourceFlags {
    SourceFlags { from: vec![folder.to_owned()], ..SourceFlags::default() }
}

/// All namespaces.
pub(super) fn everywhere() -> NamespaceFlags {
    NamespaceFlags { namespace: None, all_namespaces: true }
}

/// Looks at a folder.
///
/// # Panics
/// What is printed steers a terminal, or is no data where it should be.
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
            let linted = lint(&seen.world, &Known::of_files(&seen.world), seen.at);
            for problem in &linted.problems {
                let _ = (problem.document(), problem.fingerprint());
                let commands = problem.fix.iter().filter_map(Fix::command);
                commands.for_each(|command| only_words(&command));
                assert!(problem.severity <= Severity::Info);
            }
            let _ = metrics::objects(&Reader::new(&seen.world));
            let _ = seen.served.kinds().count();
        }
        Err(error) => told(&error),
    }
    for output in
        ["", "wide", "name", "json", "yaml", "custom-columns=A:.metadata.name,B:.spec", "jsonpath={.items[*].status}"]
    {
        plans(&source, output);
    }
}

/// The list of InstallPlans.
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

/// Does a shell take a command for one, or several, with words that stand for nothing but themselves?
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
