//! `kubectl olm operator wait`: waits until an operator is installed, upgradable or gone.

use std::str::FromStr;
use std::time::Duration;

use olm_core::api::cluster_service_version::Phase;
use olm_core::health::{Health, Operator};
use olm_core::version::{self, Range};

use super::upgrade::range as range_from;
use super::watch::{Judgement, OperatorWatch, Progress, terminal, until};
use crate::blocking::block_on;
use crate::cli::connect::connect_in;
use crate::cli::flags::ClusterFlags;
use crate::cli::name::bare;
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
        let mut watch = OperatorWatch::new(&api, &namespace);
        let mut progress = Progress::default();
        let condition = &options.condition;
        until(&mut watch, options.timeout, &name, &condition.word(), printer, |watch, printer| {
            let operator = watch.operator(&name);
            progress.report(&name, operator.as_ref(), printer);
            judge(condition, operator.as_ref())
        })
        .await?;
        printer.line(format_args!("operator/{name} {}", condition.word()))?;
        Ok(Outcome::Done)
    })
}

fn judge(condition: &Condition, operator: Option<&Operator>) -> Judgement<()> {
    let running = || {
        let installed = operator.and_then(|operator| operator.installed.as_ref());
        installed.filter(|version| version.phase == Phase::Succeeded.as_str())
    };
    let holds = match condition {
        Condition::Deleted => operator.is_none(),
        Condition::Installed => {
            running().is_some() && operator.is_some_and(|o| matches!(o.health, Health::Healthy | Health::Upgradable))
        }
        Condition::Upgradable => operator.is_some_and(|operator| operator.health == Health::Upgradable),
        Condition::Version(range) => {
            running().is_some_and(|installed| version::parse(&installed.version).is_ok_and(|v| range.contains(&v)))
        }
    };
    match operator {
        _ if holds => Judgement::Reached(()),
        Some(operator) if !matches!(condition, Condition::Deleted) => {
            terminal(operator).map_or(Judgement::NotYet, Judgement::Never)
        }
        _ => Judgement::NotYet,
    }
}
