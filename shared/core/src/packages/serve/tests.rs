use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::front_proxy::{Attributes, FrontProxy, is_allowed};
use super::request::{Form, Target};
use super::watch::{Event, Watch};
use super::*;
use crate::api::object;
use crate::api::status::Status;
use crate::catalog::index_files;
use crate::packages::{Catalog, CatalogInfo, Icon};

const BASE: &str = "/apis/packages.operators.coreos.com/v1";

fn catalog(namespace: &str, name: &str, priority: i64, packages: &[&str]) -> Catalog {
    let mut text = String::new();
    for package in packages {
        text += &format!(
            "---\nschema: olm.package\nname: {package}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: {package}\nname: stable\n\
             entries: [{{name: {package}.v1.0.0}}]\n---\nschema: olm.bundle\npackage: {package}\nname: {package}.v1.0.0\nimage: example.com/{package}:v1\n\
             properties: [{{type: olm.package, value: {{packageName: {package}, version: 1.0.0}}}}]\n"
        );
    }
    let loaded = index_files(&[crate::bundle::File::new("catalog.yaml", text.into_bytes())]).load();
    assert!(loaded.findings.is_empty(), "{:?}", loaded.findings);
    let labels = [("team".to_owned(), name.to_owned())].into();
    let created = "2026-11-21T12:00:00Z".to_owned();
    let info = CatalogInfo { priority, created, labels, ..CatalogInfo::named(namespace, name) };
    Catalog { info, snapshot: Arc::new(loaded.snapshot) }
}

fn all(catalogs: &[Catalog]) -> Vec<Item> {
    catalogs.iter().flat_map(|catalog| items(catalog).0).collect()
}

fn store() -> Store {
    let catalogs = [
        catalog("olm", "market", 0, &["rose", "tulip"]),
        catalog("garden", "shed", 0, &["fern", "rose"]),
        catalog("olm", "fair", 7, &["rose"]),
    ];
    Store::new("olm", 100).replaced(all(&catalogs))
}

fn now() -> Timestamp {
    "2026-11-21T12:05:00Z".parse().unwrap()
}

fn get(store: &Store, url: &str, accept: &str) -> Result<Reply, Status> {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    reply(store, "GET", &Target::from_path(path), query, accept, now())
}

fn text(parts: &[Arc<[u8]>]) -> String {
    String::from_utf8(parts.concat()).unwrap()
}

fn body(store: &Store, url: &str, accept: &str) -> Value {
    serde_json::from_str(&text(&response(store, url, accept).body)).unwrap()
}

fn response(store: &Store, url: &str, accept: &str) -> Response {
    match get(store, url, accept).unwrap() {
        Reply::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers.iter().find(|(header, _)| *header == name).map(|(_, value)| value.clone())
}

fn refused(store: &Store, url: &str, accept: &str) -> (u16, String) {
    let status = get(store, url, accept).unwrap_err();
    (status.code, status.message)
}

/// Returns `namespace/name of catalog` of each item.
fn named(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    items
        .map(|item| {
            let catalog = word(&item["metadata"]["labels"]["catalog"]);
            format!("{}/{} of {catalog}", word(&item["metadata"]["namespace"]), word(&item["metadata"]["name"]))
        })
        .collect()
}

#[test]
fn discovery_describes_the_resource() {
    let store = Store::new("olm", 1);
    let groups = body(&store, "/apis", "application/json");
    assert_eq!(groups["groups"][0]["preferredVersion"]["groupVersion"], "packages.operators.coreos.com/v1");
    assert_eq!(body(&store, "/apis/packages.operators.coreos.com", "")["kind"], "APIGroup");
    let resources = body(&store, BASE, "application/json");
    let listed: Vec<_> = resources["resources"].as_array().unwrap().iter().map(|r| (&r["name"], &r["verbs"])).collect();
    let expected = [
        (json!("packagemanifests"), json!(["get", "list", "watch"])),
        (json!("packagemanifests/icon"), json!(["get"])),
    ];
    assert_eq!(listed, expected.iter().map(|(name, verbs)| (name, verbs)).collect::<Vec<_>>());
    for missing in [
        "/",
        "/openapi",
        "/openapi/v3/apis/apps/v1",
        "/apis/other",
        &format!("{BASE}/packages"),
        &format!("{BASE}/namespaces//packagemanifests"),
        "/apis/%zz",
    ] {
        assert_eq!(refused(&store, missing, "").0, 404, "{missing}");
    }
    // The API server reads all in one document, and again only if it has changed.
    let accept = |version| format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    for (accepted, version) in [
        (format!("{},{}", accept("v2"), accept("v2beta1")), "v2"),
        (accept("v2beta1"), "v2beta1"),
        (format!("application/vnd.kubernetes.protobuf,{},application/json", accept("v2")), "v2"),
    ] {
        let aggregated = response(&store, "/apis", &accepted);
        assert_eq!(header(&aggregated, "content-type").unwrap(), accept(version));
        let json: Value = serde_json::from_str(&text(&aggregated.body)).unwrap();
        assert_eq!(json["apiVersion"], format!("apidiscovery.k8s.io/{version}"));
        let found = &json["items"][0]["versions"][0]["resources"][0];
        assert_eq!((&found["resource"], &found["scope"]), (&json!("packagemanifests"), &json!("Namespaced")));
        assert_eq!(
            found["responseKind"],
            json!({ "group": "packages.operators.coreos.com", "version": "v1", "kind": "PackageManifest" })
        );
        assert_eq!(found["subresources"][0]["subresource"], "icon");
        let etag = header(&aggregated, "etag").unwrap();
        assert_eq!(aggregated.clone().unless_known("\"other\"").code, 200);
        let known = aggregated.unless_known(&etag);
        assert_eq!((known.code, known.body.len(), header(&known, "etag")), (304, 0, Some(etag)));
    }
    assert_eq!(refused(&store, "/apis", &accept("v3")).0, 406);
    assert!(matches!(get(&store, "/readyz", "").unwrap(), Reply::Response(Response { code: 200, .. })));
}

/// Returns all `$ref` of a document, and the schemas that it defines.
fn references(json: &Value) -> Vec<&str> {
    match json {
        Value::Object(map) => {
            let own = map.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(map.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn both_versions_of_openapi_describe_the_resource() {
    let store = Store::new("olm", 1);
    let kind = |kind: &str| json!({ "group": "packages.operators.coreos.com", "version": "v1", "kind": kind });
    let root = body(&store, "/openapi/v3", "application/json");
    let url = root["paths"]["apis/packages.operators.coreos.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = response(&store, url, "application/json");
    assert_eq!(header(&document, "cache-control").unwrap(), "public, max-age=31536000, immutable");
    let (path, hash) = url.split_once("?hash=").unwrap();
    assert_eq!(path, "/openapi/v3/apis/packages.operators.coreos.com/v1");
    assert_eq!(header(&document, "etag").unwrap(), format!("\"{hash}\""));
    let outdated = response(&store, &format!("{path}?hash=AB"), "");
    assert_eq!(
        (header(&outdated, "cache-control").unwrap().as_str(), &outdated.body),
        ("no-cache, private", &document.body)
    );

    for (url, schemas) in [("/openapi/v2", "/definitions"), (path, "/components/schemas")] {
        let json = body(&store, url, "application/json");
        let schemas = json.pointer(schemas).unwrap();
        let found = &schemas["com.coreos.operators.packages.v1.PackageManifest"];
        assert_eq!(found["x-kubernetes-group-version-kind"], json!([kind("PackageManifest")]));
        let fields = [
            "/metadata/properties/labels",
            "/status/properties/channels/items/properties/currentCSVDesc/properties/installModes",
        ];
        for field in fields {
            let field = found.pointer(&format!("/properties{field}")).unwrap();
            assert!(field["type"].is_string() && field["description"].is_string(), "{field}");
        }
        let references = references(&json);
        assert_eq!(references.len(), 4, "{references:?}");
        for reference in references {
            assert!(json.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
        // Each path is one that is served.
        for path in json["paths"].as_object().unwrap().keys() {
            let path = path.replace("{namespace}", "a").replace("{name}", "b");
            assert!(matches!(Target::from_path(&path), Target::Objects { .. }), "{path}");
        }
    }
    assert_eq!(refused(&store, path, "application/com.github.proto-openapi.spec.v3.v1.0+protobuf").0, 406);
    // Users need the same permission as for the documents of the API server.
    let needed = Attributes::from_request("GET", path, &Target::from_path(path), "");
    assert_eq!(needed, Some(Attributes::Path { path: path.to_owned(), verb: "get".to_owned() }));
}

#[test]
fn every_namespace_has_the_packages_of_global_catalogs() {
    let store = store();
    let list = |path: &str| named(&body(&store, &format!("{BASE}/{path}"), ""));
    assert_eq!(
        list("packagemanifests"),
        ["garden/fern of shed", "garden/rose of shed", "olm/rose of fair", "olm/rose of market", "olm/tulip of market"]
    );
    assert_eq!(
        list("namespaces/garden/packagemanifests"),
        [
            "garden/fern of shed",
            "garden/rose of shed",
            "garden/rose of fair",
            "garden/rose of market",
            "garden/tulip of market"
        ]
    );
    assert_eq!(
        list("namespaces/other/packagemanifests"),
        ["other/rose of fair", "other/rose of market", "other/tulip of market"]
    );
    assert_eq!(
        list("namespaces/other/packagemanifests?fieldSelector=metadata.name%3Dtulip"),
        ["other/tulip of market"]
    );
    assert_eq!(
        list("packagemanifests?fieldSelector=metadata.namespace!=olm,metadata.name=rose"),
        ["garden/rose of shed"]
    );
    assert_eq!(list("packagemanifests?labelSelector=catalog+in+(shed,fair),team!%3Dshed"), ["olm/rose of fair"]);
    assert_eq!(list("packagemanifests?labelSelector=%21catalog"), [""; 0]);
}

#[test]
fn an_object_is_that_of_the_closest_catalog_with_the_highest_priority() {
    let store = store();
    let get = |path: &str| body(&store, &format!("{BASE}/namespaces/{path}"), "");
    let rose = get("other/packagemanifests/rose");
    assert_eq!(
        (&rose["apiVersion"], &rose["kind"]),
        (&json!("packages.operators.coreos.com/v1"), &json!("PackageManifest"))
    );
    assert_eq!((&rose["metadata"]["namespace"], &rose["status"]["catalogSource"]), (&json!("other"), &json!("fair")));
    assert_eq!(rose["status"]["channels"][0]["currentCSV"], "rose.v1.0.0");
    assert_eq!(get("garden/packagemanifests/rose")["status"]["catalogSource"], "shed");
    let missing = refused(&store, &format!("{BASE}/namespaces/other/packagemanifests/fern"), "");
    assert_eq!(missing, (404, "packagemanifests.packages.operators.coreos.com \"fern\" not found".to_owned()));
    let status = error(&Status::new(503, "ServiceUnavailable", "no"));
    assert_eq!(status.headers.last().unwrap(), &("retry-after", "1".to_owned()));
}

#[test]
fn pages_are_those_of_one_revision() {
    let store = store();
    let first = body(&store, &format!("{BASE}/packagemanifests?limit=3"), "");
    assert_eq!((named(&first).len(), &first["metadata"]["remainingItemCount"]), (3, &json!(2)));
    let next = format!("{BASE}/packagemanifests?limit=3&continue={}", first["metadata"]["continue"].as_str().unwrap());
    let second = body(&store, &next, "");
    assert_eq!(named(&second), ["olm/rose of market", "olm/tulip of market"]);
    assert_eq!(second["metadata"], json!({ "resourceVersion": first["metadata"]["resourceVersion"] }));
    assert_eq!(refused(&store.replaced(Vec::new()), &next, "").0, 410);
    assert_eq!(refused(&store, &format!("{BASE}/packagemanifests?continue=x"), "").0, 400);
}

#[test]
fn invalid_requests_are_refused() {
    let store = store();
    for (query, message) in [
        ("limit=many", "invalid value \"many\" of limit: not a number"),
        ("watch=perhaps", "invalid value \"perhaps\" of watch: neither true nor false"),
        ("includeObject=All", "invalid value \"All\" of includeObject"),
        ("fieldSelector=spec.x=1", "field label not supported: spec.x"),
        ("labelSelector=a+of+(b)", "expected KEY in (VALUES)"),
        ("labelSelector=a/b/c", "is not the key of a label"),
        ("limit=%f", "invalid escape"),
        ("watch=1&resourceVersion=new", "invalid resource version \"new\""),
        ("watch=1&sendInitialEvents=true", "requires allowWatchBookmarks=true"),
    ] {
        let (code, text) = refused(&store, &format!("{BASE}/packagemanifests?{query}"), "");
        assert!(code == 400 && text.contains(message), "{query}: {text}");
    }
    let target = Target::from_path(&format!("{BASE}/packagemanifests"));
    for method in ["POST", "DELETE", "HEAD"] {
        assert_eq!(reply(&store, method, &target, "", "", now()).unwrap_err().code, 405);
    }
    let unread = Store::new("olm", 1);
    assert_eq!(refused(&unread, &format!("{BASE}/packagemanifests"), "").0, 503, "an empty list would be wrong");
}

#[test]
fn the_first_accepted_form_is_served() {
    for (accept, form) in [
        ("", Some(Form::Object)),
        ("application/vnd.kubernetes.protobuf,application/json", Some(Form::Object)),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(Form::Table)),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Some(Form::Metadata)),
        ("text/html, */*", Some(Form::Object)),
        ("application/yaml", None),
        // Weights.
        ("application/json;q=0", None),
        ("application/json; q=0.000", None),
        ("application/json;q=0, */*", None),
        ("application/*;q=0, */*;q=0.1", None),
        ("text/html;q=0, application/json;q=0.1", Some(Form::Object)),
        ("application/json;q=0.5, application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9", Some(Form::Table)),
        ("application/json;as=Table;v=v1;g=meta.k8s.io;q=0, application/json", Some(Form::Object)),
        ("application/json;q=x", Some(Form::Object)),
    ] {
        assert_eq!(Form::from_accept(accept).ok(), form, "{accept}");
    }
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[test]
fn tables_have_the_columns_of_olm() {
    let store = store();
    let table = body(&store, &format!("{BASE}/namespaces/garden/packagemanifests?limit=2"), TABLE);
    let columns: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Name", "Catalog", "Age"]);
    assert_eq!(table["rows"][0]["cells"], json!(["fern", "shed", "5m"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][1]["object"]["metadata"]["namespace"], "garden");
    assert!(table["metadata"]["continue"].is_string());
    let whole = body(&store, &format!("{BASE}/namespaces/garden/packagemanifests/fern?includeObject=Object"), TABLE);
    assert_eq!(whole["rows"][0]["object"]["status"]["packageName"], "fern");
    let bare = body(&store, &format!("{BASE}/packagemanifests?includeObject=None"), TABLE);
    assert_eq!((bare["rows"].as_array().unwrap().len(), &bare["rows"][0]["object"]), (5, &Value::Null));
    let metadata = body(
        &store,
        &format!("{BASE}/packagemanifests"),
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    );
    assert_eq!(
        (&metadata["kind"], &metadata["items"][0]["status"]),
        (&json!("PartialObjectMetadataList"), &Value::Null)
    );
}

fn watch(store: &Store, query: &str, accept: &str) -> Watch {
    match get(store, &format!("{BASE}/{query}"), accept).unwrap() {
        Reply::Watch(watch) => watch,
        other => panic!("{other:?}"),
    }
}

fn parsed(event: &Event) -> Vec<Value> {
    text(event).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the events up to the present as `TYPE namespace/name`.
fn events(watch: &mut Watch, store: &Store) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let event = watch.next(store, now()).unwrap();
        if event.is_empty() {
            return found;
        }
        for event in parsed(&event) {
            let metadata = &event["object"]["metadata"];
            let of = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
            found.push(format!("{} {}/{}", event["type"].as_str().unwrap(), of("namespace"), of("name")));
        }
    }
}

#[test]
fn a_watch_continues_a_list() {
    let before = store();
    let version = body(&before, &format!("{BASE}/packagemanifests"), "")["metadata"]["resourceVersion"].clone();
    let from = format!("resourceVersion={}", version.as_str().unwrap());
    let mut everything = watch(&before, &format!("packagemanifests?watch=true&{from}"), "");
    let mut garden =
        watch(&before, &format!("namespaces/garden/packagemanifests?watch=1&{from}&labelSelector=team=market"), "");
    assert_eq!(events(&mut everything, &before), [""; 0]);
    // The catalog `market` loses a package and gets one, `shed` is relabelled, `fair` is the same with another snapshot.
    let mut shed = catalog("garden", "shed", 0, &["fern", "rose"]);
    shed.info.labels.insert("team".to_owned(), "market".to_owned());
    let after = before.replaced(all(&[
        catalog("olm", "market", 0, &["rose", "violet"]),
        shed,
        catalog("olm", "fair", 7, &["rose"]),
    ]));
    assert_eq!(
        events(&mut everything, &after),
        ["MODIFIED garden/fern", "MODIFIED garden/rose", "DELETED olm/tulip", "ADDED olm/violet"]
    );
    assert_eq!(
        events(&mut garden, &after),
        ["ADDED garden/fern", "ADDED garden/rose", "DELETED garden/tulip", "ADDED garden/violet"]
    );
    assert_eq!(events(&mut garden, &after), [""; 0]);
    assert_eq!(after.replaced(all(&[catalog("olm", "fair", 7, &["rose"])])).len(), 1);
    // A client continues from the version of its last event.
    let mut again = watch(&before, &format!("packagemanifests?watch=1&{from}"), "");
    let seen = parsed(&again.next(&after, now()).unwrap());
    let removal = seen[2]["object"]["metadata"]["resourceVersion"].as_str().unwrap();
    let mut rest = watch(&after, &format!("packagemanifests?watch=1&resourceVersion={removal}"), "");
    assert_eq!(events(&mut rest, &after), ["ADDED olm/violet"]);
}

#[test]
fn a_watch_begins_with_the_objects_if_the_client_knows_none() {
    let store = store();
    let added = ["ADDED garden/fern", "ADDED garden/rose", "ADDED olm/rose", "ADDED olm/rose", "ADDED olm/tulip"];
    for query in ["", "&resourceVersion=0"] {
        let mut watch = watch(&store, &format!("packagemanifests?watch=1{query}"), "");
        assert_eq!(watch.bookmark(), None);
        assert_eq!(events(&mut watch, &store), added);
    }
    let streaming = "packagemanifests?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=9";
    let mut listed = watch(&store, streaming, "");
    assert_eq!(listed.seconds(), 9);
    assert_eq!(events(&mut listed, &store), [&added[..], &["BOOKMARK /"]].concat());
    let bookmark = parsed(&listed.bookmark().unwrap()).remove(0);
    assert_eq!(bookmark["object"]["kind"], "PackageManifest");
    let mut none = watch(&store, "packagemanifests?watch=1&sendInitialEvents=false", "");
    assert_eq!(events(&mut none, &store), [""; 0]);
    let mut tables = watch(&store, streaming, TABLE);
    let first = parsed(&tables.next(&store, now()).unwrap()).remove(0);
    assert_eq!(first["object"]["rows"][0]["cells"], json!(["fern", "shed", "5m"]));
    let second = parsed(&tables.next(&store, now()).unwrap()).remove(0);
    assert_eq!(
        (&first["object"]["columnDefinitions"][0]["name"], &second["object"]["columnDefinitions"]),
        (&json!("Name"), &Value::Null)
    );
}

#[test]
fn a_revision_that_is_not_known_is_expired() {
    let first = store();
    for revision in [99, 106, u64::MAX] {
        let url = format!("{BASE}/packagemanifests?watch=1&resourceVersion={revision}");
        assert_eq!(refused(&first, &url, "").0, 410, "of another process, or too old: {revision}");
    }
    let mut slow = watch(&first, "packagemanifests?watch=1&resourceVersion=105", "");
    let mut store = first;
    let (one, other) = (catalog("olm", "a", 0, &["rose"]), catalog("olm", "b", 0, &["rose"]));
    for round in 0..3000 {
        store = store.replaced(all(std::slice::from_ref(if round % 2 == 0 { &one } else { &other })));
    }
    let ended = parsed(&slow.next(&store, now()).unwrap_err()).remove(0);
    assert_eq!((&ended["type"], &ended["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[test]
fn an_icon_cannot_execute_anything() {
    let icon = |media_type: &str| {
        let etag = "\"rose.stable\r\nx: y.rose.v1\"".to_owned();
        Some(Icon { media_type: media_type.to_owned(), data: b"<svg/>".to_vec(), etag })
    };
    let response = Response::icon(icon("image/svg+xml"));
    assert_eq!((response.code, text(&response.body).as_str()), (200, "<svg/>"));
    assert_eq!(header(&response, "content-type").unwrap(), "image/svg+xml");
    assert_eq!(header(&response, "etag").unwrap(), "\"rose.stablex:y.rose.v1\"");
    assert!(header(&response, "content-security-policy").unwrap().contains("sandbox"));
    for hostile in ["text/html", "", "image/png\r\nx: y", "image/", "IMAGE/png"] {
        let media_type = header(&Response::icon(icon(hostile)), "content-type").unwrap();
        assert_eq!(media_type, "application/octet-stream", "{hostile}");
    }
    let known = Response::icon(icon("image/png")).unless_known("\"a\", W/\"rose.stablex:y.rose.v1\"");
    assert_eq!((known.code, known.body.len()), (304, 0));
    assert!(text(&Response::icon(None).body).starts_with("<svg"));
    let store = store();
    assert!(matches!(
        get(&store, &format!("{BASE}/namespaces/a/packagemanifests/rose/icon"), "image/*").unwrap(),
        Reply::Icon(_)
    ));
    assert_eq!(refused(&store, &format!("{BASE}/namespaces/a/packagemanifests/rose/logo"), "").0, 404);
}

fn config_map(names: &str) -> Value {
    json!({ "data": {
        "requestheader-client-ca-file": "PEM", "requestheader-allowed-names": names,
        "requestheader-username-headers": "[\"X-Remote-User\"]", "requestheader-group-headers": "[\"X-Remote-Group\"]",
        "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
    } })
}

#[test]
fn users_are_those_that_the_api_server_names() {
    let headers = [
        ("x-remote-user", "ada"),
        ("x-remote-group", "gardeners"),
        ("x-remote-group", "system:authenticated"),
        ("x-remote-extra-a%2fb", "c"),
        ("x-other", "root"),
    ];
    let proxy = FrontProxy::read(&config_map("[\"front-proxy\"]")).unwrap();
    let ada = proxy.user("front-proxy", headers.into_iter()).unwrap();
    assert_eq!((ada.name.as_str(), ada.groups.len(), ada.is_master()), ("ada", 2, false));
    let attributes = |method: &str, url: &str| {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        Attributes::from_request(method, path, &Target::from_path(path), query)
    };
    let listing = attributes("GET", &format!("{BASE}/namespaces/olm/packagemanifests")).unwrap();
    assert_eq!(
        ada.review(&listing)["spec"],
        json!({
            "user": "ada", "groups": ["gardeners", "system:authenticated"], "extra": { "a/b": ["c"] },
            "resourceAttributes": {
                "group": "packages.operators.coreos.com", "version": "v1", "resource": "packagemanifests", "verb": "list",
                "namespace": "olm",
            },
        })
    );
    assert_eq!(
        ada.forbidden(&listing).message,
        "packagemanifests.packages.operators.coreos.com is forbidden: User \"ada\" cannot list resource \"packagemanifests\" in API group \
         \"packages.operators.coreos.com\" in the namespace \"olm\""
    );
    for (method, url, verb) in [
        ("GET", format!("{BASE}/packagemanifests?watch=1"), "watch"),
        ("GET", format!("{BASE}/namespaces/a/packagemanifests/b/icon"), "get"),
        ("DELETE", format!("{BASE}/packagemanifests"), "deletecollection"),
        ("PATCH", format!("{BASE}/namespaces/a/packagemanifests/b"), "patch"),
    ] {
        let Some(Attributes::Resource { verb: actual, .. }) = attributes(method, &url) else { panic!("{url}") };
        assert_eq!(actual, verb, "{method} {url}");
    }
    let path = attributes("GET", "/metrics").unwrap();
    assert_eq!(ada.forbidden(&path).message, "forbidden: User \"ada\" cannot get path \"/metrics\"");
    assert_eq!(attributes("GET", "/healthz"), None);

    assert_eq!(proxy.user("ada", headers.into_iter()).unwrap_err().code, 401, "a certificate of the same authority");
    assert_eq!(proxy.user("front-proxy", headers.into_iter().skip(1)).unwrap_err().code, 401, "no user");
    let any = FrontProxy::read(&config_map("[]")).unwrap();
    let groups = |headers: &[(&'static str, &'static str)]| any.user("ada", headers.iter().copied()).unwrap().groups;
    assert_eq!(groups(&[("x-remote-user", "system:aggregator")]), ["system:authenticated"]);
    let anonymous = [("x-remote-user", "system:anonymous"), ("x-remote-group", "system:unauthenticated")];
    assert_eq!(groups(&anonymous), ["system:unauthenticated"]);
    assert!(
        any.user("ada", [("x-remote-group", "system:masters"), ("x-remote-user", "a")].into_iter())
            .unwrap()
            .is_master()
    );
    assert!(FrontProxy::read(&config_map("names")).unwrap_err().starts_with("requestheader-allowed-names: "));
    assert!(FrontProxy::read(&json!({ "data": { "client-ca-file": "PEM" } })).is_err());
    assert!(is_allowed(&json!({ "status": { "allowed": true } })));
    for no in [
        json!({}),
        json!({ "status": { "allowed": true, "denied": true } }),
        json!({ "status": { "allowed": "true" } }),
    ] {
        assert!(!is_allowed(&no), "{no}");
    }
}

#[test]
fn the_registration_leads_to_the_address() {
    let address = ("2001:db8::1", 5443);
    let objects = registration::objects("olm", address, "PEM", "v1.36.1");
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Service", "EndpointSlice", "APIService", "ClusterRole"]);
    let [service, slice, api_service, role] = &objects[..] else { panic!("{objects:?}") };
    assert_eq!(
        (&slice["addressType"], &slice["endpoints"][0]["addresses"][0]),
        (&json!("IPv6"), &json!("2001:db8::1"))
    );
    assert_eq!(
        (&slice["ports"][0]["name"], &slice["ports"][0]["port"]),
        (&service["spec"]["ports"][0]["name"], &json!(5443))
    );
    assert!(registration::leads_to(api_service, "PEM") && !registration::leads_to(api_service, "OTHER"));
    assert!(!registration::is_own(&json!({ "metadata": { "labels": { "olm.owner": "packageserver" } } })));
    assert_eq!(role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"], "true");
    assert!(objects.iter().all(registration::is_own));
    // A process that ended leaves an APIService that is not available.
    let reported = |status: &str| {
        let mut api_service = api_service.clone();
        api_service["status"] = json!({ "conditions": [{ "type": "Available", "status": status }] });
        registration::is_abandoned(&api_service)
    };
    assert!(reported("False") && !reported("True") && !registration::is_abandoned(api_service));
    // The objects can belong to an installation.
    let mut owned = objects.clone();
    let owner = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "a", "uid": "7" } });
    registration::set_owner(&mut owned, &owner);
    assert!(owned.iter().all(|object| object["metadata"]["ownerReferences"][0]["uid"] == "7"));
    // Older API servers do not read EndpointSlices.
    assert_eq!(registration::objects("olm", address, "PEM", "v1.32.9-gke.1")[1]["kind"], "Endpoints");
    let certificate = registration::certificate("olm", now());
    assert_eq!(certificate.hosts, ["kubectl-olm-packages.olm.svc"]);
    assert!(!registration::is_due(&certificate, now()));
    let later = now() + jiff::SignedDuration::from_hours(46 * 24);
    assert!(registration::is_due(&certificate, later));
}

#[test]
fn what_tenants_label_does_not_belong_to_the_process() {
    let of = |kind: &str, name: &str, namespace: &str| {
        let objects = registration::objects("olm", ("192.0.2.1", 1), "", "v1.36.0");
        let mut object = objects.into_iter().find(|object| object::kind(object) == kind).unwrap();
        object["metadata"]["name"] = name.into();
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        registration::belongs_to(&object, &["olm"])
    };
    assert!(of("Service", registration::SERVICE, "olm") && of("ClusterRole", registration::ROLE, ""));
    assert!(
        !of("Service", registration::SERVICE, "aaa") && !of("Service", "tea", "olm") && !of("ClusterRole", "tea", "")
    );
}
