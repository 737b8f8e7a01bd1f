//! Tests of plans whose steps were written by users or other programs, without some of the fields that a resolution sets.

use super::*;
use crate::plan::Account;
use crate::testing;

/// Returns a step without a ClusterServiceVersion and without a group.
fn bare(version: &str, kind: &str, manifest: &Value) -> Value {
    json!({
        "resolving": "", "status": "Unknown",
        "resource": {
            "name": object::name(manifest), "version": version, "kind": kind, "manifest": manifest.to_string(),
        },
    })
}

fn installing(steps: &[Value]) -> Value {
    let mut plan = install_plan("Installing", steps);
    plan["spec"] = json!({ "approval": "Automatic", "approved": true, "clusterServiceVersionNames": [] });
    plan
}

fn named_csv(name: &str, uid: &str) -> Value {
    let mut csv = csv();
    csv["metadata"]["name"] = name.into();
    csv["metadata"]["uid"] = uid.into();
    csv
}

/// Returns an owner as other programs write it before the plan is executed.
fn owner(name: &str) -> Value {
    json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": name, "uid": "" })
}

fn with_uid(mut owner: Value, uid: &str) -> Value {
    owner["uid"] = uid.into();
    owner
}

fn first_action(world: &World) -> Action {
    plan(world, at(0)).actions.into_iter().next().unwrap()
}

#[test]
fn a_step_without_a_csv_creates_an_object_without_an_owner() {
    let manifest = |kind: &str| json!({ "kind": kind, "metadata": { "name": "rose", "creationTimestamp": null } });
    for (version, kind, api_version) in [
        ("v1", "ConfigMap", "v1"),
        ("v1", "BundleSecret", "v1"),
        ("v1", "Service", "v1"),
        ("v1", "ServiceAccount", "v1"),
        ("v1", "Role", RBAC),
        ("v1", "RoleBinding", RBAC),
        ("v1", "ClusterRole", RBAC),
        ("v1", "NetworkPolicy", "networking.k8s.io/v1"),
        ("v1", "PriorityClass", "scheduling.k8s.io/v1"),
        ("v1alpha1", "ClusterServiceVersion", "operators.coreos.com/v1alpha1"),
    ] {
        let mut manifest = manifest(kind);
        // OLM reads the group of these kinds only from the manifest.
        if matches!(kind, "NetworkPolicy" | "PriorityClass") {
            manifest["apiVersion"] = api_version.into();
        }
        let world = world(&[installing(&[bare(version, kind, &manifest)])]);
        let Action::Create(made) = first_action(&world) else { panic!("{kind}") };
        assert_eq!(made["apiVersion"], api_version, "{kind}");
        assert_eq!(made["kind"], kind.trim_start_matches("Bundle"), "{kind}");
        assert!(made["metadata"]["ownerReferences"].is_null(), "{made}");
        assert_eq!(made["metadata"]["labels"], json!({ "olm.managed": "true" }), "{kind}");
    }
}

#[test]
fn the_kind_of_the_step_has_precedence_over_the_api_version_of_its_manifest() {
    for api_version in ["v1alpha1", "apiextensions.k8s.io/v1", "binding.operators.coreos.com/v1alpha1"] {
        let manifest =
            json!({ "apiVersion": api_version, "kind": "ClusterServiceVersion", "metadata": { "name": "rose" } });
        let step = step(api_version, "ClusterServiceVersion", "rose", &manifest);
        let Action::Create(made) = first_action(&world(&[installing(&[step])])) else { panic!("{api_version}") };
        assert_eq!(made["apiVersion"], "operators.coreos.com/v1alpha1", "{api_version}");
    }
    // For an optional object both count, because it may be of another group with the same kind.
    let knative = json!({ "apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": { "name": "rose" } });
    let mut optional = step("serving.knative.dev/v1", "Service", "rose", &knative);
    optional["optional"] = true.into();
    assert_eq!(super::super::step::gvk(&optional).api_version(), "serving.knative.dev/v1");
}

#[test]
fn a_service_that_exists_is_updated() {
    let manifest = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "test-service", "creationTimestamp": null },
        "spec": { "type": "ClusterIP", "ports": [{ "port": 12345, "targetPort": 0 }] }, "status": { "loadBalancer": {} },
    });
    let ports = json!([{ "port": 12345, "protocol": "TCP", "targetPort": 12345 }]);
    let spec = json!({ "spec": { "type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": ports } });
    let there = old("v1", "Service", "test-service", &spec);
    let world = world(&[installing(&[bare("v1", "Service", &manifest)]), there]);
    let plan = plan(&world, at(0));
    assert_eq!(told(&plan), ["update Service/test-service", "Complete  [Present]"]);
    assert_eq!(object_of(&plan, Verb::Update, "Service")["spec"]["clusterIP"], "10.0.0.1");
}

#[test]
fn a_service_account_keeps_its_owners_and_gets_the_new_one() {
    let earlier = with_uid(owner("test-csv-old"), "u-old");
    let there = old("v1", "ServiceAccount", "test", &json!({ "metadata": { "ownerReferences": [earlier] } }));
    let manifest = json!({ "metadata": { "name": "test", "ownerReferences": [owner("test-csv-new")] } });
    let steps = [bare("v1", "ServiceAccount", &manifest)];
    let csvs = [named_csv("test-csv-old", "u-old"), named_csv("test-csv-new", "u-new")];
    let plan = plan(&world(&[&[installing(&steps), there][..], &csvs].concat()), at(0));
    assert_eq!(told(&plan), ["update ServiceAccount/test", "Complete  [Present]"]);
    let owners = &object_of(&plan, Verb::Update, "ServiceAccount")["metadata"]["ownerReferences"];
    assert_eq!(owners, &json!([earlier, with_uid(owner("test-csv-new"), "u-new")]));
}

#[test]
fn a_missing_owner_is_retried_until_the_deadline() {
    for (kind, what) in [
        ("ConfigMap", "configmap: test-owned"),
        ("Service", "service: test-owned"),
        ("ServiceAccount", "service account: test-owned"),
        ("BundleSecret", "secret test-owned"),
        ("Role", "role test-owned"),
        ("RoleBinding", "rolebinding test-owned"),
    ] {
        let manifest = json!({ "metadata": { "name": "test-owned", "ownerReferences": [owner("test-owner")] } });
        let mut world = world(&[installing(&[bare("v1", kind, &manifest)])]);
        let missing = "clusterserviceversions.operators.coreos.com \"test-owner\" not found";
        let message = format!("error generating ownerrefs for {what}: {missing}");
        let first = plan(&world, at(0));
        assert_eq!(told(&first), [format!("Installing retrying execution due to error: {message} [Unknown]")]);
        let Some(Action::UpdateStatus(written)) = first.actions.into_iter().next() else { panic!() };
        world.apply(written);
        assert_eq!(told(&plan(&world, at(60))), [format!("Failed {message} [Unknown]")]);
        world.apply(named_csv("test-owner", "u-owner"));
        let Action::Create(made) = first_action(&world) else { panic!("{kind}") };
        let owners = &made["metadata"]["ownerReferences"];
        assert_eq!(owners, &json!([with_uid(owner("test-owner"), "u-owner")]), "{kind}");
    }
}

#[test]
fn a_definition_without_a_csv_is_created_with_own_rights_and_without_annotation() {
    let account = json!({ "kind": "ServiceAccount", "namespace": "garden", "name": "gardener" });
    for (version, api_version) in [("v1", "v1"), ("apiextensions.k8s.io/v1", CRD), ("v1", CRD)] {
        let name = "roses.garden.example.com";
        let mut manifest =
            json!({ "apiVersion": api_version, "kind": "CustomResourceDefinition", "metadata": { "name": name } });
        merge(&mut manifest, &crd_spec(&["v1"]));
        let step = bare(version, "CustomResourceDefinition", &manifest);
        let mut installing = installing(std::slice::from_ref(&step));
        installing["status"]["attenuatedServiceAccountRef"] = account.clone();
        let mut world = world(std::slice::from_ref(&installing));
        let Action::Create(mut made) = first_action(&world) else { panic!("{api_version}") };
        assert_eq!(made["apiVersion"], CRD);
        assert!(made["metadata"]["annotations"].is_null(), "{made}");
        made["metadata"]["creationTimestamp"] = CREATED.into();
        merge(&mut made, &crd_status(&["v1"], true));
        world.apply(made);
        assert_eq!(told(&plan(&world, at(0))), ["Complete  [Created]"]);
        // An existing definition is updated.
        let mut there = old(CRD, "CustomResourceDefinition", name, &crd_status(&["v1"], true));
        merge(&mut there, &json!({ "metadata": { "labels": { "olm.managed": "true" } } }));
        world.apply(there);
        let told_then = told(&plan(&world, at(0)));
        assert_eq!(told_then, [format!("patch CustomResourceDefinition/{name}"), "Complete  [Present]".to_owned()]);
    }
}

#[test]
fn a_plan_with_a_service_account_in_its_status_is_executed_with_its_rights() {
    let steps = [bare("v1", "ConfigMap", &json!({ "metadata": { "name": "rose" } }))];
    let mut installing = installing(&steps);
    installing["status"]["attenuatedServiceAccountRef"] = json!({ "namespace": "garden", "name": "gardener" });
    let gardener = Account { namespace: "garden".into(), name: "gardener".into() };
    assert!(matches!(first_action(&world(&[installing])), Action::As(account, _) if account == gardener));
}

#[test]
fn a_group_without_targets_is_ignored() {
    let group = |name: &str, status: Value| {
        testing::with_status(testing::operator_group("garden", name, &Value::Null), &status)
    };
    let steps = [bare("v1", "ConfigMap", &json!({ "metadata": { "name": "rose" } }))];
    let mut world = world(&[installing(&steps), group("empty", json!({ "lastUpdated": CREATED }))]);
    assert_eq!(first_action(&world).verb(), Verb::Create);
    world.apply(group("second", json!({ "namespaces": [""], "lastUpdated": CREATED })));
    let Action::UpdateStatus(checked) = first_action(&world) else { panic!() };
    let condition = &checked["status"]["conditions"][0];
    assert_eq!(condition["message"], "more than one operator group(s) are managing this namespace count=2");
}

#[test]
fn a_missing_service_account_is_named() {
    let steps = [bare("v1", "ConfigMap", &json!({ "metadata": { "name": "rose" } }))];
    let mut world = world(&[installing(&steps)]);
    world.apply(testing::with_status(
        testing::operator_group("garden", "garden", &json!({ "serviceAccountName": "gardener" })),
        &json!({ "namespaces": ["garden"], "lastUpdated": CREATED }),
    ));
    let Action::UpdateStatus(checked) = first_action(&world) else { panic!() };
    let condition = &checked["status"]["conditions"][0];
    assert_eq!(
        (condition["reason"].as_str(), condition["message"].as_str()),
        (
            Some("InstallCheckFailed"),
            Some("please make sure the service account exists. sa=gardener operatorgroup=garden/garden")
        )
    );
}

#[test]
fn automatic_approval_starts_a_plan_without_a_subscription() {
    let mut waiting = install_plan("RequiresApproval", &[csv_step()]);
    waiting["spec"] =
        json!({ "approval": "Automatic", "approved": false, "clusterServiceVersionNames": ["rose.v2.0.0"] });
    assert_eq!(told(&plan(&world(std::slice::from_ref(&waiting)), at(0))), ["Installing  [Unknown]"]);
    waiting["metadata"]["ownerReferences"] = json!([{ "kind": "Subscription", "name": "rose" }]);
    assert_eq!(told(&plan(&world(&[waiting]), at(0))), [""; 0]);
}

#[test]
fn a_plan_with_only_lookups_completes() {
    let mut installing = installing(&[]);
    installing["status"]["bundleLookups"] = json!([{ "path": "registry.example.com/rose:1", "identifier": "rose" }]);
    assert_eq!(told(&plan(&world(&[installing]), at(0))), ["Complete  []"]);
}
