//! Compares writers with holders of the Lease in the API server's audit log. Only the order of its lines is used, no clock.

use std::collections::BTreeMap;

use olm_core::api::object;
use olm_tests::control_plane::audit::Entry;

/// The prefix of the users of controllers.
pub(super) const WRITER: &str = "writer-";

/// The period in which one process held the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// The holder.
    pub(super) writer: String,
    /// Number of writes that it began, except those to the Lease.
    pub(super) writes: usize,
}

/// Returns the terms in order, and every write that another process began during a term, or that was still in progress when the
/// next term began.
pub(super) fn judge(entries: &[Entry]) -> (Vec<Term>, Vec<String>) {
    let mut terms: Vec<Term> = Vec::new();
    let mut complaints = Vec::new();
    // The name of each user in the Lease.
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut under_way: BTreeMap<&str, &Entry> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.user.starts_with(WRITER)) {
        let what = || {
            let Entry { user, verb, resource, namespace, name, .. } = entry;
            format!("{user}: {verb} {resource} {namespace}/{name}")
        };
        if entry.resource == "leases" {
            let Some(holder) = taken(entry, &mut names) else { continue };
            if terms.last().is_some_and(|term| term.writer == *holder) {
                continue;
            }
            for late in under_way.values().filter(|write| write.user != *holder) {
                let Entry { user, verb, resource, namespace, name, .. } = late;
                complaints
                    .push(format!("{holder} takes the Lease during {user}: {verb} {resource} {namespace}/{name}"));
            }
            terms.push(Term { writer: holder.clone(), writes: 0 });
        } else if entry.code.is_none() {
            under_way.insert(&entry.id, entry);
            match terms.last_mut() {
                Some(term) if term.writer == entry.user => term.writes += 1,
                last => complaints.push(format!("{} in the time of {:?}", what(), last.map(|term| &term.writer))),
            }
        } else {
            under_way.remove(&*entry.id);
        }
    }
    (terms, complaints)
}

/// Returns who acquired or renewed the Lease by this write.
fn taken<'n>(entry: &Entry, names: &'n mut BTreeMap<String, String>) -> Option<&'n String> {
    let lease = entry.object.as_ref().filter(|_| matches!(entry.code, Some(200 | 201)))?;
    let name = object::text(lease, &["spec", "holderIdentity"]);
    // A process that recreates the Lease for its holder without knowing its last renewal sets no `renewTime`.
    if name.is_empty() || object::text(lease, &["spec", "renewTime"]).is_empty() {
        return None;
    }
    let holder = names.entry(name.to_owned()).or_insert_with(|| entry.user.clone());
    (*holder == entry.user).then_some(holder)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(id: &str, user: &str, code: Option<u16>) -> Entry {
        let text = |text: &str| text.to_owned();
        Entry {
            id: text(id),
            user: format!("{WRITER}{user}"),
            verb: text("create"),
            resource: text("installplans"),
            namespace: text("garden"),
            name: String::new(),
            code,
            object: None,
        }
    }

    fn lease(user: &str, holder: &str) -> Entry {
        let object = json!({ "spec": { "holderIdentity": holder, "renewTime": "2026-11-23T00:00:00.000000Z" } });
        Entry { resource: "leases".to_owned(), object: Some(object), ..write("lease", user, Some(200)) }
    }

    #[test]
    fn writes_outside_of_a_term_are_found() {
        let (began, ended) = (None, Some(201));
        let good = [
            lease("1", "a"),
            write("x", "1", began),
            // Another process sends a request.
            lease("2", "a"),
            write("x", "1", ended),
            lease("1", ""),
            lease("2", "b"),
            write("y", "2", began),
        ];
        let (terms, complaints) = judge(&good);
        let term = |writer: &str, writes| Term { writer: format!("{WRITER}{writer}"), writes };
        assert_eq!((terms, complaints), (vec![term("1", 1), term("2", 1)], Vec::new()));

        let early = [write("x", "1", began), lease("1", "a")];
        assert_eq!(judge(&early).1, ["writer-1: create installplans garden/ in the time of None"]);
        let late = [&good[..], &[write("z", "1", began)]].concat();
        assert_eq!(judge(&late).1, ["writer-1: create installplans garden/ in the time of Some(\"writer-2\")"]);
        let overlap = [lease("1", "a"), write("x", "1", began), lease("2", "b"), write("x", "1", ended)];
        assert_eq!(judge(&overlap).1, ["writer-2 takes the Lease during writer-1: create installplans garden/"]);
    }
}
