//! `kubectl olm` without arguments: what to do next on this cluster.
//!
//! *Guarantees*: One screen, within `LIMIT`, and never an error: what cannot be read is named.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use olm_core::api::{crd, kinds};
use olm_core::distribution::installation::Installation;
use olm_core::health::Health;

use crate::blocking::block_on;
use crate::cli::connect::connect;
use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::Api;
use crate::cluster::installed::{get_status, held_leases, installed};
use crate::operator::list as operators;

/// The time limit for the cluster. The command must also be fast without one.
const LIMIT: Duration = Duration::from_secs(3);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// There is no kubeconfig.
    NoCluster,
    /// The cluster cannot be read.
    Unreadable(String),
    /// It has no OLM.
    NoOlm,
    /// It has the CRDs of OLM, but no controllers.
    NoControllers,
    /// The controllers of OLM, as described, are stopped, and no others are running.
    Stopped(String),
    /// OLM runs, as described, with this many operators, and this many for which a user has to act.
    Olm { described: String, operators: usize, blocked: usize },
}

/// Prints what to do next.
///
/// # Errors
/// The output cannot be written.
pub fn run(printer: &mut Printer) -> Result<Outcome, CliError> {
    let (send, receive) = mpsc::channel();
    // A thread, because a program that provides credentials can block. It ends with the process.
    thread::spawn(move || drop(send.send(read_cluster())));
    let found = receive
        .recv_timeout(LIMIT)
        .unwrap_or_else(|_| Found::Unreadable(format!("it does not respond within {} s", LIMIT.as_secs())));
    printer.data(text(&found))?;
    Ok(Outcome::Done)
}

fn read_cluster() -> Found {
    let flags = ClusterFlags { request_timeout: Some(LIMIT), ..ClusterFlags::default() };
    match read(&flags) {
        Ok(found) => found,
        Err(error) if error.kind == ErrorKind::NoCluster => Found::NoCluster,
        Err(error) => Found::Unreadable(error.to_string()),
    }
}

fn read(flags: &ClusterFlags) -> Result<Found, CliError> {
    let (has_crds, installations, leases, operators) = block_on(async {
        let api = connect(flags).await?.api;
        let (has_crds, installations, leases, operators) =
            futures::join!(has_crds(&api), installed(&api), held_leases(&api), operators::read(api.clone(), None));
        Ok::<_, CliError>((has_crds?, installations?, leases?, operators))
    })?;
    let (stopped, running): (Vec<_>, Vec<_>) = installations.into_iter().partition(|found| found.stopped);
    let mut described: Vec<String> = running.iter().map(Installation::describe).collect();
    described.extend(leases.iter().map(|lease| format!("kubectl olm run on {}", lease.holder_identity)));
    let stopped = stopped.first().map(Installation::describe);
    Ok(match (has_crds, described.is_empty(), stopped) {
        (false, _, _) => Found::NoOlm,
        (true, true, None) => Found::NoControllers,
        (true, true, Some(stopped)) => Found::Stopped(stopped),
        (true, false, _) => {
            let all = operators::found(&operators?)?;
            let blocked = all.iter().filter(|operator| operator.health == Health::Blocked).count();
            Found::Olm { described: described.join(", "), operators: all.len(), blocked }
        }
    })
}

/// Returns whether the cluster has one of the CRDs of OLM.
async fn has_crds(api: &Api) -> Result<bool, CliError> {
    for name in crd::names() {
        let target = kinds::CUSTOM_RESOURCE_DEFINITION.object("", &name);
        if get_status(api, &target).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the screen.
fn text(found: &Found) -> String {
    let (state, commands): (String, &[(&str, &str)]) = match found {
        Found::NoCluster => ("No cluster is configured: there is no kubeconfig file.".to_owned(), &WITHOUT_CLUSTER),
        Found::Unreadable(why) => (format!("The cluster cannot be read: {why}."), &WITHOUT_ANSWER),
        Found::NoOlm => ("The cluster has no OLM.".to_owned(), &WITHOUT_OLM),
        Found::NoControllers => {
            ("The cluster has the CRDs of OLM, but no controllers are running.".to_owned(), &WITHOUT_CONTROLLERS)
        }
        Found::Stopped(described) => {
            (format!("The cluster has {described}, and no controllers are running."), &STOPPED)
        }
        Found::Olm { described, operators: 0, .. } => {
            (format!("The cluster has {described}, and no operators."), &WITHOUT_OPERATORS)
        }
        Found::Olm { described, operators, blocked: 0 } => (
            format!("The cluster has {described}, and {}. None needs an action.", counted(*operators)),
            &WITH_OPERATORS,
        ),
        Found::Olm { described, operators, blocked } => (
            format!("The cluster has {described}, and {}. {blocked} of them need an action.", counted(*operators)),
            &BLOCKED,
        ),
    };
    let width = commands.iter().chain(&HELP).map(|(command, _)| command.len()).max().unwrap_or_default();
    let line = |(command, what): &(&str, &str)| format!("  kubectl olm {command:width$}   {what}\n");
    let lines: String = commands.iter().chain(&HELP).map(line).collect();
    format!("{state}\n\n{lines}")
}

fn counted(operators: usize) -> String {
    if operators == 1 { "1 operator".to_owned() } else { format!("{operators} operators") }
}

const HELP: [(&str, &str); 1] = [("--help", "List all commands")];
const WITHOUT_CLUSTER: [(&str, &str); 2] = [
    ("run --simulate DIR", "Simulate OLM on a folder of manifests; tests/quickstart in the source code is an example"),
    ("catalog list DIR|IMAGE", "List the packages of a catalog"),
];
const WITHOUT_ANSWER: [(&str, &str); 2] = [
    ("version", "Check the connection; kubectl config current-context prints the context"),
    ("run --simulate DIR", "Simulate OLM on a folder of manifests"),
];
const WITHOUT_OLM: [(&str, &str); 3] = [
    ("install --crds-only", "Install the CRDs of OLM, and then"),
    ("run", "run its controllers on this machine"),
    ("install --help", "Or install OLM in the cluster"),
];
const WITHOUT_CONTROLLERS: [(&str, &str); 2] =
    [("run", "Run the controllers on this machine"), ("status", "Show the state of each object")];
const STOPPED: [(&str, &str); 3] = [
    ("hand-back", "Start the controllers of upstream OLM again"),
    ("run", "Or run the controllers on this machine"),
    ("status", "Show the state of each object"),
];
const WITHOUT_OPERATORS: [(&str, &str); 3] = [
    ("catalog list", "List the packages that can be installed"),
    ("operator install PACKAGE", "Show what an installation would do, and install after a prompt"),
    ("status", "Show the state of OLM and of its catalogs"),
];
const WITH_OPERATORS: [(&str, &str); 4] = [
    ("operator list -A", "List operators and their versions"),
    ("operator outdated -A", "List which of them can be upgraded, and which upgrades are safe"),
    ("operator upgrade NAME -n NAMESPACE", "Upgrade one, after a prompt for each step"),
    ("status", "Show the state of OLM and of its catalogs"),
];
const BLOCKED: [(&str, &str); 2] = [
    ("operator list -A --blocked", "Show why, and the command that helps"),
    ("status", "Show the state of OLM and of its catalogs"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_fits_on_a_screen_and_names_a_next_command() {
        let olm = |operators, blocked| Found::Olm {
            described: "upstream OLM v1 in namespace olm".to_owned(),
            operators,
            blocked,
        };
        for (found, command) in [
            (Found::NoCluster, "run --simulate DIR"),
            (Found::Unreadable("it does not respond within 3 s".to_owned()), "version"),
            (Found::NoOlm, "install --crds-only"),
            (Found::NoControllers, "run"),
            (Found::Stopped("upstream OLM v1 in namespace olm (stopped)".to_owned()), "hand-back"),
            (olm(0, 0), "catalog list"),
            (olm(2, 0), "operator list -A"),
            (olm(2, 1), "operator list -A --blocked"),
        ] {
            let screen = text(&found);
            assert!(screen.lines().count() < 24, "{screen}");
            assert!(screen.contains(&format!("\n\n  kubectl olm {command}  ")), "{screen}");
            assert!(screen.ends_with("   List all commands\n"), "{screen}");
        }
    }
}
