//! `kubectl olm catalog resolve`: prints what OLM would install, and why.
//!
//! *Guarantees*: the resolver is that of the controllers, with the same inputs, and every suggested fix was verified.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use olm_core::resolver::explain::{self, Edit, Explanation};
use olm_core::resolver::{Catalog, Inputs, RequestedSubscription};
use olm_core::subscription::NamespaceState;
use olm_core::version::Range;
use olm_core::world::Reader;
use serde_json::{Value, json};

use super::installed::InstalledFrom;
use super::source::{OpenCatalog, Ref};
use crate::cli::flags::ClusterFlags;
use crate::cli::output::{self, Output};
use crate::cli::{CliError, Outcome, Printer};
use crate::image;

/// The default namespace of catalogs: OLM's namespace of global catalogs.
const CATALOG_NAMESPACE: &str = "olm";

/// kubectl's default namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// `PACKAGE` or `PACKAGE@RANGE`, such as `etcd@>=0.9.0 <0.9.4`.
    pub wanted: Vec<String>,
    /// Catalogs, in order of preference, like CatalogSources with decreasing priority.
    pub catalogs: Vec<NamedCatalog>,
    /// The source of installed objects.
    pub installed_from: InstalledFrom,
    /// The namespace.
    pub namespace: Option<String>,
    /// Changes to apply first, in the syntax of [`Edit`].
    pub what_if: Vec<String>,
    /// How images are pulled.
    pub images: image::Options,
    /// The output format: text, JSON or YAML, or the names of the bundles.
    pub output: Output,
}

/// A catalog, and the CatalogSource that it stands for: `[[NAMESPACE/]NAME=]REF`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCatalog {
    /// Namespace and name of the CatalogSource.
    name: Option<(String, String)>,
    catalog: Ref,
}

impl NamedCatalog {
    /// Binds a CatalogSource to the cluster.
    pub fn on(self, cluster: &ClusterFlags) -> Self {
        Self { catalog: self.catalog.on(cluster, None), name: self.name }
    }
}

impl FromStr for NamedCatalog {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |name: &str| {
            let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
            !name.is_empty() && !name.starts_with('.') && name.chars().all(of_name)
        };
        let named = text.split_once('=').and_then(|(name, catalog)| {
            let (namespace, name) = name.split_once('/').unwrap_or((CATALOG_NAMESPACE, name));
            (is_name(namespace) && is_name(name)).then(|| ((namespace.to_owned(), name.to_owned()), catalog))
        });
        Ok(match named {
            Some((name, catalog)) => Self { name: Some(name), catalog: catalog.parse()? },
            None => Self { name: None, catalog: text.parse()? },
        })
    }
}

/// Resolves, and prints the explanation. The outcome is negative if there is no resolution.
///
/// # Errors
/// A catalog, a range, an object or a change cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let asked = options.wanted.iter().map(|w| RequestedPackage::read(w)).collect::<Result<Vec<_>, _>>()?;
    let edits = options.what_if.iter().map(|e| e.parse::<Edit>().map_err(CliError::usage));
    let edits = edits.collect::<Result<Vec<_>, _>>()?;
    let read = options.installed_from.of_namespace(options.namespace.as_deref(), printer)?;
    let namespace = read.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let world = Reader::new(&read.world);
    let unreadable = |failure: olm_core::resolver::Failure| CliError::input(failure.to_string());
    let there = NamespaceState::read(&world, namespace).map_err(unreadable)?;
    let subscriptions = there.requested();
    if asked.is_empty() && subscriptions.is_empty() {
        let refused = CliError::usage(format!("nothing to resolve: namespace {namespace} has no Subscriptions"));
        return Err(refused.hint("specify a package, or the installed Subscriptions with --installed"));
    }
    let n = there.operator_groups;
    if n > 1 || n == 0 && read.knows_groups {
        printer.warn(format_args!(
            "namespace {namespace} has {n} OperatorGroups: OLM resolves Subscriptions only with exactly one"
        ));
    }
    let names = names(&options.catalogs, &subscriptions, printer)?;
    let mut catalogs = Vec::new();
    for catalog in &options.catalogs {
        catalogs.push(OpenCatalog::read(std::slice::from_ref(&catalog.catalog), &options.images, printer)?);
    }
    let catalogs = names.iter().zip(&catalogs).zip((0..).map(|n: i64| -n));
    let mut inputs = Inputs {
        namespace,
        subscriptions,
        catalogs: catalogs
            .map(|(((namespace, name), loaded), priority)| Catalog {
                name,
                namespace,
                priority,
                snapshot: &loaded.load.snapshot,
            })
            .collect(),
        broken: Vec::new(),
        installed: there.installed.clone(),
    };
    for RequestedPackage { package, range } in &asked {
        let range = range.as_ref();
        if let Some(known) = inputs.subscriptions.iter_mut().find(|s| s.package == package) {
            known.range = range;
            continue;
        }
        let source =
            inputs.catalogs.iter().find(|c| c.snapshot.package(package).is_some()).or_else(|| inputs.catalogs.first());
        let (source, source_namespace) = source.map_or(("", ""), |c| (c.name, c.namespace));
        let wanted = RequestedSubscription {
            name: package,
            package,
            source,
            source_namespace,
            range,
            ..RequestedSubscription::default()
        };
        inputs.subscriptions.push(wanted);
    }
    for edit in &edits {
        explain::apply(&mut inputs, edit);
    }
    let progress = printer.progress("resolving");
    let explanation = explain::explain(&inputs, there.targets.as_deref());
    drop(progress);
    print(&explanation, &options.output, printer)?;
    Ok(if explanation.is_resolved() { Outcome::Done } else { Outcome::Negative })
}

/// Returns the CatalogSources that the catalogs stand for. A catalog without a name is the one that all Subscriptions name.
fn names(
    catalogs: &[NamedCatalog],
    subscriptions: &[RequestedSubscription<'_>],
    printer: &mut Printer,
) -> Result<Vec<(String, String)>, CliError> {
    let sources: BTreeSet<(&str, &str)> = subscriptions.iter().map(|s| (s.source_namespace, s.source)).collect();
    if let ([NamedCatalog { name: None, catalog }], [(namespace, name)]) =
        (catalogs, &sources.into_iter().collect::<Vec<_>>()[..])
        && !name.is_empty()
    {
        printer.talk(format_args!("using {catalog} as CatalogSource {namespace}/{name}, which the Subscriptions name"));
        return Ok(vec![((*namespace).to_owned(), (*name).to_owned())]);
    }
    let mut names: Vec<(String, String)> = Vec::new();
    for NamedCatalog { name, catalog } in catalogs {
        let name = name.clone().unwrap_or_else(|| (CATALOG_NAMESPACE.to_owned(), stem(catalog)));
        if names.contains(&name) {
            let refused = CliError::usage(format!("two catalogs have the name {}", name.1)).at(catalog);
            return Err(refused.hint("specify different names with --catalog NAME=REF"));
        }
        names.push(name);
    }
    Ok(names)
}

/// Returns the default name of a catalog.
fn stem(catalog: &Ref) -> String {
    let path = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = match catalog {
        Ref::Directory(directory) | Ref::Layout(directory) => {
            directory.file_name().map(|n| n.to_string_lossy().into_owned())
        }
        Ref::File(file) => path(file),
        Ref::Image(image) => {
            let image = image.split('@').next().unwrap_or_default();
            let last = image.rsplit('/').next().unwrap_or_default();
            last.split(':').next().map(str::to_owned)
        }
        Ref::CatalogSource(named) => Some(named.name.clone()),
        Ref::Stdin | Ref::Address(_) => None,
    };
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "catalog".to_owned())
}

fn print(explanation: &Explanation, output: &Output, printer: &mut Printer) -> Result<(), CliError> {
    match (output, explanation) {
        (Output::Table | Output::Wide, _) => printer.data(explanation),
        (Output::Name, Explanation::Resolved { bundles, .. }) => {
            bundles.iter().try_for_each(|b| printer.line(format_args!("bundle/{}", b.bundle.name)))
        }
        (Output::Name, Explanation::Failed { .. }) => Ok(()),
        (Output::Json | Output::Yaml | Output::JsonPath(_) | Output::CustomColumns(_), _) => {
            let mut document = json!({ "apiVersion": output::API_VERSION, "kind": "Resolution" });
            let said = serde_json::to_value(explanation).unwrap_or_default();
            if let (Some(document), Value::Object(said)) = (document.as_object_mut(), said) {
                document.extend(said);
            }
            output.object(printer, &document, || crate::cli::table::Table::new([""]))
        }
    }
}

/// A requested package.
struct RequestedPackage {
    package: String,
    range: Option<Range>,
}

impl RequestedPackage {
    fn read(text: &str) -> Result<Self, CliError> {
        let text = text.strip_prefix("package/").unwrap_or(text);
        let (package, range) = match text.split_once('@') {
            None => (text, None),
            Some((package, range)) => {
                let exact = olm_core::version::parse_tolerant(range).is_ok();
                let range = if exact { format!("={range}") } else { range.to_owned() };
                let read = Range::parse(&range).map_err(|e| {
                    let refused = CliError::usage(format!("invalid version range {range:?}: {e}"));
                    refused.hint("write a range as in catalogs: >=1.2.0 <2.0.0")
                })?;
                (package, Some(read))
            }
        };
        Ok(Self { package: package.to_owned(), range })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::streams::Buffer;

    const CATALOG: &str = "
schema: olm.package
name: rose
defaultChannel: stable
---
schema: olm.channel
package: rose
name: stable
entries: [{ name: rose.v1.0.0 }, { name: rose.v2.0.0, replaces: rose.v1.0.0 }]
---
schema: olm.bundle
package: rose
name: rose.v1.0.0
image: registry.example.com/rose:1
properties: [{ type: olm.package, value: { packageName: rose, version: 1.0.0 } }]
---
schema: olm.bundle
package: rose
name: rose.v2.0.0
image: registry.example.com/rose:2
properties:
- { type: olm.package, value: { packageName: rose, version: 2.0.0 } }
- { type: olm.package.required, value: { packageName: pot, versionRange: '>=1.0.0' } }
";
    const THERE: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: { name: mine, namespace: garden }
spec: { name: rose, channel: stable, source: main, sourceNamespace: olm }
status: { installedCSV: rose.v1.0.0 }
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: { name: rose.v1.0.0, namespace: garden }
spec: { version: 1.0.0 }
";

    /// Returns the result, and the output.
    fn run_resolve(
        wanted: &[&str],
        with_there: bool,
        what_if: &[&str],
        output: &str,
    ) -> (Result<Outcome, CliError>, String) {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, there) = (folder.path().join("main"), folder.path().join("there.yaml"));
        std::fs::create_dir(&catalog).unwrap();
        std::fs::write(catalog.join("catalog.yaml"), CATALOG).unwrap();
        std::fs::write(&there, THERE).unwrap();
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let options = Options {
            wanted: own(wanted),
            catalogs: vec![format!("main={}", catalog.display()).parse().unwrap()],
            installed_from: if with_there { InstalledFrom::Files(vec![there]) } else { InstalledFrom::Nothing },
            namespace: Some("garden".to_owned()),
            what_if: own(what_if),
            images: image::Options::of_user(),
            output: output.parse().unwrap(),
        };
        let out = Buffer::default();
        let answer = run(&options, &mut Printer::to(out.clone(), Buffer::default()));
        (answer, out.text())
    }

    #[test]
    fn answers_and_exit_codes() {
        // The dependency of the head is missing, so the version below it is chosen.
        let (answer, said) = run_resolve(&["rose"], false, &[], "");
        assert_eq!(answer, Ok(Outcome::Done));
        assert!(
            said.starts_with("rose.v1.0.0 (channel stable of olm/main)\n  because Subscription garden/rose requires"),
            "{said}"
        );
        assert!(said.contains(
            "not rose.v2.0.0 (channel stable of olm/main): it would contradict: bundle rose.v2.0.0 requires"
        ));
        let (answer, said) = run_resolve(&["rose@>=2.0.0"], false, &[], "");
        assert_eq!(answer, Ok(Outcome::Negative));
        assert!(said.contains("which no catalog offers"), "{said}");
        let (answer, said) = run_resolve(&["rose@1.0.0"], false, &[], "name");
        assert_eq!((answer, said.as_str()), (Ok(Outcome::Done), "bundle/rose.v1.0.0\n"));
        let (answer, said) = run_resolve(&["tulip"], false, &[], "json");
        assert_eq!(answer, Ok(Outcome::Negative));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["kind"], &said["result"]), (&json!("Resolution"), &json!("failed")));
        assert_eq!(said["reasons"][1]["reason"], "noPackage");
    }

    #[test]
    fn installed_objects_count() {
        let (answer, said) = run_resolve(&[], true, &[], "");
        assert_eq!(
            (answer, said.as_str()),
            (Ok(Outcome::Done), "Nothing to install: all required bundles are installed.\n")
        );
        // Without its Subscription the operator stays, and no other version of the package can be installed.
        let (answer, said) = run_resolve(&["rose"], true, &["delete-subscription:mine"], "");
        assert_eq!(
            (answer, said.as_str()),
            (Ok(Outcome::Done), "Nothing to install: all required bundles are installed.\n")
        );
        let (answer, _) = run_resolve(&[], true, &["channel:mine=fast"], "");
        assert_eq!(answer, Ok(Outcome::Negative));
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for (wanted, what_if) in [(&[][..], &[][..]), (&["rose@one"], &[]), (&["rose"], &["burn:everything"])] {
            let (answer, said) = run_resolve(wanted, false, what_if, "");
            assert!(answer.is_err() && said.is_empty(), "{wanted:?}");
        }
    }
}
