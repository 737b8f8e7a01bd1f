//! The decision of a controller as a value: actions to execute, reasons for not acting, and the time of the next plan.
//!
//! ```text
//!   plan(world, key, now) -> Plan { actions, reasons, again }
//!        explain prints it · simulate applies it to sim · live sends it · audit only reports it
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

/// The controllers. Each plans for its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// Connection and status of a CatalogSource. Key: its namespace and name.
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
    /// Copies of a ClusterServiceVersion in its target namespaces. Key: namespace and name of the original.
    CopiedCsv,
    /// ClusterRoles for the APIs that a ClusterServiceVersion provides. Key: its namespace and name.
    ProvidedApiRoles,
    /// OperatorCondition of a ClusterServiceVersion and its RBAC. Key: its namespace and name.
    OperatorCondition,
    /// Component labels of the objects that belong to an operator. Key: namespace and name of the Subscription or ClusterServiceVersion.
    Adoption,
    /// The Operator object that lists components. Key: its name.
    Operator,
    /// Status of the OLMConfig. Key: its name.
    OlmConfig,
}

/// The unit of planning: a controller, and the namespace (empty if cluster-scoped) and name of its subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The controller.
    pub controller: Controller,
    /// Namespace of the subject; empty if it is cluster-scoped.
    pub namespace: String,
    /// Name of the subject.
    pub name: String,
}

impl Key {
    /// Creates a key.
    pub fn new(controller: Controller, namespace: &str, name: &str) -> Self {
        Self { controller, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for Key {
    /// Formats `Controller namespace/name`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { controller, namespace, name } = self;
        if namespace.is_empty() {
            write!(f, "{controller:?} {name}")
        } else {
            write!(f, "{controller:?} {namespace}/{name}")
        }
    }
}

/// The plan of one key.
#[must_use = "a plan has to be executed or reported"]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The actions.
    pub actions: Vec<Action>,
    /// The order of the actions.
    pub order: Order,
    /// Why nothing (more) is done.
    pub reasons: Vec<Reason>,
    /// When to plan this key again even if nothing changes.
    pub again: Option<Timestamp>,
    /// Whether earlier refusals of other actions than `actions` are forgotten, so that these are tried without a pause if planned again.
    pub forgets: bool,
}

impl Plan {
    /// Creates a plan without actions and reasons.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Returns the plan with earlier refusals forgotten, see [`Self::forgets`].
    pub fn at_an_end(self) -> Self {
        Self { forgets: true, ..self }
    }

    /// Creates a plan of actions that are executed one by one.
    pub fn act(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    /// Creates a plan of independent actions.
    pub fn unordered(actions: Vec<Action>) -> Self {
        Self { actions, order: Order::Any, ..Self::default() }
    }

    /// Creates a plan of batches. The actions of a batch may be executed concurrently.
    pub fn in_batches(batches: Vec<Vec<Action>>) -> Self {
        let order = Order::Batches(batches.iter().map(Vec::len).collect());
        Self { actions: batches.into_iter().flatten().collect(), order, ..Self::default() }
    }

    /// Creates a plan without actions, for this reason.
    pub fn wait(reason: Reason) -> Self {
        Self { reasons: vec![reason], ..Self::default() }
    }

    /// Returns the plan with one more reason.
    pub fn because(mut self, reason: Reason) -> Self {
        self.reasons.push(reason);
        self
    }

    /// Returns the plan with this time of the next plan, unless an earlier one is set.
    pub fn again_at(mut self, at: Timestamp) -> Self {
        self.again = Some(self.again.map_or(at, |t| t.min(at)));
        self
    }
}
