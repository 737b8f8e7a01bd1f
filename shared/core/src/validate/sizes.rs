//! The sizes of single objects, which the API server and etcd limit independent of the size of the bundle.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::input::Input;
use super::rule;
use crate::api::object::{Gvk, at, gvk};

/// The API server's limit for the data of a ConfigMap or Secret, in bytes.
const MOST_DATA: usize = 1 << 20;
/// etcd's default limit for a request, in bytes, which the API server reports as `etcdserver: request is too large`.
const MOST_REQUEST: usize = 3 << 19;

/// Reports objects that are too large to be created.
pub(super) fn check(input: &mut Input) {
    for manifest in input.objects.clone() {
        let object = &manifest.object;
        let Gvk { group, kind, .. } = gvk(object);
        let has_data = group.is_empty() && matches!(kind.as_str(), "ConfigMap" | "Secret");
        // These two are stored in a form in which data takes its own size; in JSON it may take several times as much.
        let (data, rest) =
            if has_data { (data_size(object, &kind), rest_size(object)) } else { (0, json_size(object)) };
        if data > MOST_DATA {
            let message = format!("the data has {data} bytes; the API server permits {MOST_DATA} in a {kind}");
            input.report(&rule::OBJECT_TOO_LARGE, &manifest, &["data"], message);
        } else if data + rest > MOST_REQUEST {
            let message = format!("the object has {} bytes; etcd accepts requests of {MOST_REQUEST}", data + rest);
            input.report(&rule::OBJECT_TOO_LARGE, &manifest, &[], message);
        }
    }
}

/// Returns the size of the data of a ConfigMap or Secret, as the API server counts it: without keys, and base64 decoded.
fn data_size(object: &Value, kind: &str) -> usize {
    let of = |field: &str, size: &dyn Fn(&str) -> usize, hidden: &Value| -> usize {
        let entries = at(object, &[field]).as_object().into_iter().flatten();
        let visible = entries.filter(|(key, _)| hidden.get(key).is_none());
        visible.filter_map(|(_, value)| value.as_str()).map(size).sum()
    };
    let decoded = |text: &str| STANDARD.decode(text).map_or(text.len(), |bytes| bytes.len());
    if kind == "Secret" {
        let texts = at(object, &["stringData"]);
        of("data", &decoded, texts) + of("stringData", &str::len, &Value::Null)
    } else {
        of("data", &str::len, &Value::Null) + of("binaryData", &decoded, &Value::Null)
    }
}

/// Returns the size of a ConfigMap or Secret without its data.
fn rest_size(object: &Value) -> usize {
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(key, _)| !matches!(key.as_str(), "data" | "stringData" | "binaryData"))
        .map(|(_, v)| json_size(v))
        .sum()
}

/// Returns the size of a value as JSON, without writing it to memory.
fn json_size(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_is_counted_as_the_api_server_does() {
        let secret = json!({ "data": { "a": STANDARD.encode("four"), "b": STANDARD.encode("hidden") }, "stringData": { "b": "é" } });
        assert_eq!(data_size(&secret, "Secret"), 6);
        let map = json!({ "data": { "a": "\n\n", "b": 1 }, "binaryData": { "c": STANDARD.encode("three"), "d": "?" } });
        assert_eq!(data_size(&map, "ConfigMap"), 8);
        for value in [json!(null), json!([1]), json!({ "data": "a" }), json!({ "data": [1], "stringData": 2 })] {
            assert_eq!(data_size(&value, "Secret"), 0);
            assert_eq!(rest_size(&value), 0);
            assert_eq!(json_size(&value), value.to_string().len());
        }
    }
}
