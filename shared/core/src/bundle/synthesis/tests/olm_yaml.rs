//! olm.yaml and the annotations of manifests: the published example, every field, and what is invalid.

use super::*;

/// The example of the design (olm-behaviour/README.md#design-and-code), to the letter: fields of maps and lists are not indented, and the
/// icon is a placeholder.
const PUBLISHED: &str = "name: packageserver-v1.14.1
maturity: alpha
version: 0.14.1
displayName: Package Server
description: Represents an Operator package that is available from a given CatalogSource which will resolve to a ClusterServiceVersion.
minKubeVersion: 1.11.0
keywords: ['packagemanifests', 'olm', 'packages']
maintainers:
- name: Red Hat
email: openshift-operators@redhat.com
provider:
name: Red Hat
links:
- name: Package Server
url: https://github.com/operator-framework/operator-lifecycle-manager/tree/master/pkg/package-server
installModes:
- type: OwnNamespace
  supported: true
- type: SingleNamespace
  supported: true
- type: MultiNamespace
  supported: true
- type: AllNamespaces
  supported: true
icon: my-icon-png-base64-encoded
labels:
  operated-by: packageserver
";

#[test]
fn the_published_example_is_understood() {
    let synthesis = synthesis_with(OPERATOR, PUBLISHED);
    assert_eq!(codes(&synthesis), ["flat-olm-yaml 11", "field-value 25"]);
    assert!(!synthesis.has_errors());
    let spec = &synthesis.csv["spec"];
    assert_eq!(synthesis.csv["metadata"]["name"], "packageserver-v1.14.1");
    assert_eq!(spec["provider"], json!({ "name": "Red Hat" }));
    assert_eq!(spec["maintainers"], json!([{ "name": "Red Hat", "email": "openshift-operators@redhat.com" }]));
    assert_eq!(spec["links"][0]["name"], "Package Server");
    assert!(spec["links"][0]["url"].as_str().unwrap().ends_with("/package-server"));
    assert_eq!(spec["installModes"].as_array().unwrap().len(), 4);
    assert_eq!(spec["labels"], json!({ "operated-by": "packageserver" }));
    assert_eq!(spec["icon"], Value::Null, "the icon is left out");
    let with_icon = synthesis_with(OPERATOR, &PUBLISHED.replace("my-icon-png-base64-encoded", "iVBORw0KGgo="));
    assert_eq!(codes(&with_icon), ["flat-olm-yaml 11"]);
    assert_eq!(with_icon.csv["spec"]["icon"], json!([{ "base64data": "iVBORw0KGgo=", "mediatype": "image/png" }]));
}

#[test]
fn every_fault_of_olm_yaml_is_reported_at_its_line() {
    let faulty = "name: Rose\nversion: 1.0\ndisplayNam: Rose\ninstallModes:\n- type: Everywhere\n";
    let codes = codes(&synthesis_with(OPERATOR, faulty));
    assert_eq!(codes, ["field-value 1", "required-field 1", "field-type 2", "field-value 5", "unknown-field 3"]);
}

#[test]
fn entries_of_olm_yaml_are_checked() {
    for (entry, expected) in [
        ("optionalAPIs: [route.example.com]", "field-type"),
        ("optionalAPIs: [{group: example.com, kind: Rose}]", "unknown-field"),
        ("requiredAPIs: [{group: example.com, kind: Rose}]", "required-field"),
        ("icon: ./icon.png", "field-value"),
        ("replaces: rose.v1.0.0", "field-value"),
    ] {
        let synthesis = synthesis_with(OPERATOR, &format!("{METADATA}{entry}\n"));
        assert_eq!(codes(&synthesis), [format!("{expected} 7")], "{entry}");
    }
}

#[test]
fn a_second_document_is_an_error() {
    let synthesis = synthesis_with(OPERATOR, &format!("{METADATA}---\nreplaces: rose.v0.9.0\n"));
    assert_eq!(codes(&synthesis), ["later-documents 8"]);
    assert!(synthesis.has_errors());
    assert_eq!(codes(&synthesis_with(OPERATOR, &format!("---\n{METADATA}---\n# the end\n"))), [""; 0]);
}

#[test]
fn labels_of_platforms_and_the_release_are_carried() {
    let more = "release: '2'\nmetadataLabels: {operatorframework.io/arch.arm64: supported}\nlabels: {app: rose}\n";
    let synthesis = synthesis_with(OPERATOR, &format!("{METADATA}{more}"));
    assert_eq!(codes(&synthesis), [""; 0]);
    assert_eq!(synthesis.csv["metadata"]["labels"], json!({ "operatorframework.io/arch.arm64": "supported" }));
    assert_eq!(synthesis.csv["spec"]["release"], "2");
    assert_eq!(synthesis.csv["spec"]["labels"], json!({ "app": "rose" }));
    let faulty = synthesis_with(OPERATOR, &format!("{METADATA}release: 2\nmetadataLabels: {{a: 1}}\n"));
    assert_eq!(codes(&faulty), ["field-type 7", "field-type 8"]);
    assert_eq!(faulty.csv["metadata"].get("labels"), None);
}

#[test]
fn annotations_that_state_the_same_as_olm_yaml_are_no_conflict() {
    let definition = |size: &str| {
        format!(
            "{OPERATOR}---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: roses.example.com
  annotations:
    operators.operatorframework.io.bundle.display-name: Rose
    operators.operatorframework.io.bundle.descriptors: |
      - {{path: spec.size, displayName: {size}}}
spec: {{group: example.com, names: {{kind: Rose, plural: roses}}, versions: [{{name: v1, served: true}}]}}
"
        )
    };
    let stated = format!(
        "{METADATA}apis:
- group: example.com
  kind: Rose
  displayName: Rose
  descriptors: [{{displayName: Size, path: spec.size}}]
"
    );
    let same = synthesis_with(&definition("Size"), &stated);
    assert_eq!(codes(&same), [""; 0]);
    assert_eq!(
        same.csv["spec"]["customresourcedefinitions"]["owned"][0]["specDescriptors"],
        json!([{ "path": "size", "displayName": "Size" }])
    );
    assert_eq!(codes(&synthesis_with(&definition("Petals"), &stated)), ["conflicting-metadata 23"]);
}

#[test]
fn an_icon_in_an_annotation_is_left_out_if_it_is_not_base64() {
    let operator = OPERATOR.replace(
        "labels: {app: rose}}\nspec:",
        "labels: {app: rose}, annotations: {operators.operatorframework.io.bundle.icon: ./icon.png}}\nspec:",
    );
    let synthesis = synthesis_of(&operator);
    assert_eq!(codes(&synthesis), ["field-value 3"]);
    assert!(!synthesis.has_errors() && synthesis.csv["spec"]["icon"].is_null());
}

#[test]
fn a_required_api_can_be_aggregated_and_described() {
    let rbac = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rose}
rules: [{apiGroups: [scents.example.com], resources: [scents], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rose}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rose}
subjects: [{kind: ServiceAccount, name: rose, namespace: garden}]
";
    let manifests = format!("{OPERATOR}{rbac}");
    let api = "group: scents.example.com, version: v1, kind: Scent, resource: scents, displayName: Scent";
    let stated = format!("{METADATA}requiredAPIs: [{{{api}, aggregated: true}}]\n");
    let synthesis = synthesis_with(&manifests, &stated);
    assert_eq!(codes(&synthesis), [""; 0]);
    let required = json!([{
        "group": "scents.example.com", "version": "v1", "kind": "Scent", "name": "scents", "displayName": "Scent",
    }]);
    assert_eq!(synthesis.csv["spec"]["apiservicedefinitions"]["required"], required);
    assert_eq!(synthesis.csv["spec"].get("customresourcedefinitions"), None);
    assert_eq!(metadata(&stated).missing_required(&synthesis.csv), [Value::Null; 0]);
    // A cluster shows that an APIService provides it.
    let mut known = KnownApis::default();
    known.add(Gvk::new("scents.example.com", "v1", "Scent"), "scents");
    known.add_aggregated("scents.example.com", "v1");
    let (manifests, _) = read_manifests(&[File::new("manifests/all.yaml", manifests.as_bytes())]);
    let olm_yaml = metadata(METADATA);
    let synthesis = synthesize(&manifests, &olm_yaml, &known, Format::Plain);
    assert_eq!(synthesis.csv["spec"]["apiservicedefinitions"]["required"][0]["name"], "scents");
    assert_eq!(
        olm_yaml.missing_required(&synthesis.csv),
        [json!({
            "group": "scents.example.com", "version": "v1", "kind": "Scent", "resource": "scents", "aggregated": true,
        })]
    );
}
