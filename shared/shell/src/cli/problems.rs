//! Output of the problems that rules have found in the objects of a cluster or of files: as text, data, SARIF, JUnit reports and annotations.

use olm_core::api::cluster_service_version::deletion_note;
use olm_core::api::object::ObjectRef;
use olm_core::finding::{Finding, Severity};
use olm_core::lint::{Change, Fix, Problem, Rule, Unchecked, rule};
use olm_core::listing::count;
use serde_json::{Value, json};

use super::findings::{About, Format, Report};
use super::paint::Paint;
use super::table::Table;
use super::{CliError, Outcome, Printer};
use crate::observe::ClusterState;
use crate::visible::one_line;

/// The problems of a state.
#[derive(Clone, Copy)]
pub(crate) struct Problems<'a> {
    /// The state, which contains the places of objects in files.
    pub(crate) cluster: &'a ClusterState,
    /// The problems, in the order of output.
    pub(crate) found: &'a [Problem],
    /// All rules that were checked.
    pub(crate) rules: &'a [&'static Rule],
}

impl Problems<'_> {
    /// Prints the problems as text, each with its fix.
    pub(crate) fn text(&self, printer: &mut Printer) -> Result<(), CliError> {
        self.found.iter().try_for_each(|problem| printer.data(text(self.cluster, problem, printer.paint())))
    }

    /// Prints the problems as SARIF, a JUnit report, or annotations.
    pub(crate) fn for_tools(&self, format: Format, printer: &mut Printer) -> Result<(), CliError> {
        let findings: Vec<Finding> = self.found.iter().map(|problem| finding(self.cluster, problem)).collect();
        let explained: Vec<String> = self.rules.iter().map(|rule| rule.explanation()).collect();
        let about: Vec<About<'_>> = self
            .rules
            .iter()
            .zip(&explained)
            .map(|(rule, help)| About { code: rule.code, name: rule.name, summary: rule.summary, help })
            .collect();
        Report { findings: &findings, about: &about, checked: &[] }.data(format, Value::Null, printer)
    }

    /// Returns the problems as data.
    pub(crate) fn documents(&self) -> Value {
        self.found.iter().map(|problem| self.document(problem)).collect()
    }

    /// Returns a problem as data.
    pub(crate) fn document(&self, problem: &Problem) -> Value {
        let mut document = problem.document();
        if problem.fix.as_ref().is_some_and(|fix| given(self.cluster, fix).is_some())
            && let Some(fix) = document["fix"].as_object_mut()
        {
            fix.remove("command");
        }
        let (file, line) = place(self.cluster, problem);
        if !file.is_empty() {
            document["file"] = file.into();
            document["line"] = line.into();
        }
        document
    }

    /// Returns the numbers of problems by severity, in words.
    pub(crate) fn counts(&self) -> Vec<String> {
        let of = |severity: Severity| self.found.iter().filter(|problem| problem.severity == severity).count();
        let counts = [(of(Severity::Error), "error"), (of(Severity::Warning), "warning"), (of(Severity::Info), "note")];
        let parts: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what)).collect();
        if parts.is_empty() { vec!["no findings".to_owned()] } else { parts }
    }

    /// Prints the summary, and what to know before a fix is applied, on stderr.
    pub(crate) fn end(&self, format: Format, summary: &str, printer: &mut Printer) {
        let mut commands = self.found.iter().filter_map(|problem| problem.fix.as_ref()?.command());
        if let Some(note) = commands.find_map(|command| deletion_note(&command)) {
            printer.talk(format_args!("note: {note}"));
        }
        printer.talk(summary);
        let worst = self.found.iter().min_by_key(|problem| problem.severity);
        if let Some(worst) = worst.filter(|_| format == Format::Text) {
            printer.talk(format_args!("run {} for more about {}", worst.rule.command(), worst.rule.code));
        }
    }
}

/// Warns of rules that were checked only in part.
pub(crate) fn warn_of_unchecked(unchecked: &[Unchecked], printer: &mut Printer) {
    for Unchecked { codes, reason } in unchecked {
        printer.warn(format_args!("{reason}: these rules were checked only in part: {}", codes.join(", ")));
    }
}

/// Returns the rules that were checked only in part as data.
pub(crate) fn unchecked(unchecked: &[Unchecked]) -> Value {
    unchecked.iter().map(|Unchecked { codes, reason }| json!({ "codes": codes, "reason": reason })).collect()
}

/// Prints the explanation of a rule; without a name, lists all rules.
///
/// # Errors
/// The rule does not exist.
pub(crate) fn explain(rules: &[&'static Rule], name: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
    if name.is_empty() {
        let mut table = Table::new(["CODE", "NAME", "SEVERITY", "FINDS"]);
        for rule in rules {
            table.row([rule.code, rule.name, &rule.severity.to_string(), rule.summary]);
        }
        printer.data(table)?;
        return Ok(Outcome::Done);
    }
    let rule = rule(rules, name).ok_or_else(|| {
        CliError::usage(format!("unknown rule {name:?}")).hint("--explain without a value lists all rules")
    })?;
    printer.data(rule.explanation())?;
    Ok(Outcome::Done)
}

/// Returns a name such as `OperatorGroup garden/all`.
pub(crate) fn subject(object: &ObjectRef) -> String {
    let ObjectRef { gvk, namespace, name } = object;
    if namespace.is_empty() { format!("{} {name}", gvk.kind) } else { format!("{} {namespace}/{name}", gvk.kind) }
}

/// Returns file and line of a problem: those of its object, or else of another that it concerns.
fn place<'a>(cluster: &'a ClusterState, problem: &Problem) -> (&'a str, usize) {
    let mut objects = std::iter::once(&problem.object).chain(&problem.other_objects);
    let place = objects.find_map(|object| cluster.places.get(object)).map_or("", String::as_str);
    let parts = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    parts.unwrap_or((place, 0))
}

fn finding(cluster: &ClusterState, problem: &Problem) -> Finding {
    let (file, line) = place(cluster, problem);
    let mut finding = Finding::new(problem.rule.code, &problem.message).at(file, line).about(subject(&problem.object));
    finding.severity = problem.severity;
    if let Some(fix) = &problem.fix {
        finding.hint = advice(cluster, fix);
    }
    finding
}

/// Returns the place of the object that the fix changes if it is from a file of `-f`, where no command changes it.
fn given<'a>(cluster: &'a ClusterState, fix: &Fix) -> Option<&'a str> {
    let target = fix.target().filter(|target| cluster.on_top.contains(target))?;
    Some(cluster.places.get(target).map_or("", String::as_str))
}

/// Describes the change of the file.
fn change_of_file(place: &str, fix: &Fix) -> String {
    match &fix.change {
        Some(Change::Patch(_, patch)) => format!("in {place}: {patch}"),
        _ => format!("remove it from {place}"),
    }
}

/// Returns the fix with its command.
fn advice(cluster: &ClusterState, fix: &Fix) -> String {
    if let Some(place) = given(cluster, fix) {
        return format!("{}: {}", fix.description, change_of_file(place, fix));
    }
    match (fix.manifest(), fix.command()) {
        (Some(manifest), Some(command)) => format!("{}: {command} <<'EOF'\n{manifest}EOF", fix.description),
        (_, Some(command)) => format!("{}: {command}", fix.description),
        (_, None) => fix.description.clone(),
    }
}

fn text(cluster: &ClusterState, problem: &Problem, paint: Paint) -> String {
    let place = match place(cluster, problem) {
        ("", _) => String::new(),
        (file, 0) => format!("{file}: "),
        (file, line) => format!("{file}:{line}: "),
    };
    let Problem { severity, object, message, rule, fix, .. } = problem;
    let severity = paint.severity(*severity);
    let (place, message, subject) = (one_line(&place), one_line(message), subject(object));
    let mut text = format!("{place}{severity}: {}: {message} [{}]\n", one_line(&subject), rule.code);
    if let Some(fix) = fix {
        text += &format!("  fix: {}\n", one_line(&fix.description));
        if let Some(place) = given(cluster, fix) {
            text += &format!("    {}\n", one_line(&change_of_file(place, fix)));
        } else if let Some(command) = fix.command() {
            let manifest = fix.manifest().map(|manifest| format!(" <<'EOF'\n{manifest}EOF")).unwrap_or_default();
            let command = one_line(&command);
            text += &if manifest.is_empty() { format!("    {command}\n") } else { format!("{command}{manifest}\n") };
        }
    }
    text
}
