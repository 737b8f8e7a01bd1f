//! `kubectl olm catalog build`: an image from the directory of a catalog.
//!
//! *Guarantee.* The digest depends on the files of the catalog and the options only, as for bundles.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use olm_core::finding::Severity;

use super::source::all_refused;
use crate::cli::{CliError, Outcome, Printer};
pub use crate::delivery::Destination;
use crate::delivery::deliver;
use crate::image::{CATALOG_LABEL, Recipe, build};
pub use crate::image::{MediaTypes, Platform};
use crate::registry::dir;
use crate::registry::read::Item;

/// The directory of the catalog in the image, where opm expects it.
const DIRECTORY: &str = "configs";
/// Maximum size of all files, in bytes. The largest public catalog has 120 million bytes.
const MOST_BYTES: u64 = 512 << 20;

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the catalog.
    pub directory: PathBuf,
    /// The reference of the image.
    pub tag: Option<String>,
    /// Where the image goes.
    pub destination: Destination,
    /// The platform in its configuration.
    pub platform: Platform,
    /// Its media types.
    pub media_types: MediaTypes,
}

/// Checks the catalog, builds the image, writes it, and prints its digest.
///
/// # Errors
/// The catalog is invalid or cannot be read, or the image cannot be written.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let progress = printer.progress("reading the catalog");
    let files = files(&options.directory)?;
    let loaded = dir::load(&options.directory)?;
    drop(progress);
    if let Some(error) = all_refused(&loaded.findings) {
        return Err(error);
    }
    loaded.findings.iter().filter(|finding| finding.severity != Severity::Error).for_each(|f| printer.warn(f));
    if loaded.snapshot.packages().is_empty() {
        let error = CliError::input("the catalog has no packages").at(options.directory.display());
        return Err(error.hint("kubectl olm catalog add adds bundles to it"));
    }
    let recipe = Recipe {
        files,
        labels: BTreeMap::from([(CATALOG_LABEL.to_owned(), format!("/{DIRECTORY}"))]),
        platform: options.platform.clone(),
        media_types: options.media_types,
        created_by: Some("kubectl olm catalog build"),
        ..Recipe::default()
    };
    deliver(build(&recipe)?, options.tag.as_deref(), &options.destination, None, printer)
}

/// Returns the files of the catalog, without those that `.indexignore` excludes, by their paths in the image.
fn files(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
    let mut files = BTreeMap::new();
    let mut left = MOST_BYTES;
    for item in dir::items(directory)? {
        match item {
            Item::File(shown, path) => {
                let at = |e: std::io::Error| CliError::from(e).at(&shown);
                let mut bytes = Vec::new();
                fs::File::open(&path).and_then(|f| f.take(left + 1).read_to_end(&mut bytes)).map_err(at)?;
                left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
                    let message = format!("the catalog is larger than {} MiB", MOST_BYTES >> 20);
                    CliError::input(message).at(directory.display())
                })?;
                let within = Path::new(&shown).strip_prefix(directory).unwrap_or_else(|_| Path::new(&shown));
                let parts: Vec<_> = within.components().map(|part| part.as_os_str().to_string_lossy()).collect();
                files.insert(format!("{DIRECTORY}/{}", parts.join("/")), bytes);
            }
            Item::Bundle(shown, _) => {
                let error = CliError::input("this is the directory of a bundle, which catalog servers do not read");
                return Err(error.at(shown).hint(
                    "render the catalog to a file of another directory, and build that: kubectl olm catalog render DIR -o yaml",
                ));
            }
            // Loading the catalog reports what these state.
            Item::Stream(..) | Item::Parsed(_) => {}
        }
    }
    Ok(files)
}
