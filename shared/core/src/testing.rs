//! Test support: Worlds, and recorded output of the real tools from the data folder, if that folder exists.

#[expect(unreachable_pub, reason = "olm-tests includes the file, too, and publishes these items")]
#[path = "testing/data.rs"]
mod folder;
mod objects;

use std::path::PathBuf;

use serde_json::Value;

pub(crate) use self::objects::{
    ALL_MODES, catalog_source, csv, install_modes, install_plan, labelled_namespace, namespace, operator_group,
    owned_crd, subscription, with_metadata, with_status,
};
use crate::bundle::File;
use crate::world::World;

/// Returns a World of these objects.
pub(crate) fn world(objects: &[Value]) -> World {
    let mut world = World::new();
    for object in objects {
        world.apply(object.clone());
    }
    world
}

/// Returns the data folder. Reports the test as skipped and returns `None` if it does not exist.
pub(crate) fn data() -> Option<PathBuf> {
    let found = folder::data();
    if found.is_none() {
        folder::report_skipped(folder::NO_DATA);
    }
    found
}

/// Returns a file or folder of the data folder. Reports the test as skipped and returns `None` if it does not exist.
pub(crate) fn existing(path: &str) -> Option<PathBuf> {
    let found = data()?.join(path);
    if found.exists() {
        return Some(found);
    }
    folder::report_skipped(&format!("{} does not exist", found.display()));
    None
}

/// Reads a JSON file of the data folder's `recorded/`.
pub(crate) fn recorded(path: &str) -> Option<Value> {
    let text = std::fs::read(existing(&format!("recorded/{path}"))?).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

/// Reads the lines of a file of the data folder's `recorded/`, each a JSON document.
pub(crate) fn recorded_lines<T: serde::de::DeserializeOwned>(path: &str) -> Option<impl Iterator<Item = T> + use<T>> {
    use std::io::BufRead;
    let file = std::fs::File::open(existing(&format!("recorded/{path}"))?).unwrap();
    Some(std::io::BufReader::new(file).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()))
}

/// Lists the entries of a folder of the data folder, sorted by name.
pub(crate) fn entries(path: &str) -> Option<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(existing(path)?).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    Some(entries)
}

/// Returns all files below a folder of the data folder, with paths relative to the data folder.
pub(crate) fn files(data: &std::path::Path, folder: &str) -> Vec<File> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(data.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                files.push(File::new(path, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Counts the checked cases of a recording and collects those that differ.
#[derive(Default)]
pub(crate) struct Checked {
    cases: usize,
    faults: Vec<String>,
}

impl Checked {
    /// Adds a case, and its fault if it has one.
    pub(crate) fn add(&mut self, case: impl std::fmt::Display, fault: Option<String>) {
        self.cases += 1;
        self.faults.extend(fault.map(|fault| format!("{case}: {fault}")));
    }

    /// Adds a case and compares its result with the expected one.
    pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        case: impl std::fmt::Display,
        ours: &T,
        recorded: &T,
    ) {
        self.add(case, (ours != recorded).then(|| format!("{ours:?} instead of {recorded:?}")));
    }

    /// Fails with all cases that differ, or if there were no cases.
    pub(crate) fn end(self) {
        let Self { cases, faults } = self;
        assert!(cases > 0, "the recording is empty");
        assert!(faults.is_empty(), "{} of {cases} cases differ:\n{}", faults.len(), faults.join("\n"));
    }
}
