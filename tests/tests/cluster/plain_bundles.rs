//! From plain manifests to a running operator, with the commands that an author types: bundles, their images in a registry, a catalog,
//! a Subscription, an upgrade, and the removal; on a real control plane, with published projects.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;
use std::process::Command;

use olm_core::api::object::{self, label, list, text};
use olm_core::bundle::synthesis::Format;
use olm_tests::data::{NO_DATA, data};
use olm_tests::plugin::binary;
use olm_tests::registry::{self, Registry, Setup};
use olm_tests::sweep::case::View;
use olm_tests::sweep::catalog::Bundles;
use olm_tests::sweep::live::Live;
use olm_tests::sweep::plain::{Project, VERSIONS};
use olm_tests::{control_plane, skip};
use serde_json::Value;

/// Several Deployments, admission webhooks, conversion webhooks, an API of its own, permissions for everything, and a plain one.
const PROJECTS: [&str; 6] = [
    "argo-events",
    "cert-manager",
    "cloudnative-pg",
    "prometheus-adapter",
    "tekton-pipelines",
    "zalando-postgres-operator",
];

/// Runs a command of a plugin, and returns what it prints.
fn run(plugin: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(binary(plugin).unwrap());
    let output = command.args(arguments).env("NO_COLOR", "1").output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{plugin} {arguments:?}: {out}{err}");
    out
}

/// Creates the bundle of a version, pushes its image, and adds it to the catalog.
fn publish(project: &Project, version: &str, folder: &Path, registry: &Registry) {
    let name = &project.name;
    let input = folder.join(format!("{name}-{version}"));
    project.write_manifests(&input, version).unwrap();
    let bundle = folder.join(format!("{name}-{version}-bundle"));
    let catalog = folder.join("catalog");
    let format = if project.format == Format::Plain { "k8s+v1" } else { "registry+v1" };
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let [input, bundle, catalog] = [&input, &bundle, &catalog].map(|folder| path(folder));
    let synthesize = ["synthesize", &input, "--package", name, "--to", format, "--output-dir", &bundle, "-q"];
    run("kubectl-olm-bundle", &synthesize);
    let host = registry.host();
    let reference = format!("{host}/{name}:{version}");
    let pushed = ["build", &bundle, "-t", &reference, "--push", "--plain-http", host];
    let digest = run("kubectl-olm-bundle", &pushed);
    let image = format!("{host}/{name}@{}", digest.trim());
    run("kubectl-olm-catalog", &["add", &catalog, &image, "--plain-http", host]);
}

#[test]
fn manifests_become_operators_that_are_upgraded_and_removed() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    if control_plane::skipped() || registry::skipped() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("catalog")).unwrap();
    let projects: Vec<Project> =
        PROJECTS.iter().map(|name| Project::read(&data.join("plain").join(name), None).unwrap().unwrap()).collect();
    for (project, version) in projects.iter().flat_map(|project| VERSIONS.map(|version| (project, version))) {
        publish(project, version, folder.path(), &registry);
    }
    let served = Bundles::served(&folder.path().join("catalog")).unwrap();
    assert_eq!(served.left_out, Vec::<String>::new());
    let cases: Vec<_> = projects.iter().map(|project| project.case("stable")).collect();
    let is_upgraded = |view: &View| {
        projects.iter().zip(&cases).all(|(project, case)| {
            let csvs = view.objects_of("ClusterServiceVersion", &case.namespace);
            let csvs: Vec<_> = csvs.filter(|csv| label(csv, "olm.copiedFrom").is_none()).collect();
            let [csv] = csvs[..] else { return false };
            object::name(csv) == format!("{}.v{}", project.name, VERSIONS[1])
                && text(csv, &["status", "phase"]) == "Succeeded"
        })
    };
    let mut live = Live::start_with_pod_network(served).unwrap();
    live.play_until(&cases, is_upgraded).unwrap();
    let because: Vec<String> = cases.iter().flat_map(|case| case.because(live.view())).collect();
    assert!(is_upgraded(live.view()), "{}\n{}", because.join("\n"), live.log());
    for (project, case) in projects.iter().zip(&cases) {
        assert_eq!(project.differences(live.view(), &case.namespace), Vec::<String>::new(), "{}", project.name);
        let plans = live.view().objects_of("InstallPlan", &case.namespace).count();
        assert_eq!(plans, 2, "{}: one for each version", project.name);
    }
    let listed = live.command(|kubeconfig| {
        let kubeconfig = kubeconfig.to_str().unwrap();
        Ok(run("kubectl-olm-operator", &["list", "-A", "--kubeconfig", kubeconfig, "-o", "json"]))
    });
    let listed: Value = serde_json::from_str(&listed.unwrap()).unwrap();
    let states: Vec<[&str; 3]> = list(&listed, &["items"])
        .iter()
        .map(|item| [["package"].as_slice(), &["installed", "version"], &["health"]].map(|path| text(item, path)))
        .collect();
    let expected: Vec<[&str; 3]> =
        projects.iter().map(|project| [project.name.as_str(), VERSIONS[1], "Healthy"]).collect();
    assert_eq!(states, expected);
    live.clean(&cases).unwrap();
    let owned = [
        "Deployment",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "APIService",
    ];
    let left: Vec<String> = owned
        .iter()
        .flat_map(|kind| live.view().objects_of(kind, ""))
        .filter(|object| label(object, "olm.owner.kind") == Some("ClusterServiceVersion"))
        .map(olm_tests::scenario::store::ident)
        .collect();
    assert_eq!(left, Vec::<String>::new());
}
