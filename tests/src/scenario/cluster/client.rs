//! Requests of a user to the API server, with objects as JSON, and watches of a kind.
//!
//! Independent of the client under test, so that it can verify it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::{Request, Status, WatchEvent};
use olm_core::api::object::{Gvk, ObjectRef, resource_version};
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::scenario::format::{PatchSpec, PatchType};
use crate::scenario::store::{Change, ident};

/// The field manager of the recordings.
const MANAGER: &str = "scenario";
/// The API server needs some time to serve a new kind, and refuses writes that conflict with other writers. A user retries for
/// this long.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between retries.
const AGAIN: Duration = Duration::from_millis(100);

/// A client of the API server.
#[derive(Clone)]
pub(super) struct Client(kube::Client);

/// An event of a watch.
pub(super) enum Seen {
    /// All existing objects of a kind were returned.
    All,
    /// An object changed.
    Change(Change),
}

impl Client {
    /// Returns a client with the permissions of the kubeconfig.
    pub(super) async fn connect(kubeconfig: &Path) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(Self(kube::Client::try_from(config)?))
    }

    /// Sends a server-side apply, or a POST of an object without a name.
    pub(super) async fn apply(&self, object: &Value) -> Result<()> {
        let target = ObjectRef::from_object(object);
        let again = |code| matches!(code, 404 | 409 | 429 | 500 | 503);
        self.until_accepted(again, async || {
            let collection = self.collection(&target).await?;
            let request = match target.name.as_str() {
                "" => collection.create(&PostParams::default(), object.to_string().into_bytes()),
                name => collection.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)),
            };
            Ok(self.0.request(request?).await?)
        })
        .await
    }

    /// Sends a PATCH of an object or of a subresource.
    pub(super) async fn patch(&self, target: &ObjectRef, patch: &PatchSpec) -> Result<()> {
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let body = match patch.patch_type {
            PatchType::Merge => Patch::Merge(patch.patch.clone()),
            PatchType::Strategic => Patch::Strategic(patch.patch.clone()),
            PatchType::Json => Patch::Json(serde_json::from_value(patch.patch.clone())?),
        };
        self.until_accepted(
            |_| true,
            async || {
                let collection = self.collection(target).await?;
                let request = match &patch.subresource {
                    None => collection.patch(&target.name, &params, &body),
                    Some(part) => collection.patch_subresource(part, &target.name, &params, &body),
                };
                Ok(self.0.request(request?).await?)
            },
        )
        .await
    }

    /// Sends a DELETE with background propagation.
    pub(super) async fn delete(&self, target: &ObjectRef) -> Result<()> {
        // The API server refuses a DELETE of an object that changes several times in the meantime.
        self.until_accepted(
            |code| code == 409,
            async || {
                let request = self.collection(target).await?.delete(&target.name, &DeleteParams::background());
                Ok(self.0.request(request?).await?)
            },
        )
        .await
    }

    /// Lists the objects of a custom resource in all namespaces; none if the API server does not serve it in time.
    pub(super) async fn list(&self, resource: &Gvk, plural: &str) -> Result<Vec<Value>> {
        let mut ticks = ticks();
        for _ in 0..30 {
            ticks.tick().await;
            match self.list_once(resource, plural).await {
                Ok((objects, _)) => return Ok(objects),
                // Not served yet, or its storage is being recreated after a change of its definition.
                Err(error) if matches!(code(&error), Some(404 | 429 | 503)) => {}
                Err(error) => return Err(error).with_context(|| format!("list {plural}")),
            }
        }
        Ok(vec![])
    }

    async fn list_once(&self, resource: &Gvk, plural: &str) -> Result<(Vec<Value>, String)> {
        let request = Request::new(base(resource) + "/" + plural).list(&ListParams::default())?;
        let mut list = self.0.request::<Value>(request).await?;
        let version = resource_version(&list).to_owned();
        let mut objects = match list["items"].take() {
            Value::Array(items) => items,
            _ => vec![],
        };
        for object in &mut objects {
            object["apiVersion"] = resource.api_version().into();
            object["kind"] = resource.kind.clone().into();
        }
        Ok((objects, version))
    }

    /// Sends the changes of a kind until the receiver is dropped. Waits for the kind if it is not served yet.
    pub(super) async fn follow(self, resource: Gvk, plural: &str, shown: Sender<Seen>) {
        let mut known = BTreeMap::new();
        let mut ticks = ticks();
        loop {
            ticks.tick().await;
            // A failed list or watch is restarted; the next list contains the missed changes.
            let Ok((objects, version)) = self.list_once(&resource, plural).await else { continue };
            let now: BTreeMap<_, _> = objects.iter().map(|object| (ident(object), object.clone())).collect();
            known.retain(|id, _| !now.contains_key(id));
            let gone = std::mem::replace(&mut known, now).into_values().map(|o| Change::Deleted(o.into()));
            let changes = gone.chain(objects.into_iter().map(|o| Change::Applied(o.into()))).map(Seen::Change);
            let mut is_heard = changes.chain([Seen::All]).map(|seen| shown.send(seen).is_ok());
            if !is_heard.all(|heard| heard) || !self.watch(&resource, plural, version, &mut known, &shown).await {
                return;
            }
        }
    }

    /// Watches a kind from a version on until the API server ends the watch. Returns whether there is still a receiver.
    async fn watch(
        &self,
        resource: &Gvk,
        plural: &str,
        mut version: String,
        known: &mut BTreeMap<String, Value>,
        shown: &Sender<Seen>,
    ) -> bool {
        loop {
            let request = Request::new(base(resource) + "/" + plural).watch(&WatchParams::default(), &version);
            let Ok(request) = request else { return true };
            let Ok(events) = self.0.request_events::<Value>(request).await else { return true };
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                let change = match event {
                    Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                        known.insert(ident(&object), object.clone());
                        Change::Applied(object.into())
                    }
                    Ok(WatchEvent::Deleted(object)) => {
                        known.remove(&ident(&object));
                        Change::Deleted(object.into())
                    }
                    Ok(WatchEvent::Bookmark(bookmark)) => {
                        version = bookmark.metadata.resource_version;
                        continue;
                    }
                    Ok(WatchEvent::Error(_)) | Err(_) => return true,
                };
                let (Change::Applied(object) | Change::Deleted(object)) = &change;
                resource_version(object).clone_into(&mut version);
                if shown.send(Seen::Change(change)).is_err() {
                    return false;
                }
            }
        }
    }

    /// Returns requests to the collection of the target's kind and namespace.
    async fn collection(&self, target: &ObjectRef) -> Result<Request> {
        let ObjectRef { gvk, namespace, .. } = target;
        let resources = match gvk.group.as_str() {
            "" => self.0.list_core_api_resources(&gvk.version).await?,
            _ => self.0.list_api_group_resources(&gvk.api_version()).await?,
        };
        let resource = resources.resources.into_iter().find(|r| r.kind == gvk.kind && !r.name.contains('/'));
        let Some(resource) = resource else {
            let message = format!("the API server does not serve {} {}", gvk.api_version(), gvk.kind);
            bail!(kube::Error::Api(Status::failure(&message, "NotFound").with_code(404).boxed()));
        };
        let scope = if resource.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        Ok(Request::new(format!("{}{scope}/{}", base(gvk), resource.name)))
    }

    /// Repeats a request until it is accepted, as long as the status code of the error permits a retry.
    async fn until_accepted(
        &self,
        again: impl Fn(u16) -> bool,
        request: impl AsyncFn() -> Result<Value>,
    ) -> Result<()> {
        let end = Instant::now() + TIMEOUT;
        let mut ticks = ticks();
        loop {
            ticks.tick().await;
            match request().await {
                Ok(_) => return Ok(()),
                Err(error) if code(&error).is_some_and(&again) && Instant::now() < end => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = interval(AGAIN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn base(gvk: &Gvk) -> String {
    let root = if gvk.group.is_empty() { "/api" } else { "/apis" };
    format!("{root}/{}", gvk.api_version())
}

/// Returns the HTTP status code of an error.
fn code(error: &anyhow::Error) -> Option<u16> {
    match error.downcast_ref() {
        Some(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}
