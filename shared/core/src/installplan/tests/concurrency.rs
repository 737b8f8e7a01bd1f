//! Tests of the concurrent execution of steps.

use super::*;
use crate::api::status::Status;

/// Formats the actions as `verb Kind/name`, batch by batch.
fn batches(plan: &Plan) -> Vec<Vec<String>> {
    let told = told(plan);
    plan.order.batches(told.len()).into_iter().map(|batch| told[batch].to_vec()).collect()
}

fn there() -> Value {
    let mut done = csv_step();
    done["status"] = "Created".into();
    done
}

fn map(name: &str) -> Value {
    simple("v1", "ConfigMap", name, &json!({ "data": {} }))
}

#[test]
fn independent_steps_are_executed_concurrently() {
    let crd = |name: &str| simple(CRD, "CustomResourceDefinition", name, &crd_spec(&["v1"]));
    let binding = json!({ "roleRef": { "kind": "Role", "name": "reader" }, "subjects": [] });
    let token = json!({ "type": "kubernetes.io/service-account-token" });
    let steps = [
        there(),
        crd("roses.garden.example.com"),
        crd("pots.garden.example.com"),
        simple("v1", "Secret", "token", &token),
        map("a"),
        simple(RBAC, "Role", "reader", &json!({ "rules": [] })),
        simple(RBAC, "RoleBinding", "reader", &binding),
        simple("v1", "ServiceAccount", "rose", &json!({})),
        // It is unknown whether this kind is served, so later steps must not be started.
        simple("monitoring.coreos.com/v1", "PrometheusRule", "rose", &json!({})),
        map("b"),
    ];
    let plan = plan(&world(&[install_plan("Installing", &steps), csv()]), at(0));
    let expected: [&[&str]; 5] = [
        &[
            "create CustomResourceDefinition/roses.garden.example.com",
            "create CustomResourceDefinition/pots.garden.example.com",
        ],
        &["create ConfigMap/a", "create Role/reader", "create ServiceAccount/rose"],
        &["create Secret/token", "create RoleBinding/reader"],
        &["create PrometheusRule/rose"],
        &["create ConfigMap/b"],
    ];
    assert_eq!(batches(&plan), expected);
}

#[test]
fn csvs_of_bundles_are_created_one_by_one() {
    let mut other = csv_step();
    other["resource"]["name"] = "pot.v1.0.0".into();
    other["resolving"] = "pot.v1.0.0".into();
    let plan = plan(&world(&[install_plan("Installing", &[csv_step(), other])]), at(0));
    assert!(batches(&plan).iter().all(|batch| batch.len() == 1), "{plan:?}");
}

#[test]
fn a_partly_refused_batch_is_retried_with_its_blind_actions() {
    let known =
        |name: &str| old(CRD, "CustomResourceDefinition", name, &json!({ "spec": { "group": "garden.example.com" } }));
    let crd = |name: &str| simple(CRD, "CustomResourceDefinition", name, &crd_spec(&["v2"]));
    let steps = [there(), crd("pots.garden.example.com"), crd("roses.garden.example.com"), map("a")];
    let objects = [
        install_plan("Installing", &steps),
        csv(),
        known("pots.garden.example.com"),
        known("roses.garden.example.com"),
    ];
    let mut world = world(&objects);
    let first = plan(&world, at(0));
    let (pots, roses, a) = (
        "patch CustomResourceDefinition/pots.garden.example.com",
        "patch CustomResourceDefinition/roses.garden.example.com",
        "create ConfigMap/a",
    );
    assert_eq!(batches(&first)[..2], [vec![pots, roses], vec![a]]);
    // It is unknown whether the other patch has changed anything, so it is retried, too.
    refuse(&mut world, &first.actions[1].clone(), 500, "InternalError", "oh");
    let second = plan(&world, at(0));
    assert_eq!(batches(&second)[1..], [vec![pots, roses], vec![a]]);
    // Actions after the batch were not tried, and actions before it have succeeded.
    refuse(&mut world, &first.actions[2].clone(), 500, "InternalError", "oh");
    let third = plan(&world, at(0));
    assert_eq!(
        batches(&third),
        [
            vec![
                "Installing retrying execution due to error: error updating configmap: a: oh [Created Present Present Unknown]"
            ],
            vec![a]
        ]
    );
}

#[test]
fn a_retry_reports_the_attempts_and_the_time_of_the_next_one() {
    let mut world = world(&[install_plan("Installing", &[there(), map("a")]), csv()]);
    let create = plan(&world, at(0)).actions[0].clone();
    refuse_again(&mut world, &create, 3, Status::new(503, "ServiceUnavailable", "later"));
    let plan = plan(&world, at(0));
    let [Reason::InstallPlanRetries { attempts: 3, next_at: Some(next), fails_at: Some(fails), .. }] = plan.reasons[..]
    else {
        panic!("{plan:?}")
    };
    assert_eq!((next, fails), (at(1), at(60)));
}
