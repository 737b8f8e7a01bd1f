//! The verbs of `kubectl olm operatorgroup`.
