//! Determines which versions of a package support the targets of which OperatorGroups, and which targets a version would support.
//!
//! A group is compared with the catalogs that are visible in its namespace: those of the namespace, and the global ones.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::members::{carried, format_targets};
use super::problem::Problem;
use super::rule::PACKAGE_DOES_NOT_FIT;
use super::{Known, LintContext, Tenant};
use crate::catalog::{Entry, Package, Snapshot};
use crate::listing::shortened;
use crate::membership;
use crate::version;
use crate::world::{Reader, World};

/// The versions of a package, compared with OperatorGroups.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// The package.
    pub package: String,
    /// The groups, by namespace and name.
    pub groups: Vec<Column>,
    /// The versions, the newest first.
    pub versions: Vec<Line>,
}

/// An OperatorGroup.
#[derive(Clone, Debug)]
pub struct Column {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Its targets, in words.
    pub targets: String,
}

/// A version.
#[derive(Clone, Debug)]
pub struct Line {
    /// Name of the bundle.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The channels that contain it.
    pub channels: Vec<String>,
    /// Whether it supports the targets of each group; an error states why not.
    pub fits: Vec<Result<(), String>>,
    /// The kinds of targets that it supports.
    pub supported_targets: Vec<&'static str>,
    /// Why its install modes are unknown.
    pub unknown: Option<String>,
}

/// Kinds of targets: a description, and an example for an operator in namespace `own`.
const SHAPES: [(&str, &[&str]); 5] = [
    ("its own namespace", &["own"]),
    ("one other namespace", &["other"]),
    ("several other namespaces", &["another", "other"]),
    ("several namespaces with its own", &["other", "own"]),
    ("all namespaces", &[""]),
];

/// A catalog that may have the package.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Its namespace, in which it is visible.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Whether it is visible in all namespaces.
    pub is_global: bool,
    /// Its content.
    pub snapshot: &'a Snapshot,
}

impl Offer<'_> {
    fn is_for(&self, namespace: &str) -> bool {
        self.is_global || self.namespace == namespace
    }
}

/// Compares a package of these catalogs with the OperatorGroups of one or all namespaces. Returns a matrix for every catalog that has the
/// package, and a problem for each group whose targets no visible version supports. Groups without targets, and groups that are not the
/// only one of their namespace, are omitted.
pub fn matrices<'o>(
    world: &World,
    known: &Known,
    offers: &[Offer<'o>],
    package: &str,
    namespace: Option<&str>,
) -> (Vec<(Offer<'o>, Matrix)>, Vec<Problem>) {
    let context = LintContext::new(Reader::new(world), known, Timestamp::UNIX_EPOCH);
    let tenants = context.tenants();
    let asked = tenants.iter().filter(|tenant| namespace.is_none_or(|asked| asked == tenant.namespace));
    let groups: Vec<usize> =
        asked.filter_map(Tenant::the_group).filter(|at| !context.targets(*at).is_empty()).collect();
    let mut found: Vec<(Offer<'o>, Matrix)> = Vec::new();
    // For each group: whether a version supports it, and the targets that versions support.
    let mut fits: BTreeMap<usize, bool> = BTreeMap::new();
    let mut fitting: BTreeMap<usize, BTreeSet<&'static str>> = BTreeMap::new();
    for offer in offers.iter().filter(|offer| namespace.is_none_or(|asked| offer.is_for(asked))) {
        let Some(of_package) = offer.snapshot.package(package) else { continue };
        let groups: Vec<usize> =
            groups.iter().filter(|at| offer.is_for(context.group(**at).namespace())).copied().collect();
        let matrix = matrix(&context, offer.snapshot, of_package, &groups);
        for (column, at) in groups.iter().enumerate() {
            *fits.entry(*at).or_default() |= matrix.versions.iter().any(|line| line.fits[column].is_ok());
            fitting
                .entry(*at)
                .or_default()
                .extend(matrix.versions.iter().flat_map(|line| line.supported_targets.iter().copied()));
        }
        found.push((*offer, matrix));
    }
    let unfit = fits.into_iter().filter(|(_, fits)| !fits).map(|(at, _)| at);
    let problems =
        unfit.map(|at| does_not_fit(&context, package, &fitting.remove(&at).unwrap_or_default(), at)).collect();
    (found, problems)
}

fn matrix(context: &LintContext<'_>, snapshot: &Snapshot, package: &Package, groups: &[usize]) -> Matrix {
    let columns = groups.iter().map(|at| {
        let group = context.group(*at);
        let (namespace, name) = (group.namespace().to_owned(), group.name().to_owned());
        Column { targets: format_targets(&namespace, context.targets(*at)), namespace, name }
    });
    let mut by_name: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in package.entries() {
        by_name.entry(&entry.name).or_default().push(entry);
    }
    let mut versions: Vec<&Vec<&Entry>> = by_name.values().collect();
    versions.sort_by(|a, b| match (&a[0].version, &b[0].version) {
        (Some(a), Some(b)) => version::compare(b, a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    let places: Vec<(&str, String)> =
        groups.iter().map(|at| (context.group(*at).namespace(), carried(context.targets(*at)))).collect();
    let versions = versions.into_iter().map(|entries| line(snapshot, entries, &places)).collect();
    Matrix { package: package.name.clone(), groups: columns.collect(), versions }
}

/// Returns the line of a version, for groups of these namespaces with these targets.
fn line(snapshot: &Snapshot, entries: &[&Entry], groups: &[(&str, String)]) -> Line {
    let entry = entries[0];
    let csv = csv(snapshot, entry);
    let supports = |namespace: &str, targets: &str| match &csv {
        Ok(csv) => membership::supports(csv, namespace, targets).map_err(|(_, why)| why),
        Err(_) => Ok(()),
    };
    let supported_targets = SHAPES.iter().filter(|(_, targets)| supports("own", &targets.join(",")).is_ok());
    Line {
        name: entry.name.clone(),
        version: entry.version_text.clone(),
        channels: entries.iter().map(|entry| entry.channel.clone()).collect(),
        fits: groups.iter().map(|(namespace, targets)| supports(namespace, targets)).collect(),
        supported_targets: supported_targets.map(|(words, _)| *words).filter(|_| csv.is_ok()).collect(),
        unknown: csv.as_ref().err().cloned(),
    }
}

/// Returns the ClusterServiceVersion of a bundle, or the stub that represents it.
fn csv(snapshot: &Snapshot, entry: &Entry) -> Result<Value, String> {
    let content = snapshot.read_bundle(&entry.package, &entry.channel, &entry.name)?;
    let content = content.ok_or("the catalog does not state which install modes it supports")?;
    serde_json::from_str(&content.csv_json)
        .map_err(|error| format!("its ClusterServiceVersion cannot be read: {error}"))
}

fn does_not_fit(context: &LintContext<'_>, package: &str, fitting: &BTreeSet<&str>, at: usize) -> Problem {
    let group = context.group(at);
    let targets = format_targets(group.namespace(), context.targets(at));
    let message = format!("no version of package {package} supports its targets, {targets}");
    let what = match fitting.len() {
        0 => "its versions support no targets at all".to_owned(),
        _ => format!(
            "use a group that targets {}",
            shortened(SHAPES.iter().map(|(words, _)| *words).filter(|w| fitting.contains(w)))
        ),
    };
    Problem::new(&PACKAGE_DOES_NOT_FIT, group.json, message).advise(what)
}

impl Matrix {
    /// Returns the matrix as a JSON document.
    pub fn document(&self) -> Value {
        let groups: Vec<Value> = self
            .groups
            .iter()
            .map(|column| json!({ "namespace": column.namespace, "name": column.name, "targets": column.targets }))
            .collect();
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|line| {
                let fits = self.groups.iter().zip(&line.fits).map(|(column, fit)| {
                    let group = format!("{}/{}", column.namespace, column.name);
                    match (fit, &line.unknown) {
                        (_, Some(why)) => json!({ "group": group, "fits": null, "message": why }),
                        (Ok(()), None) => json!({ "group": group, "fits": true }),
                        (Err(why), None) => json!({ "group": group, "fits": false, "message": why }),
                    }
                });
                json!({
                    "name": line.name, "version": line.version, "channels": line.channels,
                    "groups": fits.collect::<Vec<_>>(), "supportedTargets": line.supported_targets,
                })
            })
            .collect();
        json!({ "package": self.package, "groups": groups, "versions": versions })
    }
}
