//! The client reads the same content as the server has.

use std::net::SocketAddr;
use std::time::Duration;

use olm_core::catalog::Snapshot;
use tokio::sync::watch;

use super::super::client::{Client, ConnectionState, Observation, Settings};
use super::super::dir;
use super::super::server::Server;
use super::{data, sample, serve};

fn client(address: SocketAddr) -> (Client, watch::Receiver<Observation>) {
    let client =
        Client::start(&address.to_string(), Settings { pause: Duration::from_millis(5), ..Settings::default() });
    let observed = client.observe();
    (client, observed)
}

async fn until(
    observed: &mut watch::Receiver<Observation>,
    what: &str,
    wanted: impl Fn(&Observation) -> bool,
) -> Observation {
    let waiting = tokio::time::timeout(Duration::from_secs(30), observed.wait_for(|o| wanted(o))).await;
    waiting.unwrap_or_else(|_| panic!("{what} does not happen")).unwrap().clone()
}

async fn read(snapshot: &Snapshot) -> Snapshot {
    let (server, _sender) = serve(snapshot.clone()).await;
    let (_client, mut observed) = client(server.address());
    let seen = until(&mut observed, "a snapshot", |o| o.snapshot.is_some()).await;
    assert_eq!((seen.state, seen.error.as_deref()), (ConnectionState::Ready, None));
    (*seen.snapshot.unwrap()).clone()
}

#[tokio::test]
async fn the_sample_catalog_comes_back_equal() {
    let load = dir::load(&sample()).unwrap();
    let text: Vec<String> = load.findings.iter().map(ToString::to_string).collect();
    assert_eq!(text.len(), 2, "{text:#?}");
    assert!(text[0].contains("garden/bundles.txt:4: no bundle directory elsewhere/nothing"), "{text:#?}");
    assert!(text[1].contains("garden/weed.json:9: channel \"wild\" of package \"weed\": "), "{text:#?}");
    let names: Vec<_> = load.snapshot.entries().map(|e| format!("{}/{}/{}", e.package, e.channel, e.name)).collect();
    assert_eq!(
        names,
        [
            "pot/stable/pot.v1.0.0",
            "rose/fast/rose.v1.1.0",
            "rose/stable/rose.v1.0.0",
            "rose/stable/rose.v1.1.0",
            "tulip/alpha/tulip.v0.1.0"
        ]
    );
    let read = read(&load.snapshot).await;
    assert_eq!(read, load.snapshot);
    assert!(read.bundle("rose", "stable", "rose.v1.0.0").unwrap().csv_json.contains("ClusterServiceVersion"));
    assert_eq!(read.bundle("tulip", "alpha", "tulip.v0.1.0"), None, "an image has the objects");
}

#[tokio::test]
async fn scenario_catalogs_come_back_equal() {
    let Some(data) = data() else { return };
    let mut catalogs = 0;
    for scenario in std::fs::read_dir(data.join("scenarios")).unwrap() {
        let Ok(entries) = std::fs::read_dir(scenario.unwrap().path().join("catalogs")) else { continue };
        for catalog in entries {
            let path = catalog.unwrap().path();
            let load = dir::load(&path).unwrap();
            assert!(load.invalid_packages.is_empty(), "{}: {:?}", path.display(), load.findings);
            assert!(load.snapshot == read(&load.snapshot).await, "{}", path.display());
            catalogs += 1;
        }
    }
    assert!(catalogs > 30, "{catalogs}");
}

#[tokio::test]
async fn a_client_reconnects_and_retains_the_last_snapshot() {
    let load = dir::load(&sample()).unwrap();
    let (server, _sender) = serve(load.snapshot.clone()).await;
    let address = server.address();
    let (_client, mut observed) = client(address);
    until(&mut observed, "a snapshot", |o| o.snapshot.is_some()).await;
    server.stop().await;
    let seen = until(&mut observed, "a failure", |o| o.state == ConnectionState::TransientFailure).await;
    assert!(seen.snapshot.is_some_and(|s| *s == load.snapshot));
    assert!(seen.error.unwrap().contains("refused"));

    let (_sender, receiver) = watch::channel(Snapshot::default());
    let _server = Server::start(address, receiver).await.unwrap();
    let empty = |o: &Observation| o.snapshot.as_ref().is_some_and(|s| s.packages().is_empty());
    let seen = until(&mut observed, "the new content", empty).await;
    assert_eq!((seen.state, seen.error), (ConnectionState::Ready, None));
}

#[tokio::test]
async fn a_snapshot_can_be_replaced_while_it_is_served() {
    let (server, sender) = serve(Snapshot::default()).await;
    let (client, mut observed) = client(server.address());
    until(&mut observed, "a snapshot", |o| o.snapshot.is_some()).await;
    let snapshot = dir::load(&sample()).unwrap().snapshot;
    sender.send(snapshot.clone()).unwrap();
    client.refresh();
    until(&mut observed, "the new content", |o| o.snapshot.as_deref() == Some(&snapshot)).await;
}

#[tokio::test]
async fn an_invalid_address_is_reported() {
    let client = Client::start("no such host", Settings::default());
    let mut observed = client.observe();
    let seen = until(&mut observed, "a failure", |o| o.state == ConnectionState::TransientFailure).await;
    assert!(seen.error.unwrap().contains("host:port"));
}

#[tokio::test]
async fn reconnect_connects_without_a_pause() {
    let load = dir::load(&sample()).unwrap();
    let (server, _sender) = serve(load.snapshot.clone()).await;
    // With this pause, only the call can cause a new connection in time.
    let never = Duration::from_hours(1);
    let settings = Settings { pause: never, max_pause: never, ..Settings::default() };
    let client = Client::start(&server.address().to_string(), settings);
    let mut observed = client.observe();
    let seen = until(&mut observed, "a snapshot", |o| o.snapshot.is_some()).await;
    assert_eq!(seen.connections, 1);
    client.reconnect();
    until(&mut observed, "a second connection", |o| o.connections == 2 && o.state == ConnectionState::Ready).await;
    // Also during the pause after a failure.
    let address = server.address();
    server.stop().await;
    client.reconnect();
    until(&mut observed, "a failure", |o| o.state == ConnectionState::TransientFailure).await;
    let (_sender, receiver) = watch::channel(Snapshot::default());
    let _server = Server::start(address, receiver).await.unwrap();
    client.reconnect();
    until(&mut observed, "a third connection", |o| o.connections == 3).await;
}

#[tokio::test]
async fn a_connection_that_is_closed_at_once_is_not_retried_in_a_loop() {
    // The listener accepts connections and sends nothing.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings { pause: Duration::from_hours(1), ..Settings::default() };
    let client = Client::start(&address.to_string(), settings);
    let mut observed = client.observe();
    let (stream, _) = listener.accept().await.unwrap();
    until(&mut observed, "a connection", |o| o.connections == 1).await;
    drop(stream);
    until(&mut observed, "its end", |o| o.state == ConnectionState::Idle).await;
    client.reconnect();
    let again = tokio::time::timeout(Duration::from_secs(30), listener.accept()).await;
    assert!(again.is_ok(), "reconnect skips the pause");
    assert!(observed.borrow().connections <= 2);
}
