use serde_json::json;

use super::*;
use crate::testing::world;
use crate::testing::{catalog_source, csv, install_plan, operator_group, subscription, with_metadata, with_status};

/// An OperatorGroup, a catalog, and an operator at version 1.0.0, which a case changes.
struct Case {
    group: Vec<Value>,
    catalog: Value,
    subscription: Value,
    plan: Value,
    csvs: Vec<Value>,
}

fn installed(name: &str, version: &str, status: &Value) -> Value {
    with_status(csv("garden", name, &json!({ "version": version })), status)
}

impl Case {
    fn new() -> Self {
        let wanted = json!({ "name": "rose", "channel": "stable", "source": "market", "sourceNamespace": "olm", "installPlanApproval": "Manual" });
        let resolved = json!({
            "currentCSV": "rose.v1.0.0", "installedCSV": "rose.v1.0.0", "state": "AtLatestKnown",
            "installPlanRef": { "name": "install-a", "namespace": "garden" },
        });
        let plan = json!({ "approval": "Manual", "approved": true, "clusterServiceVersionNames": ["rose.v1.0.0"] });
        let ready = json!({ "connectionState": { "lastObservedState": "READY" } });
        Self {
            group: vec![operator_group("garden", "all", &json!({}))],
            catalog: with_status(catalog_source("olm", "market", &json!({})), &ready),
            subscription: with_status(subscription("garden", "rose", &wanted), &resolved),
            plan: with_status(install_plan("garden", "install-a", &plan), &json!({ "phase": "Complete" })),
            csvs: vec![installed("rose.v1.0.0", "1.0.0", &json!({ "phase": "Succeeded" }))],
        }
    }

    /// Sets the phase of the plan, with one step that is open.
    fn plan(&mut self, phase: &str, approved: bool, csv: &str, message: &str) {
        self.plan["spec"]["approved"] = approved.into();
        self.plan["spec"]["clusterServiceVersionNames"] = json!([csv]);
        let resource = json!({ "kind": "ClusterServiceVersion", "name": csv, "manifest": "{\"spec\":{\"replaces\":\"rose.v1.0.0\"}}" });
        let step = json!({ "resolving": csv, "status": "Unknown", "resource": resource });
        self.plan["status"] = json!({ "phase": phase, "message": message, "plan": [step] });
    }

    fn condition(&mut self, of_type: &str, message: &str) {
        self.subscription["status"]["conditions"] = json!([{ "type": of_type, "status": "True", "message": message }]);
    }

    fn operators(&self) -> Vec<Operator> {
        let mut objects = vec![self.catalog.clone(), self.subscription.clone(), self.plan.clone()];
        objects.extend(self.group.iter().chain(&self.csvs).cloned());
        objects.retain(|object| !object.is_null());
        let settings = Settings::default();
        let scope = Scope { settings: &settings, knows_groups: true, knows_catalogs: true };
        let found = operators(&Reader::new(&world(&objects)), scope, None);
        let reduced: Vec<Value> = objects.into_iter().map(trimmed).collect();
        assert_eq!(
            operators(&Reader::new(&world(&reduced)), scope, None),
            found,
            "the rest of the objects does not matter"
        );
        found
    }
}

type Change = fn(&mut Case);

/// Returns `installed > next health: cause [command]` of the only operator.
fn state(change: impl FnOnce(&mut Case)) -> String {
    let mut case = Case::new();
    change(&mut case);
    let operators = case.operators();
    let [operator] = &operators[..] else { return format!("{operators:?}") };
    let number = |version: &Option<Version>| version.as_ref().map(|v| v.csv.clone()).unwrap_or_default();
    let reason = operator.reason.as_ref().map(ToString::to_string).unwrap_or_default();
    let command = operator.command.clone().unwrap_or_default();
    let (installed, next) = (number(&operator.installed), number(&operator.next));
    format!("{installed} > {next} {}: {reason} [{command}]", operator.health.as_str())
}

#[test]
fn an_operator_is_healthy_or_says_why_not() {
    let cases: [(&str, Change); 16] = [
        ("rose.v1.0.0 >  Healthy:  []", |_| {}),
        (
            "rose.v1.0.0 > rose.v2.0.0 Upgradable: InstallPlan garden/install-a waits for approval of rose.v2.0.0 \
             [kubectl olm install-plan approve install-a -n garden]",
            |c| {
                c.subscription["status"]["currentCSV"] = "rose.v2.0.0".into();
                c.plan("RequiresApproval", false, "rose.v2.0.0", "");
            },
        ),
        ("rose.v1.0.0 >  Healthy:  []", |c| {
            // It was made for an operator that was uninstalled, too.
            c.plan("RequiresApproval", false, "tulip.v1.0.0", "");
            let owner = |name: &str| json!({ "kind": "Subscription", "name": name });
            c.plan["metadata"]["ownerReferences"] = json!([owner("rose"), owner("tulip")]);
        }),
        (
            " > rose.v1.0.0 Blocked: InstallPlan garden/install-a waits for approval of rose.v1.0.0 \
             [kubectl olm install-plan approve install-a -n garden]",
            |c| {
                c.csvs.clear();
                c.subscription["status"]["installedCSV"] = Value::Null;
                c.plan("RequiresApproval", false, "rose.v1.0.0", "");
            },
        ),
        (
            "rose.v1.0.0 > rose.v2.0.0 Progressing: InstallPlan garden/install-a waits: the next step is ClusterServiceVersion rose.v2.0.0 []",
            |c| {
                c.subscription["status"]["currentCSV"] = "rose.v2.0.0".into();
                c.plan("Installing", true, "rose.v2.0.0", "");
            },
        ),
        (
            "rose.v1.0.0 > rose.v2.0.0 Blocked: InstallPlan garden/install-a failed: quota exceeded (bundle rose.v2.0.0 of Subscription rose) \
             [kubectl olm install-plan explain install-a -n garden]",
            |c| {
                c.subscription["status"]["currentCSV"] = "rose.v2.0.0".into();
                c.plan("Failed", true, "rose.v2.0.0", "quota exceeded");
            },
        ),
        (
            "rose.v1.0.0 >  Blocked: the Subscriptions of namespace garden cannot be satisfied: no versions \
             [kubectl olm operator describe rose -n garden]",
            |c| c.condition(condition_type::RESOLUTION_FAILED, "no versions"),
        ),
        (
            "rose.v1.0.0 >  Blocked: bundle rose cannot be unpacked: no such image [kubectl olm operator describe rose -n garden]",
            |c| c.condition(condition_type::BUNDLE_UNPACK_FAILED, "no such image"),
        ),
        (
            "rose.v1.0.0 >  Blocked: namespace garden has no OperatorGroup [kubectl olm operatorgroup create -n garden]",
            |c| c.group.clear(),
        ),
        (
            "rose.v1.0.0 >  Blocked: namespace garden has several OperatorGroups: all, some [kubectl olm operatorgroup lint -n garden]",
            |c| c.group.push(operator_group("garden", "some", &json!({}))),
        ),
        (
            "rose.v1.0.0 >  Blocked: Subscription garden/rose needs CatalogSource olm/market, which does not exist \
             [kubectl olm operator describe rose -n garden]",
            |c| c.catalog = Value::Null,
        ),
        (
            "rose.v1.0.0 >  Blocked: ClusterServiceVersion garden/rose.v1.0.0 failed (ComponentUnhealthy): no pods \
             [kubectl olm operator describe rose -n garden]",
            |c| {
                c.csvs[0]["status"] =
                    json!({ "phase": "Failed", "reason": "ComponentUnhealthy", "message": "no pods" });
            },
        ),
        (
            "rose.v1.0.0 >  Blocked: ClusterServiceVersion garden/rose.v1.0.0 lacks: CustomResourceDefinition thorns.example.com: \
             CRD is not present; ServiceAccount rose: it does not exist [kubectl olm operator describe rose -n garden]",
            |c| {
                let crd = json!({ "kind": "CustomResourceDefinition", "name": "thorns.example.com", "status": "NotPresent", "message": "CRD is not present" });
                let of_account =
                    json!({ "kind": "PolicyRule", "status": "NotSatisfied", "message": "it does not exist" });
                let account = json!({ "kind": "ServiceAccount", "name": "rose", "status": "PresentNotSatisfied", "dependents": [of_account] });
                let met = json!({ "kind": "ServiceAccount", "name": "pot", "status": "Present" });
                c.csvs[0]["status"] = json!({ "phase": "Pending", "requirementStatus": [crd, account, met] });
            },
        ),
        (
            "rose.v1.0.0 >  Progressing: ClusterServiceVersion garden/rose.v1.0.0 waits: installing: waiting for deployment []",
            |c| c.csvs[0]["status"] = json!({ "phase": "Installing", "message": "installing: waiting for deployment" }),
        ),
        (" >  Progressing: Subscription garden/rose waits: no controller has resolved it yet []", |c| {
            (c.subscription["status"], c.plan) = (Value::Null, Value::Null);
            c.csvs.clear();
        }),
        (
            "rose.v1.0.0 >  Blocked: Subscription garden/rose needs ClusterServiceVersion rose.v1.0.0, which does not exist \
             [kubectl olm operator describe rose -n garden]",
            |c| c.csvs.clear(),
        ),
    ];
    for (expected, change) in cases {
        assert_eq!(state(change), expected);
    }
}

/// A ClusterServiceVersion without a Subscription is an operator; a replaced one and a copy are not.
#[test]
fn operators_without_a_subscription() {
    let mut case = Case::new();
    case.csvs.push(installed("tulip.v1.0.0", "1.0.0", &json!({ "phase": "Succeeded" })));
    case.csvs.push(installed("rose.v0.9.0", "0.9.0", &json!({ "phase": "Replacing" })));
    let copy =
        with_metadata(csv("park", "tulip.v1.0.0", &json!({})), &json!({ "labels": { "olm.copiedFrom": "garden" } }));
    case.csvs.push(with_status(copy, &json!({ "phase": "Succeeded", "reason": "Copied" })));
    let names: Vec<(String, bool)> = case.operators().into_iter().map(|o| (o.name, o.subscribed)).collect();
    assert_eq!(names, [("rose".to_owned(), true), ("tulip.v1.0.0".to_owned(), false)]);
}

/// What could not be read is not reported as missing.
#[test]
fn unread_kinds_are_unknown() {
    let mut case = Case::new();
    case.group.clear();
    case.catalog = Value::Null;
    let settings = Settings::default();
    let scope = Scope { settings: &settings, knows_groups: false, knows_catalogs: false };
    let objects: Vec<Value> = [&case.subscription, &case.plan, &case.csvs[0]].into_iter().cloned().collect();
    let found = operators(&Reader::new(&world(&objects)), scope, Some("garden"));
    assert_eq!(found.iter().map(|operator| operator.health).collect::<Vec<_>>(), [Health::Healthy]);
}
