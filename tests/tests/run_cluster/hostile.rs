//! Hostile tenants do not affect others. `OLM_FUZZ_SEEDS=N` runs N seeds one after the other, and `OLM_FUZZ_SEEDS=FROM-TO`
//! those of the range; the default is one. Print time and memory with `-- --nocapture`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use futures::{StreamExt, stream};
use kube::api::{DeleteParams, PatchParams};
use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_shell::cluster::api::{Api, Resource};
use olm_tests::control_plane::skipped;
use olm_tests::hostile::grpc::{Catalog, Hostility};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::junk::{Harm, NAMESPACES, Random, harm};
use super::processes::Running;
use super::town::{Town, namespace};

/// Limit of the controllers' virtual memory in KiB. Each of their threads reserves 64 MiB or more before it uses any.
const MOST_KIB: u64 = 2 << 20;
/// Number of hostile requests for each seed.
const HARMS: usize = 500;
/// Number of endless catalogs, all at the same time.
const ENDLESS: usize = 12;
/// Number of requests in flight.
const AT_A_TIME: usize = 8;

fn seeds() -> RangeInclusive<u64> {
    let asked = std::env::var("OLM_FUZZ_SEEDS").unwrap_or_default();
    match asked.split_once('-') {
        Some((from, to)) => from.parse().unwrap()..=to.parse().unwrap(),
        None => 1..=asked.parse().unwrap_or(1),
    }
}

/// Returns the addresses of broken catalogs.
async fn sick() -> Vec<String> {
    let mut addresses = vec!["127.0.0.1:1".to_owned(), "olm.hole-1.svc:50051".to_owned()];
    for way in 0..4 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        addresses.push(listener.local_addr().unwrap().to_string());
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut random = Random::new(way);
                let noise: Vec<u8> = (0..4096).map(|_| u8::try_from(random.below(256)).unwrap_or_default()).collect();
                // The client may have disconnected.
                let _ = match way {
                    0 => stream.write_all(&noise).await,
                    1 => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n").await,
                    // HTTP/2 settings, followed by noise.
                    2 => stream.write_all(&[&[0, 0, 0, 4, 0, 0, 0, 0, 0], &noise[..]].concat()).await,
                    _ => Ok(()),
                };
                if way != 0 {
                    kept.push(stream);
                }
            }
        });
    }
    for hostility in [
        Hostility::EndlessBundles,
        Hostility::EndlessValues,
        Hostility::LargeMessage,
        Hostility::Silent,
        Hostility::BreaksOff,
        Hostility::LargePackage,
    ] {
        addresses.push(Catalog::start(hostility).await.unwrap().address());
    }
    addresses
}

async fn carry_out(api: &Api, harm: Harm) -> Result<(), Status> {
    let know = |gvk: &Gvk, plural: &str| Resource { gvk: gvk.clone(), plural: plural.to_owned(), namespaced: true };
    match harm {
        Harm::Create(object) => api.create(&object).await.map(drop),
        Harm::Delete(gvk, plural, namespace, name) => {
            api.register(know(&gvk, plural)).await;
            api.delete(&ObjectRef { gvk, namespace, name }, &DeleteParams::default()).await.map(drop)
        }
        Harm::Patch(gvk, plural, namespace, name, patch, status) => {
            let group = if gvk.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", gvk.group) };
            let base = format!("{group}/{}/namespaces/{namespace}/{plural}", gvk.version);
            let request = kube::core::Request::new(base);
            let (params, patch) = (PatchParams::default(), kube::api::Patch::Merge(&patch));
            let request = if status {
                request.patch_subresource("status", &name, &params, &patch)
            } else {
                request.patch(&name, &params, &patch)
            };
            let answer = api.client().request::<Value>(request.unwrap()).await;
            answer.map(drop).map_err(olm_shell::cluster::api::status)
        }
    }
}

#[test]
fn hostile_tenants_do_not_affect_others() {
    if skipped() {
        return;
    }
    let town = Town::new();
    let arguments = ["--catalog", &format!("main={}", town.catalog.path().display())];
    let mut running = Running::start_within(MOST_KIB, town.plane.kubeconfig(), &arguments);
    running.says("read the cluster");
    for name in NAMESPACES {
        town.create(&namespace(name));
    }
    let sick = town.runtime.block_on(sick());
    // A single one would be tolerable.
    let endless = town.runtime.block_on(Catalog::start(Hostility::EndlessProperties)).unwrap();
    for number in 0..ENDLESS {
        let name = format!("endless-{number}");
        town.create(&json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": { "name": name, "namespace": NAMESPACES[number % 2] },
            "spec": { "sourceType": "grpc", "address": endless.address() },
        }));
    }
    for seed in seeds() {
        let began = Instant::now();
        let mut random = Random::new(seed);
        let mut answers: BTreeMap<u16, usize> = BTreeMap::new();
        for half in 0..2 {
            let harms: Vec<Harm> = (0..HARMS / 2).map(|_| harm(&mut random, &sick)).collect();
            let api = &town.api;
            let done = stream::iter(harms).map(|harm| carry_out(api, harm)).buffer_unordered(AT_A_TIME);
            let done: Vec<_> = town.runtime.block_on(done.collect());
            for answer in done {
                *answers.entry(answer.map_or_else(|refusal| refusal.code, |()| 200)).or_default() += 1;
            }
            if half == 0 {
                town.subscribe();
            }
        }
        let harmed = began.elapsed();
        town.subscribe();
        let served = catch_unwind(AssertUnwindSafe(|| town.blooms())).is_ok();
        let said: Vec<String> = running.lines().collect();
        let panics: Vec<&String> = said.iter().filter(|line| line.contains("panicked")).collect();
        let lives = running.is_alive();
        assert!(
            served && lives && panics.is_empty(),
            "seed {seed}: others are served: {served}; still running: {lives}; panics: {panics:#?}\n{}",
            tail(&said)
        );
        println!(
            "seed {seed}: responses {answers:?} in {harmed:.1?}, others served after {:.1?}; {} lines; peak {} MB",
            began.elapsed().saturating_sub(harmed),
            said.len(),
            running.peak()
        );
    }
}

fn tail(lines: &[String]) -> String {
    lines[lines.len().saturating_sub(30)..].join("\n")
}
