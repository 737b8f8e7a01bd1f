//! Bundles that exist only as images, for the controllers that need them: requests, retries and failures
//! (olm-behaviour/subscription.md#namespace-resolution, olm-behaviour/subscription.md#unpacking).
//!
//! ```text
//!   unknown --request--> in progress --> Content                    the steps of an InstallPlan
//!                              |-> Later    --backoff, request--> ...    BundleUnpacking, until the deadline
//!                              '-> Refused  --interval, request--> ... BundleUnpackFailed
//! ```
//!
//! The shell pulls an image, and the result arrives as an external fact; there are no Jobs and ConfigMaps, unless catalogs
//! are served by pods ([`job`]). A failure stays, in the Subscriptions as well, until a retry succeeds: also when the
//! controllers are restarted.

mod job;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::catalog_source::pull_secrets;
use crate::api::object;
use crate::bundle::{BundleContent, BundleImage, Unpacked, Unpacking};
use crate::go_format;
use crate::plan::{Action, Question, Reason};
pub(crate) use crate::settings::PLAIN_DISABLED;
use crate::settings::{CatalogPods, Settings};
use crate::world::{Reader, kind};

/// The condition's reason when the content of an image cannot be installed.
pub(crate) const UNINSTALLABLE: &str = "ErrorPreventedUnpacking";
const TIMEOUT: &str = "operatorframework.io/bundle-unpack-timeout";
const RETRY_INTERVAL: &str = "operatorframework.io/bundle-unpack-min-retry-interval";
/// OLM's retry interval after a failure: its Job is deleted after this time.
const RETRY: SignedDuration = SignedDuration::from_mins(5);
/// Number of times that the first backoff after a transient error is doubled.
const DOUBLINGS: u32 = 6;

/// Deadlines and intervals for images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timeouts {
    /// From the first attempt; `None` for no deadline.
    deadline: Option<SignedDuration>,
    /// From a failure to the next attempt.
    retry: SignedDuration,
    /// The retry interval, if the OperatorGroup sets it.
    annotated_retry: Option<SignedDuration>,
}

impl Timeouts {
    /// Reads the OperatorGroup's annotations. Invalid annotations are ignored; OLM resolves nothing then.
    pub(crate) fn read(settings: &Settings, group: Option<&Value>) -> (Self, Vec<Reason>) {
        let mut reasons = Vec::new();
        let mut annotation = |key: &str| {
            let group = group?;
            let text = object::annotation(group, key)?;
            match go_format::duration(text) {
                Ok(duration) => Some(duration),
                Err(error) => {
                    let object = format!("OperatorGroup {}/{}", object::namespace(group), object::name(group));
                    reasons.push(Reason::Invalid { object, message: format!("annotation {key}: {error}") });
                    None
                }
            }
        };
        let timeout = annotation(TIMEOUT).filter(|t| !t.is_negative()).unwrap_or(settings.bundle_unpack_timeout);
        let annotated_retry = annotation(RETRY_INTERVAL).filter(SignedDuration::is_positive);
        let deadline = Some(timeout).filter(SignedDuration::is_positive);
        (Self { deadline, retry: annotated_retry.unwrap_or(RETRY), annotated_retry }, reasons)
    }
}

/// A bundle whose image is missing.
#[derive(Debug)]
pub(crate) struct Pending {
    bundle: String,
    pub(crate) image: String,
    pub(crate) state: State,
    /// The next actions.
    pub(crate) actions: Vec<Action>,
    /// When to plan again.
    pub(crate) again: Option<Timestamp>,
}

/// The state of a missing image.
#[derive(Debug, PartialEq)]
pub(crate) enum State {
    /// It is in progress; the error of the last attempt.
    Waits(Option<String>),
    /// It failed: the condition's reason and the message.
    Failed(&'static str, String),
    /// Its Job failed: the reason and the message of the Job's condition.
    JobFailed(String, String),
    /// No content will arrive: what has to be given.
    NotGiven(String),
}

impl Pending {
    /// Returns why nothing is installed. `known` is the failure in the Subscriptions.
    pub(crate) fn reason(&self, known: Option<&str>) -> Reason {
        let (bundle, image) = (self.bundle.clone(), self.image.clone());
        match (&self.state, known) {
            (State::NotGiven(needs), _) => Reason::BundleNotProvided { bundle, image, needs: needs.clone() },
            (State::Failed(_, message) | State::JobFailed(_, message), _) => {
                Reason::BundleUnpackFailed { bundle, image, message: message.clone() }
            }
            (State::Waits(_), Some(message)) => {
                Reason::BundleUnpackFailed { bundle, image, message: message.to_owned() }
            }
            (State::Waits(error), None) => {
                let message = error.clone().unwrap_or_else(|| "it is being pulled".to_owned());
                Reason::BundleUnpacking { bundle, image, message }
            }
        }
    }
}

/// Manages the images of bundles.
pub(crate) struct Images<'w, 'r> {
    pub(crate) world: &'r Reader<'w>,
    pub(crate) settings: &'r Settings,
    pub(crate) timeouts: Timeouts,
    pub(crate) now: Timestamp,
}

impl Images<'_, '_> {
    /// Returns the content of a bundle's image.
    pub(crate) fn content(&self, bundle: &str, image: &BundleImage) -> Result<BundleContent, Box<Pending>> {
        if let Some((pods, source)) = self.job(image) {
            return job::content(self, pods, bundle, image, source);
        }
        let fact = self.world.bundle(image);
        if let Some(Unpacking { ended: Some((_, Unpacked::Content(content))), .. }) = fact {
            if content.is_plain && !self.settings.plain_bundles {
                return Err(self.broken(bundle, image, PLAIN_DISABLED.to_owned()));
            }
            return Ok(content.clone());
        }
        let begun = self.begun(image, fact);
        let (state, again, due) = match fact {
            None => (State::Waits(None), None, true),
            Some(fact) => self.judge(fact),
        };
        let other_secrets = fact.is_some_and(|f| !f.running && f.secrets != begun.secrets);
        Err(pending(bundle, image, self.now, state, again, (due || other_secrets).then_some(begun)))
    }

    /// Returns whether the image is unpacked by a Job, into a ConfigMap that steps reference.
    pub(crate) fn has_job(&self, image: &BundleImage) -> bool {
        self.job(image).is_some()
    }

    fn job(&self, image: &BundleImage) -> Option<(&CatalogPods, &Value)> {
        let source = self.world.json(&kind::CATALOG_SOURCE, &image.catalog_namespace, &image.catalog);
        // A directory may replace a CatalogSource that does not exist, and thus cannot be an owner.
        self.settings.catalog_pods.as_ref().zip(source)
    }

    /// Returns the state of an image whose content cannot be installed.
    pub(crate) fn broken(&self, bundle: &str, image: &BundleImage, message: String) -> Box<Pending> {
        let fact = self.world.bundle(image);
        let again = fact.and_then(|f| f.ended.as_ref()).and_then(|(at, _)| at.checked_add(self.timeouts.retry).ok());
        let due = fact.is_some_and(|f| !f.running) && again.is_some_and(|at| at <= self.now);
        let state = State::Failed(UNINSTALLABLE, format!("image {}: {message}", image.image));
        let begun = due.then(|| self.begun(image, fact));
        pending(bundle, image, self.now, state, again, begun)
    }

    /// Returns the next attempt: the next of the current series, or the first of a new series when the last one has ended.
    fn begun(&self, image: &BundleImage, fact: Option<&Unpacking>) -> Unpacking {
        let source = self.world.json(&kind::CATALOG_SOURCE, &image.catalog_namespace, &image.catalog);
        let secrets = source.map(pull_secrets).unwrap_or_default();
        let first = Unpacking { secrets, since: self.now, attempts: 1, running: true, ended: None };
        match fact {
            None => first,
            Some(Unpacking { since, attempts, ended: ended @ Some((_, Unpacked::Later(_))), .. })
                if !self.is_late(*since) =>
            {
                Unpacking { since: *since, attempts: attempts.saturating_add(1), ended: ended.clone(), ..first }
            }
            Some(Unpacking { ended, .. }) => Unpacking { ended: ended.clone(), ..first },
        }
    }

    fn deadline(&self, since: Timestamp) -> Option<Timestamp> {
        since.checked_add(self.timeouts.deadline?).ok()
    }

    fn is_late(&self, since: Timestamp) -> bool {
        self.deadline(since).is_some_and(|deadline| deadline <= self.now)
    }

    /// Returns the state, when it may change by itself, and whether to request the image again now.
    fn judge(&self, fact: &Unpacking) -> (State, Option<Timestamp>, bool) {
        let Unpacking { since, attempts, running, ended, .. } = fact;
        let deadline = self.deadline(*since);
        let late = |why: &str| {
            let timeout = self.timeouts.deadline.unwrap_or_default();
            State::Failed("DeadlineExceeded", format!("it was not pulled within {timeout:#}{why}"))
        };
        let due = |at: Option<Timestamp>| !running && at.is_some_and(|at| at <= self.now);
        match ended {
            None if self.is_late(*since) => (late(""), None, false),
            None | Some((_, Unpacked::Content(_))) => (State::Waits(None), deadline, false),
            Some((_, Unpacked::NotGiven(needs))) => (State::NotGiven(needs.clone()), None, false),
            Some((at, Unpacked::Refused(why))) => {
                let next = at.checked_add(self.timeouts.retry).ok();
                (State::Failed("UnpackFailed", why.clone()), next, due(next))
            }
            Some((at, Unpacked::Later(why))) if self.is_late(*since) => {
                let next = deadline.max(Some(*at)).and_then(|at| at.checked_add(self.timeouts.retry).ok());
                (late(&format!(": {why}")), next, due(next))
            }
            Some((at, Unpacked::Later(why))) => {
                let pause = SignedDuration::from_secs(1 << attempts.saturating_sub(1).min(DOUBLINGS));
                let next = at.checked_add(pause).ok();
                let again = if *running { deadline } else { next.min(deadline.or(next)) };
                (State::Waits(Some(why.clone())), again, due(next))
            }
        }
    }
}

fn pending(
    bundle: &str,
    image: &BundleImage,
    now: Timestamp,
    state: State,
    again: Option<Timestamp>,
    begun: Option<Unpacking>,
) -> Box<Pending> {
    let again = again.filter(|at| *at > now);
    let ask = begun.map(|begun| Action::Ask(Question::Unpack { image: image.clone(), begun }));
    let actions = ask.into_iter().collect();
    Box::new(Pending { bundle: bundle.to_owned(), image: image.image.clone(), state, actions, again })
}
