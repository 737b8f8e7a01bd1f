//! Changes that make a resolution possible. Each is tried before it is suggested.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Serialize;

use super::super::{Inputs, resolve};

/// Maximum number of changes that are tried.
const TRIED: usize = 150;

/// Maximum number of changes that are suggested.
const OFFERED: usize = 6;

/// A change of the inputs of a resolution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "change", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Edit {
    /// Another package in a Subscription.
    Package {
        /// Name of the Subscription.
        subscription: String,
        /// The package.
        package: String,
    },
    /// Another channel in a Subscription.
    Channel {
        /// Name of the Subscription.
        subscription: String,
        /// The channel.
        channel: String,
    },
    /// Another catalog in a Subscription.
    Source {
        /// Name of the Subscription.
        subscription: String,
        /// Name of the catalog.
        source: String,
        /// Its namespace.
        source_namespace: String,
    },
    /// No startingCSV in a Subscription.
    NoStartingCsv {
        /// Name of the Subscription.
        subscription: String,
    },
    /// Removes a CatalogSource that cannot be used.
    DeleteCatalog {
        /// Name.
        name: String,
        /// Namespace.
        namespace: String,
    },
    /// Removes a ClusterServiceVersion.
    DeleteCsv {
        /// Name.
        name: String,
    },
    /// Removes a Subscription.
    DeleteSubscription {
        /// Name.
        name: String,
    },
}

impl FromStr for Edit {
    type Err = String;

    /// `channel:SUBSCRIPTION=CHANNEL`, `package:…=PACKAGE`, `source:…=NAMESPACE/CATALOG`, `no-starting-csv:SUBSCRIPTION`,
    /// `delete-subscription:NAME`, `delete-csv:NAME` or `delete-catalog:NAMESPACE/NAME`.
    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "invalid change {text:?}: expected channel:SUBSCRIPTION=CHANNEL, package:SUBSCRIPTION=PACKAGE, \
                 source:SUBSCRIPTION=NAMESPACE/CATALOG, no-starting-csv:SUBSCRIPTION, delete-subscription:NAME, \
                 delete-csv:NAME and delete-catalog:NAMESPACE/NAME"
            )
        };
        let (change, what) = text.split_once(':').ok_or_else(unknown)?;
        let own = str::to_owned;
        let assigned = || what.split_once('=').map(|(a, b)| (own(a), own(b))).ok_or_else(unknown);
        let path = |text: &str| text.split_once('/').map(|(a, b)| (own(a), own(b))).ok_or_else(unknown);
        Ok(match change {
            "channel" => assigned().map(|(subscription, channel)| Self::Channel { subscription, channel })?,
            "package" => assigned().map(|(subscription, package)| Self::Package { subscription, package })?,
            "source" => {
                let (subscription, catalog) = assigned()?;
                let (source_namespace, source) = path(&catalog)?;
                Self::Source { subscription, source, source_namespace }
            }
            "no-starting-csv" => Self::NoStartingCsv { subscription: own(what) },
            "delete-subscription" => Self::DeleteSubscription { name: own(what) },
            "delete-csv" => Self::DeleteCsv { name: own(what) },
            "delete-catalog" => path(what).map(|(namespace, name)| Self::DeleteCatalog { name, namespace })?,
            _ => return Err(unknown()),
        })
    }
}

/// Changes that make a resolution possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Repair {
    /// The changes.
    pub edits: Vec<Edit>,
    /// Names of the bundles that are chosen with the changes.
    pub then: Vec<String>,
}

/// Finds repairs for Subscriptions, by index, and for ClusterServiceVersions without a Subscription.
pub(super) fn find(inputs: &Inputs<'_>, subscriptions: &BTreeSet<usize>, unsubscribed: &BTreeSet<&str>) -> Vec<Repair> {
    let edits = edits(inputs, subscriptions, unsubscribed);
    let singles = edits.iter().map(|e| vec![e.clone()]);
    let pairs = edits.iter().enumerate().flat_map(|(at, a)| edits[at + 1..].iter().map(|b| vec![a.clone(), b.clone()]));
    let mut found: Vec<Repair> = Vec::new();
    for edits in singles.chain(pairs).take(TRIED) {
        let is_more_than_needed = found.iter().any(|f| f.edits.iter().all(|e| edits.contains(e)));
        // Two changes are not suggested when one suffices.
        if is_more_than_needed || edits.len() > 1 && !found.is_empty() && found[0].edits.len() == 1 {
            continue;
        }
        if let Some(then) = attempt(inputs, &edits) {
            found.push(Repair { edits, then });
        }
        if found.len() == OFFERED {
            break;
        }
    }
    found
}

/// Returns whether one name is probably a misspelling of the other.
pub(super) fn is_similar(a: &str, b: &str) -> bool {
    strsim::damerau_levenshtein(a, b) <= 1 + b.len() / 4
}

/// Returns changes that may help, the smaller ones first.
fn edits(inputs: &Inputs<'_>, subscriptions: &BTreeSet<usize>, unsubscribed: &BTreeSet<&str>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for broken in &inputs.broken {
        edits.push(Edit::DeleteCatalog { name: broken.name.to_owned(), namespace: broken.namespace.to_owned() });
    }
    for wanted in subscriptions.iter().map(|s| &inputs.subscriptions[*s]) {
        let subscription = || wanted.name.to_owned();
        let mine: Vec<_> = inputs.catalogs.iter().filter(|c| wanted.takes_from(c.name, c.namespace)).collect();
        if !wanted.starting_csv.is_empty() {
            edits.push(Edit::NoStartingCsv { subscription: subscription() });
        }
        let packages: BTreeSet<&String> = mine.iter().flat_map(|c| c.snapshot.packages().keys()).collect();
        for package in packages.into_iter().filter(|p| *p != wanted.package && is_similar(p, wanted.package)) {
            edits.push(Edit::Package { subscription: subscription(), package: package.clone() });
        }
        let channels = mine.iter().filter_map(|c| c.snapshot.package(wanted.package)).flat_map(|p| &p.channels);
        let channels: BTreeSet<&str> = channels.map(|c| c.name.as_str()).filter(|c| *c != wanted.channel).collect();
        if !wanted.channel.is_empty() {
            edits.extend(
                channels.into_iter().map(|c| Edit::Channel { subscription: subscription(), channel: c.to_owned() }),
            );
        }
        for catalog in inputs.catalogs.iter().filter(|c| !wanted.takes_from(c.name, c.namespace)) {
            if catalog.snapshot.package(wanted.package).is_some() {
                edits.push(Edit::Source {
                    subscription: subscription(),
                    source: catalog.name.to_owned(),
                    source_namespace: catalog.namespace.to_owned(),
                });
            }
        }
    }
    edits.extend(unsubscribed.iter().map(|name| Edit::DeleteCsv { name: (*name).to_owned() }));
    for wanted in subscriptions.iter().map(|s| &inputs.subscriptions[*s]) {
        edits.push(Edit::DeleteSubscription { name: wanted.name.to_owned() });
    }
    edits
}

/// Returns the names of the bundles chosen after the changes; `None` when there is still no resolution.
fn attempt(inputs: &Inputs<'_>, edits: &[Edit]) -> Option<Vec<String>> {
    let mut changed = inputs.clone();
    for edit in edits {
        apply(&mut changed, edit);
    }
    let resolution = resolve(&changed).ok()?;
    Some(resolution.bundles.iter().map(|b| b.entry.name.clone()).collect())
}

/// Applies a change.
pub fn apply<'a>(inputs: &mut Inputs<'a>, edit: &'a Edit) {
    let mut change = |name: &str, change: &dyn Fn(&mut super::RequestedSubscription<'a>)| {
        inputs.subscriptions.iter_mut().filter(|s| s.name == name).for_each(change);
    };
    match edit {
        Edit::Package { subscription, package } => change(subscription, &|s| s.package = package),
        Edit::Channel { subscription, channel } => change(subscription, &|s| s.channel = channel),
        Edit::Source { subscription, source, source_namespace } => {
            change(subscription, &|s| (s.source, s.source_namespace) = (source, source_namespace));
        }
        Edit::NoStartingCsv { subscription } => change(subscription, &|s| s.starting_csv = ""),
        Edit::DeleteCatalog { name, namespace } => {
            inputs.broken.retain(|b| (b.name, b.namespace) != (name, namespace));
            inputs.catalogs.retain(|c| (c.name, c.namespace) != (name, namespace));
        }
        Edit::DeleteCsv { name } => inputs.installed.retain(|i| i.entry.name != *name),
        Edit::DeleteSubscription { name } => {
            let gone: Vec<&str> =
                inputs.subscriptions.iter().filter(|s| s.name == name).map(|s| s.installed_csv).collect();
            inputs.subscriptions.retain(|s| s.name != name);
            let still: Vec<&str> = inputs.subscriptions.iter().map(|s| s.installed_csv).collect();
            // What it managed stays, without a Subscription.
            for installed in inputs.installed.iter_mut().filter(|i| gone.contains(&i.entry.name.as_str())) {
                installed.subscribed = still.contains(&installed.entry.name.as_str());
            }
        }
    }
}
