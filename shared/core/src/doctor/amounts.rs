//! Finds what there is too much of: copies of ClusterServiceVersions, and InstallPlans.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Context;
use super::rule::{COSTLY_COPIES, OLD_INSTALL_PLANS};
use crate::api::cluster_service_version::Csv;
use crate::api::kinds;
use crate::api::labels::TARGET_NAMESPACES;
use crate::api::object;
use crate::copiedcsv::config;
use crate::finding::Severity;
use crate::lint::{Change, Problem};
use crate::listing::{count, shortened};
use crate::world::kind;

/// The number of copies, and of bytes, from which they are reported.
const MANY: usize = 1000;
const LARGE: usize = 50 << 20;
/// The number of bytes from which they are a warning: the default limit of etcd's database is 2 GiB.
const HUGE: usize = 512 << 20;

/// The number of InstallPlans of a namespace that OLM retains (olm-behaviour/installplan.md#garbage-collection), and the number from
/// which they are reported: plans are deleted after others were created.
const RETAINED: usize = 5;
const MANY_PLANS: usize = 20;

/// The copies of ClusterServiceVersions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// Their number.
    pub count: usize,
    /// Their size in bytes, estimated by that of the originals.
    pub bytes: usize,
    /// Number and bytes by original, namespace and name.
    by_original: BTreeMap<(String, String), (usize, usize)>,
}

/// Counts the copies. Their content is that of the original.
pub(super) fn copies(context: &Context<'_>) -> Copies {
    let mut copies = Copies::default();
    for copy in context.all(&kind::COPIED_CSV) {
        let original = (Csv::new(copy).copied_from().unwrap_or_default().to_owned(), object::name(copy).to_owned());
        copies.by_original.entry(original).or_default().0 += 1;
        copies.count += 1;
    }
    for ((namespace, name), (number, bytes)) in &mut copies.by_original {
        let original = context.world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name);
        *bytes = *number * original.map_or(0, |original| original.to_string().len());
        copies.bytes += *bytes;
    }
    copies
}

pub(super) fn check(context: &Context<'_>, copies: &Copies, found: &mut Vec<Problem>) {
    found.extend(costly(context, copies));
    let mut plans: BTreeMap<&str, usize> = BTreeMap::new();
    for plan in context.all(&kind::INSTALL_PLAN) {
        *plans.entry(object::namespace(plan)).or_default() += 1;
    }
    for (namespace, number) in plans.into_iter().filter(|(_, number)| *number >= MANY_PLANS) {
        let message =
            format!("it has {number} InstallPlans; OLM retains {RETAINED} of a namespace and deletes older ones");
        let what = match context.controllers {
            Some(false) => "run controllers of OLM, which delete them",
            _ => "check that the controllers of OLM run, and may delete InstallPlans",
        };
        found.push(Problem::about(&OLD_INSTALL_PLANS, kinds::NAMESPACE.object("", namespace), message).advise(what));
    }
}

fn costly(context: &Context<'_>, copies: &Copies) -> Option<Problem> {
    if copies.count < MANY && copies.bytes < LARGE {
        return None;
    }
    let mut largest: Vec<_> = copies.by_original.iter().collect();
    largest.sort_by_key(|(_, (number, bytes))| std::cmp::Reverse((*bytes, *number)));
    let largest: Vec<String> = largest
        .into_iter()
        .map(|((namespace, name), (number, bytes))| format!("{number} of {namespace}/{name} ({})", size(*bytes)))
        .collect();
    let message = format!(
        "{} of ClusterServiceVersions take {} in etcd: {}",
        count(copies.count, "copy").replace("copys", "copies"),
        size(copies.bytes),
        shortened(&largest)
    );
    let severity = if copies.bytes >= HUGE { Severity::Warning } else { Severity::Info };
    let target = kinds::OLM_CONFIG.object("", config::NAME);
    let problem = Problem::about(&COSTLY_COPIES, target.clone(), message).severity(severity);
    let is_global = |(namespace, name): &(String, String)| {
        let original = context.world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name);
        original.and_then(|original| object::annotation(original, TARGET_NAMESPACES)) == Some("")
    };
    if config::disables_copies(&context.world) || !copies.by_original.keys().any(is_global) {
        return Some(
            problem.advise(
                "watch fewer namespaces: only the copies of operators that watch all namespaces can be disabled",
            ),
        );
    }
    let settings = json!({ "spec": { "features": { "disableCopiedCSVs": true } } });
    let change = match context.world.json(&kind::OLM_CONFIG, "", config::NAME) {
        Some(_) => Change::Patch(target, settings),
        None => {
            let mut object: Value = target.to_object();
            object["spec"] = settings["spec"].clone();
            Change::Apply(vec![object])
        }
    };
    Some(problem.propose(
        "disable the copies of operators that watch all namespaces; users then do not see these in their namespaces",
        change,
    ))
}

/// Formats a number of bytes.
fn size(bytes: usize) -> String {
    match bytes {
        0 => "unknown size".to_owned(),
        n if n < 1 << 20 => format!("{} KiB", n.div_ceil(1 << 10)),
        n => format!("{} MiB", n >> 20),
    }
}
