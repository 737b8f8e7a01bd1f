//! `kubectl olm operatorgroup intersect`: reports which groups intersect and conflict.
//!
//! ```text
//!   observe --ClusterState--> install   resolves the given Subscriptions
//!                       |
//!                 Intersections --chosen--> Answer --> text      sentences, a table, a matrix
//!                                                  --> document  json, yaml, dot
//! ```

mod document;
mod install;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::ValueEnum;
use olm_core::api::object;
use olm_core::operatorgroup::intersection::{Intersections, Pair};
use olm_core::operatorgroup::spec_errors;
use olm_core::world::Reader;

use super::lookup;
use crate::blocking::block_on;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::source::warn_of_gaps;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;
use crate::observe::{ClusterState, ReadFailure, ReadScope};

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// OperatorGroups, `NAME` or `NAMESPACE/NAME`; one is compared with all others, several with each other.
    pub groups: Vec<String>,
    /// The source of the objects.
    pub source: SourceFlags,
    /// The namespaces whose groups to compare, without names.
    pub namespaces: NamespaceFlags,
    /// Files with objects to treat as applied; without names, the groups that they affect are compared.
    pub on_top: Vec<PathBuf>,
    /// How images of catalogs and bundles are pulled.
    pub images: image::Options,
    /// The form of the answer.
    pub format: Format,
}

/// An output format of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table of the intersecting groups, and the effect of every conflict.
    #[default]
    Text,
    /// As text, with all namespaces and all pairs.
    Wide,
    /// A matrix of all groups.
    Matrix,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// Graphviz.
    Dot,
}

/// The content of the report.
struct Answer<'a, 'w> {
    world: &'a Reader<'w>,
    all: &'a Intersections<'w>,
    /// The selected groups; `None` means all.
    asked: Option<BTreeSet<usize>>,
    /// The intersecting pairs of these.
    pairs: Vec<Pair>,
    /// The APIs on which pairs conflict.
    clashes: BTreeMap<Pair, Vec<String>>,
    /// The pair, if exactly two groups were named.
    is_one_pair: Option<Pair>,
    /// Whether all relevant objects could be read.
    is_complete: bool,
}

/// Compares groups. The outcome is negative if intersecting groups provide the same APIs, and unknown if none do but
/// not all objects could be read.
///
/// # Errors
/// OperatorGroups cannot be read, or a named one does not exist.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Options { groups, source, namespaces, on_top, images, format } = options;
    let (state, is_complete) = block_on(async {
        let mut state = source.read(namespaces, on_top, ReadScope::Groups, printer).await?;
        warn_of_gaps(&state, printer);
        let is_complete = !state.read_failures.iter().any(hides_claims);
        let is_resolved = install::add(&mut state, images, printer).await?;
        Ok::<_, CliError>((state, is_complete && is_resolved))
    })?;
    let world = Reader::new(&state.world);
    let all = Intersections::from_world(&world);
    for group in all.scopes().iter().map(|scope| scope.group) {
        for error in spec_errors::spec_errors(group.json) {
            printer.warn(format_args!(
                "the API server would reject OperatorGroup {}/{}: {}",
                group.namespace(),
                group.name(),
                error.what
            ));
        }
    }
    let answer = Answer { is_complete, ..answer(&world, &all, &state, options, groups)? };
    match format {
        Format::Text | Format::Wide => text::print(&answer, &state, *format == Format::Wide, printer)?,
        Format::Matrix => printer.data(text::matrix(&answer))?,
        Format::Json => printer.json(&document::document(&answer))?,
        Format::Yaml => printer.yaml(&document::document(&answer))?,
        Format::Dot => printer.data(document::dot(&answer))?,
    }
    Ok(match (answer.clashes.is_empty(), is_complete) {
        (false, _) => Outcome::Negative,
        (true, true) => Outcome::Done,
        (true, false) => Outcome::Unknown,
    })
}

/// Returns whether the unreadable objects may contain groups, namespaces that they select, or APIs of their members.
fn hides_claims(failure: &ReadFailure) -> bool {
    failure.is_of("operatorgroups") || failure.is_of("clusterserviceversions") || failure.resource == "namespaces"
}

fn answer<'a, 'w>(
    world: &'a Reader<'w>,
    all: &'a Intersections<'w>,
    state: &ClusterState,
    options: &Options,
    names: &[String],
) -> Result<Answer<'a, 'w>, CliError> {
    let named = names.iter().map(|name| lookup::group(all, state, name)).collect::<Result<BTreeSet<_>, _>>()?;
    let asked = match named.len() {
        0 => about(all, state, options),
        1 if names.len() > 1 => {
            return Err(CliError::usage("the same OperatorGroup is named twice")
                .hint("name two groups, or one to compare it with all others"));
        }
        _ => Some(named),
    };
    // One group is compared with all others, several with each other, and those of a namespace or a file with all.
    let among = names.len() > 1;
    let is_asked = |pair: &Pair| match &asked {
        None => true,
        Some(asked) if among => asked.contains(&pair.a) && asked.contains(&pair.b),
        Some(asked) => asked.contains(&pair.a) || asked.contains(&pair.b),
    };
    let clashes = all.clashes().into_iter().filter(|clash| is_asked(&clash.pair));
    let is_one_pair = asked.iter().filter(|asked| among && asked.len() == 2).find_map(|asked| {
        let mut both = asked.iter().copied();
        Some(Pair::new(both.next()?, both.next()?))
    });
    Ok(Answer {
        world,
        all,
        pairs: all.pairs().into_iter().filter(is_asked).collect(),
        clashes: clashes.map(|clash| (clash.pair, clash.apis)).collect(),
        asked,
        is_one_pair,
        is_complete: true,
    })
}

/// Returns the groups to compare without names: those that the files affect, else those of the namespace; `None` means all.
fn about(all: &Intersections<'_>, state: &ClusterState, options: &Options) -> Option<BTreeSet<usize>> {
    if options.namespaces.all_namespaces {
        return None;
    }
    let of = |is_meant: &dyn Fn(&str, &str) -> bool| {
        let meant = all.scopes().iter().enumerate().filter(|(_, s)| is_meant(s.group.namespace(), s.group.name()));
        meant.map(|(at, _)| at).collect::<BTreeSet<usize>>()
    };
    let is_on_top = |namespace: &str, name: &str| {
        state.on_top.iter().any(|o| match o.gvk.kind.as_str() {
            "OperatorGroup" => (o.namespace.as_str(), o.name.as_str()) == (namespace, name),
            "ClusterServiceVersion" | "Subscription" => o.namespace == namespace,
            "Namespace" => all.find(namespace, name).is_some_and(|at| all.scopes()[at].targets.contains(&o.name)),
            _ => false,
        })
    };
    let on_top = of(&is_on_top);
    if !on_top.is_empty() {
        return Some(on_top);
    }
    state.namespace.as_ref().map(|wanted| of(&|namespace, _| namespace == wanted))
}

impl Answer<'_, '_> {
    /// Returns `NAMESPACE/NAME` of a group.
    fn label(&self, at: usize) -> String {
        let group = self.all.scopes()[at].group;
        format!("{}/{}", group.namespace(), group.name())
    }

    /// Returns the name of the ClusterServiceVersion with its namespace.
    fn csv(&self, at: usize, csv: &serde_json::Value) -> String {
        format!("{}/{}", self.all.scopes()[at].group.namespace(), object::name(csv))
    }
}
