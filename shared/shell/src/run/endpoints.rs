//! `/healthz`, `/readyz` and `/metrics`, when asked for.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::State as Extract;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use olm_core::plan::{Action, Key, Verb};
use tokio::task::JoinSet;
use tracing::info;

use crate::cli::{CliError, ErrorKind};

/// What the endpoints tell.
#[derive(Clone, Default)]
pub(super) struct State(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    ready: bool,
    requests: BTreeMap<Verb, u64>,
    refused: u64,
    unsettled: usize,
    blocked: BTreeMap<Key, usize>,
}

impl State {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything was listed.
    pub(super) fn ready(&self) {
        self.counts().ready = true;
    }

    /// Actions were executed.
    pub(super) fn worked(&self, actions: &[Action], refused: usize) {
        let mut counts = self.counts();
        for action in actions {
            *counts.requests.entry(action.verb()).or_default() += 1;
        }
        counts.refused += refused as u64;
    }

    /// So many keys are worked on now, or soon again.
    pub(super) fn unsettled(&self, keys: usize) {
        self.counts().unsettled = keys;
    }

    /// So many reasons block a key now.
    pub(super) fn reasons(&self, key: &Key, blocking: usize) {
        let mut counts = self.counts();
        if blocking == 0 {
            counts.blocked.remove(key);
        } else {
            counts.blocked.insert(key.clone(), blocking);
        }
    }

    /// The metrics in Prometheus' text format.
    fn metrics(&self) -> String {
        let counts = self.counts();
        let mut text = String::from(
            "# HELP kubectl_olm_actions_total Actions executed, by verb.\n# TYPE kubectl_olm_actions_total counter\n",
        );
        for (verb, count) in &counts.requests {
            let verb = format!("{verb:?}").to_lowercase();
            let _ = writeln!(text, "kubectl_olm_actions_total{{verb=\"{verb}\"}} {count}");
        }
        text += "# HELP kubectl_olm_refused_total Actions the API server refused.\n# TYPE kubectl_olm_refused_total counter\n";
        let _ = writeln!(text, "kubectl_olm_refused_total {}", counts.refused);
        text += "# HELP kubectl_olm_unsettled Keys that are worked on, or tried again in a moment.\n# TYPE kubectl_olm_unsettled gauge\n";
        // What was not listed yet was not planned for.
        let _ = writeln!(text, "kubectl_olm_unsettled {}", counts.unsettled + usize::from(!counts.ready));
        text += "# HELP kubectl_olm_blocked Keys that wait for somebody to do something.\n# TYPE kubectl_olm_blocked gauge\n";
        let _ = writeln!(text, "kubectl_olm_blocked {}", counts.blocked.len());
        text
    }
}

/// Serves what was asked for until the result is dropped.
pub(super) async fn serve(
    metrics: Option<SocketAddr>,
    health: Option<SocketAddr>,
    state: &State,
) -> Result<JoinSet<()>, CliError> {
    let mut servers = JoinSet::new();
    let mut routers: BTreeMap<SocketAddr, Router<State>> = BTreeMap::new();
    if let Some(address) = metrics {
        routers.entry(address).or_default();
    }
    if let Some(address) = health {
        routers.entry(address).or_default();
    }
    for (asked, mut router) in routers {
        if metrics == Some(asked) {
            router = router.route("/metrics", get(metrics_text));
        }
        if health == Some(asked) {
            router = router.route("/healthz", get(async || "ok")).route("/readyz", get(readiness));
        }
        let listener = tokio::net::TcpListener::bind(asked)
            .await
            .map_err(|e| CliError::new(ErrorKind::Io, format!("cannot listen: {e}")).at(asked))?;
        if let Ok(address) = listener.local_addr() {
            info!(%address, metrics = metrics == Some(asked), health = health == Some(asked), "serving");
        }
        let router = router.with_state(state.clone());
        servers.spawn(async move {
            // The server ends only with the process.
            axum::serve(listener, router).await.ok();
        });
    }
    Ok(servers)
}

async fn metrics_text(Extract(state): Extract<State>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], state.metrics())
}

async fn readiness(Extract(state): Extract<State>) -> (StatusCode, &'static str) {
    if state.counts().ready { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "listing the cluster") }
}
