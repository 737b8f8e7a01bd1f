//! Time to lint a thousand OperatorGroups in a thousand namespaces, with 1,500 operators.

use anyhow::Result;
use jiff::Timestamp;
use olm_core::lint::{Known, lint};
use olm_core::world::World;
use olm_shell::cli::Printer;
use olm_tests::bench::Times;
use serde_json::{Value, json};

const GROUPS: usize = 1_000;
const OPERATORS: usize = 1_500;
/// The number of different operators: the fewer, the more of them conflict.
const KINDS: usize = 40;
const RUNS: usize = 10;

/// Returns the spec of a namespace's group.
type Spec<'a> = &'a dyn Fn(usize) -> Value;

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let of_team = |n: usize| json!({ "selector": { "matchLabels": { "team": team(n) } } });
    let mixed = |n: usize| match n % 3 {
        0 => of_team(n),
        1 => named(n..n + 20),
        _ => named(n..=n),
    };
    let cases: [(&str, Spec<'_>); 4] = [
        ("each its own", &|n| named(n..=n)),
        ("by team, by name and its own in turn", &mixed),
        ("each by one of fifty teams", &of_team),
        ("all global", &|_| json!({})),
    ];
    for (what, spec) in cases {
        let world = world(spec);
        let mut found = 0;
        let times = Times::new(RUNS, || {
            found = lint(&world, &Known::everything(), Timestamp::UNIX_EPOCH).problems.len();
            Ok(())
        })?;
        printer.line(format_args!("{GROUPS} groups, {what}: {found} findings: {times}"))?;
    }
    Ok(())
}

fn named(numbers: impl IntoIterator<Item = usize>) -> Value {
    let names: Vec<String> = numbers.into_iter().map(|n| name(n % GROUPS)).collect();
    json!({ "targetNamespaces": names })
}

/// Returns the namespaces of fifty teams with one group each, and operators.
fn world(spec: Spec<'_>) -> World {
    let mut world = World::new();
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    let modes: Vec<Value> = modes.iter().map(|mode| json!({ "type": mode, "supported": true })).collect();
    for n in 0..GROUPS {
        let labels = json!({ "team": team(n) });
        world.apply(
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name(n), "labels": labels } }),
        );
        world.apply(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": { "name": "group", "namespace": name(n) }, "spec": spec(n),
        }));
    }
    for n in 0..OPERATORS {
        let kind = format!("Rose{}", n % KINDS);
        let owned = json!({ "name": format!("{}s.example.com", kind.to_lowercase()), "kind": kind, "version": "v1" });
        world.apply(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": format!("rose.v{n}"), "namespace": name(n % GROUPS) },
            "spec": { "installModes": modes, "customresourcedefinitions": { "owned": [owned] } },
        }));
    }
    world
}

fn team(n: usize) -> String {
    format!("t{}", n % 50)
}

fn name(n: usize) -> String {
    format!("namespace-{n:04}")
}
