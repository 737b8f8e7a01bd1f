//! The copy of a cluster that plans are tried out on.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::trial::{self, Offered, Trial};
use super::{
    Asks, Cluster, Error, Explanation, Subject, Unread, Unshown, crds, csvs, objects, parts, rehearsal, rights, served,
    verdict,
};
use crate::api::crd;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::bundle::{Rendered, Unpacked};
use crate::catalog::{Builder, BundleMessage, Channel, Content, Entry, Package, Snapshot};
use crate::installplan::summary;
use crate::settings::Settings;
use crate::sim::{ApiServer, Patch, Simulation};
use crate::structural::SchemaCheckResult;
use crate::version::{self, Range};

/// Any number: uids and generated names in the copy follow from it.
const SEED: u64 = 5;

/// How much virtual time what is under way gets before a plan is approved: enough for everything but time-outs.
const BEFORE: SignedDuration = SignedDuration::from_mins(2);

/// The catalog that a bundle gets which is in none, and its channel.
pub(super) const CATALOG: &str = "bundle-asked-about";

/// Explains plans of one cluster. Making it costs as much as explaining one plan.
pub struct Explainer {
    /// The cluster as it was read.
    pub(super) read: Simulation,
    /// The same when everything has happened that happens anyway. Nothing is installed or upgraded in it: every plan waits.
    pub(super) settled: Simulation,
    /// How Subscriptions want their plans approved, by namespace and name: in the copies all are Manual.
    pub(super) approvals: BTreeMap<(String, String), String>,
    pub(super) catalogs: BTreeMap<(String, String), Arc<Snapshot>>,
    /// Digests of what is in images of bundles, by reference.
    pub(super) contents: BTreeMap<String, String>,
    pub(super) unread: Vec<Unread>,
    pub(super) fits: BTreeMap<(String, String), SchemaCheckResult>,
    /// The namespace of global catalogs.
    pub(super) global: String,
}

impl Explainer {
    /// Copies the cluster. `settings` are the choices of the controllers that run in it.
    pub fn new(settings: &Settings, cluster: Cluster) -> Self {
        let Cluster { mut objects, kinds, kinds_are_complete, undiscovered, server_version, .. } = cluster;
        let Cluster { catalogs, bundles, fits, unread, now, .. } = cluster;
        let approvals = hold(&mut objects);
        let has_node = objects.iter().any(|o| object::text(o, &["kind"]) == "Node");
        let defines = |name: &str| objects.iter().any(|o| object::text(o, &["kind"]) == CRD && object::name(o) == name);
        let olm: Vec<Value> = crd::all().into_iter().filter(|crd| !defines(object::name(crd))).collect();
        objects.extend(olm);
        let mut api = ApiServer::with_stock_objects(SEED, now);
        if !has_node {
            // On it Pods run.
            api = api.with_node("node", now);
        }
        api.serve(&kinds, kinds_are_complete);
        if !kinds_are_complete {
            api.know_kinds_in_part();
        }
        for ((group, version), error) in &undiscovered {
            api.hide_version(group, version, error);
        }
        api.load(objects, now);
        api.make_namespaces(now);
        api.make_namespace(&settings.global_catalog_namespace, now);
        let mut read = Simulation::new(api, settings.clone(), now);
        if !server_version.is_empty() {
            read.report_version(&server_version);
        }
        for ((namespace, name), snapshot) in &catalogs {
            read.add_local_catalog(namespace, name, snapshot.clone());
        }
        let mut contents = BTreeMap::new();
        for (reference, unpacked) in bundles {
            if let Unpacked::Content(content) = &unpacked {
                contents.insert(reference.clone(), content.digest());
            }
            read.give_bundle(&reference, unpacked);
        }
        for ((crd, digest), found) in &fits {
            read.give_fit(crd, digest, found.clone());
        }
        let mut settled = read.clone();
        settled.settle(BEFORE);
        let global = settings.global_catalog_namespace.clone();
        Self { read, settled, approvals, catalogs, contents, unread, fits, global }
    }

    /// Explains one plan.
    ///
    /// # Errors
    /// What is asked about is not there, or in no catalog that is known.
    pub fn explain(&self, subject: &Subject) -> Result<Explanation, Error> {
        self.explain_and_ask(subject).map(|(explanation, _)| explanation)
    }

    /// Explains one plan, and says what could be asked of the cluster itself to know more.
    ///
    /// # Errors
    /// As [`Self::explain`].
    pub fn explain_and_ask(&self, subject: &Subject) -> Result<(Explanation, Asks), Error> {
        let trial = self.try_out(subject)?;
        let unshown = Unshown::of(&trial);
        let mut explanation = Explanation {
            namespace: subject.namespace().to_owned(),
            plan: trial.described(self),
            objects: objects::changes(&trial, &unshown),
            unread: self.unread.clone(),
            unshown,
            ..Explanation::default()
        };
        explanation.csvs = csvs::changes(&trial, self);
        explanation.rbac = rights::changes(&trial);
        explanation.crds = crds::changes(&trial, self);
        explanation.unserved = served::missing(&trial);
        explanation.images = parts::images(&trial);
        explanation.webhooks = parts::webhooks(&trial);
        explanation.optional = parts::optional(&trial, &explanation.objects);
        explanation.bundles = parts::bundles(&trial, self);
        explanation.deprecations = parts::deprecations(&trial, self);
        explanation.irreversible = parts::irreversible(&trial, &explanation);
        explanation.afterwards = trial::afterwards(&trial, self);
        explanation.verdict = verdict::judge(&trial, self, &explanation);
        explanation.hash = explanation.digest();
        let asks =
            Asks { fits: crds::questions(&trial, &explanation.crds), writes: rehearsal::writes(&trial, &explanation) };
        Ok((explanation, asks))
    }

    pub(super) fn try_out(&self, subject: &Subject) -> Result<Trial, Error> {
        match subject {
            Subject::Plan { namespace, name } => {
                let plan = self.read.api().find(OLM, "InstallPlan", namespace, name);
                plan.ok_or_else(|| missing("InstallPlan", namespace, name))?;
                Ok(Trial::of_plan(&self.before(namespace, name), namespace, Some(name), None))
            }
            Subject::Subscription { namespace, name } => {
                let found = self.read.api().find(OLM, "Subscription", namespace, name);
                found.ok_or_else(|| missing("Subscription", namespace, name))?;
                Ok(self.of_subscription(namespace, name))
            }
            Subject::Package { namespace, package, range } => match self.subscribed(namespace, package) {
                Some(name) => {
                    let trial = self.of_subscription(namespace, &name);
                    Ok(Trial { wanted: range.clone().map(|range| (package.clone(), range)), ..trial })
                }
                None => self.subscribe(namespace, package, range.as_ref()),
            },
            Subject::Bundle { namespace, bundle } => Ok(self.offer(namespace, bundle)),
        }
    }

    fn of_subscription(&self, namespace: &str, name: &str) -> Trial {
        let read = self.read.api().find(OLM, "Subscription", namespace, name);
        let plan = read.map_or("", |s| object::text(s, &["status", "installPlanRef", "name"]));
        match self.before(namespace, plan) {
            Cow::Borrowed(before) if !std::ptr::eq(before, &raw const self.read) => {
                Trial::of_subscription(before, namespace, name)
            }
            before => Trial::of_plan(&before, namespace, Some(plan), Some(name)),
        }
    }

    /// The cluster before a plan is executed. A plan that waits for approval waits in the settled copy. One that needs no approval
    /// any more is executed there already: it is held back in a copy of its own, unless its execution has begun.
    fn before(&self, namespace: &str, plan: &str) -> Cow<'_, Simulation> {
        let [read, settled] = [&self.read, &self.settled].map(|simulation| {
            let plan = simulation.api().find(OLM, "InstallPlan", namespace, plan);
            plan.map(|plan| object::text(plan, &["status", "phase"]))
        });
        let is_final = |phase: Option<&str>| matches!(phase, Some("Complete" | "Failed"));
        match read {
            Some("Installing") => Cow::Borrowed(&self.read),
            Some(_) if !is_final(read) && (is_final(settled) || matches!(settled, None | Some("Installing"))) => {
                Cow::Owned(self.held_back(namespace, plan))
            }
            _ => Cow::Borrowed(&self.settled),
        }
    }

    /// The settled cluster, as it would be if the plan still waited for approval.
    fn held_back(&self, namespace: &str, plan: &str) -> Simulation {
        let mut before = self.read.clone();
        let target = reference("InstallPlan", namespace, plan);
        let spec = Patch::Merge(json!({ "spec": { "approval": "Manual", "approved": false } }));
        let status = Patch::Merge(json!({ "status": { "phase": "RequiresApproval" } }));
        // A refusal leaves the plan as it was: then it is executed at once, and its result is told.
        let _ = before.patch(&target, spec, None);
        let _ = before.patch(&target, status, Some("status"));
        before.settle(BEFORE);
        before
    }

    /// The Subscription for a package.
    fn subscribed(&self, namespace: &str, package: &str) -> Option<String> {
        let mut all = self.read.api().list(OLM, "Subscription", Some(namespace));
        all.find(|s| object::text(s, &["spec", "name"]) == package).map(|s| object::name(s).to_owned())
    }

    /// Tries out what a new Subscription would do.
    fn subscribe(&self, namespace: &str, package: &str, range: Option<&Range>) -> Result<Trial, Error> {
        let offered = |(source_namespace, _): &&(String, String)| {
            *source_namespace == namespace || *source_namespace == self.global
        };
        let mut sources: Vec<&(String, String)> = self.catalogs.keys().filter(offered).collect();
        sources.sort_by_key(|(source_namespace, name)| {
            let source = self.read.api().find(OLM, "CatalogSource", source_namespace, name);
            let priority = source.and_then(|s| object::at(s, &["spec", "priority"]).as_i64()).unwrap_or_default();
            (source_namespace != namespace, -priority, name.clone())
        });
        let found = sources.iter().find_map(|source| {
            let package = self.catalogs.get(*source)?.package(package)?;
            let entry = best(package, range)?;
            Some((*source, entry))
        });
        let Some(((source_namespace, source), entry)) = found else {
            let within = range.map(|range| format!(" in versions {range}")).unwrap_or_default();
            let catalogs = sources.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
            return Err(Error::NotOffered { what: format!("package {package}{within}"), catalogs });
        };
        let mut spec = json!({
            "name": package, "source": source, "sourceNamespace": source_namespace, "channel": entry.channel,
            "installPlanApproval": "Manual",
        });
        if range.is_some() {
            spec["startingCSV"] = entry.name.as_str().into();
        }
        let mut before = self.settled.clone();
        self.add_subscription(&mut before, namespace, package, spec);
        Ok(Trial::of_subscription(&before, namespace, package))
    }

    /// Tries out what a bundle would do that a catalog had.
    fn offer(&self, namespace: &str, bundle: &Rendered) -> Trial {
        let subscription = self.subscribed(namespace, &bundle.package);
        let known = subscription.as_ref().and_then(|name| self.read.api().find(OLM, "Subscription", namespace, name));
        let installed = known.map_or("", |s| object::text(s, &["status", "installedCSV"]));
        // From before any plan was made, for a Subscription takes nothing else while one waits.
        let mut before = self.read.clone();
        self.forget_waiting(&mut before, namespace);
        let offered = Arc::new(offered(bundle, installed));
        before.add_local_catalog(namespace, CATALOG, offered.clone());
        let mut spec = json!({ "source": CATALOG, "sourceNamespace": namespace, "channel": CATALOG });
        let name = match subscription {
            Some(name) => {
                spec["startingCSV"] = Value::Null;
                // A refusal leaves the Subscription as it was: then nothing comes of it, and that is what is told.
                let _ = before.patch(&subscription_ref(namespace, &name), Patch::Merge(json!({ "spec": spec })), None);
                before.settle(BEFORE);
                name
            }
            None => {
                spec["name"] = bundle.package.as_str().into();
                spec["installPlanApproval"] = "Manual".into();
                self.add_subscription(&mut before, namespace, &bundle.package, spec);
                bundle.package.clone()
            }
        };
        let offered = Some(Offered { csv: bundle.name.clone(), snapshot: offered });
        Trial { offered, ..Trial::of_subscription(&before, namespace, &name) }
    }

    /// Takes the plans away that wait for approval, and what Subscriptions say of them. Approved ones are executed in any case.
    fn forget_waiting(&self, before: &mut Simulation, namespace: &str) {
        let plans = self.read.api().list(OLM, "InstallPlan", Some(namespace));
        for plan in plans.filter(|plan| summary::waits_for_approval(plan)) {
            let linked = |s: &&Value| object::text(s, &["status", "installPlanRef", "name"]) == object::name(plan);
            for subscription in self.read.api().list(OLM, "Subscription", Some(namespace)).filter(linked) {
                let installed = object::at(subscription, &["status", "installedCSV"]);
                let state = if installed.is_null() { Value::Null } else { "AtLatestKnown".into() };
                let status = json!({
                    "installPlanRef": null, "installplan": null, "installPlanGeneration": null,
                    "currentCSV": installed, "state": state,
                });
                let patch = Patch::Merge(json!({ "status": status }));
                // What is refused stays, and nothing comes of the question: that is told.
                let _ = before.patch(&ObjectRef::of(subscription), patch, Some("status"));
            }
            let _ = before.delete(&ObjectRef::of(plan));
        }
    }

    fn add_subscription(&self, before: &mut Simulation, namespace: &str, name: &str, spec: Value) {
        for place in [namespace, &self.global] {
            let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": place } });
            let _ = before.apply(made);
        }
        let subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": name, "namespace": namespace }, "spec": spec,
        });
        // A refusal leaves everything as it was, which is told then.
        let _ = before.apply(subscription);
        before.settle(BEFORE);
    }
}

/// OLM's API group.
pub(super) const OLM: &str = "operators.coreos.com";
const CRD: &str = "CustomResourceDefinition";

/// Lets no Subscription have its plans approved by itself; what they want is remembered.
fn hold(objects: &mut [Value]) -> BTreeMap<(String, String), String> {
    let mut approvals = BTreeMap::new();
    for object in objects.iter_mut().filter(|o| object::text(o, &["kind"]) == "Subscription") {
        if object::gvk(object).group != OLM {
            continue;
        }
        let key = (object::namespace(object).to_owned(), object::name(object).to_owned());
        approvals.insert(key, object::text(object, &["spec", "installPlanApproval"]).to_owned());
        object::map_mut(object, &["spec"]).insert("installPlanApproval".to_owned(), "Manual".into());
    }
    approvals
}

fn missing(kind: &'static str, namespace: &str, name: &str) -> Error {
    Error::NotFound { kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn subscription_ref(namespace: &str, name: &str) -> ObjectRef {
    reference("Subscription", namespace, name)
}

pub(super) fn reference(kind: &str, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef { gvk: Gvk::new(OLM, "v1alpha1", kind), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// The entry of a package that a new Subscription would begin with: the head of the default channel; of a range the newest version,
/// in the default channel if that has one. None: the package has none.
pub fn best<'p>(package: &'p Package, range: Option<&Range>) -> Option<&'p Entry> {
    let default = package.channel(&package.default_channel).or_else(|| package.channels.first())?;
    let Some(range) = range else { return default.entry(&default.head).or_else(|| default.entries.first()) };
    let newest = |channel: &'p Channel| {
        let fits = channel.entries.iter().filter(|e| e.version.as_ref().is_some_and(|v| range.contains(v)));
        fits.max_by(|a, b| match (&a.version, &b.version) {
            (Some(a), Some(b)) => version::compare(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        })
    };
    newest(default).or_else(|| package.channels.iter().find_map(newest))
}

/// A catalog of one bundle, which takes the place of what is installed.
fn offered(bundle: &Rendered, installed: &str) -> Snapshot {
    let mut builder = Builder::default();
    let channel = Channel { name: CATALOG.to_owned(), head: bundle.name.clone(), ..Channel::default() };
    builder.package(Package {
        name: bundle.package.clone(),
        default_channel: CATALOG.to_owned(),
        channels: vec![channel],
        deprecation: None,
    });
    builder.bundle(BundleMessage {
        csv_name: bundle.name.clone(),
        package: bundle.package.clone(),
        channel: CATALOG.to_owned(),
        version: bundle.version.clone(),
        replaces: installed.to_owned(),
        skip_range: bundle.skip_range.clone(),
        provided_apis: bundle.provided_apis.clone(),
        required_apis: bundle.required_apis.clone(),
        dependencies: bundle.dependencies.clone(),
        properties: bundle.properties.clone(),
        content: Some(Content::pack(&bundle.content)),
        ..BundleMessage::default()
    });
    builder.build()
}
