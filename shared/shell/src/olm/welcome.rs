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
    /// It has the CRDs of OLM.
    Olm(Olm),
}

/// The OLM of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Olm {
    /// The controllers that are running, as described.
    running: Vec<String>,
    /// The installations whose controllers are stopped, as described.
    stopped: Vec<String>,
    /// The number of operators.
    operators: usize,
    /// The number of operators for which a user has to act.
    blocked: usize,
    /// The number of operators that run, and whose upgrade waits for approval.
    upgradable: usize,
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
    if !has_crds {
        return Ok(Found::NoOlm);
    }
    let (stopped, running): (Vec<_>, Vec<_>) = installations.into_iter().partition(|found| found.stopped);
    let describe = |found: &[Installation]| found.iter().map(Installation::describe).collect::<Vec<_>>();
    let mut olm = Olm { running: describe(&running), stopped: describe(&stopped), ..Olm::default() };
    olm.running.extend(leases.iter().map(|lease| format!("kubectl olm run on {}", lease.holder_identity)));
    let all = operators::found(&operators?)?;
    let count = |health: Health| all.iter().filter(|operator| operator.health == health).count();
    Ok(Found::Olm(Olm {
        operators: all.len(),
        blocked: count(Health::Blocked),
        upgradable: count(Health::Upgradable),
        ..olm
    }))
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
        Found::Olm(olm) => (olm.state(), olm.commands()),
    };
    let width = commands.iter().chain(&HELP).map(|(command, _)| command.len()).max().unwrap_or_default();
    let line = |(command, what): &(&str, &str)| format!("  kubectl olm {command:width$}   {what}\n");
    let lines: String = commands.iter().chain(&HELP).map(line).collect();
    format!("{state}\n\n{lines}")
}

impl Olm {
    /// Returns sentences about the controllers and the operators.
    fn state(&self) -> String {
        let operators = match self.operators {
            0 => "no operators".to_owned(),
            1 => "1 operator".to_owned(),
            count => format!("{count} operators"),
        };
        let present: Vec<&str> = self.running.iter().chain(&self.stopped).map(String::as_str).collect();
        if self.running.is_empty() {
            let olm = if present.is_empty() { "the CRDs of OLM".to_owned() } else { present.join(", ") };
            let consequence = match self.operators {
                0 => "",
                1 => ": nothing installs, upgrades or repairs it",
                _ => ": nothing installs, upgrades or repairs them",
            };
            return format!("The cluster has {olm} and {operators}. No controllers are running{consequence}.");
        }
        let state = format!("The cluster has {}, and {operators}.", present.join(", "));
        let approval = match self.upgradable {
            0 => String::new(),
            1 => " 1 upgrade waits for approval.".to_owned(),
            count => format!(" {count} upgrades wait for approval."),
        };
        match (self.operators, self.blocked) {
            (0, _) => state,
            (_, 0) if self.upgradable > 0 => format!("{state}{approval}"),
            (1, 0) => format!("{state} It needs no action."),
            (_, 0) => format!("{state} None needs an action."),
            (1, _) => format!("{state} It needs an action."),
            (_, 1) => format!("{state} 1 of them needs an action.{approval}"),
            (_, blocked) => format!("{state} {blocked} of them need an action.{approval}"),
        }
    }

    fn commands(&self) -> &'static [(&'static str, &'static str)] {
        match (self.running.is_empty(), self.stopped.is_empty()) {
            (true, true) => &WITHOUT_CONTROLLERS,
            (true, false) => &STOPPED,
            _ if self.operators == 0 => &WITHOUT_OPERATORS,
            _ if self.blocked > 0 => &BLOCKED,
            _ if self.upgradable > 0 => &UPGRADABLE,
            _ => &WITH_OPERATORS,
        }
    }
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
const UPGRADABLE: [(&str, &str); 3] = [
    ("operator list -A", "List operators, the versions that wait, and the command that continues"),
    ("operator upgrade NAME -n NAMESPACE", "Show what an upgrade changes, and approve it after a prompt"),
    ("status", "Show the state of OLM and of its catalogs"),
];
const BLOCKED: [(&str, &str); 2] = [
    ("operator list -A --blocked", "Show why, and the command that helps"),
    ("status", "Show the state of OLM and of its catalogs"),
];

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAM: &str = "upstream OLM v1 in namespace olm";

    fn olm(operators: usize, blocked: usize, upgradable: usize) -> Olm {
        Olm { running: vec![UPSTREAM.to_owned()], stopped: Vec::new(), operators, blocked, upgradable }
    }

    fn without_controllers(operators: usize, stopped: &[&str]) -> Olm {
        let stopped = stopped.iter().map(|text| (*text).to_owned()).collect();
        Olm { running: Vec::new(), stopped, ..olm(operators, 0, 0) }
    }

    #[test]
    fn each_state_fits_on_a_screen_and_names_a_next_command() {
        for (found, command) in [
            (Found::NoCluster, "run --simulate DIR"),
            (Found::Unreadable("it does not respond within 3 s".to_owned()), "version"),
            (Found::NoOlm, "install --crds-only"),
            (Found::Olm(without_controllers(2, &[])), "run"),
            (Found::Olm(without_controllers(2, &["upstream OLM v1 in namespace olm (stopped)"])), "hand-back"),
            (Found::Olm(olm(0, 0, 0)), "catalog list"),
            (Found::Olm(olm(2, 0, 0)), "operator list -A"),
            (Found::Olm(olm(2, 0, 1)), "operator list -A"),
            (Found::Olm(olm(2, 1, 1)), "operator list -A --blocked"),
        ] {
            let screen = text(&found);
            assert!(screen.lines().count() < 24, "{screen}");
            assert!(screen.contains(&format!("\n\n  kubectl olm {command}  ")), "{screen}");
            assert!(screen.ends_with("   List all commands\n"), "{screen}");
        }
    }

    #[test]
    fn approvals_stopped_controllers_and_unmanaged_operators_are_stated() {
        let has = |rest: &str| format!("The cluster has upstream OLM v1 in namespace olm, and {rest}");
        for (olm, expected) in [
            (olm(0, 0, 0), has("no operators.")),
            (olm(1, 0, 0), has("1 operator. It needs no action.")),
            (olm(2, 0, 0), has("2 operators. None needs an action.")),
            (olm(2, 0, 1), has("2 operators. 1 upgrade waits for approval.")),
            (olm(3, 1, 2), has("3 operators. 1 of them needs an action. 2 upgrades wait for approval.")),
            (
                without_controllers(1, &[]),
                "The cluster has the CRDs of OLM and 1 operator. No controllers are running: nothing installs, upgrades or repairs it."
                    .to_owned(),
            ),
            (
                without_controllers(0, &["upstream OLM v1 in namespace olm (stopped)"]),
                "The cluster has upstream OLM v1 in namespace olm (stopped) and no operators. No controllers are running."
                    .to_owned(),
            ),
        ] {
            assert_eq!(olm.state(), expected);
        }
        let beside = Olm {
            running: vec!["kubectl-olm v1 in namespace olm".to_owned()],
            stopped: vec!["upstream OLM v1 (stopped)".to_owned()],
            ..olm(2, 0, 0)
        };
        assert!(beside.state().starts_with(
            "The cluster has kubectl-olm v1 in namespace olm, upstream OLM v1 (stopped), and 2 operators."
        ));
    }
}
