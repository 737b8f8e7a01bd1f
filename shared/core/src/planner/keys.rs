//! The keys that a change of an object always affects, independently of what they have read.

use crate::plan::{Controller, Key};
use crate::world::{Change, IndexKey, kind};

/// Returns the keys of the controllers that own the changed object.
pub(super) fn owners(change: &Change) -> Vec<Key> {
    use Controller as C;
    let (namespace, name) = (change.name.0.as_str(), change.name.1.as_str());
    let subject = |controllers: &[Controller]| controllers.iter().map(|c| Key::new(*c, namespace, name)).collect();
    let mut keys: Vec<Key> = match &change.kind {
        k if *k == kind::CATALOG_SOURCE => subject(&[C::CatalogSource]),
        k if *k == kind::SUBSCRIPTION => subject(&[C::Adoption]),
        k if *k == kind::INSTALL_PLAN => subject(&[C::InstallPlan]),
        k if *k == kind::OPERATOR_GROUP => subject(&[C::OperatorGroup]),
        k if *k == kind::OPERATOR_CONDITION => subject(&[C::OperatorCondition]),
        k if *k == kind::NAMESPACE => subject(&[C::Namespace]),
        k if *k == kind::OPERATOR => subject(&[C::Operator]),
        k if *k == kind::OLM_CONFIG => subject(&[C::OlmConfig]),
        k if *k == kind::CLUSTER_SERVICE_VERSION => {
            subject(&[C::ClusterServiceVersion, C::CopiedCsv, C::ProvidedApiRoles, C::OperatorCondition, C::Adoption])
        }
        _ => Vec::new(),
    };
    let resolves = [kind::SUBSCRIPTION, kind::INSTALL_PLAN, kind::OPERATOR_GROUP].contains(&change.kind);
    if resolves {
        keys.push(Key::new(C::Resolution, "", namespace));
    }
    for key in &change.index {
        match key {
            // The key of its original.
            IndexKey::CopyOf(namespace, name) => keys.push(Key::new(C::CopiedCsv, namespace, name)),
            IndexKey::Component(operator) => keys.push(Key::new(C::Operator, "", operator)),
            IndexKey::OwnerLabels { kind, namespace, name } if *kind == kind::OPERATOR_GROUP.kind => {
                keys.push(Key::new(C::OperatorGroup, namespace, name));
            }
            // Its owner may not exist any longer.
            IndexKey::OwnerLabels { namespace, name, .. } if change.kind == kind::API_SERVICE => {
                keys.push(Key::new(C::ClusterServiceVersion, namespace, name));
            }
            _ => {}
        }
    }
    keys
}
