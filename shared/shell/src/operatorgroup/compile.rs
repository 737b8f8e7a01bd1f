//! `kubectl olm operatorgroup compile`: the OperatorGroup that an operator needs, and the rights that come of it.
//!
//! ```text
//!   install mode, namespaces --olm_core compile--> OperatorGroup
//!   bundle or package --operator--> does it support them?
//!        |
//!        +--tried out in a copy--> the rights of the operator, and the least of who installs it
//! ```
//!
//! *Guarantees*: nothing is written to a cluster; stdout is what `kubectl apply -f -` takes. An operator that does not support the namespaces
//! is a negative answer, and what makes no sense whatever the operator an error.

use std::collections::BTreeSet;

use olm_core::api::object;
use olm_core::explain::{Explanation, unlimited};
use olm_core::membership::Group;
pub use olm_core::operatorgroup::compile::InstallMode;
use olm_core::operatorgroup::compile::{self, Compiled, Refused, Wish};
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

/// What to compile.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The group's name; none: that of the package, else of the namespace.
    pub name: Option<String>,
    /// The operator's namespace; none: the context's.
    pub namespace: Option<String>,
    /// The install mode.
    pub mode: Option<InstallMode>,
    /// The namespaces to watch.
    pub targets: Vec<String>,
    /// The operator that is to be a member.
    pub operator: Option<Operator>,
    /// The ServiceAccount with whose rights it is installed.
    pub service_account: Option<String>,
}

/// What to compile, from what, and how it is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The group.
    pub wanted: Wanted,
    /// Where catalogs are.
    pub source: SourceFlags,
    /// How images are pulled.
    pub images: image::Options,
    /// Tell the rights that come of it?
    pub rbac: bool,
    /// The form of the answer.
    pub format: DataFormat,
}

/// What came of compiling.
pub(super) enum Answer {
    /// A group.
    Made(Box<Made>),
    /// None: the operator cannot be a member of a group of that name.
    Unfit(String, Refused),
}

/// A group that was compiled, and what for.
pub(super) struct Made {
    pub(super) compiled: Compiled,
    pub(super) namespace: String,
    pub(super) operator: Option<Known>,
    seen: ClusterState,
}

/// Compiles. The answer is no when the operator supports no group with these targets.
///
/// # Errors
/// The namespaces do not fit the install mode, or the operator cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(emit(options, printer))
}

async fn emit(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Options { wanted, source, images, rbac, format } = options;
    if *rbac && wanted.operator.is_none() {
        return Err(CliError::usage("--rbac tells the rights of an operator").hint("name it: --bundle or --package"));
    }
    let Made { compiled, namespace, operator, seen } = match make(wanted, source, images, printer).await? {
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
        let rights = Rights { seen: &seen, known, group: &group, images };
        if let Some(name) = &wanted.service_account {
            let account = Account { namespace: namespace.clone(), name: name.clone() };
            objects.extend(rights.installer(&account, printer).await?);
        }
        if *rbac {
            comments = rights.render(mode, printer).await?;
        }
    } else if wanted.service_account.is_some() {
        printer.talk("Which rights the ServiceAccount needs depends on the operator: --bundle or --package names it");
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

/// Compiles a group, and checks it against the operator.
pub(super) async fn make(
    wanted: &Wanted,
    source: &SourceFlags,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<Answer, CliError> {
    let Wanted { name, mode, targets, operator, service_account, .. } = wanted;
    let namespace = namespace(wanted.namespace.as_deref(), source).await?;
    let namespaces = NamespaceFlags { namespace: Some(namespace.clone()), all_namespaces: false };
    // Catalogs of a cluster are needed for packages only, and then only when no others are given.
    let is_asked = operator.as_ref().is_some_and(Operator::is_package) && source.from.is_empty();
    let mut seen = if is_asked && (source.catalogs.is_empty() || source.cluster.is_given()) {
        source.read(&namespaces, &[], ReadScope::Planning, printer).await?
    } else {
        let files = SourceFlags { cluster: ClusterFlags::default(), ..source.clone() };
        files.read_files(&namespaces, &[], printer)?
    };
    let operator = match operator {
        Some(operator) => Some(operator.read(&mut seen, &namespace, images, printer).await?),
        None => None,
    };
    let package = operator.as_ref().map(|known| known.package.clone()).filter(|package| !package.is_empty());
    let wish = Wish {
        name: name.clone().or(package).unwrap_or_else(|| namespace.clone()),
        namespace: namespace.clone(),
        mode: *mode,
        targets: targets.clone(),
        service_account: service_account.clone(),
    };
    let compiled = compile::compile(&wish).map_err(refused)?;
    if let Some(known) = &operator {
        let targets = intersection::targets(&Reader::new(&seen.world), Group::of(&compiled.group));
        if let Err(why) = compile::supports(&known.csv_in(&namespace), &namespace, &targets) {
            return Ok(Answer::Unfit(wish.name, why));
        }
    }
    Ok(Answer::Made(Box::new(Made { compiled, namespace, operator, seen })))
}

/// As people are told.
pub(super) fn refused(Refused { message, hint }: Refused) -> CliError {
    CliError::usage(message).hint(hint)
}

/// The operator's namespace: the one that is named, or the context's.
pub(super) async fn namespace(named: Option<&str>, source: &SourceFlags) -> Result<String, CliError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    if !source.from.is_empty() {
        return Err(CliError::usage("files do not say which namespace is meant").hint("name it: -n NAMESPACE"));
    }
    match source.cluster.config().await {
        Ok(config) => Ok(config.default_namespace),
        Err(error) if error.kind == crate::cli::ErrorKind::NoCluster => {
            Err(CliError::usage("the operator's namespace is not known: there is no kubeconfig that says one")
                .hint("name it: -n NAMESPACE"))
        }
        Err(error) => Err(error),
    }
}

/// What an operator in a group may do, and who installs it, tried out in a copy.
struct Rights<'a> {
    seen: &'a ClusterState,
    known: &'a Known,
    group: &'a Value,
    images: &'a image::Options,
}

impl Rights<'_> {
    /// A cluster in which there is the group and nothing else.
    fn place(&self, with: &[Value]) -> ClusterState {
        let namespace = object::namespace(self.group);
        let targets = object::list(self.group, &["spec", "targetNamespaces"]).iter().filter_map(Value::as_str);
        let namespaces: BTreeSet<&str> = targets.chain([namespace]).collect();
        let mut objects: Vec<Value> = namespaces
            .into_iter()
            .map(|name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))
            .collect();
        objects.push(self.group.clone());
        objects.extend(with.iter().cloned());
        let mut place = self.seen.sandbox(objects, explain::catalogs(self.seen, namespace));
        // Whether the cluster has these kinds is another question.
        place.serve(self.known.objects.iter().map(object::gvk));
        place
    }

    /// The least that a ServiceAccount needs to install the operator.
    async fn installer(&self, account: &Account, printer: &mut Printer) -> Result<Vec<Value>, CliError> {
        let mut place = self.place(&unlimited(account));
        let subject = &self.known.subject;
        let (explainer, explanation) = explain::explainer(&mut place, subject, self.images, printer).await?;
        let found = explainer.installer(subject, account).map_err(|error| CliError::input(error.to_string()))?;
        found.ok_or_else(|| untold(&explanation))
    }

    /// The rights that come of the group and the operator, for people.
    async fn render(&self, mode: InstallMode, printer: &mut Printer) -> Result<Vec<String>, CliError> {
        let mut group = self.group.clone();
        object::map_mut(&mut group, &["spec"]).remove("serviceAccountName");
        let mut place = Rights { group: &group, ..*self }.place(&[]);
        let (_, explanation) = explain::explainer(&mut place, &self.known.subject, self.images, printer).await?;
        if !explanation.csvs.iter().any(|csv| csv.phase == "Succeeded") {
            return Err(untold(&explanation));
        }
        let rbac = &explanation.rbac;
        let mut lines =
            vec![format!("{} as {mode}: OLM gives these rights, nothing here does.", object::name(&self.known.csv))];
        let accounts: BTreeSet<&str> = rbac.gained.iter().map(|right| right.account.as_str()).collect();
        for account in accounts {
            lines.push(format!("ServiceAccount {account} may"));
            let rights = rbac.gained.iter().filter(|right| right.account == account);
            lines.extend(rights.map(|right| format!("  {}", explain::right(right))));
        }
        if !rbac.aggregated.is_empty() {
            lines.push("People who have one of these ClusterRoles get rights on the operator's APIs:".to_owned());
            lines.extend(rbac.aggregated.iter().map(|role| format!("  {role}")));
        }
        lines.push(String::new());
        Ok(lines)
    }
}

/// Why nothing can be said of rights.
fn untold(explanation: &Explanation) -> CliError {
    let why = summary(explanation);
    CliError::input(format!(
        "which rights are needed cannot be told, for the operator would not be installed: {}",
        why.trim_end()
    ))
    .hint("what it depends on has to be known, too: --catalog NAME=DIR")
}
