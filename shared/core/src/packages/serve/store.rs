//! The PackageManifests of all catalogs, and their last changes.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::request::{Query, bad};
use crate::api::status::Status;
use crate::catalog::Snapshot;
use crate::packages::{Catalog, CatalogInfo, GROUP, Icon, KIND, PLURAL, api_version, icon, manifest};

/// The number of changes that a watch can continue from. A catalog of 420 packages that changes completely ten times has more.
const CHANGES: usize = 4096;

/// A package of a catalog.
#[derive(Clone, Debug)]
pub struct Item {
    /// Namespace of the catalog.
    pub namespace: String,
    /// Name of the catalog.
    pub catalog: String,
    /// Name of the package.
    pub name: String,
    /// Name of the catalog for users.
    pub shown_catalog: String,
    /// `spec.priority` of the catalog.
    priority: i64,
    /// `{metadata}`
    pub(super) head: Value,
    /// The serialized `status`.
    pub(super) status: Arc<[u8]>,
    /// The revision of the last change.
    pub(super) revision: u64,
    snapshot: Arc<Snapshot>,
}

impl Item {
    fn key(&self) -> (&str, &str, &str) {
        (&self.namespace, &self.name, &self.catalog)
    }

    fn is_same(&self, other: &Self) -> bool {
        let shown = |item: &Self| (item.priority, item.shown_catalog.clone());
        self.head == other.head && self.status == other.status && shown(self) == shown(other)
    }

    /// Returns the item with another revision.
    pub(super) fn at(&self, revision: u64) -> Self {
        Self { revision, ..self.clone() }
    }

    /// Returns the metadata of the object in this namespace; empty: in that of its catalog.
    pub(super) fn metadata(&self, namespace: &str) -> Value {
        let mut metadata = self.head["metadata"].clone();
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
        metadata["resourceVersion"] = self.revision.to_string().into();
        metadata
    }

    /// Returns the serialized object without its end: the serialized status and `}` follow.
    pub(super) fn beginning(&self, namespace: &str) -> Vec<u8> {
        let metadata = self.metadata(namespace);
        format!(r#"{{"apiVersion":"{}","kind":"{KIND}","metadata":{metadata},"spec":{{}},"status":"#, api_version())
            .into_bytes()
    }

    /// Returns the icon. Reads the catalog.
    pub fn icon(&self) -> Option<Icon> {
        icon(&self.snapshot, self.snapshot.package(&self.name)?)
    }
}

/// Returns the packages of a catalog, and why some cannot be read completely.
pub fn items(catalog: &Catalog) -> (Vec<Item>, Vec<String>) {
    let Catalog { info, snapshot } = catalog;
    let CatalogInfo { namespace, name, display_name, priority, .. } = info;
    let mut problems = Vec::new();
    let mut convert = |package| {
        let (manifest, more) = manifest(info, snapshot, package);
        problems.extend(more);
        // These types always have a JSON form.
        let metadata = serde_json::to_value(&manifest.metadata).unwrap_or_default();
        let status = serde_json::to_vec(&manifest.status).unwrap_or_default();
        Item {
            namespace: namespace.clone(),
            catalog: name.clone(),
            name: package.name.clone(),
            shown_catalog: if display_name.is_empty() { name.clone() } else { display_name.clone() },
            priority: *priority,
            head: json!({ "metadata": metadata }),
            status: status.into(),
            revision: 0,
            snapshot: snapshot.clone(),
        }
    };
    let items = snapshot.packages().values().map(&mut convert).collect();
    (items, problems)
}

/// A change of a package.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) before: Option<Arc<Item>>,
    pub(super) after: Option<Arc<Item>>,
}

/// The PackageManifests of all catalogs at a revision. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Store {
    /// The namespace whose catalogs all namespaces can use.
    global: String,
    pub(super) revision: u64,
    /// Sorted by namespace, name and catalog.
    items: Arc<[Arc<Item>]>,
    /// The last changes, oldest first.
    changes: VecDeque<Arc<Change>>,
    /// The revision before the oldest change.
    oldest: u64,
    is_read: bool,
}

impl Store {
    /// Creates a store whose catalogs were not read yet. The first revision has to be higher than all of former processes, so
    /// that their clients list again.
    pub fn new(global: &str, first: u64) -> Self {
        let (changes, items) = (VecDeque::new(), Arc::default());
        Self { global: global.to_owned(), revision: first, items, changes, oldest: first, is_read: false }
    }

    /// Returns the number of PackageManifests.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the store with the current content of all catalogs.
    #[must_use]
    pub fn replaced(&self, items: Vec<Item>) -> Self {
        let mut next = self.clone();
        next.is_read = true;
        let mut old = self.items.iter().peekable();
        let mut items = items;
        items.sort_by(|a, b| a.key().cmp(&b.key()));
        items.dedup_by(|a, b| a.key() == b.key());
        let mut current = Vec::with_capacity(items.len());
        for mut item in items {
            while let Some(removed) = old.next_if(|old| old.key() < item.key()) {
                next.change(Some(removed.clone()), None);
            }
            let before = old.next_if(|old| old.key() == item.key());
            if let Some(before) = before
                && before.is_same(&item)
            {
                item.revision = before.revision;
                item.status = before.status.clone();
                current.push(Arc::new(item));
                continue;
            }
            item.revision = next.revision + 1;
            let item = Arc::new(item);
            next.change(before.cloned(), Some(item.clone()));
            current.push(item);
        }
        for removed in old {
            next.change(Some(removed.clone()), None);
        }
        next.items = current.into();
        next
    }

    fn change(&mut self, before: Option<Arc<Item>>, after: Option<Arc<Item>>) {
        self.revision += 1;
        self.changes.push_back(Arc::new(Change { revision: self.revision, before, after }));
        while self.changes.len() > CHANGES {
            if let Some(change) = self.changes.pop_front() {
                self.oldest = change.revision;
            }
        }
    }

    /// Returns whether a namespace can use the catalog of the item; an empty namespace: all.
    fn is_in(&self, item: &Item, namespace: &str) -> bool {
        namespace.is_empty() || item.namespace == namespace || item.namespace == self.global
    }

    /// Returns the selected objects of a namespace; empty: of all.
    ///
    /// # Errors
    /// The catalogs were not read yet.
    pub(super) fn selected(&self, namespace: &str, query: &Query) -> Result<Vec<Arc<Item>>, Status> {
        self.require_read()?;
        let is_selected = self.filter(namespace, query);
        let mut found: Vec<Arc<Item>> = self.items.iter().filter(|item| is_selected(item)).cloned().collect();
        if !namespace.is_empty() {
            // They are all in this namespace.
            found.sort_by(|a, b| (&a.name, &a.namespace, &a.catalog).cmp(&(&b.name, &b.namespace, &b.catalog)));
        }
        Ok(found)
    }

    /// Returns a function that decides whether a namespace contains an item that is selected.
    pub(super) fn filter<'q>(&'q self, namespace: &'q str, query: &'q Query) -> impl Fn(&Item) -> bool + 'q {
        let matches = query.selector.matcher();
        move |item| {
            let shown = if namespace.is_empty() { &item.namespace } else { namespace };
            self.is_in(item, namespace) && matches(&item.head, &item.name, shown)
        }
    }

    /// Returns the object of that name: of the namespace's own catalogs before global ones, of those with a higher priority first.
    ///
    /// # Errors
    /// It does not exist, or the catalogs were not read yet.
    pub fn find(&self, namespace: &str, name: &str) -> Result<Arc<Item>, Status> {
        self.require_read()?;
        let of_name = self.items.iter().filter(|item| item.name == name && self.is_in(item, namespace));
        let first = of_name.min_by_key(|item| (item.namespace != namespace, std::cmp::Reverse(item.priority)));
        first.cloned().ok_or_else(|| Status::not_found(&format!("{PLURAL}.{GROUP}"), name))
    }

    /// Returns the changes after a revision, oldest first.
    ///
    /// # Errors
    /// The revision is too old or of another process: 410.
    pub(super) fn changes_after(&self, revision: u64) -> Result<impl Iterator<Item = &Arc<Change>>, Status> {
        if revision < self.oldest || revision > self.revision {
            return Err(expired(format!("too old resource version: {revision} ({})", self.oldest)));
        }
        let first = self.changes.partition_point(|change| change.revision <= revision);
        Ok(self.changes.iter().skip(first))
    }

    /// Returns the revision that a client states.
    ///
    /// # Errors
    /// It is not a number.
    pub(super) fn revision_of(text: &str) -> Result<u64, Status> {
        text.parse().map_err(|_| bad(format!("invalid resource version {text:?}: not a number")))
    }

    fn require_read(&self) -> Result<(), Status> {
        let why = "the catalogs of the cluster are still being read";
        if self.is_read { Ok(()) } else { Err(Status::new(503, "ServiceUnavailable", why)) }
    }
}

/// Returns the refusal of a revision that is not known any more.
pub(super) fn expired(message: String) -> Status {
    Status::new(410, "Expired", message)
}
