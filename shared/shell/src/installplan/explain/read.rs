//! Reads what an explanation needs, and explains.
//!
//! What a plan touches is known when it was tried out. So it is tried out on what was seen, then what it would touch is looked at,
//! and so on until nothing new is asked for: objects that it would create may be there, custom resources may not fit, the content
//! of bundles may be elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::bundle::{Unpacked, reference};
use olm_core::catalog::Snapshot;
use olm_core::explain::{Bundle, Change, Cluster, Error, Explainer, Explanation, Subject, Unread};
use olm_core::world::{Reader, kind};
use serde_json::Value;

use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::Resource;
use crate::image::{self, Location};
use crate::observe::{Gap, KINDS, Seen};
use crate::registry;

/// How often it is tried out at most: objects, then custom resources and bundles, then what these bring.
const TRIES: usize = 4;

/// Explains one plan of what was seen, and looks at more of the cluster where that is needed.
///
/// # Errors
/// What is asked about is not there, or in no catalog that is known.
pub async fn explain(
    seen: &mut Seen,
    subject: &Subject,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<Explanation, CliError> {
    Ok(explainer(seen, subject, images, printer).await?.1)
}

/// The same with the copy of the cluster that it was tried out on.
pub(crate) async fn explainer(
    seen: &mut Seen,
    subject: &Subject,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<(Explainer, Explanation), CliError> {
    if needs_catalogs(seen, subject) {
        seen.read_catalogs(subject.namespace(), images, printer).await;
    }
    let mut more = More::default();
    let mut tries = 0;
    loop {
        let explainer = Explainer::new(&seen.settings, cluster(seen, subject.namespace(), &more));
        let explanation = explainer.explain(subject).map_err(|error| untold(&error, seen))?;
        tries += 1;
        if tries == TRIES || !more.look(seen, &explanation, images, printer).await {
            return Ok((explainer, explanation));
        }
    }
}

fn untold(error: &Error, seen: &Seen) -> CliError {
    let told = CliError::new(ErrorKind::Input, error.to_string());
    match error {
        Error::NotFound { .. } => told.hint("kubectl olm install-plan list -A shows what there is"),
        Error::NotOffered { catalogs, .. } if catalogs.is_empty() && seen.api().is_none() => {
            told.hint("give one: --catalog NAME[.NAMESPACE]=DIR")
        }
        Error::NotOffered { .. } => told.hint("kubectl olm catalog list shows what a catalog has"),
    }
}

/// Is something to be resolved? A plan that is there says all that it does.
fn needs_catalogs(seen: &Seen, subject: &Subject) -> bool {
    let Subject::Subscription { namespace, name } = subject else {
        return !matches!(subject, Subject::Plan { .. });
    };
    let world = Reader::new(&seen.world);
    let plan = world.json(&kind::SUBSCRIPTION, namespace, name);
    let plan = plan.map_or("", |s| object::text(s, &["status", "installPlanRef", "name"]));
    let plan = world.json(&kind::INSTALL_PLAN, namespace, plan);
    !plan.is_some_and(|plan| {
        matches!(object::text(plan, &["status", "phase"]), "RequiresApproval" | "Installing" | "Failed")
    })
}

/// What is known of the content of catalogs that are on offer in a namespace.
pub(crate) fn catalogs(seen: &Seen, namespace: &str) -> BTreeMap<(String, String), Arc<Snapshot>> {
    let world = Reader::new(&seen.world);
    let global = seen.settings.global_catalog_namespace.as_str();
    let mut catalogs = BTreeMap::new();
    for place in BTreeSet::from([namespace, global]) {
        let sources = world.in_namespace(&kind::CATALOG_SOURCE, place).map(|o| object::name(o.json()));
        let named = sources.filter_map(|name| Some((name, world.catalog(place, name)?)));
        for (name, fact) in named.chain(world.local_catalogs(place)) {
            if let Some(snapshot) = &fact.snapshot {
                catalogs.insert((place.to_owned(), name.to_owned()), snapshot.clone());
            }
        }
    }
    catalogs
}

/// The cluster as it is to be copied.
fn cluster(seen: &Seen, namespace: &str, more: &More) -> Cluster {
    let world = Reader::new(&seen.world);
    let kinds = seen.served.kinds().map(|gvk| (gvk.clone(), seen.served.is_namespaced(gvk)));
    let unread = |gap: &Gap| Unread {
        resource: gap.resource.clone(),
        namespace: gap.namespace.clone(),
        message: gap.to_string(),
    };
    Cluster {
        objects: seen.world.objects().map(|o| o.json().clone()).collect(),
        kinds: kinds.collect(),
        kinds_are_complete: seen.served.is_complete(),
        server_version: world.server_version().unwrap_or_default().to_owned(),
        catalogs: catalogs(seen, namespace),
        bundles: more.bundles.clone(),
        unread: seen.gaps.iter().map(unread).collect(),
        now: seen.at,
    }
}

/// What was looked at besides, because an explanation asked for it.
#[derive(Default)]
struct More {
    objects: BTreeSet<ObjectRef>,
    /// CustomResourceDefinitions whose objects were listed.
    customs: BTreeSet<String>,
    /// The content of bundles by their images.
    bundles: BTreeMap<String, Unpacked>,
}

impl More {
    /// Looks at what the explanation touches and was not looked at. `false`: there is nothing.
    async fn look(
        &mut self,
        seen: &mut Seen,
        explanation: &Explanation,
        images: &image::Options,
        printer: &Printer,
    ) -> bool {
        let mut any = false;
        for bundle in explanation.bundles.iter().filter(|b| !b.unpacked && !b.image.is_empty()) {
            if !self.bundles.contains_key(&bundle.image) {
                let unpacked = unpack(seen, bundle, images, printer).await;
                self.bundles.insert(bundle.image.clone(), unpacked);
                any = true;
            }
        }
        if seen.api().is_none() {
            return any;
        }
        let is_listed = |gvk: &Gvk| KINDS.iter().any(|k| (k.group, k.name) == (gvk.group.as_str(), gvk.kind.as_str()));
        let touched = explanation.objects.iter().filter(|o| o.change == Change::Create && !is_listed(&o.gvk));
        let new: Vec<ObjectRef> = touched
            .map(|o| ObjectRef { gvk: o.gvk.clone(), namespace: o.namespace.clone(), name: o.name.clone() })
            .filter(|target| self.objects.insert(target.clone()))
            .collect();
        any |= !new.is_empty();
        seen.look_at(new).await;
        let changed = explanation.crds.iter().filter(|crd| crd.change == Change::Update);
        let new: Vec<String> =
            changed.map(|crd| crd.name.clone()).filter(|name| self.customs.insert(name.clone())).collect();
        any |= !new.is_empty();
        for name in new {
            list_customs(seen, &name).await;
        }
        any
    }
}

/// Lists the custom resources of a definition.
async fn list_customs(seen: &mut Seen, crd: &str) {
    let Some(api) = seen.api().cloned() else { return };
    let Some(definition) = Reader::new(&seen.world).json(&kind::CUSTOM_RESOURCE_DEFINITION, "", crd).cloned() else {
        return;
    };
    let text = |path: &[&str]| object::text(&definition, path);
    let versions = object::list(&definition, &["spec", "versions"]);
    let served = |v: &&Value| object::at(v, &["served"]) == &Value::Bool(true);
    let stored = versions.iter().filter(served).max_by_key(|v| object::at(v, &["storage"]) == &Value::Bool(true));
    let Some(version) = stored.map(|v| object::text(v, &["name"])) else { return };
    let resource = Resource {
        gvk: Gvk::new(text(&["spec", "group"]), version, text(&["spec", "names", "kind"])),
        plural: text(&["spec", "names", "plural"]).to_owned(),
        namespaced: text(&["spec", "scope"]) != "Cluster",
    };
    match api.list_whole(&resource, "", "").await {
        Ok(objects) => {
            for object in objects {
                seen.world.apply(object);
            }
        }
        Err(refusal) => seen.gaps.push(Gap {
            verb: "list",
            resource: crd.to_owned(),
            namespace: String::new(),
            name: String::new(),
            forbidden: refusal.is_forbidden(),
            message: refusal.message,
        }),
    }
}

/// The content of a bundle: from the ConfigMap that OLM keeps it in, else from its image.
async fn unpack(seen: &Seen, bundle: &Bundle, images: &image::Options, printer: &Printer) -> Unpacked {
    if let (Some(api), Some((namespace, _))) = (seen.api(), bundle.catalog.split_once('/')) {
        let target = ObjectRef {
            gvk: Gvk::new("", "v1", "ConfigMap"),
            namespace: namespace.to_owned(),
            name: reference::config_map_name(&bundle.image),
        };
        if let Ok(Some(config_map)) = api.get(&target).await
            && let Ok(content) = reference::content(&config_map)
        {
            return Unpacked::Content(content);
        }
    }
    let progress = printer.progress(format!("pulling bundle {}", bundle.csv));
    let unpacked = match bundle.image.parse::<Location>() {
        Ok(location @ Location::Registry(_)) => registry::image::unpack(&location, images).await,
        Ok(_) => Unpacked::Refused(format!("{:?} is not an image reference", bundle.image)),
        Err(error) => registry::image::failed(&error),
    };
    drop(progress);
    unpacked
}
