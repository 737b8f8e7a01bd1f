mod config;
mod deployments;
mod gates;
mod native_apis;
mod serving;
mod webhooks;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::model::Csv;
use super::{Step, transition};
use crate::plan::{Controller, Key};
use crate::world::{Reader, World};

fn csv(name: &str, replaces: &str, phase: &str, reason: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": "garden", "uid": name},
        "spec": {"replaces": replaces, "install": {"strategy": "deployment", "spec": {}}},
        "status": {"phase": phase, "reason": reason},
    })
}

/// The next step of `rose.v2`, which replaces `rose.v1`.
fn next(old: &Value, new: &Value) -> Step {
    let mut world = World::new();
    world.apply(old.clone());
    world.apply(new.clone());
    let key = Key::new(Controller::ClusterServiceVersion, "garden", "rose.v2");
    transition::next(&Reader::new(&world), Csv { json: new }, &key, Timestamp::UNIX_EPOCH)
}

#[test]
fn what_was_missing_a_moment_ago_is_not_told_while_the_older_one_is_waited_for() {
    let failed = csv("rose.v1", "", "Failed", "InstallCheckFailed");
    let waits = next(&failed, &csv("rose.v2", "rose.v1", "Pending", "RequirementsNotMet"));
    let text = waits.transition.as_ref().map(|t| (t.phase, t.reason, t.message.as_str()));
    assert_eq!(text, Some(("Pending", "RequirementsUnknown", "requirements not yet checked")));
    let stays = next(&failed, &csv("rose.v2", "rose.v1", "Pending", "RequirementsUnknown"));
    assert_eq!((stays.transition, &stays.reasons), (None, &waits.reasons));
    let replacing = csv("rose.v1", "", "Replacing", "BeingReplaced");
    let goes_on = next(&replacing, &csv("rose.v2", "rose.v1", "Pending", "RequirementsNotMet"));
    assert_eq!(goes_on.transition.map(|t| t.phase), Some("InstallReady"));
}
