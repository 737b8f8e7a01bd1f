//! The commands of `kubectl olm operatorgroup`.
//!
//! ```text
//!   observe --ClusterState--> intersect   which groups conflict
//!                     compile     generates the group that an operator needs   <-- operator    a bundle, or a package of a catalog
//!                       |
//!                     create      creates it where possible    --+
//!                     delete      deletes an unused group      --+--> create_delete    shared by both
//!                     lint        checks groups for problems
//!                     lookup      finds groups
//! ```

pub mod compile;
pub mod create;
mod create_delete;
pub mod delete;
pub mod intersect;
pub mod lint;
mod lookup;
pub mod operator;
