//! Credentials for images: the author of a CatalogSource or a catalog cannot use the credentials of the user who reads it.

use olm_core::api::crd;
use olm_core::api::object::ObjectRef;
use olm_core::settings::Settings;
use olm_core::sim::{ApiServer, Patch, Simulation};
use olm_shell::catalog::{Ref, catalog_sources, list};
use olm_shell::cli::flags::{ClusterFlags, NamespaceFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::image::Options;
use olm_shell::installplan::explain::{self, DryRun, Form, Request};
use olm_tests::hostile::registry::{Answer, Hostility, Registry};
use olm_tests::images::Image;
use olm_tests::sim_api::SimApi;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::hostile::login;
use super::small;

/// Returns a catalog with a bundle in an image of the same registry.
fn catalog(host: &str) -> Image {
    let blobs = [
        json!({ "schema": "olm.package", "name": "rose", "defaultChannel": "stable" }),
        json!({ "schema": "olm.channel", "package": "rose", "name": "stable", "entries": [{ "name": "rose.v1.0.0" }] }),
        json!({ "schema": "olm.bundle", "package": "rose", "name": "rose.v1.0.0", "image": format!("{host}/garden/rose:1"),
                "properties": [{ "type": "olm.package", "value": { "packageName": "rose", "version": "1.0.0" } }] }),
    ];
    let text: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
    Image::catalog(&[("catalog.json", &text)])
}

fn objects(image: &str) -> [Value; 4] {
    let of = |api: &str, kind: &str, name: &str, spec: Value| json!({ "apiVersion": format!("operators.coreos.com/{api}"), "kind": kind, "metadata": { "name": name, "namespace": "garden" }, "spec": spec });
    [
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "garden" } }),
        of("v1", "OperatorGroup", "garden", json!({ "targetNamespaces": ["garden"] })),
        of("v1alpha1", "CatalogSource", "thief", json!({ "sourceType": "grpc", "image": image })),
        of(
            "v1alpha1",
            "Subscription",
            "rose",
            json!({ "name": "rose", "channel": "stable", "source": "thief", "sourceNamespace": "garden" }),
        ),
    ]
}

fn cluster(image: &str) -> SimApi {
    let began = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut simulation = Simulation::new(ApiServer::with_stock_objects(1, began), Settings::default(), began);
    for crd in crd::all() {
        simulation.apply(crd).unwrap();
    }
    simulation.establish();
    for object in objects(image) {
        simulation.apply(object).unwrap();
    }
    let subscription = ObjectRef::from_object(&objects(image)[3]);
    let status = Patch::Merge(json!({ "status": { "lastUpdated": "2026-01-01T00:00:00Z" } }));
    simulation.patch(&subscription, status, Some("status")).unwrap();
    SimApi::start(simulation).unwrap()
}

/// Returns the output on both streams.
fn run_captured(run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> String {
    let out = Buffer::default();
    let answer = run(&mut Printer::to(out.clone(), out.clone()));
    format!("{}{answer:?}", out.text())
}

#[test]
fn images_named_by_others_are_not_pulled_with_the_credentials_of_the_user() {
    let runtime = Runtime::new().unwrap();
    let start = |image: Image| runtime.block_on(Registry::start(image, Answer::Layer, Hostility::None, true)).unwrap();
    let bundles = start(catalog("127.0.0.1:1"));
    let registry = start(catalog(&bundles.address().to_string()));
    let hosts = [registry.address().to_string(), bundles.address().to_string()];
    let host = &hosts[0];
    let image = format!("{host}/garden/catalog:1");
    let api = cluster(&image);
    let flags = ClusterFlags { kubeconfig: Some(api.kubeconfig()), ..ClusterFlags::default() };
    let namespaces = NamespaceFlags { namespace: Some("garden".to_owned()), all_namespaces: false };
    // How many times a password was sent to each registry.
    let passwords = || {
        [&registry, &bundles].map(|registry| {
            let asked = registry.requests();
            asked.authorizations.iter().filter(|sent| sent.starts_with("Basic ")).count()
        })
    };
    let credentials = login(&hosts[0]).and(login(&hosts[1]));
    let plain_http = hosts.to_vec();
    let own = Options { credentials, plain_http, limits: small(), ..Options::default() };
    let lent = Options { lends: true, ..own.clone() };
    let named = |name: &str, images: &Options| {
        let named: Ref = name.parse().unwrap();
        let refs = vec![named.on(&flags, None)];
        let options = list::Options {
            refs,
            packages: Vec::new(),
            images: images.clone(),
            versions: false,
            list: ListFlags::default(),
        };
        run_captured(|printer| list::run(&options, printer))
    };
    let listed = |images: &Options| {
        let options = catalog_sources::Options {
            cluster: flags.clone(),
            namespaces: namespaces.clone(),
            names: Vec::new(),
            images: images.clone(),
            list: ListFlags::default(),
        };
        run_captured(|printer| catalog_sources::list(&options, printer))
    };
    let explained = |images: &Options| {
        let options = explain::Options {
            asked: Request::Package("rose".to_owned()),
            source: SourceFlags { cluster: flags.clone(), ..SourceFlags::default() },
            namespaces: namespaces.clone(),
            on_top: Vec::new(),
            images: images.clone(),
            optional_manifests: false,
            plain_bundles: true,
            dry_run: DryRun::None,
            policies: Vec::new(),
            details: false,
            form: Form::Text,
        };
        run_captured(|printer| explain::run(&options, printer))
    };
    let told = [explained(&own), listed(&own), named("catalogsource/garden/thief", &own)];
    assert_eq!(passwords(), [0, 0], "{told:?}");
    assert!(!registry.requests().paths.is_empty(), "{told:?}");
    assert!(told[1..].iter().all(|told| told.contains("rose") || told.contains("thief")), "{told:?}");
    // Credentials are used for images that the user names, and for those that the user permits.
    let mut known = passwords();
    for ask in 0..4 {
        let told = match ask {
            0 => named(&image, &own),
            1 => listed(&lent),
            2 => named("catalogsource/garden/thief", &lent),
            _ => explained(&lent),
        };
        let sent = passwords();
        assert!(sent[0] > known[0], "{told}");
        known = sent;
    }
    assert!(known[1] > 0, "the bundle's image is pulled for the explanation: {}", explained(&lent));
}
