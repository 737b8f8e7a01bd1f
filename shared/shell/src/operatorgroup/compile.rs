//! `kubectl olm operatorgroup compile`: generates the OperatorGroup that an operator needs, and reports the permissions
//! that it leads to.
//!
//! ```text
//!   install mode, namespaces --olm_core compile--> OperatorGroup
//!   bundle or package --operator--> are they supported?
//!        |
//!        +--simulated installation--> the permissions of the operator, and the minimal ones of the installing ServiceAccount
//! ```
//!
//! *Guarantees*: nothing is written to a cluster; stdout can be piped to `kubectl apply -f -`. An operator that does
//! not support the namespaces is a negative result; arguments that are invalid for any operator are an error.

use std::collections::BTreeSet;

pub use olm_core::api::cluster_service_version::InstallMode;
use olm_core::api::cluster_service_version::Phase;
use olm_core::api::object;
use olm_core::explain::{Explanation, unlimited};
use olm_core::membership::Group;
use olm_core::operatorgroup::compile::{self, Compiled, GroupRequest, Refused};
use olm_core::operatorgroup::intersection;
use olm_core::plan::Account;
use olm_core::world::Reader;
use serde_json::{Value, json};

use super::operator::{Known, Operator};
use crate::blocking::block_on;
use crate::cli::data::yaml;
use crate::cli::flags::{ClusterFlags, DataFormat, NamespaceFlags, SourceFlags};
use crate::cli::{CliError, Outcome, Printer};
use crate::image;
use crate::installplan::explain::{self, summary};
use crate::observe::{ClusterState, ReadScope};

/// The group to generate.
#[derive(Clone, Debug)]
pub struct PartialGroupRequest {
    /// The name; if `None`, that of the package, else of the namespace.
    pub name: Option<String>,
    /// The operator's namespace; if `None`, that of the context.
    pub namespace: Option<String>,
    /// The install mode.
    pub mode: Option<InstallMode>,
    /// The namespaces to watch.
    pub targets: Vec<String>,
    /// The operator that the group is for.
    pub operator: Option<Operator>,
    /// The ServiceAccount whose permissions are used to install it.
    pub service_account: Option<String>,
}

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The group.
    pub request: PartialGroupRequest,
    /// The source of catalogs.
    pub source: SourceFlags,
    /// How images are pulled.
    pub images: image::Options,
    /// Whether to report the permissions that the group leads to.
    pub rbac: bool,
    /// The form of the answer.
    pub format: DataFormat,
}

/// The result of compiling.
pub(super) enum Answer {
    /// A group.
    Made(Box<Made>),
    /// No group: the operator does not support one of that name.
    Unfit(String, Refused),
}

/// A generated group, and its operator.
pub(super) struct Made {
    pub(super) compiled: Compiled,
    pub(super) namespace: String,
    pub(super) operator: Option<Known>,
    state: ClusterState,
}

/// Generates the group. The outcome is negative if the operator does not support its targets.
///
/// # Errors
/// The namespaces contradict the install mode, or the operator cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(emit(options, printer))
}

async fn emit(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Options { request, source, images, rbac, format } = options;
    if *rbac && request.operator.is_none() {
        return Err(CliError::usage("--rbac requires an operator").hint("specify it with --bundle or --package"));
    }
    let Made { compiled, namespace, operator, state } = match make(request, source, images, printer).await? {
        Answer::Made(made) => *made,
        Answer::Unfit(_, why) => {
            printer.error(&refused(why));
            return Ok(Outcome::Negative);
        }
    };
    let Compiled { mode, group } = compiled;
    let mut objects = Vec::new();
    let mut comments = Vec::new();
    if let Some(known) = &operator {
        let permissions = Permissions { state: &state, known, group: &group, images };
        if let Some(name) = &request.service_account {
            let account = Account { namespace: namespace.clone(), name: name.clone() };
            objects.extend(permissions.installer(&account, printer).await?);
        }
        if *rbac {
            comments = permissions.render(mode, printer).await?;
        }
    } else if request.service_account.is_some() {
        printer.talk(
            "The permissions that the ServiceAccount needs depend on the operator: specify it with --bundle or --package",
        );
    }
    objects.push(group);
    match format {
        DataFormat::Yaml => {
            for comment in &comments {
                printer.line(format!("# {comment}").trim_end())?;
            }
            let documents = objects.iter().map(yaml).collect::<Result<Vec<_>, _>>()?;
            printer.data(documents.join("---\n"))?;
        }
        DataFormat::Json => {
            // JSON has no comments.
            for comment in &comments {
                printer.talk(comment);
            }
            match &objects[..] {
                [one] => printer.json(one)?,
                several => {
                    printer.json(&json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": several }))?;
                }
            }
        }
    }
    Ok(Outcome::Done)
}

/// Generates a group, and checks that the operator supports it.
pub(super) async fn make(
    request: &PartialGroupRequest,
    source: &SourceFlags,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<Answer, CliError> {
    let PartialGroupRequest { name, mode, targets, operator, service_account, .. } = request;
    let namespace = namespace(request.namespace.as_deref(), source).await?;
    let namespaces = NamespaceFlags { namespace: Some(namespace.clone()), all_namespaces: false };
    // Catalogs of a cluster are only needed for packages, if no others are given.
    let is_asked = operator.as_ref().is_some_and(Operator::is_package) && source.from.is_empty();
    let mut state = if is_asked && (source.catalogs.is_empty() || source.cluster.is_given()) {
        source.read(&namespaces, &[], ReadScope::Planning, printer).await?
    } else {
        let files = SourceFlags { cluster: ClusterFlags::default(), ..source.clone() };
        files.read_files(&namespaces, &[], printer)?
    };
    let operator = match operator {
        Some(operator) => Some(operator.read(&mut state, &namespace, images, printer).await?),
        None => None,
    };
    let package = operator.as_ref().map(|known| known.package.clone()).filter(|package| !package.is_empty());
    let complete = GroupRequest {
        name: name.clone().or(package).unwrap_or_else(|| namespace.clone()),
        namespace: namespace.clone(),
        mode: *mode,
        targets: targets.clone(),
        service_account: service_account.clone(),
    };
    let compiled = compile::compile(&complete).map_err(refused)?;
    if let Some(known) = &operator {
        let targets = intersection::targets(&Reader::new(&state.world), Group::new(&compiled.group));
        if let Err(why) = compile::supports(&known.csv_in(&namespace), &namespace, &targets) {
            return Ok(Answer::Unfit(complete.name, why));
        }
    }
    Ok(Answer::Made(Box::new(Made { compiled, namespace, operator, state })))
}

/// Converts a refusal to an error.
pub(super) fn refused(Refused { message, hint }: Refused) -> CliError {
    CliError::usage(message).hint(hint)
}

/// Returns the operator's namespace: the given one, or that of the context.
pub(super) async fn namespace(named: Option<&str>, source: &SourceFlags) -> Result<String, CliError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    if !source.from.is_empty() {
        return Err(CliError::usage("a namespace is required with --from").hint("specify it with -n NAMESPACE"));
    }
    match source.cluster.config().await {
        Ok(config) => Ok(config.default_namespace),
        Err(error) if error.kind == crate::cli::ErrorKind::NoCluster => {
            Err(CliError::usage("the namespace of the operator is unknown: there is no kubeconfig")
                .hint("specify it with -n NAMESPACE"))
        }
        Err(error) => Err(error),
    }
}

/// The permissions of an operator in a group, and of its installation, determined by a simulated installation.
struct Permissions<'a> {
    state: &'a ClusterState,
    known: &'a Known,
    group: &'a Value,
    images: &'a image::Options,
}

impl Permissions<'_> {
    /// Returns a simulated cluster with only the group.
    fn place(&self, with: &[Value]) -> ClusterState {
        let namespace = object::namespace(self.group);
        let targets = Group::new(self.group).target_namespaces();
        let namespaces: BTreeSet<&str> = targets.chain([namespace]).collect();
        let mut objects: Vec<Value> = namespaces
            .into_iter()
            .map(|name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))
            .collect();
        objects.push(self.group.clone());
        objects.extend(with.iter().cloned());
        let mut place = self.state.sandbox(objects, explain::catalogs(self.state, namespace));
        // Whether the cluster serves these kinds is not checked here.
        place.serve(self.known.objects.iter().map(object::gvk));
        place
    }

    /// Returns the minimal RBAC objects that a ServiceAccount needs to install the operator.
    async fn installer(&self, account: &Account, printer: &mut Printer) -> Result<Vec<Value>, CliError> {
        let mut place = self.place(&unlimited(account));
        let subject = &self.known.subject;
        let (explainer, explanation) = explain::explainer(&mut place, subject, self.images, printer).await?;
        let found = explainer.installer(subject, account).map_err(|error| CliError::input(error.to_string()))?;
        found.ok_or_else(|| permissions_unknown(&explanation))
    }

    /// Returns the permissions that the group and the operator lead to, as text.
    async fn render(&self, mode: InstallMode, printer: &mut Printer) -> Result<Vec<String>, CliError> {
        let mut group = self.group.clone();
        object::map_mut(&mut group, &["spec"]).remove("serviceAccountName");
        let mut place = Permissions { group: &group, ..*self }.place(&[]);
        let (_, explanation) = explain::explainer(&mut place, &self.known.subject, self.images, printer).await?;
        if !explanation.csvs.iter().any(|csv| csv.phase == Phase::Succeeded.as_str()) {
            return Err(permissions_unknown(&explanation));
        }
        let rbac = &explanation.rbac;
        let mut lines = vec![format!(
            "{} as {mode}: these permissions are granted by OLM, not by this manifest.",
            object::name(&self.known.csv)
        )];
        let accounts: BTreeSet<&str> = rbac.gained.iter().map(|permission| permission.account.as_str()).collect();
        for account in accounts {
            lines.push(format!("ServiceAccount {account}:"));
            let permissions = rbac.gained.iter().filter(|permission| permission.account == account);
            lines.extend(permissions.map(|permission| format!("  {}", explain::permission(permission))));
        }
        if !rbac.aggregated.is_empty() {
            lines.push("Users with one of these ClusterRoles get permissions on the APIs of the operator:".to_owned());
            lines.extend(rbac.aggregated.iter().map(|role| format!("  {role}")));
        }
        lines.push(String::new());
        Ok(lines)
    }
}

/// Returns the error if permissions cannot be determined.
fn permissions_unknown(explanation: &Explanation) -> CliError {
    let why = summary(explanation);
    CliError::input(format!(
        "the required permissions cannot be determined, because the operator would not be installed: {}",
        why.trim_end()
    ))
    .hint("the dependencies of the operator must be known, too; add their catalog with --catalog NAME=DIR")
}
