//! Reads the operator to install: a bundle, or a package of a catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use olm_core::api::object;
use olm_core::bundle::{BundleContent, Unpacked};
use olm_core::catalog::{Entry, Snapshot};
use olm_core::explain::{Subject, best};
use serde_json::Value;

use crate::cli::source::read_catalogs;
use crate::cli::{CliError, ErrorKind, Printer, errors};
use crate::image::{self, Location};
use crate::installplan::explain;
use crate::observe::{ClusterState, ReadFailure};
use crate::registry;

/// Selects an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// A bundle: a directory, an image, an OCI layout.
    Bundle(String),
    /// A package of a catalog: `PACKAGE` or `PACKAGE@RANGE`.
    Package(String),
}

/// An operator that was read.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Its package.
    pub(super) package: String,
    /// Its ClusterServiceVersion.
    pub(super) csv: Value,
    /// The objects of the bundle.
    pub(super) objects: Vec<Value>,
    /// The operator as a subject for the explainer.
    pub(super) subject: Subject,
}

impl Operator {
    /// Returns whether a catalog is needed to read it.
    pub(super) fn is_package(&self) -> bool {
        matches!(self, Self::Package(_))
    }

    /// Reads the operator for a namespace, from the catalogs of the state.
    pub(super) async fn read(
        &self,
        state: &mut ClusterState,
        namespace: &str,
        images: &image::Options,
        printer: &Printer,
    ) -> Result<Known, CliError> {
        let namespace = namespace.to_owned();
        match self {
            Self::Bundle(reference) => {
                let bundle = explain::bundle(reference, images).await?;
                let (csv, objects) = (bundle.csv.clone(), bundle.objects.clone());
                let rendered = bundle.render().map_err(|finding| CliError::input(finding.to_string()).at(reference))?;
                let package = rendered.package.clone();
                let subject = Subject::Bundle { namespace, bundle: Box::new(rendered) };
                Ok(Known { package, csv, objects, subject })
            }
            Self::Package(wanted) => {
                let (package, range) = explain::package(wanted)?;
                read_catalogs(state, &namespace, images, printer).await;
                let catalogs = explain::catalogs(state, &namespace);
                let found = offers(&catalogs, &namespace)
                    .find_map(|catalog| Some((catalog, best(catalog.package(&package)?, range.as_ref())?)));
                let Some((catalog, entry)) = found else {
                    return Err(not_offered(wanted, &namespace, &catalogs, state));
                };
                let content = content(catalog, entry, images).await?;
                let read = |json: &str| {
                    serde_json::from_str::<Value>(json)
                        .map_err(|e| CliError::input(format!("{} in the catalog: {e}", entry.name)))
                };
                let objects = content.objects.iter().map(|json| read(json)).collect::<Result<_, _>>()?;
                let csv = read(&content.csv_json)?;
                let subject = Subject::Package { namespace, package: package.clone(), range };
                Ok(Known { package, csv, objects, subject })
            }
        }
    }
}

/// Returns the catalogs in order of preference for a new Subscription.
fn offers<'c>(
    catalogs: &'c BTreeMap<(String, String), Arc<Snapshot>>,
    namespace: &str,
) -> impl Iterator<Item = &'c Arc<Snapshot>> {
    let (own, others): (Vec<_>, Vec<_>) = catalogs.iter().partition(|((place, _), _)| place == namespace);
    own.into_iter().chain(others).map(|(_, catalog)| catalog)
}

/// Returns the content of an entry: inline, or from the image that the catalog names.
pub(crate) async fn content(
    catalog: &Snapshot,
    entry: &Entry,
    images: &image::Options,
) -> Result<BundleContent, CliError> {
    let inline = catalog.read_bundle(&entry.package, &entry.channel, &entry.name).map_err(CliError::input)?;
    if let Some(content) = inline {
        return Ok(content);
    }
    let location: Location = entry.bundle_path.parse()?;
    match errors::unpacked(registry::image::unpack(&location, &images.for_others()).await) {
        Unpacked::Content(content) => Ok(content),
        Unpacked::Refused(why) | Unpacked::Later(why) | Unpacked::NotGiven(why) => {
            Err(CliError::new(ErrorKind::Unreachable, format!("bundle {}: {why}", entry.name)).at(&entry.bundle_path))
        }
    }
}

fn not_offered(
    wanted: &str,
    namespace: &str,
    catalogs: &BTreeMap<(String, String), Arc<Snapshot>>,
    state: &ClusterState,
) -> CliError {
    let of_catalogs = |failure: &&ReadFailure| failure.is_of_catalogs() && failure.covers(namespace);
    // Without any catalog the package is unknown, not missing.
    if let Some(failure) = state.read_failures.iter().find(of_catalogs)
        && catalogs.is_empty()
    {
        return failure.into();
    }
    let names: Vec<String> = catalogs.keys().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
    let known = match &names[..] {
        [] => "there are no catalogs".to_owned(),
        names => format!("catalogs searched: {}", names.join(", ")),
    };
    let error = CliError::input(format!("{wanted} not found; {known}"));
    match state.read_failures.first() {
        Some(failure) => error.hint(failure.to_string()),
        None => error.hint("specify a catalog with --catalog NAME=DIR; kubectl olm catalog list prints its packages"),
    }
}

impl Known {
    /// Returns the ClusterServiceVersion with a namespace.
    pub(super) fn csv_in(&self, namespace: &str) -> Value {
        let mut csv = self.csv.clone();
        object::map_mut(&mut csv, &["metadata"]).insert("namespace".to_owned(), namespace.into());
        csv
    }
}
