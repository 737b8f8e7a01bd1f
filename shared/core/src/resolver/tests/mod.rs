//! Resolutions of small catalogs, one line for each bundle.

mod explain;
mod skipped;
mod solver;
mod updates;

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::api::object::Gvk;
use crate::bundle::Property;
use crate::catalog::{Builder, BundleMessage, Channel, Package};

/// A catalog from lines `package.vX.Y.Z channel [default] [replaces=N] [skips=N,N] [range=R] [api=Kind] [needs=Kind] [wants=PACKAGE:RANGE] [deprecated]`;
/// `_` stands for a space.
fn catalog(lines: &[&str]) -> Snapshot {
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    let mut builder = Builder::default();
    for line in lines {
        let mut words = line.split(' ');
        let (name, channel) = (words.next().unwrap(), words.next().unwrap());
        let (package, version) = name.split_once(".v").unwrap();
        let known = packages.entry(package.to_owned()).or_insert_with(|| Package {
            name: package.to_owned(),
            default_channel: channel.to_owned(),
            ..Package::default()
        });
        if known.channel(channel).is_none() {
            known.channels.push(Channel { name: channel.to_owned(), ..Channel::default() });
            known.channels.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let mut message = BundleMessage {
            csv_name: name.to_owned(),
            package: package.to_owned(),
            channel: channel.to_owned(),
            version: version.to_owned(),
            properties: vec![Property::package(package, version)],
            ..BundleMessage::default()
        };
        let api = |kind: &str| Gvk::new("garden.example.com", "v1", kind);
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let value = value.replace('_', " ");
            match key {
                "default" => known.default_channel = channel.to_owned(),
                "replaces" => message.replaces = value,
                "skips" => message.skips = value.split(',').map(str::to_owned).collect(),
                "range" => message.skip_range = value,
                "api" => message.properties.push(Property::gvk("olm.gvk", &api(&value))),
                "needs" => message.properties.push(Property::gvk("olm.gvk.required", &api(&value))),
                "wants" => {
                    let (package, range) = value.split_once(':').unwrap();
                    let value = json!({ "packageName": package, "versionRange": range });
                    message.properties.push(Property::new("olm.package.required", value));
                }
                "any" => message.properties.push(Property::new(
                    "olm.constraint",
                    json!({ "any": { "constraints": value
                        .split(',')
                        .map(|k| json!({ "gvk": { "group": "garden.example.com", "version": "v1", "kind": k } }))
                        .collect::<Vec<_>>() } }),
                )),
                "costly" => {
                    // Nearly the work limit of one rule, for each bundle of the catalog.
                    let loops = "false && properties.all(a, properties.all(b, properties.all(c, a != b || b != c)))";
                    for n in 0..10 {
                        message.properties.push(Property::new("note", json!(n)));
                        let rule = json!({ "cel": { "rule": format!("{loops} || {n} == {value}") } });
                        message.properties.push(Property::new("olm.constraint", rule));
                    }
                }
                "deprecated" => message.properties.push(Property::new("olm.deprecated", json!({}))),
                other => panic!("{other}"),
            }
        }
        builder.bundle(message);
    }
    for package in packages.into_values() {
        builder.package(package);
    }
    builder.build()
}

/// Subscriptions from lines `name package channel [at=CSV] [starting=CSV] [from=CATALOG] [busy]`.
fn wanted<'a>(lines: &[&'a str]) -> Vec<RequestedSubscription<'a>> {
    let read = |line: &'a str| {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap();
        let (name, package, channel) = (next(), next(), next());
        let mut wanted = RequestedSubscription {
            name,
            package,
            channel,
            source: "main",
            source_namespace: "olm",
            ..RequestedSubscription::default()
        };
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("at", csv) => wanted.installed_csv = csv,
                ("starting", csv) => wanted.starting_csv = csv,
                ("from", catalog) => wanted.source = catalog,
                ("busy", _) => wanted.busy = true,
                other => panic!("{other:?}"),
            }
        }
        wanted
    };
    lines.iter().map(|l| read(l)).collect()
}

/// Installed CSVs are given as lines of a catalog; those to which a Subscription is pinned with `at=` are subscribed.
fn installed(lines: &[&str], wanted: &[RequestedSubscription<'_>]) -> Vec<Installed> {
    let snapshot = catalog(lines);
    let installed = snapshot
        .entries()
        .map(|e| Installed { subscribed: wanted.iter().any(|w| w.installed_csv == e.name), entry: e.clone() });
    installed.collect()
}

/// A catalog whose constraints are too costly ends a resolution with a reason.
#[test]
fn costly_constraints_end_a_resolution() {
    let line = |n: usize| format!("rose.v1.{}.0 stable replaces=rose.v1.{n}.0 costly={n}", n + 1);
    let lines: Vec<String> = (0..40).map(line).collect();
    let snapshot = catalog(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let resolution = |channel| {
        let line = format!("rose rose {channel}");
        let inputs = Inputs {
            namespace: "garden",
            subscriptions: wanted(&[&line]),
            catalogs: vec![Catalog { name: "main", namespace: "olm", priority: 0, snapshot: &snapshot }],
            ..Inputs::default()
        };
        resolve(&inputs).map(|_| ()).map_err(|failure| failure.to_string())
    };
    assert_eq!(resolution("stable"), Err(crate::constraint::Work::SPENT.to_owned()));
    // Subscriptions that do not require its bundles are resolved.
    assert!(resolution("fast").unwrap_err().starts_with("constraints not satisfiable"));
}

/// Name, namespace, priority and lines of a catalog.
type Given = (&'static str, &'static str, i64, Lines);
type Lines = &'static [&'static str];

/// Resolves the given lines, and calls `f` with the inputs.
fn with_inputs<T>(catalogs: &[Given], there: &[&str], subscriptions: &[&str], f: impl FnOnce(&Inputs<'_>) -> T) -> T {
    let snapshots: Vec<_> = catalogs.iter().map(|(n, ns, p, lines)| (*n, *ns, *p, catalog(lines))).collect();
    let subscriptions = wanted(subscriptions);
    let inputs = Inputs {
        namespace: "garden",
        installed: installed(there, &subscriptions),
        subscriptions,
        broken: Vec::new(),
        catalogs: snapshots
            .iter()
            .map(|(name, namespace, priority, snapshot)| Catalog { name, namespace, priority: *priority, snapshot })
            .collect(),
    };
    f(&inputs)
}

/// Returns what is chosen: `catalog/channel/bundle [replaces]`, or the failure.
fn outcome(catalogs: &[Given], there: &[&str], subscriptions: &[&str]) -> String {
    let is_there = |name: &str| there.iter().any(|line| line.split(' ').next() == Some(name));
    with_inputs(catalogs, there, subscriptions, |inputs| match resolve(inputs) {
        Ok(resolution) => {
            let shown = resolution.bundles.iter().map(|c| {
                let base = format!("{}/{}/{}", c.catalog.name, c.entry.channel, c.entry.name);
                if is_there(c.replaces) { format!("{base} over {}", c.replaces) } else { base }
            });
            shown.collect::<Vec<_>>().join("; ")
        }
        Err(failure) => failure.to_string(),
    })
}

const CHAIN: Lines = &[
    "rose.v1.0.0 stable api=Rose",
    "rose.v1.1.0 stable replaces=rose.v1.0.0 api=Rose",
    "rose.v2.0.0 stable replaces=rose.v1.1.0 api=Rose",
];

#[test]
fn within_one_package() {
    let ranged: Lines = &["rose.v2.0.0 stable range=>=1.0.0_<2.0.0 replaces=rose.v1.5.0"];
    let skipping: Lines = &[
        "rose.v1.0.0 stable",
        "rose.v1.1.0 stable replaces=rose.v1.0.0",
        "rose.v2.0.0 stable replaces=rose.v1.1.0 skips=rose.v1.0.0,rose.v1.1.0",
    ];
    let channels: Lines = &["rose.v1.0.0 alpha", "rose.v3.0.0 beta", "rose.v2.0.0 stable default"];
    let forked: Lines = &["rose.v1.0.0 stable", "rose.v2.0.0 stable replaces=rose.v1.0.0", "rose.v3.0.0 stable"];
    let rows: &[(Lines, Lines, Lines, &str)] = &[
        // The head of the channel.
        (CHAIN, &[], &["rose rose stable"], "main/stable/rose.v2.0.0"),
        (CHAIN, &[], &["rose rose stable starting=rose.v1.0.0"], "main/stable/rose.v1.0.0"),
        // One hop at a time; startingCSV is ignored.
        (
            CHAIN,
            &["rose.v1.0.0 x api=Rose"],
            &["rose rose stable at=rose.v1.0.0 starting=rose.v1.0.0"],
            "main/stable/rose.v1.1.0 over rose.v1.0.0",
        ),
        (CHAIN, &["rose.v2.0.0 x"], &["rose rose stable at=rose.v2.0.0"], ""),
        // The last upgrade is still in progress.
        (CHAIN, &["rose.v1.0.0 x"], &["rose rose stable at=rose.v1.0.0 busy"], ""),
        // Installed, but deleted: from the start.
        (CHAIN, &[], &["rose rose stable at=rose.v1.1.0 starting=rose.v1.0.0"], "main/stable/rose.v1.0.0"),
        (ranged, &["rose.v1.2.3 x"], &["rose rose stable at=rose.v1.2.3"], "main/stable/rose.v2.0.0 over rose.v1.2.3"),
        (
            skipping,
            &["rose.v1.0.0 x"],
            &["rose rose stable at=rose.v1.0.0"],
            "main/stable/rose.v2.0.0 over rose.v1.0.0",
        ),
        (skipping, &[], &["rose rose stable starting=rose.v1.1.0"], "main/stable/rose.v1.1.0"),
        // Any channel: the default one is preferred.
        (channels, &[], &["rose rose "], "main/stable/rose.v2.0.0"),
        (
            &["rose.v1.0.0 stable deprecated"],
            &[],
            &["rose rose stable"],
            "constraints not satisfiable: bundle main/olm/stable/rose.v1.0.0 is deprecated, subscription rose exists, \
             subscription rose requires main/olm/stable/rose.v1.0.0",
        ),
        (
            CHAIN,
            &[],
            &["rose rose stable from=mane"],
            "constraints not satisfiable: no operators found from catalog mane in namespace olm referenced by subscription rose, \
             subscription rose exists",
        ),
        (
            CHAIN,
            &[],
            &["rose roze stable"],
            "constraints not satisfiable: no operators found in package roze in the catalog referenced by subscription rose, \
             subscription rose exists",
        ),
        (
            CHAIN,
            &[],
            &["rose rose stabel"],
            "constraints not satisfiable: no operators found in channel stabel of package rose in the catalog referenced by \
             subscription rose, subscription rose exists",
        ),
        (
            CHAIN,
            &[],
            &["rose rose stable starting=rose.v9.0.0"],
            "constraints not satisfiable: no operators found with name rose.v9.0.0 in channel stable of package rose in the \
             catalog referenced by subscription rose, subscription rose exists",
        ),
        (
            forked,
            &[],
            &["rose rose stable"],
            "a unique replacement chain within a channel is required to determine the relative order between channel entries, \
             but 2 replacement chains were found in channel \"stable\" of package \"rose\": rose.v2.0.0...rose.v1.0.0, rose.v3.0.0",
        ),
        // One of two has no Subscription.
        (
            CHAIN,
            &["rose.v1.0.0 x api=Rose", "rose.v2.0.0 x api=Rose"],
            &["rose rose stable at=rose.v2.0.0"],
            "constraints not satisfiable: @existing/garden//rose.v1.0.0 and @existing/garden//rose.v2.0.0 originate from package \
             rose, clusterserviceversion rose.v1.0.0 exists and is not referenced by a subscription, subscription rose exists, \
             subscription rose requires @existing/garden//rose.v2.0.0",
        ),
        // Two Subscriptions to one package.
        (CHAIN, &[], &["again rose stable", "rose rose stable"], "main/stable/rose.v2.0.0"),
    ];
    for (lines, there, subscriptions, expected) in rows {
        assert_eq!(outcome(&[("main", "olm", 0, lines)], there, subscriptions), *expected, "{subscriptions:?}");
    }
}

#[test]
fn with_dependencies() {
    let main: Lines = &[
        "rose.v1.0.0 stable needs=Pot",
        "tulip.v1.0.0 stable wants=pot:>=2.0.0",
        "lily.v1.0.0 stable wants=pot:<2.0.0",
        "daisy.v1.0.0 stable any=Vase,Pot",
        "moss.v1.0.0 stable wants=nowhere:>=1.0.0",
        "pot.v1.0.0 stable api=Pot needs=Clay",
        "pot.v2.0.0 fast api=Pot needs=Clay",
        "clay.v0.1.0 alpha api=Clay",
    ];
    let other: Lines = &["vase.v1.0.0 stable api=Vase", "urn.v1.0.0 stable api=Pot"];
    let one: &[Given] = &[("main", "olm", 0, main)];
    let prior: &[Given] = &[("main", "olm", 0, main), ("other", "olm", 10, other)];
    #[rustfmt::skip]
    let rows: &[(&[Given], Lines, Lines, &str)] = &[
        (one, &[], &["rose rose stable"], "main/alpha/clay.v0.1.0; main/stable/pot.v1.0.0; main/stable/rose.v1.0.0"),
        (one, &[], &["tulip tulip stable"], "main/alpha/clay.v0.1.0; main/fast/pot.v2.0.0; main/stable/tulip.v1.0.0"),
        // The bundle's own catalog comes before one of higher priority.
        (prior, &[], &["rose rose stable"], "main/alpha/clay.v0.1.0; main/stable/pot.v1.0.0; main/stable/rose.v1.0.0"),
        (prior, &[], &["daisy daisy stable"], "main/alpha/clay.v0.1.0; main/stable/daisy.v1.0.0; main/stable/pot.v1.0.0"),
        // What is installed comes first.
        (one, &["urn.v9.0.0 x api=Pot"], &["rose rose stable"], "main/stable/rose.v1.0.0"),
        // rose alone gets pot 1; with tulip both get pot 2.
        (one, &[], &["rose rose stable", "tulip tulip stable"], "main/alpha/clay.v0.1.0; main/fast/pot.v2.0.0; main/stable/rose.v1.0.0; main/stable/tulip.v1.0.0"),
        (one, &[], &["moss moss stable"],
            "constraints not satisfiable: bundle moss.v1.0.0 requires an operator with package: nowhere and with version in \
             range: >=1.0.0, subscription moss exists, subscription moss requires main/olm/stable/moss.v1.0.0"),
        (one, &["clay.v0.1.0 x api=Clay", "lily.v1.0.0 x wants=pot:<2.0.0", "pot.v1.0.0 x api=Pot needs=Clay"],
            &["clay clay alpha at=clay.v0.1.0", "lily lily stable at=lily.v1.0.0", "pot-stable-main-olm pot stable at=pot.v1.0.0", "tulip tulip stable"],
            "constraints not satisfiable: @existing/garden//pot.v1.0.0, main/olm/fast/pot.v2.0.0 and main/olm/stable/pot.v1.0.0 \
             originate from package pot, bundle tulip.v1.0.0 requires an operator with package: pot and with version in range: \
             >=2.0.0, subscription pot-stable-main-olm exists, subscription pot-stable-main-olm requires \
             @existing/garden//pot.v1.0.0, subscription tulip exists, subscription tulip requires main/olm/stable/tulip.v1.0.0"),
    ];
    for (catalogs, there, subscriptions, expected) in rows {
        assert_eq!(outcome(catalogs, there, subscriptions), *expected, "{subscriptions:?}");
    }
}
