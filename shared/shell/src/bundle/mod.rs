//! `kubectl olm bundle`: bundles from plain manifests, and images of bundles.
//!
//! ```text
//!   synthesize   manifests, metadata --olm_core::bundle::synthesis--> a ClusterServiceVersion, or the files of a bundle
//!     input        reads the manifests and olm.yaml      ─ questions    asks for what olm.yaml does not state
//!     carried      what a bundle states beside these: package, channels, dependencies, properties
//!     known_apis   the APIs of a cluster and of catalogs
//!     files        the files of a bundle, in each format ─ merge        joins them with what was changed by hand
//!     package_manifest   edits the package's file of a directory of package manifests
//!   build        a bundle directory --directory, image::build, delivery--> an OCI layout, an archive, a registry
//!   push         an OCI layout, an archive --delivery--> a registry
//!   unpack       an image --image::pull--> a bundle directory
//!   validate     bundles --olm_core::validate--> findings
//! ```

pub mod build;
mod carried;
mod directory;
mod files;
mod input;
mod known_apis;
mod merge;
mod options;
mod package_manifest;
pub mod push;
mod questions;
pub mod synthesize;
pub mod unpack;
pub mod validate;
