//! API versions that Kubernetes has removed, and what the catalog of community operators requires of bundles that use them, in the
//! words of the operator-framework.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::input::{Input, texts};
use super::{Options, rule};
use crate::api::cluster_service_version::Csv;
use crate::api::object::{annotation, gvk, kind, list, name, text};
use crate::bundle::synthesis::Manifest;
use crate::finding::Severity;
use crate::go_format::quote;
use crate::version::{self, Version};

/// Group versions and kinds that Kubernetes 1.22 does not serve. CustomResourceDefinitions are treated apart.
const REMOVED_IN_22: [(&str, &[&str]); 11] = [
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    ("rbac.authorization.k8s.io/v1beta1", &["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"]),
    ("apiregistration.k8s.io/v1beta1", &["APIService"]),
    ("authentication.k8s.io/v1beta1", &["TokenReview"]),
    ("authorization.k8s.io/v1beta1", &["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SubjectAccessReview"]),
    ("admissionregistration.k8s.io/v1beta1", &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]),
    ("coordination.k8s.io/v1beta1", &["Lease"]),
    ("extensions/v1beta1", &["Ingress"]),
    ("networking.k8s.io/v1beta1", &["Ingress", "IngressClass"]),
    ("storage.k8s.io/v1beta1", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"]),
    ("certificates.k8s.io/v1beta1", &["CertificateSigningRequest"]),
];
/// Those that 1.25 does not serve, with their resources.
const REMOVED_IN_25: [(&str, &str, &str); 7] = [
    ("batch/v1beta1", "CronJob", "cronjobs"),
    ("discovery.k8s.io/v1beta1", "EndpointSlice", "endpointslices"),
    ("events.k8s.io/v1beta1", "Event", "events"),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("policy/v1beta1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("policy/v1beta1", "PodSecurityPolicy", "podsecuritypolicies"),
    ("node.k8s.io/v1beta1", "RuntimeClass", "runtimeclasses"),
];
/// Those that 1.26 does not serve.
const REMOVED_IN_26: (&str, &str) = ("autoscaling/v2beta2", "HorizontalPodAutoscaler");

/// Names of objects that use removed API versions, by kind.
type Uses = BTreeMap<String, Vec<String>>;

/// Checks the API versions of the objects, and those that the ClusterServiceVersion names.
pub(super) fn check(input: &mut Input, csv: &Manifest, options: &Options) {
    let min = text(&csv.object, &["spec", "minKubeVersion"]);
    let min_version = version::parse_tolerant(min).ok();
    if !min.is_empty() && min_version.is_none() {
        let message = format!(
            "unable to use csv.Spec.MinKubeVersion to verify the CRD/Webhook apis because it has an invalid value: {min}"
        );
        input.report(&rule::UNUSABLE_MIN_KUBE_VERSION, csv, &["spec", "minKubeVersion"], message);
    }
    let supports = |minor: u64| {
        let is_later = |version: &Version| (version.major, version.minor) >= (1, minor);
        [&options.kubernetes, &min_version].into_iter().flatten().any(is_later)
    };
    let (in_25, maybe_in_25) = removed_in_25(input);
    for (minor, uses) in [(22, removed_in_22(input)), (25, in_25), (26, removed_in_26(input))] {
        let severity = if supports(minor) { Severity::Error } else { Severity::Warning };
        report(input, csv, minor, &uses, severity);
    }
    report(input, csv, 25, &maybe_in_25, Severity::Warning);
}

fn report(input: &mut Input, csv: &Manifest, minor: u64, uses: &Uses, severity: Severity) {
    if uses.is_empty() {
        return;
    }
    let message = format!(
        "this bundle is using APIs which were deprecated and removed in v1.{minor}. More info: https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-{minor}. Migrate the API(s) for {}",
        shown(uses)
    );
    // The place is that of the first object, if there is only one kind.
    let first = uses.values().flatten().next();
    let found = first.and_then(|first| input.objects.iter().find(|object| name(&object.object) == first));
    let place = found.map_or(csv, |found| found);
    let (file, line) = (place.file.clone(), place.line_of(&["apiVersion"]));
    let found = rule::REMOVED_API.finding(message).at(&file, line);
    input.add(crate::finding::Finding { severity, ..found }.about(csv.subject()));
}

/// Formats uses as `Kind: (["name" "name"]),Kind: (["name"])`.
fn shown(uses: &Uses) -> String {
    let of = |(kind, names): (&String, &Vec<String>)| {
        let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
        format!("{kind}: ([{}])", names.join(" "))
    };
    uses.iter().map(of).collect::<Vec<_>>().join(",")
}

fn removed_in_22(input: &Input) -> Uses {
    let mut uses = Uses::new();
    for manifest in &input.objects {
        let (api_version, kind) = (text(&manifest.object, &["apiVersion"]), kind(&manifest.object));
        let name = name(&manifest.object).to_owned();
        if (api_version, kind) == ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition") {
            uses.entry("CRD".to_owned()).or_default().push(name);
        } else if REMOVED_IN_22.iter().any(|(version, kinds)| *version == api_version && kinds.contains(&kind)) {
            uses.entry(kind.to_owned()).or_default().push(name);
        }
    }
    uses
}

/// Returns what is certainly removed, and what may be, because permissions name no version.
fn removed_in_25(input: &Input) -> (Uses, Uses) {
    let (mut uses, mut maybe) = (Uses::new(), Uses::new());
    let mut add = |api_version: &str, kind: &str, name: String| {
        if REMOVED_IN_25.iter().any(|(version, removed, _)| (*version, *removed) == (api_version, kind)) {
            uses.entry(kind.to_owned()).or_default().push(name);
        }
    };
    for manifest in &input.objects {
        let csv = &manifest.object;
        if text(csv, &["apiVersion"]) != "operators.coreos.com/v1alpha1" {
            add(text(csv, &["apiVersion"]), kind(csv), name(csv).to_owned());
            continue;
        }
        if kind(csv) != "ClusterServiceVersion" {
            continue;
        }
        let view = Csv::new(csv);
        let mut listed = BTreeSet::new();
        for (field, crds) in [("Owned", view.owned_crds()), ("Required", view.required_crds())] {
            for (n, crd) in crds.iter().enumerate() {
                for (m, resource) in list(crd, &["resources"]).iter().enumerate() {
                    let kind = text(resource, &["kind"]);
                    listed.insert(format!("{}s", kind.to_lowercase()));
                    let place =
                        format!("ClusterServiceVersion.Spec.CustomResourceDefinitions.{field}[{n}].Resource[{m}]");
                    add(text(resource, &["version"]), kind, place);
                }
            }
        }
        for (field, permissions) in
            [("ClusterPermissions", view.cluster_permissions()), ("Permissions", view.permissions())]
        {
            for (n, permission) in permissions.iter().enumerate() {
                for (m, rule) in list(permission, &["rules"]).iter().enumerate() {
                    for group in texts(rule, "apiGroups") {
                        for resource in texts(rule, "resources").filter(|resource| !listed.contains(*resource)) {
                            let is_removed = REMOVED_IN_25.iter().any(|(version, _, removed)| {
                                *removed == resource && version.split('/').next() == Some(group)
                            });
                            if is_removed {
                                let place = format!(
                                    "ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.{field}[{n}].Rules[{m}]"
                                );
                                maybe.entry(resource.to_owned()).or_default().push(place);
                            }
                        }
                    }
                }
            }
        }
    }
    (uses, maybe)
}

fn removed_in_26(input: &Input) -> Uses {
    let mut uses = Uses::new();
    for manifest in &input.objects {
        if (text(&manifest.object, &["apiVersion"]), kind(&manifest.object)) == REMOVED_IN_26 {
            uses.entry(kind(&manifest.object).to_owned()).or_default().push(name(&manifest.object).to_owned());
        }
    }
    uses
}

/// The first OpenShift version with Kubernetes 1.22.
const OPENSHIFT: (u64, u64) = (4, 9);
const OPENSHIFT_LABEL: &str = "com.redhat.openshift.versions";
const GUIDE: &str = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-22";

/// Checks the OpenShift versions of a bundle with API versions that 1.22 removed.
pub(super) fn community(input: &mut Input, csv: &Manifest, options: &Options) {
    let uses = removed_in_22(input);
    if uses.is_empty() {
        return;
    }
    let uses = shown(&uses);
    let path = ["metadata", "annotations", "olm.properties"];
    if let Some((severity, message)) = max_version_problem(&csv.object, &uses) {
        let found = rule::MAX_OPENSHIFT_VERSION.finding(message).at(&csv.file, csv.line_of(&path));
        input.add(crate::finding::Finding { severity, ..found }.about(csv.subject()));
    }
    let (severity, message, file) = match &options.dockerfile {
        None => {
            let message = format!(
                "please, inform the path of its index image file via the the optional key values and the key index-path to allow this validator check the labels configuration or migrate the API(s) for {uses}. (e.g. index-path=./mypath/bundle.Dockerfile). This bundle is using APIs which were deprecated and removed in v1.22. More info: {GUIDE} "
            );
            (Severity::Warning, message, csv.file.clone())
        }
        Some(file) => match label_problem(&String::from_utf8_lossy(&file.bytes), &uses) {
            Some(message) => (Severity::Error, message, file.path.clone()),
            None => return,
        },
    };
    let found = rule::OPENSHIFT_LABEL.finding(message).at(&file, 0);
    let found = if severity == Severity::Warning {
        found.hint("specify the Dockerfile of the bundle with --index-path FILE")
    } else {
        found
    };
    input.add(crate::finding::Finding { severity, ..found }.about(csv.subject()));
}

/// Returns the problem of the property `olm.maxOpenShiftVersion` in the annotation `olm.properties`.
fn max_version_problem(csv: &Value, uses: &str) -> Option<(Severity, String)> {
    let error = |message: String| Some((Severity::Error, message));
    let properties = annotation(csv, "olm.properties").unwrap_or_default();
    if properties.is_empty() {
        return error(format!(
            "csv.Annotations not specified olm.maxOpenShiftVersion for an OCP version < 4.9. This annotation is required to prevent the user from upgrading their OCP cluster before they have installed a version of their operator which is compatible with 4.9. This bundle is using APIs which were deprecated and removed in v1.22. More info: {GUIDE} which are no longer supported on 4.9. Migrate the API(s) for {uses} or use the annotation"
        ));
    }
    let list: Option<Vec<Value>> = serde_json::from_str(properties).ok();
    let is_text = |property: &Value| {
        ["type", "value"].iter().all(|key| property.get(*key).is_none_or(|value| value.is_string() || value.is_null()))
    };
    let Some(list) = list.filter(|list| list.iter().all(is_text)) else {
        return error(format!(
            "csv.Annotations has an invalid value specified for olm.properties. Please, check the value  ({properties}) and ensure that it is an array such as: \"olm.properties\": '[{{\"type\": \"key name\", \"value\": \"key value\"}}]'"
        ));
    };
    let Some(property) = list.iter().find(|property| text(property, &["type"]) == "olm.maxOpenShiftVersion") else {
        return error(format!(
            "csv.Annotations.olm.properties with the key `olm.maxOpenShiftVersion` and a value with an OCP version which is < 4.9 is required for any operator bundle that is using APIs which were deprecated and removed in v1.22. More info: {GUIDE}. Migrate the API(s) for {uses} or use the annotation"
        ));
    };
    let value = text(property, &["value"]);
    let found = match version::parse_tolerant(value) {
        Ok(found) => found,
        Err(problem) => {
            return error(format!(
                "csv.Annotations.olm.properties has an invalid value. Unable to parse ({value}) using semver : {problem}"
            ));
        }
    };
    if found.patch != 0 || !found.pre.is_empty() {
        let message = format!(
            "csv.Annotations.olm.properties has an invalid value. olm.maxOpenShiftVersion must specify only major.minor versions, {found} will be truncated to {}.{}.0",
            found.major, found.minor
        );
        return Some((Severity::Warning, message));
    }
    ((found.major, found.minor) >= OPENSHIFT).then(|| {
        let message = format!(
            "csv.Annotations.olm.properties with the key and value for olm.maxOpenShiftVersion has the OCP version value {value} which is >= of 4.9. This bundle is using APIs which were deprecated and removed in v1.22. More info: {GUIDE}. Migrate the API(s) for {uses} or inform in this property an OCP version which is < 4.9"
        );
        (Severity::Error, message)
    })
}

/// Returns the problem of the label with OpenShift versions in a Dockerfile.
fn label_problem(dockerfile: &str, uses: &str) -> Option<String> {
    let removed = format!("this bundle is using APIs which were deprecated and removed in v1.22. More info: {GUIDE}");
    let Some(line) = dockerfile.lines().find(|line| line.contains(OPENSHIFT_LABEL)) else {
        return Some(format!(
            "{removed}. Migrate the APIs for {uses} or provide compatible version(s) via the labels. (e.g. LABEL {OPENSHIFT_LABEL}='4.6-4.8')"
        ));
    };
    let Some((_, value)) = line.split_once('=') else {
        return Some(format!("invalid syntax ({line}) for ({OPENSHIFT_LABEL})"));
    };
    let clean = |text: &str| text.replace(['\'', '"', 'v'], "");
    let parsed = |text: &str| {
        version::parse_tolerant(text).map_err(|_| format!("unable to parse the value ({text}) on ({OPENSHIFT_LABEL})"))
    };
    let later =
        |message: String| move |version: Version| ((version.major, version.minor) >= OPENSHIFT).then_some(message);
    let compatible = |verb: &str, word: &str| {
        format!(
            "{removed}. {verb} {uses} or provide compatible {word}version(s) by using the {OPENSHIFT_LABEL} annotation in `metadata/annotations.yaml` to ensure that the index image will be generated with its label. (e.g. LABEL {OPENSHIFT_LABEL}='4.6-4.8')"
        )
    };
    // `==v4.8` means exactly this version.
    if let Some((_, exact)) = value.split_once('=')
        && !exact.is_empty()
    {
        return parsed(&clean(exact)).map_or_else(Some, later(compatible("Migrate the API(s) for", "")));
    }
    let range = clean(value);
    if range.len() <= 1 {
        return Some(format!("unable to get the range informed on {OPENSHIFT_LABEL}"));
    }
    let Some((_, end)) = range.split_once('-') else {
        return Some(format!(
            "{removed} The {range} allows to distribute it on >= 4.9. Migrate the API(s) for {uses} or provide compatible version(s) by using the {OPENSHIFT_LABEL} annotation in `metadata/annotations.yaml` to ensure that the index image will be generated with its label. (e.g. LABEL {OPENSHIFT_LABEL}='4.6-4.8')"
        ));
    };
    parsed(end).map_or_else(Some, later(compatible("Upgrade the APIs from for", "distribution ")))
}

/// Returns whether an object is of a removed API version, which the simulated API server does not serve.
pub(super) fn is_removed(object: &Value) -> bool {
    let (api_version, kind) = (text(object, &["apiVersion"]), gvk(object).kind);
    (api_version, kind.as_str()) == ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition")
        || REMOVED_IN_22.iter().any(|(version, kinds)| *version == api_version && kinds.contains(&kind.as_str()))
        || REMOVED_IN_25.iter().any(|(version, removed, _)| (*version, *removed) == (api_version, kind.as_str()))
        || (api_version, kind.as_str()) == REMOVED_IN_26
}
