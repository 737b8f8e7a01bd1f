//! What must hold in every phase before the state machine moves (reference/olm-operator.md §1.3): one OperatorGroup whose
//! targets the install modes support, and no other group that provides the same APIs to the same namespaces.

use serde_json::Value;

use super::Step;
use super::model::Csv;
use crate::api::object;
use crate::plan::Reason;
use crate::world::{Reader, kind};

/// An OperatorGroup of the namespace.
#[derive(Clone, Copy)]
pub(super) struct Group<'a> {
    json: &'a Value,
}

/// May the state machine move?
#[derive(Debug)]
pub(super) enum Verdict {
    /// Yes.
    Pass,
    /// No: this is all that is done.
    Stop(Step),
}

impl Group<'_> {
    /// Were the targets computed yet?
    fn is_processed(self) -> bool {
        !object::at(self.json, &["status", "lastUpdated"]).is_null()
    }

    fn targets(self) -> Vec<String> {
        object::list(self.json, &["status", "namespaces"]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// What a member carries (§4.3).
    pub(super) fn annotations(self) -> Vec<(String, String)> {
        let mut annotations = vec![
            ("olm.operatorGroup".to_owned(), object::name(self.json).to_owned()),
            ("olm.operatorNamespace".to_owned(), object::namespace(self.json).to_owned()),
        ];
        let mut targets = self.targets();
        if !targets.is_empty() {
            targets.sort();
            annotations.push(("olm.targetNamespaces".to_owned(), targets.join(",")));
        }
        annotations
    }
}

/// The OperatorGroups of a namespace.
pub(super) fn groups<'w>(world: &Reader<'w>, namespace: &str) -> Vec<Group<'w>> {
    world.in_namespace(&kind::OPERATOR_GROUP, namespace).map(|o| Group { json: o.json() }).collect()
}

pub(super) fn pass(_world: &Reader<'_>, csv: Csv<'_>, groups: &[Group<'_>]) -> Verdict {
    let namespace = csv.namespace().to_owned();
    let group = match groups {
        [] => {
            let step = Step::to("Failed", "NoOperatorGroup", "csv in namespace with no operatorgroups");
            return Verdict::Stop(step.because(Reason::NoOperatorGroup { namespace }));
        }
        [group] => *group,
        many => {
            let message = "csv created in namespace with multiple operatorgroups, can't pick one automatically";
            let names = many.iter().map(|g| object::name(g.json).to_owned()).collect();
            return Verdict::Stop(
                Step::to("Failed", "TooManyOperatorGroups", message)
                    .because(Reason::TooManyOperatorGroups { namespace, names }),
            );
        }
    };
    if !group.is_processed() {
        return Verdict::Stop(Step::stay());
    }
    Verdict::Pass
}
