//! The OperatorGroup of an operator to install: the existing one if it fits, otherwise a compiled one
//! (olm-behaviour/README.md#design-and-code).

use std::collections::BTreeSet;
use std::str::FromStr;

use olm_core::api::cluster_service_version::{Csv, InstallMode};
use olm_core::api::object;
use olm_core::listing::listed;
use olm_core::membership::{self, Group};
use olm_core::operatorgroup::compile::{GroupRequest, Refused, compile, supports};
use olm_core::operatorgroup::create_delete::Origin;
use olm_core::operatorgroup::intersection;
use olm_core::world::Reader;
use serde_json::Value;

use crate::cli::{CliError, ErrorKind};
use crate::observe::ClusterState;
use crate::operatorgroup;

/// `--install-mode MODE[=NAMESPACE,…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedMode {
    /// The mode.
    pub mode: InstallMode,
    /// The namespaces to watch.
    pub targets: Vec<String>,
}

impl FromStr for RequestedMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mode, targets) = text.split_once('=').unwrap_or((text, ""));
        let targets = targets.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        Ok(Self { mode: mode.parse()?, targets: targets.collect() })
    }
}

/// What the group is for.
#[derive(Clone, Copy)]
pub(super) struct Request<'r> {
    pub(super) namespace: &'r str,
    pub(super) package: &'r str,
    pub(super) mode: Option<&'r RequestedMode>,
    pub(super) service_account: Option<&'r str>,
    /// The ClusterServiceVersion of the operator.
    pub(super) csv: &'r Value,
}

/// Returns the group to create; `None` if the namespace has one that fits.
///
/// # Errors
/// The existing groups do not fit, or the operator does not support the mode.
pub(super) fn missing(state: &ClusterState, request: Request<'_>) -> Result<Option<Value>, CliError> {
    let world = Reader::new(&state.world);
    let groups = membership::groups(&world, request.namespace);
    match &groups[..] {
        [] => compiled(&world, request).map(Some),
        [group] => fits(&world, *group, request).map(|()| None),
        several => {
            let names: Vec<&str> = several.iter().map(|group| group.name()).collect();
            Err(blocked(request.namespace, &format!("has several OperatorGroups: {}", listed(&names)))
                .hint(format!("delete all but one: kubectl olm operatorgroup delete NAME -n {}", request.namespace)))
        }
    }
}

/// Returns the group that the user supplies, to create; `None` if it exists.
///
/// # Errors
/// Another group exists, or the operator does not support the targets.
pub(super) fn supplied(state: &ClusterState, request: Request<'_>, group: &Value) -> Result<Option<Value>, CliError> {
    let world = Reader::new(&state.world);
    let mut group = group.clone();
    let existing = membership::groups(&world, request.namespace);
    if let Some(other) = existing.first() {
        let is_same = existing.len() == 1
            && other.name() == object::name(&group)
            && object::covers(object::at(other.json, &["spec"]), object::at(&group, &["spec"]));
        if is_same {
            return fits(&world, *other, request).map(|()| None);
        }
        let names: Vec<&str> = existing.iter().map(|group| group.name()).collect();
        return Err(blocked(request.namespace, &format!("has OperatorGroup {}, not the supplied one", listed(&names)))
            .hint("leave out its manifest to use the existing group, or specify another namespace with -n"));
    }
    let targets = intersection::targets(&world, Group::new(&group));
    supports(&in_namespace(request), request.namespace, &targets).map_err(|refused| {
        unsupported(Refused {
            message: format!("the supplied OperatorGroup {} does not fit: {}", object::name(&group), refused.message),
            hint: "change its spec.targetNamespaces, or leave out its manifest to generate one".to_owned(),
        })
    })?;
    Origin::User.mark(&mut group);
    Ok(Some(group))
}

/// Returns a sentence for each OperatorGroup of the cluster that conflicts with the group of the operator.
pub(super) fn conflicts(all: &ClusterState, group: &Value, request: Request<'_>) -> Vec<String> {
    operatorgroup::create::conflicts(all, group, in_namespace(request))
}

fn blocked(namespace: &str, why: &str) -> CliError {
    CliError::new(ErrorKind::Api, format!("nothing can be installed: namespace {namespace} {why}"))
}

fn unsupported(Refused { message, hint }: Refused) -> CliError {
    CliError::new(ErrorKind::Api, message).hint(hint)
}

fn in_namespace(request: Request<'_>) -> Value {
    let mut csv = request.csv.clone();
    object::map_mut(&mut csv, &["metadata"]).insert("namespace".to_owned(), request.namespace.into());
    csv
}

/// Compiles the group. Without a mode it is for the operator's own namespace, or for all namespaces if the operator
/// supports only that.
fn compiled(world: &Reader<'_>, request: Request<'_>) -> Result<Value, CliError> {
    let supported = |mode: InstallMode| {
        let modes = Csv::new(request.csv).install_modes().iter();
        let mut entries = modes.filter(|entry| object::text(entry, &["type"]) == mode.to_string());
        entries.any(|entry| object::at(entry, &["supported"]) == &Value::Bool(true))
    };
    let mode = match request.mode {
        Some(mode) => mode.clone(),
        None => {
            let derived = [InstallMode::OwnNamespace, InstallMode::AllNamespaces].into_iter().find(|m| supported(*m));
            let Some(mode) = derived else {
                let modes: Vec<String> =
                    InstallMode::ALL.into_iter().filter(|mode| supported(*mode)).map(|m| m.to_string()).collect();
                let error = CliError::usage(format!(
                    "{} does not say which namespaces it watches by default; it supports {}",
                    object::name(request.csv),
                    if modes.is_empty() { "no install mode".to_owned() } else { listed(&modes) }
                ));
                return Err(error.hint("specify them: --install-mode SingleNamespace=NAMESPACE"));
            };
            RequestedMode { mode, targets: Vec::new() }
        }
    };
    let compiled = compile(&GroupRequest {
        name: request.package.to_owned(),
        namespace: request.namespace.to_owned(),
        mode: Some(mode.mode),
        targets: mode.targets,
        service_account: request.service_account.map(str::to_owned),
    })
    .map_err(in_flags)?;
    let mut group = compiled.group;
    let targets = intersection::targets(world, Group::new(&group));
    supports(&in_namespace(request), request.namespace, &targets).map_err(in_flags).map_err(|mut error| {
        error.kind = ErrorKind::Api;
        error
    })?;
    Origin::Ours.mark(&mut group);
    Ok(group)
}

/// Converts a refusal, with the flags of `operator install` in place of those of `operatorgroup`.
fn in_flags(Refused { message, hint }: Refused) -> CliError {
    let hint = hint.replace("--target-namespaces A,B", "--install-mode MultiNamespace=A,B");
    let hint = hint.replace("--target-namespaces NAMESPACE", "--install-mode SingleNamespace=NAMESPACE");
    CliError::usage(message).hint(hint)
}

/// Checks that the existing group fits.
fn fits(world: &Reader<'_>, group: Group<'_>, request: Request<'_>) -> Result<(), CliError> {
    let Request { namespace, service_account, .. } = request;
    let name = group.name();
    if object::is_deleting(group.json) {
        return Err(blocked(namespace, &format!("has OperatorGroup {name}, which is being deleted"))
            .hint(format!("wait until it is deleted: kubectl wait --for=delete operatorgroup/{name} -n {namespace}")));
    }
    let targets = intersection::targets(world, group);
    if let Some(mode) = request.mode {
        let wanted = compiled(world, Request { service_account: None, ..request })?;
        let wanted = intersection::targets(world, Group::new(&wanted));
        if wanted != targets {
            return Err(blocked(
                namespace,
                &format!("has OperatorGroup {name}, which watches {}, not {}", shown(&targets), shown(&wanted)),
            )
            .hint(format!(
                "leave out --install-mode {} to use the group, or specify another namespace with -n",
                mode.mode
            )));
        }
    }
    let account = group.service_account();
    if let Some(wanted) = service_account.filter(|wanted| *wanted != account) {
        let has = if account.is_empty() { "no ServiceAccount" } else { account };
        return Err(blocked(namespace, &format!("has OperatorGroup {name} with {has}, not {wanted}"))
            .hint("leave out --service-account, or specify another namespace with -n"));
    }
    supports(&in_namespace(request), namespace, &targets).map_err(|refused| {
        unsupported(Refused {
            message: format!("OperatorGroup {name} of namespace {namespace} does not fit: {}", refused.message),
            hint: "install into a namespace without a group: -n NAMESPACE --create-namespace".to_owned(),
        })
    })
}

fn shown(targets: &BTreeSet<String>) -> String {
    if targets.contains("") {
        return "all namespaces".to_owned();
    }
    match &targets.iter().collect::<Vec<_>>()[..] {
        [] => "no namespace".to_owned(),
        names => listed(names),
    }
}
