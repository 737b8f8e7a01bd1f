//! Compares the responses with those of `opm serve`, call by call.

use std::path::Path;

use futures::TryStreamExt;
use serde_json::{Map, Value, json};
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use super::super::proto::registry_client::RegistryClient;
use super::super::proto::{self, Bundle};
use super::super::{client, dir};
use super::{data, serve};
use olm_core::api::hash::sha256_hex;

#[tokio::test]
async fn responses_are_those_of_opm() {
    let Some(data) = data() else { return };
    let Ok(recordings) = std::fs::read_dir(data.join("recorded/grpc")) else { return };
    let (mut calls, mut differences) = (0, Vec::new());
    for entry in recordings {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "json") {
            let recording = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            calls += compare(&data, &recording, &mut differences).await;
        }
    }
    assert!(calls > 0, "the recording is empty");
    assert!(differences.is_empty(), "{} of {calls} differ\n{}", differences.len(), differences.join("\n\n"));
}

/// The catalog of a recording: a folder of the data, or one that was built for it.
fn load(data: &Path, recording: &Value) -> olm_core::catalog::Loaded {
    let built = data.join("recorded/grpc/catalogs").join(recording["catalog"].as_str().unwrap());
    let folder = if built.is_dir() { built } else { data.join(recording["sources"][0].as_str().unwrap()) };
    dir::load(&folder).unwrap()
}

async fn compare(data: &Path, recording: &Value, differences: &mut Vec<String>) -> usize {
    let catalog = &recording["catalog"];
    let load = load(data, recording);
    assert!(load.invalid_packages.is_empty(), "{catalog}: {:?}", load.findings);
    let (server, _sender) = serve(load.snapshot).await;
    let channel = Channel::builder(format!("http://{}", server.address()).parse().unwrap()).connect().await.unwrap();
    let mut client = RegistryClient::new(channel).max_decoding_message_size(client::Settings::default().max_message);
    let unstable = recording["unstable"].as_array().unwrap();
    let mut compared = 0;
    for (index, call) in recording["calls"].as_array().unwrap().iter().enumerate() {
        let Some(mut answer) = ask(&mut client, call).await else { continue };
        let mut expected = vec![call.clone()];
        for other in unstable.iter().filter(|u| u["call"] == index) {
            expected.extend(other["others"].as_array().into_iter().flatten().cloned());
        }
        let expected: Vec<Value> = expected.iter().map(outcome).collect();
        sort_stream(&mut answer);
        if !expected.contains(&answer) && !is_another_that_replaces(call, &answer, recording) {
            let (method, request, opms) = (&call["method"], &call["request"], &expected[0]);
            differences.push(format!("{catalog} {index} {method} {request}\nours: {answer:#}\nopm's: {opms:#}"));
        }
        compared += 1;
    }
    compared
}

/// If several bundles replace one, opm returns a random one of them. Ours must be one of those, and complete.
fn is_another_that_replaces(call: &Value, answer: &Value, recording: &Value) -> bool {
    let (request, ours) = (&call["request"], &answer["response"]);
    let is_listed = |c: &&Value| {
        let entry = |e: &Value| e["bundleName"] == ours["csvName"] && e["channelName"] == request["channelName"];
        c["request"] == json!({"csvName": request["csvName"]})
            && c["stream"].as_array().is_some_and(|s| s.iter().any(entry))
    };
    let is_it = |c: &&Value| c["method"] == "api.Registry/GetBundle" && c["response"] == *ours;
    let calls = recording["calls"].as_array().unwrap();
    call["method"] == "api.Registry/GetBundleThatReplaces"
        && calls.iter().any(|c| is_listed(&c))
        && calls.iter().any(|c| is_it(&c))
}

/// The parts of a recorded call that are compared. Streams are sorted, because their order is undefined.
fn outcome(call: &Value) -> Value {
    let mut outcome = Map::new();
    for key in ["response", "stream", "code", "message"] {
        if let Some(value) = call.get(key) {
            outcome.insert(key.to_owned(), value.clone());
        }
    }
    let mut outcome = Value::Object(outcome);
    sort_stream(&mut outcome);
    outcome
}

fn sort_stream(outcome: &mut Value) {
    if let Some(stream) = outcome.get_mut("stream").and_then(Value::as_array_mut) {
        stream.sort_by_key(ToString::to_string);
    }
}

/// Repeats a recorded call; none for methods that are not the registry's.
async fn ask(client: &mut RegistryClient<Channel>, call: &Value) -> Option<Value> {
    let text = |key: &str| call["request"][key].as_str().unwrap_or_default().to_owned();
    let (group, version, kind, plural) = (text("group"), text("version"), text("kind"), text("plural"));
    let (pkg_name, channel_name, csv_name) = (text("pkgName"), text("channelName"), text("csvName"));
    Some(match call["method"].as_str()?.strip_prefix("api.Registry/")? {
        "ListPackages" => {
            stream(client.list_packages(proto::ListPackageRequest {}).await, |p| json!({"name": p.name})).await
        }
        "GetPackage" => single(client.get_package(proto::GetPackageRequest { name: text("name") }).await, package),
        "GetBundle" => {
            single(client.get_bundle(proto::GetBundleRequest { pkg_name, channel_name, csv_name }).await, bundle)
        }
        "GetBundleForChannel" => {
            let request = proto::GetBundleInChannelRequest { pkg_name, channel_name };
            single(client.get_bundle_for_channel(request).await, bundle)
        }
        "GetChannelEntriesThatReplace" => {
            let request = proto::GetAllReplacementsRequest { csv_name };
            stream(client.get_channel_entries_that_replace(request).await, entry).await
        }
        "GetBundleThatReplaces" => {
            let request = proto::GetReplacementRequest { csv_name, pkg_name, channel_name };
            single(client.get_bundle_that_replaces(request).await, bundle)
        }
        "GetChannelEntriesThatProvide" => {
            let request = proto::GetAllProvidersRequest { group, version, kind, plural };
            stream(client.get_channel_entries_that_provide(request).await, entry).await
        }
        "GetLatestChannelEntriesThatProvide" => {
            let request = proto::GetLatestProvidersRequest { group, version, kind, plural };
            stream(client.get_latest_channel_entries_that_provide(request).await, entry).await
        }
        "GetDefaultBundleThatProvides" => {
            let request = proto::GetDefaultProviderRequest { group, version, kind, plural };
            single(client.get_default_bundle_that_provides(request).await, bundle)
        }
        "ListBundles" => stream(client.list_bundles(proto::ListBundlesRequest {}).await, bundle).await,
        _ => return None,
    })
}

fn refused(status: &Status) -> Value {
    json!({"code": format!("{:?}", status.code()), "message": status.message()})
}

fn single<T>(answer: Result<Response<T>, Status>, show: impl Fn(T) -> Value) -> Value {
    match answer {
        Ok(response) => json!({"code": "OK", "response": show(response.into_inner())}),
        Err(status) => refused(&status),
    }
}

async fn stream<T>(answer: Result<Response<Streaming<T>>, Status>, show: impl Fn(T) -> Value) -> Value {
    match answer {
        Ok(response) => {
            let all: Vec<T> = response.into_inner().try_collect().await.unwrap();
            json!({"code": "OK", "stream": all.into_iter().map(show).collect::<Vec<_>>()})
        }
        Err(status) => refused(&status),
    }
}

/// Protobuf's JSON, without fields that have the default value.
fn message(fields: Value) -> Value {
    let Value::Object(mut fields) = fields else { unreachable!("a message is an object") };
    fields.retain(|_, v| !(v.is_null() || *v == json!("") || *v == json!([])));
    Value::Object(fields)
}

fn package(package: proto::Package) -> Value {
    let channel = |c: proto::Channel| {
        message(json!({"name": c.name, "csvName": c.csv_name, "deprecation": deprecation(c.deprecation)}))
    };
    message(json!({
        "name": package.name,
        "defaultChannelName": package.default_channel_name,
        "deprecation": deprecation(package.deprecation),
        "channels": package.channels.into_iter().map(channel).collect::<Vec<_>>(),
    }))
}

fn entry(entry: proto::ChannelEntry) -> Value {
    message(json!({
        "packageName": entry.package_name,
        "channelName": entry.channel_name,
        "bundleName": entry.bundle_name,
        "replaces": entry.replaces,
    }))
}

fn bundle(bundle: Bundle) -> Value {
    let apis = |apis: Vec<proto::GroupVersionKind>| {
        let api = |a: proto::GroupVersionKind| {
            message(json!({"group": a.group, "version": a.version, "kind": a.kind, "plural": a.plural}))
        };
        apis.into_iter().map(api).collect::<Vec<_>>()
    };
    let pair = |type_: String, value: String| message(json!({"type": type_, "value": value}));
    message(json!({
        "csvName": bundle.csv_name,
        "packageName": bundle.package_name,
        "channelName": bundle.channel_name,
        "csvJson": if bundle.csv_json.is_empty() { Value::Null } else { object(&bundle.csv_json) },
        "object": bundle.object.iter().map(|o| object(o)).collect::<Vec<_>>(),
        "bundlePath": bundle.bundle_path,
        "providedApis": apis(bundle.provided_apis),
        "requiredApis": apis(bundle.required_apis),
        "version": bundle.version,
        "skipRange": bundle.skip_range,
        "dependencies": bundle.dependencies.into_iter().map(|d| pair(d.r#type, d.value)).collect::<Vec<_>>(),
        "properties": bundle.properties.into_iter().map(|p| pair(p.r#type, p.value)).collect::<Vec<_>>(),
        "replaces": bundle.replaces,
        "skips": bundle.skips,
        "deprecation": deprecation(bundle.deprecation),
    }))
}

fn deprecation(deprecation: Option<proto::Deprecation>) -> Value {
    deprecation.map_or(Value::Null, |d| message(json!({"message": d.message})))
}

/// An object's digests: of its canonical form and of the text as served.
fn object(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    let canonical = value.to_string();
    json!({
        "kind": value["kind"],
        "name": value["metadata"]["name"],
        "length": canonical.len(),
        "sha256": sha256_hex(&canonical),
        "rawLength": text.len(),
        "rawSha256": sha256_hex(text),
    })
}
