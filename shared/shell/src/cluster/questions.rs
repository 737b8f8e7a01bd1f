//! Obtains the external facts that plans request.
//!
//! Catalogs and bundles are read for as long as plans request them, and their content is reported when it is available. Facts that only the
//! API server has are read while the action is executed. None of these requests writes, so an audit executes them too.

use olm_core::plan::{Action, Question};
use olm_core::planner::{Event, Work};
use olm_core::world::{Fact, FactKey};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::api::Api;
use super::bundles::Bundles;
use super::catalogs::Connections;
use super::discovery::{self, Discoveries};
use super::schema_check;

/// The sources of external facts.
pub(super) struct Questions {
    pub(super) catalogs: Connections,
    pub(super) bundles: Bundles,
    pub(super) discoveries: Discoveries,
}

impl Questions {
    pub(super) fn new(catalogs: Connections, bundles: Bundles) -> Self {
        Self { catalogs, bundles, discoveries: Discoveries::default() }
    }

    /// Starts to obtain the external facts that a piece of work requests.
    pub(super) fn begin(&mut self, work: &Work) {
        for action in &work.actions {
            let Action::Ask(question) = action else { continue };
            match question {
                Question::Connect { namespace, name, target } => self.catalogs.connect(namespace, name, target),
                Question::Refresh { namespace, name } => self.catalogs.refresh(namespace, name),
                Question::Disconnect { namespace, name } => self.catalogs.disconnect(namespace, name),
                Question::Unpack { image, begun } => self.bundles.unpack(image, begun),
                Question::Forget(image) => self.bundles.forget(image),
                Question::Discover { group, version } => self.discoveries.keep(group, version, Instant::now()),
                Question::CheckSchema(_) => {}
            }
        }
    }
}

/// Returns whether an audit executes all of the work: requests of facts that are obtained during execution.
pub(super) fn is_for_audit(work: &Work) -> bool {
    let is_executed =
        |action: &Action| matches!(action, Action::Ask(Question::CheckSchema(_) | Question::Discover { .. }));
    work.actions.iter().all(is_executed)
}

/// Obtains a fact that only the API server has, before it returns.
pub(super) async fn answer(api: &Api, question: &Question, events: &mpsc::UnboundedSender<Event>) {
    match question {
        Question::CheckSchema(question) => {
            let key = FactKey::SchemaCheck(question.crd.clone(), question.digest());
            let (found, since) = schema_check::check(api, question).await;
            if found.invalid > 0 {
                let (api, question, key, events) = (api.clone(), question.clone(), key.clone(), events.clone());
                tokio::spawn(async move {
                    if schema_check::changes(&api, &question, &since).await {
                        // The result may be stale. Here and below: the receiver is dropped only when the process stops.
                        let _ = events.send(Event::Learned(key, None));
                    }
                });
            }
            let _ = events.send(Event::Learned(key, Some(Fact::SchemaCheck(found))));
        }
        Question::Discover { group, version } => {
            let _ = events.send(discovery::discover(api.clone(), (group.clone(), version.clone())).await);
        }
        Question::Connect { .. }
        | Question::Refresh { .. }
        | Question::Disconnect { .. }
        | Question::Unpack { .. }
        | Question::Forget(_) => {}
    }
}
