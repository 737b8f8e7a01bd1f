//! The table of the design: what OLM does about a member, from what its group, others, and it itself provide
//! (olm-behaviour/operatorgroup.md#intersection).

use crate::api::cluster_service_version::reason;

/// A row of the table, and what OLM does in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiConflict {
    /// Nobody else provides its APIs, and the group's annotation names them all.
    Continue,
    /// Nobody else provides its APIs, and the annotation lacks some: they are added.
    Add,
    /// The same, but the group is static.
    StaticLacks,
    /// Somebody else provides some of its APIs, and the annotation lacks some.
    Conflict,
    /// Somebody else provides some of its APIs, and the annotation names them all: they are taken out of it.
    Remove,
    /// The same, but the group is static.
    StaticContested,
}

impl ApiConflict {
    /// The row for a member: does an intersecting group provide one of its APIs, does its own group's annotation name all of them, and
    /// is that group static?
    pub fn of(contested: bool, covered: bool, is_static: bool) -> Self {
        match (contested, covered, is_static) {
            (false, true, _) => Self::Continue,
            (false, false, false) => Self::Add,
            (false, false, true) => Self::StaticLacks,
            (true, false, _) => Self::Conflict,
            (true, true, false) => Self::Remove,
            (true, true, true) => Self::StaticContested,
        }
    }

    /// Its name in documents.
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

    /// The reason with which the ClusterServiceVersion fails, if it does.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Continue | Self::Add | Self::Remove => None,
            Self::StaticLacks | Self::StaticContested => Some(reason::STATIC_PROVIDED_APIS),
            Self::Conflict => Some(reason::CONFLICT),
        }
    }

    /// When the row holds.
    pub fn condition(self) -> &'static str {
        match self {
            Self::Continue => "no other group provides its APIs, and its group names them all",
            Self::Add => "no other group provides its APIs, and its group does not name them all",
            Self::StaticLacks => {
                "no other group provides its APIs, and its group, which is static, does not name them all"
            }
            Self::Conflict => "another group provides some of its APIs, and its group does not name them all",
            Self::Remove => "another group provides some of its APIs, and its group names them all",
            Self::StaticContested => {
                "another group provides some of its APIs, and its group, which is static, names them all"
            }
        }
    }

    /// What OLM does about it.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Continue => "it goes on",
            Self::Add => "they are added to its group's olm.providedAPIs, and it goes on",
            Self::StaticLacks | Self::StaticContested => {
                "it fails (CannotModifyStaticOperatorGroupProvidedAPIs), and its Deployments are deleted"
            }
            Self::Conflict => "it fails (InterOperatorGroupOwnerConflict), and its Deployments are deleted",
            Self::Remove => {
                "they are taken out of its group's olm.providedAPIs; unless the other group gives them up meanwhile, it then fails \
                 (InterOperatorGroupOwnerConflict), and its Deployments are deleted"
            }
        }
    }
}
