//! The versions of this client and of the server.

use std::time::Duration;

use kube::api::{Api, DynamicObject, ListParams};
use kube::core::discovery::ApiResource;
use kube::core::gvk::GroupVersionKind;
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object;
use serde::Serialize;

use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, ErrorKind};
use crate::cluster::api::status;
use crate::cluster::request_error::RequestError;
use crate::cluster::{self, lease};

/// The release of OLM whose wire behaviour this implements.
pub const OLM: &str = "v0.46.0";

/// The default time limit for the server.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The label selector of the Deployments of a real OLM, in any namespace.
const CONTROLLERS: &str = "app in (olm-operator,catalog-operator)";

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
    /// The controllers of a real OLM; `None` if listing them is forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<Controller>>,
    /// The held Leases of `kubectl olm run`; `None` if listing them is forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leases: Option<Vec<HeldLease>>,
}

/// A Lease of `kubectl olm run`, and its holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldLease {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The process that holds it: host, process id, and a number.
    pub holder_identity: String,
    /// When it was acquired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<String>,
}

/// A Deployment of a real OLM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Controller {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The image it runs.
    pub image: String,
}

/// Queries the server, with its own runtime and connection.
pub fn server(flags: &ClusterFlags) -> Result<Server, CliError> {
    let limit = flags.request_timeout.unwrap_or(TIMEOUT);
    // The overall time limit expires before that of the connection.
    let connecting = if limit.is_zero() { limit } else { limit.saturating_add(TIMEOUT) };
    let flags = ClusterFlags { request_timeout: Some(connecting), ..flags.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = async {
        let client = kube::Client::try_from(flags.config().await?)?;
        let server = cluster::api::Api::new(client.clone());
        let kubernetes_version = server.ask_version().await.map_err(|error| unanswered("/version", error))?;
        let api_versions = server.ask_versions(kinds::OLM).await.map_err(|error| unanswered("/apis", error))?;
        let (controllers, leases) = tokio::try_join!(controllers(client.clone()), leases(client.clone()))?;
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

/// Lists a kind in all namespaces; `None` if that is forbidden.
async fn listed(
    client: kube::Client,
    kind: &Kind,
    wanted: &ListParams,
) -> Result<Option<Vec<DynamicObject>>, CliError> {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    match api.list(wanted).await {
        Ok(found) => Ok(Some(found.items)),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(None),
        Err(error) => Err(RequestError::new("list", kind.resource(), "", status(error)).into()),
    }
}

async fn leases(client: kube::Client) -> Result<Option<Vec<HeldLease>>, CliError> {
    let named = ListParams::default().fields(&format!("metadata.name={}", lease::NAME));
    let found = listed(client, &kinds::LEASE, &named).await?;
    let held = |lease: DynamicObject| {
        let text = |field| object::text(&lease.data, &["spec", field]).to_owned();
        Some(HeldLease {
            holder_identity: Some(text("holderIdentity")).filter(|holder| !holder.is_empty())?,
            acquire_time: Some(text("acquireTime")).filter(|time| !time.is_empty()),
            namespace: lease.metadata.namespace.unwrap_or_default(),
            name: lease.metadata.name.unwrap_or_default(),
        })
    };
    Ok(found.map(|leases| leases.into_iter().filter_map(held).collect()))
}

async fn controllers(client: kube::Client) -> Result<Option<Vec<Controller>>, CliError> {
    let selected = ListParams::default().labels(CONTROLLERS);
    let found = listed(client, &kinds::DEPLOYMENT, &selected).await?;
    let controller = |deployment: DynamicObject| Controller {
        image: object::list(&deployment.data, &["spec", "template", "spec", "containers"])
            .first()
            .map_or("", |container| object::text(container, &["image"]))
            .to_owned(),
        namespace: deployment.metadata.namespace.unwrap_or_default(),
        name: deployment.metadata.name.unwrap_or_default(),
    };
    Ok(found.map(|deployments| deployments.into_iter().map(controller).collect()))
}
