//! Which steps are in flight together.

use super::*;
use crate::api::status::Status;

/// `verb Kind/name` of the actions, batch by batch.
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
fn what_does_not_depend_on_each_other_is() {
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
        // Nobody knows whether this is served: what comes after it may never be begun.
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
fn one_bundle_after_the_other_gets_its_csv() {
    let mut other = csv_step();
    other["resource"]["name"] = "pot.v1.0.0".into();
    other["resolving"] = "pot.v1.0.0".into();
    let plan = plan(&world(&[install_plan("Installing", &[csv_step(), other])]), at(0));
    assert!(batches(&plan).iter().all(|batch| batch.len() == 1), "{plan:?}");
}

#[test]
fn a_batch_that_was_refused_in_part_is_tried_again_together_with_what_may_not_be_done() {
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
    // Nobody knows whether the other patch has changed anything: it goes along.
    refuse(&mut world, &first.actions[1].clone(), 500, "InternalError", "oh");
    let second = plan(&world, at(0));
    assert_eq!(batches(&second)[1..], [vec![pots, roses], vec![a]]);
    // What comes after the batch was not tried, and what comes before went through.
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
fn a_retry_tells_how_often_and_when_next() {
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
