//! The catalogs of the loop, as a [`Store`] of PackageManifests. Catalogs that did not change are not converted again.

use olm_core::packages::Catalog;
use olm_core::packages::serve::{Item, Store, items};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// Converts the catalogs after each change.
pub(super) async fn follow(mut catalogs: watch::Receiver<Option<Vec<Catalog>>>, store: watch::Sender<Store>) {
    let mut known: Vec<(Catalog, Vec<Item>)> = Vec::new();
    // The sender lives as long as the loop.
    while catalogs.changed().await.is_ok() {
        let Some(current) = catalogs.borrow_and_update().clone() else { continue };
        let former = std::mem::take(&mut known);
        let (converted, problems) = match spawn_blocking(move || convert(former, current)).await {
            Ok(converted) => converted,
            Err(panicked) => {
                tracing::error!("cannot convert the catalogs to PackageManifests: {panicked}");
                continue;
            }
        };
        if let Some(first) = problems.first() {
            tracing::warn!(problems = problems.len(), "some PackageManifests are incomplete: {first}");
        }
        known = converted;
        let items: Vec<Item> = known.iter().flat_map(|(_, items)| items.iter().cloned()).collect();
        store.send_modify(|store| *store = store.replaced(items));
        tracing::info!(packages = store.borrow().len(), catalogs = known.len(), "the PackageManifests are current");
    }
}

/// Returns the packages of each catalog, and why some cannot be read completely.
fn convert(mut former: Vec<(Catalog, Vec<Item>)>, current: Vec<Catalog>) -> (Vec<(Catalog, Vec<Item>)>, Vec<String>) {
    let mut problems = Vec::new();
    let converted = current.into_iter().map(|catalog| {
        if let Some(at) = former.iter().position(|(known, _)| *known == catalog) {
            return former.swap_remove(at);
        }
        let (items, more) = items(&catalog);
        problems.extend(more);
        (catalog, items)
    });
    let converted = converted.collect();
    (converted, problems)
}
