//! What OLM would install, and why: the resolver asked without a cluster.
//!
//! *Guarantees*: it is the resolver of the controllers that answers, and every repair that is offered was tried.

use std::path::{Path, PathBuf};

use olm_core::api::object;
use olm_core::catalog::Snapshot;
use olm_core::resolver::explain::{self, Edit, Explanation};
use olm_core::resolver::{Catalog, Inputs, Installed, Wanted};
use olm_core::version::Range;
use serde_json::{Value, json};

use crate::cli::output::{self, Output};
use crate::cli::{CliError, Outcome, Printer};
use crate::registry::dir;
use crate::run::input;

/// Where catalogs are when nothing says so: OLM's namespace for catalogs that all namespaces use.
const CATALOG_NAMESPACE: &str = "olm";

/// What is asked.
#[derive(Debug, Default)]
pub struct Options {
    /// `PACKAGE` or `PACKAGE@RANGE`, such as `etcd@>=0.9.0 <0.9.4`.
    pub wanted: Vec<String>,
    /// Catalog directories, `DIR` or `NAME=DIR`. Earlier ones come first, like CatalogSources of higher priority.
    pub catalogs: Vec<String>,
    /// Files and folders with what is there: ClusterServiceVersions, Subscriptions and the OperatorGroup of the namespace.
    pub installed: Vec<PathBuf>,
    /// The namespace.
    pub namespace: String,
    /// Changes to try, as [`Edit`] reads them.
    pub what_if: Vec<String>,
    /// Format of the answer: sentences, JSON or YAML, or the names of the bundles.
    pub output: Output,
}

/// Resolves, prints why, and says whether there is a resolution.
///
/// # Errors
/// The question cannot be read: a catalog, a range, an object or a change.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let catalogs = options.catalogs.iter().map(|c| load(c, printer)).collect::<Result<Vec<_>, _>>()?;
    let there = There::read(options)?;
    let asked = options.wanted.iter().map(|w| Asked::read(w)).collect::<Result<Vec<_>, _>>()?;
    let edits = options.what_if.iter().map(|e| e.parse::<Edit>().map_err(CliError::usage));
    let edits = edits.collect::<Result<Vec<_>, _>>()?;
    if asked.is_empty() && there.subscriptions.is_empty() {
        let refused = CliError::usage("nothing to resolve");
        return Err(refused.hint("name a package, or give the Subscriptions that are there"));
    }
    let mut inputs = Inputs {
        namespace: &options.namespace,
        subscriptions: there.subscriptions.iter().map(There::wanted).collect(),
        catalogs: catalogs
            .iter()
            .zip((0..).map(|n: i64| -n))
            .map(|((name, snapshot), priority)| Catalog { name, namespace: CATALOG_NAMESPACE, priority, snapshot })
            .collect(),
        broken: Vec::new(),
        installed: there.installed()?,
    };
    for Asked { package, range } in &asked {
        if let Some(known) = inputs.subscriptions.iter_mut().find(|s| s.package == package) {
            known.range = range.as_ref();
            continue;
        }
        let source =
            inputs.catalogs.iter().find(|c| c.snapshot.package(package).is_some()).or_else(|| inputs.catalogs.first());
        let (source, source_namespace) = source.map_or(("", ""), |c| (c.name, c.namespace));
        let range = range.as_ref();
        inputs.subscriptions.push(Wanted {
            name: package,
            package,
            source,
            source_namespace,
            range,
            ..Wanted::default()
        });
    }
    for edit in &edits {
        explain::apply(&mut inputs, edit);
    }
    let explanation = explain::explain(&inputs, there.targets.as_deref());
    print(&explanation, &options.output, printer)?;
    Ok(if explanation.is_resolved() { Outcome::Done } else { Outcome::Negative })
}

fn print(explanation: &Explanation, output: &Output, printer: &mut Printer) -> Result<(), CliError> {
    match (output, explanation) {
        (Output::Table | Output::Wide, _) => printer.data(explanation),
        (Output::Name, Explanation::Resolved { bundles, .. }) => {
            bundles.iter().try_for_each(|b| printer.line(&b.bundle.name))
        }
        (Output::Name, Explanation::Failed { .. }) => Ok(()),
        (Output::Json | Output::Yaml | Output::JsonPath(_), _) => {
            let mut document = json!({ "apiVersion": output::API_VERSION, "kind": "Resolution" });
            let said = serde_json::to_value(explanation).unwrap_or_default();
            if let (Some(document), Value::Object(said)) = (document.as_object_mut(), said) {
                document.extend(said);
            }
            output.object(printer, &document, || crate::cli::table::Table::new([""]))
        }
    }
}

/// A package that is asked for.
struct Asked {
    package: String,
    range: Option<Range>,
}

impl Asked {
    fn read(text: &str) -> Result<Self, CliError> {
        let (package, range) = match text.split_once('@') {
            None => (text, None),
            Some((package, range)) => {
                let exact = olm_core::version::parse_tolerant(range).is_ok();
                let range = if exact { format!("={range}") } else { range.to_owned() };
                let read = Range::parse(&range).map_err(|e| {
                    let refused = CliError::usage(format!("{range:?} is no range of versions: {e}"));
                    refused.hint("write it as catalogs do: >=1.2.0 <2.0.0")
                })?;
                (package, Some(read))
            }
        };
        Ok(Self { package: package.to_owned(), range })
    }
}

/// What is in the namespace.
#[derive(Default)]
struct There {
    csvs: Vec<Value>,
    subscriptions: Vec<Value>,
    /// Of the OperatorGroup, when there is exactly one.
    targets: Option<String>,
}

impl There {
    fn read(options: &Options) -> Result<Self, CliError> {
        let mut there = Self::default();
        let mut groups = Vec::new();
        for given in input::read(&options.installed)? {
            let object = given.object;
            let namespace = object::namespace(&object);
            if !namespace.is_empty() && namespace != options.namespace {
                continue;
            }
            match object::text(&object, &["kind"]) {
                "ClusterServiceVersion" if object::label(&object, "olm.copiedFrom").is_none() => {
                    there.csvs.push(object);
                }
                "Subscription" => there.subscriptions.push(object),
                "OperatorGroup" => groups.push(object),
                _ => {}
            }
        }
        if let [group] = &groups[..] {
            let targets = object::list(group, &["status", "namespaces"]).iter().filter_map(Value::as_str);
            let targets: Vec<&str> = targets.collect();
            there.targets = Some(targets.join(",")).filter(|_| !targets.is_empty());
        }
        Ok(there)
    }

    fn wanted(subscription: &Value) -> Wanted<'_> {
        let spec = |key| object::text(subscription, &["spec", key]);
        Wanted {
            name: object::name(subscription),
            package: spec("name"),
            channel: spec("channel"),
            source: spec("source"),
            source_namespace: spec("sourceNamespace"),
            starting_csv: spec("startingCSV"),
            installed_csv: object::text(subscription, &["status", "installedCSV"]),
            range: None,
            busy: false,
        }
    }

    fn installed(&self) -> Result<Vec<Installed>, CliError> {
        let read = |csv: &Value| {
            let name = object::name(csv);
            let mut mine = self.subscriptions.iter().map(Self::wanted).filter(|s| s.installed_csv == name).peekable();
            let is_subscribed = mine.peek().is_some();
            let packages: std::collections::BTreeSet<&str> = mine.map(|s| s.package).collect();
            let package = packages.first().copied().filter(|_| packages.len() == 1);
            let refused = |e: olm_core::resolver::Failure| {
                CliError::input(e.to_string()).at(format_args!("ClusterServiceVersion {name}"))
            };
            Installed::of(csv, package, is_subscribed).map_err(refused)
        };
        let mut installed = self.csvs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        installed.sort_by(|a, b| a.entry.name.cmp(&b.entry.name));
        Ok(installed)
    }
}

/// A catalog, `DIR` or `NAME=DIR`. What is wrong with parts of it is told, and the rest is used.
fn load(catalog: &str, printer: &mut Printer) -> Result<(String, Snapshot), CliError> {
    let (name, directory) = match catalog.split_once('=') {
        Some((name, directory)) => (name.to_owned(), Path::new(directory)),
        None => {
            let directory = Path::new(catalog);
            let name = directory.file_name().map_or_else(|| "catalog".into(), |n| n.to_string_lossy());
            (name.into_owned(), directory)
        }
    };
    let loaded = dir::load(directory)?;
    for finding in &loaded.findings {
        printer.warn(finding);
    }
    Ok((name, loaded.snapshot))
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

    /// The answer, and what was printed.
    fn asked(wanted: &[&str], with_there: bool, what_if: &[&str], output: &str) -> (Result<Outcome, CliError>, String) {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, there) = (folder.path().join("main"), folder.path().join("there.yaml"));
        std::fs::create_dir(&catalog).unwrap();
        std::fs::write(catalog.join("catalog.yaml"), CATALOG).unwrap();
        std::fs::write(&there, THERE).unwrap();
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let options = Options {
            wanted: own(wanted),
            catalogs: vec![format!("main={}", catalog.display())],
            installed: if with_there { vec![there] } else { Vec::new() },
            namespace: "garden".to_owned(),
            what_if: own(what_if),
            output: output.parse().unwrap(),
        };
        let out = Buffer::default();
        let answer = run(&options, &mut Printer::to(out.clone(), Buffer::default()));
        (answer, out.text())
    }

    #[test]
    fn answers_and_exit_codes() {
        // The head needs what is not there: the one below it is chosen.
        let (answer, said) = asked(&["rose"], false, &[], "");
        assert_eq!(answer, Ok(Outcome::Done));
        assert!(
            said.starts_with("rose.v1.0.0 (channel stable of olm/main)\n  because Subscription garden/rose wants"),
            "{said}"
        );
        assert!(said.contains(
            "not rose.v2.0.0 (channel stable of olm/main): it would contradict: bundle rose.v2.0.0 requires"
        ));
        let (answer, said) = asked(&["rose@>=2.0.0"], false, &[], "");
        assert_eq!(answer, Ok(Outcome::Negative));
        assert!(said.contains("which nothing on offer is"), "{said}");
        let (answer, said) = asked(&["rose@1.0.0"], false, &[], "name");
        assert_eq!((answer, said.as_str()), (Ok(Outcome::Done), "rose.v1.0.0\n"));
        let (answer, said) = asked(&["tulip"], false, &[], "json");
        assert_eq!(answer, Ok(Outcome::Negative));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["kind"], &said["result"]), (&json!("Resolution"), &json!("failed")));
        assert_eq!(said["because"][1]["reason"], "noPackage");
    }

    #[test]
    fn what_is_there_counts() {
        let (answer, said) = asked(&[], true, &[], "");
        assert_eq!((answer, said.as_str()), (Ok(Outcome::Done), "Nothing to install: what is wanted is there.\n"));
        // Without its Subscription it stays, and another one of the package has no place beside it.
        let (answer, said) = asked(&["rose"], true, &["delete-subscription:mine"], "");
        assert_eq!((answer, said.as_str()), (Ok(Outcome::Done), "Nothing to install: what is wanted is there.\n"));
        let (answer, _) = asked(&[], true, &["channel:mine=fast"], "");
        assert_eq!(answer, Ok(Outcome::Negative));
    }

    #[test]
    fn questions_that_cannot_be_read() {
        for (wanted, what_if) in [(&[][..], &[][..]), (&["rose@one"], &[]), (&["rose"], &["burn:everything"])] {
            let (answer, said) = asked(wanted, false, what_if, "");
            assert!(answer.is_err() && said.is_empty(), "{wanted:?}");
        }
    }
}
