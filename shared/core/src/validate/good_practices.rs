//! Recommendations of the operator-framework for operators, in its words.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::input::{Input, texts};
use super::rule;
use crate::api::cluster_service_version::Csv;
use crate::api::object::{at, list, name, text};
use crate::bundle::synthesis::Manifest;
use crate::go_format::quote;
use crate::version;

/// The prefixes of recommended channels.
const CHANNELS: [&str; 3] = ["candidate", "fast", "stable"];

/// A semantic version at the end of a name.
static VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+)?$").ok()
});

/// Checks the recommendations.
pub(super) fn check(input: &mut Input, csv: &Manifest) {
    let view = Csv::new(&csv.object);
    if at(&csv.object, &["spec", "install", "spec", "deployments"]).is_null() {
        let message = "unable to find a deployment to install in the CSV";
        input.report(&rule::NO_DEPLOYMENT, csv, &["spec", "install"], message);
    }
    for (n, deployment) in view.deployments().iter().enumerate() {
        for (m, container) in list(deployment, &["spec", "template", "spec", "containers"]).iter().enumerate() {
            if !at(container, &["resources", "requests"]).is_null() {
                continue;
            }
            let message = format!(
                "unable to find the resource requests for the container: ({}). It is recommended to ensure the resource request for CPU and Memory. Be aware that for some clusters configurations it is required to specify requests or limits for those values. Otherwise, the system or quota may reject Pod creation. More info: https://master.sdk.operatorframework.io/docs/best-practices/managing-resources/",
                text(container, &["name"])
            );
            let (n, m) = (n.to_string(), m.to_string());
            let path = [
                "spec",
                "install",
                "spec",
                "deployments",
                &n,
                "spec",
                "template",
                "spec",
                "containers",
                &m,
                "resources",
            ];
            input.report(&rule::NO_RESOURCE_REQUESTS, csv, &path, message);
        }
    }
    for (relation, crds) in [("owned", view.owned_crds()), ("required", view.required_crds())] {
        for (n, crd) in crds.iter().enumerate().filter(|(_, crd)| text(crd, &["description"]).is_empty()) {
            let message = format!("{relation} CRD {} has an empty description", quote(text(crd, &["name"])));
            let path = ["spec", "customresourcedefinitions", relation, &n.to_string()];
            input.report(&rule::NO_CRD_DESCRIPTION, csv, &path, message);
        }
    }
    channels(input);
    creates_crds(input, csv);
    check_name(input, csv);
}

fn channels(input: &mut Input) {
    let default = input.annotation("channel.default.v1").unwrap_or_default();
    let mut all: Vec<&str> = input.channels().into_iter().chain([default]).collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|channel| !channel.is_empty() && !CHANNELS.iter().any(|prefix| channel.starts_with(prefix)));
    if let (false, Some(file)) = (all.is_empty(), input.annotations.clone()) {
        let shown: Vec<String> = all.into_iter().map(quote).collect();
        let message = format!(
            "channel(s) [{}] are not following the recommended naming convention: https://olm.operatorframework.io/docs/best-practices/channel-naming",
            shown.join(" ")
        );
        let path = ["annotations", "operators.operatorframework.io.bundle.channels.v1"];
        input.report(&rule::CHANNEL_NAME, &file, &path, message);
    }
}

fn creates_crds(input: &mut Input, csv: &Manifest) {
    const MESSAGE: &str = "CSV contains permissions to create CRD. An Operator shouldn't deploy or manage other operators (such patterns are known as meta or super operators or include CRDs in its Operands). It's the Operator Lifecycle Manager's job to manage the deployment and lifecycle of operators.  Please, review the design of your solution and if you should not be using Dependency Resolution from OLM instead. More info: https://sdk.operatorframework.io/docs/best-practices/common-recommendation/";
    let creates = |rule: &Value| {
        let has = |field: &str, any: &[&str]| texts(rule, field).any(|value| any.contains(&value));
        has("apiGroups", &["apiextensions.k8s.io"])
            && has("resources", &["customresourcedefinitions", "*", "[*]"])
            && has("verbs", &["create", "*", "[*]", "patch"])
    };
    let view = Csv::new(&csv.object);
    for (field, permissions) in
        [("permissions", view.permissions()), ("clusterPermissions", view.cluster_permissions())]
    {
        for (n, permission) in permissions.iter().enumerate() {
            let Some(m) = list(permission, &["rules"]).iter().position(creates) else { continue };
            let (n, m) = (n.to_string(), m.to_string());
            let path = ["spec", "install", "spec", field, &n, "rules", &m];
            return input.report(&rule::CREATES_CRDS, csv, &path, MESSAGE);
        }
    }
}

fn check_name(input: &mut Input, csv: &Manifest) {
    let name = name(&csv.object);
    let path = ["metadata", "name"];
    let found = VERSION.as_ref().and_then(|regex| regex.find(name));
    if found.is_none_or(|found| version::parse(found.as_str()).is_err()) {
        let message = format!(
            "csv.metadata.Name {name} is not following the versioning convention (MAJOR.MINOR.PATCH e.g 0.0.1): https://semver.org/"
        );
        input.report(&rule::NAME_WITHOUT_VERSION, csv, &path, message);
    }
    if name.split(".v").count() != 2 {
        let message = format!(
            "csv.metadata.Name {name} is not following the recommended naming convention: <operator-name>.v<semver> e.g. memcached-operator.v0.0.1"
        );
        input.report(&rule::NAME_CONVENTION, csv, &path, message);
    }
}
