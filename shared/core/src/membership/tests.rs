use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Apis, Group, Provision, annotate, group_of, is_copy, provision, supports, wanted_targets};
use crate::plan::Action;
use crate::testing;
use crate::testing::world;
use crate::world::Reader;

fn namespace(name: &str, labels: &Value) -> Value {
    testing::labelled_namespace(name, labels)
}

fn group(namespace: &str, spec: &Value, targets: &Value, apis: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": namespace, "annotations": {"olm.providedAPIs": apis}},
        "spec": spec, "status": {"namespaces": targets},
    })
}

fn csv(spec: &Value) -> Value {
    testing::csv("garden", "rose.v1", spec)
}

#[test]
fn the_account_is_in_the_groups_namespace() {
    let mut group = group("garden", &json!({"serviceAccountName": "gardener"}), &json!(["garden"]), "");
    group["status"]["serviceAccountRef"] = json!({"name": "gardener", "namespace": "kube-system"});
    let account = Group::new(&group).account().unwrap().unwrap();
    assert_eq!(account.user(), "system:serviceaccount:garden:gardener");
    group["status"]["serviceAccountRef"]["name"] = "other".into();
    assert_eq!(Group::new(&group).account(), Err("gardener"));
}

#[test]
fn targets_are_named_selected_or_all_namespaces() {
    let world = world(&[
        namespace("a", &json!({"team": "roses", "tier": "one"})),
        namespace("b", &json!({"team": "tulips"})),
        namespace("c", &json!({})),
    ]);
    let expression = |key: &str, operator: &str, values: &Value| json!({"selector": {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}});
    let cases = [
        (json!({"targetNamespaces": ["b", "nowhere"]}), Ok(vec!["b", "nowhere"])),
        (json!({"targetNamespaces": ["b"], "selector": {"matchLabels": {"team": "roses"}}}), Ok(vec!["b"])),
        (json!({"targetNamespaces": ["b", "b", "No Name"]}), Ok(vec!["No Name", "b"])),
        (json!({"targetNamespaces": ["a,b"]}), Err("targetNamespaces: \"a,b\" is not a valid name of a namespace")),
        (json!({"targetNamespaces": ["b", ""]}), Err("TargetNamespaces cannot contain NamespaceAll: [b ]")),
        (json!({}), Ok(vec![""])),
        (json!({"targetNamespaces": [], "selector": null}), Ok(vec![""])),
        (json!({"selector": {}}), Ok(vec![""])),
        (json!({"selector": {"matchLabels": {}, "matchExpressions": []}}), Ok(vec![""])),
        (json!({"selector": {"matchLabels": {"team": "roses"}}}), Ok(vec!["a"])),
        (json!({"selector": {"matchLabels": {"team": "lilies"}}}), Ok(vec![])),
        (expression("team", "In", &json!(["roses", "tulips"])), Ok(vec!["a", "b"])),
        (expression("team", "NotIn", &json!(["roses"])), Ok(vec!["b", "c"])),
        (expression("tier", "Exists", &json!([])), Ok(vec!["a"])),
        (expression("team", "DoesNotExist", &json!(null)), Ok(vec!["c"])),
        (expression("team", "In", &json!([])), Err("selector: \"team\" In needs values")),
        (expression("team", "Exists", &json!(["x"])), Err("selector: \"team\" Exists takes no values")),
        (expression("team", "Like", &json!(["x"])), Err("selector: \"Like\" is not a label selector operator")),
        (
            expression("a/", "DoesNotExist", &json!(null)),
            Err("selector: \"a/\" is not the key of a label: name part must be non-empty"),
        ),
        (
            json!({"selector": {"matchLabels": {"/a": "x"}}}),
            Err("selector: \"/a\" is not the key of a label: prefix part must be non-empty"),
        ),
    ];
    for (spec, expected) in cases {
        let group = group("garden", &spec, &json!(null), "");
        let expected = expected
            .map(|targets| targets.into_iter().map(str::to_owned).collect::<BTreeSet<_>>())
            .map_err(str::to_owned);
        assert_eq!(wanted_targets(&Reader::new(&world), Group::new(&group)), expected, "{spec}");
    }
}

#[test]
fn invalid_labels_select_neither_nothing_nor_everything() {
    let world = world(&[namespace("a", &json!({"team": "roses"}))]);
    let long = "x".repeat(64);
    for (key, value) in [("no key", "x"), (&long, "x"), ("Team/x", "x"), ("team", "no value"), ("team", &long)] {
        for operator in ["In", "NotIn"] {
            let expression = json!({"key": key, "operator": operator, "values": ["roses", value]});
            let group = group("garden", &json!({"selector": {"matchExpressions": [expression]}}), &json!(null), "");
            assert!(wanted_targets(&Reader::new(&world), Group::new(&group)).is_err(), "{key} {operator} {value}");
        }
    }
    let none = json!({"selector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": [""]}]}});
    let group = group("garden", &none, &json!(null), "");
    assert!(wanted_targets(&Reader::new(&world), Group::new(&group)).is_ok(), "labels may be empty");
}

#[test]
fn a_group_is_processed_when_its_status_matches_its_spec() {
    let world = world(&[]);
    let reader = Reader::new(&world);
    for (spec, targets, expected) in [
        (json!({}), json!(null), false),
        (json!({}), json!([""]), true),
        (json!({"targetNamespaces": ["b", "a"]}), json!(["a", "b"]), true),
        (json!({"targetNamespaces": ["b", "a"]}), json!(["a"]), false),
        (json!({"selector": {"matchLabels": {"team": "lilies"}}}), json!(null), true),
        // The targets of an invalid group do not change.
        (json!({"targetNamespaces": [""]}), json!(null), true),
        (json!({"targetNamespaces": ["b"], "serviceAccountName": "missing"}), json!(["a"]), true),
    ] {
        assert_eq!(
            Group::new(&group("garden", &spec, &targets, "")).is_processed(&reader),
            expected,
            "{spec} {targets}"
        );
    }
}

#[test]
fn members_carry_name_namespace_and_targets() {
    let cases = [(json!(["b", "a"]), Some("a,b")), (json!([""]), Some("")), (json!([]), None)];
    for (targets, expected) in cases {
        let group = group("garden", &json!({}), &targets, "");
        let annotations = Group::new(&group).annotations();
        assert_eq!(annotations["olm.operatorGroup"], "og");
        assert_eq!(annotations["olm.operatorNamespace"], "garden");
        assert_eq!(annotations.get("olm.targetNamespaces").map(String::as_str), expected, "{targets}");
    }
}

#[test]
fn a_member_names_its_group_and_the_groups_targets() {
    let carrying = |annotations: &Value| {
        let mut csv = csv(&json!({}));
        csv["metadata"]["annotations"] = annotations.clone();
        csv
    };
    let all = json!({"olm.operatorGroup": "og", "olm.operatorNamespace": "garden", "olm.targetNamespaces": "a,b"});
    let stale = json!({"olm.operatorGroup": "og", "olm.operatorNamespace": "garden", "olm.targetNamespaces": "a"});
    let other = json!({"olm.operatorGroup": "gone", "olm.operatorNamespace": "garden", "olm.targetNamespaces": "a,b"});
    let none = json!({"olm.operatorGroup": "og", "olm.operatorNamespace": "garden"});
    for (annotations, targets, expected) in [
        (&all, json!(["b", "a"]), true),
        (&stale, json!(["b", "a"]), false),
        (&other, json!(["b", "a"]), false),
        (&none, json!([]), false),
        (&json!(null), json!(["a"]), false),
    ] {
        let world = world(&[group("garden", &json!({}), &targets, "")]);
        assert_eq!(group_of(&Reader::new(&world), &carrying(annotations)).is_some(), expected, "{annotations}");
    }
}

#[test]
fn copies_are_known_by_label_or_status() {
    let with = |path: &str, value: Value| {
        let mut csv = json!({"metadata": {"name": "rose.v1", "namespace": "garden", "labels": {}, "annotations": {}}});
        *csv.pointer_mut(path).unwrap() = value;
        csv
    };
    assert!(!is_copy(&csv(&json!({}))));
    assert!(is_copy(&with("/metadata/labels", json!({"olm.copiedFrom": "field"}))));
    let edited = with("/metadata/annotations", json!({"olm.operatorNamespace": "field"}));
    assert!(!is_copy(&edited), "an original whose annotation was edited");
    let mut copy = edited;
    copy["status"] = json!({"reason": "Copied"});
    assert!(is_copy(&copy), "a copy whose label was removed");
}

#[test]
fn install_modes_determine_supported_targets() {
    const OWN: &str = "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace";
    const ALL: &str = "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces";
    const SINGLE: &str = "SingleNamespace InstallModeType not supported, cannot configure to watch one namespace";
    const MULTI: &str = "MultiNamespace InstallModeType not supported, cannot configure to watch 2 namespaces";
    const MIXED: &str =
        "operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1";
    // What is supported, when all other modes are listed as unsupported; and whether the result is the same when they are
    // not listed.
    let cases: [(&[&str], &str, Option<&str>, bool); 12] = [
        (&["OwnNamespace"], "garden", None, true),
        (&["SingleNamespace", "AllNamespaces"], "garden", Some(OWN), false),
        (&["AllNamespaces"], "garden", Some(OWN), true),
        (&["AllNamespaces"], "", None, true),
        (&["OwnNamespace"], "", Some(ALL), true),
        (&["SingleNamespace"], "field", None, true),
        (&["MultiNamespace"], "field", Some(SINGLE), false),
        (&["MultiNamespace"], "field,meadow", None, true),
        (&["SingleNamespace"], "field,meadow", Some(MULTI), true),
        (&["MultiNamespace", "OwnNamespace"], "field,garden", None, true),
        (&["MultiNamespace"], "field,garden", Some(OWN), false),
        (&["MultiNamespace", "AllNamespaces"], ",field", Some(MIXED), true),
    ];
    for (supported, targets, expected, needs_no_list) in cases {
        let list = |modes: &[&str]| -> Value {
            modes.iter().map(|m| json!({"type": m, "supported": supported.contains(m)})).collect()
        };
        let ask = |modes: Value| supports(&csv(&json!({"installModes": modes})), "garden", targets);
        let expected = expected.map_or(Ok(()), |message| Err(("UnsupportedOperatorGroup", message.to_owned())));
        assert_eq!(ask(list(&testing::ALL_MODES)), expected, "{supported:?} {targets:?}");
        let inferred = if needs_no_list { expected } else { Ok(()) };
        assert_eq!(ask(list(supported)), inferred, "{supported:?} {targets:?}, the others not listed");
    }
    let twice = json!({"installModes": [{"type": "OwnNamespace", "supported": true}, {"type": "OwnNamespace", "supported": false}]});
    let message =
        "InstallMode list contains duplicates, cannot make set: [{OwnNamespace true} {OwnNamespace false}]".to_owned();
    assert_eq!(supports(&csv(&twice), "garden", "garden"), Err(("InvalidInstallModes", message)));
    let listed_but_not = json!({"installModes": [{"type": "OwnNamespace", "supported": false}]});
    assert!(supports(&csv(&listed_but_not), "garden", "garden").is_err());
}

#[test]
fn apis_are_owned_crds_and_services() {
    let provided = Apis::from_csv(&csv(&json!({
        "customresourcedefinitions": {
            "owned": [{"name": "roses.garden.example.com", "kind": "Rose", "version": "v1"}],
            "required": [{"name": "pots.garden.example.com", "kind": "Pot", "version": "v1"}],
        },
        "apiservicedefinitions": {"owned": [{"group": "soil.example.com", "version": "v2", "kind": "Soil", "name": "soils"}]},
    })));
    assert_eq!(provided.to_string(), "Rose.v1.garden.example.com,Soil.v2.soil.example.com");
    assert_eq!(Apis::parse("b.v1.x, a.v1.x,nonsense,").to_string(), "a.v1.x,b.v1.x");
}

#[test]
fn provided_apis_are_annotated_unless_another_group_provides_them() {
    let rose = "Rose.v1.garden.example.com";
    let tulip = "Tulip.v1.garden.example.com";
    let both = "Rose.v1.garden.example.com,Tulip.v1.garden.example.com";
    let csv = csv(&json!({"customresourcedefinitions": {"owned": [
        {"name": "roses.garden.example.com", "kind": "Rose", "version": "v1"},
    ]}}));
    let add = |text: &str| Provision::Annotate(Apis::parse(text));
    // Own annotation, static?, other group's targets and annotation.
    let cases = [
        ("", false, json!(["field"]), tulip, add(rose)),
        (tulip, false, json!(["field"]), "", add(both)),
        (rose, false, json!(["field"]), tulip, Provision::Settled),
        (rose, true, json!(["field"]), tulip, Provision::Settled),
        (tulip, true, json!(["field"]), "", Provision::Static),
        ("", false, json!(["field"]), rose, Provision::Conflict),
        ("", true, json!(["field"]), rose, Provision::Conflict),
        (both, false, json!(["field"]), rose, add(tulip)),
        (rose, true, json!([""]), rose, Provision::Static),
        ("", false, json!(["meadow"]), rose, add(rose)),
        ("", false, json!(["garden"]), rose, Provision::Conflict),
        ("", false, json!([""]), rose, Provision::Conflict),
        ("", false, json!([]), rose, add(rose)),
    ];
    for (own, fixed, targets, other, expected) in cases {
        let own = group("garden", &json!({"staticProvidedAPIs": fixed}), &json!(["field"]), own);
        let world = world(&[own.clone(), group("elsewhere", &json!({}), &targets, other)]);
        assert_eq!(provision(&Reader::new(&world), Group::new(&own), &csv), expected, "{targets} {other}");
    }
}

#[test]
fn annotations_may_contain_spaces() {
    let csv = csv(&json!({"customresourcedefinitions": {"owned": [
        {"name": "roses.garden.example.com", "kind": "Rose", "version": "v1"},
    ]}}));
    let own = group("garden", &json!({}), &json!(["field"]), "");
    for annotation in ["Tulip.v1.x.io, Rose.v1.garden.example.com", " Rose .v1.garden.example.com ,"] {
        let world = world(&[own.clone(), group("elsewhere", &json!({}), &json!(["field"]), annotation)]);
        assert_eq!(provision(&Reader::new(&world), Group::new(&own), &csv), Provision::Conflict, "{annotation:?}");
    }
}

#[test]
fn the_own_namespace_of_a_group_is_always_included() {
    let intersect = |a: (&str, Value), b: (&str, Value)| {
        let (a, b) = (group(a.0, &json!({}), &a.1, ""), group(b.0, &json!({}), &b.1, ""));
        let found = Group::new(&a).intersects(Group::new(&b));
        assert_eq!(found, Group::new(&b).intersects(Group::new(&a)), "symmetric");
        found
    };
    assert!(!intersect(("garden", json!(["field"])), ("meadow", json!(["lawn"]))));
    assert!(intersect(("garden", json!(["field"])), ("meadow", json!(["field"]))));
    assert!(intersect(("garden", json!(["field"])), ("meadow", json!(["garden"]))));
    assert!(intersect(("garden", json!(["field"])), ("field", json!(["field"]))));
    assert!(intersect(("garden", json!([])), ("meadow", json!(["garden"]))), "although it has no targets");
    assert!(intersect(("garden", json!([])), ("meadow", json!([""]))));
    assert!(!intersect(("garden", json!([])), ("meadow", json!([]))));
}

#[test]
fn of_groups_that_start_to_intersect_the_older_one_stays() {
    let rose = "Rose.v1.garden.example.com";
    let csv = csv(&json!({"customresourcedefinitions": {"owned": [
        {"name": "roses.garden.example.com", "kind": "Rose", "version": "v1"},
    ]}}));
    let made = |namespace: &str, second: u8, fixed: bool| {
        let mut group = group(namespace, &json!({"staticProvidedAPIs": fixed}), &json!(["field"]), rose);
        group["metadata"]["creationTimestamp"] = format!("2026-11-21T13:00:{second:02}Z").into();
        group
    };
    let give_way = Provision::Annotate(Apis::default());
    // The other group: its namespace, its creation time, and whether it is static.
    for (namespace, second, fixed, expected) in [
        ("zoo", 1, false, give_way.clone()),
        ("zoo", 3, false, Provision::Settled),
        ("zoo", 3, true, give_way.clone()),
        ("arbour", 2, false, give_way),
        ("zoo", 2, false, Provision::Settled),
    ] {
        let own = made("garden", 2, false);
        let world = world(&[own.clone(), made(namespace, second, fixed)]);
        assert_eq!(provision(&Reader::new(&world), Group::new(&own), &csv), expected, "{namespace} {second} {fixed}");
    }
}

#[test]
fn the_annotation_is_written_as_go_writes_the_group() {
    for (spec, expected) in [
        (json!({"staticProvidedAPIs": false, "upgradeStrategy": "Default"}), json!({"upgradeStrategy": "Default"})),
        (json!({"staticProvidedAPIs": true}), json!({"staticProvidedAPIs": true})),
    ] {
        let old = group("garden", &spec, &json!(["garden"]), "");
        let new = group("garden", &expected, &json!(["garden"]), "Rose.v1.x.io");
        assert_eq!(annotate(Group::new(&old), &Apis::parse("Rose.v1.x.io")), Action::Update(new));
    }
}
