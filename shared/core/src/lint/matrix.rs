//! Which versions of a package fit which OperatorGroups, and which targets would fit a version.
//!
//! A group is held against the catalogs that its namespace sees: its own, and the global ones.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::members::{carried, said};
use super::problem::Problem;
use super::rule::PACKAGE_DOES_NOT_FIT;
use super::{Known, Look, Tenant, listed};
use crate::catalog::{Entry, Package, Snapshot};
use crate::membership;
use crate::version;
use crate::world::{Reader, World};

/// Versions of a package against OperatorGroups.
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
    /// Its targets, as people say them.
    pub targets: String,
}

/// A version.
#[derive(Clone, Debug)]
pub struct Line {
    /// Name of the bundle.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The channels that have it.
    pub channels: Vec<String>,
    /// Does it fit each of the groups? The errors say why not.
    pub fits: Vec<Result<(), String>>,
    /// Which targets would fit it.
    pub would_fit: Vec<&'static str>,
    /// Why nothing is known of its install modes.
    pub unknown: Option<String>,
}

/// Kinds of targets: the words, and an example for an operator in namespace `own`.
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
    /// Its namespace, which sees it.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Do all others see it, too?
    pub is_global: bool,
    /// Its content.
    pub snapshot: &'a Snapshot,
}

impl Offer<'_> {
    fn is_for(&self, namespace: &str) -> bool {
        self.is_global || self.namespace == namespace
    }
}

/// Holds a package of these catalogs against the OperatorGroups of a namespace, or of all: a matrix for every catalog that has it, and a
/// problem for each group that no version fits of those that its namespace sees. Groups that have no targets, and those that are not alone
/// in their namespace, are left out.
pub fn matrices<'o>(
    world: &World,
    known: &Known,
    offers: &[Offer<'o>],
    package: &str,
    namespace: Option<&str>,
) -> (Vec<(Offer<'o>, Matrix)>, Vec<Problem>) {
    let look = Look::new(Reader::new(world), known, Timestamp::UNIX_EPOCH);
    let tenants = look.tenants();
    let asked = tenants.iter().filter(|tenant| namespace.is_none_or(|asked| asked == tenant.namespace));
    let groups: Vec<usize> = asked.filter_map(Tenant::the_group).filter(|at| !look.targets(*at).is_empty()).collect();
    let mut found: Vec<(Offer<'o>, Matrix)> = Vec::new();
    // Of each group: does a version fit it, and which targets would fit one?
    let mut fits: BTreeMap<usize, bool> = BTreeMap::new();
    let mut fitting: BTreeMap<usize, BTreeSet<&'static str>> = BTreeMap::new();
    for offer in offers.iter().filter(|offer| namespace.is_none_or(|asked| offer.is_for(asked))) {
        let Some(of_package) = offer.snapshot.package(package) else { continue };
        let groups: Vec<usize> =
            groups.iter().filter(|at| offer.is_for(look.group(**at).namespace())).copied().collect();
        let matrix = matrix(&look, offer.snapshot, of_package, &groups);
        for (column, at) in groups.iter().enumerate() {
            *fits.entry(*at).or_default() |= matrix.versions.iter().any(|line| line.fits[column].is_ok());
            fitting
                .entry(*at)
                .or_default()
                .extend(matrix.versions.iter().flat_map(|line| line.would_fit.iter().copied()));
        }
        found.push((*offer, matrix));
    }
    let unfit = fits.into_iter().filter(|(_, fits)| !fits).map(|(at, _)| at);
    let problems = unfit.map(|at| does_not_fit(&look, package, &fitting.remove(&at).unwrap_or_default(), at)).collect();
    (found, problems)
}

fn matrix(look: &Look<'_>, snapshot: &Snapshot, package: &Package, groups: &[usize]) -> Matrix {
    let columns = groups.iter().map(|at| {
        let group = look.group(*at);
        let (namespace, name) = (group.namespace().to_owned(), group.name().to_owned());
        Column { targets: said(&namespace, look.targets(*at)), namespace, name }
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
        groups.iter().map(|at| (look.group(*at).namespace(), carried(look.targets(*at)))).collect();
    let versions = versions.into_iter().map(|entries| line(snapshot, entries, &places)).collect();
    Matrix { package: package.name.clone(), groups: columns.collect(), versions }
}

/// A version, for groups of these namespaces with these targets.
fn line(snapshot: &Snapshot, entries: &[&Entry], groups: &[(&str, String)]) -> Line {
    let entry = entries[0];
    let csv = csv(snapshot, entry);
    let supports = |namespace: &str, targets: &str| match &csv {
        Ok(csv) => membership::supports(csv, namespace, targets).map_err(|(_, why)| why),
        Err(_) => Ok(()),
    };
    let would_fit = SHAPES.iter().filter(|(_, targets)| supports("own", &targets.join(",")).is_ok());
    Line {
        name: entry.name.clone(),
        version: entry.version_text.clone(),
        channels: entries.iter().map(|entry| entry.channel.clone()).collect(),
        fits: groups.iter().map(|(namespace, targets)| supports(namespace, targets)).collect(),
        would_fit: would_fit.map(|(words, _)| *words).filter(|_| csv.is_ok()).collect(),
        unknown: csv.as_ref().err().cloned(),
    }
}

/// The ClusterServiceVersion of a bundle, or what stands in for it.
fn csv(snapshot: &Snapshot, entry: &Entry) -> Result<Value, String> {
    let content = snapshot.read_bundle(&entry.package, &entry.channel, &entry.name)?;
    let content = content.ok_or("the catalog does not say which install modes it supports")?;
    serde_json::from_str(&content.csv_json)
        .map_err(|error| format!("its ClusterServiceVersion cannot be read: {error}"))
}

fn does_not_fit(look: &Look<'_>, package: &str, fitting: &BTreeSet<&str>, at: usize) -> Problem {
    let group = look.group(at);
    let targets = said(group.namespace(), look.targets(at));
    let message = format!("no version of package {package} supports its targets, {targets}");
    let what = match fitting.len() {
        0 => "no targets fit any of its versions".to_owned(),
        _ => format!(
            "a group that targets {} would fit",
            listed(SHAPES.iter().map(|(words, _)| *words).filter(|w| fitting.contains(w)))
        ),
    };
    Problem::new(&PACKAGE_DOES_NOT_FIT, group.json, message).advise(what)
}

impl Matrix {
    /// As data.
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
                    "groups": fits.collect::<Vec<_>>(), "wouldFit": line.would_fit,
                })
            })
            .collect();
        json!({ "package": self.package, "groups": groups, "versions": versions })
    }
}
