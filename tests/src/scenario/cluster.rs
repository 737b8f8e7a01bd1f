//! The engine with a real cluster: kube-apiserver and its controllers, `kubectl olm run` as a process, catalogs over gRPC.

mod client;
mod controllers;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use olm_core::api::crd;
use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::catalog::Snapshot;
use olm_shell::registry::server::Server;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use self::client::{Client, Seen};
use self::controllers::Controllers;
use super::engine::{Engine, Progress, WATCHED};
use super::format::{FaultSpec, PatchSpec, Scenario};
use super::runner::namespace;
use super::store::Change;
use crate::control_plane::{ControlPlane, Options};
use crate::faulty_api::{Call, Fault, FaultyApi};
use crate::plugin::binary;

/// How long the API server may take to return the first list of every kind.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The recordings waited this many times longer for quiet than necessary for controllers that react only to watches.
const QUIET_FACTOR_OF_RECORDINGS: u32 = 3;

/// A control plane with `kubectl olm run`. Dropping it ends all processes.
pub struct ClusterEngine {
    // In the order in which they are dropped: first the clients of the API server.
    controllers: Controllers,
    proxy: Option<FaultyApi>,
    faults: Arc<Mutex<Vec<FaultSpec>>>,
    catalogs: BTreeMap<String, Server>,
    shown: Receiver<Seen>,
    /// Received, but not yet taken.
    pending: Vec<Change>,
    client: Client,
    runtime: Runtime,
    plane: ControlPlane,
    started: Instant,
}

impl ClusterEngine {
    /// Starts a cluster for a scenario, with OLM's CRDs and the controllers of this repository.
    pub fn start(scenario: &Scenario) -> Result<Self> {
        let mut flags = scenario.script.flags.clone();
        flags.extend(scenario.has_catalog_pods()?.then(|| "--catalog-pods".to_owned()));
        let faults: Arc<Mutex<Vec<FaultSpec>>> = Arc::default();
        let known = faults.clone();
        let judge = move |call: &Call| {
            known.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().find_map(|f| f.meets(call))
        };
        let mut engine = if scenario.has_faults() {
            Self::start_faulty(&flags, judge)?
        } else {
            Self::start_with(Options::default(), &flags, |_, _| Ok(None))?
        };
        engine.faults = faults;
        Ok(engine)
    }

    /// Starts a cluster whose controllers have no flags.
    pub fn start_plain() -> Result<Self> {
        Self::start_with(Options::default(), &[], |_, _| Ok(None))
    }

    /// Starts a cluster whose controllers have these flags, with a network in which pods answer the API server.
    pub fn start_with_pod_network(flags: &[String]) -> Result<Self> {
        Self::start_with(Options { pod_network: true, ..Options::default() }, flags, |_, _| Ok(None))
    }

    /// Starts a cluster whose controllers have these flags and connect to the API server through a [`FaultyApi`].
    pub fn start_faulty(flags: &[String], judge: impl FnMut(&Call) -> Option<Fault> + Send + 'static) -> Result<Self> {
        let proxy = |runtime: &Runtime, plane: &ControlPlane| {
            runtime.block_on(FaultyApi::start(plane.kubeconfig(), judge)).map(Some)
        };
        Self::start_with(Options::default(), flags, proxy)
    }

    fn start_with(
        options: Options,
        flags: &[String],
        proxy: impl FnOnce(&Runtime, &ControlPlane) -> Result<Option<FaultyApi>>,
    ) -> Result<Self> {
        // Before the cluster, because it may have to be built.
        binary(controllers::NAME)?;
        let plane = ControlPlane::start_with(Options { crds: crd::all(), ..options })?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(Client::connect(plane.kubeconfig()))?;
        // The namespace of the controllers' Lease.
        runtime.block_on(client.apply(&namespace("olm")))?;
        let proxy = proxy(&runtime, &plane)?;
        let seen_through = proxy.as_ref().map(FaultyApi::kubeconfig);
        let controllers = Controllers::start(seen_through.as_deref().unwrap_or_else(|| plane.kubeconfig()), flags)?;
        let (sender, shown) = channel();
        for (api_version, kind, plural) in WATCHED {
            runtime.spawn(client.clone().follow(Gvk::from_api_version(api_version, kind), plural, sender.clone()));
        }
        let started = Instant::now();
        let catalogs = BTreeMap::new();
        let (faults, pending) = (Arc::default(), vec![]);
        let mut engine = Self { controllers, proxy, faults, catalogs, shown, pending, client, runtime, plane, started };
        engine.wait_for_lists()?;
        Ok(engine)
    }

    /// Waits until every watch has returned the existing objects.
    fn wait_for_lists(&mut self) -> Result<()> {
        let mut missing = WATCHED.len();
        while missing > 0 {
            let left = START_TIMEOUT.saturating_sub(self.started.elapsed());
            match self.shown.recv_timeout(left) {
                Ok(Seen::All) => missing -= 1,
                Ok(Seen::Change(change)) => self.pending.push(change),
                Err(_) => bail!("the API server does not list {missing} of the watched kinds\n{}", self.log()),
            }
        }
        Ok(())
    }
}

impl Engine for ClusterEngine {
    fn name(&self) -> &'static str {
        "cluster"
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn quiet(&self, recorded: Duration) -> Duration {
        recorded / QUIET_FACTOR_OF_RECORDINGS
    }

    fn apply(&mut self, object: &Value) -> Result<()> {
        self.runtime.block_on(self.client.apply(object))
    }

    fn patch(&mut self, target: &ObjectRef, patch: &PatchSpec) -> Result<()> {
        self.runtime.block_on(self.client.patch(target, patch))
    }

    fn delete(&mut self, target: &ObjectRef) -> Result<()> {
        self.runtime.block_on(self.client.delete(target))
    }

    fn command<T>(&mut self, run: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        run(self.plane.kubeconfig())
    }

    fn fault(&mut self, fault: &FaultSpec) -> Result<()> {
        anyhow::ensure!(self.proxy.is_some(), "no proxy is in front of the API server");
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault.clone());
        Ok(())
    }

    fn list(&mut self, resource: &Gvk, plural: &str) -> Result<Vec<Value>> {
        self.runtime.block_on(self.client.list(resource, plural))
    }

    fn serve_snapshot(&mut self, catalog: &str, snapshot: Snapshot) -> Result<String> {
        let snapshots = watch::Sender::new(snapshot).subscribe();
        let before = self.catalogs.remove(catalog);
        let server = self.runtime.block_on(async {
            let Some(before) = before else { return Server::start((Ipv4Addr::LOCALHOST, 0).into(), snapshots).await };
            // As in the recordings: the catalog disappears and returns with different content.
            let address = before.address();
            before.stop().await;
            Server::start(address, snapshots).await
        })?;
        let address = server.address().to_string();
        self.catalogs.insert(catalog.to_owned(), server);
        Ok(address)
    }

    fn changes(&mut self, at_most: Duration) -> Result<Vec<Change>> {
        self.controllers.check()?;
        let mut changes = std::mem::take(&mut self.pending);
        let wait = if changes.is_empty() { at_most } else { Duration::ZERO };
        let mut next = self.shown.recv_timeout(wait).ok();
        while let Some(seen) = next {
            if let Seen::Change(change) = seen {
                changes.push(change);
            }
            next = self.shown.try_recv().ok();
        }
        Ok(changes)
    }

    fn progress(&mut self) -> Result<Progress> {
        self.controllers.progress()
    }

    fn unfinished(&mut self) -> Result<Vec<String>> {
        self.controllers.audit(self.plane.kubeconfig())
    }

    fn log(&self) -> String {
        self.controllers.log()
    }
}
