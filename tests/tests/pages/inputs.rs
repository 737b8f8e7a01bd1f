//! Catalogs and clusters for pages, with text of the test's choice where other users can write.

use std::fs;
use std::path::{Path, PathBuf};

use olm_shell::catalog::graph::Format;
use olm_shell::catalog::{InstalledFrom, Ref};
use olm_shell::cli::flags::{NamespaceFlags, PageFlags, SourceFlags};
use olm_shell::cli::output::PageOutput;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::describe;
use olm_shell::{catalog, image};
use olm_tests::data::repository;
use serde_json::{Value, json};

/// Text that adds elements, attributes and scripts to a page that does not escape it.
pub(crate) const HOSTILE: &str = "</text></title></style><img src=x onerror='document.title=1'>\" forged=\"\" <i id=\"forged\">&amp;<script>document.body.id='forged'</script>\u{202e}";

/// A channel, its versions from the oldest to the newest, and what the newest one skips.
type Channel = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The channels before a change.
pub(crate) const OLD: [Channel; 3] = [
    ("stable", &["1.0.0", "1.1.0", "1.2.0", "2.0.0"], &["1.1.5", "1.1.6"]),
    ("fast", &["1.2.0", "2.0.0", "2.1.0", "2.1.1"], &[]),
    ("candidate", &["2.1.1", "3.0.0"], &["2.0.0", "1.0.0"]),
];

/// The channels after the change, which strands versions.
pub(crate) const NEW: [Channel; 2] =
    [("stable", &["1.2.0", "2.0.0", "2.0.1"], &[]), ("fast", &["2.0.0", "2.1.0", "2.1.1"], &[])];

/// Writes a catalog; `text` is appended to the names of its bundles and to messages.
pub(crate) fn catalog(folder: &Path, name: &str, channels: &[Channel], text: &str) -> PathBuf {
    let bundle = |version: &str| format!("rose.v{version}{text}");
    let mut blobs = vec![json!({ "schema": "olm.package", "name": "rose", "defaultChannel": "stable" })];
    let mut versions: Vec<&str> = channels.iter().flat_map(|(_, versions, _)| versions.iter().copied()).collect();
    versions.sort_unstable();
    versions.dedup();
    for version in versions {
        blobs.push(json!({
            "schema": "olm.bundle", "package": "rose", "name": bundle(version), "image": format!("example.com/rose:{version}"),
            "properties": [{ "type": "olm.package", "value": { "packageName": "rose", "version": version } }],
        }));
    }
    for (channel, versions, skips) in channels {
        let entry = |(n, version): (usize, &&str)| {
            let mut entry = json!({ "name": bundle(version) });
            if let Some(older) = n.checked_sub(1) {
                entry["replaces"] = bundle(versions[older]).into();
            }
            if n + 1 == versions.len() {
                entry["skips"] = skips.iter().map(|skipped| bundle(skipped)).collect();
                entry["skipRange"] = "<0.5.0".into();
            }
            entry
        };
        let entries: Vec<Value> = versions.iter().enumerate().map(entry).collect();
        blobs.push(json!({ "schema": "olm.channel", "package": "rose", "name": channel, "entries": entries }));
    }
    let reference = json!({ "schema": "olm.channel", "name": "fast" });
    let message = format!("too fast{text}");
    blobs.push(json!({ "schema": "olm.deprecations", "package": "rose", "entries": [{ "reference": reference, "message": message }] }));
    let folder = folder.join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("catalog.json"), blobs.iter().map(|blob| format!("{blob}\n")).collect::<String>()).unwrap();
    folder
}

/// Writes the installed objects.
pub(crate) fn installed(folder: &Path, text: &str) -> PathBuf {
    let subscription = |namespace: &str, channel: &str, version: &str| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": format!("roses{text}"), "namespace": namespace },
            "spec": { "name": "rose", "channel": channel, "source": "main", "sourceNamespace": "olm" },
            "status": { "installedCSV": format!("rose.v{version}{text}") },
        })
    };
    let items = [subscription("garden", "stable", "1.0.0"), subscription("park", "fast", "1.2.0")];
    let path = folder.join("installed.json");
    fs::write(&path, json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()).unwrap();
    path
}

fn printed(run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> String {
    let (out, err) = (Buffer::default(), Buffer::default());
    let ended = run(&mut Printer::to(out.clone(), err.clone()));
    assert!(ended.is_ok() && !out.text().is_empty(), "{ended:?} {}", err.text());
    out.text()
}

/// Returns the graph of the package `rose`.
pub(crate) fn graph(catalog: &Path, installed: Option<&Path>, format: Format) -> String {
    let options = catalog::graph::Options {
        refs: vec![Ref::Directory(catalog.to_owned())],
        package: Some("rose".to_owned()),
        channels: Vec::new(),
        versions: None,
        from: None,
        to: None,
        installed_from: installed.map_or(InstalledFrom::Nothing, |path| InstalledFrom::Files(vec![path.to_owned()])),
        images: image::Options::default(),
        format,
    };
    printed(|printer| catalog::graph::run(&options, printer))
}

/// Returns the page of the differences of two catalogs.
pub(crate) fn diff(old: &Path, new: &Path, installed: &Path) -> String {
    let options = catalog::diff::Options {
        old: Ref::Directory(old.to_owned()),
        new: Ref::Directory(new.to_owned()),
        installed_from: InstalledFrom::Files(vec![installed.to_owned()]),
        namespace: None,
        source: None,
        images: image::Options::default(),
        output: PageOutput::Html,
    };
    printed(|printer| catalog::diff::run(&options, printer))
}

/// Operators of two namespaces in several states.
pub(crate) fn garden() -> PathBuf {
    repository().join("plugins/kubectl-olm-operator/tests/it/garden.yaml")
}

/// An operator that does not work.
pub(crate) fn broken() -> PathBuf {
    repository().join("plugins/kubectl-olm-operator/tests/it/broken.yaml")
}

/// Writes the operators of [`garden`] with hostile messages, packages and catalogs.
pub(crate) fn forged(folder: &Path) -> PathBuf {
    let mut objects = olm_tests::data::documents(&garden()).unwrap();
    for object in &mut objects {
        forge(object, "");
    }
    let path = folder.join("forged.json");
    fs::write(&path, json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string()).unwrap();
    path
}

fn forge(value: &mut Value, key: &str) {
    match value {
        Value::String(text) if ["message", "reason", "source", "channel", "startingCSV"].contains(&key) => {
            text.push_str(HOSTILE);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forge(item, key)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| forge(value, key)),
        _ => {}
    }
}

/// Returns the page of all operators of the files.
pub(crate) fn operators(from: &[PathBuf]) -> String {
    let options = describe::Options {
        source: SourceFlags { from: from.to_vec(), ..SourceFlags::default() },
        namespaces: NamespaceFlags { namespace: None, all_namespaces: true },
        names: Vec::new(),
        watch: false,
        output: PageFlags { output: PageOutput::Html },
    };
    printed(|printer| describe::run(&options, printer))
}
