//! `kubectl olm install-plan explain`: reports what a plan would do before it is executed.
//!
//! ```text
//!   observe --ClusterState--> read      what the explanation needs, and what the first attempt requests
//!                        |
//!              olm_core::explain::Explainer    executes the plan on a copy
//!                        |
//!                   dry_run     sends the objects to the API server as a dry run
//!                        |
//!                     report    sections of lines --> text, Markdown for reviews; page: HTML; or the document itself
//! ```
//!
//! *Guarantee*: nothing is written to the cluster. Writes are sent only with `dryRun=All`, where permissions allow it.

mod diff;
mod dry_run;
mod page;
mod read;
mod report;

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use olm_core::api::object;
use olm_core::bundle::{Bundle, Rendered};
use olm_core::explain::{Explanation, Subject};
use olm_core::installplan::summary;
use olm_core::settings::PLAIN_DISABLED;
use olm_core::version::Range;
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

pub use self::read::{DryRun, explain};
pub(crate) use self::read::{catalogs, explainer};
pub(crate) use self::report::render_permission as permission;
pub use self::report::{differences, overview, summary};
use super::policy::{self, PolicyResult};
use crate::blocking::block_on;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::name::bare;
use crate::cli::output::{API_VERSION, Output};
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image::{self, BUNDLE_LABEL, Location, Requested};
use crate::observe::{ClusterState, ReadFailure, ReadScope};
use crate::registry;

/// The namespace to work in if none is given.
const DEFAULT_NAMESPACE: &str = "default";

/// The subject of the explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// These plans; if empty, those that wait for approval, or are approved and not executed yet.
    Plans(Vec<String>),
    /// The next upgrade of this Subscription.
    Subscription(String),
    /// The installation of this bundle: a directory, an image or an OCI layout.
    Bundle(String),
    /// A subscription to this package: `PACKAGE` or `PACKAGE@RANGE`.
    Package(String),
}

/// The form of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// Text, for the terminal.
    Text,
    /// Markdown, for reviews.
    Markdown,
    /// A page in one file, without scripts.
    Html,
    /// The document.
    Document(Output),
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" | "text" => Ok(Self::Text),
            "markdown" => Ok(Self::Markdown),
            "html" => Ok(Self::Html),
            other => match other.parse() {
                Ok(Output::Table | Output::Wide | Output::Name) | Err(_) => {
                    Err("expected html, json, yaml, markdown or jsonpath=TEMPLATE".to_owned())
                }
                Ok(output) => Ok(Self::Document(output)),
            },
        }
    }
}

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The subject of the explanation.
    pub asked: Request,
    /// The source of the objects.
    pub source: SourceFlags,
    /// The namespace.
    pub namespaces: NamespaceFlags,
    /// Files with objects to treat as applied.
    pub on_top: Vec<PathBuf>,
    /// How images are pulled.
    pub images: image::Options,
    /// Whether the controllers skip optional objects that cannot be created.
    pub optional_manifests: bool,
    /// Whether bundle images of type `k8s+v1` are installed.
    pub plain_bundles: bool,
    /// Whether the objects are sent to the API server as a dry run.
    pub dry_run: DryRun,
    /// CEL policies to evaluate on the explanation.
    pub policies: Vec<String>,
    /// Whether to print all objects and their diffs.
    pub details: bool,
    /// The form of the answer.
    pub form: Form,
}

/// Prints the explanations. The outcome is that of the worst verdict.
///
/// # Errors
/// A subject does not exist or cannot be explained.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let policies = policy::policies(&options.policies)?;
    let (explanations, failures) = block_on(explanations(options, printer))?;
    for failure in failures {
        printer.warn(failure);
    }
    let is_list = matches!(&options.asked, Request::Plans(names) if names.len() != 1);
    if explanations.is_empty() && !matches!(options.form, Form::Document(_) | Form::Html) {
        printer.talk("No InstallPlan waits for approval. Use --subscription or --package to explain a future plan.");
        return Ok(Outcome::Done);
    }
    let tried = |explanation: &Explanation| -> Vec<PolicyResult> {
        let document = serde_json::to_value(explanation).unwrap_or_default();
        policies.iter().map(|policy| PolicyResult::new(policy, &document)).collect()
    };
    let with_policies = |explanation: Explanation| {
        let tried = tried(&explanation);
        (explanation, tried)
    };
    let explanations: Vec<(Explanation, Vec<PolicyResult>)> = explanations.into_iter().map(with_policies).collect();
    print(&explanations, is_list, &options.form, options.details, printer)?;
    let worst = explanations.iter().map(|(e, _)| e.verdict.result).max().unwrap_or_default();
    let tried: Vec<&PolicyResult> = explanations.iter().flat_map(|(_, tried)| tried).collect();
    Ok(match worst {
        olm_core::explain::VerdictResult::WouldFail => Outcome::Negative,
        _ if tried.iter().any(|tried| tried.holds == Some(false)) => Outcome::Negative,
        olm_core::explain::VerdictResult::Unknown => Outcome::Unknown,
        _ if tried.iter().any(|tried| tried.holds.is_none()) => Outcome::Unknown,
        // The policies decide.
        olm_core::explain::VerdictResult::NeedsDecision if policies.is_empty() => Outcome::Negative,
        olm_core::explain::VerdictResult::NeedsDecision | olm_core::explain::VerdictResult::Safe => Outcome::Done,
    })
}

/// Prints explanations, each with the results of policies; as data they are one `List` if `is_list`.
///
/// # Errors
/// The output cannot be written.
pub fn print(
    explanations: &[(Explanation, Vec<PolicyResult>)],
    is_list: bool,
    form: &Form,
    details: bool,
    printer: &mut Printer,
) -> Result<(), CliError> {
    match form {
        Form::Text => {
            for (index, (explanation, tried)) in explanations.iter().enumerate() {
                if index > 0 {
                    printer.line("")?;
                }
                printer.data(report::text(explanation, tried, details, printer.paint()))?;
            }
            Ok(())
        }
        Form::Markdown => {
            explanations.iter().try_for_each(|(e, tried)| printer.data(report::markdown(e, tried, details)))
        }
        Form::Html => printer.data(page::html(explanations)),
        Form::Document(output) => {
            let documents = explanations.iter().map(|(explanation, tried)| {
                let mut document = document(explanation);
                if !tried.is_empty() {
                    document["policies"] = json!(tried);
                }
                document
            });
            let documents: Vec<Value> = documents.collect();
            match &documents[..] {
                [one] if !is_list => output.object(printer, one, || Table::new([])),
                list => output.objects(printer, list, || Table::new([])),
            }
        }
    }
}

/// Returns the explanation as a document with `apiVersion` and `kind`.
pub fn document(explanation: &Explanation) -> Value {
    let mut document = json!({ "apiVersion": API_VERSION, "kind": "InstallPlanExplanation" });
    if let (Some(document), Ok(Value::Object(fields))) = (document.as_object_mut(), serde_json::to_value(explanation)) {
        document.extend(fields);
    }
    document
}

async fn explanations(options: &Options, printer: &mut Printer) -> Result<(Vec<Explanation>, Vec<String>), CliError> {
    let Options { asked, source, namespaces, on_top, images, optional_manifests, plain_bundles, dry_run, .. } = options;
    let mut state = source.read(namespaces, on_top, ReadScope::Planning, printer).await?;
    state.settings.optional_manifests = *optional_manifests;
    state.settings.plain_bundles = *plain_bundles;
    if let Some(vital) = state.read_failures.iter().find(|failure| is_vital(failure, asked)) {
        // Report all missing permissions at once.
        state
            .read_failures
            .iter()
            .filter(|failure| *failure != vital && failure.forbidden)
            .for_each(|failure| printer.warn(failure));
        return Err(CliError::from(vital));
    }
    let mut explanations = Vec::new();
    for subject in subjects(asked, &state, images).await? {
        explanations.push(explain(&mut state, &subject, images, *dry_run, printer).await?);
    }
    let untold = if explanations.is_empty() {
        state.read_failures.iter().map(ToString::to_string).collect()
    } else {
        Vec::new()
    };
    Ok((explanations, untold))
}

/// Returns whether no explanation is possible without what could not be read.
pub(super) fn is_vital(failure: &ReadFailure, asked: &Request) -> bool {
    // Without its OperatorGroup every plan of a namespace would appear to fail.
    failure.is_of("operatorgroups")
        || match asked {
            Request::Plans(_) => failure.is_of("installplans"),
            Request::Subscription(_) => failure.is_of("subscriptions"),
            Request::Bundle(_) | Request::Package(_) => false,
        }
}

/// Returns the subjects to explain, in the selected namespace.
async fn subjects(asked: &Request, state: &ClusterState, images: &image::Options) -> Result<Vec<Subject>, CliError> {
    let namespace = || state.namespace.clone().or_else(|| only_namespace(state));
    let namespace = || namespace().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    Ok(match asked {
        Request::Plans(names) if names.is_empty() => {
            let world = Reader::new(&state.world);
            let waits = |plan: &&Value| summary::waits_for_approval(plan) || summary::waits_for_execution(plan);
            let plans = world.all(&kind::INSTALL_PLAN).map(|o| o.json()).filter(|plan| state.is_requested(plan));
            let subject = |plan: &Value| Subject::Plan {
                namespace: object::namespace(plan).to_owned(),
                name: object::name(plan).to_owned(),
            };
            plans.filter(waits).map(subject).collect()
        }
        Request::Plans(names) => {
            let subject = |name: &String| {
                let name = bare(name, "installplan")?.to_owned();
                Ok(Subject::Plan { namespace: namespace(), name })
            };
            names.iter().map(subject).collect::<Result<_, CliError>>()?
        }
        Request::Subscription(name) => {
            let name = bare(name, "subscription")?.to_owned();
            vec![Subject::Subscription { namespace: namespace(), name }]
        }
        Request::Package(wanted) => {
            let (package, range) = package(wanted)?;
            vec![Subject::Package { namespace: namespace(), package, range }]
        }
        Request::Bundle(reference) => {
            let bundle = bundle(reference, images).await?;
            if bundle.is_plain && !state.settings.plain_bundles {
                return Err(CliError::input(PLAIN_DISABLED).at(reference));
            }
            let bundle = bundle.render();
            let bundle = bundle.map_err(|finding| CliError::input(finding.to_string()).at(reference))?;
            require_package(&bundle, reference)?;
            vec![Subject::Bundle { namespace: namespace(), bundle: Box::new(bundle) }]
        }
    })
}

/// Returns the only namespace with Subscriptions, InstallPlans or OperatorGroups, if there is exactly one.
fn only_namespace(state: &ClusterState) -> Option<String> {
    let world = Reader::new(&state.world);
    let all = [kind::SUBSCRIPTION, kind::INSTALL_PLAN, kind::OPERATOR_GROUP];
    let objects = all.iter().flat_map(|kind| world.all(kind));
    let mut namespaces: Vec<&str> = objects.map(|o| object::namespace(o.json())).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    if let [only] = namespaces[..] { Some(only.to_owned()) } else { None }
}

pub(crate) fn package(text: &str) -> Result<(String, Option<Range>), CliError> {
    let text = text.strip_prefix("package/").unwrap_or(text);
    let Some((package, range)) = text.split_once('@') else { return Ok((text.to_owned(), None)) };
    let read = Range::parse_or_exact(range).map_err(|e| {
        CliError::usage(format!("invalid version range {range:?}: {e}"))
            .hint("write a range as in catalogs: >=1.2.0 <2.0.0")
    })?;
    Ok((package.to_owned(), Some(read)))
}

/// Checks that a bundle names its package: without, nothing selects it.
pub(crate) fn require_package(bundle: &Rendered, place: impl Display) -> Result<(), CliError> {
    if !bundle.package.is_empty() {
        return Ok(());
    }
    let hint = format!("set the annotation {BUNDLE_LABEL} in metadata/annotations.yaml");
    Err(CliError::input("the bundle does not name its package").at(place).hint(hint))
}

/// Reads the bundle in a directory or an image.
pub(crate) async fn bundle(reference: &str, images: &image::Options) -> Result<Bundle, CliError> {
    let folder = PathBuf::from(reference);
    // The content exists as long as this value does.
    let pulled = if folder.join("manifests").is_dir() {
        None
    } else {
        let location: Location = reference.parse()?;
        Some(image::pull(&location, Requested::Bundle, images).await?)
    };
    let folder = pulled.as_ref().map_or(folder, |content| content.root.clone());
    let files = registry::image::files(&folder).map_err(|e| CliError::from(e).at(reference))?;
    Bundle::read("", &files).map_err(|finding| CliError::input(finding.to_string()).at(reference))
}

#[cfg(test)]
mod tests;
