//! Subscriptions from creation to installation, in simulation, and single plans where a simulation is not specific enough.

mod directory;
mod selection;
mod unpack;
mod user_plans;
mod worlds;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::catalog_source::Target;
use crate::api::crd;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::bundle::{BundleContent, Property};
use crate::catalog::{Builder, BundleMessage, Channel, Content, Package, Snapshot};
use crate::plan::{Action, Controller, Key, Reason, Verb};
use crate::settings::Settings;
use crate::sim::{Actor, ApiServer, Patch, Progress, Simulation};
use crate::testing;
use crate::world::{CatalogFact, ConnectionState, Fact, FactKey, Reader, World};

const ADDRESS: &str = "127.0.0.1:50061";

fn start() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// A bundle that owns the API of its package, with a Role for its account; it replaces `replaces` and requires the API
/// `needs`.
fn bundle(package: &str, version: &str, replaces: &str, needs: &str) -> BundleMessage {
    let name = format!("{package}.v{version}");
    let kind = format!("{}{}", package[..1].to_uppercase(), &package[1..]);
    let crd_name = format!("{package}s.garden.example.com");
    let api = |kind: &str| Gvk::new("garden.example.com", "v1", kind);
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": crd_name },
        "spec": {
            "group": "garden.example.com", "scope": "Namespaced",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": format!("{package}s"), "singular": package },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    let labels = json!({ "app": package });
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": { "name": name },
        "spec": {
            "displayName": package, "version": version,
            "installModes": testing::install_modes(&["OwnNamespace"]),
            "customresourcedefinitions": { "owned": [{ "name": crd_name, "kind": kind, "version": "v1" }] },
            "install": { "strategy": "deployment", "spec": {
                "permissions": [{
                    "serviceAccountName": format!("{package}-sa"),
                    "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
                }],
                "deployments": [{ "name": package, "spec": {
                    "replicas": 1,
                    "selector": { "matchLabels": labels },
                    "template": { "metadata": { "labels": labels }, "spec": {
                        "serviceAccountName": format!("{package}-sa"),
                        "containers": [{ "name": "manager", "image": "registry.example.com/operator:1" }],
                    } },
                } }],
            } },
        },
    });
    let mut properties = vec![Property::gvk("olm.gvk", &api(&kind)), Property::package(package, version)];
    if !needs.is_empty() {
        properties.push(Property::gvk("olm.gvk.required", &api(needs)));
    }
    let csv_json: Arc<str> = csv.to_string().into();
    BundleMessage {
        csv_name: name,
        package: package.to_owned(),
        channel: "stable".to_owned(),
        version: version.to_owned(),
        replaces: replaces.to_owned(),
        properties,
        content: Some(Content::pack(&BundleContent {
            objects: [csv_json.clone(), crd.to_string().into()].into(),
            csv_json,
            ..BundleContent::default()
        })),
        ..BundleMessage::default()
    }
}

fn catalog(bundles: Vec<BundleMessage>) -> Arc<Snapshot> {
    let mut builder = Builder::default();
    for message in bundles {
        builder.package(Package {
            name: message.package.clone(),
            default_channel: "stable".to_owned(),
            channels: vec![Channel { name: "stable".to_owned(), ..Channel::default() }],
            ..Package::default()
        });
        builder.bundle(message);
    }
    Arc::new(builder.build())
}

fn chain() -> Arc<Snapshot> {
    catalog(vec![
        bundle("rose", "1.0.0", "", ""),
        bundle("rose", "1.1.0", "rose.v1.0.0", ""),
        bundle("rose", "2.0.0", "rose.v1.1.0", ""),
    ])
}

fn subscription(name: &str, approval: &str, starting: &str) -> Value {
    let mut spec = json!({
        "name": "rose", "channel": "stable", "source": "main", "sourceNamespace": "olm", "installPlanApproval": approval,
    });
    if !starting.is_empty() {
        spec["startingCSV"] = starting.into();
    }
    testing::subscription("garden", name, &spec)
}

/// A cluster with a catalog and an OperatorGroup in `garden`, in its final state.
fn cluster(snapshot: Arc<Snapshot>) -> Simulation {
    cluster_with(snapshot, Settings::default())
}

fn cluster_with(snapshot: Arc<Snapshot>, settings: Settings) -> Simulation {
    let api = ApiServer::with_stock_objects(1, start()).with_node("n1", start());
    let mut simulation = Simulation::new(api, settings, start());
    for crd in crd::all() {
        simulation.apply(crd.clone()).unwrap();
    }
    simulation.establish();
    for namespace in ["olm", "garden"] {
        let object = testing::namespace(namespace);
        simulation.apply(object).unwrap();
    }
    simulation.serve(ADDRESS, snapshot);
    let source = testing::catalog_source("olm", "main", &json!({ "sourceType": "grpc", "address": ADDRESS }));
    let group = testing::operator_group("garden", "garden", &json!({ "targetNamespaces": ["garden"] }));
    for object in [source, group] {
        simulation.apply(object).unwrap();
    }
    rest(&mut simulation);
    simulation
}

/// Runs until the state is final. The next plan is then empty, also after a restart.
fn rest(simulation: &mut Simulation) {
    assert!(simulation.settle(SignedDuration::from_mins(10)), "the cluster does not settle");
    let actions = simulation.actions();
    simulation.restart();
    assert!(simulation.settle(SignedDuration::from_mins(10)));
    // A restart requests the catalogs again, which is not a write.
    let asked = simulation.api().list("operators.coreos.com", "CatalogSource", None).count();
    assert!(simulation.actions() - actions <= asked, "the next plan is not empty");
}

fn target(kind: &str, name: &str) -> ObjectRef {
    let gvk = Gvk::new("operators.coreos.com", "v1alpha1", kind);
    ObjectRef { gvk, namespace: "garden".to_owned(), name: name.to_owned() }
}

fn of_kind<'s>(simulation: &'s Simulation, kind: &str) -> Vec<&'s Value> {
    simulation.api().list("operators.coreos.com", kind, Some("garden")).collect()
}

/// `name phase` of CSVs, `phase: CSVs` of InstallPlans by generation, `name state installedCSV conditions` of Subscriptions.
fn story(simulation: &Simulation) -> String {
    let csv = |o: &&Value| format!("{} {}", object::name(o), object::text(o, &["status", "phase"]));
    let plan = |o: &&Value| {
        let names = object::list(o, &["spec", "clusterServiceVersionNames"]).iter().filter_map(Value::as_str);
        format!("{}: {}", object::text(o, &["status", "phase"]), names.collect::<Vec<_>>().join(" "))
    };
    let subscription = |o: &&Value| {
        let status = |key| object::text(o, &["status", key]);
        let said = object::list(o, &["status", "conditions"]).iter().filter(|c| c["status"] == "True");
        let said: Vec<&str> = said.map(|c| object::text(c, &["type"])).collect();
        format!("{} {} {} {}", object::name(o), status("state"), status("installedCSV"), said.join(" "))
    };
    let mut plans = of_kind(simulation, "InstallPlan");
    plans.sort_by_key(|p| object::at(p, &["spec", "generation"]).as_i64());
    let mut lines: Vec<String> = of_kind(simulation, "ClusterServiceVersion").iter().map(csv).collect();
    lines.extend(plans.iter().map(plan));
    lines.extend(of_kind(simulation, "Subscription").iter().map(subscription));
    lines.iter().map(|l| l.trim()).collect::<Vec<_>>().join("; ")
}

fn approve(simulation: &mut Simulation) {
    let waiting = of_kind(simulation, "InstallPlan").into_iter().find(|p| p["spec"]["approved"] == false).unwrap();
    let target = target("InstallPlan", object::name(waiting));
    simulation.patch(&target, Patch::Merge(json!({ "spec": { "approved": true } })), None).unwrap();
}

#[test]
fn a_chain_is_walked_to_its_head() {
    let mut simulation = cluster(chain());
    simulation.apply(subscription("rose", "Automatic", "rose.v1.0.0")).unwrap();
    rest(&mut simulation);
    assert_eq!(
        story(&simulation),
        "rose.v2.0.0 Succeeded; Complete: rose.v1.0.0; Complete: rose.v1.1.0; Complete: rose.v2.0.0; \
         rose AtLatestKnown rose.v2.0.0"
    );
}

#[test]
fn manual_approval_is_required_for_every_hop() {
    let mut simulation = cluster(chain());
    simulation.apply(subscription("rose", "Manual", "rose.v1.0.0")).unwrap();
    rest(&mut simulation);
    assert_eq!(story(&simulation), "RequiresApproval: rose.v1.0.0; rose UpgradePending  InstallPlanPending");
    approve(&mut simulation);
    rest(&mut simulation);
    assert_eq!(
        story(&simulation),
        "rose.v1.0.0 Succeeded; Complete: rose.v1.0.0; RequiresApproval: rose.v1.1.0; \
         rose UpgradePending rose.v1.0.0 InstallPlanPending"
    );
}

#[test]
fn a_dependency_gets_a_subscription_of_its_own() {
    let mut simulation = cluster(catalog(vec![bundle("rose", "1.0.0", "", "Pot"), bundle("pot", "1.0.0", "", "")]));
    simulation.apply(subscription("rose", "Automatic", "")).unwrap();
    rest(&mut simulation);
    assert_eq!(
        story(&simulation),
        "pot.v1.0.0 Succeeded; rose.v1.0.0 Succeeded; Complete: pot.v1.0.0 rose.v1.0.0; \
         pot-stable-main-olm AtLatestKnown pot.v1.0.0; rose AtLatestKnown rose.v1.0.0"
    );
}

#[test]
fn a_failed_resolution_is_reported_and_cleared() {
    let mut simulation = cluster(chain());
    simulation.apply(subscription("rose", "Automatic", "rose.v9.0.0")).unwrap();
    rest(&mut simulation);
    assert_eq!(story(&simulation), "rose   ResolutionFailed");
    let events: Vec<&Value> =
        simulation.api().list("", "Event", None).filter(|e| e["reason"] == "ResolutionFailed").collect();
    assert_eq!(events.len(), 1, "{events:?}");
    let patch = Patch::Merge(json!({ "spec": { "startingCSV": null } }));
    simulation.patch(&target("Subscription", "rose"), patch, None).unwrap();
    rest(&mut simulation);
    assert_eq!(story(&simulation), "rose.v2.0.0 Succeeded; Complete: rose.v2.0.0; rose AtLatestKnown rose.v2.0.0");
}

#[test]
fn a_lost_csv_comes_back_when_its_plan_is_deleted() {
    let mut simulation = cluster(chain());
    simulation.apply(subscription("rose", "Automatic", "")).unwrap();
    rest(&mut simulation);
    simulation.delete(&target("ClusterServiceVersion", "rose.v2.0.0")).unwrap();
    rest(&mut simulation);
    assert_eq!(story(&simulation), "Complete: rose.v2.0.0; rose UpgradePending rose.v2.0.0");
    let plan = object::name(of_kind(&simulation, "InstallPlan")[0]).to_owned();
    simulation.delete(&target("InstallPlan", &plan)).unwrap();
    rest(&mut simulation);
    assert_eq!(story(&simulation), "rose.v2.0.0 Succeeded; Complete: rose.v2.0.0; rose AtLatestKnown rose.v2.0.0");
}

#[test]
fn five_install_plans_are_kept() {
    let mut bundles = vec![bundle("rose", "1.0.0", "", "")];
    bundles.extend((1..8).map(|n| bundle("rose", &format!("1.{n}.0"), &format!("rose.v1.{}.0", n - 1), "")));
    let mut simulation = cluster(catalog(bundles));
    simulation.apply(subscription("rose", "Automatic", "rose.v1.0.0")).unwrap();
    rest(&mut simulation);
    assert_eq!(of_kind(&simulation, "InstallPlan").len(), 5);
    assert!(story(&simulation).starts_with("rose.v1.7.0 Succeeded; Complete: rose.v1.3.0;"), "{}", story(&simulation));
}

/// The process is killed after every action; a new one reaches the same state as an undisturbed one.
#[test]
fn a_crash_anywhere_changes_nothing_in_the_end() {
    let mut simulation = cluster(catalog(vec![
        bundle("rose", "1.0.0", "", "Pot"),
        bundle("rose", "2.0.0", "rose.v1.0.0", "Pot"),
        bundle("pot", "1.0.0", "", ""),
    ]));
    simulation.apply(subscription("rose", "Automatic", "rose.v1.0.0")).unwrap();
    simulation.take_happenings();
    let is_ours = |actor: &Actor| matches!(actor, Actor::Controller(key) if matches!(key.controller, Controller::Resolution | Controller::InstallPlan));
    let deadline = simulation.now() + SignedDuration::from_mins(10);
    let mut killed = Vec::new();
    while simulation.execute_partly(1) || simulation.advance(deadline) != Progress::Quiet {
        if simulation.take_happenings().iter().any(|h| is_ours(&h.actor)) {
            killed.push(simulation.clone());
        }
    }
    let undisturbed = story(&simulation);
    assert!(undisturbed.contains("rose AtLatestKnown rose.v2.0.0"), "{undisturbed}");
    assert!(killed.len() > 20, "{}", killed.len());
    for mut simulation in killed {
        let actions = simulation.actions();
        simulation.restart();
        rest(&mut simulation);
        assert_eq!(story(&simulation), undisturbed, "killed after {actions} actions");
    }
}

/// The Subscriptions are written one after another: the second one must not get an InstallPlan of its own.
#[test]
fn a_crash_between_two_subscriptions_of_one_install_plan_makes_no_second_plan() {
    let mut simulation = cluster(chain());
    for name in ["rose", "rose-again"] {
        simulation.apply(subscription(name, "Manual", "rose.v1.0.0")).unwrap();
    }
    let deadline = simulation.now() + SignedDuration::from_mins(1);
    let refers = |simulation: &Simulation| {
        let subscriptions = simulation.api().list("operators.coreos.com", "Subscription", Some("garden"));
        subscriptions.filter(|s| !object::text(s, &["status", "installPlanRef", "name"]).is_empty()).count()
    };
    while refers(&simulation) == 0 {
        if !simulation.execute_partly(1) {
            simulation.advance(deadline);
        }
    }
    assert_eq!(refers(&simulation), 1, "killed between the two");
    simulation.restart();
    rest(&mut simulation);
    assert_eq!(refers(&simulation), 2);
    assert_eq!(simulation.api().list("operators.coreos.com", "InstallPlan", None).count(), 1);
}

/// A World with these objects, and the catalog `olm/main` in that state.
fn world(objects: Vec<Value>, fact: Option<(ConnectionState, Option<Arc<Snapshot>>)>) -> World {
    let mut world = World::new();
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "main", "namespace": "olm", "uid": "u-main" },
        "spec": { "sourceType": "grpc", "address": ADDRESS },
    });
    for object in objects.into_iter().chain([source]) {
        world.apply(object);
    }
    if let Some((state, snapshot)) = fact {
        let failed = state == ConnectionState::TransientFailure && snapshot.is_none();
        let error = failed.then(|| "connection refused".to_owned());
        let target = Target::Address(ADDRESS.to_owned());
        let fact = CatalogFact { snapshot, error, ..CatalogFact::new(target, state, start()) };
        world.learn(FactKey::Catalog("olm".to_owned(), "main".to_owned()), Some(Fact::Catalog(fact)));
    }
    world
}

fn plan_of(world: &World) -> crate::plan::Plan {
    let key = Key::new(Controller::Resolution, "", "garden");
    super::plan(&Settings::default(), &Reader::new(world), &key, start())
}

fn group(name: &str) -> Value {
    testing::operator_group("garden", name, &Value::Null)
}

#[test]
fn nothing_is_installed_before_group_and_catalog_exist() {
    use ConnectionState::{Connecting, Ready, TransientFailure};
    let subscribed = || subscription("rose", "Automatic", "");
    let failed = |plan: &crate::plan::Plan| {
        plan.actions
            .iter()
            .any(|a| matches!(a, Action::UpdateStatus(o) if o.to_string().contains("ErrorPreventedResolution")))
    };
    let creates = |plan: &crate::plan::Plan| plan.actions.iter().filter(|a| a.verb() == Verb::Create).count();
    let plan = plan_of(&world(vec![subscribed()], Some((Ready, Some(chain())))));
    assert_eq!(plan.reasons, [Reason::NoOperatorGroup { namespace: "garden".to_owned() }]);
    assert_eq!(creates(&plan), 0);
    let plan = plan_of(&world(vec![subscribed(), group("a"), group("b")], Some((Ready, Some(chain())))));
    assert!(matches!(plan.reasons[..], [Reason::TooManyOperatorGroups { .. }]), "{:?}", plan.reasons);
    for fact in [None, Some((Connecting, None))] {
        let plan = plan_of(&world(vec![subscribed(), group("a")], fact));
        assert!(matches!(plan.reasons[..], [Reason::CatalogNotReady { .. }]), "{:?}", plan.reasons);
        assert!(!failed(&plan) && creates(&plan) == 0);
    }
    let plan = plan_of(&world(vec![subscribed(), group("a")], Some((TransientFailure, None))));
    assert!(failed(&plan), "{:?}", plan.actions);
    // The last valid content is used.
    let plan = plan_of(&world(vec![subscribed(), group("a")], Some((TransientFailure, Some(chain())))));
    assert_eq!(creates(&plan), 1, "{:?}", plan.reasons);
}

#[test]
fn a_copy_that_lost_its_label_enters_no_resolution() {
    let csv = |name: &str, reason: &str| {
        testing::with_status(
            testing::csv("garden", name, &json!({ "version": "1.0.0" })),
            &json!({ "phase": "Succeeded", "reason": reason }),
        )
    };
    let mut world = World::new();
    world.apply(csv("rose.v1.0.0", "InstallSucceeded"));
    world.apply(csv("tulip.v1.0.0", "Copied"));
    let there = super::NamespaceState::read(&Reader::new(&world), "garden").unwrap();
    assert_eq!(there.installed.iter().map(|i| i.entry.name.as_str()).collect::<Vec<_>>(), ["rose.v1.0.0"]);
}

/// Returns what a plan writes about the health of a Subscription's catalog: whether it is healthy, and whether any is
/// unhealthy.
fn health(before: Option<bool>, fact: Option<CatalogFact>) -> (Value, Value) {
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "main", "namespace": "olm", "uid": "u-main" },
        "spec": { "sourceType": "configmap", "configMap": "main" },
    });
    let mut subscription = subscription("rose", "Automatic", "");
    if let Some(healthy) = before {
        let entry = json!({ "catalogSourceRef": { "uid": "u-main" }, "healthy": healthy, "lastUpdated": "2026-01-01T00:00:00Z" });
        subscription["status"] = json!({ "catalogHealth": [entry] });
    }
    let mut world = World::new();
    for object in [source, subscription, group("garden")] {
        world.apply(object);
    }
    if let Some(fact) = fact {
        world.learn(FactKey::Catalog("olm".to_owned(), "main".to_owned()), Some(Fact::Catalog(fact)));
    }
    let plan = plan_of(&world);
    let written = plan.actions.iter().find_map(|a| match a {
        Action::UpdateStatus(o) if object::text(o, &["kind"]) == "Subscription" => Some(o["status"].clone()),
        _ => None,
    });
    let status = written.unwrap();
    let conditions = object::list(&status, &["conditions"]);
    let unhealthy = conditions.iter().find(|c| c["type"] == "CatalogSourcesUnhealthy").unwrap();
    (status["catalogHealth"][0]["healthy"].clone(), unhealthy["status"].clone())
}

#[test]
fn a_catalog_that_is_not_read_yet_is_as_healthy_as_it_was() {
    let target = || Target::ConfigMap("main".to_owned());
    let reading = || CatalogFact::new(target(), ConnectionState::Connecting, start());
    let failed = || CatalogFact { error: Some("configmap \"main\" not found".to_owned()), ..reading() };
    for fact in [None, Some(reading())] {
        assert_eq!(health(Some(true), fact.clone()), (json!(true), json!("False")));
        assert_eq!(health(Some(false), fact.clone()), (json!(false), json!("True")));
        assert_eq!(health(None, fact), (json!(false), json!("True")), "a new catalog is not healthy");
    }
    assert_eq!(health(Some(true), Some(failed())), (json!(false), json!("True")));
}
