//! Backups of what a removal deletes.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use olm_core::api::object;
use serde_json::Value;

use super::operands::Operands;
use crate::cli::data::yaml;
use crate::cli::{CliError, ErrorKind};

/// The file that marks a directory as a backup, with the operator that it is of. kubectl ignores it, because its name has no
/// extension.
const MARKER: &str = "kubectl-olm-backup";

/// Writes the objects, and the definitions that are deleted, so that `kubectl apply -R -f DIR` restores them once the definitions
/// are served, which have to be applied first: kubectl does not wait for that. Continues the
/// backup of an interrupted removal of the same operator (`NAMESPACE/NAME`). Returns the number of files of these objects.
///
/// # Errors
/// The directory contains something else, or cannot be written.
pub(super) fn write(folder: &Path, operator: &str, all: &[Operands]) -> Result<usize, CliError> {
    fs::create_dir_all(folder).map_err(failed(folder))?;
    mark(folder, operator)?;
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
            files += 1;
            // What the operator changes after the deletion was requested is not what was deleted.
            let is_complete = object::is_deleting(object) && file.try_exists().map_err(failed(&file))?;
            if !is_complete {
                store(&file, &yaml(&restorable(object))?).map_err(failed(&file))?;
            }
        }
    }
    Ok(files)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> CliError {
    let path = path.display().to_string();
    move |error| CliError::from(error).at(&path)
}

/// Marks an empty directory as the backup of the operator.
///
/// # Errors
/// The directory contains something else.
fn mark(folder: &Path, operator: &str) -> Result<(), CliError> {
    let marker = folder.join(MARKER);
    match fs::read_to_string(&marker) {
        Ok(of) if of.trim_end() == operator => return Ok(()),
        Ok(of) => {
            let message = format!("the directory contains the backup of operator {}", of.trim_end());
            return Err(CliError::new(ErrorKind::Input, message)
                .hint("specify a directory that does not exist")
                .at(folder.display()));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(&marker)(error)),
    }
    if fs::read_dir(folder).map_err(failed(folder))?.next().is_some() {
        return Err(CliError::new(ErrorKind::Input, "the directory of the backup is not empty")
            .hint("specify a directory that does not exist, or that of a removal that was interrupted")
            .at(folder.display()));
    }
    store(&marker, &format!("{operator}\n")).map_err(failed(&marker))
}

/// Writes a file that only the user can read: custom resources may contain secrets. It is replaced as a whole, so that an
/// interruption leaves no part of a file under its name.
fn store(file: &Path, text: &str) -> io::Result<()> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut opened = options.open(&part)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()?;
    fs::rename(&part, file)
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
    use crate::cluster::api::Resource;

    fn operands(objects: Vec<Value>) -> Operands {
        let resource = Resource {
            gvk: Gvk::new("garden.example.com", "v1", "Rose"),
            plural: "roses".to_owned(),
            namespaced: true,
        };
        Operands {
            crd: "roses.garden.example.com".to_owned(),
            deleted_crd: None,
            resource,
            objects,
            kept: 0,
            unread: None,
        }
    }

    fn rose() -> Value {
        json!({
            "apiVersion": "garden.example.com/v1", "kind": "Rose",
            "metadata": {
                "namespace": "garden", "name": "red", "uid": "1", "resourceVersion": "7", "labels": {"a": "b"},
                "finalizers": ["garden.example.com/x"], "ownerReferences": [{"uid": "2"}],
            },
            "spec": {"petals": 5}, "status": {"phase": "Open"},
        })
    }

    const TEXT: &str = "apiVersion: garden.example.com/v1\nkind: Rose\nmetadata:\n  labels:\n    a: b\n  name: red\n  namespace: garden\nspec:\n  petals: 5\n";

    #[test]
    fn a_backup_can_be_applied_again_and_continued() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("backup");
        let file = target.join("1-roses.garden.example.com/garden.red.yaml");
        assert_eq!(write(&target, "garden/rose", &[operands(vec![rose()])]).unwrap(), 1);
        assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);

        // The removal was interrupted: the object is being deleted, and the operator has changed it.
        let mut deleting = rose();
        deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        deleting["spec"]["petals"] = 0.into();
        assert_eq!(write(&target, "garden/rose", &[operands(vec![deleting])]).unwrap(), 1);
        assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);
        // A user has changed it before the command was run again.
        let mut changed = rose();
        changed["spec"]["petals"] = 6.into();
        write(&target, "garden/rose", &[operands(vec![changed])]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), TEXT.replace("petals: 5", "petals: 6"));
        let names = fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["garden.red.yaml"]);
    }

    #[test]
    fn other_directories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "garden/rose", &[]).unwrap();
        let other = write(folder.path(), "garden/tulip", &[]).unwrap_err();
        assert!(other.to_string().contains("contains the backup of operator garden/rose"), "{other}");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("letter"), "").unwrap();
        let full = write(folder.path(), "garden/rose", &[]).unwrap_err();
        assert!(full.to_string().contains("not empty"), "{full}");
    }
}
