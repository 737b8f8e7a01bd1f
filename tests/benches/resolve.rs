//! Time and memory to resolve one namespace against a large catalog.

use anyhow::{Context, Result, ensure};
use olm_core::api::object::Gvk;
use olm_core::catalog::{Builder, BundleMessage, Channel, Package, Property, Snapshot};
use olm_core::resolver::{Catalog, Inputs, RequestedSubscription, explain, resolve};
use olm_shell::cli::Printer;
use olm_tests::bench::Times;
use serde_json::json;

const PACKAGES: usize = 420;
const VERSIONS: usize = 3;
const CHANNELS: [&str; 2] = ["alpha", "stable"];
const RUNS: usize = 20;

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let snapshot = catalog();
    let names = ["p0", "p10", "p20", "p30", "p40"];
    let subscription = |name: &'static str| RequestedSubscription {
        name,
        package: name,
        channel: "stable",
        source: "main",
        source_namespace: "olm",
        ..RequestedSubscription::default()
    };
    let inputs = Inputs {
        namespace: "garden",
        subscriptions: names.map(subscription).to_vec(),
        catalogs: vec![Catalog { name: "main", namespace: "olm", priority: 0, snapshot: &snapshot }],
        ..Inputs::default()
    };
    let before = peak()?;
    let resolution = resolve(&inputs)?;
    ensure!(resolution.bundles.len() > names.len(), "dependencies are resolved too");
    let more = peak()? - before;
    let times = Times::new(RUNS, || {
        resolve(&inputs)?;
        Ok(())
    })?;
    printer.line(format_args!(
        "{} of {PACKAGES} packages resolved: {times}; {more:.1} MB more",
        resolution.bundles.len()
    ))?;
    let times = Times::new(RUNS, || {
        ensure!(explain::explain(&inputs, None).is_resolved());
        Ok(())
    })?;
    printer.line(format_args!("the same, explained: {times}"))?;
    Ok(())
}

/// Returns packages that each, except every tenth, need the API of the next and a range of versions of the one after.
fn catalog() -> Snapshot {
    let mut builder = Builder::default();
    for package in 0..PACKAGES {
        let channels = CHANNELS.map(|name| Channel { name: name.to_owned(), ..Channel::default() });
        builder.package(Package {
            name: format!("p{package}"),
            default_channel: "stable".to_owned(),
            channels: channels.to_vec(),
            ..Package::default()
        });
        for (channel, version) in CHANNELS.iter().flat_map(|c| (0..VERSIONS).map(move |v| (c, v))) {
            builder.bundle(bundle(package, channel, version));
        }
    }
    builder.build()
}

fn bundle(package: usize, channel: &str, version: usize) -> BundleMessage {
    let api = |package: usize, n: usize| Gvk::new(&format!("p{package}.example.com"), "v1", &format!("Kind{n}"));
    let mut properties = vec![Property::package(&format!("p{package}"), &format!("1.{version}.0"))];
    properties.extend((0..6).map(|n| Property::gvk("olm.gvk", &api(package, n))));
    if package % 10 < 5 {
        properties.push(Property::gvk("olm.gvk.required", &api(package + 1, 0)));
        let range = json!({ "packageName": format!("p{}", package + 2), "versionRange": ">=1.1.0 <2.0.0" });
        properties.push(Property::new("olm.package.required", range));
    }
    BundleMessage {
        csv_name: format!("p{package}.v1.{version}.0"),
        package: format!("p{package}"),
        channel: channel.to_owned(),
        version: format!("1.{version}.0"),
        replaces: version.checked_sub(1).map(|before| format!("p{package}.v1.{before}.0")).unwrap_or_default(),
        properties,
        ..BundleMessage::default()
    }
}

/// Returns the peak memory of this process in millions of bytes.
fn peak() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}
