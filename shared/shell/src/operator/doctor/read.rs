//! Reads what the rules of the doctor need. A cluster may have ten thousand namespaces, and a copy of every operator in each: of most objects
//! only the metadata is requested, and of that only what is needed is stored.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::labels;
use olm_core::api::object;
use olm_core::diagnosis::known_of_files;
use olm_core::distribution::{CONTROLLERS, RELEASE};
use olm_core::doctor;
use olm_core::listing::shortened;
use olm_core::world::{GroupKind, Known, Reader, trim};
use serde_json::{Value, json};

use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::{CliError, Printer};
use crate::cluster::api::{Api, Depth, ListQuery, Resource};
use crate::cluster::installed::UPSTREAM;
use crate::observe::{ClusterState, ReadScope, Reduced, copy, reduced};
use crate::operator::operands::resource;

/// The maximum number of concurrent lists of custom resources.
const LISTS: usize = 8;

/// The state, and what may be concluded from it.
pub(super) struct State {
    pub(super) cluster: ClusterState,
    pub(super) known: Known,
    /// The custom resources that could not be listed, a sentence without a full stop.
    pub(super) unlisted: String,
}

/// Reads a cluster or files.
///
/// # Errors
/// The cluster does not respond or refuses everything, or the files cannot be read.
pub(super) async fn read(source: &SourceFlags, printer: &mut Printer) -> Result<State, CliError> {
    let everywhere = NamespaceFlags { namespace: None, all_namespaces: true };
    let mut state = source.read(&everywhere, &[], ReadScope::Nothing, printer).await?;
    let Some(api) = state.api().cloned() else {
        let known = known_of_files(&state.world);
        return Ok(State { cluster: state, known, unlisted: String::new() });
    };
    let progress = printer.progress("reading the cluster");
    state.read_reduced(&lists()).await?;
    progress.doing("reading Services");
    let services = doctor::services(&Reader::new(&state.world));
    state.read_objects(services).await;
    progress.doing("reading custom resources");
    let unlisted = read_custom_resources(&api, &mut state).await;
    drop(progress);
    let mut known = state.known();
    for failure in state.read_failures.iter().filter(|failure| failure.is_unreadable()) {
        // It exists, whichever object of that kind is missing.
        if let Some(of_kind) = kinds::ALL.iter().find(|of_kind| of_kind.resource() == failure.resource) {
            known.limit(GroupKind::known(of_kind), BTreeSet::new(), failure.to_string());
        }
    }
    Ok(State { cluster: state, known, unlisted })
}

/// Returns the lists of the rules.
fn lists() -> Vec<Reduced> {
    const OF_VERSIONS: &str = "olm.owner.kind=ClusterServiceVersion";
    let all = |kind: &'static Kind| Reduced { kind, query: ListQuery::all(&Resource::from(kind)), reduce: trimmed };
    let labelled = |kind, labels: &str| {
        let list = all(kind);
        Reduced { query: list.query.labelled(labels), ..list }
    };
    let with_fields = |kind, fields: String, reduce| {
        let list = all(kind);
        Reduced { query: ListQuery { fields, ..list.query }, reduce, ..list }
    };
    let metadata = |list: Reduced, reduce| Reduced { query: list.query.depth(Depth::Metadata), reduce, ..list };
    vec![
        all(&kinds::API_SERVICE),
        all(&kinds::CUSTOM_RESOURCE_DEFINITION),
        all(&kinds::VALIDATING_WEBHOOK_CONFIGURATION),
        all(&kinds::MUTATING_WEBHOOK_CONFIGURATION),
        all(&kinds::SUBSCRIPTION),
        all(&kinds::OLM_CONFIG),
        labelled(&kinds::CLUSTER_SERVICE_VERSION, labels::NOT_COPIED),
        metadata(labelled(&kinds::CLUSTER_SERVICE_VERSION, labels::COPIED_FROM), |object| Some(copy(&object))),
        metadata(all(&kinds::INSTALL_PLAN), |object| Some(identity(&object))),
        metadata(labelled(&kinds::CLUSTER_ROLE, OF_VERSIONS), trimmed),
        metadata(labelled(&kinds::CLUSTER_ROLE_BINDING, OF_VERSIONS), trimmed),
        labelled(&kinds::DEPLOYMENT, UPSTREAM),
        labelled(&kinds::DEPLOYMENT, RELEASE),
        with_fields(&kinds::NAMESPACE, "status.phase=Terminating".to_owned(), terminating),
        // The times of its writes are needed.
        with_fields(&kinds::LEASE, format!("metadata.name={CONTROLLERS}"), Some),
    ]
}

fn trimmed(mut object: Value) -> Option<Value> {
    trim(&mut object);
    Some(object)
}

/// Returns a namespace that is being deleted. An API server that ignores the field selector returns others, too.
fn terminating(object: Value) -> Option<Value> {
    if object::is_terminating(&object) { trimmed(object) } else { None }
}

/// Returns an object with its kind, namespace and name only.
fn identity(object: &Value) -> Value {
    let metadata = json!({ "namespace": object::namespace(object), "name": object::name(object) });
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata })
}

/// Returns the identity and the finalizers of an object that is being deleted.
fn deleting(object: Value) -> Option<Value> {
    if !object::is_deleting(&object) {
        return None;
    }
    let mut stored = identity(&object);
    for field in ["deletionTimestamp", "finalizers"] {
        stored["metadata"][field] = object["metadata"][field].clone();
    }
    Some(stored)
}

/// Reads the custom resources of operators that are being deleted. Returns what could not be listed.
async fn read_custom_resources(api: &Api, state: &mut ClusterState) -> String {
    let definitions = doctor::examined_definitions(&Reader::new(&state.world));
    let resources: Vec<Resource> = definitions.into_iter().filter_map(resource).collect();
    let lists = resources.into_iter().map(|resource| async move {
        let query = ListQuery::all(&resource).depth(Depth::Metadata);
        (resource.qualified(), reduced(api, &query, deleting).await)
    });
    let answers: Vec<_> = stream::iter(lists).buffered(LISTS).collect().await;
    let (mut forbidden, mut failed) = (Vec::new(), Vec::new());
    for (name, answer) in answers {
        match answer {
            Ok((objects, _)) => {
                for object in objects {
                    state.world.apply(object);
                }
            }
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) if matches!(refusal.code, 401 | 403) => forbidden.push(name),
            Err(refusal) => failed.push(format!("{name} ({})", refusal.message)),
        }
    }
    let reasons = [("not allowed to list", shortened(forbidden)), ("cannot list", shortened(failed))];
    let reasons = reasons.iter().filter(|(_, names)| !names.is_empty()).map(|(why, names)| format!("{why} {names}"));
    reasons.collect::<Vec<_>>().join("; ")
}
