//! `kubectl olm bundle`: bundles from plain manifests, and images of bundles.
//!
//! ```text
//!   synthesize   manifests, metadata --olm_core::bundle::synthesis--> a ClusterServiceVersion, or the files of a bundle
//!     input        reads the manifests and olm.yaml      ─ questions    asks for what olm.yaml does not state
//!     known_apis   the APIs of a cluster and of catalogs
//!     files        the files of a bundle, in each format ─ merge        joins them with what was changed by hand
//!     package_manifest   edits the package's file of a directory of package manifests
//!   build        a bundle directory --directory, image::build--> an OCI layout, an archive, a registry
//!   push         an OCI layout, an archive --image::push--> a registry
//!   unpack       an image --image::pull--> a bundle directory
//!     registries   the credentials for registries        ─ report       the description of an image with -o
//!   validate     bundles --olm_core::validate--> findings
//! ```

pub mod build;
mod directory;
mod files;
mod input;
mod known_apis;
mod merge;
mod options;
mod package_manifest;
pub mod push;
mod questions;
mod registries;
mod report;
pub mod synthesize;
pub mod unpack;
pub mod validate;

use crate::blocking::block_on;
use crate::cli::{CliError, signal};

/// Runs a future until it ends, or returns nothing after a signal: temporary files are then deleted.
fn interruptible<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<Option<T>, CliError> {
    block_on(async {
        tokio::select! {
            ended = future => ended.map(Some),
            () = signal::stopped() => Ok(None),
        }
    })
}
