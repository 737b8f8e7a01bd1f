//! How the actions of a plan follow each other.

use std::ops::Range;

/// How the actions of a plan follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One after the other: the first that is refused ends the plan.
    #[default]
    OneByOne,
    /// In batches of so many, and what is left one by one. All of a batch are tried; the first batch of which any is refused ends
    /// the plan, and what is not done of it is tried again together.
    Batches(Vec<usize>),
    /// In any order, each whatever becomes of the others.
    Any,
}

impl Order {
    /// Which of so many actions may be in flight together, in the order in which they may be begun.
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
        assert_eq!(of(Order::Batches(vec![2, 3]), 4), [2, 2], "some were left out");
        assert_eq!(of(Order::Any, 0), [] as [usize; 0]);
        assert_eq!(of(Order::OneByOne, 0), [] as [usize; 0]);
    }
}
