//! Output for programs: JSON, YAML and Graphviz.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use olm_core::api::object;
use olm_core::operatorgroup::intersection::{Clash, Holder, Pair};
use olm_core::operatorgroup::remedy;
use serde_json::{Value, json};

use super::{Answer, text};
use crate::cli::output::API_VERSION;

/// Returns the report as one document.
pub(super) fn document(answer: &Answer<'_, '_>) -> Value {
    let involved: BTreeSet<usize> = answer.pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
    let asked = answer.asked.clone().unwrap_or_else(|| (0..answer.all.scopes().len()).collect());
    let groups: Vec<Value> = involved.union(&asked).map(|at| group(answer, *at)).collect();
    let pairs: Vec<Value> = answer.pairs.iter().map(|pair| intersection(answer, *pair)).collect();
    json!({
        "apiVersion": API_VERSION,
        "kind": "OperatorGroupIntersections",
        "groups": groups,
        "intersections": pairs,
        "conflicts": answer.clashes.len(),
    })
}

fn named(answer: &Answer<'_, '_>, at: usize) -> Value {
    let group = answer.all.scopes()[at].group;
    json!({ "namespace": group.namespace(), "name": group.name() })
}

fn group(answer: &Answer<'_, '_>, at: usize) -> Value {
    let scope = &answer.all.scopes()[at];
    let mut document = named(answer, at);
    let members: Vec<Value> = answer
        .all
        .member_effects(at)
        .into_iter()
        .zip(&scope.members)
        .map(|(effect, member)| {
            json!({
                "name": object::name(effect.csv),
                "provides": member.provides.0,
                "conflictingAPIs": effect.contested.0,
                "conflictsWith": effect.others.iter().map(|other| named(answer, *other)).collect::<Vec<_>>(),
                "case": effect.row.name(),
                "condition": effect.row.condition(),
                "consequence": effect.row.consequence(),
                "reason": effect.row.reason(),
            })
        })
        .collect();
    for (key, value) in [
        ("created", json!(scope.created.map(object::time))),
        ("global", scope.is_global().into()),
        ("targetNamespaces", if scope.is_global() { Value::Null } else { json!(scope.targets) }),
        ("static", scope.group.is_static().into()),
        ("providedAPIs", json!(scope.annotated.0)),
        ("members", members.into()),
    ] {
        document[key] = value;
    }
    document
}

fn intersection(answer: &Answer<'_, '_>, pair: Pair) -> Value {
    let mut document = json!({
        "groups": [named(answer, pair.a), named(answer, pair.b)],
        // `null` means all namespaces.
        "namespaces": answer.all.shared(pair),
        "first": answer.all.first(pair).map(|at| named(answer, at)),
        "apis": [],
    });
    let Some(apis) = answer.clashes.get(&pair) else { return document };
    let held = |api: &String| {
        let holders = match answer.all.holder(pair, api) {
            Holder::One(at) => vec![at],
            Holder::Both => vec![pair.a, pair.b],
            Holder::None => Vec::new(),
        };
        json!({ "api": api, "providedBy": holders.into_iter().map(|at| named(answer, at)).collect::<Vec<_>>() })
    };
    document["apis"] = apis.iter().map(held).collect();
    document["messages"] = json!(text::verdicts(answer, pair, apis));
    let clash = Clash { pair, apis: apis.clone() };
    let remedies = remedy::remedies(answer.world, answer.all, &clash);
    document["remedies"] =
        remedies.iter().map(|r| json!({ "description": r.description, "command": r.command })).collect();
    document
}

/// Returns a graph of the groups: intersecting groups are connected, in red if they conflict.
pub(super) fn dot(answer: &Answer<'_, '_>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
    let mut dot = String::from("graph operatorgroups {\n  node [shape=box];\n");
    let mut line = |words: String| writeln!(dot, "  {words}").unwrap_or_default();
    let involved: BTreeSet<usize> = answer.pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
    for at in involved.iter().chain(answer.asked.iter().flatten()).collect::<BTreeSet<_>>() {
        let shape = if answer.all.scopes()[*at].is_global() { " [peripheries=2]" } else { "" };
        line(format!("{}{shape};", quoted(&answer.label(*at))));
    }
    for pair in &answer.pairs {
        let ends = [pair.a, pair.b].map(|at| quoted(&answer.label(at)));
        let place = match answer.all.shared(*pair).as_deref() {
            None => "all namespaces".to_owned(),
            Some([one]) => (*one).to_owned(),
            Some(many) => format!("{} namespaces", many.len()),
        };
        let style = match answer.clashes.get(pair) {
            Some(apis) => format!("label={}, color=red", quoted(&format!("{}\n{place}", apis.join("\n")))),
            None => format!("label={}, style=dashed", quoted(&place)),
        };
        line(format!("{} -- {} [{style}];", ends[0], ends[1]));
    }
    dot.push_str("}\n");
    dot
}
