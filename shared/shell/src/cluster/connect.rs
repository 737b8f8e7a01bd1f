//! From flags to an API server to ask, with limits: a server that takes a connection and says nothing is told of, not waited for.

use std::time::Duration;

use crate::cli::flags::ClusterFlags;
use crate::error::CliError;

use super::api::{Api, PATIENCE};

/// A connection, and what the kubeconfig says besides.
pub(crate) struct Connection {
    pub(crate) api: Api,
    /// The namespace of the context.
    pub(crate) namespace: String,
    /// The server's address.
    pub(crate) server: String,
}

/// Connects as the flags say. Without `--request-timeout` an answer may take as long as the API server itself gives one.
pub(crate) async fn connect(flags: &ClusterFlags) -> Result<Connection, CliError> {
    let config = flags.config().await?;
    let (namespace, server) = (config.default_namespace.clone(), config.cluster_url.to_string());
    let connecting = config.connect_timeout;
    let patience = match flags.request_timeout {
        None => PATIENCE,
        Some(Duration::ZERO) => Duration::MAX,
        Some(limit) => limit,
    };
    let api = Api::new(kube::Client::try_from(config)?).with_patience(patience);
    Ok(Connection { api: api.with_connecting(connecting), namespace, server })
}

/// The same, with the namespace to work in: the one that is named, or the context's.
pub(crate) async fn connect_in(flags: &ClusterFlags, namespace: Option<&str>) -> Result<(Api, String), CliError> {
    let Connection { api, namespace: of_context, .. } = connect(flags).await?;
    Ok((api, namespace.map_or(of_context, str::to_owned)))
}
