//! What an answer of the API server tells about the World.

use serde_json::Value;

use super::Event;
use crate::api::object::ObjectRef;
use crate::api::status::Status;
use crate::plan::Action;
use crate::world::{Refusal, trimmed};

/// What follows from an answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// This was observed.
    Observed(Event),
    /// The World is behind: the object has to be read before anything else is planned for it.
    Look(ObjectRef),
    /// Nothing new.
    Nothing,
}

/// What follows from the answer to an action. `Ok(None)` is the answer to a delete that left nothing.
pub fn answer(action: &Action, result: &Result<Option<Value>, Status>) -> Answer {
    match (action, result) {
        (Action::As(_, action) | Action::Certify(_, action), _) => answer(action, result),
        (Action::Emit(_) | Action::Ask(_), _) => Answer::Nothing,
        (_, Ok(Some(object))) => Answer::Observed(Event::Applied(trimmed(object))),
        (Action::Delete { target, uid, .. }, Ok(None)) => Answer::Observed(Event::Absent(target.clone(), uid.clone())),
        (_, Ok(None)) => Answer::Nothing,
        (_, Err(status)) => {
            let named = !action.target().name.is_empty();
            if named && Refusal::tells_stale(action.verb(), status) {
                Answer::Look(action.target())
            } else {
                Answer::Nothing
            }
        }
    }
}
