//! The registration of this process with the API server: its certificate, and the objects that lead to it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, Preconditions};
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::distribution::{CONTROLLERS, RELEASE};
use olm_core::packages::serve::front_proxy::{CONFIG_MAP, FrontProxy};
use olm_core::packages::serve::registration;
use olm_core::plan::{Certificate, Issued};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::Value;
use tokio::sync::watch;

use crate::cli::{CliError, ErrorKind};
use crate::cluster::api::{Api, ListQuery, Resource};
use crate::cluster::certificate::issue;
use crate::cluster::lease::Permit;
use crate::cluster::request_error::RequestError;

/// How often the registration is checked: whether the authority of the API server has changed, whether the certificate has to be renewed,
/// and whether another client has changed the objects.
const PERIOD: Duration = Duration::from_mins(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(5);
/// How long the removal may take when the process ends.
const REMOVAL: Duration = Duration::from_secs(5);

/// The registration.
pub(super) struct Registration {
    api: Api,
    namespace: String,
    address: SocketAddr,
    server: String,
    front_proxy: watch::Sender<FrontProxy>,
    tls: watch::Sender<Arc<ServerConfig>>,
    certificate: Mutex<Served>,
}

/// The certificate that is served.
struct Served {
    certificate: Certificate,
    issued: Arc<Issued>,
}

impl Served {
    fn new(namespace: &str) -> Result<Self, String> {
        let certificate = registration::certificate(namespace, Timestamp::now());
        let issued = issue(&certificate).map_err(|e| format!("cannot issue a certificate: {e}"))?;
        Ok(Self { certificate, issued: Arc::new(issued) })
    }
}

impl Registration {
    /// Reads how the API server authenticates itself, and issues a certificate.
    ///
    /// # Errors
    /// The ConfigMap cannot be used, or another server serves the API.
    pub(super) async fn prepare(api: Api, namespace: &str, address: SocketAddr) -> Result<Self, CliError> {
        let cannot = |what: String| CliError::new(ErrorKind::Api, format!("cannot serve PackageManifests: {what}"));
        let front_proxy = match read(&api).await {
            Ok(Ok(front_proxy)) => front_proxy,
            Ok(Err(why)) => {
                let (namespace, name) = CONFIG_MAP;
                let hint = "kube-apiserver publishes it if it is started with --requestheader-client-ca-file";
                return Err(cannot(format!("ConfigMap {namespace}/{name}: {why}")).hint(hint));
            }
            Err(status) => return Err(RequestError::new("get", "configmaps", CONFIG_MAP.0, status).into()),
        };
        let api_services = kinds::API_SERVICE.resource();
        let server = api.version().await.map_err(|status| RequestError::of_cluster("get", "/version", status))?;
        if let Err(refusal) = require_own(&api).await {
            return Err(match refusal {
                Refusal::Foreign(message) => cannot(message).hint(FOREIGN_HINT),
                Refusal::Request(status) => RequestError::of_cluster("get", api_services, status).into(),
            });
        }
        let served = Served::new(namespace).map_err(cannot)?;
        let tls = tls(&front_proxy, &served.issued).map_err(cannot)?;
        // It is not discovered: a subresource of no object.
        api.register(Resource {
            gvk: object::Gvk::new("authorization.k8s.io", "v1", "SubjectAccessReview"),
            plural: "subjectaccessreviews".to_owned(),
            namespaced: false,
        })
        .await;
        Ok(Self {
            api,
            namespace: namespace.to_owned(),
            address,
            server,
            front_proxy: watch::Sender::new(front_proxy),
            tls: watch::Sender::new(tls),
            certificate: Mutex::new(served),
        })
    }

    /// Returns how the API server authenticates itself.
    pub(super) fn front_proxy(&self) -> watch::Receiver<FrontProxy> {
        self.front_proxy.subscribe()
    }

    /// Returns the TLS configuration.
    pub(super) fn tls(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.tls.subscribe()
    }

    /// Applies the objects and checks them from time to time, as long as this process may write.
    pub(super) async fn keep(&self, mut permit: Permit) {
        let (mut reported, mut is_registered) = (String::new(), false);
        loop {
            let refreshed = self.refresh().await;
            let applied = match refreshed {
                Ok(()) if permit.is_given() => self.apply().await,
                other => other,
            };
            let pause = match applied {
                Ok(()) => {
                    if permit.is_given() && !(is_registered && reported.is_empty()) {
                        is_registered = true;
                        tracing::info!(address = %self.address, api_service = registration::api_service(), "serving PackageManifests");
                    }
                    reported.clear();
                    PERIOD
                }
                Err(why) => {
                    if why != reported {
                        tracing::warn!("PackageManifests cannot be served: {why}");
                    }
                    reported = why;
                    PAUSE
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = permit.changed() => {}
            }
        }
    }

    /// Follows changes of the API server's authority, and renews the certificate.
    async fn refresh(&self) -> Result<(), String> {
        let (namespace, name) = CONFIG_MAP;
        let read = read(&self.api).await.map_err(|refusal| refusal.to_string());
        let front_proxy = read.flatten().map_err(|why| format!("ConfigMap {namespace}/{name}: {why}"))?;
        let is_new = *self.front_proxy.borrow() != front_proxy;
        let is_due = registration::is_due(&self.served().certificate, Timestamp::now());
        if is_due {
            *self.served() = Served::new(&self.namespace)?;
        }
        if is_new || is_due {
            self.tls.send_replace(tls(&front_proxy, &self.issued())?);
            self.front_proxy.send_replace(front_proxy);
        }
        Ok(())
    }

    fn objects(&self, authority: &str) -> Vec<Value> {
        let (ip, port) = (self.address.ip().to_string(), self.address.port());
        registration::objects(&self.namespace, (&ip, port), authority, &self.server)
    }

    async fn apply(&self) -> Result<(), String> {
        require_own(&self.api).await.map_err(|refusal| match refusal {
            Refusal::Foreign(message) => message,
            Refusal::Request(status) => status.to_string(),
        })?;
        let authority = self.issued().authority.clone();
        let mut objects = self.objects(&authority);
        // A cluster whose roles cannot be read is not one of an installation.
        if let Ok(Some(role)) = self.api.get(&kinds::CLUSTER_ROLE.object("", CONTROLLERS)).await
            && object::label(&role, RELEASE).is_some()
            && !object::is_deleting(&role)
        {
            registration::set_owner(&mut objects, &role);
        }
        for object in objects {
            let applied = self.api.apply(&object).await;
            applied.map_err(|refusal| format!("cannot apply {}: {refusal}", ObjectRef::from_object(&object)))?;
        }
        Ok(())
    }

    /// Deletes the objects, if they lead to this process.
    pub(super) async fn remove(&self) {
        let authority = self.issued().authority.clone();
        let removal = async {
            match read_own(&self.api).await? {
                Some(current) if registration::leads_to(&current, &authority) => {
                    delete_with(&self.api, &current, self.objects(&authority)).await
                }
                _ => Ok(()),
            }
        };
        match tokio::time::timeout(REMOVAL, removal).await {
            Ok(Ok(())) => {}
            Ok(Err((target, refusal))) => tracing::warn!("cannot delete {target}: {refusal}"),
            Err(_) => {
                let name = registration::api_service();
                tracing::warn!("cannot delete APIService {name}: no response within {} s", REMOVAL.as_secs());
            }
        }
    }

    fn issued(&self) -> Arc<Issued> {
        self.served().issued.clone()
    }

    fn served(&self) -> std::sync::MutexGuard<'_, Served> {
        self.certificate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes what a former process has left that was killed: an APIService without a server blocks the deletion of namespaces. For a process
/// that does not serve PackageManifests itself, as long as it may write. It ends when nothing is left.
pub(in crate::run) async fn clean(api: Api, mut permit: Permit) {
    loop {
        if permit.is_given() {
            match remove_abandoned(&api).await {
                // The API server reports within half a minute that it does not reach a process.
                Ok(Left::InUse) => {}
                Ok(Left::Nothing) => return,
                Err((target, refusal)) => {
                    tracing::debug!("cannot clean up {target}: {refusal}");
                    // Serving is optional, and so are its permissions.
                    if refusal.is_forbidden() {
                        return;
                    }
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = permit.changed() => {}
        }
    }
}

/// What is left of former processes.
enum Left {
    Nothing,
    /// An APIService whose process responds, or about which the API server has not decided yet.
    InUse,
}

async fn remove_abandoned(api: &Api) -> Result<Left, (ObjectRef, Status)> {
    let Some(current) = read_own(api).await? else { return Ok(Left::Nothing) };
    if !registration::is_abandoned(&current) {
        return Ok(Left::InUse);
    }
    let mut others = Vec::new();
    for kind in registration::KINDS {
        let resource = Resource::from(kind);
        let query = ListQuery::all(&resource).labelled(&registration::selector());
        // One of the kinds is not served by all versions of Kubernetes.
        let found = api.list(&query).await.map(|page| page.objects).unwrap_or_default();
        others.extend(
            found.into_iter().filter(|object| registration::belongs_to(object, &[registration::namespace(&current)])),
        );
    }
    delete_with(api, &current, others).await?;
    tracing::info!(
        api_service = registration::api_service(),
        "deleted the registration of a former run --packages, which no process serves"
    );
    Ok(Left::Nothing)
}

/// Reads the APIService, if such a process has created it.
async fn read_own(api: &Api) -> Result<Option<Value>, (ObjectRef, Status)> {
    let target = registration::api_service_ref();
    let found = api.get(&target).await.map_err(|refusal| (target, refusal))?;
    Ok(found.filter(registration::is_own))
}

/// Deletes the APIService as it was read, and then what leads to its process.
async fn delete_with(api: &Api, api_service: &Value, others: Vec<Value>) -> Result<(), (ObjectRef, Status)> {
    delete(api, api_service).await?;
    for object in others {
        delete(api, &object).await?;
    }
    Ok(())
}

/// Deletes an object; if it was read, only this one.
async fn delete(api: &Api, object: &Value) -> Result<(), (ObjectRef, Status)> {
    let target = ObjectRef::from_object(object);
    let uid = Some(object::uid(object)).filter(|uid| !uid.is_empty()).map(str::to_owned);
    let preconditions = uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None });
    match api.delete(&target, &DeleteParams { preconditions, ..DeleteParams::background() }).await {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.is_not_found() || refusal.is_conflict() => Ok(()),
        Err(refusal) => Err((target, refusal)),
    }
}

const FOREIGN_HINT: &str = "once no other server is used, delete the APIService. OLM creates it again as long as its \
                            ClusterServiceVersion packageserver exists";

/// Why the APIService cannot be applied.
enum Refusal {
    /// It belongs to another server.
    Foreign(String),
    Request(Status),
}

async fn require_own(api: &Api) -> Result<(), Refusal> {
    let target = registration::api_service_ref();
    match api.get(&target).await {
        Ok(Some(existing)) if !registration::is_own(&existing) => {
            let of = |field: &str| object::text(&existing, &["spec", "service", field]).to_owned();
            let (name, namespace, service) = (&target.name, of("namespace"), of("name"));
            Err(Refusal::Foreign(format!("APIService {name} leads to another server: Service {namespace}/{service}")))
        }
        Ok(_) => Ok(()),
        Err(status) => Err(Refusal::Request(status)),
    }
}

async fn read(api: &Api) -> Result<Result<FrontProxy, String>, Status> {
    let (namespace, name) = CONFIG_MAP;
    let target = ObjectRef { gvk: kinds::CONFIG_MAP.gvk(), namespace: namespace.to_owned(), name: name.to_owned() };
    Ok(api.get(&target).await?.map_or_else(|| Err("it does not exist".to_owned()), |found| FrontProxy::read(&found)))
}

/// Returns the configuration with this certificate, which requires a client certificate of the API server.
fn tls(front_proxy: &FrontProxy, issued: &Issued) -> Result<Arc<ServerConfig>, String> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(front_proxy.authority.as_bytes()) {
        let authority = authority.map_err(|e| format!("requestheader-client-ca-file: {e}"))?;
        roots.add(authority).map_err(|e| format!("requestheader-client-ca-file: {e}"))?;
    }
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
    let verifier = verifier.map_err(|e| format!("requestheader-client-ca-file: {e}"))?;
    let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).map_err(|e| e.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).map_err(|e| e.to_string())?;
    let config = ServerConfig::builder().with_client_cert_verifier(verifier);
    let mut config = config.with_single_cert(vec![certificate], key).map_err(|e| e.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
