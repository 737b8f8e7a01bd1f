//! The steps of a removal, each of which can be repeated.

use std::collections::BTreeSet;
use std::time::Duration;

use olm_core::api::cluster_service_version::{Csv, FINALIZER, Phase};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::labels;
use olm_core::api::object::{self, ObjectRef};
use olm_core::removal::{RECORD, Record, Removal};
use olm_core::world::{GroupKind, Reader, kind};
use serde_json::{Value, json};

use super::deletion::{Remaining, delete, described, gone, refused};
use super::operands::Operands;
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::{Api, ListQuery, Page, Resource};
use crate::observe::ClusterState;

/// How long a controller may take to process the deletion of a ClusterServiceVersion. OLM takes a second; after this time, none
/// runs.
const GRACE: Duration = Duration::from_secs(15);

/// How long custom resources may take whose operator does not run, and the garbage collector for what the operator owns.
pub(super) const SETTLES: Duration = Duration::from_mins(1);

/// How long the deletion of definitions may take: when the API server cannot list the custom resources, it tries again after a
/// pause that doubles, up to more than a minute.
const RETRIES: Duration = Duration::from_mins(5);

/// The cluster-scoped kinds that OLM creates for a ClusterServiceVersion, and labels with their owner.
pub(super) const OWNED: [Kind; 5] = [
    kinds::MUTATING_WEBHOOK_CONFIGURATION,
    kinds::VALIDATING_WEBHOOK_CONFIGURATION,
    kinds::API_SERVICE,
    kinds::CLUSTER_ROLE_BINDING,
    kinds::CLUSTER_ROLE,
];

/// The steps of a removal.
pub(super) struct Steps<'s> {
    pub(super) api: &'s Api,
    pub(super) state: &'s ClusterState,
    pub(super) removal: &'s Removal,
    /// What was deleted.
    pub(super) deleted: Vec<ObjectRef>,
}

impl Steps<'_> {
    fn uid(&self, target: &ObjectRef) -> Option<String> {
        let known = GroupKind::new(&target.gvk.group, &target.gvk.kind);
        let json = Reader::new(&self.state.world).json(&known, &target.namespace, &target.name)?;
        Some(object::uid(json).to_owned()).filter(|uid| !uid.is_empty())
    }

    async fn delete(&mut self, target: &ObjectRef, uid: Option<&str>, printer: &mut Printer) -> Result<(), CliError> {
        if delete(self.api, target, uid).await? {
            self.note(target, printer);
        }
        Ok(())
    }

    /// Records and prints that an object was deleted.
    fn note(&mut self, target: &ObjectRef, printer: &mut Printer) {
        self.deleted.push(target.clone());
        let place = if target.namespace.is_empty() { String::new() } else { format!("{}/", target.namespace) };
        printer.talk(format_args!("deleted {} {place}{}", target.gvk.kind, target.name));
    }

    /// Records what is about to be deleted, so that a removal that is interrupted can be continued: nothing else names the
    /// operator when its Subscription is deleted.
    pub(super) async fn record(&self, name: &str, printer: &mut Printer) -> Result<(), CliError> {
        let Some(operator) = self.removal.operator() else { return Ok(()) };
        let target = kinds::OPERATOR.object("", &operator);
        let annotations = json!({ RECORD: text(&self.removal.record(name))? });
        let patch = json!({ "metadata": { "annotations": annotations } });
        let refusal = match self.api.merge(&target, &patch).await {
            Ok(_) => return Ok(()),
            Err(refusal) if refusal.is_not_found() => {
                let created = json!({
                    "apiVersion": kinds::OPERATOR.gvk().api_version(), "kind": kinds::OPERATOR.kind,
                    "metadata": { "name": operator, "annotations": annotations }, "spec": {},
                });
                self.api.create(&created).await.err()
            }
            Err(refusal) => Some(refusal),
        };
        if let Some(refusal) = refusal {
            printer.warn(format_args!(
                "the removal cannot be recorded in Operator {operator}: {}; if it is interrupted, later steps may have to be done by hand",
                refusal.message
            ));
        }
        Ok(())
    }

    /// Deletes the Operator object, or the record in it if definitions remain that are its components.
    pub(super) async fn forget(&mut self, printer: &mut Printer) -> Result<(), CliError> {
        let Some(operator) = self.removal.operator() else { return Ok(()) };
        let target = kinds::OPERATOR.object("", &operator);
        let found = match self.api.get(&target).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            // Only what was recorded remains, and recording it was refused, too.
            Err(refusal) if refusal.is_not_found() || refusal.is_forbidden() => return Ok(()),
            Err(refusal) => return Err(refused("get", &target, refusal)),
        };
        let is_used = self.removal.crds.iter().any(|crd| crd.kept.is_some())
            && !object::list(&found, &["status", "components", "refs"]).is_empty();
        if !is_used {
            // Nothing is a component of it any more, so that OLM does not create it again.
            return self.delete(&target, Some(object::uid(&found)), printer).await;
        }
        if object::annotation(&found, RECORD).is_none() {
            return Ok(());
        }
        match self.api.merge(&target, &json!({ "metadata": { "annotations": { RECORD: null } } })).await {
            Err(refusal) if !refusal.is_not_found() => Err(refused("patch", &target, refusal)),
            _ => Ok(()),
        }
    }

    /// Deletes the Subscription, and InstallPlans that remain without it.
    pub(super) async fn delete_subscription(&mut self, printer: &mut Printer) -> Result<(), CliError> {
        let removal = self.removal;
        // A plan that is executed later would install the operator again.
        for target in removal.subscription.iter().chain(&removal.plans) {
            self.delete(target, self.uid(target).as_deref(), printer).await?;
        }
        Ok(())
    }

    /// Returns whether the operator runs, so that it processes finalizers of its custom resources.
    fn is_running(&self) -> bool {
        let csvs = self.removal.csvs.iter().filter_map(|target| {
            Reader::new(&self.state.world).json(&kind::CLUSTER_SERVICE_VERSION, &target.namespace, &target.name)
        });
        csvs.map(Csv::new).any(|csv| csv.phase() == Phase::Succeeded)
    }

    /// Deletes custom resources while the operator can process their finalizers.
    pub(super) async fn delete_operands(
        &mut self,
        all: &[Operands],
        timeout: Option<Duration>,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        for operands in all {
            for object in &operands.objects {
                self.delete(&ObjectRef::from_object(object), Some(object::uid(object)), printer).await?;
            }
        }
        let limit = timeout.or_else(|| (!self.is_running()).then_some(SETTLES));
        for operands in all.iter().filter(|operands| !operands.objects.is_empty()) {
            let remaining = gone(self.api, operands.query(), &operands.uids(), limit, printer).await?;
            if !remaining.is_empty() {
                return Err(hanging(operands, &remaining, self.is_running()));
            }
        }
        Ok(())
    }

    /// Deletes the ClusterServiceVersions. If no controller processes their finalizer, deletes what it stands for.
    pub(super) async fn delete_csvs(&mut self, printer: &mut Printer) -> Result<(), CliError> {
        let mut uids = BTreeSet::new();
        for target in &self.removal.csvs {
            let uid = self.uid(target);
            self.delete(target, uid.as_deref(), printer).await?;
            uids.extend(uid);
        }
        let query = ListQuery::all(&Resource::from(&kinds::CLUSTER_SERVICE_VERSION)).within(&self.removal.namespace);
        let remaining = gone(self.api, query.clone(), &uids, Some(GRACE), printer).await?;
        // Also for those that an interrupted removal has deleted.
        for target in self.removal.csvs.iter().chain(&self.removal.replaced) {
            self.delete_owned(target, printer).await?;
        }
        if remaining.is_empty() {
            return Ok(());
        }
        printer.talk("no controller processes the deletion: removing OLM's finalizer of the ClusterServiceVersions");
        for target in &self.removal.csvs {
            self.release(target, &uids).await?;
        }
        let remaining = gone(self.api, query, &uids, Some(GRACE), printer).await?;
        if remaining.is_empty() {
            return Ok(());
        }
        Err(CliError::new(ErrorKind::Api, format!("not deleted: ClusterServiceVersions {}", described(&remaining)))
            .hint("the owners of these finalizers have to remove them"))
    }

    /// Deletes what the garbage collector cannot: cluster-scoped objects, and copies in other namespaces.
    async fn delete_owned(&mut self, csv: &ObjectRef, printer: &mut Printer) -> Result<(), CliError> {
        for kind in &OWNED {
            for object in owned(self.api, kind, csv).await? {
                self.delete(&ObjectRef::from_object(&object), Some(object::uid(&object)), printer).await?;
            }
        }
        let copies = format!("{}={}", labels::COPIED_FROM, csv.namespace);
        let query = ListQuery::all(&Resource::from(&kinds::CLUSTER_SERVICE_VERSION)).labelled(&copies);
        let (copies, _) = list(self.api, &query).await?;
        for copy in copies.iter().filter(|copy| object::name(copy) == csv.name) {
            delete(self.api, &ObjectRef::from_object(copy), Some(object::uid(copy))).await?;
        }
        for name in &self.removal.api_services {
            self.delete_api_service(name, printer).await?;
        }
        Ok(())
    }

    /// Deletes an APIService whose Service is in the namespace of the operator.
    async fn delete_api_service(&mut self, name: &str, printer: &mut Printer) -> Result<(), CliError> {
        let target = kinds::API_SERVICE.object("", name);
        match self.api.get(&target).await {
            Ok(Some(object)) if object::text(&object, &["spec", "service", "namespace"]) == self.removal.namespace => {
                self.delete(&target, Some(object::uid(&object)), printer).await
            }
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is_not_found() => Ok(()),
            Err(refusal) => Err(refused("get", &target, refusal)),
        }
    }

    /// Removes OLM's finalizer of a ClusterServiceVersion that is being deleted.
    async fn release(&self, target: &ObjectRef, uids: &BTreeSet<String>) -> Result<(), CliError> {
        let csv = match self.api.get(target).await {
            Ok(Some(csv)) if uids.contains(object::uid(&csv)) && object::is_deleting(&csv) => csv,
            Ok(_) => return Ok(()),
            Err(refusal) => return Err(refused("get", target, refusal)),
        };
        let finalizers = object::list(&csv, &["metadata", "finalizers"]).iter();
        let others: Vec<&Value> = finalizers.filter(|finalizer| finalizer.as_str() != Some(FINALIZER)).collect();
        let patch = json!({ "metadata": {
            "uid": object::uid(&csv), "resourceVersion": object::resource_version(&csv), "finalizers": others,
        } });
        match self.api.merge(target, &patch).await {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is_not_found() || refusal.is_conflict() => Ok(()),
            Err(refusal) => Err(refused("patch", target, refusal)),
        }
    }

    /// Deletes CustomResourceDefinitions, permissions of the manifests and the OperatorGroup, and repairs conversions. Without
    /// `timeout`, waits [`RETRIES`] for the definitions.
    pub(super) async fn delete_definitions(
        &mut self,
        timeout: Option<Duration>,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        // Before any deletion: the API server lists the custom resources of a definition before it deletes it, and waits for the
        // webhook.
        for crd in self.removal.crds.iter().filter(|crd| crd.loses_conversion) {
            let target = kinds::CUSTOM_RESOURCE_DEFINITION.object("", &crd.name);
            let patch = json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } });
            match self.api.merge(&target, &patch).await {
                Ok(_) if crd.kept.is_some() => {
                    printer.talk(format_args!("set the conversion of {} to None", crd.name));
                }
                Ok(_) => {}
                Err(refusal) if refusal.is_not_found() => {}
                Err(refusal) => return Err(refused("patch", &target, refusal)),
            }
        }
        let mut uids = BTreeSet::new();
        for crd in self.removal.crds.iter().filter(|crd| crd.kept.is_none()) {
            let target = kinds::CUSTOM_RESOURCE_DEFINITION.object("", &crd.name);
            let uid = self.uid(&target);
            self.delete(&target, uid.as_deref(), printer).await?;
            uids.extend(uid);
        }
        for permission in self.removal.permissions.iter().filter(|permission| permission.kept.is_none()) {
            if let Some(target) = permission.target() {
                self.delete(&target, Some(&permission.uid), printer).await?;
            }
        }
        if !uids.is_empty() {
            let query = ListQuery::all(&Resource::from(&kinds::CUSTOM_RESOURCE_DEFINITION));
            let remaining = gone(self.api, query, &uids, Some(timeout.unwrap_or(RETRIES)), printer).await?;
            if !remaining.is_empty() {
                return Err(CliError::new(
                    ErrorKind::Api,
                    format!("not deleted: CustomResourceDefinitions {}", described(&remaining)),
                )
                .hint("the API server first deletes their custom resources, and waits for finalizers; kubectl get lists these objects"));
            }
        }
        if let Some(group) = &self.removal.group
            && delete_group(self.api, group, self.uid(group).as_deref()).await?
        {
            self.note(group, printer);
        }
        Ok(())
    }
}

/// Deletes an OperatorGroup with its ClusterRoles. Returns whether it existed.
pub(super) async fn delete_group(api: &Api, group: &ObjectRef, uid: Option<&str>) -> Result<bool, CliError> {
    if !delete(api, group, uid).await? {
        return Ok(false);
    }
    for role in owned(api, &kinds::CLUSTER_ROLE, group).await? {
        delete(api, &ObjectRef::from_object(&role), Some(object::uid(&role))).await?;
    }
    Ok(true)
}

async fn list(api: &Api, query: &ListQuery) -> Result<(Vec<Value>, String), CliError> {
    api.list(query).await.and_then(Page::readable).map_err(|refusal| {
        let target =
            ObjectRef { gvk: query.resource.gvk.clone(), namespace: query.namespace.clone(), name: String::new() };
        refused("list", &target, refusal)
    })
}

/// Returns the cluster-scoped objects of a kind with the labels of an owner.
pub(super) async fn owned(api: &Api, kind: &Kind, owner: &ObjectRef) -> Result<Vec<Value>, CliError> {
    let labels = format!(
        "{}={},{}={},{}={}",
        labels::OWNER,
        owner.name,
        labels::OWNER_NAMESPACE,
        owner.namespace,
        labels::OWNER_KIND,
        owner.gvk.kind
    );
    Ok(list(api, &ListQuery::all(&Resource::from(kind)).labelled(&labels)).await?.0)
}

/// Returns a record as the value of an annotation.
fn text(record: &Record) -> Result<String, CliError> {
    serde_json::to_string(record).map_err(|error| CliError::new(ErrorKind::Internal, error.to_string()))
}

/// Returns the error for custom resources whose finalizers are not removed.
fn hanging(operands: &Operands, remaining: &Remaining, is_running: bool) -> CliError {
    let why = if is_running { "the operator has not removed them in time" } else { "the operator does not run" };
    let first = remaining.values().next().map(|blocked| blocked.name.as_str()).unwrap_or_default();
    let (namespace, name) = first.split_once('/').unwrap_or(("", first));
    let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    CliError::new(
        ErrorKind::Api,
        format!(
            "objects of {} are not deleted, because finalizers block them and {why}: {}",
            operands.crd,
            described(remaining)
        ),
    )
    .hint(
        "repair the operator, or remove the finalizers if what they stand for is not needed, and run the command again",
    )
    .hint(format!(
        "kubectl patch {} {name}{place} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
        operands.resource.qualified()
    ))
}
