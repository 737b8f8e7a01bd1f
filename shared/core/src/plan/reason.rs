//! Reasons why a plan does nothing (more): typed for programs, with a message and a hint for users.

use jiff::Timestamp;
use serde::Serialize;

use crate::api::cluster_service_version::reason;
use crate::api::object::{self, ObjectRef};
use crate::settings::PLAIN_DISABLED;
use crate::visible::word;

/// The severity of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong.
    Settled,
    /// An operation is in progress; no action is required.
    Waiting,
    /// A user has to act.
    Blocked,
}

/// The bundle whose step blocks an InstallPlan, and the other bundles that it blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockingBundle {
    /// Name of its ClusterServiceVersion.
    pub csv: String,
    /// The Subscriptions that request it.
    pub subscriptions: Vec<String>,
    /// The ClusterServiceVersions of other bundles in the same InstallPlan, which are blocked, too.
    pub others: Vec<String>,
}

impl std::fmt::Display for BlockingBundle {
    /// Formats a suffix for a message; empty if the bundle is unknown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { csv, subscriptions, others } = self;
        if csv.is_empty() {
            return Ok(());
        }
        let of = match &subscriptions[..] {
            [] => String::new(),
            [one] => format!(" of Subscription {one}"),
            several => format!(" of Subscriptions {}", several.join(", ")),
        };
        let blocks =
            if others.is_empty() { String::new() } else { format!(", which also blocks {}", others.join(", ")) };
        write!(f, " (bundle {csv}{of}{blocks})")
    }
}

/// A reason why the plan of a key does nothing (more).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The namespace has no OperatorGroup.
    #[error("namespace {namespace} has no OperatorGroup")]
    NoOperatorGroup {
        /// The namespace.
        namespace: String,
    },
    /// The namespace has several OperatorGroups.
    #[error("namespace {namespace} has several OperatorGroups: {}", names.join(", "))]
    TooManyOperatorGroups {
        /// The namespace.
        namespace: String,
        /// The OperatorGroups.
        names: Vec<String>,
    },
    /// The content of a catalog is not known yet.
    #[error("catalog {namespace}/{name} is not ready: {state}")]
    CatalogNotReady {
        /// Namespace of the catalog.
        namespace: String,
        /// Name of the catalog.
        name: String,
        /// Connection state and error.
        state: String,
    },
    /// The status of an object is not written yet, because it waits for something.
    #[error("{object} waits: {message}")]
    StatusWaits {
        /// The object.
        object: String,
        /// What it waits for.
        message: String,
    },
    /// A namespace is being deleted: the API server refuses to create anything in it.
    #[error("namespace {namespace} is being deleted, so nothing is created in it")]
    NamespaceTerminating {
        /// The namespace.
        namespace: String,
    },
    /// A catalog cannot be read: at least one attempt has failed, and it is retried.
    #[error("catalog {namespace}/{name} cannot be read: {error}{}", if *stale { "; the content that was read before is still used" } else { "" })]
    CatalogUnavailable {
        /// Namespace of the catalog.
        namespace: String,
        /// Name of the catalog.
        name: String,
        /// Why the last attempt failed.
        error: String,
        /// Whether previously read content is used until the catalog can be read.
        stale: bool,
    },
    /// A catalog was served from a local directory by an earlier run of the controllers, and the directory was not passed to this run.
    #[error(
        "catalog {namespace}/{name} was served from a directory that was not passed, so {} not updated",
        subscriptions_are(subscriptions)
    )]
    CatalogNotProvided {
        /// Namespace of the catalog.
        namespace: String,
        /// Name of the catalog.
        name: String,
        /// The Subscriptions that use it, `NAMESPACE/NAME`.
        subscriptions: Vec<String>,
        /// The value for `--catalog`: `NAME=DIR`, or `NAME.NAMESPACE=DIR`.
        flag: String,
        /// Whether everything that the Subscriptions of the namespace request is installed.
        installed: bool,
    },
    /// The Subscriptions of a namespace cannot be satisfied.
    #[error("the Subscriptions of namespace {namespace} cannot be satisfied: {message}")]
    Unsatisfiable {
        /// The namespace.
        namespace: String,
        /// OLM's message.
        message: String,
    },
    /// A bundle exists only as an image, which is not pulled yet.
    #[error("bundle {bundle} waits for its image {image}: {message}")]
    BundleUnpacking {
        /// Name of the bundle.
        bundle: String,
        /// The image.
        image: String,
        /// What it waits for.
        message: String,
    },
    /// A bundle exists only as an image, which cannot be pulled or read.
    #[error("bundle {bundle} cannot be unpacked: {message}")]
    BundleUnpackFailed {
        /// Name of the bundle.
        bundle: String,
        /// The image.
        image: String,
        /// Why not.
        message: String,
    },
    /// An InstallPlan waits for approval.
    #[error("InstallPlan {namespace}/{name} waits for approval{}", suffix(csvs))]
    ApprovalNeeded {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// What it installs.
        csvs: Vec<String>,
    },
    /// An InstallPlan failed and is not retried.
    #[error("InstallPlan {namespace}/{name} failed: {message}{blocking_bundle}")]
    InstallPlanFailed {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// Why.
        message: String,
        /// The bundle whose step failed.
        blocking_bundle: BlockingBundle,
    },
    /// An InstallPlan is complete except for objects that its bundles mark as optional.
    #[error("InstallPlan {namespace}/{name} is complete without optional {}", objects.join(", "))]
    OptionalNotCreated {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// The objects, `Kind name`.
        objects: Vec<String>,
    },
    /// An InstallPlan waits for its previous actions to take effect.
    #[error("InstallPlan {namespace}/{name} waits: {message}")]
    InstallPlanWaits {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// What it waits for.
        message: String,
    },
    /// A step of an InstallPlan failed and is retried.
    #[error("InstallPlan {namespace}/{name} retries: {message}{blocking_bundle}{}", tried(*attempts, *next_at))]
    InstallPlanRetries {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// Why the step failed.
        message: String,
        /// The bundle whose step failed.
        blocking_bundle: BlockingBundle,
        /// Number of consecutive refusals by the API server; 0 if no request was sent.
        attempts: u32,
        /// Time of the next attempt if nothing changes before.
        next_at: Option<Timestamp>,
        /// Time at which the plan fails if the step keeps failing; `None` for failures that never end a plan.
        fails_at: Option<Timestamp>,
    },
    /// Requirements of a ClusterServiceVersion are not met.
    #[error("ClusterServiceVersion {namespace}/{name} lacks: {}", missing.join("; "))]
    RequirementsNotMet {
        /// Namespace of the CSV.
        namespace: String,
        /// Name of the CSV.
        name: String,
        /// The requirements that are not met, `Kind name: message`.
        missing: Vec<String>,
    },
    /// The API server's discovery does not state whether kinds that a ClusterServiceVersion needs are served.
    #[error(
        "it is not known whether the API server serves {}, which ClusterServiceVersion {namespace}/{name} needs: {message}{}",
        apis.join(", "),
        if *assumed_served { "; they were served at the last check, and are assumed to be" } else { "" }
    )]
    ApisUnknown {
        /// Namespace of the CSV.
        namespace: String,
        /// Name of the CSV.
        name: String,
        /// The kinds, `Rose (garden.example.com/v1)`.
        apis: Vec<String>,
        /// Whether they are assumed to be served, because they were when the CSV was last checked.
        assumed_served: bool,
        /// Why it is not known.
        message: String,
    },
    /// A ClusterServiceVersion waits for its Deployments.
    #[error("ClusterServiceVersion {namespace}/{name} waits: {message}")]
    NotHealthy {
        /// Namespace of the CSV.
        namespace: String,
        /// Name of the CSV.
        name: String,
        /// What it waits for.
        message: String,
    },
    /// A ClusterServiceVersion failed.
    #[error("ClusterServiceVersion {namespace}/{name} failed ({failure_reason}): {message}")]
    CsvFailed {
        /// Namespace of the CSV.
        namespace: String,
        /// Name of the CSV.
        name: String,
        /// `status.reason`
        failure_reason: String,
        /// `status.message`
        message: String,
    },
    /// A ClusterServiceVersion waits for the one that it replaces, or for the one that replaces it.
    #[error("ClusterServiceVersion {namespace}/{name} waits for {other}: {message}")]
    WaitsForCsv {
        /// Namespace of both.
        namespace: String,
        /// Name of the one that waits.
        name: String,
        /// Name of the other.
        other: String,
        /// What it waits for.
        message: String,
    },
    /// The spec of an object is invalid.
    #[error("{object}: {message}")]
    Invalid {
        /// The object.
        object: String,
        /// What is wrong.
        message: String,
    },
    /// A part of an object is invalid and ignored; processing continues without it.
    #[error("{object}: {message}")]
    Ignored {
        /// The object.
        object: String,
        /// What is ignored, and why.
        message: String,
    },
    /// The image of a bundle was not provided to a simulation, and cannot be pulled.
    #[error("bundle {bundle}: {needs}")]
    BundleNotProvided {
        /// Name of its ClusterServiceVersion.
        bundle: String,
        /// The image.
        image: String,
        /// What was not provided.
        needs: String,
    },
    /// Something that an object refers to does not exist.
    #[error("{object} needs {needs}, which does not exist")]
    Missing {
        /// The object.
        object: String,
        /// What it needs.
        needs: String,
    },
    /// An object exists but cannot be read, so everything that depends on it waits.
    #[error("{object} cannot be read, so nothing is done that depends on it: {message}")]
    Unreadable {
        /// The object.
        object: String,
        /// Why it cannot be read.
        message: String,
    },
    /// A ServiceAccount lacks permissions for actions that are executed as that ServiceAccount.
    #[error("ServiceAccount {namespace}/{name} may not {}", permissions.join("; "))]
    PermissionsMissing {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// All missing permissions, each as `create roles.rbac.authorization.k8s.io in namespace garden`.
        permissions: Vec<String>,
    },
    /// The API server refused an action, which is retried.
    #[error("the API server refused to {verb} {target} ({attempts}×): {message}")]
    Refused {
        /// The verb of the action.
        verb: String,
        /// The object.
        target: String,
        /// The API server's message.
        message: String,
        /// Number of consecutive refusals.
        attempts: u32,
        /// Time of the next attempt.
        retry_at: Timestamp,
    },
    /// Planning this key panicked: a bug in kubectl-olm.
    #[error("planning failed inside kubectl-olm: {message}")]
    Panicked {
        /// The panic's text.
        message: String,
    },
}

/// What a reason waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait<'r> {
    /// Nothing.
    Nothing,
    /// An operation that ends by itself within bounded time, such as a rollout of a Deployment or the pull of an image.
    Progress,
    /// A catalog that cannot be read; it may stay unreadable.
    Catalog,
    /// Another ClusterServiceVersion of the namespace.
    Csv {
        /// The namespace of both.
        namespace: &'r str,
        /// Its name.
        name: &'r str,
    },
    /// A change that the controllers do not make.
    Change,
}

/// Returns the Subscriptions with the matching form of the verb "to be".
fn subscriptions_are(names: &[String]) -> String {
    match names {
        [one] => format!("Subscription {one} is"),
        several => format!("Subscriptions {} are", several.join(", ")),
    }
}

/// Formats the number of attempts and the time of the next one, as a suffix for a message.
fn tried(attempts: u32, next_at: Option<Timestamp>) -> String {
    let next = next_at.map(|at| format!("next at {}", object::time(at)));
    match (attempts, next) {
        (0, None) => String::new(),
        (0, Some(next)) => format!(" ({next})"),
        (_, None) => format!(" ({attempts}×)"),
        (_, Some(next)) => format!(" ({attempts}×, {next})"),
    }
}

/// Formats ` of a, b`; empty for an empty list.
fn suffix(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) }
}

/// Returns how to fix a failure of an InstallPlan that is recognised by its message.
fn fix_hint(message: &str) -> Option<&'static str> {
    Some(match message {
        m if m.starts_with("risk of data loss") => {
            "rewrite every object of the kind (kubectl get KIND -A -o yaml | kubectl replace -f -), so that it is stored in the \
             CRD's storage version, then remove the old version from status.storedVersions: kubectl patch crd NAME --subresource \
             status --type merge -p '{\"status\":{\"storedVersions\":[...]}}'"
        }
        m if m.starts_with("error validating existing CRs") => {
            "correct or delete these objects; while the plan retries, it continues as soon as they are valid"
        }
        m if m.starts_with("api-server resource not found") => {
            "install a component that serves that API, or another version of the operator: all kinds of a bundle have to be served"
        }
        _ => return None,
    })
}

/// Returns name and namespace of the CatalogSource that does not exist according to a message of the resolver.
fn missing_catalog(message: &str) -> Option<(&str, &str)> {
    let (_, catalog) = message.split_once("no operators found from catalog ")?;
    let (name, place) = catalog.split_once(" in namespace ")?;
    Some((name, place.split_once(" referenced by ")?.0))
}

/// Returns the hint for a failure of an InstallPlan: to fix its cause, or to remove the bundle whose step failed.
fn plan_fix_hint(
    namespace: &str,
    plan: &str,
    message: &str,
    blocking_bundle: &BlockingBundle,
    failed: bool,
) -> Option<String> {
    let cause = fix_hint(message);
    let BlockingBundle { csv, subscriptions, others } = blocking_bundle;
    let anew = if subscriptions.is_empty() {
        "then create the InstallPlan again".to_owned()
    } else {
        format!("then kubectl -n {} delete installplan {}: OLM creates a new one", word(namespace), word(plan))
    };
    let hint = match (cause, failed) {
        (Some(cause), true) => Some(format!("{cause}; {anew}")),
        (Some(cause), false) => Some(cause.to_owned()),
        (None, true) => Some(format!("fix the cause, {anew}")),
        (None, false) => None,
    };
    let give_up = format!(
        "kubectl -n {namespace} delete subscription {} and kubectl -n {namespace} delete clusterserviceversion {}",
        subscriptions.iter().map(|name| word(name)).collect::<Vec<_>>().join(" "),
        word(csv),
    );
    match (subscriptions.is_empty(), others.is_empty()) {
        (false, false) => Some(format!(
            "{}, or unsubscribe: {give_up}; then delete the InstallPlan, and the other Subscriptions with their \
             ClusterServiceVersions, and create those Subscriptions again",
            cause.unwrap_or("fix the cause")
        )),
        (false, true) if cause.is_some() => hint.map(|hint| format!("{hint}; or unsubscribe: {give_up}")),
        _ => hint,
    }
}

impl Reason {
    /// Returns the severity.
    pub fn severity(&self) -> Severity {
        match self {
            Self::CatalogNotReady { .. }
            | Self::StatusWaits { .. }
            | Self::BundleUnpacking { .. }
            | Self::NotHealthy { .. }
            | Self::WaitsForCsv { .. }
            | Self::InstallPlanWaits { .. } => Severity::Waiting,
            Self::Refused { .. } if self.is_transient_refusal() => Severity::Waiting,
            Self::OptionalNotCreated { .. }
            | Self::Ignored { .. }
            | Self::NamespaceTerminating { .. }
            | Self::ApisUnknown { assumed_served: true, .. }
            | Self::CatalogUnavailable { stale: true, .. }
            | Self::CatalogNotProvided { installed: true, .. } => Severity::Settled,
            _ => Severity::Blocked,
        }
    }

    /// Reports whether requirements of a ClusterServiceVersion are not met, or unknown.
    pub fn is_of_requirements(&self) -> bool {
        matches!(self, Self::RequirementsNotMet { .. } | Self::ApisUnknown { assumed_served: false, .. })
    }

    /// Returns what has to happen before the key can make progress.
    pub fn waits_for(&self) -> Wait<'_> {
        match self {
            Self::CatalogUnavailable { stale: false, .. } => Wait::Catalog,
            Self::WaitsForCsv { namespace, other, .. } => Wait::Csv { namespace, name: other },
            _ => match self.severity() {
                Severity::Settled => Wait::Nothing,
                Severity::Waiting => Wait::Progress,
                Severity::Blocked => Wait::Change,
            },
        }
    }

    /// Returns the message without the number of attempts and the time of the next one, so that it is stable across retries.
    pub fn cause(&self) -> String {
        match self {
            Self::InstallPlanRetries { namespace, name, message, blocking_bundle, .. } => {
                format!("InstallPlan {namespace}/{name} retries: {message}{blocking_bundle}")
            }
            Self::Refused { verb, target, message, .. } => {
                format!("the API server refused to {verb} {target}: {message}")
            }
            other => other.to_string(),
        }
    }

    fn is_transient_refusal(&self) -> bool {
        matches!(self, Self::Refused { attempts, .. } if *attempts <= 2)
    }

    /// Returns a suggested next step, if there is one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoOperatorGroup { namespace } => {
                format!(
                    "create an OperatorGroup in namespace {namespace}: it selects the namespaces that its operators watch"
                )
            }
            Self::TooManyOperatorGroups { namespace, .. } => {
                format!("delete all but one: kubectl -n {namespace} delete operatorgroup NAME")
            }
            Self::ApprovalNeeded { namespace, name, .. } => {
                format!("to review and approve it, run kubectl olm install-plan approve {name} -n {namespace}")
            }
            Self::CatalogNotProvided { flag, .. } => {
                format!("pass --catalog {flag} to serve it from that directory and resume updates")
            }
            Self::CatalogNotReady { namespace, name, .. } | Self::CatalogUnavailable { namespace, name, .. } => {
                format!("to see the address, run kubectl -n {namespace} get catalogsource {name} -o yaml")
            }
            Self::InstallPlanFailed { namespace, name, message, blocking_bundle } => {
                return plan_fix_hint(namespace, name, message, blocking_bundle, true);
            }
            Self::InstallPlanRetries { namespace, name, message, blocking_bundle, .. } => {
                return plan_fix_hint(namespace, name, message, blocking_bundle, false);
            }
            Self::OptionalNotCreated { namespace, name, .. } => {
                format!("to see the causes in its Events, run kubectl -n {namespace} describe installplan {name}")
            }
            Self::PermissionsMissing { namespace, name, .. } => format!(
                "bind the ServiceAccount to a Role or ClusterRole with these permissions (to grant permissions, it needs to have them \
                 itself, or the verbs escalate and bind for the bundle's roles), or remove serviceAccountName from the OperatorGroup; \
                 to see its permissions, run kubectl auth can-i --list --as {}",
                word(&format!("system:serviceaccount:{namespace}:{name}"))
            ),
            Self::BundleNotProvided { image, .. } => format!("--bundle-image {image}=PATH"),
            // The message states what to do.
            Self::BundleUnpackFailed { message, .. } if message.contains(PLAIN_DISABLED) => return None,
            Self::BundleUnpackFailed { image, .. } => {
                let image = format!("docker://{image}");
                format!("to check whether the image can be pulled, run skopeo inspect {}; it is retried automatically", word(&image))
            }
            Self::CsvFailed { failure_reason, .. } if failure_reason == reason::NO_RETRY => {
                "grant the permissions that the message names; it is retried when a Role, RoleBinding or ServiceAccount of the namespace changes"
                    .to_owned()
            }
            Self::ApisUnknown { .. } => {
                "run kubectl get apiservices to see which aggregated APIs are unavailable, and why".to_owned()
            }
            Self::Unreadable { .. } => {
                "inspect the object with kubectl get -o yaml, and correct or delete it".to_owned()
            }
            Self::Panicked { .. } => "this is a bug in kubectl-olm; please report it with the log".to_owned(),
            Self::Unsatisfiable { message, .. } => {
                let (name, namespace) = missing_catalog(message)?;
                format!(
                    "create CatalogSource {namespace}/{name}, or serve a directory instead: --catalog {name}.{namespace}=DIR"
                )
            }
            Self::StatusWaits { .. }
            | Self::NamespaceTerminating { .. }
            | Self::BundleUnpacking { .. }
            | Self::RequirementsNotMet { .. }
            | Self::NotHealthy { .. }
            | Self::InstallPlanWaits { .. }
            | Self::CsvFailed { .. }
            | Self::WaitsForCsv { .. }
            | Self::Invalid { .. }
            | Self::Ignored { .. }
            | Self::Missing { .. }
            | Self::Refused { .. } => return None,
        })
    }

    /// Creates the reason for a refused action.
    pub fn refused(verb: &str, target: &ObjectRef, message: &str, attempts: u32, retry_at: Timestamp) -> Self {
        Self::Refused {
            verb: verb.to_owned(),
            target: target.to_string(),
            message: message.to_owned(),
            attempts,
            retry_at,
        }
    }
}
