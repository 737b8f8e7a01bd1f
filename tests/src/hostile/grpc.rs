//! A hostile catalog over gRPC with endless lists and oversized messages.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures::{Stream, StreamExt, stream};
use olm_shell::registry::proto::registry_server::{Registry, RegistryServer};
use olm_shell::registry::proto::{
    Bundle, Channel, ChannelEntry, GetAllProvidersRequest, GetAllReplacementsRequest, GetBundleInChannelRequest,
    GetBundleRequest, GetDefaultProviderRequest, GetLatestProvidersRequest, GetPackageRequest, GetReplacementRequest,
    ListBundlesRequest, ListPackageRequest, Package, PackageName, Property,
};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// The hostile behaviour of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hostility {
    /// None: one package with one bundle.
    None,
    /// Endless bundles.
    EndlessBundles,
    /// Endless bundles whose properties are megabytes in size.
    EndlessProperties,
    /// Endless bundles whose properties are short texts that decode to large values.
    EndlessValues,
    /// A bundle with an endless list of empty `skips`.
    EndlessSkips,
    /// A single message above the size limit.
    LargeMessage,
    /// A list that starts and never continues.
    Silent,
    /// A list that is aborted.
    BreaksOff,
    /// A package with a huge number of channels.
    LargePackage,
}

/// A hostile catalog on loopback that runs as long as the runtime.
#[derive(Clone, Debug)]
pub struct Catalog {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
    said: Arc<Mutex<Option<Said>>>,
}

/// The configured content of a catalog.
#[derive(Debug)]
struct Said {
    bundles: Vec<Bundle>,
    packages: Vec<Package>,
}

impl Catalog {
    /// Starts serving.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn start(hostility: Hostility) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let catalog = Self { address, sent: Arc::default(), said: Arc::default() };
        let service = Service { hostility, sent: catalog.sent.clone(), said: catalog.said.clone() };
        let serving = tonic::transport::Server::builder()
            .add_service(RegistryServer::new(service))
            .serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(async move { drop(serving.await) });
        Ok(catalog)
    }

    /// `host:port`
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sets the content to serve from now on.
    pub fn say(&self, bundles: Vec<Bundle>, packages: Vec<Package>) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(Said { bundles, packages });
    }

    /// Returns how many messages of endless lists were sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

struct Service {
    hostility: Hostility,
    sent: Arc<AtomicU64>,
    said: Arc<Mutex<Option<Said>>>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Returns a bundle of one package.
fn bundle(number: u64) -> Bundle {
    Bundle {
        csv_name: format!("rose.v1.{number}.0"),
        package_name: "rose".to_owned(),
        channel_name: "stable".to_owned(),
        version: format!("1.{number}.0"),
        bundle_path: "registry.example.com/rose:1".to_owned(),
        ..Bundle::default()
    }
}

impl Service {
    fn bundle(&self, number: u64) -> Bundle {
        let mut bundle = bundle(number);
        let mut property = |value: String| bundle.properties.push(Property { r#type: "note".to_owned(), value });
        match self.hostility {
            Hostility::EndlessProperties => property(format!("\"{}\"", "x".repeat(1 << 20))),
            Hostility::EndlessValues => property(format!("[{}{{}}]", "{},".repeat(100_000))),
            Hostility::EndlessSkips => bundle.skips = vec![String::new(); 100_000],
            Hostility::LargeMessage => bundle.csv_json = "x".repeat(20 << 20),
            _ => {}
        }
        bundle
    }
}

#[tonic::async_trait]
impl Registry for Service {
    type ListPackagesStream = Answers<PackageName>;
    type GetChannelEntriesThatReplaceStream = Answers<ChannelEntry>;
    type GetChannelEntriesThatProvideStream = Answers<ChannelEntry>;
    type GetLatestChannelEntriesThatProvideStream = Answers<ChannelEntry>;
    type ListBundlesStream = Answers<Bundle>;

    async fn list_bundles(&self, _: Request<ListBundlesRequest>) -> Result<Response<Self::ListBundlesStream>, Status> {
        if let Some(said) = &*self.said.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Response::new(Box::pin(stream::iter(said.bundles.clone().into_iter().map(Ok)))));
        }
        let one = self.bundle(0);
        let first = stream::iter([Ok(one.clone())]);
        let sent = self.sent.clone();
        Ok(Response::new(match self.hostility {
            Hostility::None | Hostility::LargePackage | Hostility::LargeMessage => Box::pin(first),
            Hostility::Silent => Box::pin(first.chain(stream::pending())),
            Hostility::BreaksOff => Box::pin(first.chain(stream::iter([Err(Status::aborted("cut"))]))),
            _ => Box::pin(stream::iter(0_u64..).map(move |number| {
                sent.fetch_add(1, Ordering::Relaxed);
                Ok(Bundle { csv_name: format!("rose.v1.{number}.0"), ..one.clone() })
            })),
        }))
    }

    async fn get_package(&self, request: Request<GetPackageRequest>) -> Result<Response<Package>, Status> {
        let name = request.into_inner().name;
        if let Some(said) = &*self.said.lock().unwrap_or_else(PoisonError::into_inner) {
            let found = said.packages.iter().find(|package| package.name == name).cloned();
            return found.map(Response::new).ok_or_else(|| Status::not_found(name));
        }
        let channel = |n: u32| Channel { name: format!("c{n}"), csv_name: bundle(0).csv_name, deprecation: None };
        let channels = match self.hostility {
            Hostility::LargePackage => (0..300_000).map(channel).collect(),
            _ => vec![Channel { name: "stable".to_owned(), ..channel(0) }],
        };
        Ok(Response::new(Package { name, channels, default_channel_name: "stable".to_owned(), deprecation: None }))
    }

    async fn list_packages(
        &self,
        _: Request<ListPackageRequest>,
    ) -> Result<Response<Self::ListPackagesStream>, Status> {
        Err(Status::unimplemented("not requested"))
    }

    async fn get_bundle(&self, _: Request<GetBundleRequest>) -> Result<Response<Bundle>, Status> {
        Err(Status::unimplemented("not requested"))
    }

    async fn get_bundle_for_channel(&self, _: Request<GetBundleInChannelRequest>) -> Result<Response<Bundle>, Status> {
        Err(Status::unimplemented("not requested"))
    }

    async fn get_channel_entries_that_replace(
        &self,
        _: Request<GetAllReplacementsRequest>,
    ) -> Result<Response<Self::GetChannelEntriesThatReplaceStream>, Status> {
        Err(Status::unimplemented("not requested"))
    }

    async fn get_bundle_that_replaces(&self, _: Request<GetReplacementRequest>) -> Result<Response<Bundle>, Status> {
        Err(Status::unimplemented("not requested"))
    }

    async fn get_channel_entries_that_provide(
        &self,
        _: Request<GetAllProvidersRequest>,
    ) -> Result<Response<Self::GetChannelEntriesThatProvideStream>, Status> {
        Err(Status::unimplemented("not requested"))
    }

    async fn get_latest_channel_entries_that_provide(
        &self,
        _: Request<GetLatestProvidersRequest>,
    ) -> Result<Response<Self::GetLatestChannelEntriesThatProvideStream>, Status> {
        Err(Status::unimplemented("not requested"))
    }

    async fn get_default_bundle_that_provides(
        &self,
        _: Request<GetDefaultProviderRequest>,
    ) -> Result<Response<Bundle>, Status> {
        Err(Status::unimplemented("not requested"))
    }
}
