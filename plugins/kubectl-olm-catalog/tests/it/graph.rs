//! `kubectl olm catalog graph`.

use super::{catalog, roses, run_command};

const GARDEN: [&str; 8] = [
    "stable: rose.v2.0.0 replaces=rose.v1.1.0 skips=rose.v1.0.1,rose.v1.0.2",
    "stable: rose.v1.1.0 replaces=rose.v1.0.0 skipRange=<1.0.0",
    "stable: rose.v1.0.2 skips=rose.v0.9.0",
    "stable: rose.v1.0.1",
    "stable: rose.v1.0.0",
    "fast: rose.v2.0.0 skipRange=<2.0.0",
    "old: rose.v1.0.0",
    "odd: rose.v0.9.0",
];

fn run(arguments: &[&str]) -> (i32, String, String) {
    run_command(catalog(&[&["graph", "-"], arguments].concat()).write_stdin(roses(&GARDEN)))
}

#[test]
fn text_output() {
    let (code, text, talk) = run(&["rose", "--channel", "stable"]);
    assert_eq!((code, talk.as_str()), (0, ""));
    insta::assert_snapshot!(text, @"
    package rose, channel stable (default): 5 versions, head rose.v2.0.0
    ● rose.v2.0.0     head
    ├─● rose.v1.0.2   skipped
    ├─● rose.v1.0.1   skipped
    ● rose.v1.1.0     replaced
    ● rose.v1.0.0     replaced
    stranded, without a path to the head
    ○ rose.v0.9.0     no update: rose.v1.0.2 skips it, but OLM never chooses it, because rose.v2.0.0 skips rose.v1.0.2 in turn, not in the channel
    ");
    let (_, text, _) = run(&["rose", "--version", ">=1.1.0"]);
    insta::assert_snapshot!(text, @"
    package rose, channel fast: 1 version, head rose.v2.0.0
    ● rose.v2.0.0   head

    package rose, channel stable (default): 5 versions, head rose.v2.0.0
    ● rose.v2.0.0   head
    ● rose.v1.1.0   replaced
    ");
}

#[test]
fn update_paths() {
    let (code, text, _) = run(&["rose", "--from", "1.0.0"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(text, @"
    package rose, channel stable
    rose.v1.0.0
    -> rose.v1.1.0   replaces it
    -> rose.v2.0.0   replaces it
    reached the channel head after 2 updates
    ");
    let (code, text, _) = run(&["rose", "--from", "rose.v0.9.0", "--to", "1.1.0"]);
    assert_eq!(code, 0);
    assert!(
        text.ends_with("-> rose.v1.1.0   covers 0.9.0 by its skipRange <1.0.0\nreached after 1 update\n"),
        "{text}"
    );
    let (code, text, _) = run(&["rose", "--from", "1.0.0", "--to", "1.0.2"]);
    assert_eq!(code, 1);
    assert!(
        text.contains("no further update: OLM never chooses rose.v1.0.2, because rose.v2.0.0 skips it\n"),
        "{text}"
    );
    let (code, text, _) = run(&["rose", "--from", "1.0.0", "--to", "2.0.0", "--channel", "old"]);
    assert_eq!(code, 1);
    let end = "no further update: channel old does not have rose.v2.0.0\npossible in channel fast or stable\n";
    assert!(text.ends_with(end), "{text}");
    let (code, text, talk) = run(&["rose", "--from", "1.0.5", "--channel", "fast", "-o", "json"]);
    let path: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, talk.as_str()), (0, "1.0.5 is not in the catalog; assuming version 1.0.5\n"));
    assert_eq!(
        (&path["kind"], &path["reachesTarget"], &path["hops"][0]["by"]),
        (&"UpdatePath".into(), &true.into(), &"skipRange".into())
    );
    let (code, text, _) = run(&["rose", "--from", "1.0.0", "-o", "mermaid"]);
    assert_eq!((code, text.matches("-->|replaces|").count()), (0, 2));
}

#[test]
fn forms_for_programs() {
    let (code, json, _) = run(&["rose", "-o", "json"]);
    let graph: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &graph["kind"]), (0, &"UpdateGraph".into()));
    let channels = graph["packages"][0]["channels"].as_array().unwrap();
    let stable = channels.iter().find(|c| c["name"] == "stable").unwrap();
    let version = |name: &str| stable["versions"].as_array().unwrap().iter().find(|v| v["name"] == name).unwrap();
    assert_eq!(version("rose.v1.0.0")["next"], serde_json::json!({"name": "rose.v1.1.0", "by": "replaces"}));
    assert_eq!(version("rose.v1.0.1")["skippedBy"], "rose.v2.0.0");
    assert_eq!(
        (&version("rose.v0.9.0")["reachesHead"], &version("rose.v0.9.0")["inChannel"]),
        (&false.into(), &false.into())
    );
    assert!(version("rose.v0.9.0")["reason"].as_str().unwrap().contains("OLM never chooses it"));
    let (_, yaml, _) = run(&["rose", "-o", "yaml"]);
    assert!(yaml.starts_with("apiVersion: kubectl-olm/v1\nkind: UpdateGraph\n"), "{yaml}");
    let (_, dot, _) = run(&["rose", "--channel", "stable", "-o", "dot"]);
    insta::assert_snapshot!(dot);
    let (_, mermaid, _) = run(&["rose", "--channel", "stable", "-o", "mermaid"]);
    insta::assert_snapshot!(mermaid);
    let (_, svg, _) = run(&["rose", "--channel", "stable", "-o", "svg"]);
    insta::assert_snapshot!(without_styles(&svg));
}

#[test]
fn a_page_marks_what_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let subscription = |namespace: &str, channel: &str, csv: &str| {
        serde_json::json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": "roses", "namespace": namespace },
            "spec": { "name": "rose", "channel": channel, "source": "main", "sourceNamespace": "olm" },
            "status": { "installedCSV": csv },
        })
    };
    let items = [
        subscription("garden", "stable", "rose.v0.9.0"),
        subscription("park", "", "rose.v1.0.0"),
        subscription("shed", "fast", "rose.v0.1.0"),
    ];
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items });
    std::fs::write(folder.path().join("installed.json"), list.to_string()).unwrap();
    let run = |arguments: &[&str]| {
        let arguments = [&["graph", "-", "rose", "--installed-from", "installed.json"], arguments].concat();
        run_command(catalog(&arguments).current_dir(folder.path()).write_stdin(roses(&GARDEN)))
    };
    let (code, html, talk) = run(&["-o", "html"]);
    assert_eq!((code, talk.as_str()), (0, ""));
    insta::assert_snapshot!(without_styles(&html));
    let (code, json, _) = run(&["-o", "json"]);
    let graph: serde_json::Value = serde_json::from_str(&json).unwrap();
    let channels = graph["packages"][0]["channels"].as_array().unwrap();
    let versions = channels.iter().flat_map(|c| c["versions"].as_array().unwrap());
    let installed: Vec<_> = versions.filter(|v| v.get("installedBy").is_some()).map(|v| &v["installedBy"]).collect();
    let by = |namespace: &str| serde_json::json!([{ "namespace": namespace, "subscription": "roses" }]);
    assert_eq!((code, installed), (0, vec![&by("park"), &by("garden")]));
    let (code, text, talk) = run(&["--channel", "stable"]);
    assert_eq!((code, text.lines().count()), (0, 8), "{text}");
    assert!(talk.contains("installed: rose.v0.9.0 by Subscription garden/roses, channel stable\n"), "{talk}");
}

/// Replaces the style sheets, and the policy with their digests.
fn without_styles(page: &str) -> String {
    let mut rest = page;
    let mut shown = String::new();
    while let Some((before, after)) = rest.split_once("<style>") {
        shown += before;
        rest = after.split_once("</style>").map_or("", |(_, after)| after);
    }
    shown += rest;
    let policy = shown.lines().find(|line| line.contains("sha256-")).map(str::to_owned);
    policy.map_or_else(|| shown.clone(), |policy| shown.replace(&policy, "(content security policy)"))
}

#[test]
fn many_versions_and_many_packages() {
    let lines: Vec<String> = (0..1000)
        .map(|n| match n {
            0 => "stable: rose.v1.0.0".to_owned(),
            n => format!("stable: rose.v1.{n}.0 replaces=rose.v1.{}.0", n - 1),
        })
        .collect();
    let large = roses(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let (code, text, talk) = run_command(catalog(&["graph", "-"]).write_stdin(&*large));
    assert_eq!((code, text.lines().count()), (0, 9), "{text}");
    assert!(
        text.contains("\n⋮ 993 more\n") && talk.starts_with("long rows are truncated; --version RANGE"),
        "{text}{talk}"
    );
    let (code, text, talk) = run_command(catalog(&["graph", "-", "-o", "svg"]).write_stdin(&*large));
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(
        talk.contains("1000 versions are too many for a drawing") && talk.contains("hint: specify a package"),
        "{talk}"
    );
    let narrow = ["graph", "-", "-o", "svg", "--version", ">=1.990.0"];
    let (code, text, _) = run_command(catalog(&narrow).write_stdin(&*large));
    assert_eq!((code, text.matches("<circle").count()), (0, 10 + 2), "and two of the legend");
    let two = roses(&GARDEN) + "---\n" + &roses(&["stable: rose.v1.0.0"]).replace("rose", "tulip");
    let (code, text, _) = run_command(catalog(&["graph", "-"]).write_stdin(&*two));
    assert_eq!(code, 0);
    insta::assert_snapshot!(text, @"
    PACKAGE   CHANNEL   HEAD           VERSIONS   STRANDED
    rose      fast      rose.v2.0.0    1
    rose      odd       rose.v0.9.0    1
    rose      old       rose.v1.0.0    1
    rose      stable    rose.v2.0.0    5          1
    tulip     stable    tulip.v1.0.0   1
    ");
    assert_eq!(run_command(catalog(&["graph", "-", "--from", "1.0.0"]).write_stdin(two)).0, 2);
}

#[test]
fn invalid_arguments_are_refused() {
    let (code, text, talk) = run(&["tulip"]);
    assert_eq!(
        (code, text.as_str(), talk.as_str()),
        (1, "", "package \"tulip\" is not in the catalog; its packages: rose\n")
    );
    let (code, _, talk) = run(&["rose", "--channel", "slow"]);
    assert_eq!(
        (code, talk.as_str()),
        (1, "package rose has no channel \"slow\"; its channels: fast, odd, old, stable\n")
    );
    let (code, _, talk) = run(&["rose", "--from", "tulip"]);
    assert_eq!(code, 2);
    assert!(
        talk.starts_with("error: package rose has no version \"tulip\"\nhint: specify a bundle or a version"),
        "{talk}"
    );
    assert_eq!(run(&["rose", "tulip"]).0, 2);
    assert_eq!(run(&["rose", "--to", "1.0.0"]).0, 2);
}
