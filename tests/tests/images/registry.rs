//! A real registry: logins, certificates, missing names, damaged blobs, platforms.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use olm_shell::cli::ErrorKind;
use olm_shell::image::{Credentials, Location, Options, Requested, resolve};
use olm_tests::images::Image;
use olm_tests::registry::{PASSWORD, Registry, Setup, USER, skipped};
use serde_json::json;

use super::{expected, files, pull, refused, small};

fn plain(registry: &Registry) -> Options {
    Options { plain_http: vec![registry.host().to_owned()], limits: small(), ..Options::default() }
}

pub(super) fn secret(registry: &Registry, password: &str) -> serde_json::Value {
    let config = json!({ "auths": { registry.host(): { "auth": STANDARD.encode(format!("{USER}:{password}")) } } });
    json!({
        "kind": "Secret", "metadata": { "name": "pull", "namespace": "olm" }, "type": "kubernetes.io/dockerconfigjson",
        "data": { ".dockerconfigjson": STANDARD.encode(config.to_string()) },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_pulled_by_tag_and_by_digest() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let host = registry.host();
    let image = Image::catalog(&[("catalog.yaml", "first")]);
    image.push(&format!("{host}/garden/catalog:1"), &[]).await.unwrap();
    let content = pull(&format!("{host}/garden/catalog:1"), &plain(&registry)).await.unwrap();
    assert_eq!(files(&content.root), expected(&[("catalog.yaml", "first")]));
    assert_eq!(content.digest, image.digest());
    // The tag is moved, the digest is fixed.
    let second = Image::catalog(&[("catalog.yaml", "second")]);
    second.push(&format!("{host}/garden/catalog:1"), &[]).await.unwrap();
    let location: Location = format!("docker://{host}/garden/catalog:1").parse().unwrap();
    assert_eq!(resolve(&location, &plain(&registry)).await.unwrap(), second.digest());
    let old = pull(&format!("{host}/garden/catalog@{}", image.digest()), &plain(&registry)).await.unwrap();
    assert_eq!(files(&old.root), expected(&[("catalog.yaml", "first")]));
    // An index of platforms.
    let index = Image::index(&[("linux/amd64", &second), ("linux/arm64", &second), ("linux/s390x", &image)]);
    index.push(&format!("{host}/garden/catalog:all"), &[]).await.unwrap();
    let content = pull(&format!("{host}/garden/catalog:all"), &plain(&registry)).await.unwrap();
    assert_eq!(
        (content.digest.clone(), files(&content.root)),
        (index.digest(), expected(&[("catalog.yaml", "second")]))
    );
    // Missing names.
    for (name, words) in [("garden/catalog:2", "has no such image"), ("nothing/there:1", "has no such image")] {
        let error = refused(pull(&format!("{host}/{name}"), &plain(&registry)).await, &[words, name, "hint"]);
        assert_eq!(error.kind, ErrorKind::Input);
    }
    let absent = format!("{host}/garden/catalog@sha256:{}", "0".repeat(64));
    refused(pull(&absent, &plain(&registry)).await, &["has no such image"]);
    // A bundle is not a catalog.
    let location: Location = format!("{host}/garden/catalog:1").parse().unwrap();
    let result = olm_shell::image::pull(&location, Requested::Bundle, &plain(&registry)).await;
    refused(result, &["no bundle", "it is a catalog"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_refused_unless_requested() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let name = format!("{}/garden/catalog:1", registry.host());
    Image::catalog(&[("catalog.yaml", "c")]).push(&name, &[]).await.unwrap();
    let error = refused(pull(&name, &Options::default()).await, &["cannot be reached", "--plain-http"]);
    assert_eq!(error.kind, ErrorKind::Unreachable);
    pull(&name, &plain(&registry)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_come_from_pull_secrets_and_configuration_files() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup { tls: true, login: true }).unwrap();
    let name = format!("{}/garden/catalog:1", registry.host());
    Image::catalog(&[("catalog.yaml", "c")]).push(&name, &registry.authority()).await.unwrap();
    let with = |credentials: Credentials| Options {
        credentials,
        certificate_authorities: registry.authority(),
        limits: small(),
        ..Options::default()
    };
    let (right, _) = Credentials::of_secrets([&secret(&registry, PASSWORD)]);
    let (wrong, _) = Credentials::of_secrets([&secret(&registry, "wrong")]);
    let content = pull(&name, &with(right.clone())).await.unwrap();
    assert_eq!(files(&content.root), expected(&[("catalog.yaml", "c")]));
    // A wrong login does not prevent the next one from being tried.
    pull(&name, &with(wrong.clone().and(right.clone()))).await.unwrap();
    let denied = refused(pull(&name, &with(wrong)).await, &["denies pull access", "correct the pull secret"]);
    assert_eq!(denied.kind, ErrorKind::Input);
    refused(pull(&name, &with(Credentials::default())).await, &["denies pull access", "log in first"]);
    // A configuration file, also with a credential helper.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let auth = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    fs::write(&file, json!({ "auths": { format!("https://{}/v2/", registry.host()): { "auth": auth } } }).to_string())
        .unwrap();
    pull(&name, &with(Credentials::of_file(file))).await.unwrap();
    // An unknown certificate authority.
    let unknown = Options { credentials: right, limits: small(), ..Options::default() };
    refused(pull(&name, &unknown).await, &["cannot be reached", "--registry-ca"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_content_of_the_registry_is_refused() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let name = format!("{}/garden/catalog:1", registry.host());
    let image = Image::catalog(&[("catalog.yaml", "some content that is long enough to be cut")]);
    image.push(&name, &[]).await.unwrap();
    let layer = image.manifest["layers"][0]["digest"].as_str().unwrap();
    let good = fs::read(registry.blob(layer)).unwrap();
    let mut changed = good.clone();
    changed[20] ^= 1;
    fs::write(registry.blob(layer), &changed).unwrap();
    refused(pull(&name, &plain(&registry)).await, &["has the digest", "push it again"]);
    fs::write(registry.blob(layer), &good[..good.len() / 2]).unwrap();
    refused(pull(&name, &plain(&registry)).await, &[layer]);
    fs::remove_file(registry.blob(layer)).unwrap();
    refused(pull(&name, &plain(&registry)).await, &["not all of its layers"]);
    fs::write(registry.blob(layer), &good).unwrap();
    pull(&name, &plain(&registry)).await.unwrap();
    // The manifest itself.
    let manifest = String::from_utf8(fs::read(registry.blob(&image.digest())).unwrap()).unwrap();
    fs::write(registry.blob(&image.digest()), manifest.replace("+gzip", "+gzop")).unwrap();
    let by_digest = format!("{}/garden/catalog@{}", registry.host(), image.digest());
    refused(pull(&by_digest, &plain(&registry)).await, &["error"]);
}
