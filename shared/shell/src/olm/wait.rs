//! Waits until an installation is ready.

use std::collections::BTreeMap;
use std::time::Duration;

use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::distribution::state::{Health, health};
use olm_core::distribution::{Distribution, PACKAGE_SERVER, PACKAGES_API, Release, Stage};
use olm_core::health::workload::{self, PodState, Trouble};
use serde_json::Value;

use crate::cli::output::name;
use crate::cli::{CliError, Printer};
use crate::cluster::api::Api;
use crate::cluster::installed::{get, list};

/// The interval between two reads of the awaited objects, of which there are a handful. Their state also depends on pods and on
/// discovery, whose changes a watch of the objects does not report.
const INTERVAL: Duration = Duration::from_secs(1);

/// What is awaited first, together.
const DEFINITIONS: &str = "the CustomResourceDefinitions of OLM";

/// How waiting ended.
pub(super) enum End {
    /// Everything is ready.
    Healthy,
    /// These objects are not ready, with the causes, and cannot become ready without a change.
    Failed(Vec<String>),
}

/// What is awaited, and what it waits for, for the message after a time-out.
#[derive(Default)]
pub(super) struct Waiting(BTreeMap<String, String>);

impl Waiting {
    /// Returns a line for each object that is not ready yet.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, why)| format!("{name}: {why}"))
    }

    /// Notes which CRDs are not served yet, and reports only the start: each becomes ready within a second.
    fn note_definitions(&mut self, unserved: &[&str], printer: &mut Printer) {
        if unserved.is_empty() {
            self.0.remove(DEFINITIONS);
            return;
        }
        let why = format!("the API server does not serve {} yet", unserved.join(", "));
        if self.0.insert(DEFINITIONS.to_owned(), why).is_none() {
            printer.talk(format_args!("waiting until the API server serves {DEFINITIONS}"));
        }
    }
    /// Returns the first Deployment of the release that is not ready yet.
    pub(super) fn deployment<'r>(&self, release: &'r Release) -> Option<&'r Value> {
        let is_noted = |deployment: &&Value| self.0.contains_key(&format!("deployment/{}", object::name(deployment)));
        release.stage(Stage::Workloads).find(is_noted)
    }

    /// Notes the health of an object, and reports a change.
    fn note(&mut self, name: String, health: &Health, printer: &mut Printer) {
        match health {
            Health::Healthy => {
                if self.0.remove(&name).is_some() {
                    printer.talk(format_args!("{name} is ready"));
                }
            }
            Health::Waiting(why) | Health::Failed(why) => {
                if self.0.get(&name) != Some(why) {
                    printer.talk(format_args!("waiting for {name}: {why}"));
                    self.0.insert(name, why.clone());
                }
            }
        }
    }
}

/// Waits until the API server serves the CRDs of the release.
pub(super) async fn served(
    api: &Api,
    release: &Release,
    waiting: &mut Waiting,
    printer: &mut Printer,
) -> Result<End, CliError> {
    let crds: Vec<ObjectRef> = release.stage(Stage::Definitions).map(ObjectRef::from_object).collect();
    loop {
        let mut unserved = Vec::new();
        for target in &crds {
            let found = get(api, target).await?.unwrap_or_default();
            if health(&found) != Health::Healthy {
                unserved.push(target.name.as_str());
            }
        }
        let mut are_ready = unserved.is_empty();
        waiting.note_definitions(&unserved, printer);
        // Discovery can lag behind.
        for object in release.stage(Stage::Resources) {
            if !are_ready {
                break;
            }
            match api.resource(&object::gvk(object)).await {
                Ok(_) => {}
                Err(refusal) if refusal.is_not_found() => are_ready = false,
                Err(refusal) => {
                    return Err(crate::cluster::request_error::RequestError::of_cluster("get", "/apis", refusal).into());
                }
            }
        }
        if are_ready {
            return Ok(End::Healthy);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Waits until the controllers, the package server of upstream OLM, and the APIService that this project's controllers create are ready. Ends early if one of them cannot become ready.
pub(super) async fn healthy(
    api: &Api,
    release: &Release,
    waiting: &mut Waiting,
    printer: &mut Printer,
) -> Result<End, CliError> {
    let awaited = release.objects.iter().filter(|object| is_awaited(release, object));
    let mut awaited: Vec<ObjectRef> = awaited.map(ObjectRef::from_object).collect();
    let created = release.creates_packages_api().then(|| kinds::API_SERVICE.object("", PACKAGES_API));
    awaited.extend(created.clone());
    loop {
        let (mut are_healthy, mut failed) = (true, Vec::new());
        for target in &awaited {
            let label = format!("{}/{}", target.gvk.kind.to_lowercase(), target.name);
            let found = get(api, target).await?;
            let state = match &found {
                Some(found) => health(found),
                None if created.as_ref() == Some(target) => {
                    Health::Waiting("the controllers have not created it yet".to_owned())
                }
                None => Health::Failed("it was deleted".to_owned()),
            };
            let state = match (state, found) {
                (Health::Waiting(why), Some(found)) if target.gvk.kind == kinds::DEPLOYMENT.kind => {
                    stuck(api, &found).await?.map_or(Health::Waiting(why), Health::Failed)
                }
                (state, _) => state,
            };
            are_healthy &= state == Health::Healthy;
            if let Health::Failed(why) = &state {
                failed.push(format!("{label}: {why}"));
            }
            waiting.note(label, &state, printer);
        }
        if !failed.is_empty() {
            return Ok(End::Failed(failed));
        }
        if are_healthy {
            return Ok(End::Healthy);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn is_awaited(release: &Release, object: &Value) -> bool {
    match object::kind(object) {
        "Deployment" => true,
        "ClusterServiceVersion" => {
            release.distribution == Distribution::Upstream && object::name(object) == PACKAGE_SERVER
        }
        _ => false,
    }
}

/// Returns why a pod of a Deployment cannot start.
async fn stuck(api: &Api, deployment: &Value) -> Result<Option<String>, CliError> {
    let Some(selector) = workload::pod_selector(deployment) else { return Ok(None) };
    let namespace = object::namespace(deployment);
    let pods = list(api, &kinds::POD, |query| query.within(namespace).labelled(&selector)).await?;
    Ok(pods.iter().filter(|pod| !object::is_deleting(pod)).find_map(|pod| match workload::pod(pod) {
        // An autoscaler may add a node.
        PodState::Stuck(trouble) if trouble.kind != Trouble::Unschedulable => {
            Some(format!("{} cannot start: {trouble}", name(pod)))
        }
        PodState::Stuck(_) | PodState::Waiting(_) | PodState::Ready => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::streams::Buffer;

    #[test]
    fn definitions_that_are_not_served_are_reported_in_one_line() {
        let (out, err) = (Buffer::default(), Buffer::default());
        let (mut waiting, mut printer) = (Waiting::default(), Printer::to(out, err.clone()));
        for unserved in [&["a", "b"][..], &["b"], &["b"]] {
            waiting.note_definitions(unserved, &mut printer);
        }
        assert_eq!(err.text(), "waiting until the API server serves the CustomResourceDefinitions of OLM\n");
        let late: Vec<String> = waiting.lines().collect();
        assert_eq!(late, ["the CustomResourceDefinitions of OLM: the API server does not serve b yet"]);
        waiting.note_definitions(&[], &mut printer);
        assert_eq!(waiting.lines().count(), 0);
    }

    #[test]
    fn the_deployment_that_is_not_ready_is_known() {
        let release = olm_core::distribution::own("1.0.0", Some("example.com/run:1"));
        let mut waiting = Waiting::default();
        assert_eq!(waiting.deployment(&release), None);
        let mut printer = Printer::to(std::io::sink(), std::io::sink());
        waiting.note("deployment/kubectl-olm-run".to_owned(), &Health::Waiting("0 of 1".to_owned()), &mut printer);
        assert_eq!(waiting.deployment(&release).map(object::name), Some("kubectl-olm-run"));
    }
}
