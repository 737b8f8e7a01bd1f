//! `kubectl olm catalog add`: adds bundles to a catalog directory.
//!
//! *Guarantee.* The resulting catalog is loaded before it is written, as by [`super::validate`], and the packages that
//! bundles were added to are valid in it.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use olm_core::catalog::{Addition, Request};
pub use olm_core::catalog::{MigrationLevel, Mode};
use olm_core::finding::{Finding, Severity};
use serde_json::{Value, json};

use super::source::{Ref, Source, all_refused};
use crate::cli::output::{API_VERSION, Output};
use crate::cli::replace::{self, Replacement};
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::image;
use crate::registry::dir;
use crate::registry::read::{self, Item};

/// What to add, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The catalog.
    pub directory: PathBuf,
    /// The bundles.
    pub bundles: Vec<Ref>,
    /// The source of upgrade edges.
    pub mode: Mode,
    /// Channels to use instead of those that the bundles name.
    pub channels: Vec<String>,
    /// Default channel to use instead of the one that the bundles name.
    pub default_channel: Option<String>,
    /// Image that the only bundle is pushed to.
    pub image: Option<String>,
    /// How images of bundles are pulled.
    pub images: image::Options,
    /// The migrations to apply to the blobs of the bundles.
    pub level: MigrationLevel,
    /// Whether to print the changes without writing them.
    pub dry_run: bool,
    /// The output format.
    pub output: Output,
}

/// Adds the bundles. If this would break a channel or strand a version, the outcome is negative and nothing is written.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let directory = check(options)?;
    let progress = printer.progress("reading the catalog");
    let (items, paths) = items(directory)?;
    let catalog = read::index(items)?;
    whole(catalog.findings())?;
    let bundles = Source::read_whole(&options.bundles, &options.images.watched(progress.watch()))
        .map_err(|e| explained(e, &options.bundles))?;
    let request = Request {
        mode: options.mode,
        channels: options.channels.clone(),
        default_channel: options.default_channel.clone().unwrap_or_default(),
        image: options.image.clone().unwrap_or_default(),
        level: options.level,
        root: directory.display().to_string(),
    };
    let added = catalog.add(&bundles.catalog, &request);
    drop(progress);
    let addition = match added {
        Ok(addition) => addition,
        Err(reasons) => {
            for reason in &reasons {
                printer.error(&CliError::from(reason));
            }
            printer.talk("nothing was written");
            return Ok(Outcome::Negative);
        }
    };
    let files = files(directory, &addition, &paths)?;
    verify(directory, &addition, &files, printer)?;
    addition.notes.iter().for_each(|note| printer.warn(note));
    if !options.dry_run {
        let (shown, replacements): (Vec<String>, Vec<Replacement>) = files.into_iter().unzip();
        replace::replace(&replacements)?;
        for (shown, file) in shown.iter().zip(&replacements) {
            let what = if file.before.is_some() { "changed" } else { "new" };
            printer.talk(format_args!("{what}: {shown}"));
        }
        print(options, &addition, printer)?;
    } else if options.output == Output::Table {
        let paint = printer.paint();
        files.iter().try_for_each(|(shown, file)| printer.data(paint.diff(&file.diff(shown))))?;
    } else {
        print(options, &addition, printer)?;
    }
    Ok(Outcome::Done)
}

/// Checks the options, and returns the directory.
fn check(options: &Options) -> Result<&Path, CliError> {
    let directory = options.directory.as_path();
    let at = |error: CliError| error.at(directory.display());
    if !directory.is_dir() {
        let hint = format!("specify the directory of a catalog; to create one: mkdir -p {}", directory.display());
        return Err(at(CliError::usage("not a directory")).hint(hint));
    }
    if dir::is_bundle(directory) {
        let hint = "specify the catalog first, then the bundles";
        return Err(at(CliError::usage("this is the directory of a bundle, not of a catalog")).hint(hint));
    }
    if directory.join("oci-layout").is_file() {
        let hint = "render it to a file, and add the bundles to the directory of that file";
        return Err(at(CliError::usage("bundles cannot be added to an OCI layout")).hint(hint));
    }
    if options.image.is_some() && options.bundles.len() != 1 {
        let error = CliError::usage("--image is only valid with a single bundle");
        return Err(error.hint("add the bundles one at a time"));
    }
    Ok(directory)
}

/// Returns the error about bundles that cannot be read with what can be: manifests and archives of images are mistaken for catalogs.
fn explained(error: CliError, bundles: &[Ref]) -> CliError {
    let has_files = bundles.iter().any(|bundle| matches!(bundle, Ref::File(_)));
    if !has_files && !bundles.iter().any(|bundle| matches!(bundle, Ref::Directory(_))) {
        return error;
    }
    let error = error.hint(
        "name directories with manifests/ and metadata/, images, OCI layouts or catalogs; \
         kubectl olm bundle synthesize creates a bundle from manifests",
    );
    if has_files {
        error.hint("write an archive of an image to a directory with kubectl olm bundle unpack")
    } else {
        error
    }
}

/// Returns the items of the catalog, and the paths of the files that findings name.
fn items(directory: &Path) -> Result<(Vec<Item>, BTreeMap<String, PathBuf>), CliError> {
    let items = dir::items(directory)?;
    let files = items.iter().filter_map(|item| match item {
        Item::File(shown, path) => Some((shown.clone(), path.clone())),
        _ => None,
    });
    let files = files.collect();
    Ok((items, files))
}

/// Returns an error if anything could not be read, since it may belong to a package that changes.
fn whole(findings: &[Finding]) -> Result<(), CliError> {
    all_refused(findings).map_or(Ok(()), Err)
}

/// Returns the files that change, with their names for messages.
fn files(
    directory: &Path,
    addition: &Addition,
    paths: &BTreeMap<String, PathBuf>,
) -> Result<Vec<(String, Replacement)>, CliError> {
    let mut files = Vec::new();
    for change in &addition.files {
        let shown = &change.path;
        let cannot_read = |e: std::io::Error| CliError::from(e).at(shown);
        let path = match paths.get(shown) {
            // Write through links.
            Some(path) => path.canonicalize().map_err(cannot_read)?,
            None => PathBuf::from(shown),
        };
        let before = replace::read(&path).map_err(cannot_read)?;
        if !paths.contains_key(shown) && dir::is_ignored(directory, &path) {
            let error = CliError::input("the new file would be ignored").at(shown);
            return Err(error.hint("remove it from .indexignore"));
        }
        let text = before.as_deref().map(std::str::from_utf8).transpose();
        let text = text.map_err(|_| CliError::input("the file is not UTF-8").at(shown))?;
        let after = change.apply(text).map_err(|finding| CliError::from(&finding))?.into_bytes();
        files.push((shown.clone(), Replacement { path, before, after }));
    }
    Ok(files)
}

/// Loads the resulting catalog.
fn verify(
    directory: &Path,
    addition: &Addition,
    files: &[(String, Replacement)],
    printer: &mut Printer,
) -> Result<(), CliError> {
    let mut new: BTreeMap<&str, &Replacement> = files.iter().map(|(shown, file)| (shown.as_str(), file)).collect();
    let stream =
        |shown: &str, file: &Replacement| Item::Stream(shown.to_owned(), Box::new(Cursor::new(file.after.clone())));
    let (items, _) = items(directory)?;
    let mut items: Vec<Item> = items
        .into_iter()
        .map(|item| match item {
            Item::File(shown, path) => match new.remove(shown.as_str()) {
                Some(file) => stream(&shown, file),
                None => Item::File(shown, path),
            },
            other => other,
        })
        .collect();
    items.extend(new.into_iter().map(|(shown, file)| stream(shown, file)));
    let catalog = read::index(items)?;
    whole(catalog.findings())?;
    let load = catalog.load();
    let mut others: Vec<&str> = Vec::new();
    for package in &load.invalid_packages {
        if addition.packages.contains(package) {
            let named = format!("package {package:?}");
            let why = load.findings.iter().find(|f| f.severity == Severity::Error && f.subject.ends_with(&named));
            let why = why.map_or_else(String::new, ToString::to_string);
            return Err(CliError::new(ErrorKind::Internal, format!("{named} would become invalid: {why}")));
        }
        others.push(package);
    }
    if !others.is_empty() {
        printer.warn(format_args!(
            "these packages are invalid, as before: {}; for the reasons, run kubectl olm catalog validate",
            others.join(", ")
        ));
    }
    Ok(())
}

/// Prints what was added.
fn print(options: &Options, addition: &Addition, printer: &mut Printer) -> Result<(), CliError> {
    match &options.output {
        Output::Name => addition.added.iter().try_for_each(|b| printer.line(format_args!("bundle/{}", b.name))),
        Output::Table | Output::Wide => printer.data(table(addition, options.output.is_wide())),
        Output::Json | Output::Yaml | Output::JsonPath(_) | Output::CustomColumns(_) => {
            let files: Vec<&str> = addition.files.iter().map(|f| f.path.as_str()).collect();
            let document: Value = json!({
                "apiVersion": API_VERSION,
                "kind": "CatalogAddition",
                "dryRun": options.dry_run,
                "bundles": addition.added,
                "files": files,
            });
            options.output.object(printer, &document, || Table::new([]))
        }
    }
}

fn table(addition: &Addition, is_wide: bool) -> Table {
    let narrow = ["NAME", "PACKAGE", "CHANNEL", "HEAD", "REPLACES"];
    let mut table =
        Table::new(narrow.into_iter().chain(is_wide.then_some(["SKIPS", "SKIP RANGE", "FILE"]).into_iter().flatten()));
    for bundle in &addition.added {
        for to in &bundle.channels {
            let head = if to.head { "yes" } else { "no" };
            let mut row = vec![&bundle.name, &bundle.package, &to.name].into_iter().cloned().collect::<Vec<String>>();
            row.extend([head.to_owned(), to.replaces.clone()]);
            if is_wide {
                row.extend([to.skips.join(","), to.skip_range.clone(), bundle.file.clone()]);
            }
            table.row(row);
        }
    }
    table
}
