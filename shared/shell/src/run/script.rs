//! A folder with a `scenario.yaml`: the objects to apply, patch and delete, step by step.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use olm_core::api::metadata::Metadata;
use olm_core::api::object::{self, ObjectRef};
use olm_core::sim::{Patch, Simulation};
use serde::Deserialize;
use serde_json::Value;

use crate::cli::CliError;
use crate::observe::{self, files};
use crate::registry;

/// The file that makes a folder a script.
const FILE: &str = "scenario.yaml";

/// The steps of a script. Fields that only tests need (conditions to wait for) are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Script {
    #[serde(skip)]
    folder: PathBuf,
    #[serde(default)]
    catalogs: Vec<Catalog>,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Catalog {
    name: String,
    namespace: String,
}

/// A step. Its actions are performed in the order of these fields.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    pub(super) name: String,
    #[serde(default)]
    apply: Vec<String>,
    #[serde(default)]
    serve: Vec<Served>,
    #[serde(default)]
    patch: Vec<Patched>,
    #[serde(default)]
    delete: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Served {
    name: String,
    directory: String,
}

#[derive(Debug, Deserialize)]
struct Patched {
    kind: String,
    #[serde(default)]
    namespace: String,
    name: Option<String>,
    #[serde(rename = "type", default)]
    form: String,
    subresource: Option<String>,
    patch: Value,
}

impl Script {
    /// Reads the script of a folder; `None` if it has none.
    pub(super) fn from_folder(folder: &Path) -> Result<Option<Self>, CliError> {
        let file = folder.join(FILE);
        if !file.is_file() {
            return Ok(None);
        }
        let text =
            fs::read_to_string(&file).map_err(|source| observe::Error::Unreadable { path: file.clone(), source })?;
        let mut script: Self = serde_yaml::from_str(&text).map_err(|e| {
            let line = e.location().map_or(1, |l| l.line());
            CliError::input(format!("invalid scenario: {e}"))
                .at(format_args!("{}:{line}", file.display()))
                .hint("a scenario has steps, each with a name and what to apply, serve, patch and delete")
        })?;
        folder.clone_into(&mut script.folder);
        Ok(Some(script))
    }

    /// Returns the objects that a step applies.
    pub(super) fn objects(&self, step: &Step) -> Result<Vec<files::InputObject>, CliError> {
        let files: Vec<PathBuf> = step
            .apply
            .iter()
            .map(
                |file| if file.contains('/') { self.folder.join(file) } else { self.folder.join("objects").join(file) },
            )
            .collect();
        Ok(files::read(&files)?)
    }

    /// Performs the actions of a step other than applying objects.
    pub(super) fn perform(&self, step: &Step, simulation: &mut Simulation) -> Result<(), CliError> {
        let refuse = |what: String| CliError::input(what).at(format_args!("{}", self.folder.join(FILE).display()));
        let namespaces: BTreeMap<&str, &str> =
            self.catalogs.iter().map(|c| (c.name.as_str(), c.namespace.as_str())).collect();
        for Served { name, directory } in &step.serve {
            let namespace = namespaces.get(name.as_str()).copied().unwrap_or("olm");
            let loaded = registry::dir::load(&self.folder.join(directory))?;
            simulation.add_local_catalog(namespace, name, Arc::new(loaded.snapshot));
        }
        for patched in &step.patch {
            let target = target(simulation, &patched.kind, &patched.namespace, patched.name.as_deref())
                .ok_or_else(|| refuse(format!("step {:?}: no {} to patch", step.name, patched.kind)))?;
            let patch = match patched.form.as_str() {
                "json" => Patch::Json(patched.patch.clone()),
                "strategic" => Patch::Strategic(patched.patch.clone()),
                _ => Patch::Merge(patched.patch.clone()),
            };
            simulation
                .patch(&target, patch, patched.subresource.as_deref())
                .map_err(|r| refuse(format!("step {:?}: cannot patch {target}: {r}", step.name)))?;
        }
        for named in &step.delete {
            let parts: Vec<&str> = named.split('/').collect();
            let found = match parts[..] {
                [kind, name] => target(simulation, kind, "", Some(name)),
                [kind, namespace, "@last"] => target(simulation, kind, namespace, None),
                [kind, namespace, name] => target(simulation, kind, namespace, Some(name)),
                _ => None,
            };
            let found = found.ok_or_else(|| refuse(format!("step {:?}: no {named} to delete", step.name)))?;
            simulation
                .delete(&found)
                .map_err(|r| refuse(format!("step {:?}: cannot delete {found}: {r}", step.name)))?;
        }
        Ok(())
    }
}

/// Returns the object of that kind and name, or the newest of the kind.
fn target(simulation: &Simulation, kind: &str, namespace: &str, name: Option<&str>) -> Option<ObjectRef> {
    let of_kind = simulation.api().iter().filter(|o| object::text(o, &["kind"]) == kind);
    let candidates = of_kind.filter(|o| object::namespace(o) == namespace);
    let found = match name {
        Some(name) => candidates.into_iter().find(|o| object::name(o) == name),
        None => candidates.max_by_key(|o| Metadata::new(o).created().to_owned()),
    }?;
    Some(ObjectRef::from_object(&found))
}
