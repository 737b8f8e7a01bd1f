//! `kubectl olm bundle`: bundles from plain manifests.
//!
//! ```text
//!   synthesize   manifests, metadata --olm_core::bundle::synthesis--> a ClusterServiceVersion, or the files of a bundle
//! ```

pub mod synthesize;
