//! What is looked at, and what may be concluded from it.

use std::collections::BTreeSet;

use olm_core::api::object;
use olm_core::lint::matrix::{Matrix, matrix};
use olm_core::lint::{Known, Linted};
use olm_core::world::{CatalogFact, GroupKind, Reader, kind};

use super::Options;
use crate::cli::{CliError, ErrorKind, Printer};
use crate::observe::{self, Gap, KINDS, Need, Seen};

/// What only matters where a group names a ServiceAccount: what is to be installed with its rights.
const OF_ACCOUNTS: [GroupKind; 2] = [kind::INSTALL_PLAN, kind::DEPLOYMENT];

/// Looks at everything that rules go by.
pub(super) async fn look(options: &Options, printer: &mut Printer) -> Result<Seen, CliError> {
    let Options { source, namespaces, on_top, .. } = options;
    let mut seen = observe::look(source, namespaces, on_top, Need::Tenancy, printer).await?;
    let with_account: BTreeSet<String> = {
        let world = Reader::new(&seen.world);
        let groups = world.all(&kind::OPERATOR_GROUP).map(|o| o.json());
        let named = groups.filter(|group| !object::text(group, &["spec", "serviceAccountName"]).is_empty());
        named.map(|group| object::namespace(group).to_owned()).collect()
    };
    for gk in OF_ACCOUNTS {
        for namespace in &with_account {
            seen.list(&gk, namespace).await;
        }
    }
    if !with_account.is_empty() {
        seen.list(&kind::CUSTOM_RESOURCE_DEFINITION, "").await;
    }
    if options.package.is_some() {
        seen.list(&kind::CATALOG_SOURCE, "").await;
    }
    Ok(seen)
}

/// What may be concluded from what is not there.
pub(super) fn known(seen: &Seen, options: &Options) -> Known {
    if seen.api().is_none() {
        return if options.complete { Known::everything() } else { Known::of_files(&seen.world) };
    }
    let mut known = Known::everything();
    let asked = seen.namespace.as_deref().unwrap_or_default();
    for of_kind in &KINDS {
        let resource = of_kind.resource();
        let gaps: Vec<&Gap> = seen.gaps.iter().filter(|gap| gap.verb == "list" && gap.resource == resource).collect();
        let Some(first) = gaps.first() else { continue };
        // What may not be listed in all namespaces was listed in the one that is asked about.
        let in_one = of_kind.namespaced && !asked.is_empty() && !gaps.iter().any(|gap| gap.namespace == asked);
        let within = if in_one { BTreeSet::from([asked.to_owned()]) } else { BTreeSet::new() };
        known.limit(GroupKind::new(of_kind.group, of_kind.name), within, first.to_string());
    }
    known
}

/// Holds a package of every catalog that has it against the groups; each with the name of the catalog.
pub(super) async fn matrices(
    seen: &mut Seen,
    options: &Options,
    package: &str,
    linted: &mut Linted,
    printer: &mut Printer,
) -> Result<Vec<(String, Matrix)>, CliError> {
    let of = seen.namespace.clone().unwrap_or_else(|| seen.settings.global_catalog_namespace.clone());
    seen.read_catalogs(&of, &options.images, printer).await;
    for gap in seen.gaps.iter().filter(|gap| gap.verb == "get") {
        printer.warn(format_args!("{gap}"));
    }
    let known = known(seen, options);
    let world = Reader::new(&seen.world);
    let global = seen.settings.global_catalog_namespace.as_str();
    let mut names: BTreeSet<(&str, &str)> = BTreeSet::new();
    for namespace in [of.as_str(), global] {
        let sources = world.in_namespace(&kind::CATALOG_SOURCE, namespace).map(|o| (namespace, object::name(o.json())));
        names.extend(sources);
        names.extend(world.local_catalogs(namespace).into_iter().map(|(name, _)| (namespace, name)));
    }
    let snapshot = |(namespace, name): (&str, &str)| {
        let fact: Option<&CatalogFact> = world.catalog(namespace, name);
        Some((format!("{namespace}/{name}"), fact?.snapshot.clone()?))
    };
    let mut found = Vec::new();
    for (name, snapshot) in names.iter().copied().filter_map(snapshot) {
        if let Some((matrix, problems)) = matrix(&seen.world, &known, &snapshot, package, seen.namespace.as_deref()) {
            linted
                .problems
                .extend(problems.into_iter().filter(|problem| !linted.problems.contains(problem)).collect::<Vec<_>>());
            found.push((name, matrix));
        }
    }
    if found.is_empty() {
        let catalogs: Vec<String> = names.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
        let known = if catalogs.is_empty() { "there are none".to_owned() } else { catalogs.join(", ") };
        return Err(CliError::new(
            ErrorKind::Input,
            format!("none of the catalogs that are known has package {package} ({known})"),
        )
        .hint("give one: --catalog NAME[.NAMESPACE]=DIR"));
    }
    Ok(found)
}
