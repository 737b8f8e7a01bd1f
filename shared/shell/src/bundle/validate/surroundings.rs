//! What lies outside of the validated bundles: previous versions, and the images in registries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use olm_core::validate::{self, Identity, Platform, Previous};

use super::against::Against;
use crate::blocking::block_on;
use crate::cli::CliError;
use crate::image::{self, Limits, Location};

/// Number of images that are inspected at once.
const AT_ONCE: usize = 8;
/// Timeout of the inspection of one image.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The platforms of an image, or why it cannot be inspected.
type Inspected = Result<BTreeSet<Platform>, String>;

/// The surroundings of all bundles of a run.
pub(super) struct Surroundings<'a> {
    /// What to compare with.
    pub(super) against: Option<&'a Against>,
    /// How images are read.
    pub(super) images: &'a image::Options,
    /// The images that other bundles have as well.
    pub(super) inspected: &'a Mutex<BTreeMap<String, Inspected>>,
    /// Why there is no previous version.
    pub(super) uncompared: Option<String>,
}

impl validate::Surroundings for Surroundings<'_> {
    fn previous(&mut self, identity: &Identity) -> Option<Previous> {
        match self.against?.previous(identity, self.images) {
            Ok(Ok(previous)) => return Some(previous),
            Ok(Err(why)) => self.uncompared = Some(why),
            Err(error) => self.uncompared = Some(error.to_string()),
        }
        None
    }

    fn platforms(&mut self, images: &BTreeSet<&str>) -> BTreeMap<String, Inspected> {
        let known = || self.inspected.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: BTreeMap<String, Inspected> = BTreeMap::new();
        found.extend(
            known().iter().filter(|(image, _)| images.contains(image.as_str())).map(|(i, p)| (i.clone(), p.clone())),
        );
        let missing: Vec<&str> = images.iter().copied().filter(|image| !found.contains_key(*image)).collect();
        let options = image::Options { limits: Limits { total: TIMEOUT, ..self.images.limits }, ..self.images.clone() };
        let inspected = block_on::<_, CliError>(async {
            let each = missing.iter().map(|image| async { ((*image).to_owned(), inspect(image, &options).await) });
            Ok(stream::iter(each).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await)
        });
        let inspected = inspected.unwrap_or_default();
        known().extend(inspected.iter().cloned());
        found.extend(inspected);
        found
    }
}

async fn inspect(image: &str, options: &image::Options) -> Inspected {
    let reference = image.parse().map_err(|e| format!("invalid reference: {e}"))?;
    let platforms = image::platforms(&Location::Registry(reference), options).await.map_err(|e| e.to_string())?;
    Ok(platforms.into_iter().map(|(os, architecture)| Platform::new(os, architecture)).collect())
}
