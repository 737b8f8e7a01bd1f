//! What is installed on a cluster: distribution, version and namespace.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{CONTROLLERS, Distribution, PACKAGE_SERVER, RELEASE, UPSTREAM, version_of};
use crate::api::cluster_service_version::is_copy;
use crate::api::object;

/// An installation of OLM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Installation {
    /// The distribution that it belongs to.
    pub distribution: Distribution,
    /// The version, with a leading `v`, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The namespace of the controllers.
    pub namespace: String,
    /// The names of the Deployments.
    pub controllers: Vec<String>,
}

impl Installation {
    /// Returns whether OpenShift manages it.
    pub fn is_openshift(&self) -> bool {
        self.namespace.starts_with("openshift-")
    }

    /// Returns the distribution, version and namespace for messages.
    pub fn describe(&self) -> String {
        let version = self.version.as_deref().unwrap_or("(unknown version)");
        format!("{} {version} in namespace {}", self.distribution.as_str(), self.namespace)
    }
}

/// Returns the installations: by their Deployments, and by the ClusterServiceVersion of the package server.
pub fn installations(deployments: &[Value], csvs: &[Value]) -> Vec<Installation> {
    let mut found: BTreeMap<(String, Distribution), Installation> = BTreeMap::new();
    let mut add = |distribution: Distribution, object: &Value, controller: Option<&str>, version: Option<String>| {
        let namespace = object::namespace(object).to_owned();
        let installation = found.entry((namespace.clone(), distribution)).or_insert(Installation {
            distribution,
            version: None,
            namespace,
            controllers: Vec::new(),
        });
        installation.controllers.extend(controller.map(str::to_owned));
        installation.version = installation.version.take().or(version);
    };
    for csv in csvs.iter().filter(|csv| object::name(csv) == PACKAGE_SERVER && !is_copy(csv)) {
        add(Distribution::Upstream, csv, None, version_of(csv));
    }
    for deployment in deployments {
        let name = object::name(deployment);
        let version = object::label(deployment, RELEASE).map(str::to_owned);
        let is_upstream = object::label(deployment, "app").is_some_and(|app| UPSTREAM.contains(&app));
        if name == CONTROLLERS && version.is_some() {
            add(Distribution::Own, deployment, Some(name), version);
        } else if is_upstream {
            add(Distribution::Upstream, deployment, Some(name), version);
        }
    }
    found.into_values().collect()
}
