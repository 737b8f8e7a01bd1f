//! A property test: findings agree with the controllers. If an operator fails because of OperatorGroups, there is an error in its
//! namespace; and for each error, an operator fails.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Known, lint};
use crate::api::cluster_service_version::is_copy;
use crate::api::{crd, object};
use crate::finding::Severity;
use crate::settings::Settings;
use crate::sim::{ApiServer, Simulation};
use crate::testing;
use crate::world::World;

const NAMESPACES: [&str; 4] = ["garden", "park", "field", "meadow"];
const KINDS: [&str; 2] = ["Rose", "Tulip"];
const MODES: [&str; 4] = testing::ALL_MODES;

/// Reasons with which ClusterServiceVersions fail because of OperatorGroups.
const REASONS: [&str; 7] = [
    "NoOperatorGroup",
    "TooManyOperatorGroups",
    "NoTargetNamespaces",
    "UnsupportedOperatorGroup",
    "InvalidInstallModes",
    "InterOperatorGroupOwnerConflict",
    "CannotModifyStaticOperatorGroupProvidedAPIs",
];

#[derive(Clone, Debug)]
enum Targets {
    All,
    Named(BTreeSet<usize>),
    Missing,
    Senseless,
    Selected(&'static str),
    Both,
}

#[derive(Clone, Debug)]
struct SomeGroup {
    namespace: usize,
    second: bool,
    targets: Targets,
    is_static: bool,
    annotated: BTreeSet<usize>,
    account: &'static str,
}

#[derive(Clone, Debug)]
struct SomeOperator {
    namespace: usize,
    kind: usize,
    provides: bool,
    modes: BTreeSet<usize>,
    /// Whether it exists independently of a group.
    is_stray: bool,
}

fn any_targets() -> impl Strategy<Value = Targets> {
    let named = prop::collection::btree_set(0..NAMESPACES.len(), 1..4).prop_map(Targets::Named);
    prop_oneof![
        3 => Just(Targets::All),
        6 => named,
        1 => Just(Targets::Missing),
        1 => Just(Targets::Senseless),
        3 => prop_oneof![Just("roses"), Just("nobody")].prop_map(Targets::Selected),
        1 => Just(Targets::Both),
    ]
}

fn any_group() -> impl Strategy<Value = SomeGroup> {
    let account = prop_oneof![16 => Just(""), 1 => Just("missing"), 1 => Just("powerless"), 1 => Just("powerful")];
    let annotated = prop::collection::btree_set(0..KINDS.len(), 0..3);
    let place = (0..NAMESPACES.len(), prop::bool::weighted(0.05));
    (place, any_targets(), prop::bool::weighted(0.25), annotated, account).prop_map(
        |((namespace, second), targets, is_static, annotated, account)| SomeGroup {
            namespace,
            second,
            targets,
            is_static,
            annotated,
            account,
        },
    )
}

fn any_operator() -> impl Strategy<Value = SomeOperator> {
    let modes = prop_oneof![
        5 => Just((0..MODES.len()).collect::<BTreeSet<usize>>()),
        2 => prop::collection::btree_set(0..MODES.len(), 0..4),
    ];
    (0..NAMESPACES.len(), 0..KINDS.len(), prop::bool::weighted(0.8), modes, prop::bool::weighted(0.1)).prop_map(
        |(namespace, kind, provides, modes, is_stray)| SomeOperator { namespace, kind, provides, modes, is_stray },
    )
}

fn api(kind: usize) -> String {
    format!("{}.v1.example.com", KINDS[kind])
}

fn plural(kind: usize) -> String {
    format!("{}s", KINDS[kind].to_lowercase())
}

fn names(of: &BTreeSet<usize>) -> Vec<&'static str> {
    of.iter().map(|at| NAMESPACES[*at]).collect()
}

/// Returns the objects that every generated cluster has.
fn ground() -> Vec<Value> {
    let mut objects = vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "powerful" },
            "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "powerful" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "powerful" },
            "subjects": NAMESPACES.map(|namespace| json!({ "kind": "ServiceAccount", "name": "powerful", "namespace": namespace })),
        }),
    ];
    for (at, name) in NAMESPACES.into_iter().enumerate() {
        let labels = if at % 2 == 0 { json!({ "team": "roses" }) } else { json!({}) };
        objects.push(testing::labelled_namespace(name, &labels));
        for account in ["powerful", "powerless"] {
            let metadata = json!({ "name": account, "namespace": name });
            objects.push(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }));
        }
    }
    for (kind, name) in KINDS.into_iter().enumerate() {
        objects.push(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}.example.com", plural(kind)) },
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "kind": name, "plural": plural(kind), "singular": name.to_lowercase(), "listKind": format!("{name}List") },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }],
            },
        }));
    }
    objects
}

fn group(group: &SomeGroup) -> Value {
    let mut spec = match &group.targets {
        Targets::All => json!({}),
        Targets::Named(some) => json!({ "targetNamespaces": names(some) }),
        Targets::Missing => json!({ "targetNamespaces": ["nowhere"] }),
        Targets::Senseless => json!({ "targetNamespaces": [""] }),
        Targets::Selected(team) => json!({ "selector": { "matchLabels": { "team": team } } }),
        Targets::Both => json!({ "targetNamespaces": ["park"], "selector": { "matchLabels": { "team": "roses" } } }),
    };
    spec["staticProvidedAPIs"] = group.is_static.into();
    if !group.account.is_empty() {
        spec["serviceAccountName"] = group.account.into();
    }
    let apis: Vec<String> = group.annotated.iter().map(|kind| api(*kind)).collect();
    let name = if group.second { "second" } else { "all" };
    testing::with_metadata(
        testing::operator_group(NAMESPACES[group.namespace], name, &spec),
        &json!({"annotations": { "olm.providedAPIs": apis.join(",") }}),
    )
}

fn operator(operator: &SomeOperator) -> Value {
    let name = plural(operator.kind);
    let owned = json!([{ "name": format!("{name}.example.com"), "kind": KINDS[operator.kind], "version": "v1" }]);
    let modes: Vec<Value> = MODES
        .into_iter()
        .enumerate()
        .map(|(at, mode)| json!({ "type": mode, "supported": operator.modes.contains(&at) }))
        .collect();
    let pod = json!({
        "metadata": { "labels": { "app": name } },
        "spec": { "containers": [{ "name": "operator", "image": "example.com/operator" }] },
    });
    let deployment = json!({ "replicas": 1, "selector": { "matchLabels": { "app": name } }, "template": pod });
    let spec = json!({
        "displayName": name, "version": "1.0.0", "installModes": modes,
        "customresourcedefinitions": { "owned": if operator.provides { owned } else { json!([]) } },
        "install": { "strategy": "deployment", "spec": { "deployments": [{ "name": name, "spec": deployment }] } },
    });
    testing::csv(NAMESPACES[operator.namespace], &format!("{name}.v1"), &spec)
}

/// Returns the objects that fail or make no progress because of OperatorGroups, with their namespaces.
fn troubles(simulation: &Simulation) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let olm = |kind| simulation.api().list("operators.coreos.com", kind, None);
    let groups: Vec<&Value> = olm("OperatorGroup").collect();
    for csv in olm("ClusterServiceVersion").filter(|csv| !is_copy(csv)) {
        let [phase, reason] = ["phase", "reason"].map(|key| object::text(csv, &["status", key]));
        let mut of_namespace = groups.iter().filter(|group| object::namespace(group) == object::namespace(csv));
        let has_account = of_namespace.any(|group| !object::text(group, &["spec", "serviceAccountName"]).is_empty());
        let fails = phase == "Failed" && REASONS.contains(&reason);
        if fails || phase.is_empty() || has_account && phase != "Succeeded" {
            found.push((object::namespace(csv).to_owned(), format!("{} {phase} {reason}", object::name(csv))));
        }
    }
    for group in groups {
        let conditions = object::list(group, &["status", "conditions"]);
        let selects = !object::at(group, &["spec", "selector"]).is_null()
            && object::at(group, &["spec", "targetNamespaces"]).is_null();
        let is_unprocessed = object::list(group, &["status", "namespaces"]).is_empty() && !selects;
        if !conditions.is_empty() || is_unprocessed {
            found.push((object::namespace(group).to_owned(), format!("OperatorGroup {}", object::name(group))));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn what_is_found_is_what_happens(
        groups in prop::collection::vec(any_group(), 0..6),
        mut operators in prop::collection::vec(any_operator(), 0..6),
    ) {
        for operator in operators.iter_mut().filter(|operator| !operator.is_stray && !groups.is_empty()) {
            operator.namespace = groups[operator.namespace % groups.len()].namespace;
        }
        let began: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let api = ApiServer::with_stock_objects(1, began).with_node("n1", began);
        let mut simulation = Simulation::new(api, Settings::default(), began);
        for crd in crd::all() {
            simulation.apply(crd).unwrap();
        }
        simulation.establish();
        let objects = ground().into_iter().chain(groups.iter().map(group)).chain(operators.iter().map(operator));
        for object in objects {
            simulation.apply(object).unwrap();
        }
        let mut world = World::new();
        for object in simulation.api().iter() {
            world.apply(object.into_owned());
        }
        let problems = lint(&world, &Known::everything(), began).problems;
        let errors: Vec<_> = problems.into_iter().filter(|problem| problem.severity == Severity::Error).collect();
        // Refused requests are retried without end.
        simulation.settle(SignedDuration::from_mins(30));
        let troubles = troubles(&simulation);
        for (namespace, who) in &troubles {
            let is_told = errors.iter().any(|problem| problem.namespaces().contains(namespace.as_str()));
            prop_assert!(is_told, "{}/{} has no error: {:#?}", namespace, who, errors);
        }
        for error in &errors {
            let has_reason = troubles.iter().any(|(namespace, _)| error.namespaces().contains(namespace.as_str()));
            prop_assert!(has_reason, "nothing fails: {} {} ({:?})", error.object, error.message, troubles);
        }
    }
}
