//! Reads the state of a cluster, or of files instead of it, as the flags state.

use std::path::PathBuf;

use super::connect::connect_in;
use super::error::CliError;
use super::flags::{NamespaceFlags, SourceFlags};
use super::streams::Printer;
use crate::image;
use crate::observe::{self, ClusterState, Overlay, ReadScope};

impl SourceFlags {
    /// Reads the cluster or the files that the flags name. `on_top` are files whose objects are treated as applied.
    ///
    /// # Errors
    /// The flags contradict each other, or the source cannot be read.
    pub async fn read(
        &self,
        namespaces: &NamespaceFlags,
        on_top: &[PathBuf],
        scope: ReadScope,
        printer: &mut Printer,
    ) -> Result<ClusterState, CliError> {
        if !self.from.is_empty() {
            return self.read_files(namespaces, on_top, printer);
        }
        let progress = printer.progress("reading the cluster");
        let (api, namespace) = connect_in(&self.cluster, namespaces.namespace.as_deref()).await?;
        let namespace = (!namespaces.all_namespaces).then_some(namespace);
        let mut warnings = Vec::new();
        let warn = &mut |words| warnings.push(words);
        let read = observe::read_cluster(api, namespace, scope, &self.overlay(on_top), warn).await;
        drop(progress);
        for words in warnings {
            printer.warn(words);
        }
        Ok(read?)
    }

    /// Reads only files; without any, the state has only the given catalogs.
    ///
    /// # Errors
    /// The files cannot be read, or the flags name a cluster.
    pub fn read_files(
        &self,
        namespaces: &NamespaceFlags,
        on_top: &[PathBuf],
        printer: &mut Printer,
    ) -> Result<ClusterState, CliError> {
        if self.cluster.is_given() {
            return Err(CliError::usage("objects are read from files or from a cluster, not from both")
                .hint("leave out either --from or the cluster options such as --context"));
        }
        let namespace = if namespaces.all_namespaces { None } else { namespaces.namespace.clone() };
        Ok(observe::read_files(&self.from, namespace, &self.overlay(on_top), &mut |words| printer.warn(words))?)
    }

    fn overlay<'a>(&'a self, on_top: &'a [PathBuf]) -> Overlay<'a> {
        Overlay { on_top, catalogs: &self.catalogs, catalog_namespace: self.catalog_namespace.as_deref() }
    }
}

/// Reads the catalogs that a namespace can use, and reports progress.
pub(crate) async fn read_catalogs(
    state: &mut ClusterState,
    namespace: &str,
    images: &image::Options,
    printer: &Printer,
) {
    let progress = printer.progress("reading catalogs");
    state.read_catalogs(namespace, images, &|doing| progress.doing(doing)).await;
}

/// Warns of everything that could not be read.
pub(crate) fn warn_of_gaps(state: &ClusterState, printer: &mut Printer) {
    for failure in &state.read_failures {
        printer.warn(format_args!("{failure}; the result is incomplete"));
    }
}
