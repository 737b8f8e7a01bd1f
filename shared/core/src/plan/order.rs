//! The order of the actions of a plan.

use std::ops::Range;

/// The order of the actions of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One by one. The first refusal ends the plan.
    #[default]
    OneByOne,
    /// In batches of these sizes, and the remaining actions one by one. All actions of a batch are tried. The first batch with a refusal
    /// ends the plan, and its remaining actions are retried together.
    Batches(Vec<usize>),
    /// In any order, independently of each other.
    Any,
}

impl Order {
    /// Returns the ranges of actions that may be executed concurrently, in the order in which they may be started.
    pub fn batches(&self, actions: usize) -> Vec<Range<usize>> {
        let sizes = match self {
            Self::Any => &[actions][..],
            Self::Batches(sizes) => sizes,
            Self::OneByOne => &[],
        };
        let mut batches = Vec::new();
        let mut begin = 0;
        for size in sizes.iter().copied().chain(std::iter::repeat(1)) {
            let end = (begin + size).min(actions);
            if begin < end {
                batches.push(begin..end);
            }
            if end == actions {
                return batches;
            }
            begin = end;
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_in_one_batch() {
        let of = |order: Order, actions| order.batches(actions).into_iter().map(|b| b.len()).collect::<Vec<_>>();
        assert_eq!(of(Order::OneByOne, 3), [1, 1, 1]);
        assert_eq!(of(Order::Any, 3), [3]);
        assert_eq!(of(Order::Batches(vec![2, 0, 3]), 7), [2, 3, 1, 1]);
        assert_eq!(of(Order::Batches(vec![2, 3]), 4), [2, 2], "some actions were removed");
        assert_eq!(of(Order::Any, 0), [] as [usize; 0]);
        assert_eq!(of(Order::OneByOne, 0), [] as [usize; 0]);
    }
}
