//! Bundles in images: unpacked for installation, and rendered as in catalogs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use olm_core::bundle::{Bundle, File, Unpacked};
use olm_shell::catalog::Ref;
use olm_shell::catalog::render::{self, Filter, MigrationLevel};
use olm_shell::cli::errors::unpacked as unpacked_or_why;
use olm_shell::cli::flags::{ClusterFlags, DataFormat, ImageFlags};
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::image::{Credentials, Limits, Location, Options};
use olm_shell::run;
use olm_tests::data;
use olm_tests::images::{Compression, Image, Layer};
use olm_tests::registry::{PASSWORD, Registry, Setup, skipped};
use serde_json::Value;

use super::faulty::{Fault, faulty};
use super::registry::secret;
use super::small;

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: rose.v1.0.0}
spec:
  displayName: Rose
  version: 1.0.0
  installModes: [{type: OwnNamespace, supported: true}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: rose
        spec:
          selector: {matchLabels: {app: rose}}
          template:
            metadata: {labels: {app: rose}}
            spec: {containers: [{name: manager, image: registry.example.com/rose:1.0.0}]}
";
const ANNOTATIONS: &str = "annotations:\n  operators.operatorframework.io.bundle.package.v1: rose\n  \
    operators.operatorframework.io.bundle.channels.v1: stable\n";
pub(super) const ROSE: [(&str, &str); 4] = [
    ("manifests/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: last}\n"),
    ("manifests/a.yaml", CSV),
    ("manifests/README.md", "{ not a manifest"),
    ("metadata/annotations.yaml", ANNOTATIONS),
];

fn rose() -> Image {
    Image::bundle("rose", &ROSE)
}

async fn unpack(location: &Location, options: &Options) -> Unpacked {
    unpacked_or_why(olm_shell::registry::image::unpack(location, options).await)
}

async fn unpacked(image: &Image) -> Unpacked {
    let folder = tempfile::tempdir().unwrap();
    image.write_layout(folder.path()).unwrap();
    let location: Location = format!("oci:{}", folder.path().display()).parse().unwrap();
    unpack(&location, &Options { limits: small(), ..Options::default() }).await
}

#[track_caller]
fn is_refused(unpacked: Unpacked, words: &str) {
    match unpacked {
        Unpacked::Refused(message) => assert!(message.contains(words), "no {words:?} in: {message}"),
        other => panic!("{words}: {other:?}"),
    }
}

#[tokio::test]
async fn a_bundle_is_unpacked_in_the_order_of_its_files() {
    let Unpacked::Content(content) = unpacked(&rose()).await else { panic!("expected a bundle") };
    let name = |json: &str| serde_json::from_str::<Value>(json).unwrap()["metadata"]["name"].clone();
    assert_eq!(name(&content.csv_json), "rose.v1.0.0");
    assert_eq!(content.objects.iter().map(|o| name(o)).collect::<Vec<_>>(), ["rose.v1.0.0", "last"]);
}

#[tokio::test]
async fn an_image_that_is_not_a_bundle_is_refused_permanently() {
    is_refused(unpacked(&Image::catalog(&[("catalog.yaml", "c")])).await, "no bundle (it is a catalog)");
    is_refused(unpacked(&Image::bundle("rose", &ROSE[3..])).await, "manifests");
    let no_csv = Image::bundle("rose", &[ROSE[0], ROSE[3]]);
    is_refused(unpacked(&no_csv).await, "no csv in bundle");
    let broken = Image::bundle("rose", &[ROSE[2], ROSE[3]]);
    is_refused(unpacked(&broken).await, "manifests/README.md:1: ");
    let outside = Layer::default().file("../manifests/a.yaml", CSV).finish(Compression::Gzip);
    let labels = [("operators.operatorframework.io.bundle.package.v1", "rose")];
    is_refused(unpacked(&Image::new(&labels, vec![outside])).await, "");
    let big = "x".repeat(2 << 20);
    is_refused(unpacked(&Image::bundle("rose", &[("manifests/a.yaml", big.as_str()), ROSE[3]])).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_faults_are_distinguished_from_permanent_ones() {
    let limits = Limits { stall: Duration::from_millis(300), ..small() };
    for (fault, passes) in [
        (Fault::Silent, true),
        (Fault::Stalls, true),
        (Fault::BreaksOff, true),
        (Fault::Fails, true),
        (Fault::Lies, false),
        (Fault::NeverEnds, false),
        (Fault::OtherManifest, false),
        (Fault::Html, false),
    ] {
        let image = rose();
        let address = faulty(image.clone(), fault).await;
        let options = Options { plain_http: vec![address.to_string()], limits, ..Options::default() };
        let location = format!("{address}/garden/rose@{}", image.digest()).parse().unwrap();
        match unpack(&location, &options).await {
            Unpacked::Later(_) if passes => {}
            Unpacked::Refused(_) if !passes => {}
            other => panic!("{fault:?}: {other:?}"),
        }
    }
    let closed_port = "127.0.0.1:1/garden/rose:1".parse().unwrap();
    assert!(matches!(unpack(&closed_port, &Options::default()).await, Unpacked::Later(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_logins_and_names_are_refused() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup { tls: true, login: true }).unwrap();
    let name = format!("{}/garden/rose:1", registry.host());
    rose().push(&name, &registry.authority()).await.unwrap();
    let with = |password: &str| Options {
        credentials: Credentials::of_secrets([&secret(&registry, password)]).0,
        certificate_authorities: registry.authority(),
        ..Options::default()
    };
    let location = |name: &str| name.parse::<Location>().unwrap();
    assert!(matches!(unpack(&location(&name), &with(PASSWORD)).await, Unpacked::Content(_)));
    is_refused(unpack(&location(&name), &with("wrong")).await, "denies pull access to the image");
    is_refused(unpack(&location(&name.replace("rose:1", "rose:2")), &with(PASSWORD)).await, "has no such image");
}

/// Returns the output of `kubectl olm catalog render`, which blocks like the command.
fn rendered(named: Ref, options: Options) -> Result<String, CliError> {
    std::thread::spawn(move || {
        let (out, err) = (Buffer::default(), Buffer::default());
        let options = render::Options {
            refs: vec![named],
            format: DataFormat::Json,
            level: MigrationLevel::None,
            filter: Filter::default(),
            images: false,
            pull: options,
        };
        render::run(&options, &mut Printer::to(out.clone(), err)).map(|_| out.text())
    })
    .join()
    .unwrap()
}

/// Returns the blob computed from the files themselves, which the rendering tests compare with that of opm.
fn blob(files: &[(String, Vec<u8>)], reference: &str) -> Value {
    let files: Vec<File> = files.iter().map(|(path, bytes)| File::new(path.clone(), bytes.clone())).collect();
    Bundle::read("", &files).unwrap().render().unwrap().blob(reference)
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

/// Returns the bundles to render: one created here, and real ones if the sample data exists.
fn bundles() -> Vec<Vec<(String, Vec<u8>)>> {
    let mut bundles = vec![owned(&[ROSE[0], ROSE[1], ROSE[3]])];
    let real = ["etcd/0.9.4", "kuadrant-operator/0.7.2", "prometheus/0.47.0"];
    let folders = data::data().into_iter().flat_map(|data| real.map(|name| data.join("bundles").join(name)));
    for folder in folders.filter(|folder| folder.is_dir()) {
        let name = |file: &Path| file.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
        let files = data::files(&folder);
        bundles.push(files.iter().map(|file| (name(file), fs::read(file).unwrap())).collect());
    }
    bundles
}

#[tokio::test(flavor = "multi_thread")]
async fn the_image_of_a_bundle_is_rendered_as_the_bundle() {
    for files in bundles() {
        let image = Image::bundle("any", &files);
        let folder = tempfile::tempdir().unwrap();
        image.write_layout(folder.path()).unwrap();
        let address = faulty(image, Fault::None).await;
        let options = Options { plain_http: vec![address.to_string()], ..Options::default() };
        let reference = format!("{address}/garden/any:1");
        for (named, called) in [
            (Ref::Image(reference.clone()), reference.as_str()),
            (Ref::Image(format!("docker://{reference}")), &reference),
            (Ref::Layout(folder.path().to_owned()), ""),
        ] {
            let printed = rendered(named, options.clone()).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), blob(&files, called), "{called}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_take_bundles_from_images() {
    let address = faulty(rose(), Fault::None).await;
    let options = Options { plain_http: vec![address.to_string()], ..Options::default() };
    let reference = format!("{address}/garden/rose:1");
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("template.yaml");
    let render = |text: String| {
        fs::write(&template, text).unwrap();
        rendered(Ref::File(template.clone()), options.clone())
    };
    let schemas = |printed: &str| -> Vec<String> {
        let blobs = serde_json::Deserializer::from_str(printed).into_iter::<Value>();
        blobs.map(|b| b.unwrap()["schema"].as_str().unwrap().to_owned()).collect()
    };
    let entry = format!("{{schema: olm.bundle, image: '{reference}'}}");
    let basic = render(format!(
        "schema: olm.template.basic\nentries:\n- {{schema: olm.package, name: rose, defaultChannel: stable}}\n\
         - {{schema: olm.channel, package: rose, name: stable, entries: [{{name: rose.v1.0.0}}]}}\n- {entry}\n"
    ));
    assert_eq!(schemas(&basic.unwrap()), ["olm.package", "olm.channel", "olm.bundle"]);
    let semver =
        format!("schema: olm.semver\ngenerateMinorChannels: true\nstable: {{bundles: [{{image: '{reference}'}}]}}\n");
    let printed = render(semver.clone()).unwrap();
    assert!(printed.contains("\"stable-v1.0\"") && printed.contains(&reference), "{printed}");
    let error = render(semver.replace(&address.to_string(), "127.0.0.1:1")).unwrap_err();
    assert!(error.message.contains("cannot be reached"), "{error}");
}

const CLUSTER: &str = "apiVersion: v1
kind: Namespace
metadata: {name: garden}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: garden, namespace: garden}
spec: {targetNamespaces: [garden]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: rose, namespace: garden}
spec: {name: rose, channel: stable, source: main, sourceNamespace: olm}
";
const CATALOG: &str = "schema: olm.package
name: rose
defaultChannel: stable
---
schema: olm.channel
package: rose
name: stable
entries: [{name: rose.v1.0.0}]
---
schema: olm.bundle
package: rose
name: rose.v1.0.0
image: registry.example.com/rose-bundle:1
properties: [{type: olm.package, value: {packageName: rose, version: 1.0.0}}]
";

/// Returns the result and the output of `kubectl olm run --simulate` with this content for the image.
pub(super) fn simulated(given: Option<&Path>) -> (Result<Outcome, CliError>, String) {
    let folder = tempfile::tempdir().unwrap();
    let catalog = folder.path().join("catalogs/main");
    fs::create_dir_all(&catalog).unwrap();
    fs::write(catalog.join("catalog.yaml"), CATALOG).unwrap();
    fs::write(folder.path().join("cluster.yaml"), CLUSTER).unwrap();
    let image = given.map(|path| format!("registry.example.com/rose-bundle:1={}", path.display()).parse().unwrap());
    let options = run::Options {
        mode: run::Mode::Simulate(vec![folder.path().to_owned()]),
        cluster: ClusterFlags::default(),
        namespace: "olm".to_owned(),
        objects_namespace: "default".to_owned(),
        catalogs: Vec::new(),
        catalog_images: Vec::new(),
        image_size_limit: None,
        bundle_images: image.into_iter().collect(),
        catalog_pods: false,
        images: ImageFlags::default(),
        feature_gates: run::FeatureGates::default(),
        retry_optional: false,
        protected_copied_csv_namespaces: Vec::new(),
        output: None,
        log_lines: true,
    };
    let out = Buffer::default();
    let answer = run::run(&options, &mut Printer::to(out.clone(), out.clone()));
    (answer, out.text())
}

#[test]
fn a_simulation_uses_given_images() {
    let folder = tempfile::tempdir().unwrap();
    let (layout, bundle, damaged) =
        (folder.path().join("layout"), folder.path().join("bundle"), folder.path().join("damaged"));
    rose().write_layout(&layout).unwrap();
    rose().write_layout(&damaged).unwrap();
    let layer = rose().manifest["layers"][0]["digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    fs::write(damaged.join("blobs/sha256").join(layer), "damaged").unwrap();
    for (path, text) in ROSE {
        fs::create_dir_all(bundle.join(path).parent().unwrap()).unwrap();
        fs::write(bundle.join(path), text).unwrap();
    }
    for given in [&layout, &bundle] {
        let (answer, told) = simulated(Some(given));
        assert_eq!(answer, Ok(Outcome::Done), "{told}");
        assert!(told.contains("clusterserviceversion/rose.v1.0.0") && told.contains("Succeeded"), "{told}");
    }
    let (answer, told) = simulated(None);
    assert_eq!(answer, Ok(Outcome::Negative), "{told}");
    assert!(told.contains("hint: --bundle-image registry.example.com/rose-bundle:1=PATH"), "{told}");
    let (answer, told) = simulated(Some(&damaged));
    assert_eq!(answer, Ok(Outcome::Negative), "{told}");
    assert!(told.contains("bundle rose.v1.0.0 cannot be unpacked"), "{told}");
    let (answer, _) = simulated(Some(&folder.path().join("nowhere")));
    assert!(answer.unwrap_err().location.unwrap().ends_with("nowhere"));
}
