//! `api.Registry`: the responses of `opm serve`, from a [`Snapshot`] (olm-behaviour/opm.md#registry-protocol).
//!
//! A new snapshot is used for the next request; running responses continue with the old one. Errors have gRPC's code `Unknown` and
//! opm's texts, because clients match on them.

use std::collections::BTreeSet;
use std::pin::Pin;

use futures::Stream;
use futures::stream;
use olm_core::api::object::Gvk;
use olm_core::catalog::{Channel, Entry, Package, Snapshot};
use olm_core::go_format::quote;
use olm_core::version;
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use super::super::convert;
use super::super::proto::registry_server::Registry;
use super::super::proto::{
    Bundle, ChannelEntry, GetAllProvidersRequest, GetAllReplacementsRequest, GetBundleInChannelRequest,
    GetBundleRequest, GetDefaultProviderRequest, GetLatestProvidersRequest, GetPackageRequest, GetReplacementRequest,
    ListBundlesRequest, ListPackageRequest, Package as PackageMessage, PackageName,
};

/// The service.
pub(super) struct Service {
    pub(super) snapshots: watch::Receiver<Snapshot>,
}

/// A stream of messages.
pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Returns a streaming response. Its messages are created as they are sent.
pub(super) fn answers<T: Send + 'static>(items: impl Iterator<Item = T> + Send + 'static) -> Response<Answers<T>> {
    Response::new(Box::pin(stream::iter(items.map(Ok))))
}

/// The API in a request.
struct Api {
    gvk: Gvk,
}

impl Api {
    fn new(group: String, version: String, kind: String) -> Self {
        Self { gvk: Gvk { group, version, kind } }
    }

    fn provided_by(&self, entry: &Entry) -> bool {
        entry.provided_apis.contains(&self.gvk)
    }

    fn not_provided(&self, what: &str) -> Status {
        let Gvk { group, version, kind } = &self.gvk;
        let [group, version, kind] = [group, version, kind].map(|t| quote(t));
        Status::unknown(format!("no {what} group:{group} version:{version} kind:{kind}"))
    }
}

impl Service {
    fn snapshot(&self) -> Snapshot {
        self.snapshots.borrow().clone()
    }
}

fn no_package(name: &str) -> Status {
    Status::unknown(format!("package {} not found", quote(name)))
}

fn channel_of<'a>(snapshot: &'a Snapshot, package: &str, channel: &str) -> Result<&'a Channel, Status> {
    let found = snapshot.package(package).ok_or_else(|| no_package(package))?;
    found
        .channel(channel)
        .ok_or_else(|| Status::unknown(format!("package {}, channel {} not found", quote(package), quote(channel))))
}

fn entry_of<'a>(channel: &'a Channel, package: &str, name: &str) -> Result<&'a Entry, Status> {
    channel.entry(name).ok_or_else(|| {
        let [package, channel, name] = [package, &channel.name, name].map(quote);
        Status::unknown(format!("package {package}, channel {channel}, bundle {name} not found"))
    })
}

/// Returns a bundle with its objects and without its edges. If its objects cannot be read again, returns an error, because a bundle
/// without them would be a different one.
fn whole(snapshot: &Snapshot, entry: &Entry) -> Result<Response<Bundle>, Status> {
    let mut bundle = with_content(snapshot, entry, true)?;
    bundle.replaces.clear();
    bundle.skips.clear();
    Ok(Response::new(bundle))
}

/// Returns a bundle as in the list of all bundles: with its edges, and with its objects unless an image contains them.
fn listed(snapshot: &Snapshot, entry: &Entry) -> Result<Bundle, Status> {
    with_content(snapshot, entry, entry.bundle_path.is_empty())
}

fn with_content(snapshot: &Snapshot, entry: &Entry, is_wanted: bool) -> Result<Bundle, Status> {
    let mut bundle = convert::bundle(entry);
    if is_wanted {
        let content = snapshot.read_bundle(&entry.package, &entry.channel, &entry.name);
        let gone = |why: String| Status::unavailable(format!("bundle {} cannot be served: {why}", quote(&entry.name)));
        if let Some(content) = content.map_err(gone)? {
            convert::add_content(&mut bundle, &content);
        }
    }
    Ok(bundle)
}

fn channel_entry(entry: &Entry, replaces: &str) -> ChannelEntry {
    ChannelEntry {
        package_name: entry.package.clone(),
        channel_name: entry.channel.clone(),
        bundle_name: entry.name.clone(),
        replaces: replaces.to_owned(),
    }
}

fn heads(package: &Package) -> impl Iterator<Item = (&Channel, &Entry)> {
    package.channels.iter().filter_map(|c| Some((c, c.entry(&c.head)?)))
}

/// Returns an entry once for the entry that it replaces, and once for each other entry that it skips and `wanted` accepts.
fn provider(entry: &Entry, wanted: impl Fn(&str) -> bool) -> Vec<ChannelEntry> {
    let skips = entry.skips.iter().map(String::as_str).filter(|skip| wanted(skip));
    let edges: BTreeSet<&str> = skips.chain([entry.replaces.as_deref().unwrap_or_default()]).collect();
    edges.into_iter().map(|edge| channel_entry(entry, edge)).collect()
}

#[tonic::async_trait]
impl Registry for Service {
    type ListPackagesStream = Answers<PackageName>;
    type GetChannelEntriesThatReplaceStream = Answers<ChannelEntry>;
    type GetChannelEntriesThatProvideStream = Answers<ChannelEntry>;
    type GetLatestChannelEntriesThatProvideStream = Answers<ChannelEntry>;
    type ListBundlesStream = Answers<Bundle>;

    async fn list_packages(
        &self,
        _: Request<ListPackageRequest>,
    ) -> Result<Response<Self::ListPackagesStream>, Status> {
        let names: Vec<String> = self.snapshot().packages().keys().cloned().collect();
        Ok(answers(names.into_iter().map(|name| PackageName { name })))
    }

    async fn get_package(&self, request: Request<GetPackageRequest>) -> Result<Response<PackageMessage>, Status> {
        let name = request.into_inner().name;
        let snapshot = self.snapshot();
        let package = snapshot.package(&name).ok_or_else(|| no_package(&name))?;
        Ok(Response::new(convert::package(package)))
    }

    async fn get_bundle(&self, request: Request<GetBundleRequest>) -> Result<Response<Bundle>, Status> {
        let GetBundleRequest { pkg_name, channel_name, csv_name } = request.into_inner();
        let snapshot = self.snapshot();
        let channel = channel_of(&snapshot, &pkg_name, &channel_name)?;
        whole(&snapshot, entry_of(channel, &pkg_name, &csv_name)?)
    }

    async fn get_bundle_for_channel(
        &self,
        request: Request<GetBundleInChannelRequest>,
    ) -> Result<Response<Bundle>, Status> {
        let GetBundleInChannelRequest { pkg_name, channel_name } = request.into_inner();
        let snapshot = self.snapshot();
        let channel = channel_of(&snapshot, &pkg_name, &channel_name)?;
        whole(&snapshot, entry_of(channel, &pkg_name, &channel.head)?)
    }

    async fn get_channel_entries_that_replace(
        &self,
        request: Request<GetAllReplacementsRequest>,
    ) -> Result<Response<Self::GetChannelEntriesThatReplaceStream>, Status> {
        let name = request.into_inner().csv_name;
        let snapshot = self.snapshot();
        let found: Vec<ChannelEntry> = snapshot
            .entries()
            .filter(|e| replaces(e, &name))
            .map(|e| channel_entry(e, e.replaces.as_deref().unwrap_or_default()))
            .collect();
        if found.is_empty() {
            return Err(Status::unknown(format!("no channel entries found that replace {name}")));
        }
        Ok(answers(found.into_iter()))
    }

    async fn get_bundle_that_replaces(
        &self,
        request: Request<GetReplacementRequest>,
    ) -> Result<Response<Bundle>, Status> {
        let GetReplacementRequest { csv_name, pkg_name, channel_name } = request.into_inner();
        let snapshot = self.snapshot();
        if snapshot.package(&pkg_name).is_none() {
            return Err(Status::unknown(format!("package {pkg_name} not found")));
        }
        let channel = channel_of(&snapshot, &pkg_name, &channel_name)?;
        // Of several, opm returns any one; the newest is returned here.
        let newest = |a: &&Entry, b: &&Entry| match (&a.version, &b.version) {
            (Some(a), Some(b)) => version::compare(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        let found = channel.entries.iter().filter(|e| replaces(e, &csv_name)).max_by(newest);
        let entry = found.ok_or_else(|| {
            let [package, channel] = [&pkg_name, &channel_name].map(|t| quote(t));
            Status::unknown(format!("no entry found for package {package}, channel {channel}"))
        })?;
        whole(&snapshot, entry)
    }

    async fn get_channel_entries_that_provide(
        &self,
        request: Request<GetAllProvidersRequest>,
    ) -> Result<Response<Self::GetChannelEntriesThatProvideStream>, Status> {
        let GetAllProvidersRequest { group, version, kind, plural: _ } = request.into_inner();
        let api = Api::new(group, version, kind);
        let snapshot = self.snapshot();
        let found: Vec<ChannelEntry> =
            snapshot.entries().filter(|e| api.provided_by(e)).flat_map(|e| provider(e, |_| true)).collect();
        if found.is_empty() {
            return Err(api.not_provided("channel entries found that provide"));
        }
        Ok(answers(found.into_iter()))
    }

    async fn get_latest_channel_entries_that_provide(
        &self,
        request: Request<GetLatestProvidersRequest>,
    ) -> Result<Response<Self::GetLatestChannelEntriesThatProvideStream>, Status> {
        let GetLatestProvidersRequest { group, version, kind, plural: _ } = request.into_inner();
        let api = Api::new(group, version, kind);
        let snapshot = self.snapshot();
        let found: Vec<ChannelEntry> = snapshot
            .packages()
            .values()
            .flat_map(heads)
            .filter(|(_, head)| api.provided_by(head))
            .flat_map(|(channel, head)| provider(head, |skip| channel.entry(skip).is_some()))
            .collect();
        if found.is_empty() {
            return Err(api.not_provided("channel entries found that provide"));
        }
        Ok(answers(found.into_iter()))
    }

    async fn get_default_bundle_that_provides(
        &self,
        request: Request<GetDefaultProviderRequest>,
    ) -> Result<Response<Bundle>, Status> {
        let GetDefaultProviderRequest { group, version, kind, plural: _ } = request.into_inner();
        let api = Api::new(group, version, kind);
        let snapshot = self.snapshot();
        let mut providers = snapshot.packages().values().flat_map(heads).filter(|(_, head)| api.provided_by(head));
        let mut any = false;
        let found = providers.find(|(_, head)| {
            any = true;
            head.is_default_channel
        });
        match found {
            Some((_, head)) => whole(&snapshot, head),
            None if any => Err(api.not_provided("entry found that provides")),
            None => Err(api.not_provided("channel entries found that provide")),
        }
    }

    async fn list_bundles(&self, _: Request<ListBundlesRequest>) -> Result<Response<Self::ListBundlesStream>, Status> {
        let snapshot = self.snapshot();
        let packages: Vec<String> = snapshot.packages().keys().cloned().collect();
        // Only the messages of one package at a time are in memory.
        Ok(Response::new(Box::pin(stream::iter(packages.into_iter().flat_map(move |name| {
            let entries = snapshot.package(&name).into_iter().flat_map(Package::entries);
            entries.map(|e| listed(&snapshot, e)).collect::<Vec<_>>()
        })))))
    }
}

fn replaces(entry: &Entry, name: &str) -> bool {
    entry.replaces.as_deref().unwrap_or_default() == name || entry.skips.iter().any(|skip| skip == name)
}
