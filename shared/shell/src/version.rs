//! The versions of this client and of the server.

use std::time::Duration;

use olm_core::api::kinds;
use olm_core::api::object;
use olm_core::distribution::transfer::is_stopped;
use serde::Serialize;
use serde_json::Value;

use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, ErrorKind};
use crate::cluster::api::{Api, status};
use crate::cluster::installed::{self, HeldLease};
use crate::cluster::request_error::RequestError;

/// The release of OLM whose wire behaviour this implements.
pub const OLM: &str = "v0.46.0";

/// The default time limit for the server.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The versions of this program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// Version of kubectl-olm.
    pub version: String,
    /// The release of OLM that it is compatible with.
    pub olm_version: &'static str,
    /// Operating system and architecture in Go's notation, `linux/amd64`.
    pub platform: String,
}

impl Client {
    /// Returns the versions of this program.
    pub fn this() -> Self {
        let os = match std::env::consts::OS {
            "macos" => "darwin",
            os => os,
        };
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            arch => arch,
        };
        Self { version: format!("v{}", env!("CARGO_PKG_VERSION")), olm_version: OLM, platform: format!("{os}/{arch}") }
    }
}

/// The versions that the server runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Version of Kubernetes.
    pub kubernetes_version: String,
    /// The served versions of OLM's API group; empty if the CRDs are not installed.
    pub api_versions: Vec<String>,
    /// The Deployments of controllers, of kubectl-olm and of upstream OLM; `None` if listing them is forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<Controller>>,
    /// The held Leases of `kubectl olm run`; `None` if listing them is forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leases: Option<Vec<HeldLease>>,
}

/// A Deployment of controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Controller {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The image it runs.
    pub image: String,
    /// Whether it is scaled to zero.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// Queries the server, with its own runtime and connection.
pub fn server(flags: &ClusterFlags) -> Result<Server, CliError> {
    let limit = flags.request_timeout.unwrap_or(TIMEOUT);
    // The overall time limit expires before that of the connection.
    let connecting = if limit.is_zero() { limit } else { limit.saturating_add(TIMEOUT) };
    let flags = ClusterFlags { request_timeout: Some(connecting), ..flags.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = async {
        let server = Api::new(kube::Client::try_from(flags.config().await?)?);
        let kubernetes_version = server.ask_version().await.map_err(|error| unanswered("/version", error))?;
        let api_versions = server.ask_versions(kinds::OLM_GROUP).await.map_err(|error| unanswered("/apis", error))?;
        let (own, upstream, leases) = tokio::join!(
            installed::own_controllers(&server),
            installed::upstream_controllers(&server),
            installed::held_leases(&server)
        );
        let controllers = permitted(own)?
            .zip(permitted(upstream)?)
            .map(|(own, upstream)| own.iter().chain(&upstream).map(controller).collect());
        let leases = permitted(leases)?;
        Ok(Server { kubernetes_version, api_versions, controllers, leases })
    };
    let within = if limit.is_zero() { Duration::MAX } else { limit };
    runtime.block_on(async {
        tokio::time::timeout(within, asked).await.unwrap_or_else(|_| {
            let late = format!("no answer from the server within {} s", within.as_secs_f32());
            Err(CliError::new(ErrorKind::Unreachable, late).hint("to wait longer, pass --request-timeout 1m"))
        })
    })
}

/// Returns the error for a path of the API server that cannot be read.
fn unanswered(path: &str, error: kube::Error) -> RequestError {
    RequestError::of_cluster("get", path, status(error))
}

/// Returns what could be read; `None` if that is forbidden.
fn permitted<T>(read: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.status.is_forbidden() => Ok(None),
        Err(error) => Err(error),
    }
}

fn controller(deployment: &Value) -> Controller {
    let containers = object::list(deployment, &["spec", "template", "spec", "containers"]);
    Controller {
        image: containers.first().map_or("", |container| object::text(container, &["image"])).to_owned(),
        namespace: object::namespace(deployment).to_owned(),
        name: object::name(deployment).to_owned(),
        stopped: is_stopped(deployment),
    }
}
