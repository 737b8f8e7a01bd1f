//! Diagnoses of operators as a page: an overview, then the stages and the problems of each operator, those that need an action first.

use olm_core::diagnosis::{Diagnosis, Problem, Stage, State};
use olm_core::health::{Health, Version};
use olm_core::markup::Markup;
use olm_core::plan::Severity;

use crate::cli::page::{bounded, class, facts, left_out, page, phrase, span, table};
use crate::cli::paint::Tone;

/// Returns the page of the operators of a namespace, or of all.
pub(super) fn html(diagnoses: &[Diagnosis], namespace: Option<&str>) -> String {
    let title = match (namespace, diagnoses) {
        (_, [one]) => format!("Operator {} in namespace {}", one.operator.name, one.operator.namespace),
        (Some(namespace), _) => format!("Operators in namespace {namespace}"),
        (None, _) => "Operators in all namespaces".to_owned(),
    };
    page(&title, &[], |body| {
        span(body, "h1", "", &title);
        body.newline();
        // Of equal urgency in the order of namespaces and names.
        let mut ordered: Vec<(usize, &Diagnosis)> = diagnoses.iter().enumerate().collect();
        ordered.sort_by_key(|(_, diagnosis)| std::cmp::Reverse(urgency(diagnosis)));
        if diagnoses.len() != 1 {
            overview(body, &ordered);
        }
        let rest = bounded(body, ordered, |body, (n, diagnosis)| {
            let id = format!("operator-{n}");
            body.element("section", &[("id", &id)], |section| one(section, diagnosis, diagnoses.len() != 1));
            body.newline();
        });
        left_out(body, rest, "operators");
    })
}

/// The more urgent, the higher: blocked, in progress, healthy.
fn urgency(diagnosis: &Diagnosis) -> u8 {
    match diagnosis.operator.health {
        _ if diagnosis.is_blocked() => 3,
        Health::Blocked => 3,
        Health::Progressing => 2,
        Health::Upgradable => 1,
        Health::Healthy => 0,
    }
}

fn tone(diagnosis: &Diagnosis) -> Tone {
    match urgency(diagnosis) {
        3 => Tone::Bad,
        2 => Tone::Doubtful,
        _ => Tone::Good,
    }
}

fn overview(body: &mut Markup, ordered: &[(usize, &Diagnosis)]) {
    let count = |tones: Tone| ordered.iter().filter(|(_, diagnosis)| tone(diagnosis) == tones).count();
    let number = |n: usize, words, tone| (n.to_string(), words, if n == 0 { Tone::Plain } else { tone });
    facts(
        body,
        &[
            number(ordered.len(), if ordered.len() == 1 { "operator" } else { "operators" }, Tone::Plain),
            number(count(Tone::Bad), "need an action", Tone::Bad),
            number(count(Tone::Doubtful), "in progress", Tone::Doubtful),
            number(count(Tone::Good), "healthy", Tone::Good),
        ],
    );
    if ordered.is_empty() {
        return;
    }
    let titles = ["Namespace", "Name", "Health", "Installed", "Next", "Problems"];
    table(body, titles, ordered, "operators", |row, (n, diagnosis)| {
        let Diagnosis { operator, problems, .. } = diagnosis;
        span(row, "td", "", &operator.namespace);
        row.element("td", &[], |cell| {
            let target = format!("#operator-{n}");
            cell.element("a", &[("href", &target)], |link| phrase(link, &operator.name));
        });
        row.element("td", &[], |cell| health(cell, diagnosis));
        span(row, "td", "", &version(operator.installed.as_ref()));
        span(row, "td", "", &version(operator.next.as_ref()));
        let codes: Vec<String> =
            problems.iter().map(|problem| format!("{} {}", problem.code.code, problem.code.name)).collect();
        span(row, "td", "wide", &codes.join(", "));
    });
}

fn one(out: &mut Markup, diagnosis: &Diagnosis, is_titled: bool) {
    let Diagnosis { operator, stages, problems } = diagnosis;
    if is_titled {
        span(out, "h2", "", &format!("{} in namespace {}", operator.name, operator.namespace));
    }
    out.element("dl", &[], |facts| {
        span(facts, "dt", "", "Health");
        facts.element("dd", &[], |dd| health(dd, diagnosis));
        let catalog = if operator.subscribed { operator.catalog.as_str() } else { "" };
        let rows = [
            ("Package", operator.package.as_str()),
            ("Channel", operator.channel.as_str()),
            ("Catalog", catalog),
            ("Approval", operator.approval.as_str()),
            ("Installed", &version(operator.installed.as_ref())),
            ("Next", &version(operator.next.as_ref())),
        ];
        for (title, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            span(facts, "dt", "", title);
            span(facts, "dd", "", value);
        }
    });
    out.newline();
    let rest = bounded(out, problems, paragraph);
    left_out(out, rest, "problems");
    table(out, ["Stage", "State", "Object", "Message"], stages, "stages", |row, one| {
        let Stage { stage, object, state, message } = one;
        span(row, "td", "", stage.as_str());
        let tone = match state {
            State::Ok => "state good",
            State::Waiting => "state doubtful",
            State::Failed => "state bad",
            State::Unknown => "state soft",
        };
        row.element("td", &[], |cell| span(cell, "span", tone, state.as_str()));
        let object = object.as_ref().map_or_else(String::new, |object| {
            if object.namespace.is_empty() || object.namespace == operator.namespace {
                object.name.clone()
            } else {
                format!("{}/{}", object.namespace, object.name)
            }
        });
        span(row, "td", "", &object);
        span(row, "td", "wide", message);
    });
}

fn health(out: &mut Markup, diagnosis: &Diagnosis) {
    let class = match tone(diagnosis) {
        Tone::Bad => "state bad",
        Tone::Doubtful => "state doubtful",
        Tone::Good | Tone::Plain => "state good",
    };
    span(out, "span", class, diagnosis.operator.health.as_str());
}

fn paragraph(out: &mut Markup, problem: &Problem) {
    let Problem { code, severity, message, command, hint, .. } = problem;
    let tone = match severity {
        Severity::Blocked => Tone::Bad,
        Severity::Waiting => Tone::Doubtful,
        Severity::Settled => Tone::Plain,
    };
    let class = format!("banner {}", class(tone));
    out.element("div", &[("class", &class)], |banner| {
        span(banner, "p", "", &format!("{} {}: {message}", code.code, code.name));
        banner.element("dl", &[], |list| {
            span(list, "dt", "", "Cause");
            span(list, "dd", "", code.cause);
            span(list, "dt", "", "Fix");
            span(list, "dd", "", hint.as_deref().unwrap_or(code.fix));
            span(list, "dt", "", "Command");
            list.element("dd", &[], |dd| span(dd, "code", "", command));
        });
    });
    out.newline();
}

/// `rose.v1.0.0 (Succeeded)`
fn version(version: Option<&Version>) -> String {
    version.map_or_else(String::new, |version| match version.phase.as_str() {
        "" => version.csv.clone(),
        phase => format!("{} ({phase})", version.csv),
    })
}
