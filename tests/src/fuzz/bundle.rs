//! Bundles: manifests, annotations, properties, dependencies, and their use in catalogs and InstallPlans.

use olm_core::api::go_json::GoType;
use olm_core::bundle::steps::{self, BundleSource};
use olm_core::bundle::synthesis::{Format, KnownApis, Metadata, OLM_YAML, read_manifests, synthesize};
use olm_core::bundle::{Bundle, BundleContent, Unpacked, optional, property, reference};
use olm_core::catalog::{self, File};
use olm_core::constraint::{Candidate, Constraint};
use olm_core::membership::{Apis, supported_modes, supports};
use olm_core::structural;
use serde_json::{Value, json};

use super::documents::again;
use super::parts::files;

const SOURCE: BundleSource<'static> =
    BundleSource { catalog: "garden", catalog_namespace: "olm", csv: "rose.v1.0.0", replaces: "rose.v0.9.0" };

/// Parses the files of a bundle directory. An input without parts is the manifest of a ClusterServiceVersion.
///
/// # Panics
/// The catalog does not contain the rendered bundle, or the InstallPlan not its objects.
pub(super) fn run(bytes: &[u8]) {
    let files = files(bytes, "manifests/csv.yaml");
    plain(&files);
    if let Unpacked::Content(content) = Unpacked::of_files(&files) {
        self::content(&content);
    }
    let files: Vec<File> = files.iter().map(|f| File::new(format!("dir/{}", f.path), f.bytes.clone())).collect();
    let Ok(bundle) = Bundle::read("dir", &files) else { return };
    csv(&bundle.csv);
    let _ = (bundle.channels(), bundle.default_channel(), bundle.skip_range());
    let Ok(rendered) = bundle.render() else { return };
    assert_eq!((rendered.name.as_str(), rendered.package.as_str()), (bundle.name(), bundle.package()));
    for property in &rendered.properties {
        if let Ok(Some(constraint)) = Constraint::from_property(property) {
            let _ = constraint.is_met_by(&Candidate { properties: &rendered.properties, ..Candidate::default() });
            let _ = constraint.to_string();
        }
    }
    let _ = (property::apis(&rendered.properties, property::GVK), property::dependencies(&rendered.properties));
    let blob = rendered.blob("registry.example.com/rose@sha256:0");
    again(&blob);
    let text = serde_json::to_vec(&blob).unwrap_or_default();
    let index = catalog::index_files(&[File::new("c.json", text)]);
    assert!(index.findings().is_empty(), "{:?} in {blob}", index.findings());
    self::content(&rendered.content);
}

/// Synthesizes a ClusterServiceVersion from the files: every manifest goes somewhere, or has a finding.
fn plain(files: &[File]) {
    let (metadata, manifests): (Vec<File>, Vec<File>) = files.iter().cloned().partition(|file| file.path == OLM_YAML);
    let (manifests, _) = read_manifests(&manifests);
    for format in [Format::Plain, Format::Registry] {
        let synthesis = synthesize(&manifests, &Metadata::read(metadata.first()), &KnownApis::default(), format);
        assert_eq!(synthesis.account.len(), manifests.len());
        let lost = synthesis.account.iter().find(|entry| {
            entry.destinations.is_empty() && !synthesis.findings.iter().any(|finding| finding.subject == entry.object)
        });
        // Not all findings of hostile input are listed.
        assert!(lost.is_none() || synthesis.findings.len() >= 1_000, "{lost:?}");
    }
}

/// Encodes a ClusterServiceVersion as Go does, and reads its APIs and install modes.
fn csv(csv: &Value) {
    let encoded = GoType::CLUSTER_SERVICE_VERSION.encode(csv);
    let read = serde_json::from_str::<Value>(&encoded);
    assert!(read.is_ok(), "{encoded}");
    let normal = GoType::CLUSTER_SERVICE_VERSION.normalise(csv);
    assert_eq!(GoType::CLUSTER_SERVICE_VERSION.normalise(&normal), normal);
    let _ = (Apis::from_csv(csv), supported_modes(csv), supports(csv, "garden", "garden,shed"));
}

fn content(content: &BundleContent) {
    // A catalog does not state of which type a bundle is.
    let content = &BundleContent { is_plain: false, ..content.clone() };
    assert_eq!(content.digest(), content.digest());
    let packed = catalog::Content::pack(content);
    assert_eq!(packed.read().as_ref(), Ok(content));
    for object in content.objects.iter() {
        let Ok(object) = serde_json::from_str::<Value>(object) else { continue };
        if object["kind"] == "CustomResourceDefinition" {
            schemas(&object);
        }
    }
    let properties = json!([]);
    let Ok(mut steps) = steps::of_content(&SOURCE, "garden", content, &properties) else { return };
    steps::order(&mut steps);
    let marked = steps.first().cloned().into_iter().collect::<Vec<_>>();
    let _ = optional::mark(&mut steps, &marked);
    for step in &steps {
        let manifest = step["resource"]["manifest"].as_str().unwrap_or_default();
        assert!(serde_json::from_str::<Value>(manifest).is_ok(), "{manifest}");
    }
    let told = reference::to_manifest("registry.example.com/rose:1", &SOURCE, "{}");
    assert!(reference::is_reference(&told), "{told}");
}

/// Validates objects against the schemas of a CustomResourceDefinition.
fn schemas(crd: &Value) {
    let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    for schema in versions.iter().map(|version| &version["schema"]["openAPIV3Schema"]) {
        for object in [crd, schema, &json!({ "spec": { "a": 1, "b": ["x"] } })] {
            let _ = (structural::problems(schema, object), structural::unknown_fields(schema, object));
        }
    }
}
