//! Installs operators of the sample data on a real control plane, and compares the final states with the recording of the real
//! OLM.
//!
//! By default a sample is installed at once; with `OLM_SWEEP=all` the heads of all channels, one after the other as they were
//! recorded (about twenty minutes); with `OLM_SWEEP=NAME,…` those of these packages or names. Print the
//! table with `-- --nocapture`.

use olm_tests::data::{NO_DATA, data};
use olm_tests::sweep::case::{Case, Outcome};
use olm_tests::sweep::catalog::Bundles;
use olm_tests::sweep::judge::{self, Recorded};
use olm_tests::sweep::live::Live;
use olm_tests::{control_plane, skip};

/// No two of them own the same API. They cover own, single and global namespaces, native APIs, unusual API versions,
/// dependencies, webhooks, and operators that do not succeed.
const SAMPLE: [&str; 9] = [
    "cert-manager.v1.15.2",
    "compliance-operator.v1.10.0-dev",
    "etcdoperator.v0.9.4",
    "flux.v0.31.3",
    "keycloak-operator.v9.0.2",
    "lib-bucket-provisioner.v2.0.0",
    "rabbitmq-cluster-operator.v2.22.3",
    "service-binding-operator.v1.1.0",
    "wildfly-operator.v1.1.3",
];

#[test]
fn heads_of_channels_end_as_recorded() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    let Some(recorded) = judge::recorded(&data).unwrap() else { skip!("{NO_DATA}: no install-heads.tsv") };
    if control_plane::skipped() {
        return;
    }
    let asked = std::env::var("OLM_SWEEP").unwrap_or_default();
    let asked: Vec<&str> = asked.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_asked = |recorded: &&Recorded| match asked[..] {
        [] => SAMPLE.contains(&recorded.head.as_str()),
        ["all"] => true,
        _ => asked.contains(&recorded.package.as_str()) || asked.contains(&recorded.head.as_str()),
    };
    let bundles = Bundles::read(&data.join("bundles")).unwrap();
    let cases: Vec<(&Recorded, Case)> = recorded
        .iter()
        .filter(is_asked)
        .enumerate()
        .filter_map(|(number, recorded)| {
            let mut case = bundles.install(&recorded.package, &recorded.head)?;
            case.namespace = format!("swept-{number}");
            Some((recorded, case))
        })
        .collect();
    let mut live = Live::start(bundles.catalog().unwrap()).unwrap();
    let mut found: Vec<(&Recorded, Outcome)> = Vec::new();
    let at_once = if asked.is_empty() { cases.len().max(1) } else { 1 };
    for group in cases.chunks(at_once) {
        let together: Vec<Case> = group.iter().map(|(_, case)| case.clone()).collect();
        let outcomes = live.play(&together).unwrap();
        found.extend(group.iter().map(|(recorded, _)| *recorded).zip(outcomes));
        if found.len() < cases.len() {
            live.clean(&together).unwrap();
        }
    }
    print!("{}", judge::table_of_heads("on a cluster", &found));
    let report = judge::heads("cluster", &found, &judge::wanted().unwrap());
    assert!(report.is_empty(), "{report}\n{}", live.log());
}
