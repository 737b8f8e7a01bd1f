//! Images: pulled from a real registry, read from OCI layouts, and refused if they are invalid.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

mod bundles;
mod faulty;
mod hostile;
mod layouts;
mod lending;
mod push;
mod registry;
mod uploads;
mod validate;

use std::collections::BTreeMap;
use std::path::Path;

use olm_shell::cli::CliError;
use olm_shell::image::{Content, Limits, Location, Options, Requested};

/// Returns the files of a folder with their contents, by path.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            assert!(!entry.file_type().unwrap().is_symlink(), "{}", entry.path().display());
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned());
            }
        }
    }
    found
}

fn expected(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Returns limits that a test can reach.
fn small() -> Limits {
    Limits { document: 64 << 10, layers: 8, unpacked: 4 << 20, kept: 1 << 20, entries: 100, ..Limits::default() }
}

async fn pull(location: &str, options: &Options) -> Result<Content, CliError> {
    let location: Location = location.parse()?;
    Ok(olm_shell::image::pull(&location, Requested::Any, options).await?)
}

#[track_caller]
fn refused(result: Result<Content, impl Into<CliError>>, words: &[&str]) -> CliError {
    match result.map_err(Into::into) {
        Ok(content) => panic!("the image was accepted: {:?}", files(&content.root)),
        Err(error) => {
            let told = error.render();
            for word in words {
                assert!(told.contains(word), "no {word:?} in: {told}");
            }
            error
        }
    }
}
