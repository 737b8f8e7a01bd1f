//! The final state does not depend on the history: after any changes to OperatorGroups, their members and the objects of the
//! controllers, the result equals that of controllers that start with the same desired state and nothing else.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::SignedDuration;
use proptest::collection;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::{Crashes, Happening, Patch, Progress, Simulation, WatchEvent};
use super::tenancy::{CLUSTER, LONG, NAMESPACES, apis, labels, modes, operator, reference, targets};
use crate::api::cluster_service_version::is_copy;
use crate::api::object::{self, ObjectRef};
use crate::membership::{self, Group};
use crate::testing;
use crate::world::{Reader, kind};

/// One that owns the definition of roses, one that owns tulips, and one that owns nothing.
const OPERATORS: [&str; 3] = ["rose", "tulip", "hose"];
const ACCOUNT: &str = "gardener";
const MANY_STEPS: usize = 4000;

/// The cluster, with ServiceAccounts of that name that have all permissions.
static GARDENS: LazyLock<Simulation> = LazyLock::new(|| {
    let mut simulation = CLUSTER.clone();
    let subjects = NAMESPACES.map(|ns| json!({ "kind": "ServiceAccount", "namespace": ns, "name": ACCOUNT }));
    let metadata = json!({ "name": ACCOUNT });
    for object in [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata,
            "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT },
            "subjects": subjects,
        }),
    ] {
        simulation.apply(object).expect("rights");
    }
    assert!(simulation.settle(LONG));
    simulation
});

/// A change by a user.
#[derive(Clone)]
enum Deed {
    Apply(Value),
    Install(Value),
    Patch(ObjectRef, Value),
    Delete(ObjectRef),
    /// Damage to the n-th of the objects that the controllers created.
    Spoil(usize, Spoiling),
}

impl std::fmt::Debug for Deed {
    /// Formats it in one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Apply(object) => write!(f, "apply {object}"),
            Self::Install(csv) => {
                let asks = !csv["spec"]["install"]["spec"]["permissions"].is_null();
                let modes: Vec<_> = object::list(csv, &["spec", "installModes"]).iter().map(|m| &m["type"]).collect();
                write!(f, "install {} for {}, permissions: {asks}", ObjectRef::from_object(csv), json!(modes))
            }
            Self::Patch(target, patch) => write!(f, "patch {target} {patch}"),
            Self::Delete(target) => write!(f, "delete {target}"),
            Self::Spoil(number, how) => write!(f, "spoil {number} {how:?}"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Spoiling {
    Delete,
    Rules,
    Spec,
}

fn namespace() -> impl Strategy<Value = &'static str> {
    select(&NAMESPACES[..])
}

fn group_name() -> impl Strategy<Value = &'static str> {
    prop_oneof![5 => Just("one"), 1 => Just("two")]
}

/// Returns the targets of a group, valid or not.
fn any_targets() -> impl Strategy<Value = Value> {
    let named = |names: Value| json!({ "targetNamespaces": names, "selector": null });
    let selected = |key: &str, operator: &str, values: Value| {
        let expression = json!({ "key": key, "operator": operator, "values": values });
        json!({ "targetNamespaces": null, "selector": { "matchExpressions": [expression] } })
    };
    prop_oneof![
        8 => targets(),
        1 => Just(named(json!(["a", "nowhere"]))),
        1 => Just(named(json!(["", "a"]))),
        1 => Just(named(json!([""]))),
        1 => Just(named(json!(["a,b"]))),
        1 => Just(named(json!(["No Name", "b"]))),
        1 => Just(selected("team", "Like", json!(["roses"]))),
        1 => Just(selected("no key", "DoesNotExist", json!(null))),
        1 => Just(selected("team", "NotIn", json!(["roses"]))),
    ]
}

fn group() -> impl Strategy<Value = Deed> {
    let account = prop_oneof![4 => Just(json!(null)), 1 => Just(json!(ACCOUNT))];
    (namespace(), group_name(), any_targets(), apis(), proptest::bool::weighted(0.2), account).prop_map(
        |(namespace, name, mut spec, apis, fixed, account)| {
            spec["staticProvidedAPIs"] = fixed.into();
            spec["serviceAccountName"] = account;
            Deed::Apply(testing::with_metadata(
                testing::operator_group(namespace, name, &spec),
                &json!({"annotations": { "olm.providedAPIs": apis }}),
            ))
        },
    )
}

fn install() -> impl Strategy<Value = Deed> {
    (namespace(), select(&OPERATORS[..]), modes()).prop_map(|(namespace, name, modes)| {
        let kinds: &[&str] = match name {
            "rose" => &["Rose"],
            "tulip" => &["Tulip"],
            _ => &[],
        };
        let mut csv = operator(namespace, name, kinds, &modes);
        if ["a", "c"].contains(&namespace) {
            csv["spec"]["install"]["spec"]["permissions"] = json!([{
                "serviceAccountName": name, "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
            }]);
        }
        Deed::Install(csv)
    })
}

/// Returns manual changes of fields that only the controllers should write.
fn forgery() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just(json!(null)), Just(json!("")), namespace().prop_map(|n| json!(n)), Just(json!("one"))];
    let key = select(&["olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces"][..]);
    prop_oneof![
        3 => (key, text).prop_map(|(key, text)| json!({ "metadata": { "annotations": { key: text } } })),
        2 => proptest::option::of(namespace())
            .prop_map(|from| json!({ "metadata": { "labels": { "olm.copiedFrom": from } } })),
        1 => Just(json!({ "metadata": { "finalizers": null } })),
        1 => Just(json!({ "metadata": { "annotations": null, "labels": null } })),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    let group_ref = || (namespace(), group_name()).prop_map(|(ns, name)| reference("OperatorGroup", ns, name));
    let csv_ref =
        || (namespace(), select(&OPERATORS[..])).prop_map(|(ns, name)| reference("ClusterServiceVersion", ns, name));
    let account = |namespace: &str| json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": ACCOUNT, "namespace": namespace } });
    prop_oneof![
        3 => install(),
        2 => group(),
        4 => (group_ref(), any_targets()).prop_map(|(group, spec)| Deed::Patch(group, json!({ "spec": spec }))),
        1 => (group_ref(), apis(), any::<bool>()).prop_map(|(group, apis, fixed)| {
            let claim = json!({ "annotations": { "olm.providedAPIs": apis } });
            Deed::Patch(group, json!({ "metadata": claim, "spec": { "staticProvidedAPIs": fixed } }))
        }),
        1 => (group_ref(), any::<bool>()).prop_map(|(group, named)| {
            Deed::Patch(group, json!({ "spec": { "serviceAccountName": named.then_some(ACCOUNT) } }))
        }),
        1 => namespace().prop_map(move |ns| Deed::Apply(account(ns))),
        1 => namespace().prop_map(|ns| Deed::Delete(reference("ServiceAccount", ns, ACCOUNT))),
        2 => group_ref().prop_map(Deed::Delete),
        1 => csv_ref().prop_map(Deed::Delete),
        2 => (namespace(), labels()).prop_map(|(ns, labels)| {
            Deed::Patch(reference("Namespace", "", ns), json!({ "metadata": { "labels": labels } }))
        }),
        1 => namespace().prop_map(|ns| {
            let forged = json!({ "olm.operatorgroup.uid/forged": "", "kubernetes.io/metadata.name": ns });
            Deed::Patch(reference("Namespace", "", ns), json!({ "metadata": { "labels": forged } }))
        }),
        1 => namespace().prop_map(|ns| Deed::Delete(reference("Namespace", "", ns))),
        2 => (namespace(), labels()).prop_map(|(ns, labels)| {
            Deed::Apply(testing::labelled_namespace(ns, &labels))
        }),
        1 => any::<bool>().prop_map(|disabled| Deed::Apply(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": { "name": "cluster" },
            "spec": { "features": { "disableCopiedCSVs": disabled } },
        }))),
        3 => (csv_ref(), forgery()).prop_map(|(csv, patch)| Deed::Patch(csv, patch)),
        2 => (any::<usize>(), select(&[Spoiling::Delete, Spoiling::Rules, Spoiling::Spec][..]))
            .prop_map(|(number, how)| Deed::Spoil(number, how)),
    ]
}

/// Creates a ClusterServiceVersion and the objects that its InstallPlan would create.
fn install_operator(simulation: &mut Simulation, csv: Value) {
    let Ok(csv) = simulation.apply(csv) else { return };
    let (namespace, name) = (object::namespace(&csv), object::name(&csv));
    for permission in object::list(&csv, &["spec", "install", "spec", "permissions"]) {
        let account = object::text(permission, &["serviceAccountName"]);
        let role = role_name(namespace, name);
        let metadata = json!({
            "name": role, "namespace": namespace,
            "labels": {
                "olm.owner": name, "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion",
                "olm.managed": "true",
            },
            "ownerReferences": [object::owner_reference(&csv, false)],
        });
        for object in [
            json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account, "namespace": namespace } }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
                "rules": permission["rules"],
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
                "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
            }),
        ] {
            let _ = simulation.apply(object);
        }
    }
}

/// Returns the name of the Role with an operator's permissions. It differs by namespace, so that those of two operators can be
/// copied to the whole cluster.
fn role_name(namespace: &str, operator: &str) -> String {
    format!("{operator}-in-{namespace}")
}

fn objects(simulation: &Simulation, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    simulation.api().iter().filter(|object| wanted(object)).map(Cow::into_owned).collect()
}

/// Returns the objects that the controllers created, without original ClusterServiceVersions.
fn made(simulation: &Simulation) -> Vec<Value> {
    let is_made = |o: &Value| match object::text(o, &["kind"]) {
        "ClusterServiceVersion" | "Role" | "RoleBinding" => object::label(o, "olm.copiedFrom").is_some(),
        "ClusterRole" | "ClusterRoleBinding" | "Deployment" => object::label(o, "olm.managed").is_some(),
        _ => false,
    };
    objects(simulation, is_made)
}

fn is_original(csv: &Value) -> bool {
    object::text(csv, &["kind"]) == "ClusterServiceVersion" && !is_copy(csv)
}

fn spoil(simulation: &mut Simulation, number: usize, how: Spoiling) {
    let made = made(simulation);
    if made.is_empty() {
        return;
    }
    let victim = &made[number % made.len()];
    let target = ObjectRef::from_object(victim);
    let patch = match (how, target.gvk.kind.as_str()) {
        (Spoiling::Delete, _) => {
            let _ = simulation.delete(&target);
            return;
        }
        (Spoiling::Rules, "Role" | "ClusterRole") => json!({ "rules": [] }),
        (Spoiling::Rules, "RoleBinding" | "ClusterRoleBinding") => json!({ "subjects": [] }),
        (Spoiling::Spec, "ClusterServiceVersion") => json!({ "spec": { "displayName": "spoilt" } }),
        (Spoiling::Spec, "Deployment") => {
            json!({ "metadata": { "labels": { "olm.deployment-spec-hash": "spoilt" } }, "spec": { "replicas": 3 } })
        }
        _ => return,
    };
    let _ = simulation.patch(&target, Patch::Merge(patch), None);
}

fn act(simulation: &mut Simulation, deed: &Deed) {
    // Some requests are refused as expected.
    match deed {
        Deed::Apply(object) => drop(simulation.apply(object.clone())),
        Deed::Install(csv) => install_operator(simulation, csv.clone()),
        Deed::Patch(target, patch) => drop(simulation.patch(target, Patch::Merge(patch.clone()), None)),
        Deed::Delete(target) => drop(simulation.delete(target)),
        Deed::Spoil(number, how) => spoil(simulation, *number, *how),
    }
}

/// Gives every group a valid spec, and creates the ServiceAccount that it names.
fn heal(simulation: &mut Simulation) {
    let groups: Vec<Value> = simulation.api().list("operators.coreos.com", "OperatorGroup", None).cloned().collect();
    for group in groups {
        let reader = Reader::new(simulation.planner().world());
        let namespace = object::namespace(&group);
        if membership::wanted_targets(&reader, Group::new(&group)).is_err() {
            let spec = json!({ "spec": { "targetNamespaces": [namespace], "selector": null } });
            simulation.patch(&ObjectRef::from_object(&group), Patch::Merge(spec), None).expect("a valid group");
        }
        let account = object::text(&group, &["spec", "serviceAccountName"]);
        if !account.is_empty() {
            let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account, "namespace": namespace } });
            simulation.apply(account).expect("an account");
        }
    }
}

/// Creates a cluster with the same desired state.
fn begin_anew(simulation: &Simulation) -> Simulation {
    let mut fresh = GARDENS.clone();
    for name in NAMESPACES {
        let target = reference("Namespace", "", name);
        match simulation.api().get(&target) {
            Some(namespace) => {
                let team = object::label(namespace, "team");
                let patch = json!({ "metadata": { "labels": { "team": team } } });
                fresh.patch(&target, Patch::Merge(patch), None).expect("labels");
            }
            None => drop(fresh.delete(&target)),
        }
    }
    fresh.establish();
    let of_kind = |kind: &str| objects(simulation, |o| o["kind"] == kind);
    let plain = |o: &Value| {
        let mut plain = json!({
            "apiVersion": o["apiVersion"], "kind": o["kind"],
            "metadata": { "name": object::name(o) }, "spec": o["spec"],
        });
        if !object::namespace(o).is_empty() {
            plain["metadata"]["namespace"] = object::namespace(o).into();
        }
        plain
    };
    for config in of_kind("OLMConfig") {
        fresh.apply(plain(&config)).expect("a configuration");
    }
    let mut groups = of_kind("OperatorGroup");
    groups.sort_by_key(|g| (g["metadata"]["creationTimestamp"].to_string(), ObjectRef::from_object(g)));
    for group in groups {
        let mut new = plain(&group);
        new["metadata"]["annotations"] =
            json!({ "olm.providedAPIs": object::annotation(&group, "olm.providedAPIs").unwrap_or_default() });
        fresh.apply(new).expect("a group");
        let account = object::text(&group, &["spec", "serviceAccountName"]);
        if !account.is_empty() {
            let metadata = json!({ "name": account, "namespace": object::namespace(&group) });
            let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
            fresh.apply(account).expect("an account");
        }
        fresh.sleep_until(fresh.now() + SignedDuration::from_secs(1));
    }
    for csv in of_kind("ClusterServiceVersion").into_iter().filter(is_original) {
        install_operator(&mut fresh, plain(&csv));
    }
    fresh
}

/// The compared values, by subject.
type Picture = BTreeMap<String, Value>;

/// Returns the final state. The remains of a member that is not running depend on the history, and are excluded.
fn picture(simulation: &Simulation) -> Picture {
    let reader = Reader::new(simulation.planner().world());
    let mut picture = Picture::new();
    let mut uids = BTreeMap::new();
    for group in reader.all(&kind::OPERATOR_GROUP).map(|o| o.json()) {
        let conditions: BTreeSet<String> = object::list(group, &["status", "conditions"])
            .iter()
            .map(|c| format!("{}/{}", object::text(c, &["type"]), object::text(c, &["reason"])))
            .collect();
        let seen = json!({
            "targets": Group::new(group).targets(), "conditions": conditions, "apis": Group::new(group).provided().to_string(),
            "account": group["status"]["serviceAccountRef"]["name"],
        });
        let name = ObjectRef::from_object(group).to_string();
        uids.insert(format!("olm.operatorgroup.uid/{}", object::uid(group)), name.clone());
        picture.insert(name, seen);
    }
    for namespace in reader.all(&kind::NAMESPACE).map(|o| o.json()) {
        let labels: BTreeMap<&str, &str> = object::entries(namespace, &["metadata", "labels"])
            .map(|(key, value)| (uids.get(key).map_or(key, String::as_str), value))
            .filter(|(key, _)| *key != "kubernetes.io/metadata.name")
            .collect();
        picture.insert(ObjectRef::from_object(namespace).to_string(), json!(labels));
    }
    let copies = objects(simulation, |o| object::text(o, &["kind"]) == "ClusterServiceVersion" && !is_original(o));
    let originals = || reader.all(&kind::CLUSTER_SERVICE_VERSION).map(|o| o.json()).filter(|csv| is_original(csv));
    // Of several running operators that are offered in one namespace under the same name, the first is copied.
    let is_alone = |name: &str| name != "hose" || originals().filter(|csv| object::name(csv) == name).count() == 1;
    for csv in originals() {
        let (namespace, name) = (object::namespace(csv), object::name(csv));
        let runs = object::text(csv, &["status", "phase"]) == "Succeeded";
        let mut seen = json!({
            "phase": csv["status"]["phase"], "reason": csv["status"]["reason"], "message": csv["status"]["message"],
            "finalizers": csv["metadata"]["finalizers"],
        });
        let deployment = reader.json(&kind::DEPLOYMENT, namespace, name);
        if membership::groups(&reader, namespace).len() == 1 && membership::group_of(&reader, csv).is_some() {
            seen["annotations"] = csv["metadata"]["annotations"].clone();
        }
        if runs {
            seen["deployment"] = deployment.map_or(json!(null), |d| d["spec"].clone());
            for copy in copies.iter().filter(|copy| object::name(copy) == name && is_alone(name)) {
                if object::label(copy, "olm.copiedFrom") == Some(namespace) {
                    // Only the equality with the original is compared, because its representation may differ between runs.
                    let same = copy["spec"] == csv["spec"];
                    let (metadata, status) = (&copy["metadata"], &copy["status"]);
                    seen["copies"][object::namespace(copy)] =
                        json!([metadata["labels"], metadata["annotations"], same, status["phase"], status["reason"]]);
                }
            }
        }
        picture.insert(ObjectRef::from_object(csv).to_string(), seen);
    }
    for role in reader.all(&kind::CLUSTER_ROLE).map(|o| o.json()) {
        if object::label(role, "olm.owner.kind") == Some("OperatorGroup") {
            let seen = json!({ "labels": role["metadata"]["labels"], "rule": role["aggregationRule"] });
            picture.insert(ObjectRef::from_object(role).to_string(), seen);
        }
    }
    for config in reader.all(&kind::OLM_CONFIG).map(|o| o.json()) {
        let told = object::list(config, &["status", "conditions"]).iter().map(|c| c["message"].clone());
        picture.insert(ObjectRef::from_object(config).to_string(), told.collect());
    }
    for gk in [kind::CLUSTER_ROLE, kind::CLUSTER_ROLE_BINDING, kind::ROLE, kind::ROLE_BINDING] {
        for rights in reader.all(&gk).map(|o| o.json()) {
            let [namespace, owner] = ["olm.owner.namespace", "olm.owner"].map(|key| object::label(rights, key));
            if object::label(rights, "olm.owner.kind") == Some("ClusterServiceVersion")
                && reader
                    .json(&kind::CLUSTER_SERVICE_VERSION, namespace.unwrap_or_default(), owner.unwrap_or_default())
                    .is_none()
            {
                picture.insert(format!("stray {}", ObjectRef::from_object(rights)), json!(true));
            }
        }
    }
    for copy in &copies {
        let owner = object::label(copy, "olm.copiedFrom").unwrap_or_default();
        let original = reader.json(&kind::CLUSTER_SERVICE_VERSION, owner, object::name(copy));
        let runs = original.is_some_and(|o| is_original(o) && object::text(o, &["status", "phase"]) == "Succeeded");
        if original.is_none_or(|o| !is_original(o)) {
            picture.insert(format!("stray {}", ObjectRef::from_object(copy)), json!(true));
        }
        if runs {
            let original = original.expect("it runs");
            let targets = membership::group_of(&reader, original).expect("a member").targets();
            let (namespace, name) = (object::namespace(copy), object::name(copy));
            if targets.contains(namespace) && is_alone(name) {
                for kind in [kind::ROLE, kind::ROLE_BINDING] {
                    let found = reader.json(&kind, namespace, &role_name(owner, name));
                    let seen =
                        found.map_or(json!(null), |o| json!([o["metadata"]["labels"], o["rules"], o["subjects"]]));
                    picture.insert(format!("{kind} {namespace}/{name}"), seen);
                }
            }
        }
    }
    for csv in originals() {
        if object::text(csv, &["status", "phase"]) == "Succeeded" {
            for kind in [kind::CLUSTER_ROLE, kind::CLUSTER_ROLE_BINDING] {
                let found = reader.json(&kind, "", &role_name(object::namespace(csv), object::name(csv)));
                let seen = found.map_or(json!(null), |o| json!([o["metadata"]["labels"], o["rules"], o["subjects"]]));
                picture.insert(format!("{kind} of {}", ObjectRef::from_object(csv)), seen);
            }
        }
    }
    picture
}

fn compare(simulation: &Simulation, fresh: &Simulation) -> Result<(), TestCaseError> {
    let (ours, theirs) = (picture(simulation), picture(fresh));
    let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differences: Vec<String> = keys
        .into_iter()
        .filter(|key| ours.get(*key) != theirs.get(*key))
        .map(|key| format!("{key}\n  is    {}\n  fresh {}", json!(ours.get(key)), json!(theirs.get(key))))
        .collect();
    prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// Runs the controllers until they settle, with a limit far above the steps that any of them needs.
fn rest(simulation: &mut Simulation) -> Result<(), TestCaseError> {
    let deadline = simulation.now() + LONG;
    simulation.take_happenings();
    for _ in 0..MANY_STEPS {
        if simulation.advance(deadline) == Progress::Quiet {
            prop_assert_eq!(simulation.replan(), vec![]);
            return Ok(());
        }
    }
    let last: Vec<String> = simulation.take_happenings().iter().rev().take(12).map(told).collect();
    Err(TestCaseError::fail(format!("no rest:\n{}", last.join("\n"))))
}

fn told(happening: &Happening) -> String {
    let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) = &happening.change;
    format!("{:?} {}", happening.actor, ObjectRef::from_object(object))
}

fn play(deeds: Vec<(Deed, bool)>, crashes: bool) -> Result<(), TestCaseError> {
    let mut simulation = GARDENS.clone();
    if crashes {
        simulation.crash(Crashes::AfterEvery);
    }
    for (deed, rests) in deeds {
        act(&mut simulation, &deed);
        if crashes && matches!(&deed, Deed::Delete(target) if target.gvk.kind == "Namespace") {
            // A restart forgets all refusals, so the installation there is retried forever and Kubernetes' controllers never
            // run.
            simulation.establish();
        }
        if rests {
            rest(&mut simulation)?;
        }
    }
    rest(&mut simulation)?;
    heal(&mut simulation);
    rest(&mut simulation)?;
    let mut fresh = begin_anew(&simulation);
    rest(&mut fresh)?;
    compare(&simulation, &fresh)
}

/// Returns the initial changes and the later ones, each with whether the controllers settle before the next.
fn deeds() -> impl Strategy<Value = Vec<(Deed, bool)>> {
    let begin = (collection::vec(group(), 1..4), collection::vec(install(), 1..4));
    let begin = begin.prop_map(|(groups, csvs)| groups.into_iter().chain(csvs).map(|deed| (deed, false)).collect());
    let more = collection::vec((deed(), proptest::bool::weighted(0.7)), 0..8);
    (begin, more).prop_map(|(begin, more): (Vec<_>, Vec<_>)| begin.into_iter().chain(more).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_final_state_does_not_depend_on_the_history(deeds in deeds(), crashes in any::<bool>()) {
        play(deeds, crashes)?;
    }
}
