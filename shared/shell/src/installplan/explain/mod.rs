//! `kubectl olm install-plan explain`: what a plan would do, before it does it.
//!
//! ```text
//!   observe --ClusterState--> read      what the explanation needs, and what the first attempt at it asks for
//!                        |
//!              olm_core::explain::Explainer    tries the plan out on a copy
//!                        |
//!                   rehearse    asks the API server whether it would take the objects
//!                        |
//!                     report    sections of lines --> text for people, markdown for reviews; or the document itself
//! ```
//!
//! *Guarantee*: nothing is written to the cluster: what it is asked to take it is asked with `dryRun=All`, where rights allow that.

mod diff;
mod read;
mod rehearse;
mod report;

use std::path::PathBuf;
use std::str::FromStr;

use olm_core::api::object;
use olm_core::bundle::Bundle;
use olm_core::explain::{Explanation, Subject};
use olm_core::installplan::summary;
use olm_core::version::{self, Range};
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

pub use self::read::{DryRun, explain};
pub(crate) use self::read::{catalogs, explainer};
pub(crate) use self::report::render_right as right;
pub use self::report::summary;
use super::policy::{self, Tried};
use crate::blocking::block_on;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::name::bare;
use crate::cli::output::{API_VERSION, Output};
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image::{self, Location, Wanted};
use crate::observe::{ClusterState, Gap, ReadScope};
use crate::registry;

/// Namespace of what is asked about when nothing names one.
const DEFAULT_NAMESPACE: &str = "default";

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// These plans; none: those that wait for approval, or are approved and not executed yet.
    Plans(Vec<String>),
    /// What this Subscription gets next.
    Subscription(String),
    /// What this bundle would do: a directory, an image, an OCI layout.
    Bundle(String),
    /// What subscribing to a package would do: `PACKAGE` or `PACKAGE@RANGE`.
    Package(String),
}

/// The form of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// Sentences, for the terminal.
    Text,
    /// Sentences, for reviews.
    Markdown,
    /// The document.
    Document(Output),
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" | "text" => Ok(Self::Text),
            "markdown" => Ok(Self::Markdown),
            other => match other.parse() {
                Ok(Output::Table | Output::Wide | Output::Name) | Err(_) => {
                    Err("expected json, yaml, markdown or jsonpath=TEMPLATE".to_owned())
                }
                Ok(output) => Ok(Self::Document(output)),
            },
        }
    }
}

/// What is asked, of whom, and how it is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is asked about.
    pub asked: Asked,
    /// Where it is read.
    pub source: SourceFlags,
    /// In which namespace.
    pub namespaces: NamespaceFlags,
    /// Files that count as if they had been applied.
    pub on_top: Vec<PathBuf>,
    /// How images are pulled.
    pub images: image::Options,
    /// Do the controllers go on without optional objects?
    pub optional_manifests: bool,
    /// Is the API server asked whether it would take the objects?
    pub dry_run: DryRun,
    /// Policies to try on it, in CEL.
    pub policies: Vec<String>,
    /// Is everything told, with what changes line by line?
    pub details: bool,
    /// The form of the answer.
    pub form: Form,
}

/// Explains, and says whether all would go well.
///
/// # Errors
/// What is asked about is not there, or nothing can be said of it.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let policies = policy::policies(&options.policies)?;
    let (explanations, gaps) = block_on(explanations(options, printer))?;
    for gap in gaps {
        printer.warn(gap);
    }
    let is_list = matches!(&options.asked, Asked::Plans(names) if names.len() != 1);
    if explanations.is_empty() && !matches!(options.form, Form::Document(_)) {
        printer
            .talk("No InstallPlan waits for approval. What would come next is told with --subscription or --package.");
        return Ok(Outcome::Done);
    }
    let tried = |explanation: &Explanation| -> Vec<Tried> {
        let document = serde_json::to_value(explanation).unwrap_or_default();
        policies.iter().map(|policy| Tried::new(policy, &document)).collect()
    };
    let with_policies = |explanation: Explanation| {
        let tried = tried(&explanation);
        (explanation, tried)
    };
    let explanations: Vec<(Explanation, Vec<Tried>)> = explanations.into_iter().map(with_policies).collect();
    print(&explanations, is_list, &options.form, options.details, printer)?;
    let worst = explanations.iter().map(|(e, _)| e.verdict.result).max().unwrap_or_default();
    let tried: Vec<&Tried> = explanations.iter().flat_map(|(_, tried)| tried).collect();
    Ok(match worst {
        olm_core::explain::Outcome::WouldFail => Outcome::Negative,
        _ if tried.iter().any(|tried| tried.holds == Some(false)) => Outcome::Negative,
        olm_core::explain::Outcome::Unknown => Outcome::Unknown,
        _ if tried.iter().any(|tried| tried.holds.is_none()) => Outcome::Unknown,
        // The policies decide.
        olm_core::explain::Outcome::NeedsDecision if policies.is_empty() => Outcome::Negative,
        olm_core::explain::Outcome::NeedsDecision | olm_core::explain::Outcome::Safe => Outcome::Done,
    })
}

/// Prints explanations, each with what came of policies; as data they are one `List` when that was asked for.
///
/// # Errors
/// They cannot be written.
pub fn print(
    explanations: &[(Explanation, Vec<Tried>)],
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

/// The explanation as a document of its own.
pub fn document(explanation: &Explanation) -> Value {
    let mut document = json!({ "apiVersion": API_VERSION, "kind": "InstallPlanExplanation" });
    if let (Some(document), Ok(Value::Object(told))) = (document.as_object_mut(), serde_json::to_value(explanation)) {
        document.extend(told);
    }
    document
}

async fn explanations(options: &Options, printer: &mut Printer) -> Result<(Vec<Explanation>, Vec<String>), CliError> {
    let Options { asked, source, namespaces, on_top, images, optional_manifests, dry_run, .. } = options;
    let mut seen = source.read(namespaces, on_top, ReadScope::Planning, printer).await?;
    seen.settings.optional_manifests = *optional_manifests;
    if let Some(vital) = seen.gaps.iter().find(|gap| is_vital(gap, asked)) {
        // Whoever asks for rights should ask once.
        seen.gaps.iter().filter(|gap| *gap != vital && gap.forbidden).for_each(|gap| printer.warn(gap));
        return Err(CliError::from(vital));
    }
    let mut explanations = Vec::new();
    for subject in subjects(asked, &seen, images).await? {
        explanations.push(explain(&mut seen, &subject, images, *dry_run, printer).await?);
    }
    let untold = if explanations.is_empty() { seen.gaps.iter().map(ToString::to_string).collect() } else { Vec::new() };
    Ok((explanations, untold))
}

/// Can nothing be said without what could not be read?
pub(super) fn is_vital(gap: &Gap, asked: &Asked) -> bool {
    // Without its OperatorGroup every plan of a namespace would fail.
    gap.is_of("operatorgroups")
        || match asked {
            Asked::Plans(_) => gap.is_of("installplans"),
            Asked::Subscription(_) => gap.is_of("subscriptions"),
            Asked::Bundle(_) | Asked::Package(_) => false,
        }
}

/// What is asked about, in the namespace that is looked at.
async fn subjects(asked: &Asked, seen: &ClusterState, images: &image::Options) -> Result<Vec<Subject>, CliError> {
    let namespace = || seen.namespace.clone().or_else(|| only_namespace(seen));
    let namespace = || namespace().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    Ok(match asked {
        Asked::Plans(names) if names.is_empty() => {
            let world = Reader::new(&seen.world);
            let waits = |plan: &&Value| summary::waits_for_approval(plan) || summary::waits_for_execution(plan);
            let plans = world.all(&kind::INSTALL_PLAN).map(|o| o.json()).filter(|plan| seen.is_asked(plan));
            let subject = |plan: &Value| Subject::Plan {
                namespace: object::namespace(plan).to_owned(),
                name: object::name(plan).to_owned(),
            };
            plans.filter(waits).map(subject).collect()
        }
        Asked::Plans(names) => {
            let subject = |name: &String| {
                let name = bare(name, "installplan")?.to_owned();
                Ok(Subject::Plan { namespace: namespace(), name })
            };
            names.iter().map(subject).collect::<Result<_, CliError>>()?
        }
        Asked::Subscription(name) => {
            let name = bare(name, "subscription")?.to_owned();
            vec![Subject::Subscription { namespace: namespace(), name }]
        }
        Asked::Package(wanted) => {
            let (package, range) = package(wanted)?;
            vec![Subject::Package { namespace: namespace(), package, range }]
        }
        Asked::Bundle(reference) => {
            let bundle = bundle(reference, images).await?.render();
            let bundle = bundle.map_err(|finding| CliError::input(finding.to_string()).at(reference))?;
            vec![Subject::Bundle { namespace: namespace(), bundle: Box::new(bundle) }]
        }
    })
}

/// The namespace that has all Subscriptions and InstallPlans.
fn only_namespace(seen: &ClusterState) -> Option<String> {
    let world = Reader::new(&seen.world);
    let all = [kind::SUBSCRIPTION, kind::INSTALL_PLAN, kind::OPERATOR_GROUP];
    let objects = all.iter().flat_map(|kind| world.all(kind));
    let mut namespaces: Vec<&str> = objects.map(|o| object::namespace(o.json())).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    if let [only] = namespaces[..] { Some(only.to_owned()) } else { None }
}

/// `PACKAGE` or `PACKAGE@RANGE`.
pub(crate) fn package(text: &str) -> Result<(String, Option<Range>), CliError> {
    let text = text.strip_prefix("package/").unwrap_or(text);
    let Some((package, range)) = text.split_once('@') else { return Ok((text.to_owned(), None)) };
    let exact = version::parse_tolerant(range).is_ok();
    let range = if exact { format!("={range}") } else { range.to_owned() };
    let read = Range::parse(&range).map_err(|e| {
        CliError::usage(format!("{range:?} is no range of versions: {e}"))
            .hint("write it as catalogs do: >=1.2.0 <2.0.0")
    })?;
    Ok((package.to_owned(), Some(read)))
}

/// The bundle in a directory or an image.
pub(crate) async fn bundle(reference: &str, images: &image::Options) -> Result<Bundle, CliError> {
    let folder = PathBuf::from(reference);
    // The content is there for as long as it is held.
    let pulled = if folder.join("manifests").is_dir() {
        None
    } else {
        let location: Location = reference.parse()?;
        Some(image::pull(&location, Wanted::Bundle, images).await?)
    };
    let folder = pulled.as_ref().map_or(folder, |content| content.root.clone());
    let files = registry::image::files(&folder).map_err(|e| CliError::from(e).at(reference))?;
    Bundle::read("", &files).map_err(|finding| CliError::input(finding.to_string()).at(reference))
}

#[cfg(test)]
mod tests;
