//! Decodes responses into objects, with size limits, and each object separately.
//!
//! A user may write an object that is valid in Kubernetes and cannot be decoded here: Go parses JSON that is nested 10,000 levels deep, and
//! the recursive parser here stops at 128. Such an object is reported by its metadata and skipped. The other objects of its list or watch
//! are read.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use kube::client::Body;
use olm_core::api::object::{self, Gvk};
use olm_core::api::status::Status;
use olm_core::world::Unreadable;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The maximum size of a response in bytes. An API server accepts 3 MiB per request and etcd 1.5 MiB per object, so a larger response is a
/// page of too many objects, which is requested again with fewer.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// The maximum size of an error response in bytes.
pub(super) const MOST_OF_A_REFUSAL: usize = 4 << 20;

/// The maximum size of a watch event in bytes, which contains one object: see [`MOST_BYTES`].
const LONGEST_LINE: usize = 32 << 20;

/// The recursion limit of `serde_json`.
const MOST_LEVELS: usize = 128;

/// The fields of the metadata that remain of an object that cannot be decoded.
const KEPT: [&str; 11] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

/// The reason of a local error: a response cannot be decoded.
pub const UNREADABLE: &str = "Unreadable";

/// The reason of a local error: a response is too large.
pub(super) const TOO_LARGE: &str = "TooLarge";

/// An event of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// An object was added.
    Added(Value),
    /// An object was modified.
    Modified(Value),
    /// An object was deleted: its last state, or only its metadata if the rest cannot be decoded.
    Deleted(Value),
    /// An object was added or modified, and cannot be decoded.
    Unreadable(Unreadable),
    /// There are no other events until this resourceVersion.
    Bookmark(String),
    /// The watch ends.
    Error(Status),
}

/// The items of a list, not decoded.
#[derive(Deserialize)]
pub(super) struct RawList<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) items: Option<Vec<&'a RawValue>>,
    #[serde(borrow, rename = "columnDefinitions")]
    pub(super) columns: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) rows: Option<Vec<&'a RawValue>>,
}

impl<'a> RawList<'a> {
    pub(super) fn from_bytes(text: &'a [u8]) -> Result<Self, Status> {
        serde_json::from_slice(text).map_err(|error| Status::new(0, UNREADABLE, format!("not a list: {}", why(&error))))
    }

    /// Returns the resourceVersion of the list and the token of the next page.
    pub(super) fn ends(&self) -> (String, String) {
        let metadata = self.metadata.map(|raw| fields(raw.get())).unwrap_or_default();
        let text =
            |field: &str| metadata.get(field).and_then(|raw| value(raw)).and_then(|v| v.as_str().map(str::to_owned));
        (text("resourceVersion").unwrap_or_default(), text("continue").unwrap_or_default())
    }
}

/// Reads the body of a response, up to `most` bytes.
pub(super) async fn bytes(answer: http::Response<Body>, most: usize) -> kube::Result<Vec<u8>> {
    let mut parts = axum::body::Body::new(answer.into_body()).into_data_stream();
    let mut all = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| kube::Error::Service(error.into_inner()))?;
        if all.len() + part.len() > most {
            let message = format!("the response is larger than {} MiB", most >> 20);
            return Err(kube::Error::Service(Box::new(Status::new(0, TOO_LARGE, message))));
        }
        all.extend_from_slice(&part);
    }
    Ok(all)
}

/// Decodes an object. An object without a kind counts as one of the given kind.
pub(super) fn item(text: &str, gvk: &Gvk) -> Result<Value, Box<Unreadable>> {
    serde_json::from_str(text).map_err(|error| Box::new(unreadable(text, gvk, &error)))
}

/// Decodes an object without one of its fields.
pub(super) fn item_without(text: &str, field: &str, gvk: &Gvk) -> Result<Value, Box<Unreadable>> {
    let kept = parts(text, |key, raw| if key == field { Ok(None) } else { serde_json::from_str(raw).map(Some) });
    kept.map_err(|error| Box::new(unreadable(text, gvk, &error)))
}

/// Decodes an object of a list. Of its `managedFields`, which have many small maps, only an entry with the time of the last change remains,
/// if it is known.
pub(super) fn item_of_list(text: &str, gvk: &Gvk) -> Result<Value, Box<Unreadable>> {
    #[derive(Deserialize)]
    struct Manager {
        time: Option<String>,
    }
    let managers = |raw: &str| {
        let managers: Vec<Manager> = serde_json::from_str(raw)?;
        let last = managers.into_iter().filter_map(|manager| manager.time).max();
        Ok(last.map(|time| json!([{ "time": time }])))
    };
    let field = |key: &str, raw: &str| {
        if key == "managedFields" { managers(raw) } else { serde_json::from_str(raw).map(Some) }
    };
    let metadata = |raw: &str| if raw.starts_with('{') { parts(raw, field) } else { serde_json::from_str(raw) };
    let kept =
        parts(
            text,
            |key, raw| {
                if key == "metadata" { metadata(raw).map(Some) } else { serde_json::from_str(raw).map(Some) }
            },
        );
    kept.map_err(|error| Box::new(unreadable(text, gvk, &error)))
}

/// Decodes an object, of each field what `part` returns.
fn parts(text: &str, part: impl Fn(&str, &str) -> serde_json::Result<Option<Value>>) -> serde_json::Result<Value> {
    let mut kept = Map::new();
    for (key, raw) in serde_json::from_str::<BTreeMap<String, &RawValue>>(text)? {
        if let Some(value) = part(&key, raw.get())? {
            kept.insert(key, value);
        }
    }
    Ok(kept.into())
}

/// Returns the part of an object that can be decoded.
fn unreadable(text: &str, gvk: &Gvk, error: &serde_json::Error) -> Unreadable {
    let top = fields(text);
    let metadata = top.get("metadata").map(|raw| fields(raw.get())).unwrap_or_default();
    let kept: Map<String, Value> =
        KEPT.iter().filter_map(|key| Some(((*key).to_owned(), value(metadata.get(*key)?)?))).collect();
    let of = |key: &str| top.get(key).and_then(|raw| value(raw)).and_then(|v| v.as_str().map(str::to_owned));
    let api_version = of("apiVersion").filter(|_| gvk.kind.is_empty()).unwrap_or_else(|| gvk.api_version());
    let kind = of("kind").filter(|_| gvk.kind.is_empty()).unwrap_or_else(|| gvk.kind.clone());
    Unreadable::new(&api_version, &kind, kept, why(error))
}

/// Returns the reason of an error without positions and values: it stays the same while the object changes elsewhere, and quotes nothing.
pub(super) fn why(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    match message.rsplit_once(", expected ") {
        _ if message == "recursion limit exceeded" => format!("it is nested more than {MOST_LEVELS} levels deep"),
        // The omitted part quotes the value.
        Some((_, expected)) if error.is_data() => format!("invalid value, expected {expected}"),
        _ => message.to_owned(),
    }
}

/// Returns the fields of an object, not decoded, so that their depth does not matter; empty if the text is not an object.
pub(super) fn fields(text: &str) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(text).unwrap_or_default()
}

fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

/// Returns an error for callers that need the object.
pub(super) fn refusal(object: &Unreadable) -> Status {
    let what = if object.is_named() { object.name() } else { "the response".to_owned() };
    Status::new(0, UNREADABLE, format!("{what} cannot be read: {}", object.why))
}

/// Returns the events of a watch of that kind. `is_partial`: the objects have the kind PartialObjectMetadata, which is replaced.
pub(super) fn events(
    answer: http::Response<Body>,
    gvk: Gvk,
    is_partial: bool,
) -> impl Stream<Item = Result<WatchEvent, Status>> + use<> {
    let parts = axum::body::Body::new(answer.into_body()).into_data_stream();
    let read = Lines { parts, line: Vec::new(), rest: Bytes::new() };
    stream::unfold(read, move |mut read| {
        let gvk = gvk.clone();
        async move {
            let line = read.next().await?;
            let event = line.and_then(|line| event(&line, &gvk, is_partial));
            Some((event, read))
        }
    })
}

fn event(line: &[u8], gvk: &Gvk, is_partial: bool) -> Result<WatchEvent, Status> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        r#type: String,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let is_secret = gvk.group.is_empty() && gvk.kind == "Secret";
    let refused = |status: &Value| if is_secret { refused(status).about_secret() } else { refused(status) };
    let raw: Raw<'_> = serde_json::from_slice(line).map_err(|error| {
        // A line may contain a Status instead of an event.
        let status = serde_json::from_slice::<Value>(line).ok().filter(|status| status["kind"] == "Status");
        status
            .map_or_else(|| Status::new(0, UNREADABLE, format!("not a watch event: {}", why(&error))), |s| refused(&s))
    })?;
    let named = |mut object: Value| {
        if is_partial && let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), gvk.api_version().into());
            fields.insert("kind".to_owned(), gvk.kind.clone().into());
        }
        object
    };
    let read = || item(raw.object.get(), gvk).map(named);
    Ok(match raw.r#type.as_str() {
        "ADDED" => read().map_or_else(|object| WatchEvent::Unreadable(*object), WatchEvent::Added),
        "MODIFIED" => read().map_or_else(|object| WatchEvent::Unreadable(*object), WatchEvent::Modified),
        "DELETED" => WatchEvent::Deleted(read().unwrap_or_else(|object| object.stub)),
        "BOOKMARK" => {
            let bookmark = read().unwrap_or_else(|object| object.stub);
            WatchEvent::Bookmark(object::resource_version(&bookmark).to_owned())
        }
        "ERROR" => WatchEvent::Error(refused(&value(raw.object).unwrap_or_default())),
        _ => return Err(Status::new(0, UNREADABLE, "unknown type of watch event")),
    })
}

fn refused(status: &Value) -> Status {
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| *code != 0).unwrap_or(500);
    Status::new(code, object::text(status, &["reason"]), object::text(status, &["message"])).sanitized()
}

/// The lines of a body. An incomplete line at the end is discarded.
struct Lines {
    parts: axum::body::BodyDataStream,
    /// The start of the current line.
    line: Vec<u8>,
    /// The data after it.
    rest: Bytes,
}

impl Lines {
    async fn next(&mut self) -> Option<Result<Vec<u8>, Status>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.rest) {
                self.line.extend_from_slice(&self.rest.split_to(end + 1));
                let line = std::mem::take(&mut self.line);
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Some(Ok(line));
            }
            self.line.extend_from_slice(&std::mem::take(&mut self.rest));
            if self.line.len() > LONGEST_LINE {
                let message = format!("a watch event is larger than {} MiB", LONGEST_LINE >> 20);
                return Some(Err(Status::new(0, TOO_LARGE, message)));
            }
            match self.parts.next().await? {
                Ok(part) => self.rest = part,
                Err(error) => return Some(Err(Status::new(0, "NoAnswer", error.to_string()))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gvk() -> Gvk {
        Gvk::new("operators.coreos.com", "v1alpha1", "ClusterServiceVersion")
    }

    fn deep(levels: usize) -> String {
        format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    fn csv(name: &str, levels: usize) -> String {
        format!(
            r#"{{"apiVersion":"x/v1","kind":"Other","spec":{},"metadata":{{"managedFields":[{}],"labels":{{"a":"b"}},"namespace":"garden","name":"{name}","resourceVersion":"7"}}}}"#,
            deep(levels),
            deep(levels)
        )
    }

    #[test]
    fn an_object_that_is_too_deep_is_named_and_the_others_are_read() {
        let items = [csv("a", 3), csv("deep", 9_000), "7".to_owned(), csv("b", 3)].join(",");
        let text = format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"c"}},"items":[{items}]}}"#);
        let list = RawList::from_bytes(text.as_bytes()).unwrap();
        assert_eq!(list.ends(), ("9".to_owned(), "c".to_owned()));
        let read: Vec<_> = list.items.unwrap().iter().map(|raw| item(raw.get(), &gvk())).collect();
        assert_eq!(object::name(read[0].as_ref().unwrap()), "a");
        assert_eq!(object::name(read[3].as_ref().unwrap()), "b");
        let deep = read[1].as_ref().unwrap_err();
        let metadata = json!({ "name": "deep", "namespace": "garden", "resourceVersion": "7", "labels": { "a": "b" } });
        let kind = "ClusterServiceVersion";
        assert_eq!(
            deep.stub,
            json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": kind, "metadata": metadata })
        );
        assert_eq!(deep.why, "it is nested more than 128 levels deep");
        assert_eq!(
            refusal(deep).message,
            "ClusterServiceVersion garden/deep cannot be read: it is nested more than 128 levels deep"
        );
        // Any JSON value is accepted here: the callers check for a name.
        assert_eq!(read[2].as_ref().unwrap(), &json!(7));
        assert!(RawList::from_bytes(b"[").is_err() && RawList::from_bytes(b"{}").is_ok());
    }

    fn answer(parts: Vec<Vec<u8>>) -> http::Response<Body> {
        // The body in one part, as in other tests with a `kube::Client`.
        http::Response::new(Body::from(parts.concat()))
    }

    #[tokio::test]
    async fn a_watch_continues_after_an_object_that_cannot_be_decoded() {
        let lines = [
            format!(r#"{{"type":"ADDED","object":{}}}"#, csv("a", 3)),
            format!(r#"{{"object":{},"type":"MODIFIED"}}"#, csv("deep", 200)),
            format!(r#"{{"type":"DELETED","object":{}}}"#, csv("deep", 200)),
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}"#.to_owned(),
            String::new(),
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#
                .to_owned(),
            r#"{"kind":"Status","code":500,"message":"no"}"#.to_owned(),
            r#"{"type":"WHAT","object":{}}"#.to_owned(),
            format!(r#"{{"type":"ADDED","object":{}}}"#, csv("b", 3)),
            r#"{"type":"ADDED","obj"#.to_owned(),
        ];
        let answer = answer(vec![lines.join("\n").into_bytes()]);
        let seen: Vec<String> = events(answer, gvk(), true)
            .map(|event| match event {
                Ok(WatchEvent::Added(o)) => format!("+{} {}", object::name(&o), object::text(&o, &["kind"])),
                Ok(WatchEvent::Modified(o)) => format!("~{}", object::name(&o)),
                Ok(WatchEvent::Deleted(o)) => format!("-{}", object::name(&o)),
                Ok(WatchEvent::Unreadable(o)) => format!("?{}", o.name()),
                Ok(WatchEvent::Bookmark(version)) => version,
                Ok(WatchEvent::Error(status)) => format!("!{} {}", status.code, status.message),
                Err(status) => status.message,
            })
            .collect()
            .await;
        assert_eq!(
            seen,
            [
                "+a ClusterServiceVersion",
                "?ClusterServiceVersion garden/deep",
                "-deep",
                "8",
                "!410 too old",
                "no",
                "unknown type of watch event",
                "+b ClusterServiceVersion",
            ]
        );
    }

    /// Returns the error of each line of a watch.
    async fn refusals(kind: &str, lines: &[String]) -> Vec<Status> {
        let answer = answer(vec![lines.join("\n").into_bytes(), b"\n".to_vec()]);
        let errors = events(answer, Gvk::new("", "v1", kind), false).map(|event| match event {
            Ok(WatchEvent::Error(status)) | Err(status) => status,
            event => panic!("{event:?}"),
        });
        errors.collect().await
    }

    #[tokio::test]
    async fn messages_of_a_watch_are_bounded_and_printable_and_quote_no_secret() {
        let status = |message: &str| json!({ "kind": "Status", "code": 500, "reason": "Thorn", "message": message });
        let error = |message: &str| json!({ "type": "ERROR", "object": status(message) }).to_string();
        let lines = [
            error("it is\u{1b}[2J thorns"),
            status(&"thorns ".repeat(1 << 16)).to_string(),
            json!({ "kind": "Status", "message": "thorns" }).to_string(),
            json!({ "type": "thorns", "object": {} }).to_string(),
            json!({ "type": ["thorns"], "object": {} }).to_string(),
            json!("thorns").to_string(),
        ];
        for refusal in refusals("ConfigMap", &lines).await {
            assert!(refusal.message.len() < 20_000 && !refusal.message.contains('\u{1b}'), "{refusal:?}");
        }
        assert_eq!(refusals("ConfigMap", &lines[..1]).await[0].message, r"it is\u{1b}[2J thorns");
        for refusal in refusals("Secret", &lines).await {
            assert!(!refusal.message.contains("thorns"), "{refusal:?}");
        }
        let list = RawList::from_bytes(br#"{"items":"thorns"}"#).err().unwrap();
        assert_eq!(list.message, "not a list: invalid value, expected a sequence");
    }

    #[test]
    fn an_object_is_decoded_without_a_field() {
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let text = r#"{"kind":"Pot","metadata":{"name":"a"},"spec":{"spec":[]},"status":{"spec":1}}"#;
        let kept = json!({ "kind": "Pot", "metadata": { "name": "a" }, "status": { "spec": 1 } });
        assert_eq!(item_without(text, "spec", &gvk).unwrap(), kept);
        assert_eq!(item_without("[]", "spec", &gvk).unwrap_err().why, "invalid value, expected a map");
        let deep = format!(r#"{{"metadata":{{"name":"deep"}},"status":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        assert_eq!(item_without(&deep, "spec", &gvk).unwrap_err().name(), "ConfigMap deep");
    }

    #[test]
    fn of_the_managers_of_an_object_of_a_list_the_last_time_remains() {
        let gvk = Gvk::new("", "v1", "Pot");
        let managers = json!([
            { "manager": "a", "time": "2026-11-21T12:00:00Z", "fieldsV1": { "f:spec": {} } },
            { "manager": "b", "time": "2026-11-22T12:00:00Z" }, { "manager": "c" },
        ]);
        let pot = |managers: Value| json!({ "metadata": { "name": "a", "managedFields": managers }, "spec": { "metadata": {} } });
        let last = json!([{ "time": "2026-11-22T12:00:00Z" }]);
        assert_eq!(item_of_list(&pot(managers).to_string(), &gvk).unwrap(), pot(last));
        let mut without = pot(json!([]));
        object::map_mut(&mut without, &["metadata"]).remove("managedFields");
        assert_eq!(item_of_list(&pot(json!([])).to_string(), &gvk).unwrap(), without);
        assert_eq!(item_of_list(r#"{"metadata":null}"#, &gvk).unwrap(), json!({ "metadata": null }));
        assert!(item_of_list(r#"{"metadata":{"managedFields":1}}"#, &gvk).is_err());
    }

    #[tokio::test]
    async fn the_sizes_of_responses_and_events_are_limited() {
        let read = bytes(answer(vec![vec![b' '; 100]]), 100).await.unwrap();
        assert_eq!(read.len(), 100);
        let refused = super::super::api::status(bytes(answer(vec![vec![b' '; 3 << 20]]), 2 << 20).await.unwrap_err());
        assert_eq!(
            (refused.reason.as_str(), refused.message.as_str()),
            (TOO_LARGE, "the response is larger than 2 MiB")
        );
        let seen: Vec<_> = events(answer(vec![vec![b'x'; LONGEST_LINE + 1]]), gvk(), false).take(1).collect().await;
        assert_eq!(seen[0].as_ref().unwrap_err().message, "a watch event is larger than 32 MiB");
    }
}
