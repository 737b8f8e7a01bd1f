//! Converts a snapshot back to blobs: a catalog that was read over gRPC or from a ConfigMap, for code that works on blobs.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::blob::ChannelEntry;
use super::{Entry, Meta, Package, Property, Snapshot};
use crate::bundle::property::BUNDLE_OBJECT;

impl Snapshot {
    /// Returns the blobs of all packages, without what no registry transmits (descriptions, icons, related images, other
    /// schemas).
    ///
    /// # Errors
    /// Objects of a bundle can no longer be read.
    pub fn blobs(&self) -> Result<Vec<Meta>, String> {
        let mut blobs = Vec::new();
        for package in self.packages().values() {
            let Package { name, default_channel, channels, .. } = package;
            blobs.push(json!({"schema": "olm.package", "name": name, "defaultChannel": default_channel}));
            let mut bundles: BTreeMap<&str, &Entry> = BTreeMap::new();
            for channel in channels {
                let entries: Vec<Value> = channel.entries.iter().map(entry).collect();
                let blob = json!({"schema": "olm.channel", "package": name, "name": channel.name, "entries": entries});
                blobs.push(blob);
                bundles.extend(channel.entries.iter().map(|e| (e.name.as_str(), e)));
            }
            for entry in bundles.into_values() {
                blobs.push(self.blob_of(entry)?);
            }
            blobs.extend(deprecations(package));
        }
        Ok(blobs.into_iter().map(Meta::new).collect())
    }

    fn blob_of(&self, entry: &Entry) -> Result<Value, String> {
        // A requirement occurs twice among the properties that the resolver reads.
        let mut properties: Vec<&Property> = Vec::new();
        for property in entry.properties.iter().filter(|p| p.type_ != BUNDLE_OBJECT) {
            if !properties.contains(&property) {
                properties.push(property);
            }
        }
        let mut properties: Vec<Value> =
            properties.iter().map(|p| json!({"type": p.type_, "value": p.value})).collect();
        let content = self.read_bundle(&entry.package, &entry.channel, &entry.name)?;
        let objects = content.iter().flat_map(|c| c.objects.iter());
        properties.extend(objects.map(|o| json!({"type": BUNDLE_OBJECT, "value": {"data": STANDARD.encode(&**o)}})));
        Ok(json!({
            "schema": "olm.bundle", "package": entry.package, "name": entry.name, "image": entry.bundle_path,
            "properties": properties,
        }))
    }
}

fn entry(entry: &Entry) -> Value {
    let entry = ChannelEntry {
        name: entry.name.clone(),
        replaces: entry.replaces.clone().unwrap_or_default(),
        skips: entry.skips.clone(),
        skip_range: entry.skip_range.clone().unwrap_or_default(),
    };
    entry.to_value()
}

fn deprecations(package: &Package) -> Option<Value> {
    let deprecated = |schema: &str, name: &str, message: &Option<String>| {
        let message = message.as_ref()?;
        let mut reference = json!({"schema": schema});
        if !name.is_empty() {
            reference["name"] = name.into();
        }
        Some((name.to_owned(), json!({"reference": reference, "message": message})))
    };
    let mut entries: Vec<Value> =
        deprecated("olm.package", "", &package.deprecation).map(|(_, d)| d).into_iter().collect();
    let channels = package.channels.iter().filter_map(|c| deprecated("olm.channel", &c.name, &c.deprecation));
    entries.extend(channels.map(|(_, d)| d));
    let bundles = package.entries().filter_map(|e| deprecated("olm.bundle", &e.name, &e.deprecation));
    entries.extend(bundles.collect::<BTreeMap<_, _>>().into_values());
    let blob = json!({"schema": "olm.deprecations", "package": package.name, "entries": entries});
    (!entries.is_empty()).then_some(blob)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CATALOG, load_text};
    use super::super::{Loader, Parsed};

    #[test]
    fn what_is_read_again_is_equal() {
        let snapshot = load_text(CATALOG).snapshot;
        let mut loader = Loader::default();
        loader.add(Parsed::metas("again", snapshot.blobs().unwrap()));
        let again = loader.finish().load();
        assert_eq!((again.findings, snapshot.packages().len()), (vec![], 1));
        assert_eq!(again.snapshot, snapshot);
    }
}
