use serde_json::json;

use super::*;
use crate::api::cluster_service_version::{ClusterServiceVersion, InstallModeType, Phase};
use crate::api::operator_group::{OperatorGroup, UpgradeStrategy};
use crate::api::subscription::{Approval, Subscription};

fn csv() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "rose.v1.0.0", "namespace": "garden", "annotations": null},
        "spec": {
            "displayName": null,
            "bloom": {"from": "a future version"},
            "install": {"strategy": "deployment", "spec": {"deployments": [
                {"name": "rose", "spec": {"replicas": 1, "soil": "sandy", "paused": null}},
            ], "permissions": [{"serviceAccountName": "rose", "rules": [{"verbs": ["get"], "nonResourceURLs": ["/"]}]}]}},
            "installModes": [{"type": "AllNamespaces", "supported": true}, {"type": "Moon", "supported": true}],
            "icon": [{"base64data": "", "mediatype": ""}, null],
        },
        "status": {"phase": "Succeeded", "lastUpdateTime": "2026-01-02T03:04:05Z", "lastTransitionTime": "<time>"},
    })
}

#[test]
fn nothing_is_lost() {
    let resource = Resource::<ClusterServiceVersion>::read(csv()).unwrap();
    assert_eq!(**resource.json(), csv());
    assert_eq!(resource.reference().to_string(), "ClusterServiceVersion/garden/rose.v1.0.0");
    assert_eq!(resource.into_json(), csv());
}

#[test]
fn the_view_reads_what_is_there() {
    let resource = Resource::<ClusterServiceVersion>::read(csv()).unwrap();
    assert_eq!(resource.status.phase, Phase::Succeeded);
    assert!(resource.status.last_update_time.0.is_some());
    assert_eq!(resource.status.last_transition_time.0, None);
    let strategy = &resource.spec.install.spec;
    assert_eq!(strategy.deployments[0].spec.json["soil"], "sandy");
    assert_eq!(strategy.permissions[0].rules[0].non_resource_urls, ["/"]);
    assert_eq!(resource.spec.install_modes[0].type_, InstallModeType::AllNamespaces);
    assert_eq!(resource.spec.install_modes[1].type_.as_str(), "Moon");
}

#[test]
fn what_is_absent_reads_as_empty() {
    let empty = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription"});
    let subscription = Resource::<Subscription>::read(empty).unwrap();
    assert_eq!(subscription.spec.install_plan_approval, Approval::None);
    assert!(subscription.spec.config.is_none());
}

#[test]
fn an_older_version_is_read() {
    let group = json!({
        "apiVersion": "operators.coreos.com/v1alpha2",
        "kind": "OperatorGroup",
        "metadata": {"name": "garden", "namespace": "garden"},
        "spec": {"targetNamespaces": ["garden"], "selector": {}},
    });
    let group = Resource::<OperatorGroup>::read(group).unwrap();
    assert_eq!(group.spec.target_namespaces, ["garden"]);
    assert!(group.spec.selector.is_some());
    assert_eq!(group.spec.upgrade_strategy, UpgradeStrategy::Default);
}

#[test]
fn a_wrong_type_names_object_and_field() {
    let mut wrong = csv();
    wrong["spec"]["install"]["spec"]["deployments"][0]["name"] = json!(7);
    let error = Resource::<ClusterServiceVersion>::read(wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ClusterServiceVersion/garden/rose.v1.0.0: spec.install.spec.deployments[0].name: invalid type: integer `7`, \
         expected a string"
    );
}

#[test]
fn another_kind_is_refused() {
    let error = Resource::<Subscription>::read(csv()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ClusterServiceVersion/garden/rose.v1.0.0: kind: is \"ClusterServiceVersion\" of \"operators.coreos.com/v1alpha1\", \
         expected \"Subscription\" of \"operators.coreos.com\""
    );
}

#[test]
fn what_can_be_read_is_read() {
    let mut wrong = csv();
    wrong["spec"]["install"]["spec"]["deployments"][0]["name"] = json!(7);
    wrong["spec"]["minKubeVersion"] = json!(1.21);
    wrong["spec"]["skips"] = json!(["a", {"b": 1}, "c", null]);
    let (resource, errors) = Resource::<ClusterServiceVersion>::read_tolerant(wrong.clone()).unwrap();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(resource.spec.skips, ["a", "c"]);
    assert_eq!(resource.spec.install.spec.deployments[0].spec.json["replicas"], 1);
    assert_eq!(resource.into_json(), wrong);
}
