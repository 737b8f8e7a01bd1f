//! Reads and lists CatalogSources of a cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use futures::future::join_all;
use jiff::Timestamp;
use olm_core::api::catalog_source::CatalogSource;
use olm_core::api::status::Status;
use olm_core::api::{kinds, object};
use olm_core::packages::CatalogInfo;
use olm_core::world::Unreadable;
use serde_json::{Value, json};

use crate::blocking::block_on;
use crate::cli::connect::connect_in;
use crate::cli::flags::{ClusterFlags, NamespaceFlags};
use crate::cli::list::{Column, Entry, ListFlags, Listing, Watched};
use crate::cli::{CliError, ErrorKind, Outcome, Printer, errors, output, table};
use crate::cluster::api::{Api, ListQuery, Resource, WatchEvent};
use crate::cluster::fetch_catalog::{self, Fetched};
use crate::cluster::follow;
use crate::cluster::installed::held_outside;
use crate::cluster::request_error::RequestError;
use crate::cluster::watcher::{Step, Watcher};
use crate::image;

/// A CatalogSource of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Namespace; that of the context if `None`.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// The cluster, and the identity to use.
    pub cluster: ClusterFlags,
}

impl FromStr for Named {
    type Err = String;

    /// Parses `NAME` or `NAMESPACE/NAME`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || namespace.as_deref() == Some("") {
            return Err("write a CatalogSource as catalogsource/NAME or catalogsource/NAMESPACE/NAME".to_owned());
        }
        Ok(Self { namespace, name: name.to_owned(), cluster: ClusterFlags::default() })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "catalogsource/{namespace}/{}", self.name),
            None => write!(f, "catalogsource/{}", self.name),
        }
    }
}

/// Reads the content of a CatalogSource.
pub(super) fn read(named: &Named, images: &image::Options) -> Result<Fetched, CliError> {
    block_on(async {
        let (api, source) = get(named).await?;
        Ok(fetch_catalog::fetch(&api, images, &source).await?)
    })
}

/// Reads a CatalogSource without its content.
pub(super) fn info(named: &Named) -> Result<CatalogInfo, CliError> {
    block_on(async { get(named).await.map(|(_, source)| CatalogInfo::from_source(&source)) })
}

/// Returns a CatalogSource, and a client of its cluster.
async fn get(named: &Named) -> Result<(Api, Value), CliError> {
    let (api, namespace) = connect_in(&named.cluster, named.namespace.as_deref()).await?;
    let target = kinds::CATALOG_SOURCE.object(&namespace, &named.name);
    let found = api.get(&target).await.map_err(|status| refused("get", &namespace, status))?;
    let source = found.ok_or_else(|| {
        CliError::new(ErrorKind::Api, format!("there is no CatalogSource {:?} in namespace {namespace}", named.name))
            .hint("kubectl olm catalog list -A lists all CatalogSources; write one as catalogsource/NAMESPACE/NAME")
    })?;
    Ok((api, source))
}

fn refused(verb: &'static str, namespace: &str, status: Status) -> RequestError {
    RequestError::new(verb, "catalogsources.operators.coreos.com", namespace, status)
}

/// The options of a list of CatalogSources.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// Their namespaces.
    pub namespaces: NamespaceFlags,
    /// Their names; empty means all.
    pub names: Vec<String>,
    /// How images are pulled.
    pub images: image::Options,
    /// The selection and the output format.
    pub list: ListFlags,
}

/// CatalogSources by namespace and name, with the number of packages if counted.
type Sources = BTreeMap<(String, String), (Value, Option<Result<usize, String>>)>;

/// Lists CatalogSources with their number of packages and their health. As data they are the objects themselves. The
/// outcome is negative if a named one does not exist.
///
/// # Errors
/// They cannot be read.
pub fn list(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(async {
        let (api, namespace) = connect_in(&options.cluster, options.namespaces.namespace.as_deref()).await?;
        let place = if options.namespaces.all_namespaces { String::new() } else { namespace };
        let lister = Lister { options, api, place };
        if options.list.watch { lister.watch(printer).await } else { lister.once(printer).await }
    })
}

struct Lister<'a> {
    options: &'a Options,
    api: Api,
    /// The namespace; empty means all.
    place: String,
}

impl Lister<'_> {
    async fn once(&self, printer: &mut Printer) -> Result<Outcome, CliError> {
        let Options { names, list, .. } = self.options;
        let holder = async { if list.wants_table() { held_outside(&self.api).await } else { None } };
        let (sources, holder) = futures::join!(self.read_sources(printer), holder);
        let sources = sources?;
        // Controllers outside of the cluster can have catalogs that are not listed.
        let hint = |printer: &mut Printer| {
            if let Some(lease) = &holder {
                printer.talk(format_args!("hint: {}", lease.directories_hint()));
            }
        };
        let listing = self.listing(&sources).arranged(list)?;
        if listing.entries.is_empty() && names.is_empty() && list.wants_table() {
            printer.talk(match self.place.as_str() {
                "" => "No CatalogSources found".to_owned(),
                namespace => format!("No CatalogSources found in {namespace} namespace; -A lists all namespaces"),
            });
            hint(printer);
            return Ok(Outcome::Done);
        }
        let uncounted = sources.values().filter_map(|(_, count)| count.as_ref()?.as_ref().err());
        uncounted.for_each(|why| printer.warn(why));
        if !listing.entries.is_empty() || !list.wants_table() {
            listing.print(list, printer)?;
        }
        hint(printer);
        let missing = names.iter().filter(|name| !sources.keys().any(|(_, known)| known == *name));
        let missing: Vec<CliError> = missing.map(|name| self.missing(name)).collect();
        for error in &missing {
            printer.error(error);
        }
        Ok(if missing.is_empty() { Outcome::Done } else { Outcome::Negative })
    }

    fn missing(&self, name: &str) -> CliError {
        let place = match self.place.as_str() {
            "" => "any namespace".to_owned(),
            namespace => format!("namespace {namespace}"),
        };
        CliError::new(ErrorKind::Api, format!("there is no CatalogSource {name:?} in {place}")).hint(format!(
            "to list a package of a catalog, also pass the catalog: kubectl olm catalog list {name} ./catalog"
        ))
    }

    /// Lists CatalogSources, and prints changes until the process is stopped.
    async fn watch(&self, printer: &mut Printer) -> Result<Outcome, CliError> {
        let mut watched = Watched::default();
        let mut watcher = Watcher::new(self.api.clone(), self.query());
        let (mut sources, mut listed, mut has_shown) = (Sources::new(), Vec::new(), false);
        loop {
            match watcher.next().await {
                Step::Page(page) => {
                    page.unreadable.iter().for_each(|object| printer.warn(left_out(object)));
                    listed.extend(page.objects);
                    if !page.next.is_empty() {
                        continue;
                    }
                    sources = self.count_all(std::mem::take(&mut listed), printer).await;
                }
                Step::Event(WatchEvent::Added(source) | WatchEvent::Modified(source)) if self.is_requested(&source) => {
                    let count = self.count(&source).await;
                    sources.insert(key(&source), (source, count));
                }
                Step::Event(WatchEvent::Deleted(source)) => drop(sources.remove(&key(&source))),
                Step::Event(WatchEvent::Unreadable(object)) => printer.warn(left_out(&object)),
                Step::Event(_) | Step::Watching => continue,
                Step::Failed(status) if !has_shown || follow::lasts(&status) => {
                    return Err(refused("list", &self.place, status).into());
                }
                Step::Failed(_) => {
                    listed.clear();
                    continue;
                }
            }
            watched.show(self.listing(&sources), &self.options.list, printer)?;
            has_shown = true;
        }
    }

    fn query(&self) -> ListQuery {
        ListQuery::all(&Resource::from(&kinds::CATALOG_SOURCE)).within(&self.place)
    }

    /// Lists the CatalogSources once.
    async fn read_sources(&self, printer: &mut Printer) -> Result<Sources, CliError> {
        let page = self.api.list(&self.query()).await.map_err(|status| refused("list", &self.place, status))?;
        page.unreadable.iter().for_each(|object| printer.warn(left_out(object)));
        Ok(self.count_all(page.objects, printer).await)
    }

    /// Returns the selected CatalogSources, with their numbers of packages.
    async fn count_all(&self, sources: Vec<Value>, printer: &Printer) -> Sources {
        let _progress = printer.progress("reading the catalogs");
        let sources: Vec<Value> = sources.into_iter().filter(|source| self.is_requested(source)).collect();
        let counts = join_all(sources.iter().map(|source| self.count(source))).await;
        sources.into_iter().zip(counts).map(|(source, count)| (key(&source), (source, count))).collect()
    }

    fn is_requested(&self, source: &Value) -> bool {
        let Options { names, list, .. } = self.options;
        let is_named = names.is_empty() || names.iter().any(|name| name == object::name(source));
        is_named && list.selector.selector.as_ref().is_none_or(|query| query.selects(source))
    }

    /// Returns the number of packages, if it is shown.
    async fn count(&self, source: &Value) -> Option<Result<usize, String>> {
        if self.options.list.wants_table() {
            let counted = fetch_catalog::packages(&self.api, &self.options.images, source).await;
            Some(counted.map_err(|error| error.status_message(errors::hint)))
        } else {
            None
        }
    }

    fn listing(&self, sources: &Sources) -> Listing {
        listing(sources, self.place.is_empty(), Timestamp::now())
    }
}

/// Returns the warning about an unreadable CatalogSource.
fn left_out(object: &Unreadable) -> String {
    format!("{} cannot be read and is ignored: {}", object.name(), object.why)
}

fn key(source: &Value) -> (String, String) {
    (object::namespace(source).to_owned(), object::name(source).to_owned())
}

fn listing(sources: &Sources, with_namespace: bool, now: Timestamp) -> Listing {
    let namespace = with_namespace.then_some(Column::new("NAMESPACE"));
    let narrow = ["NAME", "PACKAGES", "HEALTH", "AGE"].map(Column::new);
    let wide = ["TYPE", "SOURCE", "MESSAGE"].map(Column::wide);
    let entries = sources.values().map(|(source, count)| {
        let text = |path: &[&str]| object::text(source, path).to_owned();
        let of = ["image", "address", "configMap"].map(|key| text(&["spec", key]));
        let mut cells = Vec::new();
        if with_namespace {
            cells.push(object::namespace(source).to_owned());
        }
        cells.extend([
            object::name(source).to_owned(),
            match count {
                Some(Ok(n)) => n.to_string(),
                Some(Err(_)) | None => table::UNKNOWN.to_owned(),
            },
            health(source),
            table::object_age(source, now),
            CatalogSource::new(source).source_type().to_owned(),
            of.into_iter().find(|o| !o.is_empty()).unwrap_or_default(),
            message(source, count.as_ref()),
        ]);
        // In the form of command line arguments.
        let name = match object::namespace(source) {
            namespace if with_namespace => format!("catalogsource/{namespace}/{}", object::name(source)),
            _ => output::name(source),
        };
        Entry { object: source.clone(), cells, name }
    });
    Listing {
        columns: namespace.into_iter().chain(narrow).chain(wide).collect(),
        entries: entries.collect(),
        document: json!({ "apiVersion": "v1", "kind": "List", "metadata": {} }),
    }
}

/// Returns the message of the status, else why the content cannot be read.
fn message(source: &Value, count: Option<&Result<usize, String>>) -> String {
    let of_status = CatalogSource::new(source).message();
    match count {
        _ if !of_status.is_empty() => of_status.to_owned(),
        Some(Err(why)) => why.clone(),
        Some(Ok(_)) | None => "<none>".to_owned(),
    }
}

/// Returns the reason of the status, else the state of the connection.
fn health(source: &Value) -> String {
    let source = CatalogSource::new(source);
    [source.reason(), source.connection_state()]
        .into_iter()
        .find(|t| !t.is_empty())
        .unwrap_or(table::UNKNOWN)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Output;
    use crate::cli::streams::Buffer;

    #[test]
    fn names_of_catalog_sources() {
        let named: Named = "olm/market".parse().unwrap();
        assert_eq!((named.namespace.as_deref(), named.name.as_str()), (Some("olm"), "market"));
        assert_eq!("market".parse::<Named>().unwrap().to_string(), "catalogsource/market");
        for text in ["", "/market", "olm/", "a/b/c"] {
            assert!(text.parse::<Named>().is_err(), "{text}");
        }
    }

    #[test]
    fn sources_are_listed_with_their_health() {
        let of = |name: &str, spec: Value, status: Value| json!({"metadata": {"namespace": "olm", "name": name, "creationTimestamp": "2026-11-21T12:00:00Z"}, "spec": spec, "status": status});
        let sources = [
            of(
                "a",
                json!({"sourceType": "grpc", "image": "example.com/a"}),
                json!({"connectionState": {"lastObservedState": "READY"}}),
            ),
            of("b", json!({"sourceType": "none"}), json!({"reason": "SpecInvalidError", "message": "no"})),
            of("c", json!({"sourceType": "grpc", "address": "c:50051"}), Value::Null),
        ];
        let counts = [Some(Ok(3)), Some(Err("nobody".to_owned())), Some(Err("nothing answers at c:50051".to_owned()))];
        let sources = sources.into_iter().zip(counts).map(|(source, count)| (key(&source), (source, count))).collect();
        let now = "2026-11-21T12:05:00Z".parse().unwrap();
        let flags =
            ListFlags { output: crate::cli::flags::OutputFlags { output: Output::Wide }, ..ListFlags::default() };
        let out = Buffer::default();
        listing(&sources, true, now).print(&flags, &mut Printer::to(out.clone(), Buffer::default())).unwrap();
        assert_eq!(
            out.text(),
            "NAMESPACE   NAME   PACKAGES    HEALTH             AGE   TYPE   SOURCE          MESSAGE\n\
             olm         a      3           READY              5m    grpc   example.com/a   <none>\n\
             olm         b      <unknown>   SpecInvalidError   5m    none                   no\n\
             olm         c      <unknown>   <unknown>          5m    grpc   c:50051         nothing answers at c:50051\n"
        );
    }

    #[tokio::test]
    async fn sources_and_their_content_are_read_in_two_rounds_of_requests() {
        let answer = |path: &str| {
            let source = |name: &str| {
                json!({
                    "metadata": { "namespace": "olm", "name": name },
                    "spec": { "sourceType": "configmap", "configMap": name },
                })
            };
            let package = json!([{ "packageName": "rose", "channels": [] }]).to_string();
            let content = json!({ "kind": "ConfigMap", "apiVersion": "v1", "data": { "packages": package } });
            Some(if path.ends_with("/catalogsources") {
                json!({ "metadata": { "resourceVersion": "1" }, "items": [source("a"), source("b")] })
            } else {
                content
            })
        };
        let out = Buffer::default();
        let list = async |api: Api| {
            let options = Options {
                cluster: ClusterFlags::default(),
                namespaces: NamespaceFlags::default(),
                names: Vec::new(),
                images: image::Options::default(),
                list: ListFlags::default(),
            };
            let lister = Lister { options: &options, api, place: "olm".to_owned() };
            lister.once(&mut Printer::to(out.clone(), Buffer::default())).await
        };
        let (listed, rounds) = crate::cluster::rounds::rounds(answer, list).await;
        assert_eq!(listed.unwrap(), Outcome::Done);
        let olm = "/apis/operators.coreos.com/v1alpha1/namespaces/olm/catalogsources";
        let content = ["a", "b"].map(|name| format!("/api/v1/namespaces/olm/configmaps/{name}"));
        let leases = "/apis/coordination.k8s.io/v1/namespaces/olm/leases";
        assert_eq!(rounds, [vec![leases.to_owned(), olm.to_owned()], content.to_vec()]);
        assert!(out.text().contains("a      1 "), "{}", out.text());
    }
}
