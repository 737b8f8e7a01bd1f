//! Checks that the value of a property has the form that its type requires. The types are those that opm decodes
//! (olm-behaviour/opm.md#bundle-properties).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::bundle::property;

/// Checks the JSON of a value. Values of unknown types are accepted.
pub(super) fn check(type_: &str, json: &str) -> Result<(), serde_json::Error> {
    match type_ {
        property::PACKAGE => as_a::<Package>(json),
        property::PACKAGE_REQUIRED => as_a::<PackageRequired>(json),
        property::GVK | property::GVK_REQUIRED => as_a::<Gvk>(json),
        property::CSV_METADATA => as_a::<CsvMetadata>(json),
        _ => Ok(()),
    }
}

fn as_a<'a, T: Deserialize<'a>>(json: &'a str) -> Result<(), serde_json::Error> {
    use serde::de::Error as _;
    // A list would be deserialized as a struct's fields in order.
    if json.starts_with('[') {
        return Err(serde_json::Error::custom("invalid type: sequence, expected an object"));
    }
    serde_json::from_str::<Option<T>>(json).map(drop)
}

/// Absent, null, or a string, whose content is not used.
type Text = Option<Ignored>;
/// Absent, null, or a list.
type List<T> = Option<Vec<T>>;

/// A string whose content is not used.
struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl serde::de::Visitor<'_> for Reader {
            type Value = Ignored;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, _: &str) -> Result<Ignored, E> {
                Ok(Ignored)
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

/// A map of strings.
type Texts = BTreeMap<String, Text>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CsvMetadata {
    annotations: Option<Texts>,
    api_service_definitions: Option<Owned>,
    crd_descriptions: Option<Owned>,
    description: Text,
    display_name: Text,
    install_modes: List<InstallMode>,
    keywords: List<Text>,
    labels: Option<Texts>,
    links: List<Link>,
    maintainers: List<Link>,
    maturity: Text,
    min_kube_version: Text,
    #[serde(rename = "nativeAPIs")]
    native_apis: List<Gvk>,
    provider: Option<Link>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Owned {
    owned: List<Api>,
    required: List<Api>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Api {
    name: Text,
    group: Text,
    version: Text,
    kind: Text,
    deployment_name: Text,
    display_name: Text,
    description: Text,
    resources: List<IgnoredAny>,
    status_descriptors: List<IgnoredAny>,
    spec_descriptors: List<IgnoredAny>,
    action_descriptors: List<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InstallMode {
    r#type: Text,
    supported: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Link {
    name: Text,
    url: Text,
    email: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Gvk {
    group: Text,
    kind: Text,
    version: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Package {
    #[serde(rename = "packageName")]
    name: Text,
    version: Text,
    release: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PackageRequired {
    package_name: Text,
    version_range: Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_form_of_their_type() {
        for (type_, json, good) in [
            ("olm.package", r#"{"packageName":"a","version":"1","more":[]}"#, true),
            ("olm.package", r#"{"packageName":1}"#, false),
            ("olm.package", "null", true),
            ("olm.gvk", r#"["a"]"#, false),
            ("olm.gvk.required", r#"{"kind":null}"#, true),
            ("olm.package.required", r#"{"versionRange":{}}"#, false),
            ("olm.csv.metadata", r#"{"annotations":{"a":"b"},"installModes":[{"type":"A","supported":true}]}"#, true),
            ("olm.csv.metadata", r#"{"annotations":{"a":1}}"#, false),
            ("olm.csv.metadata", r#"{"crdDescriptions":{"owned":[{"name":["a"]}]}}"#, false),
            ("example.com/any", "[1]", true),
        ] {
            assert_eq!(check(type_, json).is_ok(), good, "{type_} {json}");
        }
    }
}
