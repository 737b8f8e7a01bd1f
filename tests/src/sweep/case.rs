//! One case: a namespace with an OperatorGroup and a Subscription, their final state, and its reasons.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use olm_core::api::object::{Gvk, ObjectRef, list, name, namespace, text};
use serde_json::{Value, json};

use super::catalog::{Scope, Served};
use crate::scenario::engine::Engine;
use crate::scenario::format::{PatchSpec, PatchType};
use crate::scenario::store::{Change, ident};

/// The namespace of the CatalogSources.
pub const CATALOGS: &str = "olm";
/// The CatalogSource of all packages.
pub const CATALOG: &str = "sweep";
/// The CatalogSource of one package, in which every bundle has its own channel.
pub const ALONE: &str = "alone";
/// Timeout of the recording for every head.
pub const LIMIT: Duration = Duration::from_secs(50);
const OLM: &str = "operators.coreos.com";
const NOT_INSTALLED: &str = "NotInstalled";

/// An install, optionally followed by an upgrade.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its namespace.
    pub namespace: String,
    /// Package.
    pub package: String,
    /// The targets of the OperatorGroup.
    pub scope: Scope,
    /// The installed bundle with its channel.
    pub install: Target,
    /// The bundle of the upgrade.
    pub upgrade: Option<Target>,
    /// The CatalogSource of the Subscription.
    pub catalog: &'static str,
}

/// A bundle in a channel.
#[derive(Clone, Debug)]
pub struct Target {
    /// Channel.
    pub channel: String,
    /// Name of the CSV.
    pub csv: String,
}

/// A final state: phase and reason of the CSV, or why the CSV does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Phase of the CSV, or `ResolutionFailed`, `PlanFailed`, `NotInstalled`.
    pub phase: String,
    /// Reason of the CSV.
    pub reason: String,
}

impl End {
    /// Creates a final state.
    pub fn new(phase: &str, reason: &str) -> Self {
        Self { phase: phase.to_owned(), reason: reason.to_owned() }
    }

    /// Returns whether any state has been reported.
    pub fn has_begun(&self) -> bool {
        self.phase != NOT_INSTALLED
    }

    /// Returns whether the installation succeeded.
    pub fn is_success(&self) -> bool {
        self.phase == "Succeeded"
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phase)?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, "/{}", self.reason) }
    }
}

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The install.
    pub install: End,
    /// The upgrade, if there is one.
    pub upgrade: Option<End>,
    /// The reasons from the objects, one per line.
    pub because: Vec<String>,
}

/// The observed state of a cluster: every object of the watched kinds.
#[derive(Clone, Debug, Default)]
pub struct View(BTreeMap<String, Arc<Value>>);

impl View {
    /// Waits until something changes, at most for `at_most`; returns `false` if nothing has.
    pub fn wait<E: Engine>(&mut self, engine: &mut E, at_most: Duration) -> Result<bool> {
        let changes = engine.changes(at_most)?;
        let any = !changes.is_empty();
        for change in changes {
            match change {
                Change::Applied(object) => drop(self.0.insert(ident(&object), object)),
                Change::Deleted(object) => drop(self.0.remove(&ident(&object))),
            }
        }
        Ok(any)
    }

    /// Returns an object by [`ident`].
    pub fn get(&self, ident: &str) -> Option<&Value> {
        self.0.get(ident).map(Arc::as_ref)
    }

    /// Returns all objects.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.0.values().map(Arc::as_ref)
    }

    /// Returns the objects of a kind in a namespace; of all namespaces if it is empty.
    pub fn objects_of<'a>(&'a self, kind: &'a str, within: &'a str) -> impl Iterator<Item = &'a Value> {
        let objects = self.0.values().map(Arc::as_ref).filter(move |object| text(object, &["kind"]) == kind);
        objects.filter(move |object| within.is_empty() || namespace(object) == within)
    }
}

impl Case {
    /// Applies the initial objects of the case.
    pub fn begin<E: Engine>(&self, engine: &mut E) -> Result<()> {
        let Self { namespace, package, scope, install, .. } = self;
        engine.apply(&namespace_object(namespace))?;
        let targets = match scope {
            Scope::Own => json!([namespace]),
            Scope::Other => {
                engine.apply(&namespace_object(&self.other()))?;
                json!([self.other()])
            }
            Scope::All => json!([]),
        };
        engine.apply(&json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "sweep", "namespace": namespace}, "spec": {"targetNamespaces": targets},
        }))?;
        engine.apply(&json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": package, "namespace": namespace},
            "spec": {"name": package, "channel": install.channel, "startingCSV": install.csv,
                     "source": self.catalog, "sourceNamespace": CATALOGS},
        }))
    }

    /// Returns the namespace that an OperatorGroup with a single other target targets.
    pub fn other(&self) -> String {
        format!("{}-target", self.namespace)
    }

    /// Starts the upgrade by changing the Subscription's channel.
    fn switch<E: Engine>(&self, engine: &mut E, to: &Target) -> Result<()> {
        let (group, version, kind) = (OLM, "v1alpha1", "Subscription");
        let target = ObjectRef {
            gvk: Gvk::new(group, version, kind),
            namespace: self.namespace.clone(),
            name: self.package.clone(),
        };
        let patch = PatchSpec {
            kind: kind.to_owned(),
            api_version: None,
            namespace: self.namespace.clone(),
            name: Some(self.package.clone()),
            patch_type: PatchType::Merge,
            subresource: None,
            patch: json!({"spec": {"channel": to.channel}}),
        };
        engine.patch(&target, &patch)
    }

    /// Plays the case to its end, in a separate cluster.
    pub fn play<E: Engine>(&self, engine: &mut E) -> Result<Outcome> {
        self.play_in(engine, &mut View::default())
    }

    /// Plays the case to its end, in a separate cluster that `view` shows.
    pub fn play_in<E: Engine>(&self, engine: &mut E, view: &mut View) -> Result<Outcome> {
        self.play_with(engine, view, |_| {})
    }

    /// Does the same, and calls `installed` before the upgrade.
    pub fn play_with<E: Engine>(
        &self,
        engine: &mut E,
        view: &mut View,
        installed: impl FnOnce(&mut E),
    ) -> Result<Outcome> {
        self.begin(engine)?;
        settle(engine, view, |_| false)?;
        let mut outcome = Outcome { install: self.end(view, &self.install), ..Outcome::default() };
        installed(engine);
        if let Some(to) = &self.upgrade {
            self.switch(engine, to)?;
            settle(engine, view, |_| false)?;
            let mut end = self.end(view, to);
            let old = self.end(view, &self.install);
            if end.is_success()
                && view.objects_of("ClusterServiceVersion", &self.namespace).any(|csv| name(csv) == self.install.csv)
            {
                end = End::new("Succeeded", &format!("{} and the old one is {old}", end.reason));
            }
            outcome.upgrade = Some(end);
        }
        outcome.because = self.because(view);
        Ok(outcome)
    }

    /// Returns the state of the install or upgrade to a bundle.
    pub fn end(&self, view: &View, target: &Target) -> End {
        let place = &self.namespace;
        if let Some(csv) = view.get(&format!("ClusterServiceVersion/{place}/{}", target.csv)) {
            return End::new(text(csv, &["status", "phase"]), text(csv, &["status", "reason"]));
        }
        let is_unresolved = |object: &Value| {
            let conditions = list(object, &["status", "conditions"]);
            conditions.iter().any(|c| c["type"] == "ResolutionFailed" && c["status"] == "True")
        };
        if view.objects_of("Subscription", place).any(is_unresolved) {
            return End::new("ResolutionFailed", "");
        }
        let is_failed = view.objects_of("InstallPlan", place).any(|plan| text(plan, &["status", "phase"]) == "Failed");
        End::new(if is_failed { "PlanFailed" } else { NOT_INSTALLED }, "")
    }

    /// Returns the reasons of the state from the namespace's objects.
    pub fn because(&self, view: &View) -> Vec<String> {
        let mut lines = Vec::new();
        for csv in view.objects_of("ClusterServiceVersion", &self.namespace) {
            let status = |field: &str| text(csv, &["status", field]);
            lines.push(format!("{}: {}/{}: {}", ident(csv), status("phase"), status("reason"), status("message")));
            for requirement in list(csv, &["status", "requirementStatus"]) {
                let field = |field: &str| text(requirement, &[field]);
                if !matches!(field("status"), "Present" | "Satisfied") {
                    let (kind, name) = (field("kind"), field("name"));
                    lines.push(format!("  {kind} {name}: {}: {}", field("status"), field("message")));
                }
            }
        }
        for plan in view.objects_of("InstallPlan", &self.namespace) {
            for condition in list(plan, &["status", "conditions"]).iter().filter(|c| c["status"] != "True") {
                lines.push(format!(
                    "{}: {}: {}",
                    ident(plan),
                    text(plan, &["status", "phase"]),
                    text(condition, &["message"])
                ));
            }
            let unmade = list(plan, &["status", "plan"])
                .iter()
                .filter(|s| !matches!(text(s, &["status"]), "Created" | "Present"));
            for step in unmade {
                let resource = |field: &str| text(step, &["resource", field]);
                lines.push(format!("  step {}/{}: {}", resource("kind"), resource("name"), text(step, &["status"])));
            }
        }
        for subscription in view.objects_of("Subscription", &self.namespace) {
            for condition in list(subscription, &["status", "conditions"]) {
                if condition["status"] == "True" && text(condition, &["type"]).ends_with("Failed") {
                    let (reason, message) = (text(condition, &["reason"]), text(condition, &["message"]));
                    lines.push(format!("{}: {reason}: {message}", ident(subscription)));
                }
            }
        }
        lines
    }
}

/// Waits until a view is as expected, or nothing changes any more.
pub fn settle<E: Engine>(engine: &mut E, view: &mut View, enough: impl Fn(&View) -> bool) -> Result<()> {
    let end = engine.now() + LIMIT;
    let quiet = engine.quiet(LIMIT);
    loop {
        let left = end.saturating_sub(engine.now());
        if left.is_zero() || enough(view) {
            return Ok(());
        }
        if !view.wait(engine, left.min(quiet))? && engine.progress()?.unsettled == 0 {
            return Ok(());
        }
    }
}

/// Returns a Namespace.
pub fn namespace_object(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Serves a catalog, and waits until its CatalogSource is READY.
pub fn serve<E: Engine>(engine: &mut E, view: &mut View, called: &str, catalog: &Served) -> Result<()> {
    let address = engine.serve_snapshot(called, catalog.snapshot.clone())?;
    engine.apply(&namespace_object(CATALOGS))?;
    engine.apply(&json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": called, "namespace": CATALOGS},
        "spec": {"sourceType": "grpc", "address": address, "displayName": called},
    }))?;
    let is_ready = |view: &View| {
        let mut sources = view.objects_of("CatalogSource", CATALOGS).filter(|source| name(source) == called);
        sources.any(|source| text(source, &["status", "connectionState", "lastObservedState"]) == "READY")
    };
    settle(engine, view, is_ready)?;
    ensure!(is_ready(view), "the catalog {called} is not READY\n{}", engine.log());
    Ok(())
}
