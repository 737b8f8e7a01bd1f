//! From errors of the library modules to what a person reads: the kind, which decides the exit code, the place, hints and causes. Here and
//! nowhere else, so that the same refusal reads the same in every command.

use std::collections::BTreeMap;
use std::path::Path;

use docker_credential::CredentialRetrievalError;
use kube::config::KubeconfigError;
use olm_core::bundle::Unpacked;

use super::error::{CliError, ErrorKind};
use crate::causes::innermost;
use crate::cluster;
use crate::cluster::api::status;
use crate::cluster::endpoints::service;
use crate::cluster::request_error::{Place, RequestError};
use crate::image::{self, BUNDLE_LABEL, CATALOG_LABEL, DATABASE_LABEL, LayoutError};
use crate::observe::{self, Gap};
use crate::registry;

/// What to do when there is no answer.
const IS_IT_UP: &str = "is the cluster up, and is this the right context? kubectl config current-context";

impl From<RequestError> for CliError {
    fn from(error: RequestError) -> Self {
        let RequestError { verb, resource, place, status } = &error;
        let kind = if status.code == 0 { ErrorKind::Unreachable } else { ErrorKind::Api };
        let told = Self::new(kind, error.to_string()).caused_by(&error);
        let option = match place {
            Place::Cluster => String::new(),
            Place::AllNamespaces => " -A".to_owned(),
            Place::Namespace(name) => format!(" -n {name}"),
        };
        match (status.code, place) {
            (0, _) => told.hint(IS_IT_UP),
            (401, _) => told.hint("log in again; kubectl auth whoami shows as whom the server knows you"),
            (_, Place::Namespace(name)) if error.is_of_terminating_namespace() => told.hint(terminating(name)),
            (403, _) => told.hint(format!("see what is allowed with: kubectl auth can-i {verb} {resource}{option}")),
            _ if error.is_not_served() && resource.ends_with(".operators.coreos.com") => {
                told.hint("OLM's CRDs are not installed there: is this the right context?")
            }
            (404, Place::Namespace(name)) if *verb == "create" => {
                told.hint(format!("is the namespace there? kubectl create namespace {name}"))
            }
            _ => told,
        }
    }
}

/// What to do about a namespace that is being deleted.
pub(crate) fn terminating(namespace: &str) -> String {
    format!("when it is gone, create it anew: kubectl wait --for=delete namespace/{namespace}")
}

impl From<&Gap> for CliError {
    /// The gap as what ends a command that can say nothing without.
    fn from(gap: &Gap) -> Self {
        if let Some(error) = gap.request_error() {
            return error.into();
        }
        let Gap { resource, name, namespace, .. } = gap;
        let told = Self::new(ErrorKind::Api, gap.to_string());
        let option = if namespace.is_empty() { " -A".to_owned() } else { format!(" -n {namespace}") };
        if gap.is_unreadable() {
            return told.hint(format!("mend or delete it: kubectl get {resource} {name}{option} -o yaml shows it"));
        }
        if gap.forbidden { told } else { told.hint(IS_IT_UP) }
    }
}

impl From<KubeconfigError> for CliError {
    fn from(error: KubeconfigError) -> Self {
        match error {
            KubeconfigError::ReadConfig(io, path) => Self::from(io).at(path.display()),
            KubeconfigError::CurrentContextNotSet => Self::usage("the kubeconfig has no current context")
                .hint("choose one: kubectl config use-context NAME, or pass --context NAME"),
            KubeconfigError::LoadContext(name) => Self::usage(format!("the kubeconfig has no context {name:?}"))
                .hint("kubectl config get-contexts lists them"),
            other => {
                // A parser shows the place in the text on more lines.
                let text = other.to_string();
                Self::input(format!("kubeconfig: {}", text.lines().next().unwrap_or_default())).caused_by(&other)
            }
        }
    }
}

impl From<kube::Error> for CliError {
    /// Of a client that could not be made.
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::InferConfig(e) => Self::usage(e.to_string()),
            kube::Error::InferKubeconfig(e) => e.into(),
            kube::Error::Auth(e) => Self::new(ErrorKind::Unreachable, format!("cannot log in: {e}")),
            other => {
                let Self { causes, .. } = Self::input(innermost(&other)).caused_by(&other);
                Self { causes, ..RequestError::of_cluster("get", "/", status(other)).into() }
            }
        }
    }
}

impl From<&registry::Error> for CliError {
    fn from(error: &registry::Error) -> Self {
        use registry::Error as E;
        let kind = match error {
            E::Pull(error) => return error.into(),
            E::Task(_) => ErrorKind::Internal,
            _ if error.is_transient() => ErrorKind::Io,
            _ => ErrorKind::Input,
        };
        let hint = match error {
            E::Full(_) => Some("delete or divide catalogs of the namespace"),
            E::TooManyValues(_) => {
                Some("no public catalog needs that many: divide it, or ask its author what it contains")
            }
            E::Certificate { .. } => Some("both are PEM files: a certificate chain and its private key"),
            _ => None,
        };
        mapped(kind, error, error.place(), hint.map(str::to_owned))
    }
}

impl From<&cluster::Error> for CliError {
    fn from(error: &cluster::Error) -> Self {
        use cluster::Error as E;
        let kind = match error {
            E::Registry(error) => return error.into(),
            E::Image(error) => return error.into(),
            E::CatalogSource { source, .. } => {
                let Self { kind, hints, causes, .. } = (&**source).into();
                return Self { hints, causes, ..mapped(kind, error, error.place(), None) };
            }
            E::PullSecret { .. } | E::ConfigMap { .. } | E::NoConfigMap { .. } => ErrorKind::Api,
            E::Panicked(_) => ErrorKind::Internal,
            _ if error.is_transient() => ErrorKind::Unreachable,
            _ => ErrorKind::Input,
        };
        let hint = match error {
            E::Spec(_) => Some("correct the CatalogSource".to_owned()),
            E::AddressOfCluster(address) => service(address).map(|(namespace, service, port)| {
                format!(
                    "run kubectl port-forward -n {namespace} service/{service} {port}:{port}, and name grpc://localhost:{port}"
                )
            }),
            E::Address { .. } => Some("an address is written as host:port".to_owned()),
            E::NoCatalog { .. } | E::Silent { .. } => {
                Some("check that a registry is served there, as kubectl olm catalog serve and opm serve do".to_owned())
            }
            _ => None,
        };
        mapped(kind, error, error.place(), hint)
    }
}

impl From<&observe::Error> for CliError {
    fn from(error: &observe::Error) -> Self {
        use observe::Error as E;
        let kind = match error {
            E::Request(error) => return error.clone().into(),
            E::Registry(error) => return error.into(),
            E::Several { first, others } => {
                let mut all = Self::from(&**first);
                all.others.extend(others.iter().map(Self::from));
                return all;
            }
            E::Unreadable { .. } => ErrorKind::Io,
            _ => ErrorKind::Input,
        };
        let hint = match error {
            E::Syntax { error, .. } => {
                Some(error.hint.unwrap_or("every document has to be a Kubernetes object in YAML or JSON").to_owned())
            }
            E::NotAnObject { .. } => Some("an object is a map with apiVersion, kind and metadata".to_owned()),
            E::NoKind { .. } => Some("give both, as kubectl get -o yaml prints them".to_owned()),
            E::NoName { .. } => Some("give it a name".to_owned()),
            E::UnknownField { instead: Some(field), .. } => Some(format!("did you mean {field:?}?")),
            E::UnknownField { object, .. } => {
                let kind = object.gvk.kind.to_lowercase();
                Some(format!("remove it: kubectl explain {kind} lists the fields"))
            }
            _ => None,
        };
        mapped(kind, error, error.place(), hint)
    }
}

/// Defines the conversion of an error from that of its reference.
macro_rules! by_reference {
    ($($error:ty),*) => {
        $(impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                (&error).into()
            }
        })*
    };
}

by_reference!(image::Error, image::PullError, registry::Error, cluster::Error, observe::Error);

fn mapped(kind: ErrorKind, error: &dyn std::error::Error, place: Option<String>, hint: Option<String>) -> CliError {
    let told = CliError::new(kind, error.to_string()).caused_by(error);
    CliError { location: place, hints: hint.into_iter().collect(), ..told }
}

/// What to try after an error, for messages in the status of an object.
pub fn hint(error: &cluster::Error) -> Option<String> {
    CliError::from(error).hints.into_iter().next()
}

/// What became of an attempt to unpack a bundle image, errors included.
pub fn unpacked(unpacked: Result<Unpacked, registry::Error>) -> Unpacked {
    unpacked.unwrap_or_else(|error| cluster::Error::from(error).unpacked(hint))
}

/// What to do about a response, a file or an image that is no image.
const SEE_MANIFEST: &str = "skopeo inspect --raw docker://IMAGE shows what is there";

impl From<&image::Error> for CliError {
    fn from(error: &image::Error) -> Self {
        use image::Error::{Reference, Task};
        let kind = match error {
            Reference { .. } => ErrorKind::Usage,
            Task(_) => ErrorKind::Internal,
            _ if error.is_local() => ErrorKind::Io,
            _ if error.is_transient() => ErrorKind::Unreachable,
            _ => ErrorKind::Input,
        };
        mapped(kind, error, error.file().map(|file| file.display().to_string()), image_hint(error))
    }
}

impl From<&image::PullError> for CliError {
    fn from(error: &image::PullError) -> Self {
        Self::from(error.error()).at(error.place())
    }
}

/// What to try after an image was refused.
fn image_hint(error: &image::Error) -> Option<String> {
    use image::Error as E;
    use image::Used;
    let hint = match error {
        E::Reference { .. } => {
            "an image is named as registry.example.com/name:tag or registry.example.com/name@sha256:…"
        }
        E::Authorities(_) => "they are certificates in PEM",
        E::Unreachable { registry, source } => {
            let cause = innermost(source);
            if cause.contains("certificate") || cause.contains("UnknownIssuer") {
                "trust the registry's certificate authority (--registry-ca FILE)"
            } else if cause.contains("InvalidContentType") || cause.contains("corrupt message") {
                return Some(format!(
                    "the registry seems to speak plain HTTP: to allow it, pass --plain-http {registry}"
                ));
            } else {
                "check its name and port, and the network"
            }
        }
        E::Redirect { .. } => "a registry redirects a few times at most, and never from TLS to plain HTTP",
        E::Stalled { .. } => "try again later, or ask another registry",
        E::BrokenOff { .. } | E::ShortLayer { .. } => "try again",
        E::LongAnswer { .. } => "no image needs that much: ask its author, or the operator of the registry",
        E::Failed { .. } => "try again later",
        E::Denied { registry, credentials } => {
            let login = format!("docker login {registry}");
            return Some(match credentials {
                Used::Withheld => format!(
                    "name a pull secret in the CatalogSource, or correct it; with --local-credentials your own login ({login}) counts, too"
                ),
                Used::None => {
                    format!("log in first ({login}), or name a pull secret: no credentials for {registry} were found")
                }
                Used::Found => format!(
                    "the credentials for {registry} may not pull this image ({login} again, or correct the pull secret)"
                ),
            });
        }
        E::NoImage { by_registry: true, .. } => {
            "compare name and tag with what was pushed; some registries respond in the same way for images that need a login"
        }
        E::NoImage { .. } => "compare its name with what was pushed, and the host with that of a registry",
        E::NoLayer { .. } => "push the image again",
        E::TokenService { .. } | E::PlainTokenService { .. } => {
            "ask the operator of the registry: its token service cannot be trusted"
        }
        E::Header { .. } => "log in again, or ask the operator of the registry",
        E::IdentityToken { .. } => "log in with a user name and a password or access token",
        E::Credentials { source, .. } => match source {
            CredentialRetrievalError::HelperCommunicationError
            | CredentialRetrievalError::HelperFailure { .. }
            | CredentialRetrievalError::MalformedHelperResponse => {
                "the configuration names a docker-credential-… program: check that it is installed and works"
            }
            _ => "log in to the registry again",
        },
        E::Manifest(_) | E::NoConfiguration | E::Configuration(_) | E::EmptyIndex => SEE_MANIFEST,
        E::ManifestVersion(_) => "push the image again with a current tool",
        E::OtherKind { labels, .. } => return Some(kind_hint(labels)),
        E::NoFolder { .. } => "a folder that is a link in the image, or on a volume, is not followed",
        E::WrongDigest { .. } => {
            "the image was changed or damaged in the registry or on the way: push it again, or ask another registry"
        }
        E::LeadsOut(_) => "do not use this image: it attempts to write outside of its folder",
        E::TooMuch(_) => {
            "no public catalog or bundle needs that much: ask its author what it contains; kubectl olm run accepts larger catalogs in the global namespace with --image-size-limit"
        }
        E::Slow(_) => "the registry or the network is slow: try again later",
        E::Layout { path, problem } => return layout_hint(path, problem),
        _ => return None,
    };
    Some(hint.to_owned())
}

fn layout_hint(path: &Path, problem: &LayoutError) -> Option<String> {
    let known = |names: &[String]| match names {
        [] => "none has a name".to_owned(),
        names => format!("they are {}", names.join(", ")),
    };
    let hint = match problem {
        LayoutError::Other { is_of_docker: true } => {
            "it is an archive in docker's own format: skopeo copy docker-archive:FILE oci-archive:NEWFILE converts it"
        }
        LayoutError::Other { .. } => {
            "an OCI layout has the files oci-layout and index.json; skopeo copy docker://IMAGE oci:DIR makes one"
        }
        LayoutError::NotAnArchive(_) => {
            "a compressed archive has to be decompressed first; a directory is read as well"
        }
        LayoutError::Missing(_) => "it is incomplete: make it again, with all of its blobs",
        LayoutError::Ambiguous { names, .. } => {
            return Some(format!("name one: oci:{}:NAME; {}", path.display(), known(names)));
        }
        LayoutError::NoImage { names, .. } => return Some(known(names)),
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What an image is that is not what was wanted, as far as its labels tell.
fn kind_hint(labels: &BTreeMap<String, String>) -> String {
    let is_labelled = |label: &str| labels.get(label).is_some_and(|value| !value.is_empty());
    if is_labelled(DATABASE_LABEL) {
        "it is an index with a database: make a file-based catalog of it with opm migrate of an opm before 1.74"
            .to_owned()
    } else if is_labelled(CATALOG_LABEL) {
        "it is a catalog".to_owned()
    } else if is_labelled(BUNDLE_LABEL) {
        "it is a bundle".to_owned()
    } else if labels.is_empty() {
        format!("it has no labels at all; a catalog has the label {CATALOG_LABEL}")
    } else {
        format!("its labels are {}", labels.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use olm_core::api::status::Status;

    use super::*;

    fn denied() -> image::Error {
        image::Error::Denied { registry: "registry.example.com".to_owned(), credentials: image::Used::None }
    }

    #[test]
    fn errors_of_library_modules_keep_their_place_hint_and_causes() {
        let layout = image::Error::Layout {
            path: "tea.tar".into(),
            problem: LayoutError::NotAnArchive(std::io::Error::other("it is tea")),
        };
        let error = CliError::from(layout);
        assert_eq!(error.to_string(), "tea.tar: this is not a tar archive: it is tea");
        assert_eq!((error.kind, error.hints.len(), error.causes.len()), (ErrorKind::Input, 1, 0));

        let status = Status::new(403, "Forbidden", "no");
        let [namespace, name] = ["garden", "market"].map(str::to_owned);
        let secret = cluster::Error::PullSecret { namespace: namespace.clone(), name: "login".to_owned(), status };
        let of_source = cluster::Error::CatalogSource {
            namespace,
            name,
            unread: Some(Box::new(secret)),
            source: Box::new(denied().into()),
        };
        let error = CliError::from(&of_source);
        assert_eq!(
            error.to_string(),
            "catalogsource/garden/market: registry.example.com denies pull access to the image; \
             cannot read pull secret garden/login: no"
        );
        assert!(error.kind == ErrorKind::Input && error.hints[0].starts_with("log in first"), "{error:?}");
        assert_eq!(of_source.status_message(hint), format!("{error} ({})", error.hints[0]));
    }

    #[test]
    fn only_transient_errors_are_retried() {
        let registry = || "registry.example.com".to_owned();
        for (error, kind) in [
            (denied(), ErrorKind::Input),
            (image::Error::Stalled { registry: registry() }, ErrorKind::Unreachable),
            (std::io::Error::from(std::io::ErrorKind::StorageFull).into(), ErrorKind::Io),
        ] {
            let error = cluster::Error::from(error);
            assert_eq!(CliError::from(&error).kind, kind);
            let is_later = matches!(error.unpacked(hint), Unpacked::Later(_));
            assert_eq!(is_later, kind != ErrorKind::Input, "{error}");
        }
    }
}
