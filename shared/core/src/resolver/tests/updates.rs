//! The graph of a channel and the resolver agree on each update.

use proptest::prelude::*;

use super::{Catalog, Inputs, catalog, installed, wanted};
use crate::catalog::graph::Graph;
use crate::resolver::{Failure, resolve};

/// Edges of an entry: what it replaces and skips, by number, and the numbers that its skipRange covers.
type Edges = (Option<u8>, Vec<u8>, Option<(u8, u8)>);

fn line(n: usize, (replaces, skips, range): &Edges) -> String {
    let mut line = format!("rose.v{n}.0.0 stable");
    if let Some(replaces) = replaces.filter(|r| usize::from(*r) != n) {
        line += &format!(" replaces=rose.v{replaces}.0.0");
    }
    let skips: Vec<String> = skips.iter().filter(|s| usize::from(**s) != n).map(|s| format!("rose.v{s}.0.0")).collect();
    if !skips.is_empty() {
        line += &format!(" skips={}", skips.join(","));
    }
    if let Some((from, to)) = range {
        line += &format!(" range=>={from}.0.0_<{to}.0.0");
    }
    line
}

fn edges() -> impl Strategy<Value = Vec<Edges>> {
    let one = (
        prop::option::weighted(0.8, 0..8_u8),
        prop::collection::vec(0..8_u8, 0..2),
        prop::option::weighted(0.3, (0..8_u8, 0..8_u8)),
    );
    prop::collection::vec(one, 1..7)
}

/// Turns most edges into chains, because few random graphs have one head.
fn chained(mut edges: Vec<Edges>) -> Vec<Edges> {
    for (n, (replaces, ..)) in edges.iter_mut().enumerate() {
        *replaces = u8::try_from(n).ok().and_then(|n| n.checked_sub(1));
    }
    edges
}

fn agree(edges: &[Edges]) -> Result<(), TestCaseError> {
    let lines: Vec<String> = edges.iter().enumerate().map(|(n, edges)| line(n, edges)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let snapshot = catalog(&lines);
    let Some(channel) = snapshot.channel("rose", "stable") else { return Ok(()) };
    let graph = Graph::new(channel);
    for at in 0..9 {
        let (there, subscription) = (format!("rose.v{at}.0.0 stable"), format!("mine rose stable at=rose.v{at}.0.0"));
        let subscriptions = wanted(&[&subscription]);
        let installed = installed(&[&there], &subscriptions);
        let point = (&installed[0].entry).into();
        let next = graph.next(point).map(|hop| hop.to.name.clone());
        let catalogs = vec![Catalog { name: "main", namespace: "olm", priority: 0, snapshot: &snapshot }];
        let inputs = Inputs { namespace: "garden", subscriptions, catalogs, broken: Vec::new(), installed };
        match resolve(&inputs) {
            Ok(resolution) => {
                let chosen = resolution
                    .bundles
                    .iter()
                    .map(|b| b.entry.name.clone())
                    .find(|name| *name != format!("rose.v{at}.0.0"));
                prop_assert_eq!(&next, &chosen, "from {} of {:#?}", at, lines);
            }
            Err(Failure::Error(why)) => prop_assert_eq!(Some(why), graph.problem().map(ToString::to_string)),
            Err(other) => prop_assert!(false, "{} from {} of {:#?}", other, at, lines),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_edges(edges in edges()) {
        agree(&edges)?;
    }

    #[test]
    fn chains_with_shortcuts(edges in edges()) {
        agree(&chained(edges))?;
    }
}
