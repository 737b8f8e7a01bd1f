//! Output as text.

use std::fmt::Write as _;

use olm_core::api::cluster_service_version::deletion_note;
use olm_core::api::object;
use olm_core::listing::listed;
use olm_core::membership::Apis;
use olm_core::operatorgroup::intersection::{ApiConflict, Clash, Holder, MemberEffect, Pair};
use olm_core::operatorgroup::remedy;

use super::Answer;
use crate::cli::table::Table;
use crate::cli::{CliError, Printer};
use crate::observe::ClusterState;
use crate::visible::one_line;

/// The maximum number of namespaces, or APIs, per cell of a table that is not wide.
const SHORT: usize = 3;
/// The maximum number of pairs without conflicts in a table that is not wide, and of conflicts that are described.
const MANY: usize = 40;

/// Prints the report.
pub(super) fn print(
    answer: &Answer<'_, '_>,
    cluster: &ClusterState,
    is_wide: bool,
    printer: &mut Printer,
) -> Result<(), CliError> {
    if answer.all.scopes().is_empty() {
        printer.talk("No OperatorGroups found");
        return Ok(());
    }
    if answer.pairs.is_empty() {
        printer.talk(nothing(answer, cluster));
        return Ok(());
    }
    let is_clash = |pair: &Pair| answer.clashes.contains_key(pair);
    let (clashing, peaceful): (Vec<Pair>, Vec<Pair>) = answer.pairs.iter().partition(|pair| is_clash(pair));
    let shown = if is_wide || peaceful.len() <= MANY { answer.pairs.clone() } else { clashing };
    if !shown.is_empty() {
        printer.data(table(answer, &shown, is_wide))?;
    }
    if shown.len() < answer.pairs.len() {
        let n = answer.pairs.len() - shown.len();
        printer.talk(format_args!(
            "{n} more pairs intersect without a conflict; -o wide lists them, -o matrix shows all groups"
        ));
    }
    for (printed, (pair, apis)) in answer.clashes.iter().enumerate() {
        if printed == MANY && !is_wide {
            let n = answer.clashes.len() - printed;
            printer.talk(format_args!("{n} more conflicts; -o wide describes all of them"));
            break;
        }
        printer.line("")?;
        printer.data(clash(answer, *pair, apis))?;
    }
    Ok(())
}

/// Returns the message for an empty report.
fn nothing(answer: &Answer<'_, '_>, cluster: &ClusterState) -> String {
    if let Some(pair) = answer.is_one_pair {
        let [a, b] = [pair.a, pair.b].map(|at| answer.label(at));
        let apis = answer.all.contested(pair);
        let both = if apis.is_empty() {
            String::new()
        } else {
            format!(" Both provide {}, in different namespaces.", listed(&apis))
        };
        return format!("{a} and {b} have no namespace in common.{both}");
    }
    match (&answer.asked, &cluster.namespace) {
        (Some(asked), Some(namespace)) if asked.is_empty() => {
            format!("No OperatorGroups found in {namespace} namespace; -A compares all namespaces")
        }
        (Some(asked), _) => {
            let names: Vec<String> = asked.iter().map(|at| answer.label(*at)).collect();
            let verb = if names.len() == 1 { "has" } else { "have" };
            let others = if answer.is_complete {
                "another OperatorGroup"
            } else {
                "the OperatorGroups that you can read. There may be others: to check all, run \
                 kubectl olm operatorgroup intersect -A with permission to list OperatorGroups in all namespaces"
            };
            format!("{} {verb} no namespace in common with {others}", listed(&names))
        }
        (None, _) if answer.all.scopes().len() == 1 => "1 OperatorGroup, nothing to compare".to_owned(),
        (None, _) => format!("None of {} OperatorGroups have a namespace in common", answer.all.scopes().len()),
    }
}

fn table(answer: &Answer<'_, '_>, pairs: &[Pair], is_wide: bool) -> Table {
    let mut table = Table::new(["GROUP", "OTHER", "NAMESPACES", "CONFLICTS", "FIRST", "HOLDER"]);
    for pair in pairs {
        let namespaces = match answer.all.shared(*pair) {
            None => "<all>".to_owned(),
            Some(names) => shortened(&names, is_wide),
        };
        let apis = answer.clashes.get(pair).map(|apis| apis.iter().map(String::as_str).collect::<Vec<_>>());
        let apis = apis.unwrap_or_default();
        let first = answer.all.first(*pair).map_or_else(|| "<unknown>".to_owned(), |at| answer.label(at));
        let mut holders: Vec<String> = apis.iter().map(|api| holder(answer, *pair, api)).collect();
        holders.dedup();
        let clashes = if apis.is_empty() { "<none>".to_owned() } else { shortened(&apis, is_wide) };
        table.row([answer.label(pair.a), answer.label(pair.b), namespaces, clashes, first, holders.join(",")]);
    }
    table
}

fn shortened(names: &[&str], is_wide: bool) -> String {
    match names.len() {
        n if n > SHORT && !is_wide => format!("{},+{}", names[..SHORT].join(","), n - SHORT),
        _ => names.join(","),
    }
}

fn holder(answer: &Answer<'_, '_>, pair: Pair, api: &str) -> String {
    match answer.all.holder(pair, api) {
        Holder::One(at) => answer.label(at),
        Holder::Both => "<both>".to_owned(),
        Holder::None => "<none>".to_owned(),
    }
}

/// Describes the effect of a conflict, and possible fixes.
fn clash(answer: &Answer<'_, '_>, pair: Pair, apis: &[String]) -> String {
    let [a, b] = [pair.a, pair.b].map(|at| answer.label(at));
    let place = match answer.all.shared(pair).as_deref() {
        None => "all namespaces".to_owned(),
        Some([one]) => format!("namespace {one}"),
        Some(many) => format!("{} namespaces", many.len()),
    };
    let mut text = format!("{}:\n", one_line(&format!("{a} and {b} conflict in {place} on {}", listed(apis))));
    let mut line = |words: String| writeln!(text, "  {}", one_line(&words)).unwrap_or_default();
    if let Some(first) = answer.all.first(pair) {
        let created = answer.all.scopes()[first].created.map(|at| format!(", at {}", object::time(at)));
        line(format!("{} was created first{}", answer.label(first), created.unwrap_or_default()));
    }
    for words in verdicts(answer, pair, apis) {
        line(words);
    }
    let clash = Clash { pair, apis: apis.to_vec() };
    let remedies = remedy::remedies(answer.world, answer.all, &clash);
    line("To resolve the conflict, do one of:".to_owned());
    for remedy in &remedies {
        line(format!("- {}", remedy.description));
        if !remedy.command.is_empty() {
            line(format!("    {}", remedy.command));
        }
    }
    if let Some(note) = remedies.iter().find_map(|remedy| deletion_note(&remedy.command)) {
        line(format!("Note: {note}"));
    }
    text
}

/// Returns which group has which API in its annotation, and the effect on each member.
pub(super) fn verdicts(answer: &Answer<'_, '_>, pair: Pair, apis: &[String]) -> Vec<String> {
    let mut verdicts = Vec::new();
    let mut by_holder: Vec<(Holder, Vec<String>)> = Vec::new();
    for api in apis {
        let holder = answer.all.holder(pair, api);
        match by_holder.iter_mut().find(|(known, _)| *known == holder) {
            Some((_, apis)) => apis.push(api.clone()),
            None => by_holder.push((holder, vec![api.clone()])),
        }
    }
    let is_about = |provides: &Apis| provides.0.iter().any(|api| apis.contains(api));
    let effects: Vec<MemberEffect<'_>> = [pair.a, pair.b]
        .into_iter()
        .flat_map(|at| answer.all.member_effects(at).into_iter().zip(&answer.all.scopes()[at].members))
        .filter(|(_, member)| is_about(&member.provides))
        .map(|(effect, _)| effect)
        .collect();
    for (holder, apis) in by_holder {
        let (what, it) = (listed(&apis), if apis.len() == 1 { "it" } else { "them" });
        verdicts.push(match holder {
            Holder::One(at) => {
                let group = &answer.all.scopes()[at];
                let kind = if group.group.is_static() { ", and is static" } else { "" };
                format!("{} has {what} in its olm.providedAPIs{kind}, which decides for OLM", answer.label(at))
            }
            Holder::Both if effects.is_empty() => {
                format!("both have {what} in their olm.providedAPIs; no member provides {it}, so there is no effect yet")
            }
            Holder::Both => {
                format!("both have {what} in their olm.providedAPIs: the one whose member OLM processes first loses {it}")
            }
            Holder::None => format!(
                "neither has {what} in its olm.providedAPIs yet: the one whose member OLM processes first gets {it}, and members \
                 of the other fail (InterOperatorGroupOwnerConflict)"
            ),
        });
    }
    for effect in effects {
        // This is the case of the first; the second fails, as reported above.
        if matches!(effect.row, ApiConflict::Add | ApiConflict::Continue) {
            continue;
        }
        verdicts.push(format!(
            "{}: {}; {}",
            answer.csv(effect.group, effect.csv),
            effect.row.condition(),
            effect.row.consequence()
        ));
    }
    verdicts
}

/// Returns a matrix of all groups.
pub(super) fn matrix(answer: &Answer<'_, '_>) -> String {
    let shown: Vec<usize> = match &answer.asked {
        None => (0..answer.all.scopes().len()).collect(),
        Some(asked) => {
            let met = answer.pairs.iter().flat_map(|pair| [pair.a, pair.b]);
            met.chain(asked.iter().copied()).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
        }
    };
    let label = |at: usize| one_line(&answer.label(at)).into_owned();
    let width = shown.iter().map(|at| label(*at).chars().count()).max().unwrap_or_default();
    let digits = shown.len().to_string().len();
    let mut text = String::new();
    for (row, at) in shown.iter().enumerate() {
        write!(text, "{:>digits$} {:width$} ", row + 1, label(*at)).unwrap_or_default();
        for other in &shown[..row] {
            let pair = Pair::new(*at, *other);
            text.push_str(match () {
                () if answer.clashes.contains_key(&pair) => " X",
                () if answer.pairs.binary_search(&pair).is_ok() => " o",
                () => " .",
            });
        }
        text.push_str(" -\n");
    }
    text.push_str("columns are rows by number; o: namespaces in common, X: conflict on APIs\n");
    text
}
