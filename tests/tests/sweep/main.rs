//! Installs and upgrades every operator of the sample data in simulation, and compares the final states.
//!
//! * The heads of all channels end as with the real OLM (`recorded/install-heads.tsv` of the data folder), apart from the
//!   differences in `tests/sweep/differences.yaml`.
//! * Upgrades, and heads without a recording, end as listed in `tests/sweep/ends.tsv`.
//!
//! Print the tables with `cargo test -p olm-tests --test sweep -- --nocapture`. `OLM_SWEEP=NAME,…` plays only packages or CSVs
//! with these names, and prints the reasons of each final state.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a sweep that cannot be played has failed; it prints tables"
)]

mod plain_commands;
mod plain_projects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use olm_tests::data::{NO_DATA, data};
use olm_tests::scenario::engine::Engine as _;
use olm_tests::scenario::sim::SimEngine;
use olm_tests::skip;
use olm_tests::sweep::case::{self, Case, Outcome, View};
use olm_tests::sweep::catalog::{Bundles, Served};
use olm_tests::sweep::each;
use olm_tests::sweep::judge::{self, Recorded};

/// The bundles, if the data folder exists.
static BUNDLES: LazyLock<Option<Bundles>> = LazyLock::new(|| Some(Bundles::read(&data()?.join("bundles")).unwrap()));

/// The catalog of all packages.
static CATALOG: LazyLock<Option<Served>> = LazyLock::new(|| Some(BUNDLES.as_ref()?.catalog().unwrap()));

/// The selected packages and CSVs.
static ASKED: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let asked = std::env::var("OLM_SWEEP").unwrap_or_default();
    asked.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
});

#[test]
fn heads_of_channels_end_as_recorded() {
    let Some(bundles) = &*BUNDLES else { skip!("{NO_DATA}") };
    let Some(recorded) = judge::recorded(&data().unwrap()).unwrap() else { skip!("{NO_DATA}: no install-heads.tsv") };
    let cases = recorded.iter().filter_map(|r| Some((r, bundles.install(&r.package, &r.head)?)));
    let cases: Vec<(&Recorded, Case)> = cases.filter(|(_, case)| is_selected(case)).collect();
    let found = play(bundles, &cases.iter().map(|(_, case)| case.clone()).collect::<Vec<_>>());
    let found: Vec<_> = cases.iter().map(|(recorded, _)| *recorded).zip(found).collect();
    print!("{}", judge::table_of_heads("simulated", &found));
    let report = judge::heads("sim", &found, &judge::wanted().unwrap());
    let missing = recorded.iter().filter(|r| !cases.iter().any(|(case, _)| case.head == r.head)).map(|r| &r.head);
    let missing: Vec<_> = missing.filter(|_| ASKED.is_empty()).collect();
    assert!(
        report.is_empty() && missing.is_empty(),
        "{report}not played: {missing:?}, left out: {:?}",
        bundles.left_out
    );
}

#[test]
fn upgrades_end_as_stored() {
    let Some(bundles) = &*BUNDLES else { skip!("{NO_DATA}") };
    let recorded = judge::recorded(&data().unwrap()).unwrap().unwrap_or_default();
    let upgrades = bundles.edges().into_iter().map(|edge| (edge.by.as_str(), bundles.upgrade(edge)));
    let heads = bundles.heads().into_iter().map(|head| ("head", bundles.head(&head)));
    let unrecorded = heads.filter(|(_, case)| !recorded.iter().any(|recorded| recorded.head == case.install.csv));
    let mut cases: Vec<(&str, Case)> = upgrades.chain(unrecorded).collect();
    cases.retain(|(_, case)| is_selected(case));
    let outcomes = play(bundles, &cases.iter().map(|(_, case)| case.clone()).collect::<Vec<_>>());
    let found = cases.iter().zip(outcomes).map(|((by, case), outcome)| {
        let (from, to) = match &case.upgrade {
            Some(to) => (Some(case.install.csv.as_str()), to.csv.as_str()),
            None => (None, case.install.csv.as_str()),
        };
        (judge::Written::new(&case.package, from, to, by, &outcome), outcome.because)
    });
    let found: Vec<_> = found.collect();
    let written = judge::written().unwrap();
    print!("{}", judge::table_of_ends(&found, &written));
    let report = judge::ends(&found, &written);
    assert!(report.is_empty(), "{report}");
}

fn is_selected(case: &Case) -> bool {
    let csvs = [Some(&case.install), case.upgrade.as_ref()].into_iter().flatten().map(|target| &target.csv);
    ASKED.is_empty() || ASKED.contains(&case.package) || csvs.into_iter().any(|csv| ASKED.contains(csv))
}

/// Plays every case in a separate simulated cluster that serves the catalog of all packages, and for an upgrade also that of
/// its package.
fn play(bundles: &Bundles, cases: &[Case]) -> Vec<Outcome> {
    let catalog = CATALOG.as_ref().unwrap();
    assert_eq!(catalog.left_out, Vec::<String>::new(), "the catalog is valid");
    let packages: BTreeSet<&str> =
        cases.iter().filter(|case| case.upgrade.is_some()).map(|case| &*case.package).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    let alone: BTreeMap<&str, Served> =
        packages.iter().copied().zip(each(&packages, |package| bundles.alone(package).unwrap())).collect();
    let mut engine = SimEngine::start().unwrap();
    case::serve(&mut engine, &mut View::default(), case::CATALOG, catalog).unwrap();
    each(cases, |case| {
        let mut engine = engine.clone();
        if let Some(alone) = alone.get(&*case.package).filter(|_| case.upgrade.is_some()) {
            case::serve(&mut engine, &mut View::default(), case::ALONE, alone).unwrap();
        }
        let mut outcome = case.play(&mut engine).unwrap();
        let unfinished = engine.unfinished().unwrap();
        outcome.because.extend(unfinished.into_iter().map(|action| format!("not done: {action}")));
        if !ASKED.is_empty() {
            println!("{case:?}\n{}\n{}", outcome.because.join("\n"), engine.log());
        }
        outcome
    })
}
