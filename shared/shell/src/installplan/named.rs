//! Which InstallPlans are meant, and how they are told from each other.

use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::object;
use serde_json::Value;

use crate::cli::table;

/// What nobody knows.
const UNKNOWN: &str = "<unknown>";

/// How long an object has been there, as kubectl shows it.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    let created = object::parse_time(object::text(object, &["metadata", "creationTimestamp"]));
    let since = created.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
    since.map_or_else(|| UNKNOWN.to_owned(), table::age)
}
