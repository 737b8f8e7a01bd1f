//! CatalogSources, one plan at a time.

mod connections;
mod drift;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::catalog_source::Target;
use crate::api::object;
use crate::catalog::Snapshot;
use crate::plan::{Action, Controller, Key, Plan, Question, Reason};
use crate::settings::{CatalogPods, Settings};
use crate::world::{CatalogFact, ConnectionState, Fact, FactKey, Reader, World};

const ADDRESS: &str = "registry.example.com:50051";

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn source(spec: Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "main", "namespace": "olm", "uid": "u" }, "spec": spec,
    })
}

fn grpc(address: &str) -> Value {
    source(json!({ "sourceType": "grpc", "address": address }))
}

fn fact(address: &str, state: ConnectionState) -> CatalogFact {
    let snapshot = (state == ConnectionState::Ready).then(|| Arc::new(Snapshot::default()));
    let target = if address.is_empty() { Target::Directory } else { Target::Address(address.to_owned()) };
    CatalogFact { snapshot, ..CatalogFact::new(target, state, now()) }
}

fn plan(source: Option<&Value>, fact: Option<CatalogFact>) -> Plan {
    let mut world = World::new();
    if let Some(source) = source {
        world.apply(source.clone());
    }
    if let Some(fact) = fact {
        world.learn(FactKey::Catalog("olm".to_owned(), "main".to_owned()), Some(Fact::Catalog(fact)));
    }
    super::plan(&Settings::default(), &Reader::new(&world), &Key::new(Controller::CatalogSource, "olm", "main"), now())
}

fn connect(address: &str) -> Action {
    let target = Target::Address(address.to_owned());
    Action::Ask(Question::Connect { namespace: "olm".to_owned(), name: "main".to_owned(), target })
}

fn disconnect() -> Action {
    Action::Ask(Question::Disconnect { namespace: "olm".to_owned(), name: "main".to_owned() })
}

#[test]
fn an_address_is_connected_to_and_its_state_reported() {
    use ConnectionState::{Ready, TransientFailure};
    let grpc = grpc(ADDRESS);
    assert_eq!(plan(Some(&grpc), None).actions, [connect(ADDRESS)]);
    let reported = plan(Some(&grpc), Some(fact(ADDRESS, Ready)));
    let [Action::UpdateStatus(ready)] = &reported.actions[..] else { panic!("{reported:?}") };
    assert_eq!(
        ready["status"],
        json!({
            "registryService": { "protocol": "grpc", "createdAt": "2026-11-21T12:00:00Z" },
            "connectionState": { "address": ADDRESS, "lastObservedState": "READY", "lastConnect": "2026-11-21T12:00:00Z" },
        })
    );
    assert_eq!(plan(Some(ready), Some(fact(ADDRESS, Ready))), Plan::nothing());
    let lost = plan(Some(ready), Some(fact(ADDRESS, TransientFailure)));
    let [Action::UpdateStatus(lost_source)] = &lost.actions[..] else { panic!("{lost:?}") };
    assert_eq!(object::text(lost_source, &["status", "connectionState", "lastObservedState"]), "TRANSIENT_FAILURE");
    assert!(matches!(lost.reasons[..], [Reason::CatalogNotReady { .. }]));
    // Another address in the spec: the state of the old one is ignored.
    assert_eq!(plan(Some(&grpc), Some(fact("elsewhere:1", Ready))).actions, [connect(ADDRESS)]);
}

#[test]
fn the_status_stays_until_a_new_connection_has_an_outcome() {
    use ConnectionState::{Connecting, Idle, Ready, TransientFailure};
    let reported = plan(Some(&grpc(ADDRESS)), Some(fact(ADDRESS, Ready)));
    let [Action::UpdateStatus(ready)] = &reported.actions[..] else { panic!("{reported:?}") };
    let later = |state| CatalogFact { since: now() + SignedDuration::from_hours(1), ..fact(ADDRESS, state) };
    for state in [Idle, Connecting, Ready] {
        assert_eq!(plan(Some(ready), Some(later(state))).actions, [], "{state:?}");
    }
    let refused = CatalogFact { error: Some("connection refused".to_owned()), ..later(TransientFailure) };
    assert_eq!(plan(Some(ready), Some(refused.clone())).actions.len(), 1);
    // Repeated failures are reported once.
    let reported = plan(Some(ready), Some(refused.clone()));
    let [Action::UpdateStatus(failed)] = &reported.actions[..] else { panic!("{reported:?}") };
    assert_eq!(plan(Some(failed), Some(refused)).actions, []);
    // A lost connection is reported.
    let lost = CatalogFact { snapshot: Some(Arc::new(Snapshot::default())), ..later(Idle) };
    assert_eq!(plan(Some(ready), Some(lost)).actions.len(), 1);
    // Without a previous status, the state is reported.
    assert_eq!(plan(Some(&grpc(ADDRESS)), Some(later(Connecting))).actions.len(), 1);
}

#[test]
fn a_deleted_catalog_is_disconnected_but_not_a_local_directory() {
    assert_eq!(plan(None, Some(fact(ADDRESS, ConnectionState::Ready))).actions, [disconnect()]);
    assert_eq!(plan(None, Some(fact("", ConnectionState::Ready))), Plan::nothing());
    assert_eq!(plan(None, None), Plan::nothing());
    // A directory replaces what its CatalogSource specifies.
    let reported = plan(Some(&grpc(ADDRESS)), Some(fact("", ConnectionState::Ready)));
    assert!(matches!(reported.actions[..], [Action::UpdateStatus(_)]), "{reported:?}");
}

#[test]
fn invalid_specs_are_reported_once() {
    for (spec, message) in [
        (json!({ "sourceType": "configmap" }), "configmap name unset: must be set for sourcetype: configmap"),
        (json!({ "sourceType": "internal" }), "configmap name unset: must be set for sourcetype: internal"),
        (json!({ "sourceType": "grpc" }), "image and address unset: at least one must be set for sourcetype: grpc"),
        (json!({ "sourceType": "carrier-pigeon" }), "unknown sourcetype: carrier-pigeon"),
    ] {
        let reported = plan(Some(&source(spec)), None);
        let [Action::UpdateStatus(invalid)] = &reported.actions[..] else { panic!("{reported:?}") };
        assert_eq!(invalid["status"], json!({ "reason": "SpecInvalidError", "message": message }));
        let again = plan(Some(invalid), None);
        assert!(again.actions.is_empty(), "{again:?}");
        assert!(matches!(again.reasons[..], [Reason::Invalid { .. }]));
        // Once fixed, the error is removed.
        let mut fixed = invalid.clone();
        fixed["spec"] = json!({ "sourceType": "grpc", "address": ADDRESS });
        let reported = plan(Some(&fixed), Some(fact(ADDRESS, ConnectionState::Ready)));
        let [Action::UpdateStatus(valid)] = &reported.actions[..] else { panic!("{reported:?}") };
        assert!(valid["status"].get("reason").is_none() && valid["status"].get("message").is_none());
    }
}

fn asked(plan: &Plan) -> Option<&Target> {
    plan.actions.iter().find_map(|action| match action {
        Action::Ask(Question::Connect { target, .. }) => Some(target),
        _ => None,
    })
}

fn status(plan: &Plan) -> Value {
    let written = plan.actions.iter().find_map(|action| match action {
        Action::UpdateStatus(object) => Some(object["status"].clone()),
        _ => None,
    });
    written.unwrap_or_else(|| panic!("no status in {plan:?}"))
}

#[test]
fn images_and_config_maps_are_read_without_an_object() {
    let image =
        source(json!({ "sourceType": "grpc", "image": "registry.example.com/catalog:1", "secrets": ["pull", ""] }));
    let target = Target::Image {
        reference: "registry.example.com/catalog:1".to_owned(),
        catalog_dir: None,
        secrets: vec!["pull".to_owned()],
    };
    let first = plan(Some(&image), None);
    assert_eq!((first.actions.len(), asked(&first)), (1, Some(&target)));
    let ready = CatalogFact {
        snapshot: Some(Arc::new(Snapshot::default())),
        ..CatalogFact::new(target.clone(), ConnectionState::Ready, now())
    };
    assert_eq!(
        status(&plan(Some(&image), Some(ready.clone()))),
        json!({ "connectionState": {
            "address": "registry.example.com/catalog:1", "lastObservedState": "READY", "lastConnect": "2026-11-21T12:00:00Z",
        } })
    );
    // A failed pull is reported; the content that was read stays in use.
    let lost = CatalogFact { error: Some("no answer".to_owned()), state: ConnectionState::TransientFailure, ..ready };
    let reported = plan(Some(&image), Some(lost));
    assert_eq!(status(&reported)["reason"], "RegistryServerError");
    assert_eq!(status(&reported)["message"], "couldn't connect to registry - no answer");
    assert!(
        reported.reasons[0].to_string().ends_with("the content that was read before is still used"),
        "{:?}",
        reported.reasons
    );
    // Another tag is another target.
    let mut other = image.clone();
    other["spec"]["image"] = "registry.example.com/catalog:2".into();
    let fact = CatalogFact::new(target, ConnectionState::Ready, now());
    assert!(asked(&plan(Some(&other), Some(fact))).is_some());

    let in_map = source(json!({ "sourceType": "internal", "configMap": "bundles" }));
    let target = Target::ConfigMap("bundles".to_owned());
    assert_eq!(asked(&plan(Some(&in_map), None)), Some(&target));
    let fact = CatalogFact {
        snapshot: Some(Arc::new(Snapshot::default())),
        config_map: Some(("u-map".to_owned(), "7".to_owned())),
        ..CatalogFact::new(target.clone(), ConnectionState::Ready, now())
    };
    let reference = status(&plan(Some(&in_map), Some(fact)))["configMapReference"].clone();
    assert_eq!(
        (&reference["uid"], &reference["resourceVersion"], &reference["name"]),
        (&"u-map".into(), &"7".into(), &"bundles".into())
    );
    let missing = CatalogFact {
        error: Some("configmaps \"bundles\" not found".to_owned()),
        ..CatalogFact::new(target, ConnectionState::TransientFailure, now())
    };
    let reported = status(&plan(Some(&in_map), Some(missing)));
    assert_eq!(reported["reason"], "ConfigMapError");
    assert_eq!(reported["message"], "failed to get catalog config map bundles: configmaps \"bundles\" not found");
}

/// The annotation takes precedence over the address, which other controllers connect to.
#[test]
fn config_maps_that_the_annotation_names_are_read() {
    let annotated = |names: &str| {
        let mut source = grpc("main.olm.svc:50051");
        source["metadata"]["annotations"] = json!({ "kubectl-olm/catalog-config-maps": names });
        source
    };
    let target = Target::ConfigMaps(vec!["a".to_owned(), "b.c".to_owned()]);
    assert_eq!(asked(&plan(Some(&annotated("a, b.c")), None)), Some(&target));
    let ready = CatalogFact {
        snapshot: Some(Arc::new(Snapshot::default())),
        ..CatalogFact::new(target.clone(), ConnectionState::Ready, now())
    };
    let reported = status(&plan(Some(&annotated("a,b.c")), Some(ready.clone())));
    assert_eq!(reported["connectionState"]["address"], "configmaps/a,b.c");
    assert_eq!(reported["registryService"]["protocol"], "grpc");
    // Other names are another target.
    assert!(asked(&plan(Some(&annotated("a,d")), Some(ready))).is_some());
    let missing = CatalogFact {
        error: Some("cannot read configmap olm/a: it does not exist".to_owned()),
        ..CatalogFact::new(target, ConnectionState::TransientFailure, now())
    };
    assert_eq!(status(&plan(Some(&annotated("a,b.c")), Some(missing)))["reason"], "ConfigMapError");
    for (names, words) in [
        ("", "\"\" is not the name of a ConfigMap"),
        ("a,../secrets/b", "\"../secrets/b\" is not the name of a ConfigMap"),
        (&vec!["a"; 33].join(","), "names more than 32 ConfigMaps"),
    ] {
        let reported = status(&plan(Some(&annotated(names)), None));
        assert_eq!(reported["reason"], "SpecInvalidError");
        assert!(reported["message"].as_str().unwrap().contains(words), "{reported}");
    }
}

#[test]
fn a_tag_is_polled_again_after_its_interval() {
    let polled = |interval: Value, last: &str| {
        let mut polled = source(json!({
            "sourceType": "grpc", "image": "i:1", "updateStrategy": { "registryPoll": interval },
        }));
        polled["status"] = json!({ "latestImageRegistryPoll": last, "connectionState": {
            "address": "i:1", "lastObservedState": "READY", "lastConnect": "2026-11-21T12:00:00Z" } });
        polled
    };
    let target = Target::Image { reference: "i:1".to_owned(), catalog_dir: None, secrets: Vec::new() };
    let fact = CatalogFact {
        snapshot: Some(Arc::new(Snapshot::default())),
        ..CatalogFact::new(target, ConnectionState::Ready, now())
    };
    let due = plan(Some(&polled(json!({ "interval": "10m" }), "2026-11-21T11:50:00Z")), Some(fact.clone()));
    let [Action::UpdateStatus(written), Action::Ask(Question::Refresh { .. })] = &due.actions[..] else {
        panic!("{due:?}")
    };
    assert_eq!(object::text(written, &["status", "latestImageRegistryPoll"]), "2026-11-21T12:00:00Z");
    // Until the next time nothing else is done.
    let waits = plan(Some(written), Some(fact.clone()));
    assert!(waits.actions.is_empty(), "{waits:?}");
    assert_eq!(waits.again, Some("2026-11-21T12:10:00Z".parse().unwrap()));
    let wrong = status(&plan(Some(&polled(json!({ "interval": "soon" }), "2026-11-21T11:59:00Z")), Some(fact.clone())));
    assert_eq!(wrong["reason"], "InvalidIntervalError");
    let message = wrong["message"].as_str().unwrap();
    assert!(
        message.ends_with("Using the default value of 15m0s instead. Error: time: invalid duration \"soon\""),
        "{message}"
    );
    let empty = status(&plan(Some(&polled(json!({}), "2026-11-21T11:59:00Z")), Some(fact)));
    assert!(empty["message"].as_str().unwrap().starts_with("empty polling interval"));
}

#[test]
fn a_template_is_filled_with_the_clusters_version() {
    let mut templated = grpc("");
    templated["spec"]["image"] = "registry.example.com/catalog:old".into();
    templated["metadata"]["annotations"] = json!({ "olm.catalogImageTemplate": "registry.example.com/catalog:v{kube_major_version}.{kube_minor_version}" });
    let with = |source: &Value, version: &str| {
        let mut world = World::new();
        world.apply(source.clone());
        world.learn(FactKey::ServerVersion, Some(Fact::ServerVersion(version.to_owned())));
        let target = Target::Image {
            reference: "registry.example.com/catalog:v1.36".to_owned(),
            catalog_dir: None,
            secrets: Vec::new(),
        };
        let fact = Fact::Catalog(CatalogFact::new(target, ConnectionState::Ready, now()));
        world.learn(FactKey::Catalog("olm".to_owned(), "main".to_owned()), Some(fact));
        let key = Key::new(Controller::CatalogSource, "olm", "main");
        super::plan(&Settings::default(), &Reader::new(&world), &key, now())
    };
    let changed = with(&templated, "v1.36.3");
    let [Action::Update(changed)] = &changed.actions[..] else { panic!("{changed:?}") };
    assert_eq!(changed["spec"]["image"], "registry.example.com/catalog:v1.36");
    let conditions = status(&with(changed, "v1.36.3"))["conditions"].clone();
    assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&"TemplatesHaveResolved".into(), &"True".into()));
    assert_eq!(conditions[1]["message"], "registry.example.com/catalog:v1.36");
    let unknown = status(&with(changed, ""))["conditions"].clone();
    assert_eq!(
        unknown[0]["message"],
        "cannot construct catalog image reference, because variable(s) \"kube_major_version\", \"kube_minor_version\" could not be resolved"
    );
    // Without the annotation nothing is reported.
    let mut plain = changed.clone();
    plain["status"] = json!({ "conditions": conditions });
    plain["metadata"]["annotations"] = Value::Null;
    assert!(status(&with(&plain, "v1.36.3")).get("conditions").is_none());
}

/// The CatalogSource of the recording of OLM's own objects.
fn pictures() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "pictures", "namespace": "olm", "uid": "u", "annotations": { "note": "hello" } },
        "spec": {
            "sourceType": "grpc", "image": "registry.example.com/catalog:latest", "secrets": ["pull"],
            "grpcPodConfig": {
                "securityContextConfig": "restricted", "memoryTarget": "100Mi",
                "nodeSelector": { "kubernetes.io/os": "linux" }, "priorityClassName": "system-cluster-critical",
            },
        },
    })
}

/// The state of its Service where the Service's name cannot be resolved.
fn unreachable() -> CatalogFact {
    fact("pictures.olm.svc:50051", ConnectionState::TransientFailure)
}

/// Plans and executes against a World until no action is left; returns the objects by kind and name.
fn with_pods(source: Value, fact: Option<CatalogFact>) -> std::collections::BTreeMap<String, Value> {
    let settings = Settings { catalog_pods: Some(CatalogPods::default()), ..Settings::default() };
    let (name, mut world, mut made) =
        (object::name(&source).to_owned(), World::new(), std::collections::BTreeMap::new());
    world.apply(source);
    if let Some(fact) = fact {
        world.learn(FactKey::Catalog("olm".to_owned(), name.clone()), Some(Fact::Catalog(fact)));
    }
    for _ in 0..10 {
        let key = Key::new(Controller::CatalogSource, "olm", &name);
        let plan = super::plan(&settings, &Reader::new(&world), &key, now());
        let writes: Vec<Action> = plan.actions.into_iter().filter(Action::writes).collect();
        if writes.is_empty() {
            return made;
        }
        for action in writes {
            match action {
                Action::Create(mut object) | Action::UpdateStatus(mut object) => {
                    if object::name(&object).is_empty() {
                        object["metadata"]["name"] = format!("{name}-x").into();
                    }
                    let id = format!("{}/{}", object::text(&object, &["kind"]), object::name(&object));
                    object["metadata"]["uid"] = id.as_str().into();
                    made.insert(id, object.clone());
                    world.apply(object);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    panic!("the plan does not become empty: {made:?}")
}

#[test]
fn pods_and_their_objects_equal_olms() {
    let made = with_pods(pictures(), Some(unreachable()));
    let names: Vec<&str> = made.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "CatalogSource/pictures",
            "NetworkPolicy/pictures-grpc-server",
            "NetworkPolicy/pictures-unpack-bundles",
            "Pod/pictures-x",
            "Service/pictures",
            "ServiceAccount/pictures",
        ]
    );
    // The hashes are those of OLM.
    let label = |id: &str, key: &str| object::label(&made[id], key).unwrap_or_default().to_owned();
    assert_eq!(label("Service/pictures", "olm.service-spec-hash"), "bKPyWN4uCmpgKY62ttxyzo72XGkbAjSj9rUGI7");
    assert_eq!(label("Pod/pictures-x", "olm.pod-spec-hash"), "2lWx3YxPecam6Pm0zh7Jdh1354KlV1GP80wAtf");
    let status = &made["CatalogSource/pictures"]["status"]["registryService"];
    assert_eq!((&status["serviceName"], &status["port"]), (&"pictures".into(), &"50051".into()));
}

#[test]
fn a_config_map_gets_its_server_when_it_has_been_read() {
    let mut source = source(json!({ "sourceType": "configmap", "configMap": "bundles" }));
    source["metadata"]["name"] = "a.map".into();
    let fact = CatalogFact {
        snapshot: Some(Arc::new(Snapshot::default())),
        config_map: Some(("u-map".to_owned(), "7".to_owned())),
        ..CatalogFact::new(Target::ConfigMap("bundles".to_owned()), ConnectionState::Ready, now())
    };
    let made = with_pods(source.clone(), Some(fact));
    for id in [
        "Service/a.map",
        "ServiceAccount/a.map-configmap-server",
        "Role/a.map-configmap-reader",
        "RoleBinding/a.map-server-configmap-reader",
        "NetworkPolicy/a.map-grpc-server",
        "Pod/a.map-x",
    ] {
        assert!(made.contains_key(id), "no {id} in {:?}", made.keys());
    }
    let pod = &made["Pod/a.map-x"];
    assert_eq!(object::label(pod, "olm.configMapResourceVersion"), Some("7"));
    assert_eq!(pod["spec"]["containers"][0]["command"], json!(["configmap-server", "-c", "bundles", "-n", "olm"]));
    assert_eq!(with_pods(source, None).len(), 0, "its state is unknown");
}

#[test]
fn drift_of_a_catalogs_objects_is_reverted() {
    let settings = Settings { catalog_pods: Some(CatalogPods::default()), ..Settings::default() };
    let made = with_pods(pictures(), Some(unreachable()));
    let key = Key::new(Controller::CatalogSource, "olm", "pictures");
    let after = |change: &dyn Fn(&mut std::collections::BTreeMap<String, Value>)| {
        let (mut objects, mut world) = (made.clone(), World::new());
        change(&mut objects);
        for object in objects.into_values() {
            drop(world.apply(object));
        }
        world.learn(FactKey::Catalog("olm".to_owned(), "pictures".to_owned()), Some(Fact::Catalog(unreachable())));
        let plan = super::plan(&settings, &Reader::new(&world), &key, now());
        let writes = plan.actions.iter().filter(|a| a.writes() && a.verb().as_str() != "update status");
        writes.map(|a| format!("{} {}", a.verb().as_str(), a.target().gvk.kind)).collect::<Vec<_>>()
    };
    assert_eq!(after(&|_| {}), [""; 0]);
    assert_eq!(after(&|o| drop(o.remove("Pod/pictures-x"))), ["create Pod"]);
    assert_eq!(
        after(&|o| o.get_mut("CatalogSource/pictures").unwrap()["spec"]["image"] = "other:1".into()),
        ["create Pod", "delete Pod"]
    );
    assert_eq!(
        after(&|o| o.get_mut("Service/pictures").unwrap()["metadata"]["labels"]["olm.service-spec-hash"] = "x".into()),
        ["delete Service", "create Service"]
    );
    assert_eq!(
        after(&|o| o.get_mut("NetworkPolicy/pictures-grpc-server").unwrap()["spec"]["ingress"] = json!([])),
        ["delete NetworkPolicy", "create NetworkPolicy"]
    );
    let dead = json!({ "conditions": [{ "type": "DisruptionTarget", "status": "True" }] });
    assert_eq!(after(&|o| o.get_mut("Pod/pictures-x").unwrap()["status"] = dead.clone()), ["create Pod", "delete Pod"]);
}

/// Returns the actions on pods when a poll is due: `DELETE name`, `CREATE of TAKES-OVER`, `LABEL name`.
fn looks(pods: &[Value]) -> Vec<String> {
    let settings = Settings { catalog_pods: Some(CatalogPods::default()), ..Settings::default() };
    let mut source = pictures();
    source["metadata"]["creationTimestamp"] = "2026-11-21T11:00:00Z".into();
    source["spec"]["updateStrategy"] = json!({ "registryPoll": { "interval": "30m" } });
    let made = with_pods(pictures(), Some(unreachable()));
    let mut world = World::new();
    for object in made.values().filter(|o| !matches!(object::text(o, &["kind"]), "CatalogSource" | "Pod")) {
        world.apply(object.clone());
    }
    source["status"] = made["CatalogSource/pictures"]["status"].clone();
    world.apply(source);
    world.learn(FactKey::Catalog("olm".to_owned(), "pictures".to_owned()), Some(Fact::Catalog(unreachable())));
    for (n, given) in pods.iter().enumerate() {
        let mut pod = made["Pod/pictures-x"].clone();
        pod["metadata"]["creationTimestamp"] = object::time(now()).replace("12:00:00", &format!("12:00:{n:02}")).into();
        json_patch::merge(&mut pod, given);
        pod["metadata"]["uid"] = pod["metadata"]["name"].clone();
        world.apply(pod);
    }
    let key = Key::new(Controller::CatalogSource, "olm", "pictures");
    let plan = super::plan(&settings, &Reader::new(&world), &key, now());
    let label = |pod: &Value, label| object::label(pod, label).unwrap_or_default().to_owned();
    let done = plan.actions.iter().filter_map(|action| match action {
        Action::Create(pod) => {
            let takes_over = label(pod, "catalogsource.operators.coreos.com/update");
            Some(format!("CREATE {:?} of {takes_over}", label(pod, "olm.catalogSource")))
        }
        Action::Patch { target, patch, .. } => Some(format!("LABEL {} {}", target.name, patch["metadata"]["labels"])),
        Action::Delete { target, .. } => Some(format!("DELETE {}", target.name)),
        _ => None,
    });
    done.collect()
}

#[test]
fn a_pod_of_a_newer_image_takes_over() {
    let pod = |name: &str, image: &str, ready: &str| {
        json!({ "metadata": { "name": name }, "status": {
            "phase": "Running", "containerStatuses": [{ "imageID": image }], "conditions": [{ "type": "Ready", "status": ready }],
        } })
    };
    let new = |image: &str, ready: &str| {
        let mut pod = pod("new", image, ready);
        let labels = json!({ "olm.catalogSource": "", "catalogsource.operators.coreos.com/update": "pictures" });
        pod["metadata"]["labels"] = labels;
        pod
    };
    let old = pod("old", "sha256:1", "True");
    assert_eq!(looks(std::slice::from_ref(&old)), ["CREATE \"\" of pictures"]);
    assert_eq!(looks(&[old.clone(), new("", "False")]), [""; 0], "the new pod is not ready");
    assert_eq!(looks(&[old.clone(), new("sha256:1", "True")]), ["DELETE new"], "the image is the same");
    let taken = r#"LABEL new {"catalogsource.operators.coreos.com/update":"","olm.catalogSource":"pictures"}"#;
    assert_eq!(looks(&[old.clone(), new("sha256:2", "True")]), [taken, "DELETE old"]);
    let mut crashing = new("", "False");
    crashing["status"]["containerStatuses"][0]["state"] = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    assert_eq!(looks(&[old.clone(), crashing]), ["DELETE new"]);
    let mut taken_over = new("sha256:2", "True");
    taken_over["metadata"]["labels"] = json!({ "catalogsource.operators.coreos.com/update": "" });
    assert_eq!(looks(&[old, taken_over])[..1], ["DELETE old"], "of two serving pods the younger stays");
}
