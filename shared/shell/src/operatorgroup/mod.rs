//! The verbs of `kubectl olm operatorgroup`.
//!
//! ```text
//!   observe --ClusterState--> intersect   which groups get into each other's way
//!                     compile     the group that an operator needs, and its rights   <-- operator    a bundle, or a package of a catalog
//!                       |
//!                     create      where it can be     --+
//!                     delete      what nobody needs   --+--> managed    what both go by, and say
//!                     lint        everything that is wrong with groups
//!                     named       which group is meant
//! ```

pub mod compile;
pub mod create;
pub mod delete;
pub mod intersect;
pub mod lint;
mod lookup;
mod managed;
pub mod operator;
