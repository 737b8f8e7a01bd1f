//! Time to compute which of a thousand OperatorGroups intersect in a thousand namespaces, and which conflict.

use anyhow::Result;
use olm_core::operatorgroup::intersection::Intersections;
use olm_core::world::{Reader, World};
use olm_shell::cli::Printer;
use olm_tests::bench::Times;
use serde_json::{Value, json};

const GROUPS: usize = 1_000;
const RUNS: usize = 10;

/// The namespaces that the group of a namespace targets, by index; none means all.
type Targets<'a> = &'a dyn Fn(usize) -> Vec<usize>;

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let few = |n: usize| (0..5).map(|step| (n + step * 37) % GROUPS).collect();
    let half = |n: usize| (0..GROUPS).filter(|other| (n ^ other).is_multiple_of(2)).collect();
    let cases: [(&str, Targets<'_>); 5] = [
        ("each its own", &|n| vec![n]),
        ("each five", &few),
        ("each every second one", &half),
        ("each all, by name", &|_| (0..GROUPS).collect()),
        ("all global", &|_| Vec::new()),
    ];
    for (what, targets) in cases {
        let world = world(targets);
        let mut told = (0, 0);
        let times = Times::new(RUNS, || {
            let reader = Reader::new(&world);
            let all = Intersections::from_world(&reader);
            told = (all.pairs().len(), all.clashes().len());
            Ok(())
        })?;
        let (pairs, clashes) = told;
        printer.line(format_args!("{GROUPS} groups, {what}: {pairs} pairs, {clashes} clash: {times}"))?;
    }
    Ok(())
}

/// Returns namespaces with one group each that has these targets, and a ClusterServiceVersion that provides one of ten APIs.
fn world(targets: Targets<'_>) -> World {
    let mut world = World::new();
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    let modes: Vec<Value> = modes.iter().map(|mode| json!({ "type": mode, "supported": true })).collect();
    for n in 0..GROUPS {
        let namespace = name(n);
        world.apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }));
        let targets: Vec<String> = targets(n).into_iter().map(name).collect();
        world.apply(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {
                "name": "group", "namespace": namespace, "annotations": { "olm.providedAPIs": format!("Rose{}.v1.example.com", n % 10) },
            },
            "spec": { "targetNamespaces": targets },
        }));
        let owned = json!({ "name": format!("rose{}s.example.com", n % 10), "kind": format!("Rose{}", n % 10), "version": "v1" });
        world.apply(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": "rose.v1.0.0", "namespace": namespace },
            "spec": { "customresourcedefinitions": { "owned": [owned] }, "installModes": modes },
        }));
    }
    world
}

fn name(n: usize) -> String {
    format!("namespace-{n:04}")
}
