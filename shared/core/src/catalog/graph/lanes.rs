//! Layout of versions in rows and columns: an update leads upwards within a column, or from the top of a column to the one
//! on its left.
//!
//! Each version has at most one update, so the versions form trees. The longest path of a tree is its first column;
//! branches are in the columns to its right. The number of columns is at most logarithmic in the number of versions.

use std::collections::BTreeSet;

use super::{Graph, Node};

/// Rows, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// First the versions that reach the head, then those that do not.
    pub rows: Vec<Row>,
}

/// A version and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The node.
    pub node: usize,
    /// The column, starting at 0.
    pub column: usize,
    /// Whether a column begins at this row.
    pub is_top: bool,
    /// The row of the node to which OLM updates it, when that row is shown.
    pub above: Option<usize>,
}

impl Lanes {
    /// Computes the rows of the nodes for which `is_shown` returns true.
    pub fn new(graph: &Graph<'_>, is_shown: impl Fn(&Node<'_>) -> bool) -> Self {
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
        roots.sort_by_key(|n| (nodes[*n].name != graph.head(), !nodes[*n].reaches_head));
        let sizes = sizes(&roots, &below);
        let mut lanes = Self { rows: Vec::new() };
        for root in roots {
            lanes.lane(root, 0, None, &below, &sizes);
        }
        lanes
    }

    /// Adds a column and the columns that join it.
    fn lane(&mut self, top: usize, column: usize, joins: Option<usize>, below: &[Vec<usize>], sizes: &[usize]) {
        let (mut node, mut above) = (top, joins);
        loop {
            let row = self.rows.len();
            self.rows.push(Row { node, column, is_top: node == top, above });
            // Of branches of equal size the oldest, which is last, continues the column.
            let Some(main) = below[node].iter().copied().max_by_key(|n| sizes[*n]) else { return };
            for side in below[node].iter().filter(|n| **n != main) {
                self.lane(*side, column + 1, Some(row), below, sizes);
            }
            (node, above) = (main, Some(row));
        }
    }
}

/// Returns for each node how many nodes update through it, including itself.
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

/// Breaks cycles of updates: the newest version of a cycle becomes its top.
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
