//! Approval of an explained plan, on a simulated cluster whose API server may fail.

use std::path::PathBuf;
use std::time::Duration;

use olm_core::api::object::{self, ObjectRef};
use olm_core::sim::{Patch, Simulation};
use olm_shell::cli::flags::{ClusterFlags, DryRun, NamespaceFlags, OutputFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::approve::{self, Options};
use olm_shell::installplan::explain::{self, Form, Request};
use olm_shell::installplan::list;
use olm_shell::installplan::policy::Terms;
use olm_tests::faulty_api::{Call, Fault, FaultyApi};
use olm_tests::plugin;
use olm_tests::scenario::checked_in;
use olm_tests::sim_api::SimApi;
use olm_tests::skip;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::garden::garden;

/// Returns a cluster whose plan waits for approval, and the plan's name.
fn waiting() -> (Simulation, ObjectRef) {
    let garden = garden(&checked_in().join("upgrade-manual-steps"), "01-subscribe-with-startingcsv.yaml");
    let plan = garden.simulation.api().list("operators.coreos.com", "InstallPlan", Some("garden")).next().unwrap();
    let plan = ObjectRef::from_object(plan);
    (garden.simulation, plan)
}

type Answer = (Result<Outcome, CliError>, String, String);

fn answer(run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> Answer {
    let (out, err) = (Buffer::default(), Buffer::default());
    let answer = run(&mut Printer::to(out.clone(), err.clone()));
    (answer, out.text(), err.text())
}

fn here() -> NamespaceFlags {
    NamespaceFlags { namespace: Some("garden".to_owned()), all_namespaces: false }
}

fn cluster(kubeconfig: PathBuf) -> ClusterFlags {
    ClusterFlags { kubeconfig: Some(kubeconfig), ..ClusterFlags::default() }
}

fn approved(kubeconfig: PathBuf, plan: &ObjectRef, allow_failing: bool, wait: Option<Duration>) -> Answer {
    let options = Options {
        cluster: cluster(kubeconfig),
        namespaces: here(),
        plans: vec![format!("installplan/{}", plan.name)],
        selector: None,
        terms: Terms { allow_failing, ..Terms::default() },
        yes: true,
        dry_run: DryRun::None,
        wait,
        images: olm_shell::image::Options::default(),
        optional_manifests: false,
        plain_bundles: true,
    };
    answer(|printer| approve::run(&options, printer))
}

fn is_approved(simulation: &Simulation, plan: &ObjectRef) -> bool {
    object::at(simulation.api().get(plan).unwrap(), &["spec", "approved"]) == &Value::Bool(true)
}

/// Returns what is on a terminal on which `approve` of the plan is answered.
fn answered(api: &SimApi, plan: &ObjectRef, answers: &str) -> Option<String> {
    let line = format!("approve {} -n garden", plan.name);
    plugin::answered("kubectl-olm-install_plan", &line, &api.kubeconfig(), answers).unwrap()
}

#[test]
fn differences_are_shown_at_the_prompt() {
    let (simulation, plan) = waiting();
    let api = SimApi::start(simulation).unwrap();
    let Some(shown) = answered(&api, &plan, "d\nwhat\nn\n") else { skip!("there is no program script") };
    assert!(shown.contains("[y/N/d]"), "{shown}");
    assert!(shown.contains("Objects: ") && shown.contains("create ClusterServiceVersion garden/rose"), "{shown}");
    assert!(shown.contains("\n        +  name: rose.v1.0.0\n"), "{shown}");
    assert!(shown.contains("Permissions") && shown.contains("Total: "), "{shown}");
    assert!(shown.contains("answer y for yes, n for no, or d to print the differences"), "{shown}");
    assert!(shown.contains("Nothing was approved"), "{shown}");
    let simulation = api.stop();
    assert!(!is_approved(&simulation, &plan));
    let api = SimApi::start(simulation).unwrap();
    let shown = answered(&api, &plan, "d\ny\n").unwrap_or_default();
    assert!(is_approved(&api.stop(), &plan), "{shown}");
}

#[test]
fn a_plan_that_would_fail_is_not_approved_unless_that_is_allowed() {
    let (mut simulation, plan) = waiting();
    let second = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "second", "namespace": "garden" }, "spec": { "targetNamespaces": ["garden"] },
    });
    simulation.apply(second).unwrap();
    simulation.settle(jiff::SignedDuration::from_secs(5));
    let api = SimApi::start(simulation).unwrap();
    let (ended, out, err) = approved(api.kubeconfig(), &plan, false, None);
    assert_eq!(ended, Ok(Outcome::Negative), "{out}{err}");
    assert!(out.contains("not approved: it would fail: namespace garden has several OperatorGroups"), "{out}");
    assert!(err.contains("to approve it anyway, pass --allow-failing"), "{err}");
    let simulation = api.stop();
    assert!(!is_approved(&simulation, &plan));
    let api = SimApi::start(simulation).unwrap();
    let (ended, out, err) = approved(api.kubeconfig(), &plan, true, None);
    assert_eq!(ended, Ok(Outcome::Done), "{out}{err}");
    assert!(is_approved(&api.stop(), &plan));
}

#[test]
fn unreadable_operator_groups_are_not_treated_as_absent() {
    for (code, reason) in [(403, "Forbidden"), (500, "InternalError")] {
        let (simulation, plan) = waiting();
        let api = SimApi::start(simulation).unwrap();
        let runtime = Runtime::new().unwrap();
        let judge = move |call: &Call| {
            let refused = Fault::Refused { code, reason: reason.to_owned(), message: "not now".to_owned() };
            (call.verb == "list" && call.resource == "operatorgroups").then_some(refused)
        };
        let faulty = runtime.block_on(FaultyApi::start(&api.kubeconfig(), judge)).unwrap();
        let (ended, out, err) = approved(faulty.kubeconfig(), &plan, false, None);
        let refused = ended.unwrap_err();
        assert!(
            refused.message.contains("to list operatorgroups.operators.coreos.com in namespace garden"),
            "{refused}"
        );
        assert!(refused.hints.join("; ").contains("to approve them anyway, pass --allow-failing"), "{refused:?}");
        let said = format!("{out}{err}{refused}");
        assert!(!said.contains("has no OperatorGroup"), "{said}");
        // explain fails, and list reports the known state of plans.
        let source = || SourceFlags { cluster: cluster(faulty.kubeconfig()), ..SourceFlags::default() };
        let explained = explain::Options {
            asked: Request::Plans(vec![plan.name.clone()]),
            source: source(),
            namespaces: here(),
            on_top: Vec::new(),
            images: olm_shell::image::Options::default(),
            optional_manifests: false,
            plain_bundles: true,
            dry_run: explain::DryRun::None,
            policies: Vec::new(),
            details: false,
            form: Form::Text,
        };
        let (ended, _, _) = answer(|printer| explain::run(&explained, printer));
        assert!(ended.unwrap_err().message.contains("operatorgroups"));
        let listed = list::Options {
            source: source(),
            namespaces: here(),
            names: Vec::new(),
            pending: true,
            list: ListFlags { output: OutputFlags { output: "name".parse().unwrap() }, ..ListFlags::default() },
        };
        let (ended, out, err) = answer(|printer| list::run(&listed, printer));
        assert_eq!((ended, out), (Ok(Outcome::Done), format!("installplan/{}\n", plan.name)), "{err}");
        // A user may accept the risk.
        let (ended, out, err) = approved(faulty.kubeconfig(), &plan, true, None);
        assert_eq!(ended, Ok(Outcome::Done), "{out}{err}");
        assert!(!err.contains("has no OperatorGroup"), "{err}");
        drop(faulty);
        assert!(is_approved(&api.stop(), &plan));
    }
}

#[test]
fn waiting_for_a_plan_does_not_depend_on_its_approver() {
    let (mut simulation, plan) = waiting();
    simulation.patch(&plan, Patch::Merge(json!({ "spec": { "approved": true } })), None).unwrap();
    let waits = |simulation: Simulation| {
        let api = SimApi::start(simulation).unwrap();
        let answer = approved(api.kubeconfig(), &plan, false, Some(Duration::ZERO));
        (api.stop(), answer)
    };
    // No controller begins.
    let (mut simulation, (ended, out, err)) = waits(simulation);
    assert_eq!(ended, Ok(Outcome::Negative), "{out}{err}");
    assert!(out.contains(" was approved already"), "{out}");
    assert!(err.contains("not complete: ") && err.contains("no controller has started to execute it"), "{err}");
    // It is complete.
    simulation.settle(jiff::SignedDuration::from_mins(5));
    let (mut simulation, (ended, out, err)) = waits(simulation);
    assert_eq!(ended, Ok(Outcome::Done), "{out}{err}");
    assert!(out.contains("was approved already, it is Complete"), "{out}");
    // It has failed.
    let failed = json!({ "status": { "phase": "Failed", "message": "no" } });
    simulation.patch(&plan, Patch::Merge(failed), Some("status")).unwrap();
    let (_, (ended, out, err)) = waits(simulation);
    assert_eq!(ended, Ok(Outcome::Negative), "{out}{err}");
    assert!(err.contains("will not be complete"), "{err}");
}
