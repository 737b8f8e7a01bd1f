//! The report of what is open on a cluster: each cause once, with what it blocks and how to resolve it.

use std::collections::BTreeSet;

use olm_core::plan::{Key, Reason, Severity};

/// The reasons of all keys, each cause once.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Causes that wait or are blocked.
    pub(super) open: Vec<Cause>,
    /// Information that needs no action.
    pub(super) notes: Vec<Cause>,
    /// Whether something is blocked, and not only waiting.
    pub(super) is_blocked: bool,
}

/// A reason, and what it blocks.
#[derive(Debug)]
pub(super) struct Cause {
    pub(super) reason: Reason,
    /// The reason as a sentence, with what it blocks.
    pub(super) message: String,
}

impl Cause {
    /// Returns the lines to print: the sentence and its hint.
    fn lines(&self) -> impl Iterator<Item = String> {
        let word = match self.reason.severity() {
            Severity::Blocked => "blocked",
            Severity::Waiting => "waits",
            Severity::Settled => "note",
        };
        let hint = self.reason.hint().map(|hint| format!("  hint: {hint}"));
        std::iter::once(format!("{word}: {}", self.message)).chain(hint)
    }
}

/// Returns the lines to print for causes.
pub(super) fn lines(causes: &[Cause]) -> impl Iterator<Item = String> {
    causes.iter().flat_map(Cause::lines)
}

impl Report {
    pub(super) fn from_reasons(reasons: &[(Key, Vec<Reason>)]) -> Self {
        let mut report = Self::default();
        let mut reported = BTreeSet::new();
        let reasons = merged(reasons.iter().flat_map(|(_, reasons)| reasons));
        let all: Vec<&Reason> = reasons.iter().collect();
        for reason in &all {
            let severity = reason.severity();
            report.is_blocked |= severity == Severity::Blocked;
            if is_consequence(reason, &all) || !reported.insert(reason.cause()) {
                continue;
            }
            let causes = if severity == Severity::Settled { &mut report.notes } else { &mut report.open };
            let message = format!("{reason}{}", held_up(reason, &all));
            causes.push(Cause { reason: (*reason).clone(), message });
        }
        report
    }
}

/// Merges the reasons of a catalog that was not passed, of which every namespace that uses it has its own.
fn merged<'r>(reasons: impl Iterator<Item = &'r Reason>) -> Vec<Reason> {
    let mut merged: Vec<Reason> = Vec::new();
    for reason in reasons {
        let Reason::CatalogNotProvided { flag, subscriptions, installed, .. } = reason else {
            merged.push(reason.clone());
            continue;
        };
        let known = merged.iter_mut().find_map(|other| match other {
            Reason::CatalogNotProvided { flag: of, subscriptions, installed: settled, .. }
                if of == flag && settled == installed =>
            {
                Some(subscriptions)
            }
            _ => None,
        });
        match known {
            Some(known) => known.extend(subscriptions.iter().cloned()),
            None => merged.push(reason.clone()),
        }
    }
    merged
}

/// Returns whether a reason only repeats another. An unreadable catalog is a reason of its own, and one of each
/// namespace that can use it.
pub(super) fn is_consequence(reason: &Reason, all: &[&Reason]) -> bool {
    all.iter().any(|other| comes_of(reason, other))
}

fn comes_of(reason: &Reason, catalog: &Reason) -> bool {
    match (reason, catalog) {
        (Reason::Unsatisfiable { message, .. }, Reason::CatalogUnavailable { namespace, name, error, .. }) => {
            message.contains(&format!("{namespace}/{name}: ")) && message.contains(error)
        }
        (
            Reason::CatalogNotReady { namespace: of, name: catalog, .. },
            Reason::CatalogUnavailable { namespace, name, .. },
        ) => (of, catalog) == (namespace, name),
        _ => false,
    }
}

/// Returns the namespaces in which nothing is resolved because of a reason.
fn held_up(reason: &Reason, all: &[&Reason]) -> String {
    let of = |other: &&&Reason| comes_of(other, reason);
    let namespaces: BTreeSet<&str> = all
        .iter()
        .filter(of)
        .filter_map(|other| match other {
            Reason::Unsatisfiable { namespace, .. } => Some(namespace.as_str()),
            _ => None,
        })
        .collect();
    match namespaces.len() {
        0 => String::new(),
        1..=5 => {
            let names: Vec<&str> = namespaces.into_iter().collect();
            format!("; until then no Subscriptions are resolved in {}", names.join(", "))
        }
        many => format!("; until then no Subscriptions are resolved in {many} namespaces"),
    }
}

#[cfg(test)]
mod tests {
    use olm_core::plan::Controller;

    use super::*;

    #[test]
    fn an_unavailable_catalog_is_one_cause() {
        let away = Reason::CatalogUnavailable {
            namespace: "olm".to_owned(),
            name: "market".to_owned(),
            error: "Connection refused (os error 111)".to_owned(),
            stale: false,
        };
        let unresolved = |namespace: &str| Reason::Unsatisfiable {
            namespace: namespace.to_owned(),
            message: "error using catalogsource olm/market: failed to list bundles: Connection refused (os error 111)"
                .to_owned(),
        };
        let key = |controller, name: &str| Key::new(controller, "", name);
        let report = Report::from_reasons(&[
            (key(Controller::Resolution, "a"), vec![unresolved("a")]),
            (key(Controller::Resolution, "b"), vec![unresolved("b")]),
            (key(Controller::CatalogSource, "market"), vec![away.clone(), away]),
        ]);
        assert!(report.is_blocked);
        assert_eq!(
            lines(&report.open).collect::<Vec<_>>(),
            [
                "blocked: catalog olm/market cannot be read: Connection refused (os error 111); until then no Subscriptions are resolved in a, b",
                "  hint: to see the address, run kubectl -n olm get catalogsource market -o yaml",
            ]
        );
    }

    #[test]
    fn what_is_installed_without_its_directory_is_a_note() {
        let reason = |subscription: &str| Reason::CatalogNotProvided {
            namespace: "olm".to_owned(),
            name: "market".to_owned(),
            subscriptions: vec![subscription.to_owned()],
            flag: "market=DIR".to_owned(),
            installed: true,
        };
        let key = |namespace| Key::new(Controller::Resolution, "", namespace);
        let reasons = [
            (key("new-town"), vec![reason("new-town/samovar")]),
            (key("old-town"), vec![reason("old-town/tea-house")]),
        ];
        let report = Report::from_reasons(&reasons);
        assert!(!report.is_blocked && report.open.is_empty());
        assert_eq!(
            lines(&report.notes).collect::<Vec<_>>(),
            [
                "note: catalog olm/market was served from a directory that was not passed, so Subscriptions new-town/samovar, old-town/tea-house are not updated",
                "  hint: pass --catalog market=DIR to serve it from that directory and resume updates",
            ]
        );
    }
}
