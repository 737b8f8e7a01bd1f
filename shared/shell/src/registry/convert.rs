//! Conversions between the messages of the protocol and of olm-core.

use std::sync::Arc;

use olm_core::api::object::Gvk;
use olm_core::budget::ENTRY_BYTES;
use olm_core::bundle::property;
use olm_core::catalog::{BundleContent, BundleMessage, Channel, Content, Entry, Package, Property};
use serde_json::Value;

use super::proto;

/// Converts an entry to a message, without the objects of its bundle.
pub(super) fn bundle(entry: &Entry) -> proto::Bundle {
    let apis = |apis: &[Gvk]| apis.iter().map(gvk).collect();
    proto::Bundle {
        csv_name: entry.name.clone(),
        package_name: entry.package.clone(),
        channel_name: entry.channel.clone(),
        csv_json: String::new(),
        object: Vec::new(),
        bundle_path: entry.bundle_path.clone(),
        provided_apis: apis(&entry.provided_apis),
        required_apis: apis(&entry.required_apis),
        version: entry.version_text.clone(),
        skip_range: entry.skip_range.clone().unwrap_or_default(),
        dependencies: entry
            .dependencies
            .iter()
            .map(|d| proto::Dependency { r#type: d.type_.clone(), value: d.value.to_string() })
            .collect(),
        properties: entry
            .bundle_properties
            .iter()
            .filter(|p| ![property::BUNDLE_OBJECT, property::CSV_METADATA].contains(&p.type_.as_str()))
            .map(|p| proto::Property { r#type: p.type_.clone(), value: p.value.to_string() })
            .collect(),
        replaces: entry.replaces.clone().unwrap_or_default(),
        skips: entry.skips.clone(),
        deprecation: deprecation(entry.deprecation.as_ref()),
    }
}

/// Adds the objects of a bundle to its message.
pub(super) fn add_content(bundle: &mut proto::Bundle, content: &BundleContent) {
    bundle.csv_json = content.csv_json.to_string();
    bundle.object = content.objects.iter().map(ToString::to_string).collect();
}

/// Converts a package to a message.
pub(super) fn package(package: &Package) -> proto::Package {
    let channel = |c: &Channel| proto::Channel {
        name: c.name.clone(),
        csv_name: c.head.clone(),
        deprecation: deprecation(c.deprecation.as_ref()),
    };
    proto::Package {
        name: package.name.clone(),
        channels: package.channels.iter().map(channel).collect(),
        default_channel_name: package.default_channel.clone(),
        deprecation: deprecation(package.deprecation.as_ref()),
    }
}

/// Memory of a text in addition to its characters, in bytes.
const TEXT: usize = 32;
/// Memory of a JSON value in addition to its characters, in bytes.
const VALUE: usize = 350;

fn text(text: &str) -> usize {
    TEXT + text.len()
}

/// Estimates the memory of a property's value. Parsed JSON takes more than its text.
fn json(text: &str) -> usize {
    let values = memchr::memchr3_iter(b',', b'{', b'[', text.as_bytes()).count();
    TEXT + text.len() + VALUE * values
}

/// Number of copies of an entry's names, in the entry and in keys of maps.
const NAMES: usize = 5;
/// Number of copies of a bundle's properties: as received, and as the resolver reads them.
const PROPERTIES: usize = 2;

/// Returns the most bytes of memory that a message and the entry that is made of it take.
pub(super) fn size_of_bundle(bundle: &proto::Bundle) -> usize {
    let names = [&bundle.csv_name, &bundle.package_name, &bundle.channel_name];
    let texts = [&bundle.csv_json, &bundle.bundle_path, &bundle.version, &bundle.skip_range, &bundle.replaces];
    let deprecation = bundle.deprecation.iter().map(|d| text(&d.message));
    let properties = bundle.properties.iter().map(|p| PROPERTIES * (text(&p.r#type) + json(&p.value)));
    let dependencies = bundle.dependencies.iter().map(|d| PROPERTIES * (text(&d.r#type) + json(&d.value)));
    let apis = bundle.provided_apis.iter().chain(&bundle.required_apis);
    let apis = apis.map(|a| {
        // An API becomes a property with three values.
        let texts = [&a.group, &a.version, &a.kind, &a.plural];
        4 * VALUE + PROPERTIES * texts.map(|t| text(t)).into_iter().sum::<usize>()
    });
    let lists = bundle.object.iter().chain(&bundle.skips).map(|t| text(t));
    let names = names.into_iter().map(|t| NAMES * text(t));
    std::iter::once(ENTRY_BYTES)
        .chain(names)
        .chain(texts.into_iter().map(|t| text(t)))
        .chain(deprecation)
        .chain(properties)
        .chain(dependencies)
        .chain(apis)
        .chain(lists)
        .sum()
}

/// Does the same for a package.
pub(super) fn size_of_package(package: &proto::Package) -> usize {
    let message = |d: &Option<proto::Deprecation>| d.as_ref().map_or(0, |d| text(&d.message));
    let channels = package.channels.iter().map(|c| text(&c.name) + text(&c.csv_name) + message(&c.deprecation));
    text(&package.name) + text(&package.default_channel_name) + message(&package.deprecation) + channels.sum::<usize>()
}

/// Converts a server's message about a bundle.
pub(super) fn message(bundle: proto::Bundle) -> BundleMessage {
    let apis = |apis: Vec<proto::GroupVersionKind>| {
        apis.into_iter().map(|a| Gvk { group: a.group, version: a.version, kind: a.kind }).collect()
    };
    let inline = !bundle.csv_json.is_empty() || !bundle.object.is_empty();
    let content = inline.then(|| {
        let objects = bundle.object.into_iter().map(Arc::from).collect();
        Content::pack(&BundleContent { csv_json: bundle.csv_json.into(), objects, is_plain: false })
    });
    BundleMessage {
        csv_name: bundle.csv_name,
        package: bundle.package_name,
        channel: bundle.channel_name,
        version: bundle.version,
        skip_range: bundle.skip_range,
        replaces: bundle.replaces,
        skips: bundle.skips,
        bundle_path: bundle.bundle_path,
        provided_apis: apis(bundle.provided_apis),
        required_apis: apis(bundle.required_apis),
        dependencies: bundle.dependencies.into_iter().map(|d| property(d.r#type, d.value)).collect(),
        properties: bundle.properties.into_iter().map(|p| property(p.r#type, p.value)).collect(),
        deprecation: bundle.deprecation.map(|d| d.message),
        content,
    }
}

/// Converts a server's message about a package.
pub(super) fn package_of(package: proto::Package) -> Package {
    let channel = |c: proto::Channel| Channel {
        name: c.name,
        head: c.csv_name,
        deprecation: c.deprecation.map(|d| d.message),
        entries: Vec::new(),
    };
    Package {
        name: package.name,
        default_channel: package.default_channel_name,
        channels: package.channels.into_iter().map(channel).collect(),
        deprecation: package.deprecation.map(|d| d.message),
    }
}

fn gvk(api: &Gvk) -> proto::GroupVersionKind {
    proto::GroupVersionKind {
        group: api.group.clone(),
        version: api.version.clone(),
        kind: api.kind.clone(),
        plural: String::new(),
    }
}

fn deprecation(message: Option<&String>) -> Option<proto::Deprecation> {
    message.map(|m| proto::Deprecation { message: m.clone() })
}

/// Converts a property. A value that is not JSON becomes a string.
fn property(type_: String, value: String) -> Property {
    let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
    Property { type_, value }
}
