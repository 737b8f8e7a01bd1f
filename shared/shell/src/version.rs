//! What version this is, and what the server runs.

use std::time::Duration;

use kube::api::{Api, DynamicObject, ListParams};
use kube::core::discovery::ApiResource;
use kube::core::gvk::GroupVersionKind;
use olm_core::api::object;
use serde::Serialize;

use crate::cli::CliError;
use crate::cli::flags::ClusterFlags;

/// The release of OLM whose behaviour on the wire is kept.
pub const OLM: &str = "v0.46.0";

/// How long the server may take when nothing else was asked for: a version should not keep anybody waiting.
const PATIENCE: Duration = Duration::from_secs(3);

/// The API group of OLM's resources.
const GROUP: &str = "operators.coreos.com";

/// Selects the Deployments of a real OLM, in whatever namespace they are.
const CONTROLLERS: &str = "app in (olm-operator,catalog-operator)";

/// What this program is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// Version of kubectl-olm.
    pub version: String,
    /// The release of OLM that it behaves like.
    pub olm_version: &'static str,
    /// Operating system and processor as Go names them, `linux/amd64`.
    pub platform: String,
}

impl Client {
    /// This program.
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

/// What the server runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Version of Kubernetes.
    pub kubernetes_version: String,
    /// Versions of OLM's API group that are served; none when the CRDs are not installed.
    pub api_versions: Vec<String>,
    /// The controllers of a real OLM, or nothing when we may not look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<Controller>>,
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

/// Asks the server, with a runtime and a connection of its own.
pub fn server(flags: &ClusterFlags) -> Result<Server, CliError> {
    let flags = ClusterFlags { request_timeout: flags.request_timeout.or(Some(PATIENCE)), ..flags.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = kube::Client::try_from(flags.config().await?)?;
        let kubernetes_version = client.apiserver_version().await?.git_version;
        let groups = client.list_api_groups().await?;
        let api_versions = groups
            .groups
            .into_iter()
            .filter(|group| group.name == GROUP)
            .flat_map(|group| group.versions.into_iter().map(|version| version.version))
            .collect();
        Ok(Server { kubernetes_version, api_versions, controllers: controllers(client).await? })
    })
}

async fn controllers(client: kube::Client) -> Result<Option<Vec<Controller>>, CliError> {
    let deployments = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    let api: Api<DynamicObject> = Api::all_with(client, &deployments);
    let found = match api.list(&ListParams::default().labels(CONTROLLERS)).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.is_forbidden() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let controller = |deployment: DynamicObject| Controller {
        image: object::list(&deployment.data, &["spec", "template", "spec", "containers"])
            .first()
            .map_or("", |container| object::text(container, &["image"]))
            .to_owned(),
        namespace: deployment.metadata.namespace.unwrap_or_default(),
        name: deployment.metadata.name.unwrap_or_default(),
    };
    Ok(Some(found.items.into_iter().map(controller).collect()))
}
