//! Derives observations from the API server's responses to actions.

use serde_json::Value;

use super::Event;
use crate::api::object::{self, ObjectRef};
use crate::api::status::Status;
use crate::plan::Action;
use crate::world::{Refusal, trimmed};

/// What follows from a response.
#[derive(Clone, Debug)]
pub enum Answer {
    /// An observation.
    Observed(Event),
    /// The World is stale: the object has to be read before anything else is planned for it.
    Look(ObjectRef),
    /// Nothing.
    Nothing,
}

/// Returns what follows from the response to an action. `Ok(None)` is the response to a delete that removed the object.
pub fn answer(action: &Action, result: &Result<Option<Value>, Status>) -> Answer {
    match (action, result) {
        (Action::As(_, action) | Action::Certify(_, action), _) => answer(action, result),
        (Action::Emit(_) | Action::Ask(_), _) => Answer::Nothing,
        (Action::Update(_) | Action::Patch { .. }, Ok(Some(object))) if object::is_released(object) => {
            Answer::Observed(Event::Absent(ObjectRef::from_object(object), object::uid(object).to_owned()))
        }
        (_, Ok(Some(object))) => Answer::Observed(Event::Applied(trimmed(object))),
        (Action::Delete { target, uid, .. }, Ok(None)) => Answer::Observed(Event::Absent(target.clone(), uid.clone())),
        (_, Ok(None)) => Answer::Nothing,
        (_, Err(status)) => {
            let named = !action.target().name.is_empty();
            if named && Refusal::means_stale(action.verb(), status) {
                Answer::Look(action.target())
            } else {
                Answer::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_update_that_removes_the_last_finalizer_of_a_deleting_object_removes_the_object() {
        let object = |finalizers: &[&str]| {
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                "metadata": {
                    "name": "rose", "namespace": "garden", "uid": "u", "resourceVersion": "7", "finalizers": finalizers,
                    "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0,
                },
            })
        };
        let answered = |finalizers| answer(&Action::Update(object(&["last"])), &Ok(Some(object(finalizers))));
        let gone = answered(&[]);
        assert!(
            matches!(&gone, Answer::Observed(Event::Absent(target, uid)) if target.name == "rose" && uid == "u"),
            "{gone:?}"
        );
        let stays = answered(&["other"]);
        assert!(matches!(stays, Answer::Observed(Event::Applied(_))), "{stays:?}");
    }
}
