//! `kubectl olm operator describe`: the stages from the Subscription of an operator to its pods, and its problems with stable codes.
//!
//! ```text
//!   Subscriptions, plans, …  --health--> the operators that are selected
//!                            --needs-->  pods, Services, Secrets of those with a problem --diagnose--> text, or a document
//!   --watch: every change of the lists is diagnosed; what is needed anew is read
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use olm_core::api::kinds;
use olm_core::api::object::ObjectRef;
use olm_core::diagnosis::{self, CODES, Diagnosis, Needs, Scope, diagnose, known_of_files, needs};
use olm_core::health::Operator;
use olm_core::world::{GroupKind, Reader, kind};
use serde_json::{Value, json};

use super::{controllers, description, list, lookup, page};
use crate::blocking::block_on;
use crate::cli::flags::{NamespaceFlags, PageFlags, SourceFlags};
use crate::cli::name::bare;
use crate::cli::output::{API_VERSION, Output, PageOutput};
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::observe::{ClusterState, ReadScope};

/// A time that no watch reaches.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Which operators to describe.
#[derive(Clone, Debug)]
pub struct Options {
    /// The source of the objects.
    pub source: SourceFlags,
    /// Their namespaces.
    pub namespaces: NamespaceFlags,
    /// Their names; empty means all.
    pub names: Vec<String>,
    /// Whether to describe them again after changes.
    pub watch: bool,
    /// The output format; a table stands for text.
    pub output: PageFlags,
}

/// Describes operators. The outcome is negative if a user has to act, or a named operator does not exist.
///
/// # Errors
/// Subscriptions and ClusterServiceVersions cannot be read, or cannot be watched.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if options.watch && !options.source.from.is_empty() {
        return Err(CliError::usage("files cannot be watched").hint("leave out --watch or --from"));
    }
    if options.watch && options.output.output == PageOutput::Html {
        return Err(
            CliError::usage("a page cannot be written again after each change").hint("leave out --watch or -o html")
        );
    }
    let names = options.names.iter().map(|text| Ok(bare(text, "subscription")?.to_owned()));
    let names: Vec<String> = names.collect::<Result<_, CliError>>()?;
    block_on(answer(options, &names, printer))
}

/// Prints the explanation of a code; without a name, lists all codes.
///
/// # Errors
/// The code does not exist.
pub fn explain(name: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
    if name.is_empty() {
        let mut table = Table::new(["CODE", "NAME", "MEANING"]);
        for code in CODES {
            table.row([code.code, code.name, code.summary]);
        }
        printer.data(table)?;
        return Ok(Outcome::Done);
    }
    let code = diagnosis::code(name).ok_or_else(|| {
        CliError::usage(format!("unknown code {name:?}")).hint("--explain without a value lists all codes")
    })?;
    printer.data(code.explanation())?;
    Ok(Outcome::Done)
}

async fn answer(options: &Options, names: &[String], printer: &mut Printer) -> Result<Outcome, CliError> {
    let mut printed = Printed::default();
    loop {
        let mut seen = Seen::read(options, names, printer).await?;
        let diagnoses = seen.diagnoses()?;
        if !options.watch {
            return finish(options, names, &seen, &diagnoses, printer);
        }
        printed.print(&diagnoses, &seen, options, printer)?;
        let Seen { state, needs, controllers, names, .. } = &mut seen;
        let (mut failed, controllers, names) = (None, *controllers, &*names);
        let followed = state
            .follow(FOREVER, |state| {
                let now = Diagnosed { state, names, controllers };
                let (is_enough, diagnoses) = match (now.needs(), now.diagnoses()) {
                    (Ok(new), Ok(diagnoses)) => (!needs.includes(&new), diagnoses),
                    (Err(error), _) | (_, Err(error)) => {
                        failed = Some(error);
                        return true;
                    }
                };
                // What is needed anew is read before it is described.
                if !is_enough && let Err(error) = printed.print_all(&diagnoses, state, options, printer) {
                    failed = Some(error);
                    return true;
                }
                is_enough
            })
            .await;
        match (failed, followed) {
            (Some(error), _) => return Err(error),
            // The changes since the watch expired are read again.
            (None, Ok(())) => {}
            (None, Err(refusal)) if refusal.code == 410 => {}
            (None, Err(refusal)) => {
                let message = format!("cannot watch the objects of operators: {}", refusal.message);
                return Err(CliError::new(ErrorKind::Api, message).hint("leave out --watch, and repeat the command"));
            }
        }
    }
}

/// A state with operators in it.
struct Diagnosed<'s> {
    state: &'s ClusterState,
    names: &'s [String],
    controllers: Option<bool>,
}

impl Diagnosed<'_> {
    fn operators(&self) -> Result<Vec<Operator>, CliError> {
        let mut operators = lookup::operators(self.state)?;
        let is_asked = |operator: &Operator| {
            self.names.is_empty() || self.names.iter().any(|name| lookup::is_named(operator, name))
        };
        operators.retain(is_asked);
        Ok(operators)
    }

    fn needs(&self) -> Result<Needs, CliError> {
        let world = Reader::new(&self.state.world);
        let mut all = Needs::default();
        for operator in self.operators()? {
            all.extend(needs(&world, &operator.namespace, &operator.name));
        }
        Ok(all)
    }

    fn diagnoses(&self) -> Result<Vec<Diagnosis>, CliError> {
        let mut known = match self.state.api() {
            Some(_) => self.state.known(),
            None => known_of_files(&self.state.world),
        };
        for failure in self.state.read_failures.iter().filter(|failure| failure.is_unreadable()) {
            // It exists, whichever object of that kind is missing.
            if let Some(of_kind) = kinds::ALL.iter().find(|of_kind| of_kind.resource() == failure.resource) {
                known.limit(GroupKind::known(of_kind), BTreeSet::new(), failure.to_string());
            }
        }
        let world = Reader::new(&self.state.world);
        let scope = Scope {
            settings: &self.state.settings,
            known: &known,
            controllers: self.controllers,
            now: jiff::Timestamp::now(),
        };
        let operators = self.operators()?;
        Ok(operators
            .iter()
            .filter_map(|operator| diagnose(&world, scope, &operator.namespace, &operator.name))
            .collect())
    }
}

/// The objects that were read.
struct Seen<'o> {
    state: ClusterState,
    names: &'o [String],
    needs: Needs,
    controllers: Option<bool>,
}

impl<'o> Seen<'o> {
    async fn read(options: &Options, names: &'o [String], printer: &mut Printer) -> Result<Self, CliError> {
        let state = options.source.read(&options.namespaces, &[], ReadScope::Diagnosis, printer).await?;
        let mut seen = Self { state, names, needs: Needs::default(), controllers: None };
        let _progress = seen.state.api().is_some().then(|| printer.progress("reading what operators consist of"));
        // A catalog that is read can need its pods.
        for _ in 0..2 {
            let needs = seen.diagnosed().needs()?;
            let is_complete = seen.needs.includes(&needs);
            seen.complete(needs).await;
            if is_complete {
                break;
            }
        }
        if let Some(api) = seen.state.api() {
            seen.controllers = controllers::running(api).await;
        }
        Ok(seen)
    }

    fn diagnosed(&self) -> Diagnosed<'_> {
        Diagnosed { state: &self.state, names: self.names, controllers: self.controllers }
    }

    fn diagnoses(&self) -> Result<Vec<Diagnosis>, CliError> {
        self.diagnosed().diagnoses()
    }

    /// Reads what is needed and was not read before.
    async fn complete(&mut self, needs: Needs) {
        let new: Vec<ObjectRef> = needs.objects.difference(&self.needs.objects).cloned().collect();
        self.state.read_objects(new).await;
        for namespace in needs.pods.difference(&self.needs.pods) {
            self.state.read_kind(&kind::POD, namespace).await;
        }
        if needs.webhooks && !self.needs.webhooks {
            for gk in [kind::MUTATING_WEBHOOK_CONFIGURATION, kind::VALIDATING_WEBHOOK_CONFIGURATION] {
                self.state.read_kind(&gk, "").await;
            }
        }
        self.needs.extend(needs);
    }
}

/// Prints all diagnoses at once, and returns the outcome.
fn finish(
    options: &Options,
    names: &[String],
    seen: &Seen<'_>,
    diagnoses: &[Diagnosis],
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let output = &options.output.output;
    let is_text = matches!(output, PageOutput::Output(Output::Table | Output::Wide));
    let missing: Vec<&String> = names
        .iter()
        .filter(|name| !diagnoses.iter().any(|diagnosis| lookup::is_named(&diagnosis.operator, name)))
        .collect();
    if diagnoses.is_empty() && is_text && missing.is_empty() {
        printer.talk(list::none(&seen.state, false));
        return Ok(Outcome::Done);
    }
    if is_text {
        let texts: Vec<String> = diagnoses.iter().map(|one| text(one, options, printer)).collect();
        printer.data(texts.join("\n---\n\n"))?;
    } else {
        let documents: Vec<Value> = diagnoses.iter().map(|one| document(one, &seen.state)).collect();
        match (output, &documents[..]) {
            (PageOutput::Output(Output::Name), _) => {
                for Diagnosis { operator, .. } in diagnoses {
                    let place = if seen.state.namespace.is_none() {
                        format!(" -n {}", operator.namespace)
                    } else {
                        String::new()
                    };
                    printer.line(format_args!("operator/{}{place}", operator.name))?;
                }
            }
            (PageOutput::Output(output), [one]) if names.len() == 1 => {
                output.object(printer, one, || Table::new([]))?;
            }
            (_, []) if !missing.is_empty() => {}
            (PageOutput::Html, _) => printer.data(page::html(diagnoses, seen.state.namespace.as_deref()))?,
            (PageOutput::Output(output), documents) => output.objects(printer, documents, || Table::new([]))?,
        }
    }
    for name in &missing {
        printer.error(&lookup::not_found(name, seen.state.namespace.as_deref()));
    }
    let is_blocked = diagnoses.iter().any(Diagnosis::is_blocked);
    Ok(if missing.is_empty() && !is_blocked { Outcome::Done } else { Outcome::Negative })
}

/// What `--watch` has printed.
#[derive(Default)]
struct Printed {
    last: BTreeMap<(String, String), Diagnosis>,
    is_waiting_reported: bool,
}

impl Printed {
    fn print(
        &mut self,
        diagnoses: &[Diagnosis],
        seen: &Seen<'_>,
        options: &Options,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        if diagnoses.is_empty() && !self.is_waiting_reported {
            printer.talk(format_args!("{}; waiting for one", list::none(&seen.state, false)));
            self.is_waiting_reported = true;
        }
        self.print_all(diagnoses, &seen.state, options, printer)
    }

    /// Prints the diagnoses that have changed.
    fn print_all(
        &mut self,
        diagnoses: &[Diagnosis],
        state: &ClusterState,
        options: &Options,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        let key = |diagnosis: &Diagnosis| (diagnosis.operator.namespace.clone(), diagnosis.operator.name.clone());
        for diagnosis in diagnoses {
            let key = key(diagnosis);
            if self.last.get(&key) == Some(diagnosis) {
                continue;
            }
            match &options.output.output {
                PageOutput::Html => {}
                PageOutput::Output(Output::Table | Output::Wide) => {
                    let separator = if self.last.is_empty() { "" } else { "\n---\n\n" };
                    printer.data(format!("{separator}{}", text(diagnosis, options, printer)))?;
                }
                PageOutput::Output(Output::Name) => {
                    printer.line(format_args!("operator/{}", diagnosis.operator.name))?;
                }
                PageOutput::Output(output) => {
                    let separator = matches!(output, Output::Yaml) && !self.last.is_empty();
                    if separator {
                        printer.line("---")?;
                    }
                    output.object(printer, &document(diagnosis, state), || Table::new([]))?;
                }
            }
            printer.flush()?;
            self.last.insert(key, diagnosis.clone());
        }
        let is_known = |(namespace, name): &(String, String)| {
            diagnoses.iter().any(|one| one.operator.namespace == *namespace && one.operator.name == *name)
        };
        let deleted: Vec<(String, String)> = self.last.keys().filter(|key| !is_known(key)).cloned().collect();
        for key in deleted {
            printer.talk(format_args!("operator {} in namespace {} does not exist any more", key.1, key.0));
            self.last.remove(&key);
        }
        Ok(())
    }
}

fn text(diagnosis: &Diagnosis, options: &Options, printer: &Printer) -> String {
    description::text(diagnosis, options.output.output == PageOutput::Output(Output::Wide), printer.paint())
}

/// Returns a diagnosis as data.
fn document(diagnosis: &Diagnosis, state: &ClusterState) -> Value {
    let Diagnosis { operator, stages, problems } = diagnosis;
    let object = list::object_of(operator, &Reader::new(&state.world));
    let mut document = list::document(operator, object);
    document["apiVersion"] = API_VERSION.into();
    document["kind"] = "OperatorDiagnosis".into();
    document["stages"] = stages.iter().map(olm_core::diagnosis::Stage::document).collect();
    document["problems"] = problems.iter().map(olm_core::diagnosis::Problem::document).collect();
    document["blocked"] = json!(diagnosis.is_blocked());
    document
}
