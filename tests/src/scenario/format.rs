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

/// A scenario: its script and its folder.
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
    /// A description in one sentence.
    pub about: String,
    /// The resync interval of OLM's controllers in the recording. The controllers of this repository have none.
    pub interval: Option<String>,
    /// Further flags of `kubectl olm run`, in scenarios of this repository.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Catalogs that are served before the first step.
    #[serde(default)]
    pub catalogs: Vec<CatalogSpec>,
    /// The steps, in order.
    pub steps: Vec<StepSpec>,
}

/// A catalog with a `CatalogSource`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogSpec {
    /// The `CatalogSource`'s name, also its display name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its initial content, relative to the scenario folder.
    pub directory: String,
    /// Its priority.
    pub priority: Option<i64>,
}

/// A step: first its actions, in the order of these fields, then its conditions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Its name.
    pub name: String,
    /// Files of `objects/` to apply.
    #[serde(default)]
    pub apply: Vec<String>,
    /// Errors that the API server returns for some requests of the controllers from now on.
    #[serde(default)]
    pub faults: Vec<FaultSpec>,
    /// Catalogs that serve another directory from now on.
    #[serde(default)]
    pub serve: Vec<ServeSpec>,
    /// Objects to patch.
    #[serde(default)]
    pub patch: Vec<PatchSpec>,
    /// Objects to delete: `Kind/namespace/name` or `Kind/name`; the name `@last` means the newest of the kind.
    #[serde(default)]
    pub delete: Vec<String>,
    /// Commands that a user runs, in order, in scenarios of this repository.
    #[serde(default)]
    pub run: Vec<CommandSpec>,
    /// Conditions that must all hold before the step may end.
    #[serde(default)]
    pub until: Vec<Condition>,
    /// Timeout of each condition, in seconds.
    #[serde(default = "timeout")]
    pub timeout: f64,
    /// How long nothing may change afterwards, in seconds.
    #[serde(default = "settle")]
    pub settle: f64,
    /// Maximum time to wait for that quiet, in seconds.
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

/// An error of the API server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// `create`, `update` or `patch`.
    pub verb: String,
    /// The kind of the request's object.
    pub kind: String,
    /// The object's name.
    pub name: String,
    /// HTTP status code, 0 for no response.
    pub code: u16,
    /// Kubernetes' reason.
    pub reason: String,
    /// The message.
    pub message: String,
    /// How many times; always if absent.
    pub times: Option<u32>,
}

impl FaultSpec {
    /// Returns the fault of a call if the error applies to it and was not returned often enough.
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

/// A command with its expected result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSpec {
    /// The arguments of `kubectl olm`, separated by spaces; file names refer to `objects/`.
    pub command: String,
    /// Its exit code.
    #[serde(default)]
    pub exit: i32,
    /// Texts that it must print on stdout or stderr, verbatim.
    pub says: Vec<String>,
}

/// New content of a catalog.
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
    /// Its API version, if no object of that kind is known yet.
    pub api_version: Option<String>,
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
    /// Its name; if absent, the newest object of that kind and namespace.
    pub name: Option<String>,
    /// The type of the patch.
    #[serde(rename = "type", default)]
    pub patch_type: PatchType,
    /// The subresource to patch, for example `status`.
    pub subresource: Option<String>,
    /// The patch.
    pub patch: Value,
}

/// The patch types of an API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchType {
    /// RFC 7386.
    #[default]
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes' strategic merge patch.
    Strategic,
}

impl Scenario {
    /// Reads the scenario of a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, folder: folder.to_owned(), script: read_yaml(&folder.join("scenario.yaml"))? })
    }

    /// Reads the objects of a file that a step applies.
    pub fn objects(&self, file: &str) -> Result<Vec<Value>> {
        let path = if file.contains('/') { self.folder.join(file) } else { self.folder.join("objects").join(file) };
        Ok(documents(&path)?.into_iter().filter(|document| !document.is_null()).collect())
    }

    /// Returns whether a catalog names bundles of the data folder.
    pub fn needs_data(&self) -> bool {
        let named = self.script.steps.iter().flat_map(|step| step.serve.iter().map(|s| &s.directory));
        let mut directories = self.script.catalogs.iter().map(|c| &c.directory).chain(named);
        directories.any(|directory| self.folder.join(directory).join("bundles.txt").exists())
    }

    /// Returns whether the API server returns injected errors.
    pub fn has_faults(&self) -> bool {
        self.script.steps.iter().any(|step| !step.faults.is_empty())
    }

    /// Returns whether the recording contains pods of catalogs, or Jobs that unpack bundles, which this implementation creates
    /// only on request.
    pub fn has_catalog_pods(&self) -> Result<bool> {
        let golden = self.golden()?;
        Ok(golden
            .steps
            .iter()
            .any(|step| step.objects.keys().any(|id| id.starts_with("Pod/") || id.starts_with("Job/"))))
    }

    /// Reads the recording of the real OLM.
    pub fn golden(&self) -> Result<Recording> {
        Recording::read(&self.folder.join("golden.yaml"), &self.folder.join("transitions.yaml"))
    }
}

/// The normalised state of the cluster after each step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// In a golden, the differences between recordings.
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
    /// The new events.
    pub events: Vec<Value>,
    /// Whether the objects were still changing.
    pub unsettled: bool,
    /// The states of CSVs, `InstallPlans` and Subscriptions that a watch reported, in order.
    pub saw: BTreeMap<String, Vec<Value>>,
    /// Failures of the step itself: conditions that were not reached in time, controllers with work left. A golden has none.
    pub faults: Vec<String>,
}

impl Recording {
    /// Reads a golden or recording, in which every step lists only changes.
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
            bail!("{} and {} have different steps", objects.display(), transitions.display());
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

/// Converts the seconds of a scenario file to a duration, an invalid number to zero.
pub fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

pub(super) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

pub(crate) fn read_yaml<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_yaml::from_str(&read(path)?).with_context(|| format!("{}: not as expected", path.display()))
}
