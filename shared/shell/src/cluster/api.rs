//! Requests to the API server with whole objects as JSON, so that fields that a Rust type would not have are preserved.

mod pages;
mod query;
mod served;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::Request;
use olm_core::api::custom_resource_definition::CustomResourceDefinition;
use olm_core::api::kinds::Kind;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::plan::Account;
use olm_core::world::{GroupKind, Unreadable, kind, sendable};
use serde_json::Value;
use tokio::sync::Mutex;

pub use self::pages::Page;
pub(crate) use self::pages::Reduce;
pub use self::query::{Depth, ListQuery};
pub use super::decode::{UNREADABLE, WatchEvent};
use super::permit::Permit;
use super::{decode, warning};
use crate::causes;

/// The field manager of all writes of `kubectl olm`.
const MANAGER: &str = "kubectl-olm";

/// The `Accept` header that requests only the metadata of an object.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// The timeout of a request: the API server itself cancels a request after a minute.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// The maximum number of retries of a request that the API server delays with `retryAfterSeconds`, as in kubectl.
const MOST_PAUSES: usize = 10;
/// The longest such pause. A request with a longer one is not retried.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The API resource of a kind: its plural, and whether it is namespaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// The plural, as in URLs.
    pub plural: String,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
}

impl From<&Kind> for Resource {
    fn from(kind: &Kind) -> Self {
        Self { gvk: kind.gvk(), plural: kind.plural.to_owned(), namespaced: kind.namespaced }
    }
}

impl Resource {
    /// Returns the resource of a version that a definition serves.
    pub(crate) fn from_definition(crd: CustomResourceDefinition<'_>, version: &str) -> Self {
        Self {
            gvk: Gvk::new(crd.group(), version, crd.kind()),
            plural: crd.plural().to_owned(),
            namespaced: crd.is_namespaced(),
        }
    }

    /// Sets apiVersion and kind of an object.
    fn name(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".to_owned(), self.gvk.api_version().into());
            object.insert("kind".to_owned(), self.gvk.kind.clone().into());
        }
    }

    /// Returns the plural with its group, as in `installplans.operators.coreos.com`.
    pub fn qualified(&self) -> String {
        let Self { gvk, plural, .. } = self;
        if gvk.group.is_empty() { plural.clone() } else { format!("{plural}.{}", gvk.group) }
    }

    fn path(&self, namespace: &str) -> String {
        let Self { gvk, plural, namespaced } = self;
        let base = if gvk.group.is_empty() {
            format!("/api/{}", gvk.version)
        } else {
            format!("/apis/{}/{}", gvk.group, gvk.version)
        };
        if *namespaced && !namespace.is_empty() {
            format!("{base}/namespaces/{namespace}/{plural}")
        } else {
            format!("{base}/{plural}")
        }
    }
}

/// A client of the API server that sends and receives JSON.
#[derive(Clone)]
pub struct Api {
    client: kube::Client,
    /// The resources that are known, by kind.
    resources: Arc<Mutex<BTreeMap<Gvk, Resource>>>,
    /// The account to impersonate for reading and writing objects, if any.
    account: Option<Account>,
    /// The permit to write, which is checked before each write, including retries.
    permit: Permit,
    /// The timeout of a request.
    timeout: Duration,
    /// The stored warnings, if they are requested.
    warnings: Option<Arc<std::sync::Mutex<Vec<String>>>>,
    /// The connection timeout, which `kube::Client` enforces.
    connecting: Option<Duration>,
    /// The page sizes of kinds with large objects.
    limits: Arc<std::sync::Mutex<BTreeMap<Gvk, u32>>>,
}

impl Api {
    /// Creates a client. Its configuration should disable the retries of `kube`, because the planner retries.
    pub fn new(client: kube::Client) -> Self {
        let (resources, timeout, limits) = (Arc::default(), REQUEST_TIMEOUT, Arc::default());
        let permit = Permit::always();
        Self { client, resources, account: None, permit, timeout, warnings: None, connecting: None, limits }
    }

    /// Sets the timeout of requests. It does not apply to a watch that has started.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the connection timeout that messages contain.
    pub(crate) fn with_connecting(self, connecting: Option<Duration>) -> Self {
        Self { connecting, ..self }
    }

    /// Returns a client that reads and writes objects with the permissions of a ServiceAccount.
    pub fn with_permissions_of(&self, account: &Account) -> Self {
        Self { account: Some(account.clone()), ..self.clone() }
    }

    /// Returns a client that writes only while the permit is valid, including retries and pending requests.
    pub(super) fn with_permit(&self, permit: &Permit) -> Self {
        Self { permit: permit.clone(), ..self.clone() }
    }

    /// Returns a client that stores the warnings of the API server.
    pub fn with_warnings(&self) -> Self {
        Self { warnings: Some(Arc::default()), ..self.clone() }
    }

    /// Removes and returns the stored warnings, oldest first.
    pub fn take_warnings(&self) -> Vec<String> {
        let mut kept = match &self.warnings {
            Some(warnings) => warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
            None => return Vec::new(),
        };
        std::mem::take(&mut *kept)
    }

    /// Returns the underlying client.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Registers a resource without discovery.
    pub async fn register(&self, resource: Resource) {
        self.resources.lock().await.insert(resource.gvk.clone(), resource);
    }

    /// Sends a GET. Returns `None` if the object does not exist.
    pub async fn get(&self, target: &ObjectRef) -> Result<Option<Value>, Status> {
        let found = self.read(target).await?;
        found.transpose().map_err(|object| decode::refusal(&object))
    }

    /// Sends a GET, and decodes the object without its `spec`.
    pub(crate) async fn get_without_spec(&self, target: &ObjectRef) -> Result<Option<Value>, Status> {
        let found = self.found(target, |text| decode::item_without(text, "spec", &target.gvk)).await?;
        found.transpose().map_err(|object| decode::refusal(&object))
    }

    /// Sends a GET. An object that cannot be decoded is not an error here.
    pub async fn read(&self, target: &ObjectRef) -> Result<Option<Result<Value, Box<Unreadable>>>, Status> {
        self.found(target, |text| decode::item(text, &target.gvk)).await
    }

    /// Sends a GET and returns what `decode` returns of the response; `None` if the object does not exist.
    async fn found<T>(&self, target: &ObjectRef, decode: impl Fn(&str) -> T) -> Result<Option<T>, Status> {
        let resource = self.resource(&target.gvk).await?;
        let request = Request::new(resource.path(&target.namespace)).get(&target.name, &GetParams::default());
        match self.text(request).await {
            Ok(text) => Ok(Some(decode(&text))),
            Err(refusal) if refusal.is_not_found() => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Starts a watch from a resourceVersion on.
    ///
    /// # Errors
    /// The watch was refused, for example because the resourceVersion is too old.
    pub async fn watch(
        &self,
        query: &ListQuery,
        from: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent, Status>> + use<>, Status> {
        let mut request = query.watch(from).map_err(unsendable)?;
        let is_secret = is_about_secrets(request.uri().path());
        // Kubernetes 1.37 compresses each event separately, which `kube::Client` does not decompress.
        request.headers_mut().insert(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
        let answer = self.answer(|| self.open(request.clone())).await;
        let answer = answer.map_err(|refusal| if is_secret { refusal.about_secret() } else { refusal })?;
        Ok(decode::events(answer, query.resource.gvk.clone(), query.depth == Depth::Metadata))
    }

    /// Sends a POST.
    pub async fn create(&self, object: &Value) -> Result<Value, Status> {
        self.post(object, false).await
    }

    /// Sends a POST with server-side dry run.
    pub async fn dry_run_create(&self, object: &Value) -> Result<Value, Status> {
        self.post(object, true).await
    }

    async fn post(&self, object: &Value, dry_run: bool) -> Result<Value, Status> {
        let target = ObjectRef::from_object(object);
        let resource = self.resource(&target.gvk).await?;
        let params = PostParams { dry_run, field_manager: Some(MANAGER.to_owned()) };
        self.write(object, Request::new(resource.path(&target.namespace)).create(&params, bytes(object)?)).await
    }

    /// Sends a PUT of the object or of a subresource.
    pub async fn update(&self, object: &Value, subresource: Option<&str>) -> Result<Value, Status> {
        self.put(object, subresource, false).await
    }

    /// Sends a PUT of the object with server-side dry run.
    pub async fn dry_run_update(&self, object: &Value) -> Result<Value, Status> {
        self.put(object, None, true).await
    }

    async fn put(&self, object: &Value, subresource: Option<&str>, dry_run: bool) -> Result<Value, Status> {
        let target = ObjectRef::from_object(object);
        let resource = self.resource(&target.gvk).await?;
        let request = Request::new(resource.path(&target.namespace));
        let params = PostParams { dry_run, field_manager: Some(MANAGER.to_owned()) };
        let body = bytes(object)?;
        let request = match subresource {
            Some(part) => request.replace_subresource(part, &target.name, &params, body),
            None => request.replace(&target.name, &params, body),
        };
        self.write(object, request).await
    }

    /// Sends an object. For a copied ClusterServiceVersion only the metadata is requested back: there are many large ones, and the rest is
    /// in the request.
    async fn write(
        &self,
        object: &Value,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, Status> {
        if GroupKind::kept_as(object) != kind::COPIED_CSV {
            return self.send(request).await;
        }
        let mut request = request.map_err(unsendable)?;
        request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(METADATA_ONLY));
        let mut answer = self.send(Ok(request)).await?;
        if answer["kind"] == object["kind"] {
            return Ok(answer);
        }
        let mut written = object.clone();
        object::map_mut(&mut written, &[]).insert("metadata".to_owned(), answer["metadata"].take());
        Ok(written)
    }

    /// Sends a PATCH with a JSON merge patch.
    pub async fn merge(&self, target: &ObjectRef, patch: &Value) -> Result<Value, Status> {
        let resource = self.resource(&target.gvk).await?;
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let request = Request::new(resource.path(&target.namespace));
        self.send(request.patch(&target.name, &params, &Patch::Merge(patch))).await
    }

    /// Sends a PATCH with a JSON merge patch and server-side dry run.
    pub async fn dry_run_merge(&self, target: &ObjectRef, patch: &Value) -> Result<Value, Status> {
        let params = PatchParams { dry_run: true, field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let resource = self.resource(&target.gvk).await?;
        let request = Request::new(resource.path(&target.namespace));
        self.send(request.patch(&target.name, &params, &Patch::Merge(patch))).await
    }

    /// Sends a PATCH by server-side apply that takes over fields of other managers.
    pub async fn apply(&self, object: &Value) -> Result<Value, Status> {
        self.patch_by_apply(object, false).await
    }

    /// Does the same with server-side dry run.
    pub async fn dry_run_apply(&self, object: &Value) -> Result<Value, Status> {
        self.patch_by_apply(object, true).await
    }

    async fn patch_by_apply(&self, object: &Value, dry_run: bool) -> Result<Value, Status> {
        let target = ObjectRef::from_object(object);
        let resource = self.resource(&target.gvk).await?;
        let params = PatchParams { dry_run, ..PatchParams::apply(MANAGER).force() };
        let request = Request::new(resource.path(&target.namespace));
        self.send(request.patch(&target.name, &params, &Patch::Apply(object))).await
    }

    /// Sends a DELETE. Returns the object if it still exists, for example because of finalizers.
    pub async fn delete(&self, target: &ObjectRef, params: &DeleteParams) -> Result<Option<Value>, Status> {
        let resource = self.resource(&target.gvk).await?;
        let answer = self.send(Request::new(resource.path(&target.namespace)).delete(&target.name, params)).await?;
        let is_object = answer.pointer("/metadata/uid").is_some();
        Ok(is_object.then_some(answer))
    }

    /// Sends a request and returns the text of the response.
    async fn text(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, Status> {
        let mut request = request.map_err(unsendable)?;
        if let Some(account) = &self.account {
            let groups = [
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{}", account.namespace),
                "system:authenticated".to_owned(),
            ];
            let headers = [("impersonate-user", account.user())].into_iter();
            for (name, value) in headers.chain(groups.into_iter().map(|group| ("impersonate-group", group))) {
                let value = http::HeaderValue::from_str(&value);
                let value = value.map_err(|error| Status::new(0, "Unsendable", error.to_string()))?;
                request.headers_mut().append(http::HeaderName::from_static(name), value);
            }
        }
        let writes = !request.method().is_safe();
        // A write that is pending when the permit expires is abandoned.
        let most = if writes { self.permit.rest().unwrap_or_default() } else { Duration::MAX };
        let ask = || async {
            let mut write = None;
            if writes {
                self.permit.require().map_err(|refusal| kube::Error::Service(Box::new(refusal)))?;
                write = self.permit.begin();
            }
            let answer = self.open(request.clone()).await;
            if let Some(write) = write.filter(|_| is_known(&answer)) {
                write.answered();
            }
            decode::bytes(answer?, decode::MOST_BYTES).await
        };
        let answer = self.answer_within(most.min(self.timeout), ask).await;
        let is_secret = is_about_secrets(request.uri().path());
        let bytes = answer.map_err(|refusal| if is_secret { refusal.about_secret() } else { refusal })?;
        String::from_utf8(bytes).map_err(|_| Status::new(0, UNREADABLE, "the response is not valid UTF-8"))
    }

    /// Sends a request whose response is an object.
    async fn send(&self, request: Result<http::Request<Vec<u8>>, kube::core::request::Error>) -> Result<Value, Status> {
        let text = self.text(request).await?;
        let none = Gvk::new("", "", "");
        decode::item(&text, &none).map_err(|object| decode::refusal(&object))
    }

    /// Sends a request as `kube::Client` does, but keeps the warnings in the headers and limits the size of error responses.
    async fn open(&self, request: http::Request<Vec<u8>>) -> kube::Result<http::Response<Body>> {
        let is_secret = is_about_secrets(request.uri().path());
        let answer = self.client.send(request.map(Body::from)).await?;
        if let Some(kept) = &self.warnings {
            let given = warning::given(answer.headers(), is_secret);
            kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(given);
        }
        let code = answer.status();
        if !code.is_client_error() && !code.is_server_error() {
            return Ok(answer);
        }
        let body = decode::bytes(answer, decode::MOST_OF_A_REFUSAL).await?;
        let mut refusal = serde_json::from_slice::<kube::core::Status>(&body).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&body);
            kube::core::Status::failure(text.trim(), "Failed to parse error data")
        });
        // Code 0 means that there was no response.
        let code = if refusal.code == 0 { code.as_u16() } else { refusal.code };
        let status = Status::new(code, &refusal.reason, std::mem::take(&mut refusal.message)).sanitized();
        (refusal.code, refusal.reason, refusal.message) = (status.code, status.reason, status.message);
        Err(kube::Error::Api(Box::new(refusal)))
    }

    /// Returns the response, if it arrives before the timeout. An API server that is overloaded, or does not serve a new kind yet, refuses
    /// a request without processing it and returns a pause: the request is then retried, as in kubectl.
    async fn answer<T, A: Future<Output = kube::Result<T>>>(&self, ask: impl Fn() -> A) -> Result<T, Status> {
        self.answer_within(self.timeout, ask).await
    }

    async fn answer_within<T, A: Future<Output = kube::Result<T>>>(
        &self,
        timeout: Duration,
        ask: impl Fn() -> A,
    ) -> Result<T, Status> {
        let answer = async {
            for _ in 0..MOST_PAUSES {
                let answer = ask().await;
                let Some(pause) = answer.as_ref().err().and_then(pause) else { return answer };
                tracing::debug!(?pause, "the API server requests a retry");
                tokio::time::sleep(pause).await;
            }
            ask().await
        };
        let none = |_| Status::new(0, "NoAnswer", format!("no answer within {} s", timeout.as_secs_f32()));
        let answer = tokio::time::timeout(timeout, answer).await.map_err(none)?;
        answer.map_err(|error| match self.connecting.filter(|_| is_late(&error)) {
            Some(limit) => Status::new(0, "NoAnswer", format!("no connection within {} s", limit.as_secs_f32())),
            None => status(error),
        })
    }
}

fn bytes(object: &Value) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(sendable(object).as_ref()).map_err(|error| Status::new(0, "Unsendable", error.to_string()))
}

/// Returns whether the path is of one or several Secrets.
fn is_about_secrets(path: &str) -> bool {
    let rest = path.strip_prefix("/api/v1/");
    let parts: Vec<&str> = rest.map(|rest| rest.split('/').collect()).unwrap_or_default();
    matches!(parts[..], ["secrets", ..] | ["namespaces", _, "secrets", ..])
}

/// Returns the pause that the API server requests.
fn pause(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(refusal) = error else { return None };
    let seconds = refusal.details.as_ref()?.retry_after_seconds;
    let pause = Duration::from_secs(seconds.into());
    (refusal.code == 429 && seconds > 0 && pause <= LONGEST_PAUSE).then_some(pause)
}

/// Returns whether the connection timed out.
fn is_late(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns whether the result of a request is known. It is unknown without a response and after gateway errors (502 and above).
fn is_known<T>(answer: &kube::Result<T>) -> bool {
    match answer {
        Ok(_) => true,
        Err(kube::Error::Api(refusal)) => refusal.code < 502,
        Err(_) => false,
    }
}

fn unsendable(error: kube::core::request::Error) -> Status {
    Status::new(0, "Unsendable", error.to_string())
}

/// Returns the refusal in an error of `kube::Client`; code 0 if there was no response.
pub fn status(error: kube::Error) -> Status {
    match error {
        kube::Error::Api(refusal) => Status::new(refusal.code, &refusal.reason, refusal.message.clone()).sanitized(),
        // The error was raised locally.
        kube::Error::Service(error) if error.is::<Status>() => {
            error.downcast::<Status>().map_or_else(|_| Status::new(0, "NoAnswer", ""), |refusal| *refusal)
        }
        other => {
            // The innermost error has the cause; the others only state that a request failed.
            let around: Vec<String> = causes::all(&other).collect();
            tracing::debug!("no answer from the API server: {other}: {}", around.join(": "));
            Status::new(0, "NoAnswer", causes::innermost(&other)).sanitized()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::{StatusCode, header};
    use axum::response::AppendHeaders;
    use axum::routing::post;
    use olm_core::api::kinds;
    use serde_json::json;

    use super::*;

    /// An API server that returns warnings and accepts only ServiceAccounts.
    async fn warning_server() -> Api {
        let warnings = || [(header::WARNING, "299 - \"first\""), (header::WARNING, "299 - \"say \\\"second\\\"\"")];
        let takes = async move |object: String| (StatusCode::CREATED, AppendHeaders(warnings()), object);
        let refuses = async move || {
            let refusal =
                json!({ "kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403 });
            (StatusCode::FORBIDDEN, AppendHeaders(warnings()), refusal.to_string())
        };
        let broken = async || (StatusCode::BAD_GATEWAY, "a proxy");
        let router = Router::new()
            .route("/api/v1/namespaces/garden/serviceaccounts", post(takes))
            .route("/api/v1/namespaces/garden/secrets", post(refuses))
            .route("/api/v1/namespaces/garden/configmaps", post(broken));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.ok() });
        crate::tls::install_crypto_provider();
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let api = Api::new(kube::Client::try_from(config).unwrap());
        for kind in [&kinds::SERVICE_ACCOUNT, &kinds::SECRET, &kinds::CONFIG_MAP] {
            api.register(kind.into()).await;
        }
        api
    }

    #[tokio::test]
    async fn warnings_are_stored_on_request() {
        let api = warning_server().await;
        let of = |kind: &str| json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": "rose", "namespace": "garden" } });
        let texts = ["first", "say \"second\""];
        let warned = api.with_warnings();
        assert_eq!(warned.create(&of("ServiceAccount")).await, Ok(of("ServiceAccount")));
        assert_eq!(warned.take_warnings(), texts);
        let refusal = warned.create(&of("Secret")).await.unwrap_err();
        assert_eq!(refusal, Status::new(403, "Forbidden", "no").about_secret(), "the message may quote the Secret");
        assert_eq!(
            warned.take_warnings(),
            [warning::ABOUT_SECRET],
            "warnings may quote it too, and refusals have warnings"
        );
        let refusal = warned.create(&of("ConfigMap")).await.unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), (502, "a proxy"));
        assert_eq!(warned.take_warnings(), [""; 0]);
        assert_eq!(api.create(&of("ServiceAccount")).await, Ok(of("ServiceAccount")));
        assert_eq!(api.take_warnings(), [""; 0]);
    }
}
