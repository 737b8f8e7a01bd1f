//! Why nothing is done: typed, so that programs can tell cases apart and people get a sentence and a hint.

use jiff::Timestamp;
use serde::Serialize;

use crate::api::cluster_service_version::reason;
use crate::api::object::{self, ObjectRef};
use crate::visible::word;

/// How bad it is that nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong.
    Settled,
    /// Something is under way, nobody needs to do anything.
    Waiting,
    /// Somebody has to do something.
    Blocked,
}

/// The bundle whose step keeps an InstallPlan from going on, and what hangs on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockingBundle {
    /// Name of its ClusterServiceVersion.
    pub csv: String,
    /// The Subscriptions that asked for it.
    pub subscriptions: Vec<String>,
    /// The ClusterServiceVersions of other bundles in the same InstallPlan, which it holds up.
    pub others: Vec<String>,
}

impl std::fmt::Display for BlockingBundle {
    /// What is to be added to a sentence; nothing when nobody knows whose step it was.
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
        let holds_up =
            if others.is_empty() { String::new() } else { format!(", and it holds up {}", others.join(", ")) };
        write!(f, " (that is bundle {csv}{of}{holds_up})")
    }
}

/// Why a key's plan does nothing (more).
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
    /// A catalog's content is not known yet.
    #[error("catalog {namespace}/{name} is not ready: {state}")]
    CatalogNotReady {
        /// Namespace of the catalog.
        namespace: String,
        /// Name of the catalog.
        name: String,
        /// Connection state and error.
        state: String,
    },
    /// The status of an object is written a moment later.
    #[error("{object} waits: {message}")]
    StatusWaits {
        /// The object.
        object: String,
        /// What it waits for.
        message: String,
    },
    /// A namespace is being deleted: the API server refuses to create anything in it.
    #[error("namespace {namespace} is being deleted, nothing is created in it")]
    NamespaceTerminating {
        /// The namespace.
        namespace: String,
    },
    /// A catalog cannot be read: at least one attempt has failed, and it is tried again.
    #[error("catalog {namespace}/{name} cannot be read: {error}{}", if *stale { "; what was read before is still used" } else { "" })]
    CatalogUnavailable {
        /// Namespace of the catalog.
        namespace: String,
        /// Name of the catalog.
        name: String,
        /// Why the last attempt failed.
        error: String,
        /// Is there content of before, which is used until then?
        stale: bool,
    },
    /// A catalog was a directory on the machine of whoever ran the controllers, and was not given to these.
    #[error(
        "catalog {namespace}/{name} was a directory that is not given now, so {} not updated",
        subscriptions_are(subscriptions)
    )]
    CatalogNotGiven {
        /// Namespace of the catalog.
        namespace: String,
        /// Name of the catalog.
        name: String,
        /// The Subscriptions that take from it, `NAMESPACE/NAME`.
        subscriptions: Vec<String>,
        /// What `--catalog` has to name: `NAME=DIR`, or `NAME.NAMESPACE=DIR`.
        flag: String,
        /// Is everything installed that the Subscriptions of their namespace ask for?
        installed: bool,
    },
    /// The Subscriptions of a namespace cannot be satisfied.
    #[error("the Subscriptions of namespace {namespace} cannot be satisfied: {message}")]
    Unsatisfiable {
        /// The namespace.
        namespace: String,
        /// OLM's sentence.
        message: String,
    },
    /// A bundle exists only as an image, which is not here yet.
    #[error("bundle {bundle} waits for its image {image}: {message}")]
    BundleUnpacking {
        /// Name of the bundle.
        bundle: String,
        /// The image.
        image: String,
        /// What it waits for.
        message: String,
    },
    /// A bundle exists only as an image, which cannot be had.
    #[error("bundle {bundle} cannot be unpacked: {message}")]
    BundleUnpackFailed {
        /// Name of the bundle.
        bundle: String,
        /// The image.
        image: String,
        /// Why not.
        message: String,
    },
    /// An InstallPlan waits for somebody's approval.
    #[error("InstallPlan {namespace}/{name} waits for approval{}", of(csvs))]
    ApprovalNeeded {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// What it installs.
        csvs: Vec<String>,
    },
    /// An InstallPlan failed for good.
    #[error("InstallPlan {namespace}/{name} failed: {message}{culprit}")]
    InstallPlanFailed {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// Why.
        message: String,
        /// Whose step it was.
        culprit: BlockingBundle,
    },
    /// An InstallPlan is complete, but for objects that its bundles call optional.
    #[error("InstallPlan {namespace}/{name} is complete without optional {}", objects.join(", "))]
    OptionalNotCreated {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// The objects, `Kind name`.
        objects: Vec<String>,
    },
    /// An InstallPlan waits for something that it did to take effect.
    #[error("InstallPlan {namespace}/{name} waits: {message}")]
    InstallPlanWaits {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// What it waits for.
        message: String,
    },
    /// A step of an InstallPlan failed and is tried again.
    #[error("InstallPlan {namespace}/{name} tries again: {message}{culprit}{}", tried(*attempts, *next_at))]
    InstallPlanRetries {
        /// Namespace of the plan.
        namespace: String,
        /// Name of the plan.
        name: String,
        /// Why the step failed.
        message: String,
        /// Whose step it is.
        culprit: BlockingBundle,
        /// How often in a row the API server has refused it; 0 when it was not asked.
        attempts: u32,
        /// When it is tried, or looked at, again, if nothing changes before.
        next_at: Option<Timestamp>,
        /// When the plan fails if it goes on like that; some failures never end a plan.
        fails_at: Option<Timestamp>,
    },
    /// Requirements of a ClusterServiceVersion are missing.
    #[error("ClusterServiceVersion {namespace}/{name} misses {}", missing.join("; "))]
    RequirementsNotMet {
        /// Namespace of the CSV.
        namespace: String,
        /// Name of the CSV.
        name: String,
        /// What is missing, `Kind name: message`.
        missing: Vec<String>,
    },
    /// The API server's discovery does not say whether kinds are served that a ClusterServiceVersion needs.
    #[error(
        "it is not known whether the API server serves {}, which ClusterServiceVersion {namespace}/{name} needs: {message}{}",
        apis.join(", "),
        if *counts { "; it did when that was last known, and that counts" } else { "" }
    )]
    ApisUnknown {
        /// Namespace of the CSV.
        namespace: String,
        /// Name of the CSV.
        name: String,
        /// The kinds, `Rose (garden.example.com/v1)`.
        apis: Vec<String>,
        /// Are they taken to be served, because they were when the CSV was last checked?
        counts: bool,
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
    #[error("ClusterServiceVersion {namespace}/{name} failed ({why}): {message}")]
    CsvFailed {
        /// Namespace of the CSV.
        namespace: String,
        /// Name of the CSV.
        name: String,
        /// `status.reason`
        why: String,
        /// `status.message`
        message: String,
    },
    /// A ClusterServiceVersion waits for the one it replaces, or that replaces it.
    #[error("ClusterServiceVersion {namespace}/{name} waits for {other}: {message}")]
    WaitsForCsv {
        /// Namespace of both.
        namespace: String,
        /// Name of the one that waits.
        name: String,
        /// Name of the other.
        other: String,
        /// What for.
        message: String,
    },
    /// The spec of an object makes no sense.
    #[error("{object}: {message}")]
    Invalid {
        /// The object.
        object: String,
        /// What is wrong.
        message: String,
    },
    /// A part of an object makes no sense and is left out; all else goes on.
    #[error("{object}: {message}")]
    Ignored {
        /// The object.
        object: String,
        /// What is left out, and why.
        message: String,
    },
    /// Nothing stands for the image of a bundle in a simulation, and nothing will.
    #[error("bundle {bundle} needs {needs}, which does not exist")]
    BundleNotGiven {
        /// Name of its ClusterServiceVersion.
        bundle: String,
        /// The image.
        image: String,
        /// What would have to be given.
        needs: String,
    },
    /// Something that an object refers to is not there.
    #[error("{object} needs {needs}, which does not exist")]
    Missing {
        /// The object.
        object: String,
        /// What it needs.
        needs: String,
    },
    /// An object is there and cannot be read, so that nothing is decided that depends on it.
    #[error("{object} cannot be read, so nothing is done that depends on it: {message}")]
    Unreadable {
        /// The object.
        object: String,
        /// Why it cannot be read.
        message: String,
    },
    /// A ServiceAccount may not do what is to be done with its rights.
    #[error("ServiceAccount {namespace}/{name} may not {}", rights.join("; "))]
    RightsMissing {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// All that it may not, each `create roles.rbac.authorization.k8s.io in namespace garden`.
        rights: Vec<String>,
    },
    /// The API server refused an action; it is tried again.
    #[error("the API server refused to {verb} {target} ({attempts}×): {message}")]
    Refused {
        /// What was tried.
        verb: String,
        /// On what.
        target: String,
        /// The API server's sentence.
        message: String,
        /// How often in a row.
        attempts: u32,
        /// When it is tried again.
        retry_at: Timestamp,
    },
    /// Planning this key panicked: a bug of ours, contained.
    #[error("planning failed inside kubectl-olm: {message}")]
    Panicked {
        /// The panic's text.
        message: String,
    },
}

/// What a reason waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait<'r> {
    /// Nothing: nothing is wrong.
    Nothing,
    /// Something that ends by itself: a Deployment that rolls out, an image that is pulled. Its time is bounded.
    Progress,
    /// A catalog that cannot be read, and may never be.
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

/// Subject and verb.
fn subscriptions_are(names: &[String]) -> String {
    match names {
        [one] => format!("Subscription {one} is"),
        several => format!("Subscriptions {} are", several.join(", ")),
    }
}

/// How an attempt is told, after a sentence.
fn tried(attempts: u32, next_at: Option<Timestamp>) -> String {
    let next = next_at.map(|at| format!("next at {}", object::time(at)));
    match (attempts, next) {
        (0, None) => String::new(),
        (0, Some(next)) => format!(" ({next})"),
        (_, None) => format!(" ({attempts}×)"),
        (_, Some(next)) => format!(" ({attempts}×, {next})"),
    }
}

/// ` of a, b`; nothing for nothing.
fn of(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) }
}

/// What helps against a failure of an InstallPlan that is known by its words.
fn mend(message: &str) -> Option<&'static str> {
    Some(match message {
        m if m.starts_with("risk of data loss") => {
            "write every object of the kind once (kubectl get KIND -A -o yaml | kubectl replace -f -), so that it is stored in the \
             CRD's storage version, then take the old version out of status.storedVersions: kubectl patch crd NAME --subresource \
             status --type merge -p '{\"status\":{\"storedVersions\":[...]}}'"
        }
        m if m.starts_with("error validating existing CRs") => {
            "mend or delete the objects that are named: as long as the plan tries again, it goes on as soon as they fit"
        }
        m if m.starts_with("api-server resource not found") => {
            "install what serves that API, or another version of the operator: a bundle needs all its kinds"
        }
        _ => return None,
    })
}

/// What helps against a failure of an InstallPlan: to mend its cause, or to give up the bundle whose step it is.
fn mend_plan(namespace: &str, plan: &str, message: &str, culprit: &BlockingBundle, failed: bool) -> Option<String> {
    let cause = mend(message);
    let BlockingBundle { csv, subscriptions, others } = culprit;
    let anew = if subscriptions.is_empty() {
        "then create the plan anew".to_owned()
    } else {
        format!("then kubectl -n {} delete installplan {}: a new plan is made", word(namespace), word(plan))
    };
    let mended = match (cause, failed) {
        (Some(cause), true) => Some(format!("{cause}; {anew}")),
        (Some(cause), false) => Some(cause.to_owned()),
        (None, true) => Some(format!("mend the cause, {anew}")),
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
             ClusterServiceVersions, and make those Subscriptions anew",
            cause.unwrap_or("mend the cause")
        )),
        (false, true) if cause.is_some() => mended.map(|mended| format!("{mended}; or give it up: {give_up}")),
        _ => mended,
    }
}

impl Reason {
    /// How bad it is.
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
            | Self::ApisUnknown { counts: true, .. }
            | Self::CatalogUnavailable { stale: true, .. }
            | Self::CatalogNotGiven { installed: true, .. } => Severity::Settled,
            _ => Severity::Blocked,
        }
    }

    /// Is it that a ClusterServiceVersion misses something?
    pub fn is_of_requirements(&self) -> bool {
        matches!(self, Self::RequirementsNotMet { .. } | Self::ApisUnknown { counts: false, .. })
    }

    /// What has to come about before there is something to do again.
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

    /// The same in words that stay the same while it is tried again: how often, and when next, is left out.
    pub fn cause(&self) -> String {
        match self {
            Self::InstallPlanRetries { namespace, name, message, culprit, .. } => {
                format!("InstallPlan {namespace}/{name} tries again: {message}{culprit}")
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

    /// What a person could do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoOperatorGroup { namespace } => {
                format!(
                    "create an OperatorGroup in namespace {namespace}: it says which namespaces its operators watch"
                )
            }
            Self::TooManyOperatorGroups { namespace, .. } => {
                format!("leave one: kubectl -n {namespace} delete operatorgroup NAME")
            }
            Self::ApprovalNeeded { namespace, name, .. } => {
                format!("kubectl olm install-plan approve {name} -n {namespace} says what it would do, and asks")
            }
            Self::CatalogNotGiven { flag, .. } => {
                format!("--catalog {flag} serves it from that directory, and updates go on")
            }
            Self::CatalogNotReady { namespace, name, .. } | Self::CatalogUnavailable { namespace, name, .. } => {
                format!("kubectl -n {namespace} get catalogsource {name} -o yaml shows the address that is dialled")
            }
            Self::InstallPlanFailed { namespace, name, message, culprit } => {
                return mend_plan(namespace, name, message, culprit, true);
            }
            Self::InstallPlanRetries { namespace, name, message, culprit, .. } => {
                return mend_plan(namespace, name, message, culprit, false);
            }
            Self::OptionalNotCreated { namespace, name, .. } => {
                format!("the Events of kubectl -n {namespace} describe installplan {name} say why")
            }
            Self::RightsMissing { namespace, name, .. } => format!(
                "bind the ServiceAccount to a Role or ClusterRole that has them (what it is to grant it needs to have itself, or the verbs \
                 escalate and bind for the bundle's roles), or take serviceAccountName out of the OperatorGroup; kubectl auth can-i --list --as {} shows what it may",
                word(&format!("system:serviceaccount:{namespace}:{name}"))
            ),
            Self::BundleUnpackFailed { image, .. } => {
                let image = format!("docker://{image}");
                format!("skopeo inspect {} shows whether it can be had; it is tried again by itself", word(&image))
            }
            Self::CsvFailed { why, .. } if why == reason::NO_RETRY => {
                "grant the rights that the message names: it is tried again when a Role, RoleBinding or ServiceAccount of the namespace changes"
                    .to_owned()
            }
            Self::ApisUnknown { .. } => {
                "kubectl get apiservices shows which aggregated APIs do not answer, and why".to_owned()
            }
            Self::Unreadable { .. } => {
                "kubectl get with -o yaml shows the object: mend or delete it, and what waits for it goes on".to_owned()
            }
            Self::Panicked { .. } => "this is a bug of kubectl-olm, please report it with the log".to_owned(),
            Self::Unsatisfiable { message, .. } if message.contains("no operators found from catalog ") => {
                "create that CatalogSource, or serve a directory in its place: --catalog NAME[.NAMESPACE]=DIR"
                    .to_owned()
            }
            Self::Unsatisfiable { .. }
            | Self::StatusWaits { .. }
            | Self::NamespaceTerminating { .. }
            | Self::BundleUnpacking { .. }
            | Self::RequirementsNotMet { .. }
            | Self::NotHealthy { .. }
            | Self::InstallPlanWaits { .. }
            | Self::CsvFailed { .. }
            | Self::WaitsForCsv { .. }
            | Self::Invalid { .. }
            | Self::Ignored { .. }
            | Self::BundleNotGiven { .. }
            | Self::Missing { .. }
            | Self::Refused { .. } => return None,
        })
    }

    /// The refusal of an action.
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
