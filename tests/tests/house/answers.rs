//! Output of commands, validated against the published schemas.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use olm_core::api::crd;
use olm_core::api::object::ObjectRef;
use olm_core::catalog::{Filter, MigrationLevel, Mode};
use olm_core::settings::Settings;
use olm_core::sim::{ApiServer, Patch, Simulation};
use olm_shell::bundle::build;
use olm_shell::catalog::{InstalledFrom, Ref, add, diff, graph, list as packages, render, resolve, validate};
use olm_shell::cli::flags::{
    ClusterFlags, CredentialFlags, DataFormat, DryRun, ImageFlags, NamespaceFlags, OutputFlags, PageFlags, SourceFlags,
};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::output::{Output, PageOutput};
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer, findings};
use olm_shell::cluster::installed::HeldLease;
use olm_shell::installplan::explain::{self, Form, Request};
use olm_shell::installplan::policy::Terms;
use olm_shell::installplan::{list as plans, wait};
use olm_shell::olm::release::ReleaseFlags;
use olm_shell::olm::status;
use olm_shell::operator::{
    cleanup, describe, doctor, list as operators, outdated, rollback, uninstall, upgrade, wait as operator_wait,
};
use olm_shell::operatorgroup::{intersect, lint};
use olm_shell::version::{Client, Server};
use olm_shell::{bundle, image, run};
use olm_tests::sim_api::SimApi;
use serde_json::{Value, json};

/// Returns the flags of a list command with JSON output.
fn json_list() -> ListFlags {
    ListFlags { output: json_output(), ..ListFlags::default() }
}

fn json_output() -> OutputFlags {
    OutputFlags { output: Output::Json }
}

/// Returns the parsed output of a command.
fn answer(run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> Value {
    let (out, err) = (Buffer::default(), Buffer::default());
    let ended = run(&mut Printer::to(out.clone(), err.clone()));
    assert!(ended.is_ok(), "{ended:?} {}", err.text());
    let text = out.text();
    serde_json::from_str(&text).or_else(|_| serde_yaml::from_str(&text)).unwrap()
}

fn path(of_repository: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of_repository)
}

fn source(from: &str) -> SourceFlags {
    SourceFlags { from: vec![path(from)], ..SourceFlags::default() }
}

fn everywhere() -> NamespaceFlags {
    NamespaceFlags { namespace: None, all_namespaces: true }
}

fn explained(asked: Request, policies: &[&str]) -> Value {
    let options = explain::Options {
        asked,
        source: source("tests/quickstart"),
        namespaces: NamespaceFlags::default(),
        on_top: Vec::new(),
        images: image::Options::of_user(),
        optional_manifests: false,
        plain_bundles: true,
        dry_run: explain::DryRun::None,
        policies: policies.iter().map(|text| (*text).to_owned()).collect(),
        details: false,
        form: Form::Document("json".parse().unwrap()),
    };
    answer(|printer| explain::run(&options, printer))
}

const MARKET: &str = "tests/quickstart/catalogs/market";
const PLANS: &str = "plugins/kubectl-olm-install_plan/tests/it/garden.yaml";
const OPERATORS: &str = "plugins/kubectl-olm-operator/tests/it/garden.yaml";
const GROUPS: &str = "plugins/kubectl-olm-operatorgroup/tests/it/garden.yaml";

/// Returns the state of an OLM with a catalog, without its Deployments, and with an operator.
fn olm_status() -> Value {
    let began = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut simulation = Simulation::new(ApiServer::with_stock_objects(1, began), Settings::default(), began);
    for crd in crd::all() {
        simulation.apply(crd).unwrap();
    }
    simulation.establish();
    let olm = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": kind,
            "metadata": { "name": name, "namespace": "default", "labels": { "olm.version": "0.28.0" } }, "spec": spec,
        })
    };
    let install = json!({ "strategy": "deployment", "spec": { "deployments": [] } });
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "kubectl-olm-run", "namespace": "default" },
        "spec": { "holderIdentity": "host_1_0a" },
    });
    simulation.apply(lease).unwrap();
    for object in [
        olm(
            "ClusterServiceVersion",
            "packageserver",
            json!({ "displayName": "Package Server", "version": "0.28.0", "install": install }),
        ),
        olm("CatalogSource", "market", json!({ "sourceType": "grpc", "address": "market:50051" })),
    ] {
        simulation.apply(object).unwrap();
    }
    let api = SimApi::start(simulation).unwrap();
    let options = status::Options {
        cluster: ClusterFlags { kubeconfig: Some(api.kubeconfig()), ..ClusterFlags::default() },
        release: ReleaseFlags::default(),
        namespaces: everywhere(),
        output: Output::Json,
    };
    answer(|printer| status::run(&options, printer))
}

/// Returns a cluster with OLM's kinds.
fn simulation() -> Simulation {
    let began = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut simulation = Simulation::new(ApiServer::with_stock_objects(1, began), Settings::default(), began);
    for crd in crd::all() {
        simulation.apply(crd).unwrap();
    }
    simulation.establish();
    simulation
}

/// Returns an object of OLM in namespace `default`.
fn olm(kind: &str, name: &str, spec: Value, status: Value) -> Value {
    let version = if kind == "OperatorGroup" { "v1" } else { "v1alpha1" };
    json!({
        "apiVersion": format!("operators.coreos.com/{version}"), "kind": kind,
        "metadata": { "name": name, "namespace": "default" }, "spec": spec, "status": status,
    })
}

/// Returns the document of a dry run that removes what `operator run` has created.
fn cleanup_document() -> Value {
    let mut simulation = simulation();
    let mut catalog = olm("CatalogSource", "tulip-run", json!({ "sourceType": "grpc" }), json!({}));
    catalog["metadata"]["labels"] = json!({ "kubectl-olm/run": "tulip-run" });
    catalog["metadata"]["annotations"] = json!({ "kubectl-olm/run-package": "tulip" });
    let subscription = json!({ "name": "tulip", "source": "tulip-run", "sourceNamespace": "default" });
    for object in
        [catalog, olm("Subscription", "tulip", subscription, json!({ "lastUpdated": "2026-01-01T00:00:00Z" }))]
    {
        simulation.restore(object).unwrap();
    }
    let api = SimApi::start(simulation).unwrap();
    let options = cleanup::Options {
        cluster: ClusterFlags { kubeconfig: Some(api.kubeconfig()), ..ClusterFlags::default() },
        namespace: Some("default".to_owned()),
        names: Vec::new(),
        delete_crds: false,
        delete_operands: false,
        force: false,
        timeout: None,
        yes: false,
        dry_run: DryRun::Client,
        output: Output::Json,
    };
    let document = answer(|printer| cleanup::run(&options, printer));
    assert_eq!(document["catalogs"][0]["removals"].as_array().unwrap().len(), 1, "{document}");
    assert_eq!(document["catalogs"][0]["deleted"].as_array().unwrap().len(), 1, "{document}");
    document
}

/// Returns the documents of the commands that change operators: of a cluster with an operator that is up to date, and a dry run.
fn operator_documents() -> Vec<Value> {
    let mut simulation = simulation();
    let modes = json!([{ "type": "AllNamespaces", "supported": true }]);
    let owned = json!([{ "name": "roses.garden.example.com", "kind": "Rose", "version": "v1" }]);
    let csv = json!({
        "displayName": "Samovar", "version": "2.3.0", "installModes": modes, "customresourcedefinitions": { "owned": owned },
        "install": { "strategy": "deployment", "spec": { "deployments": [] } },
    });
    let subscription = json!({ "name": "samovar", "channel": "stable", "source": "market", "sourceNamespace": "olm" });
    let installed = json!({ "installedCSV": "samovar.v2.3.0", "currentCSV": "samovar.v2.3.0", "state": "AtLatestKnown", "lastUpdated": "2026-01-01T00:00:00Z" });
    for object in [
        olm("OperatorGroup", "all", json!({}), json!({ "lastUpdated": "2026-01-01T00:00:00Z", "namespaces": [""] })),
        olm("Subscription", "rose", subscription, installed),
        olm(
            "ClusterServiceVersion",
            "samovar.v2.3.0",
            csv,
            json!({ "phase": "Succeeded", "reason": "InstallSucceeded" }),
        ),
    ] {
        simulation.restore(object).unwrap();
    }
    let api = SimApi::start(simulation).unwrap();
    let cluster = || ClusterFlags { kubeconfig: Some(api.kubeconfig()), ..ClusterFlags::default() };
    let (namespace, name) = (Some("default".to_owned()), "rose".to_owned());
    let waiting = operator_wait::Options {
        cluster: cluster(),
        namespace: namespace.clone(),
        name: name.clone(),
        condition: operator_wait::Condition::Installed,
        timeout: None,
        output: Output::Json,
    };
    let removal = uninstall::Options {
        cluster: cluster(),
        namespace,
        name,
        delete_crds: true,
        delete_operands: true,
        backup: None,
        force: false,
        timeout: None,
        yes: true,
        dry_run: DryRun::Client,
        output: Output::Json,
    };
    let upgrades = upgrade::Options {
        cluster: cluster(),
        catalogs: vec![format!("market={}", path(MARKET).display()).parse().unwrap()],
        namespaces: everywhere(),
        names: Vec::new(),
        to: None,
        path: true,
        terms: Terms::default(),
        accept_risks: false,
        timeout: None,
        yes: true,
        dry_run: DryRun::None,
        output: Output::Json,
        images: image::Options::of_user(),
    };
    let candidates = outdated::Options {
        source: SourceFlags { cluster: cluster(), catalogs: upgrades.catalogs.clone(), ..SourceFlags::default() },
        namespaces: everywhere(),
        terms: Terms::default(),
        list: json_list(),
        images: image::Options::of_user(),
    };
    let undone = rollback::Options {
        cluster: cluster(),
        catalogs: upgrades.catalogs.clone(),
        namespace: removal.namespace.clone(),
        name: "rose".to_owned(),
        to: Some(upgrade::range("2.3.0").unwrap()),
        backup: None,
        terms: Terms::default(),
        timeout: None,
        yes: true,
        dry_run: DryRun::Client,
        output: Output::Json,
        images: image::Options::of_user(),
    };
    vec![
        cleanup_document(),
        answer(|printer| rollback::run(&undone, printer)),
        answer(|printer| operator_wait::run(&waiting, printer)),
        answer(|printer| uninstall::run(&removal, printer)),
        answer(|printer| upgrade::run(&upgrades, printer)),
        answer(|printer| outdated::run(&candidates, printer)),
    ]
}

/// Returns event streams of commands: install-plan wait for a plan that waits for approval, and an audit of its cluster.
pub(crate) fn events() -> Vec<Value> {
    let mut simulation = simulation();
    let plan = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": { "name": "install-abcde", "namespace": "default" },
        "spec": { "approval": "Manual", "approved": false, "generation": 1, "clusterServiceVersionNames": ["tea.v1.0.0"] },
    });
    simulation.apply(plan.clone()).unwrap();
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "garden", "namespace": "default" }, "spec": { "targetNamespaces": ["default"] },
    });
    simulation.apply(group).unwrap();
    let status = Patch::Merge(json!({ "status": { "phase": "RequiresApproval", "catalogSources": [] } }));
    simulation.patch(&ObjectRef::from_object(&plan), status, Some("status")).unwrap();
    let api = SimApi::start(simulation).unwrap();
    let options = wait::Options {
        cluster: ClusterFlags { kubeconfig: Some(api.kubeconfig()), ..ClusterFlags::default() },
        namespace: Some("default".to_owned()),
        of: wait::Target::Plan("install-abcde".to_owned()),
        until: wait::Until::Complete,
        timeout: Duration::ZERO,
        json: true,
    };
    let (out, err) = (Buffer::default(), Buffer::default());
    let ended = wait::run(&options, &mut Printer::to(out.clone(), err.clone()));
    assert_eq!(ended, Ok(Outcome::Negative), "{}", err.text());
    let audited = run::Options {
        mode: run::Mode::Audit { once: true, timeout: None },
        cluster: options.cluster,
        namespace: "olm".to_owned(),
        objects_namespace: "default".to_owned(),
        catalogs: Vec::new(),
        catalog_images: Vec::new(),
        bundle_images: Vec::new(),
        catalog_pods: false,
        image_size_limit: None,
        images: ImageFlags::default(),
        feature_gates: run::FeatureGates::default(),
        retry_optional: false,
        protected_copied_csv_namespaces: Vec::new(),
        output: Some(DataFormat::Json),
        log_lines: false,
    };
    let ended = run::run(&audited, &mut Printer::to(out.clone(), err.clone()));
    assert!(ended.is_ok(), "{ended:?} {}", err.text());
    out.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns documents of all kinds except event streams.
pub(crate) fn answers() -> Vec<Value> {
    let json = || "json".parse().unwrap();
    let market = path(MARKET);
    let refs = || vec![market.to_str().unwrap().parse().unwrap()];
    let images = image::Options::of_user;
    let listed = |packages: &[&str]| {
        let packages = packages.iter().map(|name| (*name).to_owned()).collect();
        let options =
            packages::Options { refs: refs(), packages, images: images(), versions: false, list: json_list() };
        answer(|printer| packages::run(&options, printer))
    };
    let graph = |from: Option<&str>| {
        let options = graph::Options {
            refs: refs(),
            package: Some("tea-house".to_owned()),
            channels: Vec::new(),
            versions: None,
            from: from.map(str::to_owned),
            to: None,
            installed_from: InstalledFrom::Nothing,
            images: images(),
            format: graph::Format::Json,
        };
        answer(|printer| graph::run(&options, printer))
    };
    let resolved = |wanted: &str| {
        let options = resolve::Options {
            wanted: vec![wanted.to_owned()],
            catalogs: vec![format!("market={}", market.display()).parse().unwrap()],
            installed_from: InstalledFrom::Nothing,
            namespace: Some("old-town".to_owned()),
            what_if: Vec::new(),
            images: images(),
            output: json(),
        };
        answer(|printer| resolve::run(&options, printer))
    };
    let empty = tempfile::tempdir().unwrap();
    let changed = diff::Options {
        old: market.to_str().unwrap().parse().unwrap(),
        new: format!("{}/", path("tests/scenarios/upgrade-manual-steps/catalogs/main").display()).parse().unwrap(),
        installed_from: InstalledFrom::Nothing,
        namespace: None,
        source: None,
        images: images(),
        output: PageOutput::Output(json()),
    };
    let added = add::Options {
        directory: empty.path().to_owned(),
        bundles: vec![format!("{}/bundles/tea-house.v1.0.0", market.display()).parse().unwrap()],
        mode: Mode::Replaces,
        channels: Vec::new(),
        default_channel: None,
        image: None,
        images: images(),
        level: MigrationLevel::default(),
        dry_run: true,
        output: json(),
    };
    let rendered = render::Options {
        refs: refs(),
        format: DataFormat::Yaml,
        level: MigrationLevel::default(),
        filter: Filter::default(),
        images: true,
        pull: images(),
    };
    let validated = validate::Options {
        refs: refs(),
        images: image::Options::default(),
        strict: true,
        format: findings::Format::Json,
    };
    let manifests = bundle::synthesize::Options {
        paths: vec![path("tests/plain/rose")],
        metadata: Some(path("tests/plain/olm.yaml")),
        package: None,
        version: None,
        replaces: None,
        skips: Vec::new(),
        channels: vec!["stable".to_owned()],
        default_channel: None,
        target: bundle::synthesize::Target::PlainV1,
        output_dir: None,
        dry_run: false,
        account: true,
        cluster: ClusterFlags::default(),
        catalogs: Vec::new(),
        images: image::Options::default(),
        credentials: CredentialFlags::default(),
        format: Some(DataFormat::Json),
    };
    let bundles = bundle::validate::Options {
        refs: vec![Ref::Directory(path(MARKET).join("bundles"))],
        against: None,
        selection: bundle::validate::Selection::everything(),
        kubernetes: None,
        index_path: None,
        baseline: None,
        create_baseline: false,
        fail_on: findings::FailOn::Error,
        format: findings::Format::Json,
        images: images(),
    };
    let linted = lint::Options {
        source: source(GROUPS),
        namespaces: everywhere(),
        on_top: Vec::new(),
        complete: true,
        package: None,
        images: images(),
        format: findings::Format::Json,
        baseline: None,
        create_baseline: false,
        fail_on: lint::FailOn::Never,
        fix: false,
        yes: false,
    };
    let intersecting = intersect::Options {
        groups: Vec::new(),
        source: source(GROUPS),
        namespaces: everywhere(),
        on_top: Vec::new(),
        images: images(),
        format: intersect::Format::Json,
    };
    let listed_plans = plans::Options {
        source: source(PLANS),
        namespaces: everywhere(),
        names: Vec::new(),
        pending: false,
        list: json_list(),
    };
    let listed_operators = operators::Options {
        source: source(OPERATORS),
        namespaces: everywhere(),
        names: Vec::new(),
        blocked: false,
        list: json_list(),
    };
    let checkup = doctor::Options {
        source: source("plugins/kubectl-olm-operator/tests/it/trouble.yaml"),
        older_than: std::time::Duration::ZERO,
        format: findings::Format::Json,
        baseline: None,
        create_baseline: false,
        fail_on: findings::FailOn::Never,
    };
    let described = |names: &[&str]| describe::Options {
        source: source(OPERATORS),
        namespaces: everywhere(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        watch: false,
        output: PageFlags { output: PageOutput::Output(json()) },
    };
    let built = build::Options {
        directory: path("tests/quickstart/catalogs/market/bundles/tea-house.v1.0.0"),
        tag: Some("registry.example.com/tea-house:1.0.0".to_owned()),
        destination: build::Destination::Nowhere,
        platform: build::Platform::default(),
        media_types: build::MediaTypes::default(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        format: Some(DataFormat::Json),
    };
    let server = Server {
        kubernetes_version: "v1.36.3".to_owned(),
        api_versions: vec!["v1".to_owned()],
        controllers: Some(Vec::new()),
        leases: Some(vec![HeldLease {
            namespace: "olm".to_owned(),
            name: "kubectl-olm-run".to_owned(),
            holder_identity: "host_1_0a".to_owned(),
            acquire_time: None,
        }]),
    };
    let version = json!({
        "apiVersion": olm_shell::cli::output::API_VERSION, "kind": "Version",
        "clientVersion": Client::this(), "serverVersion": server,
    });
    let mut all = vec![
        explained(Request::Package("tea-house".to_owned()), &[]),
        explained(Request::Package("samovar".to_owned()), &["rbac.escalates == false && size(csvs) > 7"]),
        explained(Request::Bundle(format!("{}/bundles/tea-house.v1.1.0", market.display())), &[]),
        answer(|printer| plans::run(&listed_plans, printer)),
        answer(|printer| operators::run(&listed_operators, printer)),
        answer(|printer| describe::run(&described(&["rose"]), printer)),
        answer(|printer| describe::run(&described(&["oak"]), printer)),
        answer(|printer| doctor::run(&checkup, printer)),
        olm_status(),
        listed(&[]),
        listed(&["tea-house"]),
        graph(None),
        graph(Some("tea-house.v1.0.0")),
        resolved("tea-house"),
        resolved("coffee"),
        answer(|printer| diff::run(&changed, printer)),
        answer(|printer| add::run(&added, printer)),
        answer(|printer| render::run(&rendered, printer)),
        answer(|printer| validate::run(&validated, printer)),
        answer(|printer| bundle::validate::run(&bundles, printer)),
        answer(|printer| bundle::synthesize::run(&manifests, printer)),
        answer(|printer| lint::run(&linted, printer)),
        answer(|printer| intersect::run(&intersecting, printer)),
        answer(|printer| build::run(&built, printer)),
        version,
    ];
    all.extend(operator_documents());
    all
}
