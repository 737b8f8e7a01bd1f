//! The custom resources of an operator: which are deleted with it, and their backup.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use olm_core::api::custom_resource_definition::CustomResourceDefinition;
use olm_core::api::object;
use olm_core::removal::{OwnedCrd, Removal};
use serde_json::Value;

use crate::cli::data::yaml;
use crate::cli::{CliError, ErrorKind};
use crate::cluster::api::{Api, ListQuery, Page, Resource};
use crate::cluster::request_error::RequestError;

/// The custom resources of a CustomResourceDefinition.
pub(super) struct Operands {
    /// The name of the definition.
    pub(super) crd: String,
    /// The definition itself, if it is deleted, too.
    pub(super) deleted_crd: Option<Value>,
    pub(super) resource: Resource,
    /// The objects to delete.
    pub(super) objects: Vec<Value>,
    /// Number of objects that are kept.
    pub(super) kept: usize,
}

impl Operands {
    /// Returns a query of all objects.
    pub(super) fn query(&self) -> ListQuery {
        ListQuery::all(&self.resource)
    }

    /// Returns the uids of the objects to delete.
    pub(super) fn uids(&self) -> BTreeSet<String> {
        self.objects.iter().map(|object| object::uid(object).to_owned()).collect()
    }
}

/// Reads the custom resources of all definitions of an operator. `targets` are the namespaces that it watches; those of other
/// namespaces belong to other operators if these own the definition, too.
///
/// # Errors
/// A definition or its objects cannot be read.
pub(super) async fn read(
    api: &Api,
    removal: &Removal,
    targets: &BTreeSet<String>,
    is_deleted: bool,
    crd_of: impl Fn(&str) -> Option<Value>,
) -> Result<Vec<Operands>, CliError> {
    let mut all = Vec::new();
    for owned in &removal.crds {
        let Some(crd) = crd_of(&owned.name) else { continue };
        let Some(resource) = resource(&crd) else { continue };
        let query = ListQuery::all(&resource);
        let objects = match api.list(&query).await.and_then(Page::readable) {
            Ok((objects, _)) => objects,
            Err(refusal) if refusal.is_not_found() => Vec::new(),
            Err(refusal) => {
                let error = CliError::from(RequestError::new("list", resource.qualified(), "", refusal));
                return Err(error.hint("without these objects it is unknown what would be lost"));
            }
        };
        let count = objects.len();
        let objects: Vec<Value> = match owned {
            OwnedCrd { kept: None, .. } => objects,
            _ if !is_deleted => Vec::new(),
            OwnedCrd { other_owners, .. } if !other_owners.is_empty() && targets.contains("") => Vec::new(),
            _ => objects.into_iter().filter(|object| is_watched(object, targets)).collect(),
        };
        all.push(Operands {
            crd: owned.name.clone(),
            deleted_crd: owned.kept.is_none().then_some(crd),
            kept: count - objects.len(),
            resource,
            objects,
        });
    }
    Ok(all)
}

fn is_watched(object: &Value, targets: &BTreeSet<String>) -> bool {
    targets.contains("") || targets.contains(object::namespace(object))
}

/// Returns the resource of the version in which objects are stored.
fn resource(crd: &Value) -> Option<Resource> {
    let crd = CustomResourceDefinition::new(crd);
    let version = crd.served().find(|version| version.is_stored()).or_else(|| crd.served().next())?;
    Some(Resource::from_definition(crd, version.name()))
}

/// Writes the objects, and the definitions that are deleted, so that `kubectl apply -R -f DIR` restores them. Returns the
/// number of files.
///
/// # Errors
/// The directory is not empty, or cannot be written.
pub(super) fn back_up(folder: &Path, all: &[Operands]) -> Result<usize, CliError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| CliError::from(error).at(path)
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    if fs::read_dir(folder).map_err(failed(folder))?.next().is_some() {
        return Err(CliError::new(ErrorKind::Input, "the directory of the backup is not empty")
            .hint("specify a directory that does not exist")
            .at(folder.display()));
    }
    let mut files = 0;
    for operands in all {
        // Definitions sort before objects, so that kubectl creates them first.
        let crds = operands.deleted_crd.iter().map(|crd| ("0-customresourcedefinitions".to_owned(), crd));
        let objects = operands.objects.iter().map(|object| (format!("1-{}", operands.crd), object));
        for (place, object) in crds.chain(objects) {
            let place = folder.join(place);
            fs::create_dir_all(&place).map_err(failed(&place))?;
            let name = match object::namespace(object) {
                "" => format!("{}.yaml", object::name(object)),
                namespace => format!("{namespace}.{}.yaml", object::name(object)),
            };
            let file = place.join(name);
            write(&file, &yaml(&restorable(object))?).map_err(failed(&file))?;
            files += 1;
        }
    }
    Ok(files)
}

/// Writes a new file that only the user can read: custom resources may contain secrets.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut opened = options.open(file)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()
}

/// Returns the object without what only the server or the operator sets. Owners are left out, because the garbage collector
/// would delete an object whose owner no longer exists.
fn restorable(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object::map_mut(&mut object, &["metadata"]);
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
    ] {
        metadata.remove(field);
    }
    object::map_mut(&mut object, &[]).remove("status");
    object
}

#[cfg(test)]
mod tests {
    use olm_core::api::object::Gvk;
    use serde_json::json;

    use super::*;

    fn operands(objects: Vec<Value>) -> Operands {
        let resource = Resource {
            gvk: Gvk::new("garden.example.com", "v1", "Rose"),
            plural: "roses".to_owned(),
            namespaced: true,
        };
        Operands { crd: "roses.garden.example.com".to_owned(), deleted_crd: None, resource, objects, kept: 0 }
    }

    #[test]
    fn a_backup_can_be_applied_again_and_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let rose = json!({
            "apiVersion": "garden.example.com/v1", "kind": "Rose",
            "metadata": {
                "namespace": "garden", "name": "red", "uid": "1", "resourceVersion": "7", "labels": {"a": "b"},
                "finalizers": ["garden.example.com/x"], "ownerReferences": [{"uid": "2"}],
            },
            "spec": {"petals": 5}, "status": {"phase": "Open"},
        });
        let target = folder.path().join("backup");
        assert_eq!(back_up(&target, &[operands(vec![rose])]).unwrap(), 1);
        let text = fs::read_to_string(target.join("1-roses.garden.example.com/garden.red.yaml")).unwrap();
        assert_eq!(
            text,
            "apiVersion: garden.example.com/v1\nkind: Rose\nmetadata:\n  labels:\n    a: b\n  name: red\n  namespace: garden\nspec:\n  petals: 5\n"
        );
        let again = back_up(&target, &[operands(Vec::new())]).unwrap_err();
        assert!(again.to_string().contains("not empty"), "{again}");
    }

    #[test]
    fn the_stored_version_is_read_if_it_is_served() {
        let version =
            |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage});
        let crd = |versions: Value| json!({"spec": {"group": "g.example.com", "scope": "Cluster", "names": {"kind": "Rose", "plural": "roses"}, "versions": versions}});
        let both = crd(json!([version("v1", true, false), version("v2", true, true)]));
        assert_eq!(resource(&both).unwrap().gvk.version, "v2");
        let unserved = crd(json!([version("v1", true, false), version("v2", false, true)]));
        assert_eq!(resource(&unserved).unwrap().gvk.version, "v1");
        assert!(resource(&crd(json!([version("v1", false, true)]))).is_none());
    }
}
