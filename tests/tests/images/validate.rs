//! Bundles are validated against what registries contain: the platforms of their images, and the previous version.

use std::fs;
use std::path::{Path, PathBuf};

use olm_shell::bundle::{build, validate};
use olm_shell::catalog::Ref;
use olm_shell::cli::findings::{FailOn, Format};
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{Outcome, Printer};
use olm_shell::image::Options;
use olm_tests::images::Image;
use olm_tests::registry::{Registry, Setup, skipped};

use super::push::{build_options, plain, run_captured};

/// Writes a bundle of a version, whose operator and related image are these images.
fn write_bundle(folder: &Path, version: &str, images: [&str; 2]) -> PathBuf {
    let [operator, related] = images;
    let csv = format!(
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: rose.v{version}\n  labels:\n    \
         operatorframework.io/arch.amd64: supported\n    operatorframework.io/arch.arm64: supported\nspec:\n  version: {version}\n  \
         installModes:\n  - {{type: OwnNamespace, supported: {}}}\n  - {{type: AllNamespaces, supported: true}}\n  \
         relatedImages:\n  - {{name: related, image: {related}}}\n  install:\n    strategy: deployment\n    spec:\n      deployments:\n      \
         - name: rose\n        spec:\n          selector: {{matchLabels: {{app: rose}}}}\n          template:\n            \
         metadata: {{labels: {{app: rose}}}}\n            spec:\n              containers:\n              \
         - name: manager\n                image: {operator}\n",
        version == "1.0.0",
    );
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  \
        operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
        operators.operatorframework.io.bundle.metadata.v1: metadata/\n  \
        operators.operatorframework.io.bundle.package.v1: rose\n  operators.operatorframework.io.bundle.channels.v1: stable\n";
    let bundle = folder.join(version).join("bundle");
    for (path, text) in [("manifests/rose.yaml", csv.as_str()), ("metadata/annotations.yaml", annotations)] {
        fs::create_dir_all(bundle.join(path).parent().unwrap()).unwrap();
        fs::write(bundle.join(path), text).unwrap();
    }
    bundle
}

/// Returns the lines of the report, without hints and the place of the bundle.
fn validated(bundle: &Path, against: Option<&str>, select: &str, registry: &Registry) -> Vec<String> {
    let mut selection = validate::Selection::nothing();
    selection.add(select).unwrap();
    let options = validate::Options {
        refs: vec![Ref::Directory(bundle.to_owned())],
        against: against.map(|text| text.parse().unwrap()),
        selection,
        kubernetes: None,
        index_path: None,
        baseline: None,
        create_baseline: false,
        fail_on: FailOn::Never,
        format: Format::Text,
        images: Options { plain_http: vec![registry.host().to_owned()], ..Options::default() },
    };
    let (out, talk) = (Buffer::default(), Buffer::default());
    assert_eq!(validate::run(&options, &mut Printer::to(out.clone(), talk.clone())).unwrap(), Outcome::Done);
    let text = out.text();
    assert!(!talk.text().contains("was not compared"), "{}", talk.text());
    let place = format!("{}/", bundle.display());
    text.lines().filter(|line| !line.starts_with("  hint")).map(|line| line.replace(&place, "")).collect()
}

#[test]
fn platforms_are_those_of_the_registry() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let single = Image::new(&[], vec![]);
    let index = Image::index(&[("linux/amd64", &single), ("linux/arm64", &single), ("unknown/unknown", &single)]);
    let [both, one, missing] = ["both", "one", "missing"].map(|name| format!("{}/{name}:1", registry.host()));
    for (reference, image) in [(&both, &index), (&one, &single)] {
        runtime.block_on(image.push(reference, &[])).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let found = |images| validated(&write_bundle(folder.path(), "1.0.0", images), None, "multiarch", &registry);
    assert_eq!(found([&both, &both]), Vec::<String>::new());
    let [lacks] = &found([&both, &one])[..] else { panic!("one finding") };
    assert!(lacks.starts_with("manifests/rose.yaml:14: error: ClusterServiceVersion/rose.v1.0.0: "), "{lacks}");
    assert!(lacks.contains(&format!("linux/arm64, which the image {one} does not support")), "{lacks}");
    let [uninspected] = &found([&both, &missing])[..] else { panic!("one finding") };
    assert!(
        uninspected
            .contains(&format!("warning: ClusterServiceVersion/rose.v1.0.0: unable to inspect the image ({missing})")),
        "{uninspected}"
    );
}

/// The previous version may be a directory, an image, a layout of images, or a version of a catalog.
#[test]
fn the_previous_version_may_be_an_image() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let image = "registry.example.com/rose:1";
    let bundles = ["1.0.0", "1.1.0"].map(|version| write_bundle(folder.path(), version, [image; 2]));
    let reference = format!("{}/rose-bundle:1.0.0", registry.host());
    let layout = folder.path().join("layout");
    let destinations =
        [build::Destination::Registry(Box::new(plain(&registry))), build::Destination::Layout(layout.clone())];
    for destination in destinations {
        run_captured(|printer| {
            build::run(&build_options(&folder.path().join("1.0.0"), &reference, destination), printer)
        })
        .unwrap();
    }
    let dropped = "manifests/rose.yaml:10: error: ClusterServiceVersion/rose.v1.1.0: install mode OwnNamespace is no longer supported";
    for against in [bundles[0].display().to_string(), reference, layout.display().to_string()] {
        let found = validated(&bundles[1], Some(&against), "previous", &registry);
        assert!(found.iter().any(|line| line.starts_with(dropped)), "{against}: {found:#?}");
    }
}
