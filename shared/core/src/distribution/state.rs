//! The state of an object of an installation, compared with its manifest.

use serde::Serialize;
use serde_json::Value;

use super::RELEASE;
use crate::api::catalog_source::CatalogSource;
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::conditions::{AVAILABLE, Condition, Conditions};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::object;
use crate::health::finality::is_permanent;
use crate::health::workload::{self, Rollout};
use crate::world::ConnectionState;

/// The state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum State {
    /// It exists, as in the manifest if there is one, and nothing is wrong.
    Present,
    /// It does not exist.
    Absent,
    /// It differs from the manifest.
    Changed,
    /// It is not ready.
    Unhealthy,
    /// It is being deleted.
    Deleting,
}

impl State {
    /// Returns the word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "Present",
            Self::Absent => "Absent",
            Self::Changed => "Changed",
            Self::Unhealthy => "Unhealthy",
            Self::Deleting => "Deleting",
        }
    }
}

/// Whether an object is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is ready, or its kind has no readiness.
    Healthy,
    /// It is not ready yet.
    Waiting(String),
    /// It cannot become ready without a change.
    Failed(String),
}

/// Returns the state of an object, with a message. `desired` is its manifest, if known.
pub fn state(desired: Option<&Value>, actual: Option<&Value>) -> (State, String) {
    let Some(actual) = actual else { return (State::Absent, String::new()) };
    if object::is_deleting(actual) {
        return (State::Deleting, remaining(actual));
    }
    match (health(actual), desired) {
        (Health::Waiting(why) | Health::Failed(why), _) => (State::Unhealthy, why),
        (Health::Healthy, Some(desired)) => match difference(actual, desired) {
            Some(path) => (State::Changed, format!("{path} differs from the manifest")),
            None => (State::Present, String::new()),
        },
        (Health::Healthy, None) => (State::Present, String::new()),
    }
}

/// Returns whether an object works.
pub fn health(object: &Value) -> Health {
    let conditions = Conditions::new(object);
    match object::kind(object) {
        "Deployment" => deployment(object),
        "ClusterServiceVersion" => csv(Csv::new(object)),
        "CustomResourceDefinition" if !CustomResourceDefinition::new(object).is_established() => {
            Health::Waiting("the API server does not serve it yet".to_owned())
        }
        "APIService" if !conditions.is_true(AVAILABLE) => {
            let message = conditions.find(AVAILABLE).map(|condition| condition.message().to_owned());
            Health::Waiting(message.unwrap_or_else(|| "it is not available yet".to_owned()))
        }
        "CatalogSource" => catalog(object),
        _ => Health::Healthy,
    }
}

fn deployment(object: &Value) -> Health {
    let rollout = workload::rollout(object);
    match &rollout {
        Rollout::Complete => Health::Healthy,
        Rollout::Stuck { .. } => Health::Failed(rollout.to_string()),
        Rollout::ScaledToZero | Rollout::NotStarted | Rollout::Waiting { .. } => Health::Waiting(rollout.to_string()),
    }
}

fn csv(csv: Csv<'_>) -> Health {
    match csv.phase() {
        Phase::Succeeded => Health::Healthy,
        Phase::Failed if is_permanent(csv.reason()) => Health::Failed(format!("{}: {}", csv.reason(), csv.message())),
        Phase::Failed => Health::Waiting(format!("Failed: {}: {}", csv.reason(), csv.message())),
        _ if csv.phase_text().is_empty() => Health::Waiting("no controller has processed it".to_owned()),
        _ => Health::Waiting(format!("{}: {}", csv.phase_text(), csv.message())),
    }
}

fn catalog(object: &Value) -> Health {
    match CatalogSource::new(object).connection_state() {
        state if state == ConnectionState::Ready.as_str() => Health::Healthy,
        // Catalogs in ConfigMaps, and those that the controllers of this project read directly, have no connection.
        "" => match object::text(object, &["status", "message"]) {
            "" => Health::Healthy,
            message => Health::Waiting(message.to_owned()),
        },
        state => Health::Waiting(state.to_owned()),
    }
}

/// Returns what a deletion waits for.
pub fn remaining(object: &Value) -> String {
    let finalizers: Vec<&str> =
        object::list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect();
    let conditions = Conditions::new(object);
    let stuck: Vec<&str> = conditions
        .iter()
        .filter(|condition| condition.is_true())
        .filter(|condition| condition.of_type().starts_with("Namespace") || condition.of_type() == "Terminating")
        .map(Condition::message)
        .collect();
    match (stuck.is_empty(), finalizers.is_empty()) {
        (false, _) => stuck.join("; "),
        (true, false) => format!("it has the finalizers {}", finalizers.join(", ")),
        (true, true) => String::new(),
    }
}

/// Returns the path of the first field that differs from the manifest. Fields that the manifest does not contain are not compared.
pub fn difference(actual: &Value, desired: &Value) -> Option<String> {
    let mut path = String::new();
    differs(actual, desired, &mut path).then(|| path.trim_start_matches('.').to_owned())
}

fn differs(actual: &Value, desired: &Value, path: &mut String) -> bool {
    let before = path.len();
    let found = match (actual, desired) {
        (Value::Object(actual), Value::Object(desired)) => desired.iter().any(|(key, d)| {
            path.truncate(before);
            // Another release is reported as such.
            if key == RELEASE && path == ".metadata.labels" {
                return false;
            }
            path.push('.');
            path.push_str(key);
            match actual.get(key) {
                Some(a) => differs(a, d, path),
                None => {
                    !object::covers(&Value::Object(serde_json::Map::new()), &serde_json::json!({ "value": d }))
                        && d != ""
                }
            }
        }),
        (Value::Array(actual), Value::Array(desired)) if actual.len() == desired.len() => {
            actual.iter().zip(desired).enumerate().any(|(n, (a, d))| {
                path.truncate(before);
                path.push_str(&format!("[{n}]"));
                differs(a, d, path)
            })
        }
        (actual, desired) => !desired.is_null() && actual != desired,
    };
    if !found {
        path.truncate(before);
    }
    found
}
