//! Documents about bundles: bundle build, push, synthesize and validate.

use schemars::JsonSchema;

use super::shared::Finding;

forms! {
    /// An image of a bundle: bundle build and bundle push.
    BundleImage {
        /// The name, as given by the user.
        reference: Option<String>,
        #[schemars(flatten)] manifest: ImageBlob,
        /// The configurations and layers.
        blobs: Vec<ImageBlob>,
    }
    /// A manifest, configuration or layer of an image.
    ImageBlob {
        /// Media type of the content, as in the OCI image specification.
        media_type: String,
        /// Digest of the content, `sha256:HEX`.
        digest: String,
        /// Size of the content in bytes.
        size: u64,
    }
    /// Where each object of plain manifests goes: bundle synthesize --account.
    BundleAccount {
        /// Every object of the manifests, in the order of the input.
        objects: Vec<AccountEntry>,
        /// What the bundle cannot contain, or contains only in part.
        findings: Vec<Finding>,
    }
    /// An object of the manifests, and where the bundle contains it.
    AccountEntry {
        /// Path of the file that contains the object.
        file: String,
        /// The line on which the object begins.
        line: u64,
        /// The object as `Kind/namespace/name`.
        object: String,
        /// Empty if the object is not carried; it then has a finding.
        destinations: Vec<Destination>,
    }
    /// A place in the bundle to which an object, or a part of it, goes.
    Destination {
        /// A field of the ClusterServiceVersion, an object that OLM generates, or the manifests of the bundle.
        r#type: DestinationType,
        /// The path of the field, or what is generated.
        value: Option<String>,
    }
    /// The findings about bundles: bundle validate.
    BundleValidation {
        /// Whether no finding has the severity of --fail-on.
        passed: bool,
        /// The bundles that were validated.
        bundles: Vec<ValidatedBundle>,
        /// The findings about all bundles, without those in the baseline.
        findings: Vec<Finding>,
        /// The number of findings that the baseline omitted.
        in_baseline: u64,
    }
    /// A bundle, and the number of its findings.
    ValidatedBundle {
        /// The directory or image, as given by the user.
        path: String,
        /// The name of the ClusterServiceVersion.
        name: String,
        /// The package, from the annotations of the bundle.
        package: String,
        /// The number of findings with severity error.
        errors: u64,
        /// The number of findings with severity warning.
        warnings: u64,
    }
}

/// The type of a place in a bundle.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) enum DestinationType {
    /// A field of the ClusterServiceVersion.
    Field,
    /// An object that OLM creates from the ClusterServiceVersion.
    Generated,
    /// A file in the manifests of the bundle.
    Bundle,
}
