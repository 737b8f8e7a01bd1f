//! The description of an image that `-o json` and `-o yaml` print.

use serde_json::{Value, json};

use crate::cli::flags::DataFormat;
use crate::cli::output::API_VERSION;
use crate::cli::{CliError, Printer};
use crate::image::{Built, Part, Pushable};

/// A description of an image.
pub(crate) struct ImageReport {
    digest: String,
    document: Value,
}

impl ImageReport {
    /// Describes a built image.
    pub(crate) fn of_built(image: &Built, reference: Option<&str>) -> Self {
        let part = |blob: &crate::image::Blob| Part {
            media_type: blob.media_type.to_owned(),
            digest: blob.digest.clone(),
            size: blob.bytes.len() as u64,
        };
        Self::new(&part(&image.manifest), &[part(&image.config), part(&image.layer)], reference)
    }

    /// Describes an image that was pushed.
    pub(crate) fn of_pushable(image: &Pushable, reference: Option<&str>) -> Self {
        let none = Part { media_type: String::new(), digest: String::new(), size: 0 };
        Self::new(&image.manifest().unwrap_or(none), &image.blobs(), reference)
    }

    fn new(manifest: &Part, blobs: &[Part], reference: Option<&str>) -> Self {
        let part = |part: &Part| json!({ "mediaType": part.media_type, "digest": part.digest, "size": part.size });
        let mut document = part(manifest);
        document["apiVersion"] = API_VERSION.into();
        document["kind"] = "BundleImage".into();
        document["blobs"] = blobs.iter().map(part).collect();
        if let Some(reference) = reference {
            document["reference"] = reference.into();
        }
        Self { digest: manifest.digest.clone(), document }
    }

    /// Prints the digest, or the description.
    pub(crate) fn print(&self, format: Option<DataFormat>, printer: &mut Printer) -> Result<(), CliError> {
        match format {
            None => printer.line(&self.digest),
            Some(format) => format.print(printer, &self.document),
        }
    }
}
