//! The diagnosis of an operator as text.

use std::fmt::Write as _;

use olm_core::diagnosis::{Diagnosis, Problem, Stage};
use olm_core::health::{Health, Version};
use olm_core::listing::{CAUSE, clause, wrapped};
use olm_core::plan::Severity;
use olm_core::visible::one_line;

use crate::cli::paint::{Paint, Tone};
use crate::cli::table::Table;

/// The width of paragraphs.
const WIDTH: usize = 100;

/// Returns a description: the operator, a line for each stage, and the problems. Messages in the table are cut unless it is wide.
pub(super) fn text(diagnosis: &Diagnosis, is_wide: bool, paint: Paint) -> String {
    let Diagnosis { operator, stages, problems } = diagnosis;
    let mut text = String::new();
    let catalog = match operator.channel.as_str() {
        "" => format!("{} of catalog {}", operator.package, operator.catalog),
        channel => format!("{}, channel {channel} of catalog {}", operator.package, operator.catalog),
    };
    let health = paint.tone(
        match operator.health {
            Health::Healthy | Health::Upgradable => Tone::Good,
            Health::Progressing => Tone::Doubtful,
            Health::Blocked => Tone::Bad,
        },
        operator.health.as_str(),
    );
    let fields = [
        ("Name", one_line(&operator.name).into_owned()),
        ("Namespace", one_line(&operator.namespace).into_owned()),
        ("Health", health),
        ("Package", if operator.subscribed { one_line(&catalog).into_owned() } else { String::new() }),
        ("Approval", one_line(&operator.approval).into_owned()),
        ("Installed", version(operator.installed.as_ref())),
        ("Next", version(operator.next.as_ref())),
    ];
    for (title, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(text, "{:11}{value}", format!("{title}:")).ok();
    }
    write!(text, "\n{}", table(stages, &operator.namespace, is_wide)).ok();
    if !problems.is_empty() {
        writeln!(text, "\n{}:", if problems.len() == 1 { "Problem" } else { "Problems" }).ok();
    }
    for problem in problems {
        write!(text, "\n{}", paragraph(problem, paint)).ok();
    }
    text
}

/// `rose.v1.0.0 (Succeeded)`
fn version(version: Option<&Version>) -> String {
    version.map_or_else(String::new, |version| match version.phase.as_str() {
        "" => one_line(&version.csv).into_owned(),
        phase => one_line(&format!("{} ({phase})", version.csv)).into_owned(),
    })
}

fn table(stages: &[Stage], namespace: &str, is_wide: bool) -> Table {
    let mut table = Table::new(["STAGE", "STATE", "OBJECT", "MESSAGE"]);
    for Stage { stage, object, state, message } in stages {
        let object = object.as_ref().map_or_else(String::new, |object| {
            if object.namespace.is_empty() || object.namespace == namespace {
                object.name.clone()
            } else {
                format!("{}/{}", object.namespace, object.name)
            }
        });
        let message = if is_wide { message.clone() } else { clause(message, CAUSE) };
        table.row([stage.as_str().to_owned(), state.as_str().to_owned(), object, message]);
    }
    table
}

fn paragraph(problem: &Problem, paint: Paint) -> String {
    let Problem { code, severity, message, command, hint, .. } = problem;
    let tone = match severity {
        Severity::Blocked => Tone::Bad,
        Severity::Waiting => Tone::Doubtful,
        Severity::Settled => Tone::Plain,
    };
    let title = paint.tone(tone, &format!("{} {}", code.code, code.name));
    let mut text = format!("{title}: {}\n", one_line(message));
    let fix = hint.as_deref().unwrap_or(code.fix);
    for (title, words) in [("Cause", code.cause), ("Fix", fix)] {
        let words = one_line(words);
        let mut title = format!("{title}:");
        for line in wrapped(&words, WIDTH).lines() {
            writeln!(text, "  {title:9}{line}").ok();
            title.clear();
        }
    }
    writeln!(text, "  Command: {}", one_line(command)).ok();
    text
}
