//! `--simulate`: the controllers on a cluster in memory, reported as a timeline.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use olm_core::api::{crd, object};
use olm_core::bundle::Unpacked;
use olm_core::sim::{ApiServer, Simulation, Strict};
use serde_json::json;

use super::change_log::ChangeLog;
use super::report::Report;
use super::script::Script;
use super::{BundleImage, CatalogImage, Options, final_states, report};
use crate::cli::{CliError, Outcome, Printer, errors};
use crate::image::{self, Location};
use crate::observe::{files, strict};
use crate::registry;
use crate::registry::local::first_findings;

/// The limit of virtual time, which is longer than every timeout of the controllers.
const LIMIT: SignedDuration = SignedDuration::from_mins(30);
/// The start of virtual time, fixed for reproducible output.
const BEGINNING: &str = "2026-01-01T00:00:00Z";
/// The seed of uids and generated names; an arbitrary number.
const SEED: u64 = 1;

/// Runs the controllers until nothing changes, and adds events to the change log as they happen: storing every version of
/// every object would need too much memory.
fn settle(simulation: &mut Simulation, change_log: &mut ChangeLog) -> bool {
    simulation.settle_while(LIMIT, |simulation| change_log.record(simulation.take_happenings()))
}

/// Simulates the controllers on the objects in these files and folders.
pub(super) fn run(options: &Options, paths: &[PathBuf], printer: &mut Printer) -> Result<Outcome, CliError> {
    let (scripts, others) = split(paths)?;
    let given = files::read(&others)?;
    if given.is_empty() && scripts.is_empty() {
        return Err(CliError::input("no objects to simulate")
            .hint("specify files or folders with Subscriptions, OperatorGroups and other objects"));
    }
    let began: Timestamp = BEGINNING.parse().unwrap_or_default();
    let settings = options.settings();
    let api = ApiServer::with_stock_objects(SEED, began).with_node("node", began);
    let mut simulation = Simulation::new(api, settings, began);
    prepare(&mut simulation, options)?;
    add_catalogs(&mut simulation, options, paths, printer)?;
    simulation.take_happenings();
    let mut change_log = ChangeLog::from(began);
    apply(&mut simulation, given, options, printer)?;
    let mut settled = settle(&mut simulation, &mut change_log);
    for script in &scripts {
        for step in &script.steps {
            change_log.step(simulation.now(), &step.name);
            apply(&mut simulation, script.objects(step)?, options, printer)?;
            script.perform(step, &mut simulation)?;
            settled = settle(&mut simulation, &mut change_log);
        }
    }
    let reasons = simulation.planner().reasons().map(|(key, reasons)| (key.clone(), reasons.to_vec()));
    let report = Report::from_reasons(&reasons.collect::<Vec<_>>());
    match options.output {
        Some(format) => {
            // All objects except Events.
            let objects = simulation.api().iter().filter(|object| object::text(object, &["kind"]) != "Event");
            format.list(printer, objects)?;
        }
        None => {
            printer.data(&change_log)?;
            let states = final_states::table(simulation.planner().world(), usize::MAX, &BTreeSet::new());
            if !states.is_empty() {
                printer.line("")?;
                printer.data(states)?;
            }
        }
    }
    if !settled {
        printer
            .warn(format_args!("the controllers are still working after {} minutes of virtual time", LIMIT.as_mins()));
    }
    report::lines(&report.notes).for_each(|line| printer.talk(line));
    if report.open.is_empty() {
        return Ok(Outcome::Done);
    }
    // At the end of virtual time, whatever still waits counts as blocked.
    report::lines(&report.open).for_each(|line| printer.reason(line));
    Ok(Outcome::Negative)
}

/// Separates folders with a script from other files and folders.
fn split(paths: &[PathBuf]) -> Result<(Vec<Script>, Vec<PathBuf>), CliError> {
    let (mut scripts, mut others) = (Vec::new(), Vec::new());
    for path in paths {
        match Script::from_folder(path)? {
            Some(script) => scripts.push(script),
            None => others.push(path.clone()),
        }
    }
    Ok((scripts, others))
}

/// Creates the basic objects of a cluster with OLM: the CRDs, and the namespace of global catalogs.
fn prepare(simulation: &mut Simulation, options: &Options) -> Result<(), CliError> {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": options.namespace } });
    for object in crd::all().into_iter().chain([namespace]) {
        let what = object::ObjectRef::from_object(&object);
        simulation.apply(object).map_err(|r| CliError::input(format!("cannot prepare {what}: {r}")))?;
    }
    // Establish the CRDs before other objects are applied.
    simulation.settle(SignedDuration::from_secs(1));
    Ok(())
}

fn add_catalogs(
    simulation: &mut Simulation,
    options: &Options,
    paths: &[PathBuf],
    printer: &mut Printer,
) -> Result<(), CliError> {
    let mut catalogs = Vec::new();
    for catalog in &options.catalogs {
        let namespace = catalog.namespace.clone().unwrap_or_else(|| options.namespace.clone());
        let loaded = registry::dir::load(&catalog.directory)?;
        catalogs.push((namespace, catalog.name.clone(), catalog.directory.clone(), loaded));
    }
    for folder in paths.iter().filter(|p| p.is_dir()) {
        for (name, directory) in files::catalogs_in(folder)? {
            let loaded = registry::dir::load_content(&directory)?;
            catalogs.push((options.namespace.clone(), name, directory, loaded));
        }
    }
    for (namespace, name, directory, loaded) in catalogs {
        first_findings(&directory, &loaded.findings).for_each(|line| printer.warn(line));
        simulation.add_local_catalog(&namespace, &name, Arc::new(loaded.snapshot));
    }
    for CatalogImage { reference, directory } in &options.catalog_images {
        let loaded = registry::dir::load(directory)?;
        first_findings(directory, &loaded.findings).for_each(|line| printer.warn(line));
        simulation.give_image(reference, Arc::new(loaded.snapshot));
    }
    for BundleImage { reference, path } in &options.bundle_images {
        simulation.give_bundle(reference, bundle_at(path)?);
    }
    Ok(())
}

/// Returns the content of a bundle directory or an OCI layout. An invalid image fails as it would in a registry.
fn bundle_at(path: &str) -> Result<Unpacked, CliError> {
    let folder = Path::new(path);
    if folder.join("manifests").is_dir() {
        let files = registry::image::files(folder).map_err(|e| CliError::from(e).at(path))?;
        return Ok(Unpacked::of_files(&files));
    }
    let location: Location = format!("oci:{path}").parse()?;
    if let Location::Layout { path, .. } = &location {
        std::fs::metadata(path).map_err(|e| CliError::from(e).at(path.display()))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let unpacked = runtime.block_on(registry::image::unpack(&location, &image::Options::default()));
    Ok(match errors::unpacked(unpacked) {
        // Retrying does not change a file.
        Unpacked::Later(message) => Unpacked::Refused(message),
        unpacked => unpacked,
    })
}

/// Applies objects as kubectl does: with strict field validation, and the default namespace of the options. Reports all refusals.
fn apply(
    simulation: &mut Simulation,
    given: Vec<files::InputObject>,
    options: &Options,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let mut kinds = Strict::new(simulation.api());
    strict::check(&given, &mut kinds, &mut |words| printer.warn(words))?;
    let mut namespaces: BTreeSet<String> =
        simulation.api().list("", "Namespace", None).map(|n| object::name(n).to_owned()).collect();
    let mut refusals = Vec::new();
    for files::InputObject { mut object, place, .. } in given {
        let gvk = object::gvk(&object);
        if object::namespace(&object).is_empty() && kinds.is_namespaced(&gvk) == Some(true) {
            let namespace = options.objects_namespace.clone();
            object::map_mut(&mut object, &["metadata"]).insert("namespace".to_owned(), namespace.into());
        }
        if gvk.kind == "Namespace" {
            namespaces.insert(object::name(&object).to_owned());
        }
        let namespace = object::namespace(&object).to_owned();
        if !namespace.is_empty() && namespaces.insert(namespace.clone()) {
            printer.talk(format_args!("note: namespace {namespace} is not among the objects and is created"));
            let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            if let Err(refusal) = simulation.apply(made) {
                refusals.push(CliError::input(refusal.message).at(&place));
                continue;
            }
        }
        let what = object::ObjectRef::from_object(&object);
        if let Err(refusal) = simulation.restore(object) {
            let hint = match kinds.similar_kind(&gvk) {
                Some(other) => format!("did you mean {other}?"),
                None => "kubectl apply --dry-run=server reports the same on a real cluster".to_owned(),
            };
            let message = format!("the API server refuses {what}: {refusal}");
            refusals.push(CliError::input(message).at(&place).hint(hint));
        } else if gvk.kind == "CustomResourceDefinition" {
            simulation.establish();
        }
    }
    CliError::all(refusals).map_or(Ok(()), Err)
}
