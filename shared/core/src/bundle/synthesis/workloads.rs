//! Deployments and their ServiceAccounts: the install strategy.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::account::Destination;
use super::{Manifest, Work, metadata};
use crate::api::kinds::RBAC_GROUP;
use crate::api::object::{self, at, text};
use crate::finding::Finding;

/// The path of the Deployments in a ClusterServiceVersion.
pub(super) const DEPLOYMENTS: [&str; 4] = ["spec", "install", "spec", "deployments"];
/// The ServiceAccount of pods that name none; Kubernetes creates it in every namespace.
const DEFAULT_ACCOUNT: &str = "default";
/// The number of old ReplicaSets that OLM keeps of each Deployment.
const REVISIONS: i64 = 1;
/// Annotations that controllers and clients write for themselves.
pub(super) const BOOKKEEPING: [&str; 2] =
    ["deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"];

/// A Deployment of the bundle.
pub(super) struct Workload {
    /// Number of its manifest.
    pub(super) number: usize,
    /// Its name.
    pub(super) name: String,
    /// The ServiceAccount of its pods.
    pub(super) account: String,
}

/// The Deployments of the bundle.
pub(super) struct Workloads {
    /// In the order of the input, which is that of the install strategy.
    pub(super) all: Vec<Workload>,
    /// Their ServiceAccounts.
    accounts: BTreeSet<String>,
    /// Namespace of the Deployments; empty when they name none.
    pub(super) namespace: String,
}

impl Workloads {
    /// Returns whether a subject of a binding is a ServiceAccount of a Deployment.
    pub(super) fn is_account(&self, subject: &Value) -> bool {
        let namespace = text(subject, &["namespace"]);
        text(subject, &["kind"]) == "ServiceAccount"
            && self.is_home(namespace)
            && self.accounts.contains(text(subject, &["name"]))
    }

    /// Returns whether a namespace is that of the operator. Where the Deployments name none, any is.
    pub(super) fn is_home(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || namespace.is_empty() || namespace == self.namespace
    }

    /// Returns the Deployment whose pods a Service selects.
    pub(super) fn selected_by(&self, work: &Work<'_>, service: &Value) -> Option<&Workload> {
        let selector: Vec<_> = object::entries(service, &["spec", "selector"]).collect();
        let is_selected = |workload: &&Workload| {
            let labels = at(&work.manifests[workload.number].object, &["spec", "template", "metadata", "labels"]);
            selector.iter().all(|(key, value)| labels.get(*key).and_then(Value::as_str) == Some(value))
        };
        if selector.is_empty() { None } else { self.all.iter().find(is_selected) }
    }
}

/// Returns the namespace of the first Deployment that names one; empty when none does.
fn namespace_of(manifests: &[Manifest]) -> String {
    let deployments = manifests.iter().filter(|manifest| manifest.is("apps", "Deployment"));
    deployments
        .map(|manifest| object::namespace(&manifest.object))
        .find(|n| !n.is_empty())
        .unwrap_or_default()
        .to_owned()
}

/// Writes the Deployments into the install strategy, and finds their ServiceAccounts.
pub(super) fn project(work: &mut Work<'_>) -> Workloads {
    let mut workloads =
        Workloads { all: Vec::new(), accounts: BTreeSet::new(), namespace: namespace_of(work.manifests) };
    for (number, manifest) in work.of_kind("apps", "Deployment") {
        let deployment = &manifest.object;
        let name = object::name(deployment);
        if workloads.all.iter().any(|other| other.name == name) {
            let finding = Finding::new("duplicate-deployment", format!("another Deployment is named {name}, too"))
                .hint("rename one: the Deployments of a bundle are in one namespace");
            work.report(number, &["metadata", "name"], finding);
            continue;
        }
        let required = ["selector", "template"];
        if let Some(missing) = required.into_iter().find(|field| at(deployment, &["spec", field]).is_null()) {
            let finding = Finding::new("invalid-deployment", format!("has no spec.{missing}"))
                .hint("this may be a patch: build the manifests with kustomize, and pass the output");
            work.report(number, &["spec"], finding);
            continue;
        }
        if !workloads.is_home(object::namespace(deployment)) {
            let finding = Finding::new(
                "other-namespace",
                format!(
                    "is in namespace {}, other Deployments in {}",
                    object::namespace(deployment),
                    workloads.namespace
                ),
            )
            .hint("put all Deployments of the operator into one namespace");
            work.report(number, &["metadata", "namespace"], finding);
            continue;
        }
        let mut entry = json!({ "name": name, "spec": at(deployment, &["spec"]) });
        if at(deployment, &["metadata", "labels"]).as_object().is_some_and(|labels| !labels.is_empty()) {
            entry["label"] = deployment["metadata"]["labels"].clone();
        }
        let field = work.push(&DEPLOYMENTS, entry);
        work.project(number, field);
        for (key, _) in object::entries(deployment, &["metadata", "annotations"]) {
            if !BOOKKEEPING.contains(&key) && !key.starts_with(metadata::ANNOTATION_PREFIX) {
                let finding = Finding::new("annotation-not-carried", format!("OLM does not set its annotation {key}"))
                    .warning()
                    .hint("move it to spec.template.metadata.annotations if the pods need it, or remove it");
                work.report(number, &["metadata", "annotations", key], finding);
            }
        }
        if at(deployment, &["spec", "revisionHistoryLimit"]).as_i64().is_some_and(|limit| limit != REVISIONS) {
            let finding =
                Finding::new("revisions", format!("OLM sets spec.revisionHistoryLimit to {REVISIONS}")).warning();
            work.report(number, &["spec", "revisionHistoryLimit"], finding.hint("remove the field"));
        }
        let account = match text(deployment, &["spec", "template", "spec", "serviceAccountName"]) {
            "" => text(deployment, &["spec", "template", "spec", "serviceAccount"]),
            account => account,
        };
        let account = if account.is_empty() { DEFAULT_ACCOUNT } else { account }.to_owned();
        workloads.accounts.insert(account.clone());
        workloads.all.push(Workload { number, name: name.to_owned(), account });
    }
    if workloads.all.is_empty() {
        work.findings.push(
            Finding::new("no-deployment", "the manifests contain no Deployment".to_owned())
                .hint("add the operator's Deployment (apps/v1); OLM runs operators as Deployments only"),
        );
    }
    accounts(work, &workloads);
    refuse_several_namespaces(work, &workloads);
    workloads
}

/// Reports Deployments without a namespace in manifests that name several: which of them is the operator's is unknown.
fn refuse_several_namespaces(work: &mut Work<'_>, workloads: &Workloads) {
    let Some(first) = workloads.all.first().filter(|_| workloads.namespace.is_empty()) else { return };
    let of_accounts = ["RoleBinding", "ClusterRoleBinding"]
        .into_iter()
        .flat_map(|kind| work.of_kind(RBAC_GROUP, kind))
        .flat_map(|(_, binding)| object::list(&binding.object, &["subjects"]))
        .filter(|subject| workloads.is_account(subject))
        .map(|subject| text(subject, &["namespace"]));
    let permissions = ["Role", "RoleBinding"].into_iter().flat_map(|kind| work.of_kind(RBAC_GROUP, kind));
    let of_objects =
        permissions.chain(work.of_kind("", "ServiceAccount")).map(|(_, manifest)| object::namespace(&manifest.object));
    let namespaces: BTreeSet<&str> = of_accounts.chain(of_objects).filter(|namespace| !namespace.is_empty()).collect();
    if namespaces.len() > 1 {
        let names: Vec<&str> = namespaces.into_iter().collect();
        let message = format!("names no namespace, but its permissions are in several: {}", names.join(", "));
        let finding = Finding::new("ambiguous-namespace", message).hint("add metadata.namespace to the Deployments");
        work.report(first.number, &["metadata"], finding);
    }
}

/// Projects the Deployments' ServiceAccounts: OLM creates those that the permissions name.
fn accounts(work: &mut Work<'_>, workloads: &Workloads) {
    for (number, manifest) in work.of_kind("", "ServiceAccount") {
        let account = &manifest.object;
        let name = object::name(account);
        if !workloads.accounts.contains(name) || !workloads.is_home(object::namespace(account)) {
            continue;
        }
        if name == DEFAULT_ACCOUNT {
            work.record(number, Destination::Generated("Kubernetes creates it in every namespace".to_owned()));
        } else {
            work.project(number, format!("spec.install.spec permissions of {name}"));
        }
        if account.get("imagePullSecrets").is_some_and(|secrets| secrets.as_array().is_none_or(|s| !s.is_empty())) {
            let finding = Finding::new("account-pull-secrets", "OLM does not set imagePullSecrets of ServiceAccounts")
                .hint("move them to spec.template.spec.imagePullSecrets of the Deployment");
            work.report(number, &["imagePullSecrets"], finding);
        }
        if object::list(account, &["secrets"]).iter().any(|secret| !text(secret, &["name"]).is_empty()) {
            let finding = Finding::new("account-secrets", "OLM does not set secrets of ServiceAccounts").warning();
            let hint = "mount the Secrets into the pods of the Deployment; for a token, let a Secret of type kubernetes.io/service-account-token name the ServiceAccount";
            work.report(number, &["secrets"], finding.hint(hint));
        }
        if at(account, &["automountServiceAccountToken"]).as_bool() == Some(false) {
            let finding =
                Finding::new("account-token", "OLM does not set automountServiceAccountToken of ServiceAccounts")
                    .warning()
                    .hint("move it to spec.template.spec of the Deployment");
            work.report(number, &["automountServiceAccountToken"], finding);
        }
        for (key, _) in object::entries(account, &["metadata", "annotations"]) {
            if !BOOKKEEPING.contains(&key) {
                let finding = Finding::new("annotation-not-carried", format!("OLM does not set its annotation {key}"))
                    .warning()
                    .hint("instruct users to annotate the ServiceAccount after the installation, or remove it");
                work.report(number, &["metadata", "annotations", key], finding);
            }
        }
    }
}
