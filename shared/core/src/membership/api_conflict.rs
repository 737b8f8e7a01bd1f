//! The design's table of what OLM does about a member, depending on what its group, other groups, and the member itself
//! provide (olm-behaviour/operatorgroup.md#intersection).

use crate::api::cluster_service_version::reason;

/// A row of the table, and what OLM does in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiConflict {
    /// No other group provides its APIs, and the group's annotation contains all of them.
    Continue,
    /// No other group provides its APIs, and the annotation lacks some: they are added.
    Add,
    /// Like `Add`, but the group is static.
    StaticLacks,
    /// Another group provides some of its APIs, and the annotation lacks some.
    Conflict,
    /// Another group provides some of its APIs, and the annotation contains all of them: they are removed from it.
    Remove,
    /// Like `Remove`, but the group is static.
    StaticContested,
}

impl ApiConflict {
    /// Returns the row for a member. `contested`: an intersecting group provides one of its APIs. `covered`: its own
    /// group's annotation contains all of them. `is_static`: its own group is static.
    pub fn classify(contested: bool, covered: bool, is_static: bool) -> Self {
        match (contested, covered, is_static) {
            (false, true, _) => Self::Continue,
            (false, false, false) => Self::Add,
            (false, false, true) => Self::StaticLacks,
            (true, false, _) => Self::Conflict,
            (true, true, false) => Self::Remove,
            (true, true, true) => Self::StaticContested,
        }
    }

    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Continue => "Continue",
            Self::Add => "Add",
            Self::StaticLacks => "StaticLacks",
            Self::Conflict => "Conflict",
            Self::Remove => "Remove",
            Self::StaticContested => "StaticContested",
        }
    }

    /// Returns the reason of the ClusterServiceVersion's failure, if it fails.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Continue | Self::Add | Self::Remove => None,
            Self::StaticLacks | Self::StaticContested => Some(reason::STATIC_PROVIDED_APIS),
            Self::Conflict => Some(reason::CONFLICT),
        }
    }

    /// Returns the condition under which the row applies.
    pub fn condition(self) -> &'static str {
        match self {
            Self::Continue => "no other group provides its APIs, and its group's annotation contains all of them",
            Self::Add => "no other group provides its APIs, and its group's annotation lacks some",
            Self::StaticLacks => {
                "no other group provides its APIs, and its group is static and its annotation lacks some"
            }
            Self::Conflict => "another group provides some of its APIs, and its group's annotation lacks some",
            Self::Remove => "another group provides some of its APIs, and its group's annotation contains all of them",
            Self::StaticContested => {
                "another group provides some of its APIs, and its group is static and its annotation contains all of them"
            }
        }
    }

    /// Returns what OLM does about it.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Continue => "it continues",
            Self::Add => "they are added to its group's olm.providedAPIs, and it continues",
            Self::StaticLacks | Self::StaticContested => {
                "it fails (CannotModifyStaticOperatorGroupProvidedAPIs), and its Deployments are deleted"
            }
            Self::Conflict => "it fails (InterOperatorGroupOwnerConflict), and its Deployments are deleted",
            Self::Remove => {
                "they are removed from its group's olm.providedAPIs; unless the other group gives them up meanwhile, it then fails \
                 (InterOperatorGroupOwnerConflict), and its Deployments are deleted"
            }
        }
    }
}
