//! `kubectl olm operatorgroup intersect`.

use serde_json::{Value, json};

use super::{garden, run_in};

fn intersect(arguments: &[&str]) -> (i32, String, String) {
    run_in(garden().path(), &[&["intersect", "--from", "garden.yaml"], arguments].concat())
}

fn shown((code, out, err): (i32, String, String)) -> String {
    format!("exit {code}\n{out}{err}")
}

#[test]
fn groups_and_their_conflicts() {
    insta::assert_snapshot!(shown(intersect(&["-A"])));
    insta::assert_snapshot!(shown(intersect(&["-A", "-o", "matrix"])));
    insta::assert_snapshot!(shown(intersect(&["-A", "-o", "dot"])));
    insta::assert_snapshot!(shown(intersect(&["alice/alice", "bob/bob", "-o", "yaml"])));
}

#[test]
fn the_document_contains_the_holder_of_an_api() {
    let (code, out, _) = intersect(&["alice/alice", "bob/bob", "-o", "json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &document["kind"], &document["conflicts"]), (1, &json!("OperatorGroupIntersections"), &json!(1)));
    let [pair] = &document["intersections"].as_array().unwrap()[..] else { panic!("{out}") };
    let alice = json!({ "namespace": "alice", "name": "alice" });
    assert_eq!((&pair["namespaces"], &pair["first"]), (&json!(["east", "west"]), &alice));
    assert_eq!(pair["apis"], json!([{ "api": "Rose.v1.garden.example.com", "providedBy": [alice] }]));
}

#[test]
fn a_group_in_a_file_is_treated_as_applied() {
    insta::assert_snapshot!(shown(intersect(&["-f", "new.yaml"])));
}

const TENANTS: &str = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: { name: here, namespace: here }
spec: { targetNamespaces: [shared] }
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: { name: over, namespace: over }
spec: { targetNamespaces: [shared] }
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: { name: samovar, namespace: here }
spec: { name: samovar, channel: stable, source: market, sourceNamespace: olm }
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: { name: samovar, namespace: over }
spec: { name: samovar, channel: stable, source: market, sourceNamespace: olm }
";

#[test]
fn one_group_has_nothing_to_intersect() {
    let folder = tempfile::tempdir().unwrap();
    let (one, _) = TENANTS.split_once("---").unwrap();
    std::fs::write(folder.path().join("one.yaml"), one).unwrap();
    let (code, out, err) = run_in(folder.path(), &["intersect", "-A", "--from", "one.yaml"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", "1 OperatorGroup, nothing to compare\n"));
}

#[test]
fn two_subscriptions_of_one_package_are_resolved() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tenants.yaml"), TENANTS).unwrap();
    std::fs::write(folder.path().join("cluster.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: { name: shared }\n")
        .unwrap();
    let market = concat!("market=", env!("CARGO_MANIFEST_DIR"), "/../../tests/quickstart/catalogs/market");
    let asked = |more: &[&str]| {
        run_in(folder.path(), &[&["intersect", "--from", "cluster.yaml", "-f", "tenants.yaml"], more].concat())
    };
    let (code, out, err) = asked(&["--catalog", market, "-o", "json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &document["conflicts"]), (1, &json!(1)), "{out}{err}");
    let api = &document["intersections"][0]["apis"][0]["api"];
    assert!(api.as_str().unwrap().starts_with("Kettle."), "{out}");
    // Without the catalog the result is unknown.
    let (code, out, err) = asked(&[]);
    assert_eq!(code, 2, "{out}{err}");
    assert!(err.contains("the content of catalog olm/market is unknown"), "{err}");
}

#[test]
fn an_invalid_group_is_reported() {
    let garden = garden();
    let group = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: carol, namespace: carol}\n";
    std::fs::write(garden.path().join("carol.yaml"), format!("{group}spec: {{targetNamespace: [east]}}\n")).unwrap();
    let (_, _, err) = run_in(garden.path(), &["intersect", "--from", "garden.yaml", "-f", "carol.yaml"]);
    assert!(
        err.contains("the API server would reject OperatorGroup carol/carol: unknown field spec.targetNamespace\n"),
        "{err}"
    );
}

#[test]
fn selected_groups() {
    let (code, out, err) = intersect(&["-n", "quiet"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("operators/global") && !out.contains("alice"), "{out}");
    let (code, out, err) = intersect(&["quiet/ours", "bob/bob"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert_eq!(err, "bob/bob and quiet/ours have no namespace in common.\n");
    let (_, named, _) = intersect(&["bob"]);
    let (_, with_namespace, _) = intersect(&["bob/bob"]);
    assert_eq!(named, with_namespace);
    let (code, out, err) = intersect(&["-n", "nowhere"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.contains("No OperatorGroups found in nowhere namespace"), "{err}");
}

#[test]
fn invalid_arguments_are_refused() {
    for (arguments, words) in [
        (&["carol"][..], "there is no OperatorGroup \"carol\""),
        (&["east/bob"], "other namespaces have a group of that name: bob/bob"),
        (&["bob/robert"], "the namespace has bob"),
        (&["bob/bob", "bob"], "named twice"),
        (&["-o", "svg"], "invalid value"),
        (&["-f", "gone.yaml"], "gone.yaml"),
    ] {
        let (code, out, err) = intersect(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
}
