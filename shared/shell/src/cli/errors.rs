//! From errors of the library modules to what a person reads: the kind, which decides the exit code, the place, hints and causes. Here and
//! nowhere else, so that the same refusal reads the same in every command.

use kube::config::KubeconfigError;

use crate::cluster::api::status;
use crate::cluster::request_error::{Place, RequestError};
use crate::error::{CliError, ErrorKind, innermost_cause};
use crate::observe::Gap;

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
                let Self { causes, .. } = Self::input(innermost_cause(&other)).caused_by(&other);
                Self { causes, ..RequestError::of_cluster("get", "/", status(other)).into() }
            }
        }
    }
}
