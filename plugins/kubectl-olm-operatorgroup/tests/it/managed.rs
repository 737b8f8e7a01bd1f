//! `kubectl olm operatorgroup create` and `delete` without a cluster.

use super::{garden, run_in};

fn transcript_of(commands: &[&[&str]]) -> String {
    let garden = garden();
    let tell = |arguments: &&[&str]| {
        let verb = &arguments[..1];
        let (code, out, err) =
            run_in(garden.path(), &[verb, &["--from", "garden.yaml", "--dry-run"], &arguments[1..]].concat());
        format!("$ kubectl olm operatorgroup {}\n{out}{err}exit {code}\n", arguments.join(" "))
    };
    commands.iter().map(tell).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_branch_of_create() {
    insta::assert_snapshot!(transcript_of(&[
        &["create", "-n", "east"],
        &["create", "-n", "east", "-f", "carol.yaml"],
        &["create", "-f", "carol.yaml", "-o", "yaml"],
        &["create", "-n", "bob"],
        &["create", "-n", "alice", "--target-namespaces", "west,east"],
        &["create", "-n", "alice", "--target-namespaces", "north"],
        &["create", "-n", "alice", "--target-namespaces", "east"],
        &["create", "-n", "alice", "--target-namespaces", "east,north"],
        &["create", "-n", "alice", "--install-mode", "AllNamespaces", "-o", "name"],
        &["create", "roses", "-n", "alice", "--target-namespaces", "north"],
        &["create", "-n", "alice", "--target-namespaces", "quiet", "--other-namespace", "quiet"],
        &["create", "-n", "alice", "--target-namespaces", "north", "--other-namespace", "bob"],
        &["create", "-n", "alice", "--target-namespaces", "north", "--other-namespace", "east"],
        &["create", "-n", "alice", "--install-mode", "OwnNamespace", "--target-namespaces", "east"],
    ]));
}

#[test]
fn every_branch_of_delete() {
    insta::assert_snapshot!(transcript_of(&[
        &["delete", "-n", "east"],
        &["delete", "carol", "-n", "alice"],
        &["delete", "-n", "bob"],
        &["delete", "alice", "-n", "alice"],
        &["delete", "-n", "quiet"],
        &["delete", "operatorgroup.operators.coreos.com/ours", "-n", "quiet", "-o", "name"],
    ]));
}

#[test]
fn invalid_arguments_are_refused_before_any_request() {
    let garden = garden();
    let told: Vec<String> = [
        &["create", "--from", "garden.yaml", "-n", "east"][..],
        &["create", "--from", "garden.yaml", "--dry-run=client"],
        &["create", "-f", "carol.yaml", "--install-mode", "AllNamespaces"],
        &["create", "-f", "carol.yaml", "-n", "east"],
        &["create", "-f", "garden.yaml", "-n", "east"],
        &["create", "-f", "gone.yaml"],
        &["create", "-n", "east", "--other-namespace", "../west"],
        &["delete", "--from", "garden.yaml", "--dry-run", "-n", "east/x"],
        &["delete", "--from", "garden.yaml", "--dry-run", "-n", "east", "pod/x"],
        &["delete", "--from", "garden.yaml", "-n", "east"],
        &["delete", "-n", "east"],
    ]
    .into_iter()
    .map(|arguments| {
        let (code, out, err) = run_in(garden.path(), arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        format!("$ kubectl olm operatorgroup {}\n{err}", arguments.join(" "))
    })
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_manifest_is_read_from_standard_input() {
    let garden = garden();
    let mut create = super::operatorgroup(&["create", "--from", "garden.yaml", "--dry-run", "-f", "-"]);
    let create = create.current_dir(garden.path()).write_stdin(include_str!("new.yaml").split("---").next().unwrap());
    create.assert().success().stdout("operatorgroup.operators.coreos.com/carol created (dry run) in namespace carol\n");
    let nameless = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {generateName: og-}\n";
    for (manifest, why) in [
        (nameless, "the OperatorGroup has no name"),
        (&nameless.replace("generateName: og-", "name: '../og'"), "is not a valid name of an OperatorGroup"),
        (&nameless.replace("generateName: og-", "name: og, namespace: '../x'"), "is not a valid name of a namespace"),
        (&nameless.replace("com/v1", "com/v3"), "this is not an OperatorGroup of apiVersion"),
        (
            &nameless.replace("{generateName: og-}", "{name: og, namespace: east}\nspec: {targetNamespace: [east]}"),
            "unknown field spec.targetNamespace\n",
        ),
        ("", "expected exactly one OperatorGroup"),
    ] {
        let mut create = super::operatorgroup(&["create", "--from", "garden.yaml", "--dry-run", "-f", "-"]);
        let refused = create.current_dir(garden.path()).write_stdin(manifest).assert().code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(said.contains(why), "{said}");
    }
}
