//! Between the protocol's messages and olm-core's.

use std::sync::Arc;

use olm_core::api::object::Gvk;
use olm_core::bundle::property;
use olm_core::catalog::{BundleContent, BundleMessage, Channel, Content, Entry, Package, Property};
use serde_json::Value;

use super::proto;

/// An entry as the server says it, without the objects of its bundle.
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

/// Puts the objects of a bundle into its message.
pub(super) fn add_content(bundle: &mut proto::Bundle, content: &BundleContent) {
    bundle.csv_json = content.csv_json.to_string();
    bundle.object = content.objects.iter().map(ToString::to_string).collect();
}

/// A package as the server says it.
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

/// What a server said of a bundle.
pub(super) fn message(bundle: proto::Bundle) -> BundleMessage {
    let apis = |apis: Vec<proto::GroupVersionKind>| {
        apis.into_iter().map(|a| Gvk { group: a.group, version: a.version, kind: a.kind }).collect()
    };
    let inline = !bundle.csv_json.is_empty() || !bundle.object.is_empty();
    let content = inline.then(|| {
        let objects = bundle.object.into_iter().map(Arc::from).collect();
        Content::pack(&BundleContent { csv_json: bundle.csv_json.into(), objects })
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

/// What a server said of a package.
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

/// A value that is not JSON is kept as text.
fn property(type_: String, value: String) -> Property {
    let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
    Property { type_, value }
}
