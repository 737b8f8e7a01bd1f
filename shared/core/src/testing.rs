//! Test support: Worlds, and the recorded answers of the real tools, where the data folder is there.

use std::path::PathBuf;

use serde_json::Value;

use crate::bundle::File;
use crate::world::World;

/// A World of these objects.
pub(crate) fn world(objects: &[Value]) -> World {
    let mut world = World::new();
    for object in objects {
        world.apply(object.clone());
    }
    world
}

/// The data folder that `OLM_TEST_DATA` names, default `../shared/data` beside the repository; says so when it is not there.
pub(crate) fn data() -> Option<PathBuf> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let folder = std::env::var_os("OLM_TEST_DATA").map_or_else(default, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no test data at {}", folder.display());
    None
}

/// A JSON file of the data folder's `recorded/`.
pub(crate) fn recorded(path: &str) -> Option<Value> {
    let text = std::fs::read(data()?.join("recorded").join(path)).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

/// All files below a folder of the data folder, with paths relative to the data folder.
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
