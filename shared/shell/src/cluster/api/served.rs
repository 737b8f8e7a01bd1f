//! Discovery: the version of the API server, its groups, and their kinds.
//!
//! *Guarantees*: The size limit of other responses applies here too, because aggregated API servers write the discovery of their groups.

use std::collections::BTreeMap;

use http::header::ACCEPT;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList};
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::core::discovery::v2::{ACCEPT_AGGREGATED_DISCOVERY_V2, APIGroupDiscoveryList};
use olm_core::api::kinds;
use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use serde::de::DeserializeOwned;

use super::{Api, Resource};
use crate::cluster::decode::{self, UNREADABLE};

const JSON: &str = "application/json";

impl Api {
    /// Returns the `gitVersion` of the API server.
    pub async fn version(&self) -> Result<String, Status> {
        self.answer(|| self.ask_version()).await
    }

    /// As [`Self::version`], without retries.
    pub(crate) async fn ask_version(&self) -> kube::Result<String> {
        self.ask::<Info>("/version", JSON).await.map(|version| version.git_version)
    }

    /// Returns the versions of a group that the API server serves, the preferred one first; empty if it does not serve the group. Does not
    /// retry.
    pub(crate) async fn ask_versions(&self, group: &str) -> kube::Result<Vec<String>> {
        let mut groups = self.ask::<APIGroupList>("/apis", JSON).await?.groups;
        groups.retain(|known| known.name == group);
        Ok(groups.into_iter().flat_map(|known| known.versions).map(|version| version.version).collect())
    }

    /// Returns the resource of a kind, which is discovered if it is not known yet, and not one that every cluster serves.
    pub async fn resource(&self, gvk: &Gvk) -> Result<Resource, Status> {
        let known = kinds::find(&gvk.group, &gvk.kind).filter(|kind| kind.version == gvk.version);
        if let Some(kind) = known.filter(|kind| kind.is_always_served()) {
            return Ok(kind.into());
        }
        if let Some(known) = self.resources.lock().await.get(gvk) {
            return Ok(known.clone());
        }
        let listed = self.listed(&gvk.group, &gvk.version).await;
        let missing =
            || Status::new(404, "NotFound", format!("the server does not serve {} in {}", gvk.kind, gvk.api_version()));
        let listed = listed.map_err(|s| if s.is_not_found() { missing() } else { s })?;
        let mut resources = self.resources.lock().await;
        for (kind, plural, namespaced) in listed.into_iter().filter(|(_, name, _)| !name.contains('/')) {
            let gvk = Gvk::new(&gvk.group, &gvk.version, &kind);
            resources.insert(gvk.clone(), Resource { gvk, plural, namespaced });
        }
        resources.get(gvk).cloned().ok_or_else(missing)
    }

    /// Returns the discovery of a group version: kinds, with the names of their resources and whether those are namespaced.
    async fn listed(&self, group: &str, version: &str) -> Result<Vec<(String, String, bool)>, Status> {
        let base = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let listed: APIResourceList = self.fetch(&format!("{base}/{version}"), JSON).await?;
        Ok(listed.resources.into_iter().map(|r| (r.kind, r.name, r.namespaced)).collect())
    }

    /// Returns the kinds that the API server serves in a group version, and whether they are namespaced, which is unknown for kinds that
    /// only a subresource has. Empty if the version is not served.
    pub async fn kinds(&self, group: &str, version: &str) -> Result<BTreeMap<String, Option<bool>>, Status> {
        let listed = match self.listed(group, version).await {
            Ok(listed) => listed,
            Err(refusal) if refusal.is_not_found() => Vec::new(),
            Err(refusal) => return Err(refusal),
        };
        let mut kinds: BTreeMap<String, Option<bool>> = BTreeMap::new();
        for (kind, name, namespaced) in listed {
            let known = kinds.entry(kind).or_default();
            *known = known.or_else(|| (!name.contains('/')).then_some(namespaced));
        }
        Ok(kinds)
    }

    /// Returns all resources that the API server serves, which are cached, and the group versions whose discovery is stale: aggregated APIs
    /// that do not respond.
    pub async fn discover(&self) -> Result<(Vec<Resource>, Vec<(String, String)>), Status> {
        let part = |path| self.fetch::<APIGroupDiscoveryList>(path, ACCEPT_AGGREGATED_DISCOVERY_V2);
        let (core, groups) = futures::try_join!(part("/api"), part("/apis"))?;
        let (mut found, mut stale) = (Vec::new(), Vec::new());
        for group in core.items.into_iter().chain(groups.items) {
            let name = group.metadata.and_then(|m| m.name).unwrap_or_default();
            for version in group.versions {
                let of = version.version.unwrap_or_default();
                if version.freshness.as_deref() == Some("Stale") {
                    stale.push((name.clone(), of.clone()));
                }
                found.extend(version.resources.into_iter().filter_map(|resource| {
                    let kind = resource.response_kind?.kind?;
                    let namespaced = resource.scope.as_deref() == Some("Namespaced");
                    Some(Resource { gvk: Gvk::new(&name, &of, &kind), plural: resource.resource?, namespaced })
                }));
            }
        }
        self.resources.lock().await.extend(found.iter().map(|resource| (resource.gvk.clone(), resource.clone())));
        Ok((found, stale))
    }

    /// Requests a discovery document. Does not impersonate an account.
    async fn fetch<T: DeserializeOwned>(&self, path: &str, form: &'static str) -> Result<T, Status> {
        self.answer(|| self.ask(path, form)).await
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str, form: &'static str) -> kube::Result<T> {
        let request = http::Request::get(path).header(ACCEPT, form).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let answer = decode::bytes(self.open(request).await?, decode::MOST_BYTES).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            let message = format!("cannot read the response to {path}: {}", decode::why(&error));
            kube::Error::Service(Box::new(Status::new(0, UNREADABLE, message)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures::{StreamExt, stream};

    use super::super::status;
    use super::*;

    /// A server that responds to any request with a text, followed by endless blanks.
    fn endless(begins: &'static str) -> Api {
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let blanks = stream::repeat(Bytes::from(vec![b' '; 1 << 20]));
            let parts = stream::once(async move { Bytes::from_static(begins.as_bytes()) }).chain(blanks);
            let body = axum::body::Body::from_stream(parts.map(Ok::<_, Infallible>));
            async move { Ok::<_, Infallible>(http::Response::new(body)) }
        });
        Api::new(kube::Client::new(service, "default"))
    }

    #[tokio::test]
    async fn an_endless_response_is_refused_with_the_limit() {
        let refused = Err("the response is larger than 64 MiB".to_owned());
        let list = r#"{"kind":"APIResourceList","groupVersion":"garden/v1","resources":[]"#;
        let gvk = Gvk::new("garden", "v1", "Rose");
        assert_eq!(endless(list).kinds("garden", "v1").await.map(|_| ()).map_err(|e| e.message), refused);
        assert_eq!(endless(list).kinds("", "v1").await.map(|_| ()).map_err(|e| e.message), refused);
        assert_eq!(endless(list).resource(&gvk).await.map(|_| ()).map_err(|e| e.message), refused);
        assert_eq!(endless(r#"{"items":["#).discover().await.map(|_| ()).map_err(|e| e.message), refused);
        assert_eq!(endless("{").version().await.map(|_| ()).map_err(|e| e.message), refused);
        assert_eq!(endless("{").ask_versions("garden").await.map(|_| ()).map_err(|e| status(e).message), refused);
    }

    fn answers(text: &'static str) -> Api {
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let body = axum::body::Body::from(text);
            async move { Ok::<_, Infallible>(http::Response::new(body)) }
        });
        Api::new(kube::Client::new(service, "default"))
    }

    #[tokio::test]
    async fn an_invalid_response_is_reported_and_not_quoted() {
        for text in ["", "{", "<html>thorns</html>", r#"{"kind":"APIResourceList","resources":"thorns"}"#] {
            let refusal = answers(text).kinds("garden", "v1").await.unwrap_err();
            assert!(refusal.message.starts_with("cannot read the response to /apis/garden/v1: "), "{refusal}");
            assert!(!refusal.message.contains("thorns"), "{refusal}");
        }
        let groups = r#"{"groups":[{"name":"garden","versions":[{"groupVersion":"garden/v2","version":"v2"},{"groupVersion":"garden/v1","version":"v1"}]}]}"#;
        assert_eq!(answers(groups).ask_versions("garden").await.unwrap(), ["v2", "v1"]);
        assert_eq!(answers(groups).ask_versions("field").await.unwrap(), [""; 0]);
    }
}
