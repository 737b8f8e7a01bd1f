//! `bundle synthesize`: what was changed by hand in the directory of an earlier run stays, and a run that fails changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use olm_shell::bundle::synthesize::{Options, Target, run as synthesize};
use olm_shell::cli::flags::{ClusterFlags, CredentialFlags};
use olm_shell::image;

use super::parts::{below, folder, parts, write};
use super::shown::shown;

/// The directory with the state of earlier runs, which no user changes.
const STATE: &str = ".kubectl-olm";

/// Synthesizes a bundle of the parts `in/…` in every format into a directory with the parts `out/…`, writes the parts `edit/…` to it,
/// and repeats the command. An input without parts is a file of manifests.
///
/// # Panics
/// A run that fails changes a file, or one with the same input changes what was changed by hand.
pub(super) fn run(bytes: &[u8]) {
    let (head, parts) = parts(bytes);
    for target in [Target::RegistryV1, Target::PlainV1, Target::PackageManifests] {
        let folder = folder();
        let (input, output) = (folder.path().join("in"), folder.path().join("out"));
        if fs::create_dir_all(&input).and_then(|()| fs::create_dir_all(&output)).is_err() {
            return;
        }
        if !head.is_empty() {
            write(&input, "manifests.yaml", head);
        }
        for part in parts.iter().filter(|part| part.name.starts_with("in/") || part.name.starts_with("out/")) {
            write(folder.path(), part.name, part.bytes);
        }
        let options = options(&input, &output, target);
        attempt(&options, &output);
        for part in &parts {
            if let Some(name) = part.name.strip_prefix("edit/").filter(|name| !name.starts_with(STATE)) {
                write(&output, name, part.bytes);
            }
        }
        let edited = content(&output);
        attempt(&options, &output);
        for (path, text) in content(&output) {
            let is_generated = path.starts_with(STATE) || path.to_string_lossy().ends_with(".package.yaml");
            if let Some(known) = edited.get(&path).filter(|_| !is_generated) {
                assert_eq!(&text, known, "{} was changed by hand", path.display());
            }
        }
    }
}

/// Runs the command. An error, or a negative outcome, changes no file.
fn attempt(options: &Options, output: &Path) {
    let before = content(output);
    let (outcome, _) = shown(|printer| synthesize(options, printer));
    if !outcome.is_ok_and(|outcome| outcome == olm_shell::cli::Outcome::Done) {
        assert_eq!(content(output), before, "a failed run changed files");
    }
}

/// Returns the regular files below a directory, by their path in it.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = below(directory).into_iter().filter(|(_, is_file)| *is_file);
    let relative = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap_or_default();
        (path.strip_prefix(directory).map(Path::to_owned).unwrap_or(path), bytes)
    };
    files.map(|(path, _)| relative(path)).collect()
}

fn options(input: &Path, output: &Path, target: Target) -> Options {
    Options {
        paths: vec![input.to_owned()],
        metadata: None,
        package: Some("rose".to_owned()),
        version: Some("1.0.0".to_owned()),
        replaces: None,
        skips: Vec::new(),
        channels: vec!["stable".to_owned()],
        default_channel: None,
        target,
        output_dir: Some(output.to_owned()),
        dry_run: false,
        account: false,
        cluster: ClusterFlags::default(),
        catalogs: Vec::new(),
        images: image::Options::default(),
        credentials: CredentialFlags::default(),
        format: None,
    }
}
