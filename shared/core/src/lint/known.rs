//! The rules that can be checked only in part, because not all objects of a kind are known.

use std::collections::{BTreeMap, BTreeSet};

use super::{Rule, Unchecked};
use crate::world::Known;

/// Returns the rules of a table that are checked only in part, by the reason for that.
pub(crate) fn unchecked(rules: &[&'static Rule], known: &Known) -> Vec<Unchecked> {
    let mut by_reason: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
    for (gk, limit, is_known_here) in known.limits() {
        let concerns = |rule: &&Rule| {
            let here = rule.here.contains(gk) || limit.hides && rule.reads.contains(gk);
            rule.everywhere.contains(gk) || here && !is_known_here
        };
        by_reason
            .entry(&limit.why)
            .or_default()
            .extend(rules.iter().filter(|rule| concerns(rule)).map(|rule| rule.code));
    }
    by_reason.retain(|_, codes| !codes.is_empty());
    by_reason
        .into_iter()
        .map(|(reason, codes)| Unchecked { codes: codes.into_iter().collect(), reason: reason.to_owned() })
        .collect()
}
