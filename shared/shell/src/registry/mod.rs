//! Catalogs as the shell reads them.

pub mod dir;
