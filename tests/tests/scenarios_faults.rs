//! Connection failures lose nothing: an installation on a real control plane in which every other call of the controllers fails
//! must end with the same objects. In each run a call fails in a different way, so that each call fails in every way.
//! Differences that are permitted only here are in `differences.yaml`, as `engine: faults`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Trial};
use olm_tests::control_plane;
use olm_tests::faulty_api::{Call, Fault};
use olm_tests::scenario::cluster::ClusterEngine;
use olm_tests::scenario::differences::wanted;
use olm_tests::scenario::engine::Engine as _;
use olm_tests::scenario::runner::Run;
use olm_tests::scenario::{all, judge};

/// A ClusterServiceVersion with a CRD, RBAC and a Deployment.
const SCENARIO: &str = "install-automatic";

/// The request timeout, which every call without a response costs.
const REQUEST_TIMEOUT: &str = "--request-timeout=2s";

/// Calls that must have failed, because the test covers less otherwise.
const FAILS: [(&str, &str); 10] = [
    ("create", "installplans"),
    ("update", "installplans"),
    ("update", "subscriptions"),
    ("create", "clusterserviceversions"),
    ("update", "clusterserviceversions"),
    ("create", "customresourcedefinitions"),
    ("create", "serviceaccounts"),
    ("create", "roles"),
    ("create", "rolebindings"),
    ("create", "deployments"),
];

fn ways() -> [(&'static str, Fault); 6] {
    let refused = |code, reason: &str| {
        let message = format!("{reason} it is");
        Fault::Refused { code, reason: reason.to_owned(), message }
    };
    [
        ("500", refused(500, "InternalError")),
        ("429", refused(429, "TooManyRequests")),
        ("no answer", Fault::Silence { reached: false }),
        ("executed without a response", Fault::Silence { reached: true }),
        ("dropped", Fault::Drop { reached: false }),
        ("dropped after execution", Fault::Drop { reached: true }),
    ]
}

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // A control plane uses a full core.
    arguments.test_threads.get_or_insert(2);
    let mut trials = Vec::new();
    if !control_plane::skipped() {
        for (first, (way, _)) in ways().into_iter().enumerate() {
            trials.push(Trial::test(format!("{SCENARIO}, the first call: {way}"), move || Ok(survives(first)?)));
        }
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// The calls with their counts. Every call fails the first time, succeeds the second time, and so on.
#[derive(Default)]
struct Seen {
    calls: BTreeMap<Call, usize>,
    began: bool,
}

impl Seen {
    fn judge(&mut self, call: &Call, first: usize) -> Option<Fault> {
        // Controllers do not start without discovery and the Lease.
        self.began |= (call.verb, call.resource.as_str()) == ("list", "clusterserviceversions");
        if !self.began || call.verb.is_empty() {
            return None;
        }
        let number = self.calls.len();
        let times = self.calls.entry(call.clone()).or_insert(0);
        *times += 1;
        let ways = ways();
        (*times % 2 == 1).then(|| ways[(number + first) % ways.len()].1.clone())
    }
}

fn survives(first: usize) -> Result<()> {
    let mut scenarios = all()?;
    let scenario = scenarios.remove(SCENARIO).context("unknown scenario")?;
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let known = seen.clone();
    let judged = move |call: &Call| known.lock().unwrap_or_else(PoisonError::into_inner).judge(call, first);
    let engine = ClusterEngine::start_faulty(&[REQUEST_TIMEOUT.to_owned()], judged)?;
    let mut run = Run::new(engine, &scenario, None);
    let found = run.play().with_context(|| format!("the controllers' log:\n{}", run.engine().log()))?;
    let report = judge::end_report(SCENARIO, "faults", &scenario.golden()?, &found, &wanted()?);
    ensure!(report.is_empty(), "{report}\n{}", run.engine().log());
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    for (verb, resource) in FAILS {
        ensure!(
            seen.calls.keys().any(|c| c.verb == verb && c.resource == resource),
            "no call to {verb} {resource} failed"
        );
    }
    Ok(())
}
