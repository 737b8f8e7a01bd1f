//! CatalogSources of a cluster as catalogs to read, and what there is of them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use serde_json::Value;

use crate::cli::flags::{ClusterFlags, NamespaceFlags};
use crate::cli::output::Output;
use crate::cli::table::{self, Table};
use crate::cli::wait::block_on;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::Api;
use crate::cluster::once::{self, Fetched};
use crate::image;

/// What nobody knows.
const UNKNOWN: &str = "<unknown>";

/// A CatalogSource of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Namespace; the context's, when there is none.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// The cluster, and as whom it is asked.
    pub cluster: ClusterFlags,
}

impl FromStr for Named {
    type Err = String;

    /// `NAME` or `NAMESPACE/NAME`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || namespace.as_deref() == Some("") {
            return Err("a CatalogSource is named as catalogsource/NAME or catalogsource/NAMESPACE/NAME".to_owned());
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

fn kind() -> Gvk {
    Gvk::new("operators.coreos.com", "v1alpha1", "CatalogSource")
}

/// A connection to the cluster, and the namespace to look in.
async fn connect(cluster: &ClusterFlags, namespace: Option<&str>) -> Result<(Api, String), CliError> {
    let config = cluster.config().await?;
    let namespace = namespace.unwrap_or(&config.default_namespace).to_owned();
    Ok((Api::new(kube::Client::try_from(config)?), namespace))
}

/// Reads the content of a CatalogSource.
pub(super) fn read(named: &Named, images: &image::Options) -> Result<Fetched, CliError> {
    block_on(async {
        let (api, namespace) = connect(&named.cluster, named.namespace.as_deref()).await?;
        let target = ObjectRef { gvk: kind(), namespace: namespace.clone(), name: named.name.clone() };
        let found = api.get(&target).await.map_err(|refusal| refused(&refusal, "get"))?;
        let source = found.ok_or_else(|| {
            CliError::new(
                ErrorKind::Api,
                format!("there is no CatalogSource {:?} in namespace {namespace}", named.name),
            )
            .hint("kubectl olm catalog list -A lists all of them; name one as catalogsource/NAMESPACE/NAME")
        })?;
        once::fetch(&api, images, &source).await
    })
}

fn refused(refusal: &Status, verb: &str) -> CliError {
    match refusal.code {
        0 => CliError::new(ErrorKind::Unreachable, format!("no answer from the server: {}", refusal.message))
            .hint("is the cluster up, and is this the right context? kubectl config current-context"),
        404 => CliError::new(ErrorKind::Api, "the cluster does not serve catalogsources.operators.coreos.com")
            .hint("OLM's CRDs are not installed there: is this the right context?"),
        403 => CliError::new(ErrorKind::Api, format!("the server refused: {}", refusal.message))
            .hint(format!("see what is allowed with: kubectl auth can-i {verb} catalogsources.operators.coreos.com")),
        _ => CliError::new(ErrorKind::Api, format!("the server refused: {}", refusal.message)),
    }
}

/// Which CatalogSources to list.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// Their namespaces.
    pub namespaces: NamespaceFlags,
    /// How images are pulled.
    pub images: image::Options,
    /// The form of the answer.
    pub output: Output,
}

/// Lists CatalogSources: how many packages each has, and how it is. As data they are the objects themselves.
pub fn list(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Options { cluster, namespaces, images, output } = options;
    let progress = printer.progress("reading the catalogs");
    let counts = matches!(output, Output::Table | Output::Wide);
    let (namespace, sources, counts) = block_on(async {
        let (api, namespace) = connect(cluster, namespaces.namespace.as_deref()).await?;
        let namespace = if namespaces.all_namespaces { String::new() } else { namespace };
        let resource = api.resource(&kind()).await.map_err(|refusal| refused(&refusal, "list"))?;
        let listed = api.list_whole(&resource, &namespace, "").await;
        let sources = listed.map_err(|refusal| refused(&refusal, "list"))?;
        let counts =
            join_all(sources.iter().filter(|_| counts).map(|source| once::packages(&api, images, source))).await;
        Ok((namespace, sources, counts))
    })?;
    drop(progress);
    if sources.is_empty() && counts.is_empty() && matches!(output, Output::Table | Output::Wide) {
        printer.talk(match namespace.as_str() {
            "" => "No CatalogSources found".to_owned(),
            namespace => format!("No CatalogSources found in {namespace} namespace: -A looks in all"),
        });
        return Ok(Outcome::Done);
    }
    counts.iter().filter_map(|count| count.as_ref().err()).for_each(|why| printer.warn(why));
    let now = Timestamp::now();
    if *output == Output::Name && namespace.is_empty() {
        // As catalogs are named on the command line.
        for source in &sources {
            printer.line(format_args!("catalogsource/{}/{}", object::namespace(source), object::name(source)))?;
        }
        return Ok(Outcome::Done);
    }
    output.objects(printer, &sources, || table(&sources, &counts, namespace.is_empty(), output.is_wide(), now))?;
    Ok(Outcome::Done)
}

fn table(
    sources: &[Value],
    counts: &[Result<usize, String>],
    with_namespace: bool,
    is_wide: bool,
    now: Timestamp,
) -> Table {
    let narrow = ["NAME", "PACKAGES", "HEALTH", "AGE"];
    let headers = with_namespace.then_some("NAMESPACE").into_iter().chain(narrow);
    let mut table = Table::new(headers.chain(is_wide.then_some(["TYPE", "SOURCE", "MESSAGE"]).into_iter().flatten()));
    for (source, count) in sources.iter().zip(counts) {
        let text = |path: &[&str]| object::text(source, path).to_owned();
        let mut row = Vec::new();
        if with_namespace {
            row.push(object::namespace(source).to_owned());
        }
        row.push(object::name(source).to_owned());
        row.push(count.as_ref().map_or_else(|_| UNKNOWN.to_owned(), ToString::to_string));
        row.push(health(source));
        row.push(age(source, now));
        if is_wide {
            let of = ["image", "address", "configMap"].map(|key| text(&["spec", key]));
            row.push(text(&["spec", "sourceType"]));
            row.push(of.into_iter().find(|o| !o.is_empty()).unwrap_or_default());
            row.push(message(source, count));
        }
        table.row(row);
    }
    table
}

/// What is wrong with it: as its status says, else why its content cannot be read from here.
fn message(source: &Value, count: &Result<usize, String>) -> String {
    let of_status = object::text(source, &["status", "message"]);
    match count {
        _ if !of_status.is_empty() => of_status.to_owned(),
        Err(why) => why.clone(),
        Ok(_) => "<none>".to_owned(),
    }
}

/// Why it is not well, else the state of its connection.
fn health(source: &Value) -> String {
    let [reason, state] = [&["status", "reason"][..], &["status", "connectionState", "lastObservedState"]]
        .map(|path| object::text(source, path));
    [reason, state].into_iter().find(|t| !t.is_empty()).unwrap_or(UNKNOWN).to_owned()
}

fn age(object: &Value, now: Timestamp) -> String {
    let created = object::parse_time(object::text(object, &["metadata", "creationTimestamp"]));
    let since = created.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
    since.map_or_else(|| UNKNOWN.to_owned(), table::age)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let counts = [Ok(3), Err("nobody".to_owned()), Err("nothing answers at c:50051".to_owned())];
        let now = "2026-11-21T12:05:00Z".parse().unwrap();
        assert_eq!(
            table(&sources, &counts, true, true, now).to_string(),
            "NAMESPACE   NAME   PACKAGES    HEALTH             AGE   TYPE   SOURCE          MESSAGE\n\
             olm         a      3           READY              5m    grpc   example.com/a   <none>\n\
             olm         b      <unknown>   SpecInvalidError   5m    none                   no\n\
             olm         c      <unknown>   <unknown>          5m    grpc   c:50051         nothing answers at c:50051\n"
        );
    }
}
