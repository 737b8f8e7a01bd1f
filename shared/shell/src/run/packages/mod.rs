//! `--packages`: serves the aggregated API of PackageManifests behind the API server.
//!
//! ```text
//!   Server --start--> Serving    content   the catalogs of the loop, as a Store of PackageManifests
//!                                register  certificate, Service and APIService, as long as this process holds the Lease
//!                                listen    connections and requests over TLS
//!                                access    the user of a request, and the user's permissions
//! ```
//!
//! *Guarantees.* Only the API server, with its client certificate, gets a response. A request is answered only if the API server
//! authorizes its user. Connections, requests and watches are limited in number and in time. An APIService that belongs to
//! another server is not changed.

mod access;
mod content;
mod listen;
mod register;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use olm_core::packages::serve::Store;
use tokio::net::{TcpListener, UdpSocket, lookup_host};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::access::Access;
use self::register::Registration;
pub(super) use self::register::clean;
use super::is_in_pod;
use crate::cli::{CliError, ErrorKind};
use crate::cluster::api::Api;
use crate::cluster::lease::Permit;
use crate::cluster::live::CatalogsSender;

/// Addresses for documentation (RFC 5737, RFC 3849), which no machine has: the route to them is the default route.
const OUTSIDE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Where the API server reaches this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackagesAddress(Option<(String, u16)>);

impl FromStr for PackagesAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = text.rsplit_once(':').ok_or("expected HOST:PORT")?;
        let port = port.parse().map_err(|_| format!("{port:?} is not a port"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err("expected HOST:PORT, with a host that the API server can reach".to_owned());
        }
        Ok(Self(Some((host.to_owned(), port))))
    }
}

impl PackagesAddress {
    /// Returns the IP address and port. `server` is the URL of the API server.
    async fn resolved(&self, server: &str) -> Result<SocketAddr, CliError> {
        let hint = async |refused: Option<IpAddr>| {
            let hint = "state an address of this machine that the API server can reach: --packages-address ";
            match candidate().await.filter(|ip| Some(*ip) != refused) {
                Some(ip) => format!("{hint}HOST:PORT, for example --packages-address {}", SocketAddr::new(ip, 0)),
                None => format!("{hint}HOST:PORT"),
            }
        };
        let found = match &self.0 {
            Some((host, port)) => {
                let found = lookup_host((host.as_str(), *port)).await;
                let found = found.map_err(|e| CliError::new(ErrorKind::Io, format!("unknown host {host:?}: {e}")))?;
                let mut found: Vec<SocketAddr> = found.collect();
                found.sort_by_key(|address| (is_local(address.ip()), address.is_ipv6()));
                found.first().copied()
            }
            None => route(server).await.ok().map(|ip| SocketAddr::new(ip, 0)),
        };
        match found {
            Some(address) if !is_local(address.ip()) => Ok(address),
            Some(address) => {
                let ip = address.ip();
                let message = format!(
                    "the API server cannot reach this process at {ip}, which is an address of the machine for itself"
                );
                Err(CliError::usage(message).at("--packages").hint(hint(Some(ip)).await))
            }
            None => {
                let message = "cannot determine the address at which the API server reaches this process";
                Err(CliError::usage(message).at("--packages").hint(hint(None).await))
            }
        }
    }
}

/// Returns whether only the machine itself reaches this address. The API server refuses it as the address of a Service.
fn is_local(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || is_link_local
}

/// Returns the address of this machine on the route to the API server. Sends nothing.
async fn route(server: &str) -> Result<IpAddr, std::io::Error> {
    let url: http::Uri = server.parse().map_err(std::io::Error::other)?;
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let mut last = std::io::Error::other("the host has no address");
    for address in lookup_host((host, url.port_u16().unwrap_or(443))).await? {
        match source(address).await {
            Ok(local) => return Ok(local),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Returns the address of this machine on the route to another. Sends nothing.
async fn source(address: SocketAddr) -> Result<IpAddr, std::io::Error> {
    let any = if address.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(address).await?;
    Ok(socket.local_addr()?.ip())
}

/// Returns the address of this machine on its default route, which a control plane in containers of this machine reaches, too.
async fn candidate() -> Option<IpAddr> {
    for outside in OUTSIDE {
        if let Some(ip) = source(SocketAddr::new(outside, 443)).await.ok().filter(|ip| !is_local(*ip)) {
            return Some(ip);
        }
    }
    None
}

/// A server that listens and does not respond yet.
pub(super) struct Server {
    api: Api,
    socket: TcpListener,
    registration: Registration,
    catalogs: CatalogsSender,
    namespace: String,
}

impl Server {
    /// Listens, and reads how the API server authenticates itself. `namespace` is that of global catalogs, and of the Service.
    ///
    /// # Errors
    /// The address cannot be used, the API server does not support aggregated APIs, or another server serves the API.
    pub(super) async fn prepare(
        api: &Api,
        server: &str,
        namespace: &str,
        address: &PackagesAddress,
    ) -> Result<Self, CliError> {
        let mut address = address.resolved(server).await?;
        let any = if address.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let listening = SocketAddr::new(any, address.port());
        let failed = |e: std::io::Error| CliError::new(ErrorKind::Io, format!("cannot listen: {e}")).at(listening);
        let socket = TcpListener::bind(listening).await.map_err(failed)?;
        address.set_port(socket.local_addr().map_err(failed)?.port());
        let registration = Registration::prepare(api.clone(), namespace, address).await?;
        let (namespace, catalogs) = (namespace.to_owned(), watch::Sender::new(None));
        Ok(Self { api: api.clone(), socket, registration, catalogs, namespace })
    }

    /// Returns the receiver of the catalogs of the loop.
    pub(super) fn catalogs(&self) -> CatalogsSender {
        self.catalogs.clone()
    }

    /// Starts to serve, and registers this process as long as it has the permit to write.
    pub(super) fn start(self, permit: Permit) -> Serving {
        // Later than the revisions of any former process that did not change more than a package in a microsecond.
        let first = u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default();
        let store = watch::Sender::new(Store::new(&self.namespace, first));
        let registration = Arc::new(self.registration);
        let access = Access::new(self.api, registration.front_proxy());
        let mut tasks = JoinSet::new();
        let listening = listen::Shared::new(store.subscribe(), access);
        tasks.spawn(listen::serve(self.socket, registration.tls(), listening));
        tasks.spawn(content::follow(self.catalogs.subscribe(), store));
        let kept = registration.clone();
        tasks.spawn(async move { kept.keep(permit).await });
        Serving { tasks, registration }
    }
}

/// A running server.
pub(super) struct Serving {
    tasks: JoinSet<()>,
    registration: Arc<Registration>,
}

impl Serving {
    /// Ends the server. Outside of the cluster no process is expected to continue it, and an APIService without a server blocks the
    /// deletion of namespaces, so that it is deleted.
    pub(super) async fn end(mut self) {
        self.tasks.shutdown().await;
        if !is_in_pod() {
            self.registration.remove().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_is_one_that_others_reach() {
        let resolved = async |text: &str| text.parse::<PackagesAddress>().unwrap().resolved("").await;
        assert_eq!(resolved("192.0.2.7:0").await.unwrap().to_string(), "192.0.2.7:0");
        assert_eq!(resolved("[2001:db8::7]:5443").await.unwrap().to_string(), "[2001:db8::7]:5443");
        for local in ["127.0.0.1:1", "[::1]:1", "0.0.0.0:1", "169.254.0.1:1", "localhost:1"] {
            let refused = resolved(local).await.unwrap_err();
            assert!(refused.message.starts_with("the API server cannot reach this process at "), "{refused}");
            // The candidate depends on the machine, which may have no route.
            let candidate = candidate().await.map(|ip| format!("--packages-address {}", SocketAddr::new(ip, 0)));
            assert!(candidate.is_none_or(|candidate| refused.hints[0].ends_with(&candidate)), "{refused}");
        }
        let unknown = PackagesAddress::default();
        assert!(unknown.resolved("https://127.0.0.1:6443").await.is_err(), "a control plane on this machine");
        for wrong in ["192.0.2.7", ":1", "192.0.2.7:x", "192.0.2.7:99999"] {
            assert!(wrong.parse::<PackagesAddress>().is_err(), "{wrong}");
        }
    }
}
