//! Finds OperatorGroups by name.

use olm_core::operatorgroup::intersection::Intersections;

use crate::cli::{CliError, ErrorKind};
use crate::observe::ClusterState;

/// Returns the group of that name, `NAME` in the selected namespace, or `NAMESPACE/NAME`.
pub(super) fn group(all: &Intersections<'_>, state: &ClusterState, name: &str) -> Result<usize, CliError> {
    let (namespace, name) = match name.split_once('/') {
        // kubectl prints names with their kinds.
        Some((kind, name)) if kind.starts_with("operatorgroup") => (None, name),
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let of_that_name = || all.scopes().iter().enumerate().filter(|(_, scope)| scope.group.name() == name);
    let namespace = namespace.or(state.namespace.as_deref());
    let Some(namespace) = namespace else {
        return match of_that_name().collect::<Vec<_>>()[..] {
            [(only, _)] => Ok(only),
            [] => Err(CliError::new(ErrorKind::Api, format!("there is no OperatorGroup {name:?}"))),
            _ => Err(CliError::usage(format!("several namespaces have an OperatorGroup {name:?}")).hint(format!(
                "specify one of: {}",
                labels(of_that_name().map(|(_, scope)| scope.group.namespace()), name)
            ))),
        };
    };
    all.find(namespace, name).ok_or_else(|| {
        let missing =
            CliError::new(ErrorKind::Api, format!("there is no OperatorGroup {name:?} in namespace {namespace}"));
        match labels(of_that_name().map(|(_, scope)| scope.group.namespace()), name).as_str() {
            "" => match labels_of(all, namespace).as_str() {
                "" => missing.hint("kubectl get operatorgroups -A lists the groups of all namespaces"),
                there => missing.hint(format!("the namespace has {there}")),
            },
            others => missing.hint(format!("other namespaces have a group of that name: {others}")),
        }
    })
}

fn labels<'n>(namespaces: impl Iterator<Item = &'n str>, name: &str) -> String {
    namespaces.map(|namespace| format!("{namespace}/{name}")).collect::<Vec<_>>().join(", ")
}

fn labels_of(all: &Intersections<'_>, namespace: &str) -> String {
    let there = all.scopes().iter().map(|scope| scope.group).filter(|group| group.namespace() == namespace);
    there.map(|group| group.name().to_owned()).collect::<Vec<_>>().join(", ")
}
