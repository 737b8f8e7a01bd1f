//! Explanations as a page: the sections of the text, with the verdict first and each difference to unfold.

use olm_core::explain::{Explanation, Totals};
use olm_core::markup::Markup;

use super::super::policy::PolicyResult;
use super::report::{self, Item, RISK, Section};
use crate::cli::page::{bounded, changes, class, diff, facts, left_out, list, page, phrase, span};
use crate::cli::paint::Tone;

/// Maximum number of lines below an item that are shown without unfolding it.
const UNFOLDED: usize = 10;

/// Returns the page of explanations, each with the results of policies.
pub(super) fn html(explanations: &[(Explanation, Vec<PolicyResult>)]) -> String {
    let title = match explanations {
        [(one, _)] => report::title(one),
        [] => "No InstallPlan waits for approval".to_owned(),
        many => format!("{} InstallPlans", many.len()),
    };
    page(&title, &[], |body| {
        span(body, "h1", "", &title);
        body.newline();
        let is_only = explanations.len() == 1;
        let rest = bounded(body, explanations, |body, (explanation, tried)| {
            body.element("article", &[], |article| one(article, explanation, tried, is_only));
            body.newline();
        });
        left_out(body, rest, "InstallPlans");
    })
}

fn one(out: &mut Markup, explanation: &Explanation, tried: &[PolicyResult], is_only: bool) {
    if !is_only {
        span(out, "h1", "", &report::title(explanation));
    }
    let mut sections = report::sections(explanation, tried, true).into_iter();
    if let Some(verdict) = sections.next() {
        banner(out, &verdict);
    }
    let Totals { add, change, destroy, gained, lost } = explanation.totals;
    let number = |n: u64, words, tone: Tone| (n.to_string(), words, if n == 0 { Tone::Plain } else { tone });
    let rights = if explanation.rbac.escalates { Tone::Bad } else { Tone::Plain };
    facts(
        out,
        &[
            number(add, "to add", Tone::Good),
            number(change, "to change", Tone::Doubtful),
            number(destroy, "to destroy", Tone::Bad),
            number(gained, "permissions gained", rights),
            number(lost, "permissions lost", Tone::Plain),
        ],
    );
    if let Some(command) = report::approval(explanation) {
        out.element("p", &[], |p| {
            p.text("To approve exactly this: ");
            span(p, "code", "", &command);
        });
    }
    out.element("p", &[("class", &"soft")], |p| {
        p.text("Hash: ");
        span(p, "code", "", &explanation.hash);
    });
    out.newline();
    // Differences are long: what they lead to is first.
    let (with_diffs, others): (Vec<Section>, Vec<Section>) =
        sections.partition(|section| section.items.iter().any(|item| !item.diff.is_empty()));
    for section in others.into_iter().chain(with_diffs) {
        out.element("section", &[], |out| draw(out, &section));
        out.newline();
    }
}

fn banner(out: &mut Markup, verdict: &Section) {
    let class = format!("banner {}", class(verdict.tone));
    out.element("div", &[("class", &class)], |banner| {
        span(banner, "p", "", &verdict.title);
        items(banner, &verdict.items);
    });
    out.newline();
}

fn draw(out: &mut Markup, section: &Section) {
    span(out, "h2", "", section.title.trim_end_matches(':'));
    let (with_diff, plain): (Vec<&Item>, Vec<&Item>) = section.items.iter().partition(|item| !item.diff.is_empty());
    let rest = bounded(out, with_diff, |out, item| {
        out.element("details", &[], |details| {
            details.element("summary", &[], |summary| {
                phrase(summary, &item.line);
                span(summary, "span", "count", &format!(" {}", changes(&item.diff)));
            });
            list(details, "under", &item.under, "lines");
            diff(details, &item.diff);
        });
        out.newline();
    });
    left_out(out, rest, "differences");
    if !plain.is_empty() {
        items(out, plain);
    }
}

fn items<'i>(out: &mut Markup, items: impl IntoIterator<Item = &'i Item>) {
    let mut rest = 0;
    out.element("ul", &[], |list| {
        rest = bounded(list, items, |list, item| {
            list.element("li", &[], |li| {
                phrase(li, &item.line);
                under(li, &item.under);
            });
            list.newline();
        });
    });
    out.newline();
    left_out(out, rest, "entries");
}

/// Adds the lines below an item: risks first, and many others to unfold.
fn under(out: &mut Markup, lines: &[String]) {
    let (risks, others): (Vec<&String>, Vec<&String>) = lines.iter().partition(|line| line.starts_with(RISK));
    if !risks.is_empty() {
        out.element("ul", &[], |list| {
            let _ = bounded(list, risks, |list, line| span(list, "li", "bad", line));
        });
    }
    if others.is_empty() {
        return;
    }
    let others: Vec<String> = others.into_iter().cloned().collect();
    if others.len() <= UNFOLDED {
        list(out, "under", &others, "lines");
        return;
    }
    out.element("details", &[], |details| {
        span(details, "summary", "soft", &format!("{} more lines", others.len()));
        list(details, "under", &others, "lines");
    });
}
