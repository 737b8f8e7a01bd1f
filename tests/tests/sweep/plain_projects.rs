//! Operators that are published as plain manifests: their bundles are installed and upgraded in simulation, and what runs equals what
//! was given.
//!
//! Which manifests have errors, and how the installs end, is in `tests/sweep/plain-installs.tsv`; what does not run because an install
//! failed is counted in `plain-failures.tsv`. `OLM_GENERATE=1` renews them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use olm_core::api::object;
use olm_core::bundle::synthesis::Format;
use olm_tests::data::{documents, repository};
use olm_tests::scenario::store::ident;
use olm_tests::sweep::comparison::{compare, unexpected};
use olm_tests::sweep::plain::{Project, VERSIONS};
use serde_json::{Value, json};

use super::*;

/// How a project is installed and upgraded.
struct Played {
    /// Its line of the table.
    line: String,
    differences: Vec<String>,
}

/// Returns all objects of a simulated cluster.
fn objects(engine: &mut SimEngine) -> Vec<Value> {
    engine.simulation().api().iter().map(Cow::into_owned).collect()
}

/// Returns how what runs differs from the manifests of a version.
fn differences(
    project: &Project,
    version: &str,
    namespace: &str,
    engine: &mut SimEngine,
    before: &BTreeSet<String>,
) -> Vec<String> {
    let running = objects(engine);
    let compared = compare(project, version, namespace, &running).unwrap();
    let mut differences = compared.differences.clone();
    // The two versions differ by it.
    let first = (version != VERSIONS[0]).then(|| format!("ClusterRole/{}-first", project.name));
    if compared.remaining.iter().ne(first.iter()) {
        differences.push(format!("ClusterRole/{}-first: {:?} remain", project.name, compared.remaining));
    }
    let others = unexpected(&running, before, &[compared]);
    differences.extend(others.into_iter().map(|object| format!("{object} was not given")));
    differences.iter().map(|difference| format!("{version}: {difference}")).collect()
}

/// Returns a cluster that serves the bundles of a project, the installation, and the objects of the cluster.
fn prepared(project: &Project) -> (SimEngine, View, Case, BTreeSet<String>) {
    let folder = tempfile::tempdir().unwrap();
    project.write(folder.path()).unwrap();
    let bundles = Bundles::read(folder.path()).unwrap();
    assert_eq!(bundles.left_out, Vec::<String>::new(), "{}", project.name);
    let edges = bundles.edges();
    assert_eq!(edges.len(), 1, "{}: one upgrade", project.name);
    let case = bundles.upgrade(edges[0]);
    let mut engine = SimEngine::start().unwrap();
    let mut view = View::default();
    case::serve(&mut engine, &mut view, case::ALONE, &bundles.alone(&project.name).unwrap()).unwrap();
    let before: BTreeSet<String> = objects(&mut engine).iter().map(ident).collect();
    (engine, view, case, before)
}

/// Plays the installation and the upgrade of a project.
fn played(project: &Project) -> Played {
    let (mut engine, mut view, case, before) = prepared(project);
    let mut found = Vec::new();
    let installed = |engine: &mut SimEngine| {
        found = differences(project, VERSIONS[0], &case.namespace, engine, &before);
    };
    let outcome = case.play_with(&mut engine, &mut view, installed).unwrap();
    let upgrade = outcome.upgrade.clone().unwrap();
    // An upgrade waits until the first version runs, and then has created nothing.
    if upgrade.has_begun() {
        found.extend(differences(project, VERSIONS[1], &case.namespace, &mut engine, &before));
    }
    println!("{}: {}", project.name, outcome.because.join("\n  "));
    let errors: Vec<&str> = project.errors.iter().copied().collect();
    let format = if project.format == Format::Plain { "k8s+v1" } else { "registry+v1" };
    let line = format!("{}\t{format}\t{}\t{}\t{upgrade}\n", project.name, errors.join(","), outcome.install);
    Played { line, differences: found }
}

/// Returns the folders of the published projects.
pub(super) fn folders() -> Option<Vec<PathBuf>> {
    let mut folders: Vec<_> = fs::read_dir(data()?.join("plain")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    Some(folders)
}

/// Compares a table with the stored one. Another data folder may have other projects.
pub(super) fn check_table(name: &str, table: &str) {
    let stored = repository().join("tests/sweep").join(name);
    if std::env::var_os("OLM_GENERATE").is_some() {
        fs::write(&stored, table).unwrap();
    }
    let stored = fs::read_to_string(stored).unwrap();
    let unknown: Vec<&str> = table.lines().filter(|line| !stored.lines().any(|known| known == *line)).collect();
    assert_eq!(unknown, Vec::<&str>::new(), "they end otherwise than stored in {name}");
}

/// The sample of this repository.
fn sample() -> Project {
    let folder = repository().join("tests/plain");
    let olm_yaml: Value = documents(&folder.join("olm.yaml")).unwrap().remove(0);
    Project::read(&folder.join("rose"), Some(olm_yaml)).unwrap().unwrap()
}

#[test]
fn the_sample_runs_as_given() {
    let project = sample();
    let Played { line, differences } = played(&project);
    // Nothing answers for an APIService in a simulation.
    assert_eq!(line, "rose\tk8s+v1\t\tInstalling/InstallWaiting\tNotInstalled\n");
    assert_eq!(differences, Vec::<String>::new());
    assert!(project.manifests(VERSIONS[0]).len() > 20, "nothing is excluded");
    for version in VERSIONS {
        let synthesis = project.synthesis(version);
        let lost: Vec<_> = synthesis.account.iter().filter(|entry| entry.destinations.is_empty()).collect();
        assert_eq!(lost, Vec::<&olm_core::bundle::synthesis::AccountEntry>::new());
    }
}

/// The comparison finds what it is for.
#[test]
fn every_kind_of_difference_is_found() {
    let project = sample();
    let (mut engine, mut view, case, before) = prepared(&project);
    case.begin(&mut engine).unwrap();
    case::settle(&mut engine, &mut view, |_| false).unwrap();
    let running = objects(&mut engine);
    let compared = |running: &[Value]| {
        let compared = compare(&project, VERSIONS[0], &case.namespace, running).unwrap();
        [compared.differences.clone(), unexpected(running, &before, &[compared])].concat().join("\n")
    };
    assert_eq!(compared(&running), "");
    let rule = json!([{ "apiGroups": ["example.com"], "resources": ["thorns"], "verbs": ["get"] }]);
    let service = "/webhooks/0/clientConfig/service";
    let container = "/spec/template/spec/containers/0";
    let converting = "/spec/conversion/webhook/clientConfig";
    // The object, the part of it that is changed, and the words of the difference.
    let changes = [
        (
            "Deployment",
            "rose",
            format!("{container}/image"),
            json!("other"),
            "Deployment/garden/rose: .spec.template.spec.containers[manager].image is",
        ),
        ("Deployment", "rose", "/metadata/labels/more".to_owned(), json!("1"), ".metadata.labels.more was not given"),
        ("Deployment", "rose", "/spec/template/spec/hostNetwork".to_owned(), json!(true), ".hostNetwork was not given"),
        ("ConfigMap", "rose-settings", "/data".to_owned(), json!({}), ".data"),
        (
            "ServiceAccount",
            "rose",
            "/automountServiceAccountToken".to_owned(),
            json!(false),
            ".automountServiceAccountToken",
        ),
        (
            "ServiceAccount",
            "rose",
            "/metadata/annotations".to_owned(),
            json!({ "a": "b" }),
            ".metadata.annotations.a was not given",
        ),
        (
            "APIService",
            "v1.scents.example.com",
            "/spec/groupPriorityMinimum".to_owned(),
            json!(1),
            ".spec.groupPriorityMinimum is 1",
        ),
        ("APIService", "v1.scents.example.com", "/spec/caBundle".to_owned(), json!("AA=="), ".spec.caBundle is not"),
        (
            "CustomResourceDefinition",
            "roses.garden.example.com",
            format!("{converting}/service/path"),
            json!("/x"),
            ".service.path is",
        ),
        (
            "CustomResourceDefinition",
            "roses.garden.example.com",
            format!("{converting}/caBundle"),
            json!("AA=="),
            ".caBundle is not",
        ),
        (
            "CustomResourceDefinition",
            "roses.garden.example.com",
            "/spec/conversion".to_owned(),
            json!({ "strategy": "None" }),
            ".strategy is",
        ),
        (
            "CustomResourceDefinition",
            "roses.garden.example.com",
            "/spec/versions/0/served".to_owned(),
            json!(false),
            ".served",
        ),
        ("ValidatingWebhookConfiguration", "", format!("{service}/path"), json!("/x"), ".service.path is"),
        ("ValidatingWebhookConfiguration", "", format!("{service}/port"), json!(8443), ".service.port is 8443"),
        (
            "ValidatingWebhookConfiguration",
            "",
            "/webhooks/0/objectSelector/matchLabels".to_owned(),
            json!({ "a": "b" }),
            ".objectSelector.matchLabels was not given",
        ),
        (
            "MutatingWebhookConfiguration",
            "",
            "/webhooks/0/reinvocationPolicy".to_owned(),
            json!("Sometimes"),
            ".reinvocationPolicy is",
        ),
        ("MutatingWebhookConfiguration", "", "/webhooks/0/rules".to_owned(), json!([]), ".rules"),
        (
            "ClusterRole",
            "rose.v1.0.0-",
            "/rules".to_owned(),
            rule.clone(),
            "is granted more than given: get thorns.example.com in the cluster",
        ),
        ("ClusterRole", "rose.v1.0.0-", "/rules".to_owned(), rule, "is not granted"),
        ("ClusterRole", "rose-viewers", "/rules".to_owned(), json!([]), "ClusterRole/rose-viewers: .rules"),
        ("Service", "rose-service", "/spec/ports".to_owned(), json!([]), ".spec.ports is missing"),
        ("PodDisruptionBudget", "", "/spec/maxUnavailable".to_owned(), json!(7), ".spec.maxUnavailable"),
    ];
    for (kind, name, pointer, value, words) in changes {
        let mut changed = running.clone();
        let is_it = |object: &&mut Value| {
            object::kind(object) == kind && object::name(object).starts_with(name) && !before.contains(&ident(object))
        };
        let found = changed.iter_mut().find(is_it).unwrap_or_else(|| panic!("{kind} {name}"));
        let path: Vec<&str> = pointer.split('/').skip(1).collect();
        let (last, parents) = path.split_last().unwrap();
        let mut place = found;
        for part in parents {
            place = match part.parse::<usize>() {
                Ok(number) => &mut place[number],
                Err(_) => &mut place[*part],
            };
        }
        place[*last] = value;
        let differences = compared(&changed);
        assert!(differences.contains(words), "{kind} {name} {pointer}: {differences}");
    }
    // Each object that was given is missed, and each other one is noticed.
    let ours = |object: &Value| !before.contains(&ident(object));
    for kind in
        ["Deployment", "ConfigMap", "ServiceAccount", "APIService", "CustomResourceDefinition", "PodDisruptionBudget"]
    {
        let number = running.iter().position(|o| {
            ours(o) && object::kind(o) == kind && object::name(o) != "kube-root-ca.crt" && object::name(o) != "default"
        });
        let mut without = running.clone();
        let removed = without.remove(number.unwrap_or_else(|| panic!("{kind}")));
        assert!(compared(&without).contains("does not exist"), "{}", ident(&removed));
        let mut with = running.clone();
        let mut other = removed;
        other["metadata"]["name"] = "other".into();
        other["spec"]["service"] = json!({ "name": "other" });
        with.push(other);
        assert_eq!(compared(&with), ident(with.last().unwrap()));
    }
}

#[test]
fn published_projects_run_as_given() {
    let Some(mut folders) = folders() else { skip!("{NO_DATA}") };
    let name = |folder: &PathBuf| folder.file_name().unwrap().to_string_lossy().into_owned();
    folders.retain(|folder| ASKED.is_empty() || ASKED.contains(&name(folder)));
    let found = each(&folders, |folder| match Project::read(folder, None).unwrap() {
        Some(project) => played(&project),
        None => Played { line: format!("{}\t-\t\t-\t-\n", name(folder)), differences: Vec::new() },
    });
    let mut table = String::from("# project\tformat\terrors of excluded manifests\tinstall\tupgrade\n");
    let mut of_others = String::new();
    // What does not run because an install failed: too much to list each object.
    let mut of_failed: BTreeMap<String, usize> = BTreeMap::new();
    for Played { line, differences } in &found {
        table.push_str(line);
        let project = line.split('\t').next().unwrap();
        let has_failed = ["\tFailed", "\tPending", "\tPlanFailed"].iter().any(|end| line.contains(end));
        for difference in differences {
            if has_failed {
                let kind = difference.split([' ', '/']).nth(1).unwrap();
                *of_failed.entry(format!("{project}\t{kind}")).or_default() += 1;
            } else {
                writeln!(of_others, "{project}: {difference}").unwrap();
            }
        }
    }
    let mut failures = String::from("# project\tkind\tdifferences of both versions\n");
    failures.extend(of_failed.iter().map(|(key, number)| format!("{key}\t{number}\n")));
    println!("{of_others}");
    check_table("plain-installs.tsv", &table);
    check_table("plain-failures.tsv", &failures);
    assert_eq!(of_others, "");
}
