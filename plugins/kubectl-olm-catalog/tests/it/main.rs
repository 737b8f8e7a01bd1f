//! Tests of the executable `kubectl-olm-catalog`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod add;
mod build;
mod describe;
mod diff;
mod graph;
#[cfg(target_os = "linux")]
mod hostile;
mod resolve;

use assert_cmd::Command;

const CATALOG: &str = "schema: olm.package\nname: rose\ndefaultChannel: c\n\
    ---\nschema: olm.channel\npackage: rose\nname: c\nentries: [{name: rose.v1.0.0}]\n\
    ---\nschema: olm.bundle\npackage: rose\nname: rose.v1.0.0\nimage: example.com/rose:1\nproperties:\n\
    - {type: olm.package, value: {packageName: rose, version: 1.0.0}}\n";

fn catalog(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm-catalog"));
    command.env_clear().args(arguments);
    command
}

/// Returns exit code, stdout and stderr.
fn run_command(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Returns a catalog from lines `channel: name [replaces=…] [skips=…] [skipRange=…]`, one for each entry.
fn roses(lines: &[&str]) -> String {
    use std::collections::{BTreeMap, BTreeSet};
    let mut channels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut bundles = BTreeSet::new();
    for line in lines {
        let (channel, entry) = line.split_once(": ").unwrap();
        let mut words = entry.split(' ');
        let name = words.next().unwrap();
        bundles.insert(name);
        let edges = words.map(|word| match word.split_once('=').unwrap() {
            ("replaces", name) => format!(", replaces: {name}"),
            ("skips", names) => format!(", skips: [{names}]"),
            (_, range) => format!(", skipRange: '{}'", range.replace('_', " ")),
        });
        channels.entry(channel).or_default().push(format!("{{name: {name}{}}}", edges.collect::<String>()));
    }
    let mut text = "schema: olm.package\nname: rose\ndefaultChannel: stable\n".to_owned();
    for (channel, entries) in channels {
        let entries = entries.join(", ");
        text += &format!("---\nschema: olm.channel\npackage: rose\nname: {channel}\nentries: [{entries}]\n");
    }
    for name in bundles {
        let version = name.split_once(".v").unwrap().1;
        text += &format!(
            "---\nschema: olm.bundle\npackage: rose\nname: {name}\nimage: example.com/rose:{version}\n\
             properties: [{{type: olm.package, value: {{packageName: rose, version: {version}}}}}]\n"
        );
    }
    text
}

#[test]
fn the_help_tree() {
    let verbs = ["add", "describe", "diff", "graph", "list", "render", "resolve", "serve", "validate"];
    let pages: Vec<Vec<&str>> = [vec!["--help"]].into_iter().chain(verbs.map(|verb| vec![verb, "--help"])).collect();
    let tree: Vec<String> = pages
        .iter()
        .map(|page| {
            let said = catalog(page).assert().success().stderr("");
            format!("$ kubectl olm catalog {}\n{}", page.join(" "), String::from_utf8_lossy(&said.get_output().stdout))
        })
        .collect();
    insta::assert_snapshot!(tree.join("\n"));
}

#[test]
fn a_catalog_is_read_from_standard_input() {
    let said = catalog(&["validate", "-"]).write_stdin(CATALOG).assert().success().stdout("");
    said.stderr("1 package with 1 bundle: no findings\n");
    catalog(&["list", "-", "-o", "name"]).write_stdin(CATALOG).assert().success().stdout("package/rose\n");
    let rendered = catalog(&["render", "-", "-o", "yaml"]).write_stdin(CATALOG).assert().success();
    let text = String::from_utf8_lossy(&rendered.get_output().stdout).into_owned();
    assert!(text.starts_with("---\ndefaultChannel: c\nname: rose\nschema: olm.package\n---\n"), "{text}");
    catalog(&["list", "-", "-o", "name"]).write_stdin(text).assert().success().stdout("package/rose\n");
}

#[test]
fn exit_codes_distinguish_negative_results_and_errors() {
    let broken = CATALOG.replace("defaultChannel: c", "defaultChannel: d");
    catalog(&["validate", "-"]).write_stdin(broken).assert().code(1);
    let refused = catalog(&["validate", "./no-such-catalog"]).assert().code(2).stdout("");
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("./no-such-catalog: cannot read"));
    let refused = catalog(&["list", "rose"]).assert().code(2);
    let hint = "hint: to list a package of a catalog, also pass the catalog: kubectl olm catalog list rose ./catalog\n";
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).ends_with(hint));
    let refused = catalog(&["list", "garden/catalogs/markt"]).assert().code(2);
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("hint: no file or directory has this name"));
    catalog(&["render", "-", "--version", ">>1"]).write_stdin("").assert().code(2);
}
