//! From the bytes of an answer to objects: within bounds, and each object for itself.
//!
//! Whoever may write objects may write one that is legal in Kubernetes and cannot be read here: Go reads JSON that is nested 10,000 levels
//! deep, and what reads it recursively here stops at 128. Such an object is named by its metadata and left out. The others of its list or
//! watch are read.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use kube::client::Body;
use olm_core::api::object::{self, Gvk};
use olm_core::api::status::Status;
use olm_core::world::Unreadable;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Most bytes of one answer. An API server takes 3 MiB in a request and etcd 1.5 MiB in an object, so that what is larger is a page of too
/// many objects, which is asked for again with fewer.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// Most bytes of a refusal: sentences.
pub(super) const MOST_OF_A_REFUSAL: usize = 4 << 20;

/// Most bytes of one event of a watch, with the same reason as [`MOST_BYTES`]: one object.
const LONGEST_LINE: usize = 32 << 20;

/// Where serde_json stops.
const MOST_LEVELS: usize = 128;

/// What is kept of the metadata of an object that cannot be read.
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

/// The reason of a refusal of ours: an answer is there and cannot be read.
pub const UNREADABLE: &str = "Unreadable";

/// The reason of a refusal of ours: an answer is too large.
pub(super) const TOO_LARGE: &str = "TooLarge";

/// What a watch tells.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// An object is there.
    Added(Value),
    /// An object has changed.
    Modified(Value),
    /// An object is gone: as it last was, or its metadata where the rest cannot be read.
    Deleted(Value),
    /// An object was added or has changed, and cannot be read.
    Unreadable(Unreadable),
    /// Nothing, until this resourceVersion.
    Bookmark(String),
    /// The watch ends.
    Error(Status),
}

/// The items of a list, as they are in its text.
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
        serde_json::from_slice(text).map_err(|error| Status::new(0, UNREADABLE, format!("no list: {}", why(&error))))
    }

    /// The list's resourceVersion, and where the next page starts.
    pub(super) fn ends(&self) -> (String, String) {
        let metadata = self.metadata.map(|raw| fields(raw.get())).unwrap_or_default();
        let text =
            |field: &str| metadata.get(field).and_then(|raw| value(raw)).and_then(|v| v.as_str().map(str::to_owned));
        (text("resourceVersion").unwrap_or_default(), text("continue").unwrap_or_default())
    }
}

/// The bytes of an answer, if they are not more than that.
pub(super) async fn bytes(answer: http::Response<Body>, most: usize) -> kube::Result<Vec<u8>> {
    let mut parts = axum::body::Body::new(answer.into_body()).into_data_stream();
    let mut all = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| kube::Error::Service(error.into_inner()))?;
        if all.len() + part.len() > most {
            let message = format!("the answer has more than {} MiB", most >> 20);
            return Err(kube::Error::Service(Box::new(Status::new(0, TOO_LARGE, message))));
        }
        all.extend_from_slice(&part);
    }
    Ok(all)
}

/// Reads one object, which is of that kind if it does not say of which.
pub(super) fn item(text: &str, gvk: &Gvk) -> Result<Value, Box<Unreadable>> {
    serde_json::from_str(text).map_err(|error| Box::new(unreadable(text, gvk, &error)))
}

/// What can be read of an object that cannot be read.
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

/// Why, in words that stay the same while the object changes elsewhere, and quote nothing of it.
pub(super) fn why(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    match message.rsplit_once(", expected ") {
        _ if message == "recursion limit exceeded" => format!("it is nested more than {MOST_LEVELS} levels deep"),
        // What is there instead is quoted.
        Some((_, expected)) if error.is_data() => format!("it has something else than {expected}"),
        _ => message.to_owned(),
    }
}

/// The fields of an object by their names, unread: how deep they are does not matter. Empty for what is no object.
pub(super) fn fields(text: &str) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(text).unwrap_or_default()
}

fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

/// An error for those who can do nothing without the object.
pub(super) fn refusal(object: &Unreadable) -> Status {
    let what = if object.is_named() { object.name() } else { "the answer".to_owned() };
    Status::new(0, UNREADABLE, format!("{what} cannot be read: {}", object.why))
}

/// The events of a watch of that kind. `is_partial`: objects do not say what they are.
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
        // Instead of an event there may be a refusal.
        let status = serde_json::from_slice::<Value>(line).ok().filter(|status| status["kind"] == "Status");
        status.map_or_else(
            || Status::new(0, UNREADABLE, format!("no event of a watch: {}", why(&error))),
            |s| refused(&s),
        )
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
        _ => return Err(Status::new(0, UNREADABLE, "no event of a watch is called so")),
    })
}

fn refused(status: &Value) -> Status {
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| *code != 0).unwrap_or(500);
    Status::new(code, object::text(status, &["reason"]), object::text(status, &["message"])).heard()
}

/// The lines of a body. What is left at its end is no line: it was cut.
struct Lines {
    parts: axum::body::BodyDataStream,
    /// The beginning of a line.
    line: Vec<u8>,
    /// What follows.
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
                let message = format!("an event of a watch has more than {} MiB", LONGEST_LINE >> 20);
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
    fn what_is_too_deep_is_named_and_the_others_are_read() {
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
        // What is read is whatever JSON it is: whether it has a name is for others to see.
        assert_eq!(read[2].as_ref().unwrap(), &json!(7));
        assert!(RawList::from_bytes(b"[").is_err() && RawList::from_bytes(b"{}").is_ok());
    }

    fn answer(parts: Vec<Vec<u8>>) -> http::Response<Body> {
        // A body in one part, as kube's clients have it in tests.
        http::Response::new(Body::from(parts.concat()))
    }

    #[tokio::test]
    async fn a_watch_goes_on_after_what_cannot_be_read() {
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
        let told: Vec<String> = events(answer, gvk(), true)
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
            told,
            [
                "+a ClusterServiceVersion",
                "?ClusterServiceVersion garden/deep",
                "-deep",
                "8",
                "!410 too old",
                "no",
                "no event of a watch is called so",
                "+b ClusterServiceVersion",
            ]
        );
    }

    /// What is told of each line of a watch.
    async fn refusals(kind: &str, lines: &[String]) -> Vec<Status> {
        let answer = answer(vec![lines.join("\n").into_bytes(), b"\n".to_vec()]);
        let told = events(answer, Gvk::new("", "v1", kind), false).map(|event| match event {
            Ok(WatchEvent::Error(status)) | Err(status) => status,
            event => panic!("{event:?}"),
        });
        told.collect().await
    }

    #[tokio::test]
    async fn words_of_a_watch_are_bounded_and_visible_and_quote_no_secret() {
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
        for told in refusals("ConfigMap", &lines).await {
            assert!(told.message.len() < 20_000 && !told.message.contains('\u{1b}'), "{told:?}");
        }
        assert_eq!(refusals("ConfigMap", &lines[..1]).await[0].message, r"it is\u{1b}[2J thorns");
        for told in refusals("Secret", &lines).await {
            assert!(!told.message.contains("thorns"), "{told:?}");
        }
        let list = RawList::from_bytes(br#"{"items":"thorns"}"#).err().unwrap();
        assert_eq!(list.message, "no list: it has something else than a sequence");
    }

    #[tokio::test]
    async fn an_answer_and_an_event_have_a_most() {
        let read = bytes(answer(vec![vec![b' '; 100]]), 100).await.unwrap();
        assert_eq!(read.len(), 100);
        let refused = super::super::api::status(bytes(answer(vec![vec![b' '; 3 << 20]]), 2 << 20).await.unwrap_err());
        assert_eq!((refused.reason.as_str(), refused.message.as_str()), (TOO_LARGE, "the answer has more than 2 MiB"));
        let told: Vec<_> = events(answer(vec![vec![b'x'; LONGEST_LINE + 1]]), gvk(), false).take(1).collect().await;
        assert_eq!(told[0].as_ref().unwrap_err().message, "an event of a watch has more than 32 MiB");
    }
}
