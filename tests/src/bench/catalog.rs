//! Catalogs of the real bundles of the sample data.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use olm_core::api::object;
use olm_core::version::{Version, parse_tolerant};
use serde_json::{Value, json};

use crate::data;

/// The only channel of each package.
pub const CHANNEL: &str = "all";
/// The annotation that contains the name of a bundle's package.
const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";

/// Writes a file-based catalog of the bundles in a folder whose relative paths `wanted` accepts: each package with one channel,
/// in the order of versions. Returns the names of the packages.
pub fn write(bundles: &Path, into: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<String>> {
    let mut packages: BTreeMap<String, Vec<(Option<Version>, String)>> = BTreeMap::new();
    let mut list = String::new();
    for annotations in data::files(bundles).iter().filter(|file| file.ends_with("metadata/annotations.yaml")) {
        let bundle = annotations.ancestors().nth(2).context("a file at the root")?;
        if !wanted(bundle.strip_prefix(bundles)?) {
            continue;
        }
        let annotations = data::documents(annotations)?;
        let package = annotations.first().map(|a| object::text(a, &["annotations", PACKAGE]));
        let csv = data::files(&bundle.join("manifests"))
            .iter()
            .filter_map(|file| data::documents(file).ok())
            .flatten()
            .find(|object| object::text(object, &["kind"]) == "ClusterServiceVersion");
        let (Some(package), Some(csv)) = (package, csv) else { continue };
        let version = parse_tolerant(object::text(&csv, &["spec", "version"])).ok();
        packages.entry(package.to_owned()).or_default().push((version, object::name(&csv).to_owned()));
        // The root is an ancestor, too.
        writeln!(list, "{}", bundle.strip_prefix("/").unwrap_or(bundle).display())?;
    }
    let mut blobs = Vec::new();
    let names = packages.keys().cloned().collect();
    for (package, mut bundles) in packages {
        bundles.sort();
        let before = [None].into_iter().chain(bundles.iter().map(|(_, name)| Some(name)));
        let entries: Vec<Value> =
            bundles.iter().zip(before).map(|((_, name), before)| json!({ "name": name, "replaces": before })).collect();
        blobs.push(json!({ "schema": "olm.package", "name": package, "defaultChannel": CHANNEL }));
        blobs.push(json!({ "schema": "olm.channel", "package": package, "name": CHANNEL, "entries": entries }));
    }
    fs::write(into.join("catalog.json"), blobs.iter().map(Value::to_string).collect::<String>())?;
    fs::write(into.join("bundles.txt"), list)?;
    Ok(names)
}
