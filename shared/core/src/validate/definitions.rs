//! The CustomResourceDefinitions, and the bundle as a whole, as the operator-framework validates them, in its words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::format::config_map_key;
use super::input::{Input, METADATA, description_gvk, gvk_text, within};
use super::rule;
use crate::api::cluster_service_version::Csv;
use crate::api::object::{Gvk, at, map_mut, name, text};
use crate::bundle::File;
use crate::bundle::synthesis::Manifest;
use crate::go_format::quote;
use crate::sim;
use crate::version;

/// The size limit of the ConfigMap into which a bundle is unpacked, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// From this size on, the manifests are reported as almost too large, in bytes.
const MANY_BYTES: u64 = MOST_BYTES * 85 / 100;

/// Maximum number of problems in the schemas of one CustomResourceDefinition that are reported.
const MOST_PROBLEMS: usize = 20;

/// Checks the bundle as a whole: its CustomResourceDefinitions, ServiceAccounts, images and name.
pub(super) fn check(input: &mut Input, csv: &Manifest) {
    owned(input, csv);
    accounts(input, csv);
    let view = Csv::new(&csv.object);
    for (n, image) in view.related_images().iter().enumerate() {
        let reference = text(image, &["image"]);
        let path = ["spec", "relatedImages", &n.to_string(), "image"];
        if reference.is_empty() {
            let message = format!("relatedImages[{n}] has an empty image field");
            input.report(&rule::RELATED_IMAGE, csv, &path, message);
        } else if let Some(problem) = reference_problem(reference) {
            let message = format!("relatedImages[{n}] has an invalid image pullspec {}: {problem}", quote(reference));
            input.report(&rule::RELATED_IMAGE, csv, &path, message);
        }
    }
    let release = match at(&csv.object, &["spec", "release"]) {
        Value::String(release) => release.clone(),
        Value::Number(release) => release.to_string(),
        _ => String::new(),
    };
    if !release.is_empty() {
        let version =
            version::parse_tolerant(view.version()).map_or_else(|_| view.version().to_owned(), |v| v.to_string());
        let wanted = format!("{}-v{version}-{release}", input.package());
        if view.name() != wanted {
            let message = format!(
                "bundle name with release versioning {} does not match expected name {}",
                quote(view.name()),
                quote(&wanted)
            );
            input.report(&rule::RELEASE_NAME, csv, &["metadata", "name"], message);
        }
    }
}

/// Compares the owned CustomResourceDefinitions with those of the bundle.
fn owned(input: &mut Input, csv: &Manifest) {
    let bundle = quote(name(&csv.object));
    let quoted = |gvk: &Gvk| quote(&gvk_text(&gvk.group, &gvk.version, &gvk.kind));
    let mut defined: BTreeMap<Gvk, Arc<Manifest>> = BTreeMap::new();
    for crd in input.crds().cloned().collect::<Vec<_>>() {
        for gvk in crate::bundle::crd_apis(&crd.object) {
            if defined.contains_key(&gvk) {
                let message = format!("duplicate CRD {} in bundle {bundle}", quoted(&gvk));
                input.report(&rule::DUPLICATE_CRD, &crd, &["spec", "names"], message);
            }
            defined.insert(gvk, crd.clone());
        }
    }
    let mut kinds = BTreeSet::new();
    for (n, description) in Csv::new(&csv.object).owned_crds().iter().enumerate() {
        let (group, version, kind) = description_gvk(description);
        let gvk = Gvk::new(group, version, kind);
        kinds.insert((gvk.group.clone(), gvk.kind.clone()));
        if defined.contains_key(&gvk) {
            continue;
        }
        kinds.remove(&(gvk.group.clone(), gvk.kind.clone()));
        if input.is_incomplete {
            continue;
        }
        let message = format!("owned CRD {} not found in bundle {bundle}", quoted(&gvk));
        let path = ["spec", "customresourcedefinitions", "owned", &n.to_string()];
        input.report(&rule::MISSING_CRD, csv, &path, message);
    }
    for (gvk, crd) in &defined {
        if !kinds.contains(&(gvk.group.clone(), gvk.kind.clone())) {
            let message = format!("CRD {} is present in bundle {bundle} but not defined in CSV", quoted(gvk));
            input.report(&rule::UNDECLARED_CRD, crd, &["metadata", "name"], message);
        }
    }
}

/// Reports ServiceAccounts that OLM creates because a Deployment uses them.
fn accounts(input: &mut Input, csv: &Manifest) {
    let used: BTreeSet<&str> = Csv::new(&csv.object)
        .deployments()
        .iter()
        .map(|deployment| text(deployment, &["spec", "template", "spec", "serviceAccountName"]))
        .collect();
    let given: Vec<Arc<Manifest>> =
        input.objects.iter().filter(|manifest| manifest.is("", "ServiceAccount")).cloned().collect();
    for account in given.iter().filter(|account| used.contains(name(&account.object))) {
        let name = name(&account.object);
        let message = format!(
            "invalid service account found in bundle. This service account {name} in your bundle is not valid, because a service account with the same name was already specified in your CSV. If this was unintentional, please remove the service account manifest from your bundle. If it was intentional to specify a separate service account, please rename the SA in either the bundle manifest or the CSV."
        );
        input.report(&rule::SERVICE_ACCOUNT, account, &["metadata", "name"], message);
    }
}

/// Returns why a text is not a reference of an image.
fn reference_problem(reference: &str) -> Option<&'static str> {
    let (rest, digest) = reference.split_once('@').map_or((reference, None), |(rest, digest)| (rest, Some(digest)));
    let is_hex = |hex: &str| hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
    if digest.is_some_and(|digest| {
        digest.split_once(':').is_none_or(|(algorithm, hex)| algorithm.is_empty() || !is_hex(hex))
    }) {
        return Some("invalid reference format");
    }
    let (path, tag) = match rest.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (rest, None),
    };
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if tag.is_some_and(|tag| {
        tag.is_empty() || tag.len() > 128 || tag.starts_with(['-', '.']) || !tag.chars().all(is_word)
    }) {
        return Some("invalid reference format");
    }
    let (host, repository) = match path.split_once('/') {
        Some((host, rest))
            if host.contains(['.', ':']) || host == "localhost" || host.chars().any(|c| c.is_ascii_uppercase()) =>
        {
            (host, rest)
        }
        _ => ("", path),
    };
    if repository.chars().any(|c| c.is_ascii_uppercase()) {
        return Some("invalid reference format: repository name must be lowercase");
    }
    let is_part = |part: &str| {
        let is_end = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        is_end(part.as_bytes().first()) && is_end(part.as_bytes().last()) && part.chars().all(is_word)
    };
    let is_host = host.chars().all(|c| is_word(c) || matches!(c, ':' | '[' | ']'));
    (!is_host || !repository.split('/').all(is_part)).then_some("invalid reference format")
}

/// Checks every CustomResourceDefinition as the API server does.
pub(super) fn check_crds(input: &mut Input) {
    for crd in input.crds().cloned().collect::<Vec<_>>() {
        if let Some(problem) = unparsable(&crd.object) {
            let message = format!("unable to parse CRD {}: {problem}", crd.file.rsplit('/').next().unwrap_or_default());
            input.report(&rule::UNPARSABLE_OBJECT, &crd, &["spec", "versions"], message);
            continue;
        }
        let is_served = text(&crd.object, &["apiVersion"]).ends_with("/v1");
        let mut of_schemas = 0;
        for problem in sim::definition_problems(&with_defaults(&crd.object)) {
            let field = problem.split(": ").next().unwrap_or_default();
            let path: Vec<&str> = field.split(['.', '[', ']']).filter(|part| !part.is_empty()).collect();
            if field.contains("openAPIV3Schema") {
                // operator-sdk ignores these.
                of_schemas += 1;
                if is_served && of_schemas <= MOST_PROBLEMS {
                    input.report(&rule::REFUSED, &crd, &path, problem.clone());
                }
            } else if !field.contains("status") {
                input.report(&rule::INVALID_CRD, &crd, &path, problem.clone());
            }
        }
    }
}

/// Returns why Go cannot decode a CustomResourceDefinition.
fn unparsable(crd: &Value) -> Option<&'static str> {
    let versions = at(crd, &["spec", "versions"]);
    let is_list = versions.is_null() || versions.as_array().is_some_and(|items| items.iter().all(Value::is_object));
    (!is_list).then_some("spec.versions is not a list of versions")
}

/// Returns a CustomResourceDefinition as the API server decodes it, in `v1`.
fn with_defaults(crd: &Value) -> Value {
    let mut crd = crd.clone();
    let is_old = text(&crd, &["apiVersion"]).ends_with("/v1beta1");
    let kind = text(&crd, &["spec", "names", "kind"]).to_owned();
    let names = map_mut(&mut crd, &["spec", "names"]);
    for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        let value = names.entry(field).or_insert(Value::Null);
        if value.as_str().is_none_or(str::is_empty) && !kind.is_empty() {
            *value = default.into();
        }
    }
    if is_old {
        let (version, schema) = (at(&crd, &["spec", "version"]).clone(), at(&crd, &["spec", "validation"]).clone());
        let spec = map_mut(&mut crd, &["spec"]);
        if spec.get("scope").is_none_or(|scope| scope.as_str().is_none_or(str::is_empty)) {
            spec.insert("scope".to_owned(), "Namespaced".into());
        }
        if spec.get("preserveUnknownFields").is_none_or(Value::is_null) {
            spec.insert("preserveUnknownFields".to_owned(), true.into());
        }
        if spec.get("versions").and_then(Value::as_array).is_none_or(Vec::is_empty) && !version.is_null() {
            spec.insert("versions".to_owned(), json!([{ "name": version, "served": true, "storage": true }]));
        }
        if !schema.is_null() {
            for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
                map_mut(version, &[]).insert("schema".to_owned(), schema.clone());
            }
        }
    }
    crd
}

/// Checks the sizes of the manifests, and of the ConfigMap into which they are unpacked.
pub(super) fn check_size(input: &mut Input, files: &[File]) {
    let path = input.path.clone();
    let mut keys: BTreeMap<String, &File> = BTreeMap::new();
    let (mut plain, mut manifests, mut all) = (0, 0, 0);
    let total: u64 = files.iter().map(|file| file.bytes.len() as u64).sum();
    // Compression and base64 together add less than half, and a few bytes for each file.
    let may_exceed = total * 3 / 2 + files.len() as u64 * 64 > MANY_BYTES;
    for file in files {
        let of_manifests = within(&path, &input.manifests, file);
        let is_manifest = of_manifests.is_some();
        let Some(name) = of_manifests.or_else(|| within(&path, METADATA, file)) else { continue };
        let size = if may_exceed { encoded_size(&file.bytes) } else { 0 };
        if is_manifest {
            plain += file.bytes.len() as u64;
            manifests += size;
        }
        if !is_manifest && name == "annotations.yaml" || name.contains('/') {
            continue;
        }
        all += size;
        if let Some(other) = keys.insert(config_map_key(name), file) {
            let message = format!("has the key {} of {} in the ConfigMap", config_map_key(name), other.path);
            input.add(rule::SAME_KEY.finding(message).at(&file.path, 0));
        }
    }
    if all > MOST_BYTES && manifests <= MOST_BYTES {
        let message =
            format!("bundle files exceeded {MOST_BYTES} bytes limit: they have {all} bytes in base64 and gzip");
        input.add(rule::UNPACKED_TOO_LARGE.finding(message).at(&path, 0));
    }
    let sizes = [manifests, MOST_BYTES, plain].map(unit);
    if manifests > MOST_BYTES {
        let message = format!(
            "maximum bundle compressed size with gzip size exceeded: size=~{} , max={}. Bundle uncompressed size is {}",
            sizes[0], sizes[1], sizes[2]
        );
        input.add(rule::BUNDLE_TOO_LARGE.finding(message).at(&path, 0));
    } else if manifests > MANY_BYTES {
        let message = format!(
            "nearing maximum bundle compressed size with gzip: size=~{} , max={}. Bundle uncompressed size is {}",
            sizes[0], sizes[1], sizes[2]
        );
        input.add(rule::BUNDLE_ALMOST_TOO_LARGE.finding(message).at(&path, 0));
    }
}

/// Returns the size of bytes in base64 of gzip.
fn encoded_size(bytes: &[u8]) -> u64 {
    use std::io::Write as _;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default();
    STANDARD.encode(&compressed).len() as u64
}

/// Formats a size with a decimal unit.
fn unit(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (mut unit, mut at) = (1000, 0);
    while bytes / unit >= 1000 && at + 1 < UNITS.len() {
        unit *= 1000;
        at += 1;
    }
    let tenths = (bytes / (unit / 100) + 5) / 10;
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_units_and_references_are_parsed_as_docker_does() {
        let sizes = [999, 1000, 999_999, 1 << 20, 1_999_999].map(unit);
        assert_eq!(sizes, ["999 B", "1.0 kB", "1000.0 kB", "1.0 MB", "2.0 MB"]);
        let digest = format!("rose@sha256:{}", "a".repeat(64));
        for good in ["rose", "example.com:5000/a/b_c:1.0-x", "localhost/a", &digest, "a/b--c__d.e"] {
            assert_eq!(reference_problem(good), None, "{good}");
        }
        for wrong in ["", "Rose", "a:", "a@sha256:1", "oci://a/b", "a//b", "a:b c", "-a", "a@", "example.com/Rose:1"] {
            assert!(reference_problem(wrong).is_some(), "{wrong}");
        }
    }
}
