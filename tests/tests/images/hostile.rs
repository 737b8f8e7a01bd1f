//! Hostile registries and catalogs: each ends with an error message, and uses no more than its limit.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use olm_shell::image::{Credentials, Limits, Options};
use olm_shell::registry::client::{Client, Settings};
use olm_tests::hostile::cost::Cost;
use olm_tests::hostile::{grpc, registry};
use olm_tests::images::{Compression, Image, Layer, compress};
use registry::{Answer, Hostility, Registry};
use serde_json::json;

use super::{files, pull, refused, small};

/// How much the sockets' buffers may contain between a server and a client that disconnects.
const BUFFERS: u64 = 16 << 20;

const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";

fn catalog() -> Image {
    Image::catalog(&[("catalog.yaml", "some content that is long enough to be cut into two halves")])
}

fn of_layers(layers: Vec<Vec<u8>>) -> Image {
    Image::new(&[(CONFIGS, "/configs")], layers)
}

/// Returns a layer of a few kilobytes with a file of that many bytes.
fn bomb(bytes: usize, compression: Compression) -> Image {
    of_layers(vec![Layer::default().file("configs/catalog.yaml", vec![b' '; bytes]).finish(compression)])
}

/// Does the same, with the bytes outside of the extracted folders.
fn hidden_bomb(bytes: usize) -> Image {
    of_layers(vec![Layer::default().file("usr/lib", vec![b' '; bytes]).finish(Compression::Gzip)])
}

/// Returns credentials for a host.
pub(super) fn login(host: &str) -> Credentials {
    let config = json!({ "auths": { host: { "auth": STANDARD.encode("gardener:secret") } } });
    let secret = json!({ "data": { ".dockerconfigjson": STANDARD.encode(config.to_string()) } });
    Credentials::of_secrets([&secret]).0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_registry_ends_with_a_message_within_the_limit() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(20_000), "]".repeat(20_000));
    let token = |token: &str| Hostility::Instead(json!({ "token": token }).to_string().into_bytes());
    let longer = {
        let mut image = catalog();
        image.manifest["layers"][0]["size"] = json!(10);
        image
    };
    let shorter = {
        let mut image = catalog();
        image.manifest["layers"][0]["size"] = json!(1 << 20);
        image
    };
    let many_layers = of_layers(vec![Layer::default().file("configs/a", "a").finish(Compression::Gzip); 9]);
    let nested = (0..6).fold(catalog(), |image, _| Image::index(&[("linux/amd64", &image)]));
    let tags = json!({ "name": "garden/catalog", "tags": (0..100_000).map(|n| n.to_string()).collect::<Vec<_>>() });
    let tags = Hostility::Instead(tags.to_string().into_bytes());
    // Compressed twice: after decompression it is not an archive.
    let twice = of_layers(vec![compress(&compress(&vec![0; 8 << 20], Compression::Gzip), Compression::Zstd)]);
    for (name, image, answer, hostility, words) in [
        ("endless manifest", catalog(), Answer::Manifest, Hostility::Endless, "is longer than 65536 bytes"),
        (
            "endless manifest in chunks",
            catalog(),
            Answer::Manifest,
            Hostility::EndlessChunks,
            "is longer than 65536 bytes",
        ),
        ("endless token", catalog(), Answer::Token, Hostility::Endless, "is longer than 262144 bytes"),
        ("endless token in chunks", catalog(), Answer::Token, Hostility::EndlessChunks, "is longer than 262144 bytes"),
        ("endless refusal of a token", catalog(), Answer::Token, Hostility::EndlessRefusal(401), "denies pull access"),
        ("endless refusal", catalog(), Answer::Manifest, Hostility::EndlessRefusal(404), "has no such image"),
        ("endless failure", catalog(), Answer::Manifest, Hostility::EndlessRefusal(500), "HTTP status 500"),
        ("endless version", catalog(), Answer::Version, Hostility::Endless, ""),
        ("endless header", catalog(), Answer::Manifest, Hostility::EndlessHeader, "cannot be reached"),
        ("endless configuration", catalog(), Answer::Config, Hostility::Endless, "is longer than 65536 bytes"),
        ("endless layer", catalog(), Answer::Layer, Hostility::EndlessChunks, "is longer than"),
        ("slow manifest", catalog(), Answer::Manifest, Hostility::Slow, "was not pulled within"),
        ("slow layer", catalog(), Answer::Layer, Hostility::Slow, ""),
        ("token with a newline", catalog(), Answer::Token, token("a\nb"), "characters that no header can have"),
        ("token with a header", catalog(), Answer::Token, token("a\r\nHost: b"), "characters that no header can have"),
        ("no token", catalog(), Answer::Token, Hostility::Instead(b"{}".to_vec()), "responds without a token"),
        (
            "redirects in a circle",
            catalog(),
            Answer::Layer,
            Hostility::RedirectLoop,
            "redirects in a way that is not allowed",
        ),
        ("tags for a manifest", catalog(), Answer::Manifest, tags, "is longer than 65536 bytes"),
        ("deep manifest", catalog(), Answer::Manifest, Hostility::Instead(deep.into_bytes()), "has version 0, not 2"),
        ("truncated manifest", catalog(), Answer::Manifest, Hostility::Truncated, "cannot be reached"),
        ("truncated layer", catalog(), Answer::Layer, Hostility::Truncated, "broke off"),
        ("another layer of the same size", catalog(), Answer::Layer, Hostility::Changed, "has the digest"),
        ("another configuration of the same size", catalog(), Answer::Config, Hostility::Changed, "has the digest"),
        ("layer longer than its size", longer, Answer::Layer, Hostility::None, "is longer than the 10 bytes"),
        ("layer shorter than its size", shorter, Answer::Layer, Hostility::None, "broke off"),
        ("many layers", many_layers, Answer::Layer, Hostility::None, "9 layers"),
        ("indexes in indexes", nested, Answer::Layer, Hostility::None, "nests too many indexes"),
        (
            "gzip bomb",
            bomb(64 << 20, Compression::Gzip),
            Answer::Layer,
            Hostility::None,
            "than the 1048576 that may be stored",
        ),
        (
            "zstd bomb",
            bomb(64 << 20, Compression::Zstd),
            Answer::Layer,
            Hostility::None,
            "than the 1048576 that may be stored",
        ),
        (
            "gzip bomb beside the catalog",
            hidden_bomb(64 << 20),
            Answer::Layer,
            Hostility::None,
            "more bytes than allowed when it is unpacked",
        ),
        ("compressed twice", twice, Answer::Layer, Hostility::None, "not a tar archive"),
    ] {
        // All others end because of their content, even on a busy machine.
        let total = Duration::from_secs(if hostility == Hostility::Slow { 3 } else { 60 });
        let limits = Limits { stall: Duration::from_secs(2), total, ..small() };
        let endless = matches!(
            hostility,
            Hostility::Endless | Hostility::EndlessChunks | Hostility::EndlessRefusal(_) | Hostility::EndlessHeader
        );
        let loops = hostility == Hostility::RedirectLoop;
        let registry = Registry::start(image, answer, hostility, true).await.unwrap();
        let options = Options { plain_http: vec![registry.address().to_string()], limits, ..Options::default() };
        let cost = Cost::begin();
        let pulled = pull(&format!("{}/garden/catalog:1", registry.address()), &options).await;
        println!("{}, {} bytes sent", cost.render(name), registry.sent());
        if name == "endless version" {
            // The body is not read.
            assert!(pulled.is_ok(), "{name}");
        } else {
            assert!(pulled.is_err(), "{name}");
            refused(pulled, &[words]);
        }
        assert!(registry.sent() < BUFFERS, "{name}: {} bytes were taken", registry.sent());
        assert!(!endless || registry.sent() > 0, "{name}");
        let most = registry.requests().paths.values().copied().max().unwrap_or_default();
        assert!(most <= if loops { 10 } else { 2 }, "{name}: {:?}", registry.requests().paths);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_not_sent_after_a_redirect_to_another_host() {
    for answer in [Answer::Layer, Answer::Manifest, Answer::Token] {
        // The same image on another host, the target of the redirect.
        let thief = Registry::start(catalog(), Answer::Layer, Hostility::None, false).await.unwrap();
        let elsewhere = Hostility::Redirect(format!("http://{}", thief.address()));
        let registry = Registry::start(catalog(), answer, elsewhere, true).await.unwrap();
        let host = registry.address().to_string();
        let credentials = login(&host);
        let options = Options { plain_http: vec![host], limits: small(), credentials, ..Options::default() };
        let content = pull(&format!("{}/garden/catalog:1", registry.address()), &options).await.unwrap();
        assert_eq!(files(&content.root).len(), 1);
        let sent = registry.requests().authorizations;
        let basic = format!("Basic {}", STANDARD.encode("gardener:secret"));
        assert!(sent.contains(&basic), "{answer:?}: {sent:?}");
        assert!(!thief.requests().paths.is_empty(), "{answer:?}");
        assert_eq!(thief.requests().authorizations, Vec::<String>::new(), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_catalog_ends_with_a_message_within_the_limit() {
    use grpc::{Catalog, Hostility as H};
    let settings = Settings { max_catalog: 8 << 20, read_timeout: Duration::from_secs(20), ..Settings::default() };
    let too_much = "has more than 8388608 bytes of bundles and packages";
    for (hostility, most, words) in [
        (H::None, 0, ""),
        (H::EndlessBundles, 40_000, too_much),
        (H::EndlessProperties, 40, too_much),
        (H::EndlessValues, 40, too_much),
        (H::EndlessSkips, 40, too_much),
        (H::LargeMessage, 1, "message length too large"),
        (H::LargePackage, 0, too_much),
        (H::Silent, 1, "was not read within"),
        (H::BreaksOff, 1, "error encountered while listing bundles: cut"),
    ] {
        let (catalog, cost) = (Catalog::start(hostility).await.unwrap(), Cost::begin());
        let read_timeout = if hostility == H::Silent { Duration::from_millis(200) } else { settings.read_timeout };
        let client =
            Client::start(&catalog.address(), Settings { read_timeout, pause: Duration::from_mins(1), ..settings });
        let mut observed = client.observe();
        let seen = observed.wait_for(|o| o.snapshot.is_some() || o.error.is_some()).await.unwrap().clone();
        println!("{}", cost.render(&format!("{hostility:?}")));
        match words {
            "" => assert_eq!(seen.snapshot.unwrap().packages().len(), 1),
            words => {
                let error = seen.error.unwrap();
                assert!(error.contains(words), "{hostility:?}: {error}");
                assert!(seen.snapshot.is_none(), "{hostility:?}");
            }
        }
        drop(client);
        assert!(catalog.sent() <= most, "{hostility:?}: {} messages", catalog.sent());
    }
}
