//! Distributions of OLM: the objects that an installation consists of, and their state on a cluster.
//!
//! ```text
//!   manifests of a release --upstream--+
//!   image ----------------------own----+--> Release --Changes--> Release: objects in order --state--> present, absent, changed, …
//!   Deployments, ClusterServiceVersions --installation--> what is installed: distribution, version, namespace
//!   all objects of an installation --removal--> what to delete, in order
//!   Deployments of upstream OLM --transfer--> how to stop and start them
//! ```

mod changes;
pub mod installation;
mod own;
pub mod removal;
pub mod state;
#[cfg(test)]
mod tests;
pub mod transfer;

use serde::Serialize;
use serde_json::Value;

pub use self::changes::{Changes, Mirror};
pub use self::own::own;
use crate::api::cluster_service_version::Csv;
use crate::api::kinds;
use crate::api::object::{self, Gvk};

/// The label with the version of the release that an object belongs to.
pub const RELEASE: &str = "kubectl-olm/release";
/// The default namespace of OLM.
pub const NAMESPACE: &str = "olm";
/// The namespace of operators for all namespaces.
pub const OPERATORS: &str = "operators";
/// The ClusterServiceVersion of the package server, which also contains the version of an upstream release.
pub const PACKAGE_SERVER: &str = "packageserver";
/// The Deployment of this project's controllers.
pub const CONTROLLERS: &str = "kubectl-olm-run";
/// The Deployments of the controllers of upstream OLM.
pub const UPSTREAM: [&str; 2] = ["olm-operator", "catalog-operator"];
/// The ClusterRole of the controllers of upstream OLM, in each of its releases.
pub const UPSTREAM_ROLE: &str = "system:controller:operator-lifecycle-manager";
/// The annotation of the Lease of `kubectl olm run` with the identity of the process that requests a sign of life. The holder removes it when
/// it renews the Lease.
pub const REQUESTED_BY: &str = "kubectl-olm/asked-by";
/// The APIService of the package server. It is not owned by a namespaced object, and blocks the deletion of every namespace
/// while it does not respond.
pub const PACKAGES_API: &str = "v1.packages.operators.coreos.com";

/// A distribution of OLM: the project that publishes its controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Distribution {
    /// This project.
    #[serde(rename = "kubectl-olm")]
    Own,
    /// The Operator Framework.
    #[serde(rename = "upstream")]
    Upstream,
}

impl Distribution {
    /// Returns the name for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "kubectl-olm",
            Self::Upstream => "upstream OLM",
        }
    }
}

/// The objects of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// The distribution that it belongs to.
    pub distribution: Distribution,
    /// The version, with a leading `v`.
    pub version: String,
    /// The namespace of the controllers.
    pub namespace: String,
    /// The objects, in the order in which they are applied.
    pub objects: Vec<Value>,
}

/// The parts of a release that are applied one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// CustomResourceDefinitions. They have to be served before the resources.
    Definitions,
    /// Namespaces.
    Namespaces,
    /// ServiceAccounts, RBAC, and all other kinds of Kubernetes.
    Access,
    /// Objects of OLM's kinds.
    Resources,
    /// Deployments.
    Workloads,
}

/// Returns the stage in which an object is applied.
pub fn stage(object: &Value) -> Stage {
    let Gvk { group, kind, .. } = object::gvk(object);
    match (group.as_str(), kind.as_str()) {
        (kinds::API_EXTENSIONS, "CustomResourceDefinition") => Stage::Definitions,
        ("", "Namespace") => Stage::Namespaces,
        (kinds::OLM_GROUP, _) => Stage::Resources,
        ("apps", _) => Stage::Workloads,
        _ => Stage::Access,
    }
}

/// Why manifests are not a release of OLM.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotARelease {
    /// What is missing.
    pub message: String,
    /// Where it can be found.
    pub hint: String,
}

/// Returns the release that these manifests of upstream OLM contain. With `crds_only` the controllers may be missing.
///
/// # Errors
/// The manifests lack OLM's CustomResourceDefinitions or its controllers, or no version can be read from them.
pub fn upstream(objects: Vec<Value>, named: Option<&str>, crds_only: bool) -> Result<Release, NotARelease> {
    let not = |message: &str, hint: &str| NotARelease { message: message.to_owned(), hint: hint.to_owned() };
    let is_crd = |object: &&Value| {
        stage(object) == Stage::Definitions && object::name(object).ends_with(".operators.coreos.com")
    };
    if !objects.iter().any(|object| is_crd(&object)) {
        return Err(not(
            "the manifests lack OLM's CustomResourceDefinitions",
            "a release has them in the file crds.yaml",
        ));
    }
    let controllers = objects.iter().find(|object| is_controllers(object));
    if controllers.is_none() && !crds_only {
        return Err(not("the manifests lack the Deployments of OLM", "a release has them in the file olm.yaml"));
    }
    let read = objects.iter().find_map(version_of);
    let version = match (named.map(with_v), read) {
        (Some(named), Some(read)) if named != read => {
            let message = format!("the manifests are of version {read}, not {named}");
            return Err(not(&message, "leave out --version, or specify the manifests of that version"));
        }
        (Some(version), _) | (None, Some(version)) => version,
        (None, None) => return Err(not("the manifests do not contain their version", "specify it with --version")),
    };
    let namespace = controllers.map_or(NAMESPACE, |deployment| object::namespace(deployment)).to_owned();
    let mut release = Release { distribution: Distribution::Upstream, version, namespace, objects };
    release.finish(crds_only);
    Ok(release)
}

/// Returns whether this is a Deployment of the controllers of upstream OLM.
fn is_controllers(object: &Value) -> bool {
    object::kind(object) == "Deployment" && UPSTREAM.contains(&object::name(object))
}

/// Returns the version in the ClusterServiceVersion of the package server.
pub(crate) fn version_of(object: &Value) -> Option<String> {
    let is_server = object::kind(object) == "ClusterServiceVersion" && object::name(object) == PACKAGE_SERVER;
    let csv = Csv::new(object);
    let label = object::label(object, "olm.version").filter(|label| !label.is_empty());
    let version = label.or_else(|| Some(csv.version()).filter(|version| !version.is_empty()));
    version.filter(|_| is_server && !csv.is_copy()).map(with_v)
}

/// Returns a version with a leading `v`.
pub fn with_v(version: &str) -> String {
    format!("v{}", version.trim_start_matches('v'))
}

/// Returns a version as the value of a label, which cannot contain `+`.
pub fn label_value(version: &str) -> String {
    version.replace('+', "-")
}

impl Release {
    /// Sorts and labels the objects. With `crds_only` the CustomResourceDefinitions and namespaces remain: controllers that run
    /// outside of the cluster have their Lease in the namespace of OLM.
    fn finish(&mut self, crds_only: bool) {
        if crds_only {
            self.objects.retain(|object| stage(object) <= Stage::Namespaces);
            let is_known = self.stage(Stage::Namespaces).any(|namespace| object::name(namespace) == NAMESPACE);
            if !is_known {
                self.objects.push(own::namespace(NAMESPACE));
            }
        }
        self.objects.sort_by_key(stage);
        let version = label_value(&self.version);
        for object in &mut self.objects {
            object::set_label(object, RELEASE, &version);
            // Fields that the API server sets.
            object::map_mut(object, &[]).remove("status");
            object::map_mut(object, &["metadata"]).remove("creationTimestamp");
        }
    }

    /// Returns whether its controllers create the APIService of PackageManifests. That of upstream OLM is created for the
    /// ClusterServiceVersion of its package server, which the release contains.
    pub fn creates_packages_api(&self) -> bool {
        self.distribution == Distribution::Own && self.stage(Stage::Workloads).any(own::serves_packages)
    }

    /// Returns the objects of a stage.
    pub fn stage(&self, of: Stage) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| stage(object) == of)
    }
}
