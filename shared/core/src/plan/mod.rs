//! What a controller decides, as a value: actions to take, reasons for not acting, and when to look again.
//!
//! ```text
//!   plan(world, key, now) -> Plan { actions, reasons, again }
//!        explain prints it · simulate applies it to sim · live sends it · audit only shows it
//! ```

mod action;
pub mod certificate;
mod order;
mod reason;

pub use action::{Account, Action, Emit, Propagation, Question, Verb};
pub use certificate::{Certificate, Issued};
use jiff::Timestamp;
pub use order::Order;
pub use reason::{BlockingBundle, Reason, Severity, Wait};

/// The controllers: each plans for keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// The connection and status of a CatalogSource. Key: its namespace and name.
    CatalogSource,
    /// Status of all Subscriptions of a namespace, and their resolution to an InstallPlan. Key: the namespace, as name.
    Resolution,
    /// Approval and execution of an InstallPlan. Key: its namespace and name.
    InstallPlan,
    /// Status, membership and RBAC of an OperatorGroup. Key: its namespace and name.
    OperatorGroup,
    /// Labels that OperatorGroups put on a namespace. Key: the namespace, as name.
    Namespace,
    /// The state machine of a ClusterServiceVersion. Key: its namespace and name.
    ClusterServiceVersion,
    /// Copies of a ClusterServiceVersion in the namespaces it is offered in. Key: the original's namespace and name.
    CopiedCsv,
    /// ClusterRoles for the APIs that a ClusterServiceVersion provides. Key: its namespace and name.
    ProvidedApiRoles,
    /// OperatorCondition of a ClusterServiceVersion and its RBAC. Key: its namespace and name.
    OperatorCondition,
    /// Component labels of what belongs to an operator. Key: the Subscription's or ClusterServiceVersion's namespace and name.
    Adoption,
    /// The Operator object that gathers components. Key: its name.
    Operator,
    /// OLMConfig status. Key: its name.
    OlmConfig,
}

/// What is planned for: a controller and the namespace (empty when cluster-scoped) and name of its subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The controller.
    pub controller: Controller,
    /// Namespace of the subject, empty when it is cluster-scoped.
    pub namespace: String,
    /// Name of the subject.
    pub name: String,
}

impl Key {
    /// A key.
    pub fn new(controller: Controller, namespace: &str, name: &str) -> Self {
        Self { controller, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for Key {
    /// `Controller namespace/name`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { controller, namespace, name } = self;
        if namespace.is_empty() {
            write!(f, "{controller:?} {name}")
        } else {
            write!(f, "{controller:?} {namespace}/{name}")
        }
    }
}

/// What to do about one key.
#[must_use = "a plan that is not executed or reported was made for nothing"]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do.
    pub actions: Vec<Action>,
    /// How the actions follow each other.
    pub order: Order,
    /// Why nothing (more) is done.
    pub reasons: Vec<Reason>,
    /// When to plan this key again although nothing changed.
    pub again: Option<Timestamp>,
    /// Is what was refused before of the past, but for `actions`: if it comes up again, is it tried at once?
    pub forgets: bool,
}

impl Plan {
    /// Nothing to do and nothing to say.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The same, at an end: if what was refused before comes up again, it is tried at once.
    pub fn at_an_end(self) -> Self {
        Self { forgets: true, ..self }
    }

    /// These actions, in order.
    pub fn act(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    /// These actions, each whatever becomes of the others.
    pub fn unordered(actions: Vec<Action>) -> Self {
        Self { actions, order: Order::Any, ..Self::default() }
    }

    /// These actions, batch by batch: those of a batch may be in flight together.
    pub fn in_batches(batches: Vec<Vec<Action>>) -> Self {
        let order = Order::Batches(batches.iter().map(Vec::len).collect());
        Self { actions: batches.into_iter().flatten().collect(), order, ..Self::default() }
    }

    /// Nothing to do, for this reason.
    pub fn wait(reason: Reason) -> Self {
        Self { reasons: vec![reason], ..Self::default() }
    }

    /// With one more reason.
    pub fn because(mut self, reason: Reason) -> Self {
        self.reasons.push(reason);
        self
    }

    /// To be planned again at that time, or earlier.
    pub fn again_at(mut self, at: Timestamp) -> Self {
        self.again = Some(self.again.map_or(at, |t| t.min(at)));
        self
    }
}
