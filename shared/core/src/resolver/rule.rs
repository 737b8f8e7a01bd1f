//! The rules of a resolution: what must hold of its variables.

/// Something that must hold, and how to say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// What must hold.
    pub(super) says: Says,
    /// In words.
    pub(super) message: String,
    /// Among several contradictions that of rules with less weight is told.
    pub(super) weight: u8,
}

/// What must hold of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// It is chosen.
    Chosen(usize),
    /// It is not chosen.
    Never(usize),
    /// When the first is chosen, so is one of the others; earlier ones are preferred.
    OneOf(usize, Vec<usize>),
    /// Not both are chosen.
    NotBoth(usize, usize),
    /// At most so many of them are chosen.
    AtMost(usize, Vec<usize>),
}

impl Says {
    /// Does it hold of that choice?
    pub(super) fn holds(&self, is: impl Fn(&usize) -> bool) -> bool {
        match self {
            Self::Chosen(variable) => is(variable),
            Self::Never(variable) => !is(variable),
            Self::OneOf(variable, others) => !is(variable) || others.iter().any(is),
            Self::NotBoth(a, b) => !(is(a) && is(b)),
            Self::AtMost(most, members) => members.iter().filter(|m| is(m)).count() <= *most,
        }
    }
}
