//! The endpoints `/healthz`, `/readyz` and `/metrics`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::task::JoinSet;
use tracing::info;

use crate::cli::{CliError, ErrorKind};
use crate::cluster::metrics::{MEDIA_TYPE, Metrics};
use crate::listener::http;

/// Serves the enabled endpoints until the result is dropped.
pub(super) async fn serve(
    metrics: Option<SocketAddr>,
    health: Option<SocketAddr>,
    counted: &Metrics,
) -> Result<JoinSet<()>, CliError> {
    let mut servers = JoinSet::new();
    let mut routers: BTreeMap<SocketAddr, Router<Metrics>> = BTreeMap::new();
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
        servers.spawn(http::serve(listener, router.with_state(counted.clone())));
    }
    Ok(servers)
}

async fn metrics_text(State(metrics): State<Metrics>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], metrics.text().await)
}

async fn readiness(State(metrics): State<Metrics>) -> (StatusCode, &'static str) {
    match metrics.readiness() {
        Ok(()) => (StatusCode::OK, "ok"),
        Err(awaited) => (StatusCode::SERVICE_UNAVAILABLE, awaited),
    }
}
