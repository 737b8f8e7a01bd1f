//! CatalogSources: the content that is read for them, and their status (olm-behaviour/catalogsource.md#validation).
//!
//! ```text
//!   template   olm.catalogImageTemplate -> spec.image
//!   poll       when an image's tag is polled
//!   pods       --catalog-pods: the objects that serve a catalog as OLM does
//!     manifest    their manifests
//!     update      a pod next to the serving one, which finds out whether the image's tag has moved
//! ```
//!
//! The shell reads the content and passes it on as an external fact. Without `--catalog-pods` images and ConfigMaps are
//! read directly, and no objects are created in the cluster.

mod manifest;
mod pods;
mod poll;
mod template;
#[cfg(test)]
mod tests;
mod update;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::api::catalog_source::{CatalogSource, Origin, Target, catalog_dir};
use crate::api::object;
use crate::plan::{Action, Key, Plan, Question, Reason};
use crate::settings::Settings;
use crate::world::{CatalogFact, ConnectionState, Reader, kind};

/// Plans for one CatalogSource.
pub fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    let fact = world.catalog(namespace, name);
    let source = world.json(&kind::CATALOG_SOURCE, namespace, name).filter(|s| !object::is_deleting(s));
    let Some(source) = source else {
        return Plan::act(disconnect(key, fact).into_iter().collect());
    };
    let mut work = Work::new(source, fact, now);
    if let Some(update) = template::apply(world, &mut work) {
        return Plan::act(vec![update]);
    }
    work.poll(settings);
    let target = match Origin::from_source(source) {
        Origin::Invalid(message) => {
            work.complain("SpecInvalidError", &message);
            let actions = disconnect(key, fact).into_iter().chain(work.write());
            return Plan::act(actions.collect()).because(Reason::Invalid { object: described(source), message });
        }
        Origin::Address(address) => {
            let target = Target::Address(address.to_owned());
            match &settings.catalog_pods {
                // With both an image and an address there are pods, and the address is connected to.
                Some(pods) if !CatalogSource::new(source).image().is_empty() => {
                    pods::serve(pods, world, &mut work).map(|_| target)
                }
                _ => {
                    work.serviced();
                    Ok(target)
                }
            }
        }
        Origin::Image(_) | Origin::ConfigMap(_) | Origin::ConfigMaps(_) if fact.is_some_and(CatalogFact::is_local) => {
            Ok(Target::Directory)
        }
        Origin::ConfigMaps(names) => {
            work.serviced();
            Ok(Target::config_maps(&names))
        }
        Origin::Image(_) | Origin::ConfigMap(_) if settings.catalog_pods.is_some() => {
            let pods = settings.catalog_pods.clone().unwrap_or_default();
            pods::serve(&pods, world, &mut work)
        }
        Origin::Image(reference) => Ok(Target::Image {
            reference: reference.to_owned(),
            catalog_dir: catalog_dir(source),
            secrets: pull_secrets(world, source),
        }),
        Origin::ConfigMap(config_map) => Ok(Target::ConfigMap(config_map.to_owned())),
    };
    match target {
        Ok(target) => work.connect(target),
        Err(plan) => plan,
    }
}

/// Returns the pull secrets of a catalog: its own, and those that were added to the ServiceAccount of its pod
/// (olm-behaviour/catalogsource.md#catalog-pods).
fn pull_secrets(world: &Reader<'_>, source: &Value) -> Vec<String> {
    let own = CatalogSource::new(source).secrets();
    let account = world.json(&kind::SERVICE_ACCOUNT, object::namespace(source), object::name(source));
    let account = account.map(|a| object::list(a, &["imagePullSecrets"])).unwrap_or_default();
    let account = account.iter().map(|s| object::text(s, &["name"]));
    let mut secrets = Vec::new();
    for secret in own.chain(account).filter(|s| !s.is_empty()) {
        if !secrets.iter().any(|known| known == secret) {
            secrets.push(secret.to_owned());
        }
    }
    secrets
}

fn described(source: &Value) -> String {
    format!("CatalogSource {}/{}", object::namespace(source), object::name(source))
}

/// A local directory is not removed, whether the object exists or not.
fn disconnect(key: &Key, fact: Option<&CatalogFact>) -> Option<Action> {
    fact.filter(|f| !f.is_local())
        .map(|_| Action::Ask(Question::Disconnect { namespace: key.namespace.clone(), name: key.name.clone() }))
}

/// The plan for one CatalogSource while it is built.
struct Work<'w> {
    source: &'w Value,
    fact: Option<&'w CatalogFact>,
    now: Timestamp,
    status: Map<String, Value>,
    /// Actions before the status is written.
    actions: Vec<Action>,
    reasons: Vec<Reason>,
    /// Whether polling the image's tag is due.
    due: bool,
    /// Whether the image is polled now.
    refresh: bool,
    again: Option<Timestamp>,
}

impl<'w> Work<'w> {
    fn new(source: &'w Value, fact: Option<&'w CatalogFact>, now: Timestamp) -> Self {
        let mut status = object::at(source, &["status"]).as_object().cloned().unwrap_or_default();
        // Both are set again below, or removed.
        status.remove("reason");
        status.remove("message");
        Self {
            source,
            fact,
            now,
            status,
            actions: Vec::new(),
            reasons: Vec::new(),
            due: false,
            refresh: false,
            again: None,
        }
    }

    fn complain(&mut self, reason: &str, message: &str) {
        self.status.insert("reason".to_owned(), reason.into());
        self.status.insert("message".to_owned(), message.into());
    }

    /// Sets the status that OLM sets as soon as it sees an address.
    fn serviced(&mut self) {
        if object::at(self.source, &["status", "registryService"]).is_null() {
            let service = json!({ "protocol": "grpc", "createdAt": object::time(self.now) });
            self.status.insert("registryService".to_owned(), service);
        }
    }

    /// Polls the image's tag when it is due.
    fn poll(&mut self, settings: &Settings) {
        match poll::read(self.source, self.now) {
            poll::Poll::No => {}
            poll::Poll::Invalid(message) => self.complain("InvalidIntervalError", message),
            poll::Poll::Every { problem, due, delay } => {
                if let Some(problem) = problem {
                    self.complain("InvalidIntervalError", &problem);
                }
                self.due = due <= self.now;
                if !self.due {
                    self.look_again(delay);
                }
                // The image of a serving pod is polled with another pod.
                self.refresh = self.due && settings.catalog_pods.is_none() && self.fact.is_some();
                if self.refresh {
                    self.polled();
                }
            }
        }
    }

    /// Plans again at that second, because of a timestamp in the status.
    fn wait_for_second(&mut self, second: i64, message: &str) {
        self.look_again(SignedDuration::from_secs(second.saturating_sub(self.now.as_second())));
        self.reasons.push(Reason::StatusWaits { object: described(self.source), message: message.to_owned() });
    }

    /// Plans again after that delay, or earlier.
    fn look_again(&mut self, delay: SignedDuration) {
        let at = self.now.checked_add(delay).ok();
        self.again = self.again.min(at).or(at).or(self.again);
    }

    /// Records that the image is polled.
    fn polled(&mut self) {
        self.status.insert("latestImageRegistryPoll".to_owned(), object::time(self.now).into());
    }

    /// Requests that the target be read, and reports its state.
    fn connect(mut self, target: Target) -> Plan {
        let (namespace, name) = (object::namespace(self.source).to_owned(), object::name(self.source).to_owned());
        let known = self.fact.filter(|f| f.is_local() || f.target == target);
        if known.is_none() {
            let (namespace, name, target) = (namespace.clone(), name.clone(), target.clone());
            self.actions.push(Action::Ask(Question::Connect { namespace, name, target }));
        }
        if let Some(fact) = known {
            self.record_connection(&target, fact);
        }
        match known {
            Some(CatalogFact { snapshot: Some(_), error: None, .. }) => {}
            Some(CatalogFact { state: ConnectionState::Shutdown, error: Some(error), .. }) => {
                self.reasons.push(Reason::Missing { object: described(self.source), needs: error.clone() });
            }
            Some(CatalogFact { error: Some(error), snapshot, .. }) => {
                let (error, stale) = (error.clone(), snapshot.is_some());
                self.reasons.push(Reason::CatalogUnavailable { namespace, name, error, stale });
            }
            Some(fact) => {
                let state = fact.state.as_str().to_owned();
                self.reasons.push(Reason::CatalogNotReady { namespace, name, state });
            }
            None => {
                let state = "not connected yet".to_owned();
                self.reasons.push(Reason::CatalogNotReady { namespace, name, state });
            }
        }
        self.finish(known.is_some())
    }

    /// Sets the connection and its error in the status.
    fn record_connection(&mut self, target: &Target, fact: &CatalogFact) {
        match target {
            // A directory replaces what the CatalogSource specifies; OLM has no status for it.
            Target::Directory => return,
            Target::Address(_) => {}
            Target::ConfigMaps(_) => {
                if let Some(error) = &fact.error {
                    self.complain("ConfigMapError", error);
                }
            }
            Target::Image { .. } => {
                if let Some(error) = &fact.error {
                    self.complain("RegistryServerError", &format!("couldn't connect to registry - {error}"));
                }
            }
            Target::ConfigMap(name) => {
                if let Some(error) = &fact.error {
                    self.complain("ConfigMapError", &format!("failed to get catalog config map {name}: {error}"));
                }
                if let Some((uid, version)) = &fact.config_map {
                    self.refer(name, uid, version);
                }
            }
        }
        let known = object::at(self.source, &["status", "connectionState"]);
        let (address, state) = (target.to_string(), fact.state.as_str());
        let here = object::text(known, &["address"]) == address;
        // Controllers that were just started do not have a newer state than the status.
        let unknown = fact.snapshot.is_none() && fact.error.is_none() && fact.state <= ConnectionState::Connecting;
        let is_later =
            |at: Timestamp| self.seconds(&["connectionState", "lastConnect"]).is_none_or(|t| t < at.as_second());
        let is_anew = fact.reconnected && fact.state == ConnectionState::Ready && is_later(fact.since);
        // The time changes with the other fields, and when the connection was replaced.
        if !(here && (unknown || object::text(known, &["lastObservedState"]) == state && !is_anew)) {
            self.connected(&address, state, fact.since);
        }
        if matches!(target, Target::ConfigMap(_)) && fact.state == ConnectionState::Ready {
            self.connect_after_update(&address, state);
        }
    }

    fn connected(&mut self, address: &str, state: &str, since: Timestamp) {
        let connection = json!({ "address": address, "lastObservedState": state, "lastConnect": object::time(since) });
        self.status.insert("connectionState".to_owned(), connection);
    }

    /// Returns a timestamp of the status in whole seconds, as it is written.
    fn seconds(&self, path: &[&str; 2]) -> Option<i64> {
        let text = self.status.get(path[0])?.get(path[1])?.as_str()?;
        object::parse_time(text).map(Timestamp::as_second)
    }

    /// Clients wait until `lastConnect` is later than the last change of the ConfigMap or of the pod that serves it,
    /// because OLM reconnects each time. Nothing is reconnected here, so the time alone is written, once, as soon as it is
    /// later.
    fn connect_after_update(&mut self, address: &str, state: &str) {
        let updated = self.seconds(&["configMapReference", "lastUpdateTime"]);
        let Some(updated) = updated.max(self.seconds(&["registryService", "createdAt"])) else { return };
        if self.seconds(&["connectionState", "lastConnect"]).is_some_and(|connected| connected > updated) {
            return;
        }
        if self.now.as_second() > updated {
            self.connected(address, state, self.now);
        } else {
            self.wait_for_second(updated + 1, "lastConnect must be later than the last update");
        }
    }

    /// Sets `status.configMapReference`: the revision of the content.
    fn refer(&mut self, name: &str, uid: &str, version: &str) {
        let known = object::at(self.source, &["status", "configMapReference"]);
        if object::text(known, &["uid"]) == uid && object::text(known, &["resourceVersion"]) == version {
            return;
        }
        // Clients wait for a later time, and timestamps have a resolution of one second.
        if let Some(last) = self.seconds(&["configMapReference", "lastUpdateTime"])
            && self.now.as_second() == last
        {
            return self.wait_for_second(last + 1, "lastUpdateTime must be later than that of the previous revision");
        }
        let reference = json!({
            "name": name, "namespace": object::namespace(self.source), "uid": uid, "resourceVersion": version,
            "lastUpdateTime": object::time(self.now),
        });
        self.status.insert("configMapReference".to_owned(), reference);
    }

    /// Returns the actions so far, with the status if it is written.
    fn finish(mut self, write: bool) -> Plan {
        if write {
            let status = self.write();
            self.actions.extend(status);
        }
        // After the status, so that a refused status update does not cause repeated polling.
        if self.refresh {
            let (namespace, name) = (object::namespace(self.source).to_owned(), object::name(self.source).to_owned());
            self.actions.push(Action::Ask(Question::Refresh { namespace, name }));
        }
        Plan { actions: self.actions, reasons: self.reasons, again: self.again, ..Plan::nothing() }
    }

    fn write(&self) -> Option<Action> {
        let same = match self.source.get("status") {
            Some(known) => known.as_object() == Some(&self.status),
            None => self.status.is_empty(),
        };
        if same {
            return None;
        }
        let mut new = self.source.clone();
        new["status"] = Value::Object(self.status.clone());
        Some(Action::UpdateStatus(new))
    }
}
