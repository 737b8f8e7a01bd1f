//! Versions as rows: an update leads upwards within a column, or from the top of a column to the one on its left.
//!
//! Each version has at most one next, so that they form trees. The longest way through a tree is its first column, what joins
//! it from elsewhere stands in columns beside it. There are never more columns than the logarithm of the versions.

use std::collections::BTreeSet;

use super::{Graph, Node};

/// Rows, from the newest down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// First the versions that come to the head, and then those that do not.
    pub rows: Vec<Row>,
}

/// A version in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The node.
    pub node: usize,
    /// The column, from 0.
    pub column: usize,
    /// Does a column begin here?
    pub is_top: bool,
    /// The row of the node to which OLM takes it, when it is shown.
    pub above: Option<usize>,
}

impl Lanes {
    /// The rows of the nodes that are to be shown.
    pub fn of(graph: &Graph<'_>, is_shown: impl Fn(&Node<'_>) -> bool) -> Self {
        let nodes = graph.nodes();
        let shown: Vec<bool> = nodes.iter().map(is_shown).collect();
        let mut above: Vec<Option<usize>> = nodes
            .iter()
            .enumerate()
            .map(|(n, node)| node.next.map(|(next, _)| next).filter(|t| shown[n] && shown[*t]))
            .collect();
        cut_circles(&mut above);
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        for (node, above) in above.iter().enumerate() {
            if let Some(above) = above {
                below[*above].push(node);
            }
        }
        let mut roots: Vec<usize> = (0..nodes.len()).filter(|n| shown[*n] && above[*n].is_none()).collect();
        roots.sort_by_key(|n| (nodes[*n].name != graph.head(), !nodes[*n].arrives));
        let sizes = sizes(&roots, &below);
        let mut lanes = Self { rows: Vec::new() };
        for root in roots {
            lanes.lane(root, 0, None, &below, &sizes);
        }
        lanes
    }

    /// A column, with those that join it.
    fn lane(&mut self, top: usize, column: usize, joins: Option<usize>, below: &[Vec<usize>], sizes: &[usize]) {
        let (mut node, mut above) = (top, joins);
        loop {
            let row = self.rows.len();
            self.rows.push(Row { node, column, is_top: node == top, above });
            // Of equals the oldest goes on, which stands last.
            let Some(main) = below[node].iter().copied().max_by_key(|n| sizes[*n]) else { return };
            for side in below[node].iter().filter(|n| **n != main) {
                self.lane(*side, column + 1, Some(row), below, sizes);
            }
            (node, above) = (main, Some(row));
        }
    }
}

/// How many come through each node, itself among them.
fn sizes(roots: &[usize], below: &[Vec<usize>]) -> Vec<usize> {
    let mut order: Vec<usize> = roots.to_vec();
    let mut at = 0;
    while let Some(node) = order.get(at) {
        order.extend(&below[*node]);
        at += 1;
    }
    let mut sizes = vec![1; below.len()];
    for node in order.into_iter().rev() {
        sizes[node] += below[node].iter().map(|n| sizes[*n]).sum::<usize>();
    }
    sizes
}

/// Where updates go round in circles, the newest version is the top.
fn cut_circles(above: &mut [Option<usize>]) {
    let mut known = BTreeSet::new();
    for start in 0..above.len() {
        let (mut path, mut at) = (BTreeSet::new(), Some(start));
        while let Some(node) = at.filter(|n| !known.contains(n)) {
            if !path.insert(node) {
                above[node] = None;
                break;
            }
            at = above[node];
        }
        known.extend(path);
    }
}
