//! Untrusted text in every field and every output format of the commands: it contains no terminal control characters and adds
//! no line.

use std::fs;
use std::path::Path;

use olm_core::visible::is_harmful;
use olm_shell::catalog::{Ref, diff, graph, list as catalogs, validate};
use olm_shell::cli::flags::{ClusterFlags, DataFormat, ImageFlags, NamespaceFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer, findings};
use olm_shell::image;
use olm_shell::installplan::list as plans;
use olm_shell::operatorgroup::{intersect, lint};
use olm_shell::run;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Fields that determine what an object is: another text would change the command, or prevent it.
const KEPT: [&str; 18] = [
    "apiVersion",
    "kind",
    "schema",
    "type",
    "defaultChannel",
    "namespace",
    "phase",
    "status",
    "version",
    "versionRange",
    "approval",
    "lastTransitionTime",
    "skipRange",
    "strategy",
    "image",
    "olm.operatorNamespace",
    "olm.operatorGroup",
    "olm.targetNamespaces",
];

/// Fields that refer to other objects by name.
const NAMES: [&str; 9] = [
    "packageName",
    "name",
    "namespace",
    "package",
    "defaultChannel",
    "replaces",
    "skips",
    "targetNamespaces",
    "namespaces",
];

/// A harmless text that is invalid in Kubernetes names.
const PLAIN: &str = "~";

/// Appends a text to every text that other writers may choose.
fn fill(value: &mut Value, key: &str, text: &str, keeps: &dyn Fn(&str) -> bool) {
    match value {
        Value::String(leaf) if !keeps(key) => leaf.push_str(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, key, text, keeps)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| fill(value, key, text, keeps)),
        _ => {}
    }
}

fn cluster() -> Vec<Value> {
    let group = |name: &str, namespace: &str, spec: Value| {
        let metadata = json!({ "name": name, "namespace": namespace, "annotations": { "olm.providedAPIs": "Rose.v1.example.com" } });
        let status = json!({ "namespaces": ["garden", "gone"], "lastUpdated": "2026-01-01T00:00:00Z" });
        json!({ "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": metadata, "spec": spec, "status": status })
    };
    let csv = |name: &str, namespace: &str| {
        let owned = json!([{ "name": "roses.example.com", "kind": "Rose", "version": "v1" }]);
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": name, "namespace": namespace, "annotations": { "olm.targetNamespaces": "garden" } },
            "spec": { "displayName": "Rose", "customresourcedefinitions": { "owned": owned },
                "installModes": [{ "type": "OwnNamespace", "supported": true }] },
            "status": { "phase": "Failed", "reason": "Because", "message": "no water" },
        })
    };
    let step = json!({ "resolving": "rose.v1", "status": "Unknown", "resource": { "group": "", "version": "v1", "kind": "ConfigMap",
        "name": "c", "sourceName": "tea", "sourceNamespace": "olm", "manifest": "{}" } });
    let condition = json!({ "type": "Installed", "status": "False", "reason": "Because", "message": "no earth" });
    let failed = json!({ "type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable", "message": "no sun" });
    vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "garden", "labels": { "a": "b" } } }),
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shed" } }),
        group("all", "garden", json!({})),
        group("own", "garden", json!({ "targetNamespaces": ["garden", "nowhere"], "serviceAccountName": "nobody" })),
        group(
            "both",
            "shed",
            json!({ "targetNamespaces": ["garden"], "selector": { "matchLabels": { "a": "b" } }, "staticProvidedAPIs": true }),
        ),
        csv("rose.v1", "garden"),
        csv("rose.v2", "shed"),
        json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": { "name": "rose", "namespace": "garden" },
            "spec": { "name": "rose", "source": "tea", "sourceNamespace": "olm", "channel": "stable" },
            "status": { "installedCSV": "rose.v1", "currentCSV": "rose.v1", "state": "UpgradePending", "conditions": [failed],
                "installPlanRef": { "name": "install-1", "namespace": "garden" } } }),
        json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan", "metadata": { "name": "install-1", "namespace": "garden",
                "ownerReferences": [{ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "name": "rose" }] },
            "spec": { "approval": "Manual", "approved": false, "clusterServiceVersionNames": ["rose.v1"] },
            "status": { "phase": "Failed", "conditions": [condition], "plan": [step] } }),
    ]
}

/// Returns the objects as the API server stores them after a user applied them.
fn applied() -> Vec<Value> {
    let metadata = |name: &str| json!({ "name": name, "namespace": "garden", "annotations": { "note": "red" } });
    vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "garden", "annotations": { "note": "green" } } }),
        json!({ "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": metadata("own"), "spec": { "targetNamespaces": ["garden"] } }),
        json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": metadata("rose"),
            "spec": { "name": "rose", "source": "tea", "sourceNamespace": "olm", "channel": "stable" } }),
        json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": metadata("tulip.v1"),
            "spec": { "displayName": "Tulip", "install": { "strategy": "deployment", "spec": { "deployments": [] } },
                "installModes": [{ "type": "OwnNamespace", "supported": true }],
                "customresourcedefinitions": { "required": [{ "name": "thorns.example.com", "kind": "Thorn", "version": "v1", "description": "sharp" }] } } }),
    ]
}

fn catalog() -> Vec<Value> {
    let property =
        |version: &str| json!([{ "type": "olm.package", "value": { "packageName": "rose", "version": version } }]);
    let bundle = |name: &str, version: &str| json!({ "schema": "olm.bundle", "package": "rose", "name": name, "image": format!("example.com/{name}"), "properties": property(version) });
    vec![
        json!({ "schema": "olm.package", "name": "rose", "defaultChannel": "stable", "description": "Roses" }),
        json!({ "schema": "olm.channel", "package": "rose", "name": "stable", "entries": [
            { "name": "rose.v2", "replaces": "rose.v1", "skips": ["rose.v0"], "skipRange": "<1.0.0" }, { "name": "rose.v1" } ] }),
        json!({ "schema": "olm.channel", "package": "rose", "name": "fast", "entries": [{ "name": "rose.v2", "replaces": "rose.v9", "skips": ["rose.v1"] }, { "name": "rose.v1" }] }),
        bundle("rose.v1", "1.0.0"),
        bundle("rose.v2", "2.0.0"),
        json!({ "schema": "olm.deprecations", "package": "rose", "entries": [
            { "reference": { "schema": "olm.bundle", "name": "rose.v1" }, "message": "thorns" },
            { "reference": { "schema": "olm.channel", "name": "fast" }, "message": "too fast" },
            { "reference": { "schema": "olm.package" }, "message": "out of fashion" } ] }),
    ]
}

/// Writes the objects and the catalog with that text appended to every text, and with `with_names` also to names.
fn folder(text: &str, with_names: bool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (place, mut values) in
        [("cluster/all.json", cluster()), ("applied/all.json", applied()), ("catalog/c.json", catalog())]
    {
        let keeps = |key: &str| KEPT.contains(&key) || !with_names && NAMES.contains(&key);
        for value in &mut values {
            fill(value, "", text, &keeps);
        }
        if with_names && place.starts_with("catalog") {
            // The default channel must be one of the channels.
            values[0]["defaultChannel"] = format!("stable{text}").into();
        }
        let path = folder.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, values.iter().map(|value| format!("{value}\n")).collect::<String>()).unwrap();
    }
    folder
}

/// A command that prints on both streams.
type Command = Box<dyn Fn(&Path, &mut Printer) -> Result<Outcome, CliError>>;

fn everywhere() -> NamespaceFlags {
    NamespaceFlags { namespace: None, all_namespaces: true }
}

fn source(folder: &Path) -> SourceFlags {
    SourceFlags { from: vec![folder.join("cluster")], ..SourceFlags::default() }
}

fn list_flags(output: &str) -> ListFlags {
    let mut flags = ListFlags::default();
    flags.output.output = output.parse().unwrap();
    flags
}

/// Returns every command that reads files, in every format, with a label for messages.
fn commands() -> Vec<(String, Command)> {
    let mut commands: Vec<(String, Command)> = Vec::new();
    use findings::Format as F;
    for format in [F::Text, F::Json, F::Yaml, F::Sarif, F::Junit, F::Github] {
        let linting = move |folder: &Path, printer: &mut Printer| {
            let options = lint::Options {
                source: source(folder),
                namespaces: everywhere(),
                on_top: Vec::new(),
                complete: true,
                package: None,
                images: image::Options::default(),
                format,
                baseline: None,
                create_baseline: false,
                fail_on: lint::FailOn::Info,
                fix: false,
                yes: false,
            };
            lint::run(&options, printer)
        };
        commands.push((format!("operatorgroup lint {format:?}"), Box::new(linting)));
        let validating = move |folder: &Path, printer: &mut Printer| {
            let refs = vec![Ref::Directory(folder.join("catalog"))];
            validate::run(
                &validate::Options { refs, strict: true, format, images: olm_shell::image::Options::default() },
                printer,
            )
        };
        commands.push((format!("catalog validate {format:?}"), Box::new(validating)));
    }
    use intersect::Format as I;
    for format in [I::Text, I::Wide, I::Matrix, I::Json, I::Yaml, I::Dot] {
        let intersecting = move |folder: &Path, printer: &mut Printer| {
            let options = intersect::Options {
                groups: Vec::new(),
                source: source(folder),
                namespaces: everywhere(),
                on_top: Vec::new(),
                images: image::Options::default(),
                format,
            };
            intersect::run(&options, printer)
        };
        commands.push((format!("operatorgroup intersect {format:?}"), Box::new(intersecting)));
    }
    use graph::Format as G;
    for format in [G::Text, G::Dot, G::Mermaid, G::Svg, G::Html, G::Json, G::Yaml] {
        for from in [None, Some("1.0.0".to_owned())] {
            let name = format!("catalog graph {format:?} {from:?}");
            let drawing = move |folder: &Path, printer: &mut Printer| {
                let options = graph::Options {
                    refs: vec![Ref::Directory(folder.join("catalog"))],
                    package: None,
                    channels: Vec::new(),
                    versions: None,
                    from: from.clone(),
                    to: None,
                    installed_from: olm_shell::catalog::InstalledFrom::Nothing,
                    images: image::Options::default(),
                    format,
                };
                graph::run(&options, printer)
            };
            commands.push((name, Box::new(drawing)));
        }
    }
    for output in
        ["", "wide", "name", "json", "yaml", "custom-columns=A:.metadata.name,B:.status", "jsonpath={.items[*]}"]
    {
        let listing = move |folder: &Path, printer: &mut Printer| {
            let (source, list) = (source(folder), list_flags(output));
            let options = plans::Options { source, namespaces: everywhere(), names: Vec::new(), pending: false, list };
            plans::run(&options, printer)
        };
        commands.push((format!("install-plan list {output}"), Box::new(listing)));
        for versions in [false, true] {
            let listing = move |folder: &Path, printer: &mut Printer| {
                let refs = vec![Ref::Directory(folder.join("catalog"))];
                let options = catalogs::Options {
                    refs,
                    packages: Vec::new(),
                    versions,
                    list: list_flags(output),
                    images: olm_shell::image::Options::default(),
                };
                catalogs::run(&options, printer)
            };
            commands.push((format!("catalog list {output} {versions}"), Box::new(listing)));
        }
    }
    for output in ["", "html", "json", "yaml"] {
        let comparing = move |folder: &Path, printer: &mut Printer| {
            let empty = folder.join("empty");
            fs::create_dir_all(&empty).unwrap();
            let (old, new) = (Ref::Directory(folder.join("catalog")), Ref::Directory(empty));
            let options = diff::Options {
                old,
                new,
                installed_from: olm_shell::catalog::InstalledFrom::Nothing,
                namespace: None,
                source: None,
                images: image::Options::default(),
                output: output.parse().unwrap(),
            };
            diff::run(&options, printer)
        };
        commands.push((format!("catalog diff {output}"), Box::new(comparing)));
    }
    for output in [None, Some(DataFormat::Json), Some(DataFormat::Yaml)] {
        let simulating = move |folder: &Path, printer: &mut Printer| {
            let options = run::Options {
                mode: run::Mode::Simulate(vec![folder.join("applied")]),
                cluster: ClusterFlags::default(),
                namespace: "olm".to_owned(),
                objects_namespace: "default".to_owned(),
                catalogs: vec![run::CatalogDirectory {
                    name: "tea".to_owned(),
                    namespace: None,
                    directory: folder.join("catalog"),
                }],
                catalog_images: Vec::new(),
                image_size_limit: None,
                bundle_images: Vec::new(),
                catalog_pods: false,
                images: ImageFlags::default(),
                feature_gates: run::FeatureGates::default(),
                retry_optional: false,
                protected_copied_csv_namespaces: Vec::new(),
                output,
                log_lines: true,
            };
            run::run(&options, printer)
        };
        commands.push((format!("{SIMULATION} {output:?}"), Box::new(simulating)));
    }
    commands
}

/// The command whose lines are wrapped: longer texts have more lines, which are indented.
const SIMULATION: &str = "run --simulate";

/// Counts the lines that a reader perceives as separate entries.
fn lines(name: &str, text: &str) -> usize {
    text.lines().filter(|line| !name.starts_with(SIMULATION) || !line.starts_with(' ')).count()
}

/// Returns standard output and standard error of a command, and its result; paths of folders are removed.
fn printed(command: &Command, folder: &Path) -> (String, String) {
    let (out, err) = (Buffer::default(), Buffer::default());
    let mut printer = Printer::to(out.clone(), err.clone());
    if let Err(error) = command(folder, &mut printer) {
        printer.error(&error);
    }
    drop(printer);
    (out.text(), err.text())
}

/// Returns whether a text may have its own lines in this format, within its quotes or indented.
fn is_data(name: &str) -> bool {
    ["Yaml", "yaml", "jsonpath"].iter().any(|format| name.contains(format))
}

fn check(text: &str, with_names: bool) {
    // Both texts are invalid in names.
    let (forged, plain) = (folder(text, with_names), folder(PLAIN, with_names));
    for (name, command) in commands() {
        let ((out, err), (same, said)) = (printed(&command, forged.path()), printed(&command, plain.path()));
        for shown in [&out, &err] {
            let harmful = shown.char_indices().find(|(_, c)| is_harmful(*c) && !matches!(c, '\n' | '\t'));
            assert!(harmful.is_none(), "{name}: {harmful:?} in {shown:?}");
        }
        if !is_data(&name) {
            assert_eq!(lines(&name, &out), lines(&name, &same), "{name} of {text:?}:\n{out}\nand not\n{same}");
        }
        assert_eq!(lines(&name, &err), lines(&name, &said), "{name} of {text:?}:\n{err}\nand not\n{said}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn untrusted_text_forges_no_output(
        words in "[#>=\\-+*`|0-9.) a\\n\\r\\t\\x1b\\x07\u{9b}\u{202e}\u{2066}\u{2028}\\[\"'<&;:,\\\\]{1,12}",
        with_names in any::<bool>(),
    ) {
        // Some names occur in lists, separated by commas and spaces.
        let words: String = words.chars().filter(|c| !with_names || !", \t\n\r\u{2028}".contains(*c)).collect();
        check(&format!("{PLAIN}{words}{PLAIN}"), with_names);
    }
}

/// The commands report the objects, because the property would be trivial otherwise.
#[test]
fn every_command_prints_something() {
    let folder = folder("x", false);
    for (name, command) in commands() {
        let (out, err) = printed(&command, folder.path());
        // Validation of a valid catalog prints only a message.
        assert!(
            !out.is_empty() || name == "catalog validate Text" || name == "catalog validate Github",
            "{name}: {err}"
        );
    }
}
