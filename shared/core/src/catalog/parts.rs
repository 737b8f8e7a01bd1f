//! A file-based catalog in ConfigMaps: each has whole blobs, compressed with gzip.
//!
//! A part is the gzip files of its blobs, one after the other, which is a gzip file itself: `gunzip` decompresses it.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::{File, Loader, Parsed, Snapshot};
use crate::api::object;
use crate::budget::{CONFIG_MAP_BYTES, VALUE_BYTES};
use crate::finding::Severity;

/// The key of `binaryData` that has a part.
pub const PART_KEY: &str = "catalog.json.gz";

/// The maximum size of a part, in bytes: that of a ConfigMap is 1 MiB, with its metadata.
pub const PART_BYTES: usize = 900 << 10;

/// A blob that fits into no ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} has {bytes} bytes, compressed with gzip; a ConfigMap can hold {most}")]
pub struct TooLarge {
    /// The name of the blob.
    pub name: String,
    /// Its size, compressed.
    pub bytes: usize,
    /// The limit.
    pub most: usize,
}

/// Splits blobs into parts of at most `most` bytes, in their order. Equal blobs give equal parts.
///
/// # Errors
/// A blob alone is larger.
pub fn split(blobs: &[Value], most: usize) -> Result<Vec<Vec<u8>>, TooLarge> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for blob in blobs {
        let packed = gzip(format!("{blob}\n").as_bytes());
        if packed.len() > most {
            return Err(TooLarge { name: object::text(blob, &["name"]).to_owned(), bytes: packed.len(), most });
        }
        match parts.last_mut() {
            Some(last) if last.len() + packed.len() <= most => last.extend(packed),
            _ => parts.push(packed),
        }
    }
    Ok(parts)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}

/// Reads the catalog of ConfigMaps. Also returns its approximate size in memory, in bytes.
///
/// # Errors
/// A ConfigMap has no part of a catalog, all of them are too large, or the catalog is invalid: one sentence.
pub fn join(config_maps: &[Value]) -> Result<(Snapshot, usize), String> {
    let mut loader = Loader::default();
    let (mut left, mut bytes) = (CONFIG_MAP_BYTES, 0);
    for config_map in config_maps {
        let name = object::name(config_map);
        let text = decompressed(config_map, left).map_err(|why| format!("ConfigMap {name}: {why}"))?;
        left -= text.len();
        bytes += text.len();
        let parsed = Parsed::file(&File::new(format!("configmap/{name}/{PART_KEY}"), text));
        bytes += parsed.values().saturating_mul(VALUE_BYTES);
        loader.add(parsed);
    }
    let loaded = loader.finish().load();
    match loaded.findings.iter().find(|finding| finding.severity == Severity::Error) {
        Some(finding) => Err(finding.one_line()),
        None => Ok((loaded.snapshot, bytes)),
    }
}

/// Returns the text of a part, if it has at most `most` bytes.
fn decompressed(config_map: &Value, most: usize) -> Result<Vec<u8>, String> {
    let encoded = object::text(config_map, &["binaryData", PART_KEY]);
    if encoded.is_empty() {
        return Err(format!("binaryData has no key {PART_KEY}"));
    }
    let packed = STANDARD.decode(encoded).map_err(|error| format!("{PART_KEY} is not base64: {error}"))?;
    let mut text = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let read = MultiGzDecoder::new(&packed[..]).take(limit).read_to_end(&mut text);
    read.map_err(|error| format!("{PART_KEY} is not a gzip file: {error}"))?;
    if text.len() > most {
        return Err(format!("the catalog has more than {CONFIG_MAP_BYTES} bytes, decompressed"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn blobs(texts: &[String]) -> Vec<Value> {
        let name = |n: usize| format!("rose.v1.0.{n}");
        let entries: Vec<Value> =
            (0..texts.len())
                .map(|n| {
                    if n == 0 {
                        json!({ "name": name(0) })
                    } else {
                        json!({ "name": name(n), "replaces": name(n - 1) })
                    }
                })
                .collect();
        let mut blobs = vec![
            json!({ "schema": "olm.package", "name": "rose", "defaultChannel": "run" }),
            json!({ "schema": "olm.channel", "package": "rose", "name": "run", "entries": entries }),
        ];
        blobs.extend(texts.iter().enumerate().map(|(n, text)| {
            let object = json!({ "kind": "ConfigMap", "data": { "text": text } }).to_string();
            json!({
                "schema": "olm.bundle", "package": "rose", "name": name(n), "image": "",
                "properties": [
                    { "type": "olm.package", "value": { "packageName": "rose", "version": format!("1.0.{n}") } },
                    { "type": "olm.bundle.object", "value": { "data": STANDARD.encode(object) } },
                ],
            })
        }));
        blobs
    }

    fn config_maps(parts: &[Vec<u8>]) -> Vec<Value> {
        let of = |(n, part): (usize, &Vec<u8>)| json!({ "metadata": { "name": format!("part-{n}") }, "binaryData": { PART_KEY: STANDARD.encode(part) } });
        parts.iter().enumerate().map(of).collect()
    }

    proptest! {
        #[test]
        fn parts_are_the_same_catalog_however_it_is_split(texts in prop::collection::vec(".{0,300}", 1..6), most in 600_usize..3000) {
            let blobs = blobs(&texts);
            let whole = split(&blobs, usize::MAX).unwrap();
            prop_assert_eq!(whole.len(), 1);
            let (expected, _) = join(&config_maps(&whole)).unwrap();
            prop_assert_eq!(expected.bundle_count(), texts.len());
            if let Ok(parts) = split(&blobs, most) {
                prop_assert!(parts.iter().all(|part| part.len() <= most));
                prop_assert_eq!(parts.concat(), whole.concat(), "the files of a directory are one catalog");
                prop_assert!(join(&config_maps(&parts)).unwrap().0 == expected);
            }
        }
    }

    #[test]
    fn what_does_not_fit_or_is_not_a_part_is_refused() {
        let error = split(&blobs(&["x".to_owned()]), 100).unwrap_err();
        assert!(error.to_string().ends_with("compressed with gzip; a ConfigMap can hold 100"), "{error}");
        let refused = |config_map: Value| join(&[config_map]).unwrap_err();
        let part = |text: String| json!({ "metadata": { "name": "a" }, "binaryData": { PART_KEY: text } });
        assert_eq!(
            refused(json!({ "metadata": { "name": "a" } })),
            "ConfigMap a: binaryData has no key catalog.json.gz"
        );
        assert!(refused(part("?".to_owned())).contains("is not base64"));
        assert!(refused(part(STANDARD.encode("{}"))).contains("is not a gzip file"));
        assert!(refused(part(STANDARD.encode(gzip(b"{")))).contains("configmap/a/catalog.json.gz"));
        // A small file that decompresses to more than the limit.
        let bomb = gzip(&vec![b' '; CONFIG_MAP_BYTES + 1]);
        assert!(bomb.len() < PART_BYTES);
        assert!(refused(part(STANDARD.encode(bomb))).contains("more than 67108864 bytes"));
        // A part is missing: the package is not valid.
        let parts = split(&blobs(&["x".to_owned(), "y".to_owned()]), 400).unwrap();
        assert!(parts.len() > 1);
        assert!(join(&config_maps(&parts[1..])).is_err());
        assert_eq!(join(&[]), Ok((Snapshot::default(), 0)));
    }
}
