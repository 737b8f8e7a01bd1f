//! Prints the findings.

use olm_core::lint::matrix::Matrix;
use olm_core::lint::{Linted, RULES};
use olm_core::listing::count;
use serde_json::{Value, json};

use super::Options;
use super::fix::Fixed;
use crate::cli::findings::Format;
use crate::cli::output::API_VERSION;
use crate::cli::problems::{Problems, unchecked, warn_of_unchecked};
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

impl<'a> Content<'a> {
    fn problems(&self) -> Problems<'a> {
        Problems { cluster: self.cluster, found: &self.linted.problems, rules: &RULES }
    }
}

pub(super) fn print(content: &Content<'_>, options: &Options, printer: &mut Printer) -> Result<(), CliError> {
    let Content { linted, matrices, .. } = content;
    let problems = content.problems();
    match options.format {
        Format::Text => {
            problems.text(printer)?;
            for (catalog, matrix) in *matrices {
                printer.data(table(catalog, matrix))?;
            }
        }
        Format::Json => printer.json(&document(content))?,
        Format::Yaml => printer.yaml(&document(content))?,
        Format::Sarif | Format::Junit | Format::Github => problems.for_tools(options.format, printer)?,
    }
    warn_of_unchecked(&linted.unchecked, printer);
    problems.end(options.format, &summary(content), printer);
    Ok(())
}

fn summary(content: &Content<'_>) -> String {
    let Content { linted, cluster, known, fixed, .. } = content;
    let mut parts = content.problems().counts();
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
    let Content { linted, matrices, known, fixed, .. } = content;
    let problems = content.problems();
    let mut document = json!({
        "apiVersion": API_VERSION, "kind": "OperatorGroupLint",
        "operatorGroups": linted.groups,
        "findings": problems.documents(),
        "inBaseline": known,
        "unchecked": unchecked(&linted.unchecked),
    });
    if !fixed.is_empty() {
        let done = |Fixed { problem, command }: &Fixed| {
            let mut document = problems.document(problem);
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
