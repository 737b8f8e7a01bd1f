//! Expected final states: those of the recording, the expected differences, and the stored results of cases without a
//! recording.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::case::{End, Outcome};
use crate::data::repository;
use crate::scenario::format::read_yaml;

/// The final state of the head of a channel with the real OLM.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Package.
    pub package: String,
    /// Name of the CSV.
    pub head: String,
    /// The final state.
    pub end: End,
}

/// An expected difference from the recording.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Name of the head's CSV.
    head: String,
    /// Limits the difference to one engine: `sim` or `cluster`.
    engine: Option<String>,
    /// The phase of this implementation,
    phase: String,
    /// and its reason.
    #[serde(default)]
    reason: String,
    /// The explanation.
    #[expect(dead_code, reason = "for readers of the file, where it is required")]
    why: String,
}

impl Wanted {
    fn is_for(&self, head: &str, engine: &str) -> bool {
        self.head == head && self.engine.as_deref().is_none_or(|only| only == engine)
    }
}

/// A stored result: of an upgrade, or of a head without a recording.
#[derive(Clone, Debug)]
pub struct Written {
    /// Package.
    pub package: String,
    /// The older bundle; `-` for a head.
    pub from: String,
    /// The newer bundle, or the head.
    pub to: String,
    /// `replaces`, `skips`, `skipRange`, or `head`.
    pub by: String,
    /// The final state of the install of the older bundle; `-` for a head.
    pub install: String,
    /// The final state of the upgrade, or of the install of the head.
    pub end: String,
    /// The explanation if it is not Succeeded.
    pub why: String,
}

impl Written {
    /// Returns a result in the form of the stored ones.
    pub fn new(package: &str, from: Option<&str>, to: &str, by: &str, outcome: &Outcome) -> Self {
        let install = outcome.install.to_string();
        let (install, end) = match &outcome.upgrade {
            Some(end) => (install, end.to_string()),
            None => ("-".to_owned(), install),
        };
        let from = from.unwrap_or("-").to_owned();
        let (package, to, by) = (package.to_owned(), to.to_owned(), by.to_owned());
        Self { package, from, to, by, install, end, why: String::new() }
    }

    fn is_about(&self, other: &Self) -> bool {
        (&self.package, &self.from, &self.to) == (&other.package, &other.from, &other.to)
    }

    fn line(&self) -> String {
        let Self { package, from, to, by, install, end, why } = self;
        format!("{package}\t{from}\t{to}\t{by}\t{install}\t{end}\t{why}")
    }
}

/// Returns the folder of the expected results.
pub fn folder() -> PathBuf {
    repository().join("tests/sweep")
}

/// Reads the recording of a data folder; `None` if it has none.
pub fn recorded(data: &Path) -> Result<Option<Vec<Recorded>>> {
    let file = data.join("recorded/install-heads.tsv");
    if !file.exists() {
        return Ok(None);
    }
    let row = |fields: Vec<String>| match &fields[..] {
        [package, head, phase, reason, ..] => {
            Ok(Recorded { package: package.clone(), head: head.clone(), end: End::new(phase, reason) })
        }
        _ => bail!("{}: expected package, head, end and reason: {fields:?}", file.display()),
    };
    rows(&file)?.into_iter().map(row).collect::<Result<_>>().map(Some)
}

/// Reads the stored results.
pub fn written() -> Result<Vec<Written>> {
    let file = folder().join("ends.tsv");
    let row = |mut fields: Vec<String>| {
        fields.resize(7, String::new());
        let [package, from, to, by, install, end, why] = <[String; 7]>::try_from(fields).unwrap_or_default();
        Written { package, from, to, by, install, end, why }
    };
    Ok(rows(&file)?.into_iter().map(row).collect())
}

/// Reads the expected differences.
pub fn wanted() -> Result<Vec<Wanted>> {
    Ok(read_yaml::<Option<Vec<Wanted>>>(&folder().join("differences.yaml"))?.unwrap_or_default())
}

fn rows(file: &Path) -> Result<Vec<Vec<String>>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// Returns the heads whose final state is neither as recorded nor an expected difference, and the expected differences that do
/// not occur.
pub fn heads(engine: &str, ends: &[(&Recorded, Outcome)], wanted: &[Wanted]) -> String {
    let mut out = String::new();
    for (Recorded { package, head, end }, outcome) in ends {
        let ours = &outcome.install;
        let argued = wanted.iter().find(|wanted| wanted.is_for(head, engine));
        let as_argued = argued.map(|wanted| End::new(&wanted.phase, &wanted.reason));
        if ours == end && argued.is_some() {
            let _ =
                writeln!(out, "{package} {head}: ends as recorded, {end}\n    hint: remove it from differences.yaml");
        } else if ours != as_argued.as_ref().unwrap_or(end) {
            let _ = writeln!(out, "{package} {head}: recorded {end}, ours {ours}");
            for line in &outcome.because {
                let _ = writeln!(out, "    {line}");
            }
        }
    }
    out
}

/// Returns the results that differ from the stored ones, and those that lack a required explanation.
pub fn ends(found: &[(Written, Vec<String>)], written: &[Written]) -> String {
    let mut out = String::new();
    for (found, because) in found {
        let Some(known) = written.iter().find(|known| known.is_about(found)) else { continue };
        let Written { package, from, to, .. } = found;
        if (&known.by, &known.install, &known.end) != (&found.by, &found.install, &found.end) {
            let line = |w: &Written| format!("{} from {} to {}", w.by, w.install, w.end);
            let _ = writeln!(out, "{package} {from} -> {to}: stored {}, found {}", line(known), line(found));
            for line in because {
                let _ = writeln!(out, "    {line}");
            }
        } else if known.why.is_empty() && !known.end.starts_with("Succeeded/") {
            let _ = writeln!(out, "{package} {from} -> {to}: {}, without a reason in ends.tsv", known.end);
        }
    }
    out
}

/// Formats the heads as a Markdown table.
pub fn table_of_heads(engine: &str, ends: &[(&Recorded, Outcome)]) -> String {
    let mut out = format!("| package | head | real OLM | ours ({engine}) |\n| --- | --- | --- | --- |\n");
    for (Recorded { package, head, end }, outcome) in ends {
        let ours = &outcome.install;
        let mark = if ours == end { "" } else { " **differs**" };
        let _ = writeln!(out, "| {package} | {head} | {end} | {ours}{mark} |");
    }
    out
}

/// Formats the results in the format of `ends.tsv`, with its explanations.
pub fn table_of_ends(found: &[(Written, Vec<String>)], written: &[Written]) -> String {
    let mut out = String::new();
    for (found, because) in found {
        let known = written.iter().find(|known| known.is_about(found));
        let line = Written { why: known.map_or_else(String::new, |known| known.why.clone()), ..found.clone() }.line();
        if known.is_some() {
            let _ = writeln!(out, "{line}");
        } else {
            let _ = writeln!(out, "# not stored: {line}");
            for line in because.iter().filter(|_| !found.end.starts_with("Succeeded/")) {
                let _ = writeln!(out, "#     {line}");
            }
        }
    }
    out
}
