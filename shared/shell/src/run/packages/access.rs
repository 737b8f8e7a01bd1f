//! The user of a request, and whether the API server authorizes the user. Decisions are remembered for a short time, as in Kubernetes' own
//! aggregated API servers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use olm_core::api::status::Status;
use olm_core::packages::serve::front_proxy::{Attributes, FrontProxy, User, is_allowed};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::cluster::api::Api;

/// How long a decision is valid.
const VALID: Duration = Duration::from_secs(10);
/// The maximum number of remembered decisions.
const DECISIONS: usize = 4096;
/// The maximum number of concurrent reviews.
const REVIEWS: usize = 16;
/// How long a request waits for its review.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Decides who may send which request.
pub(super) struct Access {
    api: Api,
    front_proxy: watch::Receiver<FrontProxy>,
    decisions: Mutex<BTreeMap<(User, Attributes), (Instant, bool)>>,
    slots: Semaphore,
}

impl Access {
    pub(super) fn new(api: Api, front_proxy: watch::Receiver<FrontProxy>) -> Self {
        Self {
            api: api.with_timeout(TIMEOUT),
            front_proxy,
            decisions: Mutex::default(),
            slots: Semaphore::new(REVIEWS),
        }
    }

    /// Returns the user of a request by the owner of its client certificate.
    ///
    /// # Errors
    /// 401.
    pub(super) fn user(&self, common_name: &str, headers: &http::HeaderMap) -> Result<User, Status> {
        // Headers whose value is not text name no user.
        let texts = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let texts: Vec<(&str, &str)> = texts.collect();
        self.front_proxy.borrow().user(common_name, texts.iter().copied())
    }

    /// Checks that the user has the permission.
    ///
    /// # Errors
    /// 403, or 500 if the API server does not decide.
    pub(super) async fn require(&self, user: User, attributes: Attributes) -> Result<(), Status> {
        if user.is_master() {
            return Ok(());
        }
        let key = (user, attributes);
        let known =
            self.decisions().get(&key).filter(|(until, _)| *until > Instant::now()).map(|(_, allowed)| *allowed);
        let allowed = match known {
            Some(allowed) => allowed,
            None => {
                let allowed = self.review(&key.0, &key.1).await?;
                self.remember(key.clone(), allowed);
                allowed
            }
        };
        if allowed { Ok(()) } else { Err(key.0.forbidden(&key.1)) }
    }

    async fn review(&self, user: &User, attributes: &Attributes) -> Result<bool, Status> {
        let asked = async {
            // The semaphore is never closed.
            let _slot = self.slots.acquire().await;
            self.api.create(&user.review(attributes)).await
        };
        let refusal = match tokio::time::timeout(TIMEOUT, asked).await {
            Ok(Ok(review)) => return Ok(is_allowed(&review)),
            Ok(Err(refusal)) => refusal.to_string(),
            Err(_) => format!("no response within {} s", TIMEOUT.as_secs()),
        };
        tracing::warn!("cannot authorize a request for PackageManifests: creating a SubjectAccessReview: {refusal}");
        Err(Status::new(500, "InternalError", "Internal error occurred: the request cannot be authorized"))
    }

    fn remember(&self, key: (User, Attributes), allowed: bool) {
        let (mut decisions, now) = (self.decisions(), Instant::now());
        if decisions.len() >= DECISIONS {
            decisions.retain(|_, (until, _)| *until > now);
        }
        if decisions.len() >= DECISIONS {
            decisions.clear();
        }
        decisions.insert(key, (now + VALID, allowed));
    }

    fn decisions(&self) -> std::sync::MutexGuard<'_, BTreeMap<(User, Attributes), (Instant, bool)>> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
