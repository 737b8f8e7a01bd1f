//! Conversions from the errors of the library modules to [`CliError`]: kind, which determines the exit code, location, hints and
//! causes. They are all in this file, so that an error is reported in the same way by every command.

use std::collections::BTreeMap;
use std::path::Path;

use docker_credential::CredentialRetrievalError;
use kube::config::KubeconfigError;
use olm_core::bundle::Unpacked;
use olm_core::finding::Finding;

use super::error::{CliError, ErrorKind};
use crate::causes::innermost;
use crate::cluster;
use crate::cluster::api::status;
use crate::cluster::endpoints::service;
use crate::cluster::request_error::{Place, RequestError};
use crate::image::{self, BUNDLE_LABEL, CATALOG_LABEL, DATABASE_LABEL, LayoutError};
use crate::observe::{self, ReadFailure};
use crate::registry;

/// The hint for a server that does not respond.
const IS_IT_UP: &str = "check that the cluster is running and the context is correct: kubectl config current-context";

impl From<RequestError> for CliError {
    fn from(error: RequestError) -> Self {
        let RequestError { verb, resource, place, status } = &error;
        let kind = if status.code == 0 { ErrorKind::Unreachable } else { ErrorKind::Api };
        let converted = Self::new(kind, error.to_string()).caused_by(&error);
        let option = match place {
            Place::Cluster => String::new(),
            Place::AllNamespaces => " -A".to_owned(),
            Place::Namespace(name) => format!(" -n {name}"),
        };
        match (status.code, place) {
            (0, _) => converted.hint(IS_IT_UP),
            (401, _) => converted.hint("log in again; kubectl auth whoami prints your user attributes"),
            (_, Place::Namespace(name)) if error.is_of_terminating_namespace() => converted.hint(terminating(name)),
            (403, _) => converted.hint(format!("check your permissions: kubectl auth can-i {verb} {resource}{option}")),
            _ if error.is_not_served() && resource.ends_with(".operators.coreos.com") => {
                converted.hint("OLM's CRDs are not installed in this cluster: check that the context is correct")
            }
            (404, Place::Namespace(name)) if *verb == "create" => {
                converted.hint(format!("if the namespace does not exist, create it: kubectl create namespace {name}"))
            }
            _ => converted,
        }
    }
}

/// Returns the hint for a namespace that is being deleted.
pub(crate) fn terminating(namespace: &str) -> String {
    format!("create it again after it is deleted: kubectl wait --for=delete namespace/{namespace}")
}

impl From<&Finding> for CliError {
    /// Converts a finding about a file to an error at its place.
    fn from(finding: &Finding) -> Self {
        let [file, subject, message] = finding.texts();
        let about = if subject.is_empty() { String::new() } else { format!("{subject}: ") };
        let error = Self::input(format!("{about}{message}"));
        let error = if finding.hint.is_empty() { error } else { error.hint(finding.hint.clone()) };
        match (&*file, finding.line) {
            ("", _) => error,
            (file, 0) => error.at(file),
            (file, line) => error.at(format_args!("{file}:{line}")),
        }
    }
}

impl From<&ReadFailure> for CliError {
    /// Converts a read failure to the error of a command that cannot continue without the missing objects.
    fn from(failure: &ReadFailure) -> Self {
        if let Some(error) = failure.request_error() {
            return error.into();
        }
        let ReadFailure { resource, name, namespace, .. } = failure;
        let converted = Self::new(ErrorKind::Api, failure.to_string());
        let option = if namespace.is_empty() { " -A".to_owned() } else { format!(" -n {namespace}") };
        if failure.is_unreadable() {
            return converted
                .hint(format!("correct or delete it; to print it: kubectl get {resource} {name}{option} -o yaml"));
        }
        if failure.forbidden { converted } else { converted.hint(IS_IT_UP) }
    }
}

impl From<KubeconfigError> for CliError {
    fn from(error: KubeconfigError) -> Self {
        match error {
            KubeconfigError::ReadConfig(io, path) => Self::from(io).at(path.display()),
            KubeconfigError::CurrentContextNotSet => Self::usage("the kubeconfig has no current context")
                .hint("choose one: kubectl config use-context NAME, or pass --context NAME"),
            KubeconfigError::LoadContext(name) => Self::usage(format!("the kubeconfig has no context {name:?}"))
                .hint("kubectl config get-contexts lists its contexts"),
            other => {
                // The parser's message has an excerpt of the text on further lines.
                let text = other.to_string();
                Self::input(format!("kubeconfig: {}", text.lines().next().unwrap_or_default())).caused_by(&other)
            }
        }
    }
}

impl From<kube::Error> for CliError {
    /// Converts an error of creating a client.
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
            E::TooManyValues(_) => Some("no public catalog has that many; divide it, or ask its author to check it"),
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
                    "run kubectl port-forward -n {namespace} service/{service} {port}:{port}, and use grpc://localhost:{port}"
                )
            }),
            E::Address { .. } => Some("write an address as host:port".to_owned()),
            E::NoCatalog { .. } | E::Silent { .. } => {
                Some("check that a catalog is served at this address, as by kubectl olm catalog serve or opm serve".to_owned())
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
                Some(error.hint.unwrap_or("each document must be a Kubernetes object in YAML or JSON").to_owned())
            }
            E::NotAnObject { .. } => Some("an object is a map with apiVersion, kind and metadata".to_owned()),
            E::NoKind { .. } => Some("add both, as kubectl get -o yaml prints them".to_owned()),
            E::NoName { .. } => Some("add metadata.name".to_owned()),
            E::UnknownField { instead: Some(field), .. } => Some(format!("did you mean {field:?}?")),
            E::UnknownField { object, .. } => {
                let kind = object.gvk.kind.to_lowercase();
                Some(format!("remove it; kubectl explain {kind} lists the fields"))
            }
            _ => None,
        };
        mapped(kind, error, error.place(), hint)
    }
}

/// Implements the conversion of an error by the conversion of its reference.
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
    let converted = CliError::new(kind, error.to_string()).caused_by(error);
    CliError { location: place, hints: hint.into_iter().collect(), ..converted }
}

/// Returns the hint for an error, for messages in the status of an object.
pub fn hint(error: &cluster::Error) -> Option<String> {
    CliError::from(error).hints.into_iter().next()
}

/// Converts the result of unpacking a bundle image, including errors.
pub fn unpacked(unpacked: Result<Unpacked, registry::Error>) -> Unpacked {
    unpacked.unwrap_or_else(|error| cluster::Error::from(error).unpacked(hint))
}

/// The hint for an invalid manifest or configuration of an image.
const SEE_MANIFEST: &str = "skopeo inspect --raw docker://IMAGE prints its manifest";

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

/// Returns the hint for an image that was refused.
fn image_hint(error: &image::Error) -> Option<String> {
    use image::Error as E;
    use image::Used;
    let hint = match error {
        E::Reference { .. } => "write an image as registry.example.com/name:tag or registry.example.com/name@sha256:…",
        E::Authorities(_) => "the file must have certificates in PEM",
        E::Unreachable { registry, source } => {
            let cause = innermost(source);
            if cause.contains("certificate") || cause.contains("UnknownIssuer") {
                "trust the registry's certificate authority (--registry-ca FILE)"
            } else if cause.contains("InvalidContentType") || cause.contains("corrupt message") {
                return Some(format!(
                    "the registry seems to use plain HTTP; to allow it, pass --plain-http {registry}"
                ));
            } else {
                "check the registry's name and port, and the network"
            }
        }
        E::Redirect { .. } => "at most a few redirects are allowed, and none from TLS to plain HTTP",
        E::Stalled { .. } => "try again later, or use another registry",
        E::BrokenOff { .. } | E::ShortLayer { .. } => "try again",
        E::LongAnswer { .. } => "no valid image needs that much; contact its author, or the operator of the registry",
        E::Failed { .. } => "try again later",
        E::Denied { registry, credentials } => {
            let login = format!("docker login {registry}");
            return Some(match credentials {
                Used::Withheld => format!(
                    "specify a pull secret in the CatalogSource, or correct it; with --local-credentials your own login ({login}) is used as well"
                ),
                Used::None => {
                    format!(
                        "log in first ({login}), or specify a pull secret: no credentials for {registry} were found"
                    )
                }
                Used::Found => format!(
                    "the credentials for {registry} do not permit pulling this image ({login} again, or correct the pull secret)"
                ),
            });
        }
        E::PushDenied { registry, credentials } => {
            let login = format!("docker login {registry}");
            return Some(match credentials {
                Used::Found => {
                    format!("the credentials for {registry} do not permit pushing to this repository ({login} again)")
                }
                Used::None | Used::Withheld => {
                    format!("log in first ({login}), or pass --authfile FILE: no credentials for {registry} were found")
                }
            });
        }
        E::NoRepository { by_registry: true, .. } => {
            "check its name; some registries require that a repository is created before a push"
        }
        E::UploadLocation { .. } | E::UploadRange { .. } | E::StoredDigest { .. } => {
            "contact the operator of the registry: its responses are invalid"
        }
        E::OtherDigest { .. } => "push to a tag, or to the digest of the image",
        E::SlowPush(_) => "run the command again: it continues with the blobs that are missing",
        E::NoImage { by_registry: true, .. } => {
            "check its name and tag; some registries respond in the same way if an image requires a login"
        }
        E::NoImage { .. } | E::NoRepository { .. } => "check its name, and that the host is a registry",
        E::NoLayer { .. } => "push the image again",
        E::TokenService { .. } | E::PlainTokenService { .. } => {
            "contact the operator of the registry: its token service cannot be trusted"
        }
        E::Header { .. } => "log in again, or contact the operator of the registry",
        E::IdentityToken { .. } => "log in with a user name and a password or access token",
        E::Credentials { source, .. } => match source {
            CredentialRetrievalError::HelperCommunicationError
            | CredentialRetrievalError::HelperFailure { .. }
            | CredentialRetrievalError::MalformedHelperResponse => {
                "the configuration refers to a credential helper (docker-credential-…): check that it is installed and works"
            }
            _ => "log in to the registry again",
        },
        E::Manifest(_) | E::NoConfiguration | E::Configuration(_) | E::EmptyIndex => SEE_MANIFEST,
        E::ManifestVersion(_) => "push the image again with a current tool",
        E::OtherKind { labels, .. } => return Some(kind_hint(labels)),
        E::NoFolder { .. } => "a folder that is a link in the image, or on a volume, is not followed",
        E::WrongDigest { .. } => {
            "the image was changed or damaged in the registry or during the transfer: push it again, or use another registry"
        }
        E::LongPath(_) => "give the file a shorter name",
        E::DockerAnnotations => "use labels, or the media types of OCI",
        E::DockerIndex | E::DockerLayout => "use the media types of OCI here; docker's are for registries",
        E::LeadsOut(_) => "do not use this image: it attempts to write outside of its folder",
        E::Hostile { .. } => "a bundle needs files and directories only: ask its author to build the image again",
        E::TooMuch(_) => {
            "no public catalog or bundle needs that much; ask its author to check it; kubectl olm run accepts larger catalogs in the global namespace with --image-size-limit"
        }
        E::Slow(_) => "the registry or the network is slow: try again later",
        E::Layout { path, problem } => return layout_hint(path, problem),
        _ => return None,
    };
    Some(hint.to_owned())
}

fn layout_hint(path: &Path, problem: &LayoutError) -> Option<String> {
    let known = |names: &[String]| match names {
        [] => "its images have no names".to_owned(),
        names => format!("its images are {}", names.join(", ")),
    };
    let hint = match problem {
        LayoutError::Other { is_of_docker: true } => {
            "it is an archive in docker's format; to convert it: skopeo copy docker-archive:FILE oci-archive:NEWFILE"
        }
        LayoutError::Other { .. } => {
            "an OCI layout has the files oci-layout and index.json; to create one: skopeo copy docker://IMAGE oci:DIR"
        }
        LayoutError::NotAnArchive(_) => "decompress a compressed archive first; a directory is accepted as well",
        LayoutError::OtherContent => "name an OCI layout, or a directory that is empty or does not exist",
        LayoutError::Missing(_) => "it is incomplete: create it again, with all blobs",
        LayoutError::Ambiguous { names, .. } => {
            return Some(format!("select one by oci:{}:NAME; {}", path.display(), known(names)));
        }
        LayoutError::NoImage { names, .. } => return Some(known(names)),
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Returns the hint for an image of an unexpected kind, according to its labels.
fn kind_hint(labels: &BTreeMap<String, String>) -> String {
    let is_labelled = |label: &str| labels.get(label).is_some_and(|value| !value.is_empty());
    if is_labelled(DATABASE_LABEL) {
        "it is an index with a database: convert it to a file-based catalog with opm migrate of an opm before 1.74"
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
            secret_error: Some(Box::new(secret)),
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
