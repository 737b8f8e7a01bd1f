//! Waits: they end with the cause of a failure that lasts, do not end with one that is transient, have no time limit, and say
//! that no controllers run. No controllers run: the test writes what they would.

use olm_tests::control_plane::skipped;
use serde_json::{Value, json};

use super::{MARKET, Script};

fn cluster() -> Script {
    let script = Script::new();
    script.kubectl(&["create", "namespace", "shop"]);
    script.applies([
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": { "name": "shop", "namespace": "shop" }, "spec": { "targetNamespaces": ["shop"] },
        }),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": "tea-house", "namespace": "shop" },
            "spec": { "name": "tea-house", "channel": "stable", "source": "market", "sourceNamespace": "olm",
                      "installPlanApproval": "Manual", "config": { "env": [{ "name": "A", "value": "b" }] } },
        }),
    ]);
    script
}

fn condition(of_type: &str, message: &str) -> Value {
    json!({ "lastUpdated": "2026-01-01T00:00:00Z", "conditions": [
        { "type": of_type, "status": "True", "reason": "Because", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z" },
    ] })
}

#[test]
fn failures_that_last_end_a_wait_and_transient_ones_do_not() {
    if skipped() {
        return;
    }
    let script = cluster();
    let sets = |status: &Value| script.patch_status("subscription", "tea-house", "shop", status);
    for (of_type, message) in [("ResolutionFailed", "no operators found"), ("BundleUnpackFailed", "no such image")] {
        sets(&condition(of_type, message));
        let cause = script.fail("wait tea-house -n shop");
        assert!(cause.contains("tea-house cannot continue: ") && cause.contains(message), "{cause}");
        assert!(
            cause.contains("no controllers of OLM run on this cluster") && cause.contains("kubectl olm run"),
            "{cause}"
        );
    }
    // OLM reports such a failure for a moment during ordinary upgrades.
    let mut waiting = script.starts("wait tea-house -n shop");
    waiting.says("no such image");
    sets(&json!({ "conditions": [], "installedCSV": "tea-house.v1.0.0", "currentCSV": "tea-house.v1.0.0" }));
    script.applies([json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "tea-house.v1.0.0", "namespace": "shop" },
        "spec": { "displayName": "Tea", "version": "1.0.0", "install": { "strategy": "deployment", "spec": { "deployments": [] } } },
        "status": { "phase": "Succeeded", "reason": "InstallSucceeded" },
    })]);
    let (code, out, err) = waiting.end();
    assert_eq!((code, out.as_str()), (0, "operator/tea-house installed\n"), "{err}");
}

/// Other tools ignore these flags if the Subscription exists.
#[test]
fn an_existing_subscription_that_differs_is_refused() {
    if skipped() {
        return;
    }
    let script = cluster();
    let config = script.folder.path().join("config.yaml");
    std::fs::write(&config, "env: [{name: A, value: c}]\n").unwrap();
    let config = format!("--config {}", config.display());
    for (flags, message) in [
        ("--approval automatic", "with approval Manual, not Automatic"),
        ("--pin", "with no startingCSV, so it is not pinned to tea-house.v1.1.0"),
        (config.as_str(), "with another spec.config"),
    ] {
        let refused = script.fail(&format!("install tea-house -n shop {flags} --yes {MARKET}"));
        assert!(refused.contains("Subscription shop/tea-house exists, ") && refused.contains(message), "{refused}");
    }
    // As it is, the installation would wait: nothing is approved without controllers, and the command warns of that first.
    let waits = script.fail(&format!("install tea-house -n shop --approval manual --yes --timeout 1s {MARKET}"));
    assert!(waits.contains("no controllers of OLM run on this cluster"), "{waits}");
    assert!(waits.contains("tea-house is not installed after 1s"), "{waits}");
    assert!(waits.contains("Objects: ") && waits.contains("CustomResourceDefinitions:"), "{waits}");
}

/// A catalog that does not respond keeps an operator in progress: the upgrade ends with that cause.
#[test]
fn an_upgrade_ends_if_its_catalog_does_not_respond() {
    if skipped() {
        return;
    }
    let script = cluster();
    script.applies([
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": { "name": "market", "namespace": "olm" },
            "spec": { "sourceType": "grpc", "address": "127.0.0.1:1" },
            "status": { "connectionState": { "lastObservedState": "TRANSIENT_FAILURE", "address": "127.0.0.1:1", "lastConnect": "2026-01-01T00:00:00Z" } },
        }),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": "tea-house.v1.0.0", "namespace": "shop" },
            "spec": { "displayName": "Tea", "version": "1.0.0", "install": { "strategy": "deployment", "spec": { "deployments": [] } } },
            "status": { "phase": "Succeeded", "reason": "InstallSucceeded" },
        }),
    ]);
    let mut status = condition("CatalogSourcesUnhealthy", "targeted catalogsource olm/market unhealthy");
    status["installedCSV"] = "tea-house.v1.0.0".into();
    status["currentCSV"] = "tea-house.v1.0.0".into();
    script.patch_status("subscription", "tea-house", "shop", &status);
    let cause = script.fail("upgrade tea-house -n shop --yes");
    assert!(cause.contains("catalog olm/market is not ready: TRANSIENT_FAILURE"), "{cause}");
    let late = script.fail("upgrade tea-house -n shop --yes --timeout 1s");
    assert!(late.contains("tea-house is not ready for an upgrade after 1s"), "{late}");
}
