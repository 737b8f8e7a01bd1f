//! When the registry is checked for a changed image tag: `spec.updateStrategy.registryPoll`
//! (olm-behaviour/catalogsource.md#catalog-polling).

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::catalog_source::CatalogSource;
use crate::api::object;
use crate::go_format::duration;

const DEFAULT: SignedDuration = SignedDuration::from_mins(15);

/// The polling that a CatalogSource specifies.
#[derive(Debug, PartialEq)]
pub(super) enum Poll {
    /// No polling.
    No,
    /// An invalid specification.
    Invalid(&'static str),
    /// Polling at an interval.
    Every {
        /// Set when the interval is invalid and the default is used.
        problem: Option<String>,
        /// When the registry is checked next.
        due: Timestamp,
        /// Delay until the CatalogSource is planned again.
        delay: SignedDuration,
    },
}

/// Returns the polling that a CatalogSource specifies, at this time.
pub(super) fn read(source: &Value, now: Timestamp) -> Poll {
    let poll = object::at(source, &["spec", "updateStrategy", "registryPoll"]);
    let view = CatalogSource::new(source);
    let is_image = view.source_type() == "grpc" && !view.image().is_empty();
    if poll.is_null() || !is_image {
        return Poll::No;
    }
    let Some(text) = poll.get("interval").and_then(Value::as_str) else {
        return Poll::Invalid(
            "empty polling interval; cannot requeue registry server sync without a provided polling interval",
        );
    };
    let (interval, problem) = match duration(text) {
        Ok(interval) => (interval, None),
        Err(e) => {
            let problem = format!(
                "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: {e}"
            );
            (DEFAULT, Some(problem))
        }
    };
    let time = |path: &[&str]| object::parse_time(object::text(source, path));
    let last = time(&["status", "latestImageRegistryPoll"]).or_else(|| time(&["metadata", "creationTimestamp"]));
    // A timestamp that overflows is due now.
    let due = last.unwrap_or(now).checked_add(interval).unwrap_or(now);
    let left = due.duration_since(now);
    let delay = if interval <= DEFAULT { left } else { left.min(DEFAULT) };
    Poll::Every { problem, due, delay: delay.max(SignedDuration::from_secs(1)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_image_is_due_an_interval_after_its_creation_or_last_poll() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let source = |interval: Value, polled: Option<&str>| {
            json!({
                "metadata": { "creationTimestamp": "2026-01-01T00:00:00Z" },
                "spec": { "sourceType": "grpc", "image": "i", "updateStrategy": { "registryPoll": interval } },
                "status": { "latestImageRegistryPoll": polled },
            })
        };
        let every = |due: &str, minutes| Poll::Every {
            problem: None,
            due: due.parse().unwrap(),
            delay: SignedDuration::from_mins(minutes),
        };
        assert_eq!(read(&source(json!({ "interval": "90m" }), None), now), every("2026-01-01T01:30:00Z", 15));
        assert_eq!(
            read(&source(json!({ "interval": "10m" }), Some("2026-01-01T00:55:00Z")), now),
            every("2026-01-01T01:05:00Z", 5)
        );
        assert!(matches!(read(&source(json!({}), None), now), Poll::Invalid(_)));
        assert!(matches!(read(&source(json!({ "interval": "" }), None), now), Poll::Every { problem: Some(_), .. }));
        assert_eq!(read(&source(Value::Null, None), now), Poll::No);
    }
}
