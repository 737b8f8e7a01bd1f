//! Decides when a state of an operator is final: when it cannot end without a user's action.
//!
//! Controllers leave many failures by themselves: every catalog is in error after a restart until it is read, the
//! resolution fails for a moment during ordinary upgrades, and failed ClusterServiceVersions are retried
//! (olm-behaviour/subscription.md#resolution, olm-behaviour/csv.md#transitions). So a failure is final only if it lasts, or if it
//! is the result of something that was observed to end.

use std::time::Duration;

use super::{Health, Operator};
use crate::api::cluster_service_version::reason;
use crate::plan::Reason;

/// How long a failure lasts until it is final. Longer than a controller of OLM needs to read a catalog, or to mark a replaced
/// ClusterServiceVersion.
const LASTS: Duration = Duration::from_secs(15);

/// The same for a catalog that does not respond: its pod may be replaced by that of a newer image.
const CATALOG_LASTS: Duration = Duration::from_secs(45);

/// Reasons of a failed ClusterServiceVersion that no controller resolves: each needs another OperatorGroup, other
/// permissions, or another bundle.
const PERMANENT: [&str; 12] = [
    reason::CONFLICT,
    reason::INVALID_INSTALL_STRATEGY,
    reason::INVALID_WEBHOOK_DESCRIPTION,
    reason::NO_OPERATOR_GROUP,
    reason::NO_RETRY,
    reason::NO_TARGET_NAMESPACES,
    reason::OWNER_CONFLICT,
    reason::STATIC_PROVIDED_APIS,
    reason::TOO_MANY_OPERATOR_GROUPS,
    reason::UNSUPPORTED_OPERATOR_GROUP,
    "InvalidInstallModes",
    "InvalidStrategy",
];

/// Returns whether a ClusterServiceVersion that failed for this reason stays so until a user changes something.
pub fn is_permanent(why: &str) -> bool {
    PERMANENT.contains(&why)
}

/// Follows the states of one operator, and decides when one is final.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    /// Whether a catalog that does not respond is a failure.
    needs_catalog: bool,
    /// Whether any state was observed.
    is_started: bool,
    failing: Option<Failing>,
}

/// A failure that is observed.
#[derive(Clone, Debug)]
struct Failing {
    /// Which failure it is: its message may change.
    key: String,
    /// When it was observed first.
    since: Duration,
    /// Since when it is not observed.
    left: Option<Duration>,
}

impl Patience {
    /// Returns one that also counts a catalog that does not respond as a failure.
    pub fn needing_catalog() -> Self {
        Self { needs_catalog: true, ..Self::default() }
    }

    /// Returns the time from which the state is final; `None` if it can end without a user's action. `now` is the time of the
    /// observation, on any clock that does not go back.
    pub fn final_at(&mut self, operator: Option<&Operator>, now: Duration) -> Option<Duration> {
        let is_first = !std::mem::replace(&mut self.is_started, true);
        let failure = operator.and_then(|operator| self.failure(operator));
        let Some((reason, lasts)) = failure else {
            if let Some(failing) = &mut self.failing {
                failing.left.get_or_insert(now);
            }
            return None;
        };
        let key = key(reason);
        let is_back = |failing: &&mut Failing| {
            failing.key == key && failing.left.is_none_or(|left| now.saturating_sub(left) <= lasts)
        };
        // Controllers alternate between failure and retry.
        let since = match self.failing.as_mut().filter(|failing| is_back(failing)) {
            Some(failing) => {
                failing.left = None;
                failing.since
            }
            None => {
                let is_result = !is_first && is_result(reason);
                let since = if is_result { now.saturating_sub(lasts) } else { now };
                self.failing = Some(Failing { key, since, left: None });
                if is_result {
                    return Some(now);
                }
                since
            }
        };
        Some(since + lasts)
    }

    /// Returns the failure of an operator, and how long it has to last.
    fn failure<'o>(&self, operator: &'o Operator) -> Option<(&'o Reason, Duration)> {
        let reason = operator.reason.as_ref()?;
        match reason {
            Reason::CatalogNotReady { .. } if self.needs_catalog => Some((reason, CATALOG_LASTS)),
            // Another operator, or a step of the same InstallPlan, may provide what is missing.
            _ if operator.health != Health::Blocked || reason.is_of_requirements() => None,
            Reason::ApprovalNeeded { .. } | Reason::InstallPlanRetries { .. } => None,
            _ => Some((reason, LASTS)),
        }
    }
}

/// Returns whether the failure is the end of an attempt, which takes minutes: nothing is expected to follow.
fn is_result(reason: &Reason) -> bool {
    match reason {
        Reason::InstallPlanFailed { .. } => true,
        Reason::CsvFailed { failure_reason, .. } => {
            [self::reason::INSTALL_CHECK_FAILED, self::reason::NO_RETRY].contains(&failure_reason.as_str())
        }
        _ => false,
    }
}

/// Returns what identifies a failure.
fn key(reason: &Reason) -> String {
    match reason {
        Reason::Unsatisfiable { .. } => "resolution".to_owned(),
        Reason::BundleUnpackFailed { .. } => "unpack".to_owned(),
        Reason::CatalogNotReady { namespace, name, .. } => format!("catalog/{namespace}/{name}"),
        Reason::InstallPlanFailed { name, .. } => format!("plan/{name}"),
        Reason::CsvFailed { name, .. } => format!("csv/{name}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(reason: Option<Reason>) -> Operator {
        let health = match &reason {
            Some(Reason::CatalogNotReady { .. } | Reason::NotHealthy { .. }) => Health::Progressing,
            Some(_) => Health::Blocked,
            None => Health::Healthy,
        };
        Operator {
            namespace: "garden".to_owned(),
            name: "rose".to_owned(),
            subscribed: true,
            package: "rose".to_owned(),
            channel: String::new(),
            catalog: "olm/market".to_owned(),
            approval: "Manual".to_owned(),
            installed: None,
            next: None,
            install_plan: String::new(),
            health,
            reason,
            command: None,
        }
    }

    fn unsatisfiable(message: &str) -> Operator {
        operator(Some(Reason::Unsatisfiable { namespace: "garden".to_owned(), message: message.to_owned() }))
    }

    fn failed(why: &str) -> Operator {
        let (namespace, name) = ("garden".to_owned(), "rose.v1".to_owned());
        operator(Some(Reason::CsvFailed { namespace, name, failure_reason: why.to_owned(), message: String::new() }))
    }

    fn waits() -> Operator {
        let (namespace, name) = ("garden".to_owned(), "rose.v1".to_owned());
        operator(Some(Reason::NotHealthy { namespace, name, message: String::new() }))
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_failure_is_final_if_it_lasts() {
        let mut patience = Patience::default();
        assert_eq!(patience.final_at(None, at(0)), None);
        assert_eq!(patience.final_at(Some(&unsatisfiable("a")), at(10)), Some(at(25)));
        assert_eq!(patience.final_at(Some(&unsatisfiable("b")), at(20)), Some(at(25)), "only the message differs");
        assert_eq!(patience.final_at(Some(&operator(None)), at(22)), None, "it was transient");
        assert_eq!(patience.final_at(Some(&unsatisfiable("a")), at(60)), Some(at(75)), "another failure");
    }

    #[test]
    fn a_failure_that_alternates_with_retries_is_final() {
        let mut patience = Patience::default();
        let mut last = None;
        for second in 0..8 {
            last = patience.final_at(Some(&failed(reason::OWNER_CONFLICT)), at(2 * second));
            assert_eq!(patience.final_at(Some(&waits()), at(2 * second + 1)), None);
        }
        assert_eq!(last, Some(at(15)));
    }

    #[test]
    fn the_end_of_an_attempt_is_final_only_if_it_was_observed() {
        let mut patience = Patience::default();
        assert_eq!(patience.final_at(Some(&failed(reason::INSTALL_CHECK_FAILED)), at(3)), Some(at(18)), "of the past");
        let mut patience = Patience::default();
        assert_eq!(patience.final_at(Some(&waits()), at(0)), None);
        assert_eq!(patience.final_at(Some(&failed(reason::INSTALL_CHECK_FAILED)), at(300)), Some(at(300)));
        assert_eq!(patience.final_at(Some(&failed(reason::INSTALL_CHECK_FAILED)), at(301)), Some(at(300)));
        let mut patience = Patience::default();
        assert_eq!(patience.final_at(Some(&waits()), at(0)), None);
        assert_eq!(patience.final_at(Some(&failed(reason::COMPONENT_UNHEALTHY)), at(5)), Some(at(20)), "it is retried");
    }

    #[test]
    fn what_others_can_resolve_is_never_final() {
        let (namespace, name) = ("garden".to_owned(), "market".to_owned());
        let catalog =
            operator(Some(Reason::CatalogNotReady { namespace, name, state: "TRANSIENT_FAILURE".to_owned() }));
        assert_eq!(Patience::default().final_at(Some(&catalog), at(1)), None);
        assert_eq!(Patience::needing_catalog().final_at(Some(&catalog), at(1)), Some(at(46)));
        let plan =
            Reason::ApprovalNeeded { namespace: "garden".to_owned(), name: "install-a".to_owned(), csvs: Vec::new() };
        assert_eq!(Patience::default().final_at(Some(&operator(Some(plan))), at(1)), None);
    }
}
