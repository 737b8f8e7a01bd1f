//! The input of `synthesize`: manifest files, and the file with what manifests do not state.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use olm_core::budget;
use olm_core::bundle::File;
use olm_core::bundle::synthesis::OLM_YAML;

use super::carried::Carried;
use crate::cli::CliError;
use crate::observe::files::files_in;

/// The name of standard input.
pub(super) const STDIN: &str = "-";

/// The files of an operator.
pub(super) struct Input {
    /// olm.yaml.
    pub(super) metadata: Option<File>,
    /// What a bundle's directory `metadata` states.
    pub(super) carried: Carried,
    /// The others.
    pub(super) manifests: Vec<File>,
}

impl Input {
    /// Reads the files that are named, and those with an extension of manifests in directories. Files in a directory `metadata`
    /// are not manifests; one of them may be olm.yaml, unless `metadata` names another file.
    pub(super) fn read(paths: &[PathBuf], metadata: Option<&Path>) -> Result<Self, CliError> {
        let mut reader = Reader { files: Vec::new(), left: budget::BUNDLE_BYTES };
        for path in paths {
            if path == Path::new(STDIN) {
                reader.add(STDIN.to_owned(), io::stdin().lock())?;
            } else if path.is_dir() {
                let root = path.canonicalize().map_err(|e| CliError::from(e).at(path.display()))?;
                for file in files_in(path, "")? {
                    // The directory can be that of another author, and manifests become public.
                    if file.canonicalize().is_ok_and(|target| !target.starts_with(&root)) {
                        let message = format!("a symbolic link leads out of {} to this file", path.display());
                        let hint =
                            "name the directory or file that it leads to as another PATH, or replace the link by it";
                        return Err(CliError::input(message).at(file.display()).hint(hint));
                    }
                    reader.add_file(&file)?;
                }
            } else {
                reader.add_file(path)?;
            }
        }
        let found = reader.files.iter().find(|file| Path::new(&file.path).ends_with(OLM_YAML)).cloned();
        let manifests = std::mem::take(&mut reader.files);
        let metadata = match metadata {
            Some(path) => {
                reader.add_file(path)?;
                reader.files.pop()
            }
            None => found.clone(),
        };
        let is_metadata = |file: &File| {
            let is_in_metadata = Path::new(&file.path).parent().is_some_and(|parent| parent.ends_with("metadata"));
            let is_named = paths.iter().any(|path| path == Path::new(&file.path));
            is_in_metadata && !is_named || metadata.as_ref().is_some_and(|metadata| metadata.path == file.path)
        };
        let (beside, manifests): (Vec<File>, Vec<File>) = manifests.into_iter().partition(is_metadata);
        // Of several bundles, the one whose olm.yaml is found.
        let folder = |file: &File| Path::new(&file.path).parent().map(Path::to_owned);
        let own = found.as_ref().or_else(|| beside.first()).and_then(folder);
        let is_carried = |file: &&File| folder(file) == own && !Path::new(&file.path).ends_with(OLM_YAML);
        let beside: Vec<File> = beside.iter().filter(is_carried).cloned().collect();
        Ok(Self { metadata, carried: Carried::read(&beside)?, manifests })
    }
}

struct Reader {
    files: Vec<File>,
    /// How many bytes may still be read.
    left: u64,
}

impl Reader {
    fn add_file(&mut self, path: &Path) -> Result<(), CliError> {
        let at = |e: io::Error| CliError::from(e).at(path.display());
        // Opening a pipe would wait for its writer.
        if !path.metadata().map_err(at)?.is_file() {
            return Err(CliError::input("not a regular file").at(path.display()));
        }
        let file = fs::File::open(path).map_err(at)?;
        self.add(path.display().to_string(), file)
    }

    fn add(&mut self, path: String, from: impl io::Read) -> Result<(), CliError> {
        let mut bytes = Vec::new();
        from.take(self.left + 1).read_to_end(&mut bytes).map_err(|e| CliError::from(e).at(&path))?;
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            let limit = budget::BUNDLE_BYTES >> 20;
            CliError::input(format!("the manifests are larger than {limit} MiB, the limit of a bundle")).at(&path)
        })?;
        self.files.push(File::new(path, bytes));
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_of_a_directory_are_read_once_and_do_not_lead_out_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("deploy");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/rose.yaml"), "a: 1\n").unwrap();
        for link in ["a/again", "a/and-again", "loop"] {
            symlink(&root, root.join(link)).unwrap();
        }
        let read = || Input::read(std::slice::from_ref(&root), None);
        let paths: Vec<_> = read().unwrap().manifests.into_iter().map(|file| file.path).collect();
        assert_eq!(paths, [root.join("a/rose.yaml").display().to_string()]);
        fs::write(folder.path().join("private.yaml"), "a: 1\n").unwrap();
        symlink("../private.yaml", root.join("rose.yaml")).unwrap();
        let refused = read().map(|_| ()).unwrap_err();
        assert!(refused.message.contains("leads out of"), "{refused}");
    }
}
