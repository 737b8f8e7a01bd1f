//! Answers what plans ask: facts that come from outside.
//!
//! Catalogs and bundles are read for as long as they are asked for, and what they hold becomes known when it is there. What the API server
//! alone can answer is asked while the question is executed. To ask is not to write: an audit asks as well.

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

/// What answers questions for as long as they are asked.
pub(super) struct Questions {
    pub(super) catalogs: Connections,
    pub(super) bundles: Bundles,
    pub(super) discoveries: Discoveries,
}

impl Questions {
    pub(super) fn new(catalogs: Connections, bundles: Bundles) -> Self {
        Self { catalogs, bundles, discoveries: Discoveries::default() }
    }

    /// Begins to answer the questions of a piece of work.
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

/// Is all of the work to be executed by an audit: questions that are answered while they are executed?
pub(super) fn is_for_audit(work: &Work) -> bool {
    let is_executed =
        |action: &Action| matches!(action, Action::Ask(Question::CheckSchema(_) | Question::Discover { .. }));
    work.actions.iter().all(is_executed)
}

/// Answers a question that the API server alone can answer, before it ends.
pub(super) async fn answer(api: &Api, question: &Question, events: &mpsc::UnboundedSender<Event>) {
    match question {
        Question::CheckSchema(question) => {
            let key = FactKey::SchemaCheck(question.crd.clone(), question.digest());
            let (found, since) = schema_check::check(api, question).await;
            if found.misfits > 0 {
                let (api, question, key, events) = (api.clone(), question.clone(), key.clone(), events.clone());
                tokio::spawn(async move {
                    if schema_check::changes(&api, &question, &since).await {
                        // What was found may be so no longer. Here and below: the receiver is gone only when the process stops.
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
