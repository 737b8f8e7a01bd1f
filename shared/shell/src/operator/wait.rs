//! `kubectl olm operator wait`: waits until an operator is installed, upgradable or deleted.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use olm_core::api::cluster_service_version::Phase;
use olm_core::health::{Health, Operator};
use olm_core::version::{self, Range};
use serde_json::json;

use super::awaiting::{Follower, Judgement};
use super::list::document;
use super::upgrade::range as range_from;
use crate::blocking::block_on;
use crate::cli::connect::connect_in;
use crate::cli::flags::ClusterFlags;
use crate::cli::name::bare;
use crate::cli::output::{API_VERSION, Output};
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};

/// The condition to wait for.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Its ClusterServiceVersion is Succeeded, and nothing is being installed.
    Installed,
    /// An upgrade waits for approval.
    Upgradable,
    /// A version in the range is Succeeded.
    Version(Range),
    /// It does not exist.
    Deleted,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "installed" => Ok(Self::Installed),
            "upgradable" => Ok(Self::Upgradable),
            "delete" | "deleted" => Ok(Self::Deleted),
            other => {
                let range =
                    other.strip_prefix("version=").ok_or("expected installed, upgradable, deleted or version=RANGE")?;
                range_from(range).map(Self::Version)
            }
        }
    }
}

impl fmt::Display for Condition {
    /// Writes the condition as it is given on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Installed => f.write_str("installed"),
            Self::Upgradable => f.write_str("upgradable"),
            Self::Deleted => f.write_str("deleted"),
            Self::Version(range) => write!(f, "version={range}"),
        }
    }
}

impl Condition {
    /// Returns the condition as a participle.
    fn word(&self) -> String {
        match self {
            Self::Installed => "installed".to_owned(),
            Self::Upgradable => "upgradable".to_owned(),
            Self::Deleted => "deleted".to_owned(),
            Self::Version(range) => format!("installed in version {range}"),
        }
    }
}

/// What to wait for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// The namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// The name of the operator.
    pub name: String,
    /// The condition.
    pub condition: Condition,
    /// How long to wait; `None` for as long as the condition can still hold.
    pub timeout: Option<Duration>,
    /// The output format.
    pub output: Output,
}

/// Waits for the condition.
///
/// # Errors
/// The objects cannot be read, the condition can no longer hold without a user's action, the time is up, or the wait was
/// interrupted.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let name = bare(&options.name, "subscription")?.to_owned();
    block_on(async {
        let (api, namespace) = connect_in(&options.cluster, options.namespace.as_deref()).await?;
        let mut follower = Follower::new(&api, &namespace, &name);
        let condition = &options.condition;
        let judge = |operator: Option<Operator>| judge(condition, operator);
        let operator = follower.until(options.timeout, &condition.word(), printer, judge).await?;
        match &options.output {
            Output::Table | Output::Wide => printer.line(format_args!("operator/{name} {}", condition.word()))?,
            Output::Name => printer.line(format_args!("operator/{name}"))?,
            output => {
                let document = json!({
                    "apiVersion": API_VERSION, "kind": "OperatorWait", "namespace": namespace, "name": name,
                    "condition": condition.to_string(), "operator": operator.as_ref().map(|one| document(one, None)),
                });
                output.object(printer, &document, || Table::new([]))?;
            }
        }
        Ok(Outcome::Done)
    })
}

fn judge(condition: &Condition, operator: Option<Operator>) -> Judgement<Option<Operator>> {
    let running = || {
        let installed = operator.as_ref().and_then(|operator| operator.installed.as_ref());
        installed.filter(|version| version.phase == Phase::Succeeded.as_str())
    };
    let health = operator.as_ref().map(|operator| operator.health);
    let holds = match condition {
        Condition::Deleted => operator.is_none(),
        Condition::Installed => running().is_some() && matches!(health, Some(Health::Healthy | Health::Upgradable)),
        Condition::Upgradable => health == Some(Health::Upgradable),
        Condition::Version(range) => {
            running().is_some_and(|installed| version::parse(&installed.version).is_ok_and(|v| range.contains(&v)))
        }
    };
    match condition {
        _ if holds => Judgement::Reached(operator),
        Condition::Deleted => Judgement::NotYet,
        _ => Judgement::UnlessFinal,
    }
}
