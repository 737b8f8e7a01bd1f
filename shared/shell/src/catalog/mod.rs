//! What can be asked of catalogs.

pub mod resolve;
