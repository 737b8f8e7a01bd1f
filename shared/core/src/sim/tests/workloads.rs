use super::*;
use crate::api::object::list;
use crate::sim::Patch;

fn deployment(spec: &Value) -> Value {
    let mut template = json!({"metadata": {"labels": {"app": "rose"}}, "spec": {
        "containers": [{"name": "manager", "image": "registry.example.com/operator:1"}],
    }});
    json_patch::merge(&mut template["spec"], spec);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "rose", "namespace": "garden"},
        "spec": {"progressDeadlineSeconds": 6, "revisionHistoryLimit": 1, "selector": {"matchLabels": {"app": "rose"}}, "template": template},
    })
}

/// Returns the conditions, sorted, as `Available=True MinimumReplicasAvailable`.
fn conditions(object: &Value) -> Vec<String> {
    let mut told: Vec<String> = list(object, &["status", "conditions"])
        .iter()
        .map(|c| {
            format!(
                "{}={} {}",
                c["type"].as_str().unwrap(),
                c["status"].as_str().unwrap(),
                c["reason"].as_str().unwrap()
            )
        })
        .collect();
    told.sort();
    told
}

fn read(server: &ApiServer) -> Value {
    server.get(&reference("apps/v1", "Deployment", "rose")).cloned().unwrap_or_default()
}

fn patch(server: &mut ApiServer, patch: Value) -> Value {
    server.patch(&reference("apps/v1", "Deployment", "rose"), Patch::Merge(patch), None, now()).expect("patched")
}

#[test]
fn a_deployment_becomes_available_in_observable_steps() {
    let mut server = server();
    let made = create(&mut server, deployment(&json!({})));
    assert_eq!(made["status"], json!({}));
    assert!(server.step(now()));
    let started = read(&server);
    assert_eq!(
        conditions(&started),
        ["Available=False MinimumReplicasUnavailable", "Progressing=True NewReplicaSetCreated"]
    );
    assert_eq!(started["status"]["observedGeneration"], 1);
    settle(&mut server, now());
    let available = read(&server);
    assert_eq!(
        conditions(&available),
        ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]
    );
    assert_eq!(available["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(available["metadata"]["generation"], 1, "a controller's own writes are not the user's");
    for count in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
        assert_eq!(available["status"][count], 1, "{count}");
    }
    let set = server.list("apps", "ReplicaSet", Some("garden")).next().expect("a ReplicaSet").clone();
    let progressing =
        list(&available, &["status", "conditions"]).iter().find(|c| c["type"] == "Progressing").expect("told");
    assert_eq!(progressing["message"], format!("ReplicaSet {} has successfully progressed.", set["metadata"]["name"]));
    assert_eq!(server.next_wakeup(), None);
    assert!(!server.step(at(1000)), "nothing is left to do");
}

#[test]
fn unscheduled_pods_miss_the_deadline() {
    let mut server = server();
    create(&mut server, deployment(&json!({"nodeSelector": {"no-such": "node"}})));
    settle(&mut server, now());
    let waiting = read(&server);
    assert_eq!(
        conditions(&waiting),
        ["Available=False MinimumReplicasUnavailable", "Progressing=True ReplicaSetUpdated"]
    );
    assert_eq!((&waiting["status"]["replicas"], &waiting["status"]["updatedReplicas"]), (&json!(1), &json!(1)));
    assert_eq!(server.next_wakeup(), Some(at(6)));
    assert!(!server.step(at(5)));
    settle(&mut server, at(6));
    assert_eq!(
        conditions(&read(&server)),
        ["Available=False MinimumReplicasUnavailable", "Progressing=False ProgressDeadlineExceeded"]
    );
    let node =
        ObjectRef { gvk: crate::api::object::Gvk::new("", "v1", "Node"), namespace: String::new(), name: "n1".into() };
    server
        .patch(&node, Patch::Merge(json!({"metadata": {"labels": {"no-such": "node"}}})), None, at(7))
        .expect("labelled");
    settle(&mut server, at(7));
    assert_eq!(
        conditions(&read(&server)),
        ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]
    );
}

#[test]
fn a_new_template_is_rolled_out() {
    let mut server = server();
    create(&mut server, deployment(&json!({})));
    settle(&mut server, now());
    for revision in 2..=4 {
        patch(
            &mut server,
            json!({"spec": {"template": {"metadata": {"annotations": {"turn": revision.to_string()}}}}}),
        );
        assert!(server.step(at(revision)));
        let rolling = read(&server);
        assert_eq!(
            conditions(&rolling)[0],
            "Available=True MinimumReplicasAvailable",
            "the old pod serves until the new one does"
        );
        assert_eq!(rolling["status"].get("updatedReplicas"), None);
        settle(&mut server, at(revision));
        let done = read(&server);
        assert_eq!(done["metadata"]["annotations"]["deployment.kubernetes.io/revision"], revision.to_string());
        assert_eq!(done["status"]["observedGeneration"], done["metadata"]["generation"]);
        assert_eq!((&done["status"]["replicas"], &done["status"]["updatedReplicas"]), (&json!(1), &json!(1)));
    }
    assert_eq!(server.list("apps", "ReplicaSet", Some("garden")).count(), 2, "the current one and one of the history");
}

#[test]
fn an_earlier_template_gets_its_replica_set_back() {
    let mut server = server();
    create(&mut server, deployment(&json!({})));
    settle(&mut server, now());
    patch(&mut server, json!({"spec": {"template": {"metadata": {"annotations": {"turn": "2"}}}}}));
    settle(&mut server, now());
    patch(&mut server, json!({"spec": {"template": {"metadata": {"annotations": null}}}}));
    settle(&mut server, now());
    assert_eq!(read(&server)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(server.list("apps", "ReplicaSet", Some("garden")).count(), 2);
}

#[test]
fn no_replicas_are_available_at_once() {
    let mut server = server();
    create(&mut server, deployment(&json!({})));
    patch(&mut server, json!({"spec": {"replicas": 0}}));
    settle(&mut server, now());
    let idle = read(&server);
    assert_eq!(
        conditions(&idle),
        ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]
    );
    assert_eq!(idle["status"].get("replicas"), None);
    patch(&mut server, json!({"spec": {"replicas": 3}}));
    settle(&mut server, now());
    assert_eq!(read(&server)["status"]["availableReplicas"], 3);
}

#[test]
fn pods_without_their_service_account_are_not_created() {
    let mut server = server();
    create(&mut server, deployment(&json!({"serviceAccountName": "rose-sa"})));
    settle(&mut server, now());
    assert_eq!(
        conditions(&read(&server)),
        [
            "Available=False MinimumReplicasUnavailable",
            "Progressing=True NewReplicaSetCreated",
            "ReplicaFailure=True FailedCreate",
        ]
    );
    create(
        &mut server,
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "rose-sa", "namespace": "garden"}}),
    );
    settle(&mut server, now());
    assert_eq!(
        conditions(&read(&server)),
        ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]
    );
}

#[test]
fn a_selector_never_changes_and_fits_its_template() {
    let mut server = server();
    let made = create(&mut server, deployment(&json!({})));
    let mut other = made;
    other["spec"]["selector"] = json!({"matchLabels": {"app": "tulip"}});
    let refused = server.update(other, None, now()).expect_err("immutable");
    assert!(refused.message.contains("spec.selector: Invalid value"), "{refused}");
    assert!(refused.message.contains("`selector` does not match template `labels`"), "{refused}");
}

#[test]
fn deleting_a_deployment_deletes_its_replica_sets() {
    let mut server = server();
    let made = create(&mut server, deployment(&json!({})));
    settle(&mut server, now());
    delete(&mut server, &made, Propagation::Background);
    settle(&mut server, now());
    assert_eq!(server.list("apps", "ReplicaSet", None).count(), 0);
}

#[test]
fn a_budget_counts_the_pods_it_guards() {
    let mut server = server();
    create(&mut server, deployment(&json!({})));
    let budget = create(
        &mut server,
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "rose", "namespace": "garden"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "rose"}}},
        }),
    );
    settle(&mut server, now());
    let status = current(&server, &budget)["status"].clone();
    for (count, wanted) in
        [("currentHealthy", 1), ("desiredHealthy", 1), ("disruptionsAllowed", 0), ("expectedPods", 1)]
    {
        assert_eq!(status[count], wanted, "{count}");
    }
    assert_eq!(conditions(&current(&server, &budget)), ["DisruptionAllowed=False InsufficientPods"]);
}

#[test]
fn a_job_succeeds_and_is_deleted_after_its_time_to_live() {
    let mut server = server();
    let job = create(
        &mut server,
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "unpack", "namespace": "garden"},
            "spec": {"ttlSecondsAfterFinished": 300, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
        }),
    );
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "unpack");
    settle(&mut server, now());
    assert_eq!(current(&server, &job)["status"]["succeeded"], 1);
    assert_eq!(server.next_wakeup(), Some(at(300)));
    settle(&mut server, at(300));
    assert_eq!(current(&server, &job), Value::Null);
}

fn job(spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "unpack", "namespace": "garden"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "nodeSelector": {"kubernetes.io/os": "linux"},
            "containers": [{"name": "unpack", "image": "registry.example.com/bundle:1"}],
        }}},
    });
    json_patch::merge(&mut job["spec"], spec);
    job
}

fn cordon(server: &mut ApiServer, unschedulable: bool) {
    let node = ObjectRef { namespace: String::new(), ..reference("v1", "Node", "n1") };
    let patch = Patch::Merge(json!({"spec": {"unschedulable": unschedulable}}));
    server.patch(&node, patch, None, now()).expect("patched");
}

#[test]
fn a_job_succeeds_when_it_is_scheduled() {
    let mut server = server();
    cordon(&mut server, true);
    let made = create(&mut server, job(&json!({})));
    settle(&mut server, now());
    let waiting = current(&server, &made);
    assert_eq!((&waiting["status"]["active"], conditions(&waiting).len()), (&json!(1), 0));
    cordon(&mut server, false);
    settle(&mut server, now());
    let expected = ["Complete=True CompletionsReached", "SuccessCriteriaMet=True CompletionsReached"];
    assert_eq!(conditions(&current(&server, &made)), expected);
}

#[test]
fn an_unscheduled_job_fails_at_its_deadline() {
    let mut server = server();
    cordon(&mut server, true);
    let made = create(&mut server, job(&json!({"activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 300})));
    settle(&mut server, now());
    assert_eq!(server.next_wakeup(), Some(at(3)));
    settle(&mut server, at(3));
    let failed = current(&server, &made);
    assert_eq!(conditions(&failed), ["Failed=True DeadlineExceeded", "FailureTarget=True DeadlineExceeded"]);
    assert_eq!(failed["status"]["failed"], 1);
    assert_eq!(server.next_wakeup(), Some(at(303)));
    settle(&mut server, at(303));
    assert!(current(&server, &made).is_null(), "its time to live is over");
}
