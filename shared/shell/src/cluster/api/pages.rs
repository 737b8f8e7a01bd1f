//! Lists in pages, with fewer objects per page if they are large.

use std::sync::PoisonError;

use kube::api::ListParams;
use kube::core::Request;
use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use olm_core::world::Unreadable;
use serde_json::Value;

use super::query::PAGE;
use super::{Api, ListQuery, Resource, unsendable};
use crate::cluster::decode::{self, RawList};
use crate::cluster::table::TablePage;

/// The target size of a page of a list in bytes: a page takes several times its size in memory while it is decoded. Pages of larger objects
/// have fewer of them.
const PAGE_BYTES: usize = 16 << 20;

/// The `Accept` header of `kubectl get`, which requests a table.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// Returns what is kept of an object, if anything.
pub(crate) type Reduce = fn(Value) -> Option<Value>;

/// A page of a list.
pub struct Page {
    /// The objects, each with apiVersion and kind.
    pub objects: Vec<Value>,
    /// The objects that cannot be decoded.
    pub unreadable: Vec<Unreadable>,
    /// The resourceVersion of the list.
    pub resource_version: String,
    /// The token of the next page; empty at the end.
    pub next: String,
}

impl Page {
    /// Returns the objects, and the resourceVersion to watch from.
    ///
    /// # Errors
    /// One of the objects cannot be decoded.
    pub fn readable(self) -> Result<(Vec<Value>, String), Status> {
        match self.unreadable.first() {
            Some(object) => Err(decode::refusal(object)),
            None => Ok((self.objects, self.resource_version)),
        }
    }
}

impl Api {
    /// Requests all pages of a LIST and merges them.
    ///
    /// # Errors
    /// A page was refused.
    pub async fn list(&self, query: &ListQuery) -> Result<Page, Status> {
        self.list_with(query, None).await
    }

    /// As [`Self::list`], but only what `reduce` returns of each object is kept, before the next one is decoded: a decoded object takes
    /// several times the memory of its text. Of `managedFields` only an entry with the time of the last change is decoded.
    ///
    /// # Errors
    /// A page was refused.
    pub(crate) async fn list_reduced(&self, query: &ListQuery, reduce: Reduce) -> Result<Page, Status> {
        self.list_with(query, Some(reduce)).await
    }

    async fn list_with(&self, query: &ListQuery, reduce: Option<Reduce>) -> Result<Page, Status> {
        let mut all = self.page_with(query, "", reduce).await?;
        while !all.next.is_empty() {
            let page = self.page_with(query, &all.next, reduce).await?;
            all.objects.extend(page.objects);
            all.unreadable.extend(page.unreadable);
            (all.resource_version, all.next) = (page.resource_version, page.next);
        }
        Ok(all)
    }

    /// Requests a page of a LIST; the first page if the token is empty.
    ///
    /// # Errors
    /// The page was refused, or contains an object that alone exceeds the limit.
    pub async fn page(&self, query: &ListQuery, token: &str) -> Result<Page, Status> {
        self.page_with(query, token, None).await
    }

    async fn page_with(&self, query: &ListQuery, token: &str, reduce: Option<Reduce>) -> Result<Page, Status> {
        let resource = &query.resource;
        let mut limit = self.limit(&resource.gvk).unwrap_or(query.limit).min(query.limit);
        loop {
            match self.text(query.list(limit, token)).await {
                Err(refusal) if refusal.reason == decode::TOO_LARGE && limit > 1 => {
                    limit = (limit / 4).max(1);
                    self.set_limit(&resource.gvk, limit);
                }
                Err(refusal) if refusal.reason == decode::TOO_LARGE => {
                    let message = format!("one object of {} is too large: {}", resource.plural, refusal.message);
                    return Err(Status::new(0, decode::TOO_LARGE, message));
                }
                answer => return self.read_page(resource, &answer?, reduce),
            }
        }
    }

    fn read_page(&self, resource: &Resource, text: &str, reduce: Option<Reduce>) -> Result<Page, Status> {
        let list = RawList::from_bytes(text.as_bytes())?;
        let (resource_version, next) = list.ends();
        let (mut objects, mut unreadable) = (Vec::new(), Vec::new());
        let items = list.items.unwrap_or_default();
        self.learn(&resource.gvk, items.len(), text.len());
        for raw in items {
            let decode = if reduce.is_some() { decode::item_of_list } else { decode::item };
            match decode(raw.get(), &resource.gvk) {
                // Items of a list have no apiVersion and kind.
                Ok(mut object) => {
                    resource.name(&mut object);
                    objects.extend(match reduce {
                        Some(reduce) => reduce(object),
                        None => Some(object),
                    });
                }
                Err(object) => unreadable.push(*object),
            }
        }
        Ok(Page { objects, unreadable, resource_version, next })
    }

    /// Returns the learned page size of a kind; `None` if there is no limit besides the requested one.
    fn limit(&self, gvk: &Gvk) -> Option<u32> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner).get(gvk).copied()
    }

    fn set_limit(&self, gvk: &Gvk, limit: u32) {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner).insert(gvk.clone(), limit);
    }

    /// Learns from the size of the objects of a page: the next page has as many as fit, and at most twice as many as this one.
    fn learn(&self, gvk: &Gvk, objects: usize, bytes: usize) {
        let known = self.limit(gvk);
        let fits = (objects.max(1) * PAGE_BYTES / bytes.max(1)).max(1);
        let fits = u32::try_from(fits).unwrap_or(u32::MAX);
        match known {
            None if bytes <= PAGE_BYTES => {}
            None => self.set_limit(gvk, fits),
            Some(known) => self.set_limit(gvk, fits.min(known.saturating_mul(2))),
        }
    }

    /// Requests a page of a LIST as a table, in one namespace, or in all namespaces if it is empty.
    pub async fn table(&self, resource: &Resource, namespace: &str, page: &str) -> Result<TablePage, Status> {
        let mut params = ListParams::default().limit(PAGE);
        if !page.is_empty() {
            params = params.continue_token(page);
        }
        let mut request = Request::new(resource.path(namespace)).list(&params).map_err(unsendable)?;
        request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(TABLE));
        let text = self.text(Ok(request)).await?;
        TablePage::from_list(&RawList::from_bytes(text.as_bytes())?, &resource.gvk)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use olm_core::api::kinds;
    use serde_json::json;

    use super::*;

    const MIB: usize = 1 << 20;

    fn resource() -> Resource {
        Resource::from(&kinds::CONFIG_MAP)
    }

    /// A server with that many objects of that many MiB, in pages of the requested size; and the sizes that were requested.
    fn server(objects: usize, mib: usize) -> (Api, Arc<Mutex<Vec<usize>>>) {
        let asked: Arc<Mutex<Vec<usize>>> = Arc::default();
        let (log, filler) = (asked.clone(), Bytes::from(vec![b'x'; MIB]));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let option = |name: &str| {
                let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
                value.and_then(|value| value.parse::<usize>().ok()).unwrap_or_default()
            };
            let (limit, from) = (option("limit"), option("continue"));
            log.lock().unwrap().push(limit);
            let end = objects.min(from + limit);
            let next = if end < objects { end.to_string() } else { String::new() };
            let metadata = json!({ "resourceVersion": "9", "continue": next });
            let mut parts = vec![Bytes::from(format!(r#"{{"metadata":{metadata},"items":["#))];
            for n in from..end {
                let comma = if n == from { "" } else { "," };
                parts.push(format!(r#"{comma}{{"metadata":{{"name":"n{n}"}},"data":""#).into());
                parts.extend(std::iter::repeat_n(filler.clone(), mib));
                parts.push(Bytes::from_static(b"\"}"));
            }
            parts.push(Bytes::from_static(b"]}"));
            let body = axum::body::Body::from_stream(futures::stream::iter(parts.into_iter().map(Ok::<_, Infallible>)));
            async move { Ok::<_, Infallible>(http::Response::new(body)) }
        });
        (Api::new(kube::Client::new(service, "default")), asked)
    }

    #[tokio::test]
    async fn pages_of_large_objects_have_fewer_of_them() {
        let (api, asked) = server(70, 1);
        let mut names = Vec::new();
        let mut next = String::new();
        loop {
            let page = api.page(&ListQuery::all(&resource()), &next).await.unwrap();
            names.extend(page.objects.iter().map(|object| object["metadata"]["name"].clone()));
            next = page.next;
            if next.is_empty() {
                break;
            }
        }
        let expected: Vec<Value> = (0..70).map(|n| format!("n{n}").into()).collect();
        assert_eq!(names, expected);
        // Pages of 500 and 125 contain all objects, which is too large; then as many as fit into 16 MiB.
        assert_eq!(asked.lock().unwrap()[..], [500, 125, 31, 15, 15, 15]);
    }

    #[tokio::test]
    async fn an_object_that_exceeds_the_limit_is_refused_with_the_limit() {
        let (api, asked) = server(1, 65);
        let Err(refusal) = api.page(&ListQuery::all(&resource()), "").await else { panic!("it is too large") };
        assert_eq!(refusal.message, "one object of configmaps is too large: the response is larger than 64 MiB");
        assert_eq!(asked.lock().unwrap().last(), Some(&1));
    }

    #[tokio::test]
    async fn small_objects_are_listed_in_pages_of_the_requested_size() {
        let (api, asked) = server(1200, 0);
        assert_eq!(api.list(&ListQuery::all(&resource())).await.unwrap().objects.len(), 1200);
        assert_eq!(asked.lock().unwrap()[..], [500, 500, 500]);
    }
}
