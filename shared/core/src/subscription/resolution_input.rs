//! The inputs of a namespace to its resolution, without catalogs, for commands that show what would be installed without
//! installing it.

use serde_json::Value;

use super::installed::Namespace;
use super::status::Draft;
use super::{Group, install};
use crate::membership;
use crate::resolver::{Failure, Installed, RequestedSubscription};
use crate::world::{GroupKind, Reader, kind};

/// The Subscriptions and ClusterServiceVersions of a namespace, as the controllers would pass them to the resolver now.
#[derive(Debug)]
pub struct NamespaceState<'w> {
    subscriptions: Vec<Draft<'w>>,
    busy: Vec<bool>,
    /// What is installed, without what is about to be deleted.
    pub installed: Vec<Installed>,
    /// Number of OperatorGroups. OLM resolves nothing unless there is exactly one.
    pub operator_groups: usize,
    /// The target namespaces of the OperatorGroup, as in the annotation of its members; `None` when unknown.
    pub targets: Option<String>,
}

impl<'w> NamespaceState<'w> {
    /// Reads the namespace.
    ///
    /// # Errors
    /// A ClusterServiceVersion of the namespace cannot be read: the message states which part is invalid.
    pub fn read(world: &Reader<'w>, namespace: &str) -> Result<Self, Failure> {
        let of = |kind: &GroupKind| world.in_namespace(kind, namespace).map(|o| o.json()).collect::<Vec<&Value>>();
        let (plans, groups) = (of(&kind::INSTALL_PLAN), of(&kind::OPERATOR_GROUP));
        let group = Group::read(&groups);
        let mut subscriptions: Vec<Draft<'w>> = of(&kind::SUBSCRIPTION).into_iter().map(Draft::new).collect();
        install::link(&mut subscriptions, &plans);
        for subscription in &mut subscriptions {
            subscription.follow(world, &plans, group.fail_forward);
        }
        let csvs = Namespace::read(world, namespace);
        let (busy, leaving) = csvs.under_way(&subscriptions, &plans, group.fail_forward);
        // The caller checks the number of OperatorGroups: files need not contain any.
        let installed = csvs.installed(namespace, 1, &subscriptions, &leaving);
        let installed = installed.map_err(|existing| Failure::Error(existing.to_string()))?;
        let targets = match groups[..] {
            [group] => {
                let targets: Vec<&str> = membership::Group::new(group).targets().into_iter().collect();
                Some(targets.join(",")).filter(|_| !targets.is_empty())
            }
            _ => None,
        };
        Ok(Self { subscriptions, busy, installed, operator_groups: groups.len(), targets })
    }

    /// Returns the Subscriptions, by name.
    pub fn requested(&self) -> Vec<RequestedSubscription<'_>> {
        self.subscriptions.iter().zip(&self.busy).map(|(subscription, busy)| subscription.requested(*busy)).collect()
    }
}
