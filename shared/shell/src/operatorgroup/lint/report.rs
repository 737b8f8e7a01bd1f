//! Prints the findings.

use olm_core::api::cluster_service_version::deletion_note;
use olm_core::finding::{Finding, Severity};
use olm_core::lint::matrix::Matrix;
use olm_core::lint::{Change, Fix, Linted, Problem, RULES};
use olm_core::listing::count;
use serde_json::{Value, json};

use super::Options;
use super::fix::{Fixed, subject};
use crate::cli::findings::{About, Format, Report};
use crate::cli::output::API_VERSION;
use crate::cli::paint::Paint;
use crate::cli::table::Table;
use crate::cli::{CliError, Printer};
use crate::observe::ClusterState;
use crate::visible::one_line;

/// The maximum number of groups with a column each.
const COLUMNS: usize = 5;

/// The content of the report.
pub(super) struct Content<'a> {
    pub(super) linted: &'a Linted,
    pub(super) cluster: &'a ClusterState,
    /// The matrices by catalog.
    pub(super) matrices: &'a [(String, Matrix)],
    /// The number of findings that the baseline omitted.
    pub(super) known: usize,
    pub(super) fixed: &'a [Fixed],
}

pub(super) fn print(content: &Content<'_>, options: &Options, printer: &mut Printer) -> Result<(), CliError> {
    let Content { linted, matrices, .. } = content;
    match options.format {
        Format::Text => {
            for problem in &linted.problems {
                printer.data(text(content, problem, printer.paint()))?;
            }
            for (catalog, matrix) in *matrices {
                printer.data(table(catalog, matrix))?;
            }
        }
        Format::Json => printer.json(&document(content))?,
        Format::Yaml => printer.yaml(&document(content))?,
        Format::Sarif | Format::Junit | Format::Github => {
            let findings: Vec<Finding> = linted.problems.iter().map(|problem| finding(content, problem)).collect();
            let explained: Vec<String> = RULES.iter().map(|rule| rule.explanation()).collect();
            let about: Vec<About<'_>> = RULES
                .iter()
                .zip(&explained)
                .map(|(rule, help)| About { code: rule.code, name: rule.name, summary: rule.summary, help })
                .collect();
            Report { findings: &findings, about: &about, checked: &[] }.data(options.format, Value::Null, printer)?;
        }
    }
    for unchecked in &linted.unchecked {
        printer.warn(format_args!(
            "{}: these rules were checked only in part: {}",
            unchecked.reason,
            unchecked.codes.join(", ")
        ));
    }
    let commands = linted.problems.iter().filter_map(|problem| problem.fix.as_ref()?.command());
    if let Some(note) = commands.into_iter().find_map(|command| deletion_note(&command)) {
        printer.talk(format_args!("note: {note}"));
    }
    printer.talk(summary(content));
    let worst = linted.problems.iter().min_by_key(|problem| problem.severity);
    if let Some(worst) = worst.filter(|_| options.format == Format::Text) {
        printer.talk(format_args!("run {} for more about {}", worst.rule.command(), worst.rule.code));
    }
    Ok(())
}

/// Returns file and line of a problem: those of its object, or else of another that it concerns.
fn place<'a>(cluster: &'a ClusterState, problem: &Problem) -> (&'a str, usize) {
    let mut objects = std::iter::once(&problem.object).chain(&problem.other_objects);
    let place = objects.find_map(|object| cluster.places.get(object)).map_or("", String::as_str);
    let parts = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    parts.unwrap_or((place, 0))
}

fn finding(content: &Content<'_>, problem: &Problem) -> Finding {
    let (file, line) = place(content.cluster, problem);
    let mut finding = Finding::new(problem.rule.code, &problem.message).at(file, line).about(subject(&problem.object));
    finding.severity = problem.severity;
    if let Some(fix) = &problem.fix {
        finding.hint = advice(content, fix);
    }
    finding
}

/// Returns the place of the object that the fix changes if it is from a file of `-f`, where no command changes it.
fn given<'a>(content: &Content<'a>, fix: &Fix) -> Option<&'a str> {
    let target = fix.target().filter(|target| content.cluster.on_top.contains(target))?;
    Some(content.cluster.places.get(target).map_or("", String::as_str))
}

/// Describes the change of the file.
fn change_of_file(place: &str, fix: &Fix) -> String {
    match &fix.change {
        Some(Change::Patch(_, patch)) => format!("in {place}: {patch}"),
        _ => format!("remove it from {place}"),
    }
}

/// Returns the fix with its command.
fn advice(content: &Content<'_>, fix: &Fix) -> String {
    if let Some(place) = given(content, fix) {
        return format!("{}: {}", fix.description, change_of_file(place, fix));
    }
    match (fix.manifest(), fix.command()) {
        (Some(manifest), Some(command)) => format!("{}: {command} <<'EOF'\n{manifest}EOF", fix.description),
        (_, Some(command)) => format!("{}: {command}", fix.description),
        (_, None) => fix.description.clone(),
    }
}

fn text(content: &Content<'_>, problem: &Problem, paint: Paint) -> String {
    let place = match place(content.cluster, problem) {
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
        if let Some(place) = given(content, fix) {
            text += &format!("    {}\n", one_line(&change_of_file(place, fix)));
        } else if let Some(command) = fix.command() {
            let manifest = fix.manifest().map(|manifest| format!(" <<'EOF'\n{manifest}EOF")).unwrap_or_default();
            let command = one_line(&command);
            text += &if manifest.is_empty() { format!("    {command}\n") } else { format!("{command}{manifest}\n") };
        }
    }
    text
}

fn summary(content: &Content<'_>) -> String {
    let Content { linted, cluster, known, fixed, .. } = content;
    let of = |severity: Severity| linted.problems.iter().filter(|problem| problem.severity == severity).count();
    let counts = [(of(Severity::Error), "error"), (of(Severity::Warning), "warning"), (of(Severity::Info), "note")];
    let mut parts: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what)).collect();
    if parts.is_empty() {
        parts.push("no findings".to_owned());
    }
    if !fixed.is_empty() {
        parts.push(format!("{} fixed", fixed.len()));
    }
    if *known > 0 {
        parts.push(format!("{known} in the baseline"));
    }
    let place = cluster.namespace.as_ref().map(|asked| format!(", namespace {asked}")).unwrap_or_default();
    format!("{}{place}: {}", count(linted.groups, "OperatorGroup"), parts.join(", "))
}

fn document(content: &Content<'_>) -> Value {
    let Content { linted, cluster, matrices, known, fixed } = content;
    let finding = |problem: &Problem| {
        let mut document = problem.document();
        if problem.fix.as_ref().is_some_and(|fix| given(content, fix).is_some())
            && let Some(fix) = document["fix"].as_object_mut()
        {
            fix.remove("command");
        }
        let (file, line) = place(cluster, problem);
        if !file.is_empty() {
            document["file"] = file.into();
            document["line"] = line.into();
        }
        document
    };
    let unchecked =
        linted.unchecked.iter().map(|unchecked| json!({ "codes": unchecked.codes, "reason": unchecked.reason }));
    let mut document = json!({
        "apiVersion": API_VERSION, "kind": "OperatorGroupLint",
        "operatorGroups": linted.groups,
        "findings": linted.problems.iter().map(finding).collect::<Vec<_>>(),
        "inBaseline": known,
        "unchecked": unchecked.collect::<Vec<_>>(),
    });
    if !fixed.is_empty() {
        let done = |Fixed { problem, command }: &Fixed| {
            let mut document = finding(problem);
            document["command"] = command.as_str().into();
            document
        };
        document["fixed"] = fixed.iter().map(done).collect();
    }
    if !matrices.is_empty() {
        let with_catalog = |(catalog, matrix): &(String, Matrix)| {
            let mut document = matrix.document();
            document["catalog"] = catalog.as_str().into();
            document
        };
        document["packages"] = matrices.iter().map(with_catalog).collect();
    }
    document
}

/// Returns a table of versions and groups.
fn table(catalog: &str, matrix: &Matrix) -> String {
    let names: Vec<String> = matrix.groups.iter().map(|group| format!("{}/{}", group.namespace, group.name)).collect();
    let has_columns = names.len() <= COLUMNS;
    let mut headers = vec!["VERSION".to_owned(), "CHANNELS".to_owned()];
    if has_columns {
        headers.extend(names.iter().cloned());
    } else {
        headers.push("FITS".to_owned());
    }
    headers.push("WOULD FIT A GROUP THAT TARGETS".to_owned());
    let mut table = Table::with(headers);
    for line in &matrix.versions {
        let mut cells = vec![line.version.clone(), line.channels.join(",")];
        let fitting = || names.iter().zip(&line.fits).filter(|(_, fit)| fit.is_ok()).map(|(name, _)| name.as_str());
        match &line.unknown {
            Some(_) => cells.extend(headers_between(has_columns, names.len()).map(|()| "<unknown>".to_owned())),
            None if has_columns => {
                cells.extend(line.fits.iter().map(|fit| if fit.is_ok() { "yes" } else { "no" }.to_owned()));
            }
            None => cells.push(format!(
                "{} of {}: {}",
                fitting().count(),
                names.len(),
                fitting().collect::<Vec<_>>().join(",")
            )),
        }
        cells.push(line.unknown.clone().unwrap_or_else(|| line.supported_targets.join(", ")));
        table.row(cells);
    }
    format!("\nPackage {} in catalog {}:\n{table}", one_line(&matrix.package), one_line(catalog))
}

/// Returns one item for each column of groups.
fn headers_between(has_columns: bool, groups: usize) -> impl Iterator<Item = ()> {
    std::iter::repeat_n((), if has_columns { groups } else { 1 })
}
