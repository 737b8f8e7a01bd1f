//! The registry's protocol in both directions: responses of a server to our client, and requests of clients to our server.

use std::net::SocketAddr;
use std::sync::{Mutex, OnceLock, PoisonError};

use futures::StreamExt;
use olm_core::catalog::Snapshot;
use olm_shell::registry::client::{self, Settings};
use olm_shell::registry::proto::registry_client::RegistryClient;
use olm_shell::registry::proto::{
    Bundle, GetAllProvidersRequest, GetAllReplacementsRequest, GetBundleInChannelRequest, GetBundleRequest,
    GetDefaultProviderRequest, GetLatestProvidersRequest, GetPackageRequest, GetReplacementRequest, ListPackageRequest,
    Package,
};
use olm_shell::registry::server::Server;
use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tonic::transport::{Channel, Endpoint};

use crate::hostile::grpc::{Catalog, Hostility};

/// Maximum size of a catalog in bytes, including its size in memory.
const MOST: usize = 64 << 10;

/// Responses of a server, and requests of a client.
#[derive(Clone, PartialEq, Message)]
struct Input {
    /// The server's list of bundles.
    #[prost(message, repeated, tag = "1")]
    bundles: Vec<Bundle>,
    /// The server's list of packages.
    #[prost(message, repeated, tag = "2")]
    packages: Vec<Package>,
    /// Names that a client requests from our server.
    #[prost(string, repeated, tag = "3")]
    names: Vec<String>,
}

/// Reads a catalog with that content over gRPC, serves the result, and reads that again.
///
/// # Panics
/// The content read from our server is not the content that it serves.
pub(super) fn run(bytes: &[u8]) {
    let Ok(Input { bundles, packages, names }) = Input::decode(bytes) else { return };
    let both = both();
    let mut both = both.lock().unwrap_or_else(PoisonError::into_inner);
    both.round_trip(bundles, packages, &names);
}

/// A server with configured responses, our own server, and a client of each.
struct Both {
    runtime: Runtime,
    theirs: Catalog,
    their_channel: Channel,
    our_channel: Channel,
    snapshots: watch::Sender<Snapshot>,
    _ours: Server,
}

fn both() -> &'static Mutex<Both> {
    static BOTH: OnceLock<Mutex<Both>> = OnceLock::new();
    BOTH.get_or_init(|| {
        let both = Both::start();
        assert!(both.is_ok(), "{:?}", both.err());
        Mutex::new(both.unwrap_or_else(|_| unreachable!("it was asserted")))
    })
}

impl Both {
    fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (theirs, ours, snapshots, their_channel, our_channel) = runtime.block_on(async {
            let theirs = Catalog::start(Hostility::None).await?;
            let (snapshots, served) = watch::channel(Snapshot::default());
            let ours = Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), served).await?;
            let their_channel = connect(&theirs.address())?;
            let our_channel = connect(&ours.address().to_string())?;
            anyhow::Ok((theirs, ours, snapshots, their_channel, our_channel))
        })?;
        Ok(Self { runtime, theirs, their_channel, our_channel, snapshots, _ours: ours })
    }

    fn round_trip(&mut self, bundles: Vec<Bundle>, packages: Vec<Package>, names: &[String]) {
        let size: usize = bundles.iter().map(Message::encoded_len).sum();
        // Objects in properties are not served again.
        let objects = ["olm.bundle.object", "olm.csv.metadata"];
        let is_same = !bundles.iter().flat_map(|b| &b.properties).any(|p| objects.contains(&p.r#type.as_str()));
        self.theirs.say(bundles, packages);
        let settings = Settings { max_catalog: MOST, ..Settings::default() };
        let read = self.runtime.block_on(client::read(self.their_channel.clone(), &settings));
        let Ok(snapshot) = read else { return };
        assert!(size <= MOST, "a catalog of {size} bytes was read");
        self.snapshots.send_replace(snapshot.clone());
        // The served catalog is slightly larger, because dependencies and properties are written again.
        let settings = Settings { max_catalog: 100 * MOST, ..settings };
        let again = self.runtime.block_on(client::read(self.our_channel.clone(), &settings));
        assert!(again.is_ok(), "{:?}", again.err());
        let again = again.unwrap_or_default();
        if is_same {
            same(&snapshot, &again);
        }
        let mut client = RegistryClient::new(self.our_channel.clone());
        self.runtime.block_on(ask(&mut client, &snapshot, names));
    }
}

/// Checks that the served catalog is unchanged; packages without a bundle are not requested.
fn same(snapshot: &Snapshot, again: &Snapshot) {
    for (name, package) in snapshot.packages().iter().filter(|(_, package)| package.entries().next().is_some()) {
        assert_eq!(again.package(name), Some(package));
        for entry in package.entries().filter(|entry| entry.bundle_path.is_empty()) {
            let content = |of: &Snapshot| of.bundle(&entry.package, &entry.channel, &entry.name);
            assert_eq!(content(again), content(snapshot));
        }
    }
}

fn connect(address: &str) -> anyhow::Result<Channel> {
    Ok(Endpoint::try_from(format!("http://{address}"))?.connect_lazy())
}

/// Sends every request with these names. Streams are read to their end.
async fn ask(client: &mut RegistryClient<Channel>, snapshot: &Snapshot, names: &[String]) {
    let known = snapshot.entries().flat_map(|e| [e.package.clone(), e.channel.clone(), e.name.clone()]);
    let mut names: Vec<String> = names.iter().cloned().chain(known).take(6).collect();
    names.resize(3, String::new());
    let [a, b, c] = [0, 1, 2].map(|n| names[n].clone());
    let packages = client.list_packages(ListPackageRequest {}).await;
    assert!(packages.is_ok());
    if let Ok(packages) = packages {
        assert_eq!(packages.into_inner().count().await, snapshot.packages().len());
    }
    let package = client.get_package(GetPackageRequest { name: a.clone() }).await;
    assert_eq!(package.is_ok(), snapshot.package(&a).is_some());
    let request = GetBundleRequest { pkg_name: a.clone(), channel_name: b.clone(), csv_name: c.clone() };
    assert_eq!(client.get_bundle(request).await.is_ok(), snapshot.entry(&a, &b, &c).is_some());
    let request = GetBundleInChannelRequest { pkg_name: a.clone(), channel_name: b.clone() };
    let _ = client.get_bundle_for_channel(request).await;
    let request = GetReplacementRequest { csv_name: c.clone(), pkg_name: a.clone(), channel_name: b.clone() };
    let _ = client.get_bundle_that_replaces(request).await;
    if let Ok(found) = client.get_channel_entries_that_replace(GetAllReplacementsRequest { csv_name: c.clone() }).await
    {
        let _ = found.into_inner().count().await;
    }
    let request =
        GetAllProvidersRequest { group: a.clone(), version: b.clone(), kind: c.clone(), plural: String::new() };
    if let Ok(found) = client.get_channel_entries_that_provide(request).await {
        let _ = found.into_inner().count().await;
    }
    let request =
        GetLatestProvidersRequest { group: a.clone(), version: b.clone(), kind: c.clone(), plural: String::new() };
    if let Ok(found) = client.get_latest_channel_entries_that_provide(request).await {
        let _ = found.into_inner().count().await;
    }
    let request = GetDefaultProviderRequest { group: a, version: b, kind: c, plural: String::new() };
    let _ = client.get_default_bundle_that_provides(request).await;
}
