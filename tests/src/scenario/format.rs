//! The files of a scenario folder: `scenario.yaml`, `objects/*.yaml`, `catalogs/*/`, `golden.yaml` and `transitions.yaml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::condition::Condition;
use crate::data::documents;
use crate::faulty_api::{Call, Fault};

/// A scenario: what happens, and the folder with what it needs for that.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The folder's name.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// `scenario.yaml`.
    pub script: Script,
}

/// `scenario.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it shows, in a sentence.
    pub about: String,
    /// The resync interval that OLM's controllers were started with. Ours have nothing to resync.
    pub interval: Option<String>,
    /// What `kubectl olm run` is told besides, in scenarios of our own.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Served before the first step.
    #[serde(default)]
    pub catalogs: Vec<CatalogSpec>,
    /// What happens, in order.
    pub steps: Vec<StepSpec>,
}

/// A catalog that gets a `CatalogSource`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogSpec {
    /// The `CatalogSource`'s name, also its display name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// What it serves at first, relative to the scenario folder.
    pub directory: String,
    /// Its priority.
    pub priority: Option<i64>,
}

/// A step: first what it does, in the order of these fields, then what it waits for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// What it is called.
    pub name: String,
    /// Files of `objects/` to apply.
    #[serde(default)]
    pub apply: Vec<String>,
    /// What the API server answers to some requests of the controllers from now on, instead of executing them.
    #[serde(default)]
    pub faults: Vec<FaultSpec>,
    /// Catalogs that serve another directory from now on.
    #[serde(default)]
    pub serve: Vec<ServeSpec>,
    /// Objects to patch.
    #[serde(default)]
    pub patch: Vec<PatchSpec>,
    /// Objects to delete: `Kind/namespace/name` or `Kind/name`; the name `@last` is the newest of the kind.
    #[serde(default)]
    pub delete: Vec<String>,
    /// Commands that a user runs, one after the other, in scenarios of our own.
    #[serde(default)]
    pub run: Vec<CommandSpec>,
    /// All of these must hold before the step may end.
    #[serde(default)]
    pub until: Vec<Condition>,
    /// How many seconds each of them may take.
    #[serde(default = "timeout")]
    pub timeout: f64,
    /// Then nothing may change for so many seconds.
    #[serde(default = "settle")]
    pub settle: f64,
    /// But the step waits for that quiet no longer than so many seconds.
    #[serde(default = "limit")]
    pub limit: f64,
}

fn timeout() -> f64 {
    45.0
}

fn settle() -> f64 {
    3.0
}

fn limit() -> f64 {
    40.0
}

/// A refusal.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// `create`, `update` or `patch`.
    pub verb: String,
    /// The kind of object that the request is about.
    pub kind: String,
    /// The object's name.
    pub name: String,
    /// HTTP status code, 0 for no answer.
    pub code: u16,
    /// Kubernetes' word for it.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// How often; ever after when absent.
    pub times: Option<u32>,
}

impl FaultSpec {
    /// What becomes of that call, if it is one that the refusal is for and has not been given often enough.
    pub fn meets(&mut self, call: &Call) -> Option<Fault> {
        let Self { verb, kind, name, code, reason, message, times } = self;
        let is_it = call.verb == verb && call.is_of(kind) && call.name == *name && call.subresource.is_empty();
        if !is_it || *times == Some(0) {
            return None;
        }
        *times = times.map(|times| times - 1);
        Some(match *code {
            0 => Fault::Drop { reached: false },
            code => Fault::Refused { code, reason: reason.clone(), message: message.clone() },
        })
    }
}

/// A command, and how it is to end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSpec {
    /// What stands behind `kubectl olm`, in words between spaces; files are those of `objects/`.
    pub command: String,
    /// Its exit code.
    #[serde(default)]
    pub exit: i32,
    /// What it says, word for word, on stdout or stderr.
    pub says: Vec<String>,
}

/// Another directory for a catalog.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeSpec {
    /// The catalog's name.
    pub name: String,
    /// Relative to the scenario folder.
    pub directory: String,
}

/// A patch of one object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PatchSpec {
    /// The object's kind.
    pub kind: String,
    /// Its API version, when no object of that kind is known yet.
    pub api_version: Option<String>,
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
    /// Its name; the newest object of that kind and namespace when absent.
    pub name: Option<String>,
    /// How the patch is meant.
    #[serde(rename = "type", default)]
    pub patch_type: PatchType,
    /// `status` to patch that instead.
    pub subresource: Option<String>,
    /// The patch.
    pub patch: Value,
}

/// The kinds of patch that an API server knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchType {
    /// RFC 7386.
    #[default]
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes' own.
    Strategic,
}

impl Scenario {
    /// Reads `scenario.yaml` of a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, folder: folder.to_owned(), script: read_yaml(&folder.join("scenario.yaml"))? })
    }

    /// The objects of a file that a step applies.
    pub fn objects(&self, file: &str) -> Result<Vec<Value>> {
        let path = if file.contains('/') { self.folder.join(file) } else { self.folder.join("objects").join(file) };
        Ok(documents(&path)?.into_iter().filter(|document| !document.is_null()).collect())
    }

    /// Does a catalog name bundles of the data folder?
    pub fn needs_data(&self) -> bool {
        let named = self.script.steps.iter().flat_map(|step| step.serve.iter().map(|s| &s.directory));
        let mut directories = self.script.catalogs.iter().map(|c| &c.directory).chain(named);
        directories.any(|directory| self.folder.join(directory).join("bundles.txt").exists())
    }

    /// Does the API server refuse what it would do by itself?
    pub fn has_faults(&self) -> bool {
        self.script.steps.iter().any(|step| !step.faults.is_empty())
    }

    /// Does the recording show pods of catalogs, or Jobs that unpack bundles? Ours makes them only when asked to.
    pub fn has_catalog_pods(&self) -> Result<bool> {
        let golden = self.golden()?;
        Ok(golden
            .steps
            .iter()
            .any(|step| step.objects.keys().any(|id| id.starts_with("Pod/") || id.starts_with("Job/"))))
    }

    /// What was recorded from the real OLM.
    pub fn golden(&self) -> Result<Recording> {
        Recording::read(&self.folder.join("golden.yaml"), &self.folder.join("transitions.yaml"))
    }
}

/// What the cluster held after each step, normalised.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What differed between recordings, in a golden.
    pub unstable: Vec<String>,
    /// One for each step of the script.
    pub steps: Vec<Step>,
}

/// The state after a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The step's name.
    pub name: String,
    /// All objects by `Kind/namespace/name`.
    pub objects: BTreeMap<String, Value>,
    /// The events that are new.
    pub events: Vec<Value>,
    /// The objects were still changing.
    pub unsettled: bool,
    /// The states that a watch saw CSVs, `InstallPlans` and Subscriptions in, in order.
    pub saw: BTreeMap<String, Vec<Value>>,
    /// What went wrong as such: conditions that were not reached in time, controllers that still want to act. A golden has none.
    pub faults: Vec<String>,
}

impl Recording {
    /// Reads a golden or recording, where every step lists only what changed.
    pub fn read(objects: &Path, transitions: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            unstable: Vec<String>,
            steps: Vec<FileStep>,
        }
        #[derive(Deserialize)]
        struct FileStep {
            name: String,
            #[serde(default)]
            unsettled: bool,
            #[serde(default)]
            gone: Vec<String>,
            #[serde(default)]
            events: Vec<Value>,
            #[serde(default)]
            changed: BTreeMap<String, Value>,
        }
        #[derive(Deserialize)]
        struct Transitions {
            steps: Vec<Saw>,
        }
        #[derive(Deserialize)]
        struct Saw {
            name: String,
            saw: BTreeMap<String, Vec<Value>>,
        }
        let file: File = read_yaml(objects)?;
        let saw: Transitions = read_yaml(transitions)?;
        if !file.steps.iter().map(|s| &s.name).eq(saw.steps.iter().map(|s| &s.name)) {
            bail!("{} and {} have other steps", objects.display(), transitions.display());
        }
        let mut state = BTreeMap::new();
        let steps = file.steps.into_iter().zip(saw.steps).map(|(step, saw)| {
            state.retain(|id, _| !step.gone.contains(id));
            state.extend(step.changed);
            Step {
                name: step.name,
                objects: state.clone(),
                events: step.events,
                unsettled: step.unsettled,
                saw: saw.saw,
                faults: vec![],
            }
        });
        Ok(Self { unstable: file.unstable, steps: steps.collect() })
    }
}

/// Seconds of a scenario file as a time span; nonsense reads as none.
pub fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

pub(super) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

pub(crate) fn read_yaml<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_yaml::from_str(&read(path)?).with_context(|| format!("{}: not as expected", path.display()))
}
