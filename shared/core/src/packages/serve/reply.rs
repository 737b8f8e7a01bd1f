//! The responses: discovery, OpenAPI documents, objects, lists, tables and icons.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::discovery::{Groups, group, resources};
use super::form::{META, object, status_json, table};
use super::openapi;
use super::request::{Form, Query, Target, bad, hash};
use super::response::{Response, etag};
use super::store::{Item, Store, expired};
use super::watch::Watch;
use crate::api::status::Status;
use crate::packages::{KIND, api_version};

/// What a request gets.
#[derive(Debug)]
pub enum Reply {
    /// A response.
    Response(Response),
    /// The events of a watch.
    Watch(Watch),
    /// The icon of a package, which has to be read from its catalog: [`Response::icon`].
    Icon(Arc<Item>),
}

/// Returns the response of a refusal.
pub fn error(status: &Status) -> Response {
    let mut response = Response::json(status.code, &status_json(status));
    if matches!(status.code, 429 | 503) {
        response.headers.push(("retry-after", "1".to_owned()));
    }
    response
}

/// Returns what a request gets whose user is authorized.
///
/// # Errors
/// The request is invalid, or the object does not exist.
pub fn reply(
    store: &Store,
    method: &str,
    target: &Target,
    query: &str,
    accept: &str,
    now: Timestamp,
) -> Result<Reply, Status> {
    if method != "GET" {
        return Err(Status::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ));
    }
    let document = |body: Value| Ok(Reply::Response(Response::json(200, &body)));
    match target {
        Target::Health => Ok(Reply::Response(Response::text("ok"))),
        Target::Unknown => Err(not_served()),
        Target::Groups => {
            let (groups, media_type) = Groups::from_accept(accept)?.document();
            let body = groups.to_string().into_bytes();
            Ok(Reply::Response(Response::document(media_type, etag(&body), body.into())))
        }
        Target::OpenApi(version) => {
            Form::from_accept(accept)?;
            Ok(Reply::Response(openapi::response(*version, &hash(query)?)))
        }
        Target::Group => {
            Form::from_accept(accept)?;
            let mut group = group();
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            document(group)
        }
        Target::Resources => {
            Form::from_accept(accept)?;
            document(resources())
        }
        Target::Objects { namespace, name, subresource } => {
            let query = Query::read(query)?;
            if subresource == "icon" {
                return Ok(Reply::Icon(store.find(namespace, name)?));
            } else if !subresource.is_empty() {
                return Err(not_served());
            }
            let form = Form::from_accept(accept)?;
            if !name.is_empty() {
                let item = store.find(namespace, name)?;
                return Ok(Reply::Response(one(&item, namespace, form, &query, now)));
            }
            if query.watch {
                return Watch::begin(store, namespace, query, form).map(Reply::Watch);
            }
            list(store, namespace, form, &query, now).map(Reply::Response)
        }
    }
}

fn not_served() -> Status {
    Status::new(404, "NotFound", "the server could not find the requested resource")
}

/// Returns one object.
fn one(item: &Item, namespace: &str, form: Form, query: &Query, now: Timestamp) -> Response {
    let mut body = Vec::new();
    match form {
        Form::Table => table(&mut body, &[item], namespace, query.included, &json!({}), true, now),
        _ => object(&mut body, item, namespace, form),
    }
    Response::of_parts(200, body)
}

/// Returns a list, or a page of it.
fn list(store: &Store, namespace: &str, form: Form, query: &Query, now: Timestamp) -> Result<Response, Status> {
    let found = store.selected(namespace, query)?;
    let first = if query.from.is_empty() { 0 } else { continued(store, &query.from)? };
    let rest = found.get(first..).unwrap_or_default();
    let most = if query.limit == 0 { rest.len() } else { query.limit.min(rest.len()) };
    let (page, left) = rest.split_at(most);
    let mut metadata = json!({ "resourceVersion": store.revision.to_string() });
    if !left.is_empty() {
        metadata["continue"] = URL_SAFE_NO_PAD.encode(format!("{}:{}", store.revision, first + most)).into();
        if query.selector.is_empty() {
            metadata["remainingItemCount"] = left.len().into();
        }
    }
    let mut body = Vec::new();
    if form == Form::Table {
        let items: Vec<&Item> = page.iter().map(AsRef::as_ref).collect();
        table(&mut body, &items, namespace, query.included, &metadata, true, now);
        return Ok(Response::of_parts(200, body));
    }
    let (api_version, kind) = match form {
        Form::Metadata => (META.to_owned(), "PartialObjectMetadata"),
        _ => (api_version(), KIND),
    };
    let beginning = format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}List","metadata":{metadata},"items":["#);
    body.push(beginning.into_bytes().into());
    for (at, item) in page.iter().enumerate() {
        if at > 0 {
            body.push(Arc::from(&b","[..]));
        }
        object(&mut body, item, namespace, form);
    }
    body.push(Arc::from(&b"]}"[..]));
    Ok(Response::of_parts(200, body))
}

/// Returns the index of the first object of a page.
fn continued(store: &Store, token: &str) -> Result<usize, Status> {
    let decoded = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = decoded.as_deref().and_then(|text| text.split_once(':'));
    let pair = pair.and_then(|(revision, at)| Some((revision.parse::<u64>().ok()?, at.parse::<usize>().ok()?)));
    match pair {
        None => Err(bad("continue key is not valid".to_owned())),
        Some((revision, at)) if revision == store.revision => Ok(at),
        Some(_) => Err(expired("The provided continue parameter is too old: the packages have changed since the first page; list again without it".to_owned())),
    }
}
