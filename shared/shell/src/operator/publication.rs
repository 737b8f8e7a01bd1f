//! The objects of an ephemeral catalog on a cluster: created, or brought up to date.
//!
//! *Guarantees*: an object of another origin is never changed. Everything can be interrupted and repeated.

use std::sync::atomic::{AtomicBool, Ordering};

use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::catalog::ephemeral::{Ephemeral, LABEL, RegistryPod};
use serde_json::{Value, json};

use super::creation::{label, send};
use super::deletion::delete;
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::{Api, Depth, ListQuery, Page, Resource};
use crate::cluster::installed::get;
use crate::cluster::request_error::RequestError;

/// An ephemeral catalog to publish.
pub(super) struct Publication {
    name: String,
    namespace: String,
    config_maps: Vec<String>,
    /// The CatalogSource.
    source: Value,
    /// What it owns.
    owned: Vec<Value>,
    /// Whether objects may have been created.
    has_begun: AtomicBool,
}

impl Publication {
    /// Prepares the objects of a catalog. `base` is a CatalogSource that the user supplies.
    pub(super) fn new(catalog: &Ephemeral, base: Option<&Value>, registry: Option<RegistryPod<'_>>) -> Self {
        let source = catalog.catalog_source(base);
        let registry = registry.into_iter().flat_map(|pod| catalog.registry(pod));
        Self {
            name: catalog.name().to_owned(),
            namespace: object::namespace(&source).to_owned(),
            config_maps: catalog.config_map_names(),
            owned: catalog.config_maps().into_iter().chain(registry).collect(),
            source,
            has_begun: AtomicBool::new(false),
        }
    }

    /// Returns the name of the CatalogSource.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the objects in the order of their creation, without owners.
    pub(super) fn objects(&self) -> Vec<Value> {
        std::iter::once(&self.source).chain(&self.owned).cloned().collect()
    }

    /// Returns whether objects may have been created.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Creates what is missing, and updates what differs. Returns the objects as the server stored them. `lines` receives a line for
    /// each object that is changed.
    ///
    /// # Errors
    /// An object of that name has another origin, or the server refuses a request.
    pub(super) async fn send(
        &self,
        api: &Api,
        is_dry_run: bool,
        mut lines: Option<&mut Printer>,
    ) -> Result<Vec<Value>, CliError> {
        self.has_begun.store(!is_dry_run, Ordering::Relaxed);
        // The content exists before the CatalogSource, so that nothing reads a catalog without it. Owners are set afterwards.
        for object in self.owned.iter().filter(|object| is_content(object)) {
            self.send_one(api, object, is_dry_run, lines.as_deref_mut()).await?;
        }
        let source = self.send_one(api, &self.source, is_dry_run, lines.as_deref_mut()).await?;
        let owner = object::owner_reference(&source, false);
        let mut all = vec![source];
        for object in &self.owned {
            let mut object = object.clone();
            object::set_owner_reference(&mut object, owner.clone());
            if is_dry_run && is_content(&object) {
                // The dry run has not created it.
                all.push(object);
                continue;
            }
            let lines = lines.as_deref_mut().filter(|_| !is_content(&object));
            all.push(self.send_one(api, &object, is_dry_run, lines).await?);
        }
        Ok(all)
    }

    async fn send_one(
        &self,
        api: &Api,
        object: &Value,
        is_dry_run: bool,
        lines: Option<&mut Printer>,
    ) -> Result<Value, CliError> {
        let target = ObjectRef::from_object(object);
        let Some(existing) = get(api, &target).await? else {
            let stored = send(api, object, is_dry_run).await?;
            if let Some(printer) = lines {
                printer.line(format_args!("{} created", label(&stored)))?;
                printer.flush()?;
            }
            return Ok(stored);
        };
        if object::label(&existing, LABEL) != Some(&self.name) {
            return Err(CliError::new(
                ErrorKind::Api,
                format!(
                    "{} of namespace {} exists, and does not belong to this command",
                    label(object),
                    target.namespace
                ),
            )
            .hint("delete it, or run the bundle in another namespace: -n NAMESPACE"));
        }
        if object::is_deleting(&existing) {
            return Err(CliError::new(ErrorKind::Api, format!("{} is being deleted", label(object)))
                .hint("run the command again when it is deleted"));
        }
        let wanted = wanted(object);
        if object::covers(&existing, &wanted) {
            return Ok(existing);
        }
        let answer =
            if is_dry_run { api.dry_run_merge(&target, &wanted).await } else { api.merge(&target, &wanted).await };
        let stored = answer.map_err(|refusal| {
            let known = kinds::find(&target.gvk.group, &target.gvk.kind).map(kinds::Kind::resource);
            CliError::from(RequestError::new("patch", known.unwrap_or_default(), &target.namespace, refusal))
                .hint("the command continues where it ended when it is run again")
        })?;
        if let Some(printer) = lines {
            printer.line(format_args!("{} configured", label(&stored)))?;
            printer.flush()?;
        }
        Ok(stored)
    }

    /// Deletes the ConfigMaps of earlier contents. What cannot be deleted is deleted with the CatalogSource.
    pub(super) async fn sweep(&self, api: &Api, printer: &mut Printer) -> Result<(), CliError> {
        let labels = format!("{LABEL}={}", self.name);
        let query = ListQuery::all(&Resource::from(&kinds::CONFIG_MAP)).within(&self.namespace).labelled(&labels);
        let listed = match api.list(&query.depth(Depth::Metadata)).await.and_then(Page::readable) {
            Ok((listed, _)) => listed,
            Err(refusal) => {
                printer.warn(format_args!("ConfigMaps of earlier versions are not deleted: {}", refusal.message));
                return Ok(());
            }
        };
        for old in listed.iter().filter(|old| !self.config_maps.iter().any(|name| name == object::name(old))) {
            let target = kinds::CONFIG_MAP.object(&self.namespace, object::name(old));
            delete(api, &target, Some(object::uid(old))).await?;
        }
        Ok(())
    }
}

fn is_content(object: &Value) -> bool {
    kinds::CONFIG_MAP.is(object)
}

/// Returns the fields of an object that an existing one must have. The name of a ConfigMap contains a digest of its content.
fn wanted(object: &Value) -> Value {
    if is_content(object) {
        let owners = object::list(object, &["metadata", "ownerReferences"]);
        return if owners.is_empty() { json!({}) } else { json!({ "metadata": { "ownerReferences": owners } }) };
    }
    json!({
        "metadata": {
            "annotations": object["metadata"]["annotations"], "labels": object["metadata"]["labels"],
        },
        "spec": object["spec"],
    })
}
