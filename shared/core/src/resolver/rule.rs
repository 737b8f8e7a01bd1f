//! The rules of a resolution: constraints on its variables.

/// A rule with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The constraint.
    pub(super) formula: Formula,
    /// The message.
    pub(super) message: String,
    /// Of several contradictions the one with rules of less weight is reported.
    pub(super) weight: u8,
}

/// A constraint on variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Formula {
    /// The variable is chosen.
    Chosen(usize),
    /// The variable is not chosen.
    Never(usize),
    /// If the first is chosen, so is one of the others; earlier ones are preferred.
    OneOf(usize, Vec<usize>),
    /// At most one of both is chosen.
    NotBoth(usize, usize),
    /// At most that many of them are chosen.
    AtMost(usize, Vec<usize>),
}

impl Formula {
    /// Returns whether the constraint holds for that choice.
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
