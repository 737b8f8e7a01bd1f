//! Simulates a subject on the copy of the cluster, and explains the result.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster_copy::{BEFORE, CATALOG, ClusterCopy, reference};
use super::simulated_plan::{self, Offered, SimulatedPlan};
use super::{
    Asks, Cluster, Error, Explanation, Next, Subject, bundles, crds, csvs, deprecations, dry_run, hidden, identity,
    images, irreversible, objects, permissions, unserved_kinds, verdict, webhooks,
};
use crate::api::catalog_source::CatalogSource;
use crate::api::kinds::OLM_GROUP;
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::{self, Approval, State};
use crate::bundle::Rendered;
use crate::catalog::{Builder, BundleMessage, Channel, Content, Entry, Package, Snapshot};
use crate::installplan::summary;
use crate::settings::Settings;
use crate::sim::{Patch, Simulation};
use crate::version::{self, Range};

/// The maximum number of plans that [`Explainer::following`] simulates: more than any published channel has upgrades.
const LONGEST_PATH: usize = 100;

/// Explains plans of one cluster. Creating an explainer costs as much as explaining one plan.
pub struct Explainer {
    pub(super) copy: ClusterCopy,
}

impl Explainer {
    /// Copies the cluster. `settings` are the settings of the controllers that run in it.
    pub fn new(settings: &Settings, cluster: Cluster) -> Self {
        Self { copy: ClusterCopy::new(settings, cluster) }
    }

    /// Explains one plan.
    ///
    /// # Errors
    /// The subject does not exist, or no known catalog offers it.
    pub fn explain(&self, subject: &Subject) -> Result<Explanation, Error> {
        self.explain_and_ask(subject).map(|(explanation, _)| explanation)
    }

    /// Explains one plan, and returns the requests to the cluster that would make the explanation more precise.
    ///
    /// # Errors
    /// As [`Self::explain`].
    pub fn explain_and_ask(&self, subject: &Subject) -> Result<(Explanation, Asks), Error> {
        let simulated = self.simulate(subject)?;
        let unshown = hidden::unshown(&simulated);
        let mut explanation = Explanation {
            namespace: subject.namespace().to_owned(),
            plan: simulated.described(&self.copy),
            objects: objects::changes(&simulated, &unshown),
            unreadable: self.copy.unreadable.clone(),
            unshown,
            ..Explanation::default()
        };
        explanation.csvs = csvs::changes(&simulated, &self.copy);
        identity::pair(&mut explanation.objects, &explanation.csvs);
        explanation.rbac = permissions::changes(&simulated);
        explanation.crds = crds::changes(&simulated, &self.copy);
        explanation.unserved = unserved_kinds::missing(&simulated);
        explanation.images = images::changes(&simulated);
        explanation.webhooks = webhooks::changes(&simulated);
        explanation.optional = objects::optional(&simulated, &explanation.objects);
        explanation.bundles = bundles::contents(&simulated, &self.copy);
        explanation.deprecations = deprecations::of_chosen(&simulated, &self.copy);
        explanation.irreversible = irreversible::changes(&simulated, &explanation);
        explanation.afterwards = simulated_plan::afterwards(&simulated, &self.copy);
        explanation.verdict = verdict::judge(&simulated, &self.copy, &explanation);
        explanation.totals = identity::totals(&explanation);
        explanation.hash = explanation.digest();
        let asks = Asks {
            fits: crds::questions(&simulated, &explanation.crds),
            writes: dry_run::writes(&simulated, &explanation),
        };
        Ok((explanation, asks))
    }

    /// Returns the plans that would follow the subject's plan if each were approved, in order.
    ///
    /// # Errors
    /// As [`Self::explain`].
    pub fn following(&self, subject: &Subject) -> Result<Vec<Next>, Error> {
        let simulated = self.simulate(subject)?;
        Ok(simulated_plan::following(&simulated, &self.copy, LONGEST_PATH, true))
    }

    pub(super) fn simulate(&self, subject: &Subject) -> Result<SimulatedPlan, Error> {
        match subject {
            Subject::Plan { namespace, name } => {
                let plan = self.copy.read.api().find(OLM_GROUP, "InstallPlan", namespace, name);
                plan.ok_or_else(|| missing("InstallPlan", namespace, name))?;
                Ok(SimulatedPlan::of_plan(&self.copy.before(namespace, name), namespace, Some(name), None))
            }
            Subject::Subscription { namespace, name } => {
                let found = self.copy.read.api().find(OLM_GROUP, "Subscription", namespace, name);
                found.ok_or_else(|| missing("Subscription", namespace, name))?;
                Ok(self.of_subscription(namespace, name))
            }
            Subject::Package { namespace, package, range } => match self.copy.subscribed(namespace, package) {
                Some(name) => {
                    let simulated = self.of_subscription(namespace, &name);
                    Ok(SimulatedPlan { wanted: range.clone().map(|range| (package.clone(), range)), ..simulated })
                }
                None => self.subscribe(namespace, package, range.as_ref()),
            },
            Subject::Bundle { namespace, bundle } => Ok(self.offer(namespace, bundle)),
        }
    }

    fn of_subscription(&self, namespace: &str, name: &str) -> SimulatedPlan {
        let read = self.copy.read.api().find(OLM_GROUP, "Subscription", namespace, name);
        let plan = read.map_or("", |s| subscription::Subscription::new(s).plan_name());
        match self.copy.before(namespace, plan) {
            Cow::Borrowed(before) if !std::ptr::eq(before, &raw const self.copy.read) => {
                SimulatedPlan::of_subscription(before, namespace, name)
            }
            before => SimulatedPlan::of_plan(&before, namespace, Some(plan), Some(name)),
        }
    }

    /// Simulates a new Subscription.
    fn subscribe(&self, namespace: &str, package: &str, range: Option<&Range>) -> Result<SimulatedPlan, Error> {
        let offered = |(source_namespace, _): &&(String, String)| {
            *source_namespace == namespace || *source_namespace == self.copy.global
        };
        let mut sources: Vec<&(String, String)> = self.copy.catalogs.keys().filter(offered).collect();
        sources.sort_by_key(|(source_namespace, name)| {
            let source = self.copy.read.api().find(OLM_GROUP, "CatalogSource", source_namespace, name);
            let priority = source.map_or(0, |source| CatalogSource::new(source).priority());
            (source_namespace != namespace, -priority, name.clone())
        });
        let found = sources.iter().find_map(|source| {
            let package = self.copy.catalogs.get(*source)?.package(package)?;
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
            "installPlanApproval": Approval::Manual,
        });
        if range.is_some() {
            spec["startingCSV"] = entry.name.as_str().into();
        }
        let mut before = self.copy.settled.clone();
        self.add_subscription(&mut before, namespace, package, spec);
        Ok(SimulatedPlan::of_subscription(&before, namespace, package))
    }

    /// Simulates a bundle as if a catalog contained it.
    fn offer(&self, namespace: &str, bundle: &Rendered) -> SimulatedPlan {
        let subscription = self.copy.subscribed(namespace, &bundle.package);
        let known = subscription
            .as_ref()
            .and_then(|name| self.copy.read.api().find(OLM_GROUP, "Subscription", namespace, name));
        let installed = known.map_or("", |s| subscription::Subscription::new(s).installed_csv());
        // Uses the state without waiting plans, because a Subscription is not resolved while one waits.
        let mut before = self.copy.read.clone();
        self.forget_waiting(&mut before, namespace);
        let offered = Arc::new(offered(bundle, installed));
        before.add_local_catalog(namespace, CATALOG, offered.clone());
        let mut spec = json!({ "source": CATALOG, "sourceNamespace": namespace, "channel": CATALOG });
        let name = match subscription {
            Some(name) => {
                spec["startingCSV"] = Value::Null;
                // If the patch is refused, the explanation reports that nothing happens.
                let _ = before.patch(
                    &reference("Subscription", namespace, &name),
                    Patch::Merge(json!({ "spec": spec })),
                    None,
                );
                before.settle(BEFORE);
                name
            }
            None => {
                spec["name"] = bundle.package.as_str().into();
                spec["installPlanApproval"] = Approval::Manual.into();
                self.add_subscription(&mut before, namespace, &bundle.package, spec);
                bundle.package.clone()
            }
        };
        let offered = Some(Offered { csv: bundle.name.clone(), snapshot: offered });
        SimulatedPlan { offered, ..SimulatedPlan::of_subscription(&before, namespace, &name) }
    }

    /// Removes the plans that wait for approval, and the references of Subscriptions to them. Approved plans are executed in any case.
    fn forget_waiting(&self, before: &mut Simulation, namespace: &str) {
        let plans = self.copy.read.api().list(OLM_GROUP, "InstallPlan", Some(namespace));
        for plan in plans.filter(|plan| summary::waits_for_approval(plan)) {
            let linked = |s: &&Value| subscription::Subscription::new(s).plan_name() == object::name(plan);
            for subscription in self.copy.read.api().list(OLM_GROUP, "Subscription", Some(namespace)).filter(linked) {
                let installed = object::at(subscription, &["status", "installedCSV"]);
                let state = if installed.is_null() { Value::Null } else { State::AtLatestKnown.into() };
                let status = json!({
                    "installPlanRef": null, "installplan": null, "installPlanGeneration": null,
                    "currentCSV": installed, "state": state,
                });
                let patch = Patch::Merge(json!({ "status": status }));
                // If the patch is refused, the explanation reports that nothing happens.
                let _ = before.patch(&ObjectRef::from_object(subscription), patch, Some("status"));
            }
            let _ = before.delete(&ObjectRef::from_object(plan));
        }
    }

    fn add_subscription(&self, before: &mut Simulation, namespace: &str, name: &str, spec: Value) {
        for place in [namespace, &self.copy.global] {
            let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": place } });
            let _ = before.apply(made);
        }
        let subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": name, "namespace": namespace }, "spec": spec,
        });
        // If the Subscription is refused, the explanation reports that nothing happens.
        let _ = before.apply(subscription);
        before.settle(BEFORE);
    }
}

fn missing(kind: &'static str, namespace: &str, name: &str) -> Error {
    Error::NotFound { kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Returns the entry of a package that a new Subscription would start with: the head of the default channel; with a range, the newest
/// matching version, preferably of the default channel. `None` if the package has no such entry.
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

/// Creates a catalog with one bundle, which replaces the installed one.
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
