use olm_core::bundle::property::{BUNDLE_OBJECT, CSV_METADATA};
use olm_core::catalog::{Builder, Channel, Package};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use prost::Message;

use super::super::convert;
use super::super::proto;

fn api() -> impl Strategy<Value = proto::GroupVersionKind> {
    ("[a-c.]{0,3}", "v[12]", "[A-C]").prop_map(|(group, version, kind)| proto::GroupVersionKind {
        group,
        version,
        kind,
        plural: String::new(),
    })
}

/// Values as this server writes them, and others.
fn value() -> impl Strategy<Value = String> {
    select(&["1", "null", r#""x""#, r#"{"a":1,"b":[true]}"#, r#"{ "a": 1 }"#, "not json", "", "[", r#""\u001b""#][..])
        .prop_map(str::to_owned)
}

fn bundle() -> impl Strategy<Value = proto::Bundle> {
    let types =
        || select(&["olm.package", "olm.gvk", BUNDLE_OBJECT, CSV_METADATA, "", "x"][..]).prop_map(str::to_owned);
    let property = (types(), value()).prop_map(|(r#type, value)| proto::Property { r#type, value });
    let dependency = (types(), value()).prop_map(|(r#type, value)| proto::Dependency { r#type, value });
    let texts = ("\\PC{0,4}", "[^a]{0,3}", "(1\\.0\\.0)?", "[<>=0-9.]{0,6}", "[ab]{0,2}", "(image)?");
    let lists =
        (vec(property, 0..4), vec(dependency, 0..4), vec(api(), 0..3), vec(api(), 0..3), vec("[ab]{0,2}", 0..3));
    (texts, lists, vec(value(), 0..3), any::<Option<bool>>()).prop_map(|(texts, lists, object, deprecation)| {
        let (csv_name, csv_json, version, skip_range, replaces, bundle_path) = texts;
        let (properties, dependencies, provided_apis, required_apis, skips) = lists;
        let message = |has_text: bool| if has_text { "old".to_owned() } else { String::new() };
        proto::Bundle {
            csv_name,
            package_name: "rose".to_owned(),
            channel_name: "stable".to_owned(),
            csv_json,
            object,
            bundle_path,
            provided_apis,
            required_apis,
            version,
            skip_range,
            dependencies,
            properties,
            replaces,
            skips,
            deprecation: deprecation.map(|has_text| proto::Deprecation { message: message(has_text) }),
        }
    })
}

/// The value as this server writes it.
fn written(value: &str) -> String {
    serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::String(value.to_owned())).to_string()
}

/// The message as this server returns it after it has read this one.
fn returned(mut bundle: proto::Bundle) -> proto::Bundle {
    bundle.csv_json.clear();
    bundle.object.clear();
    bundle.dependencies.iter_mut().for_each(|d| d.value = written(&d.value));
    bundle.properties.retain(|p| p.r#type != BUNDLE_OBJECT && p.r#type != CSV_METADATA);
    bundle.properties.iter_mut().for_each(|p| p.value = written(&p.value));
    bundle
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_message_that_was_read_is_returned_unchanged(bundle in bundle()) {
        let mut builder = Builder::default();
        let channel = Channel { name: "stable".to_owned(), ..Channel::default() };
        builder.package(Package { name: "rose".to_owned(), channels: vec![channel], ..Package::default() });
        builder.bundle(convert::message(bundle.clone()));
        let snapshot = builder.build();
        let entries: Vec<_> = snapshot.entries().map(convert::bundle).collect();
        prop_assert_eq!(entries, vec![returned(bundle)]);
    }

    /// The estimated memory of a message is not less than its encoded size.
    #[test]
    fn messages_are_counted(bundle in bundle(), names in vec("\\PC{0,3}", 0..4)) {
        prop_assert!(convert::size_of_bundle(&bundle) >= bundle.encoded_len());
        let channel = |name: &String| proto::Channel { name: name.clone(), csv_name: name.clone(), deprecation: None };
        let channels = names.iter().map(channel).collect();
        let package = proto::Package { name: "rose".to_owned(), channels, default_channel_name: String::new(), deprecation: None };
        prop_assert!(convert::size_of_package(&package) >= package.encoded_len());
    }
}
