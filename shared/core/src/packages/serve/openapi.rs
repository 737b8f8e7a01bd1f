//! OpenAPI documents, which the API server merges with its own: version 2 as a whole, version 3 by group. `kubectl explain` reads them.
//! They never change while the process runs.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::request::OpenApi;
use super::response::{JSON, Response, etag};
use crate::packages::schema::text;
use crate::packages::{GROUP, KIND, PLURAL, VERSION, api_version};

/// The prefix of the names of schemas, as the API server derives it from the group of CustomResourceDefinitions.
const PREFIX: &str = "com.coreos.operators.packages.v1";

/// The schema of PackageManifests, as [`generate`](crate::packages::schema::generate) returns it.
static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("schema.json")).unwrap_or_default());

static V2: LazyLock<Document> = LazyLock::new(|| Document::new(&v2()));
static V3: LazyLock<Document> = LazyLock::new(|| Document::new(&v3()));

/// A serialized document and its entity tag.
struct Document {
    body: Arc<[u8]>,
    etag: String,
}

impl Document {
    fn new(json: &Value) -> Self {
        let body = json.to_string().into_bytes();
        Self { etag: etag(&body), body: body.into() }
    }

    fn response(&self) -> Response {
        Response::document(JSON.to_owned(), self.etag.clone(), self.body.clone())
    }

    /// Returns the entity tag without quotes: the hash in the URL of the document.
    fn hash(&self) -> &str {
        self.etag.trim_matches('"')
    }
}

/// Returns a document. With its `hash` in the URL it never changes.
pub(super) fn response(version: OpenApi, hash: &str) -> Response {
    match version {
        OpenApi::V2 => V2.response(),
        OpenApi::V3 => {
            let path = format!("apis/{}", api_version());
            let url = format!("/openapi/v3/{path}?hash={}", V3.hash());
            Document::new(&json!({ "paths": { path: { "serverRelativeURL": url } } })).response()
        }
        OpenApi::V3OfGroup => {
            let mut response = V3.response();
            if hash == V3.hash() {
                response.headers.retain(|(name, _)| *name != "cache-control");
                response.headers.push(("cache-control", "public, max-age=31536000, immutable".to_owned()));
            }
            response
        }
    }
}

/// The version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

impl Version {
    fn reference(self, kind: &str) -> Value {
        let schemas = if self == Self::Two { "definitions" } else { "components/schemas" };
        json!({ "$ref": format!("#/{schemas}/{PREFIX}.{kind}") })
    }

    fn parameter(self, name: &str, place: &str, type_: &str, description: &str) -> Value {
        let mut parameter = json!({ "name": name, "in": place, "description": description });
        if place == "path" {
            parameter["required"] = true.into();
        }
        match self {
            Self::Two => parameter["type"] = type_.into(),
            Self::Three => parameter["schema"] = json!({ "type": type_ }),
        }
        parameter
    }

    fn operation(self, operation: &Operation) -> Value {
        let Operation { id, action, description, media_type, .. } = operation;
        let schema = match operation.returns {
            Some(kind) => self.reference(kind),
            None => json!({ "type": "string", "format": "binary" }),
        };
        let mut json = json!({
            "operationId": id, "description": description, "tags": ["packagesOperatorsCoreosCom_v1"],
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind(KIND),
        });
        json["responses"]["200"]["description"] = "OK".into();
        match self {
            Self::Two => {
                json["produces"] = json!([media_type]);
                json["responses"]["200"]["schema"] = schema;
            }
            Self::Three => json["responses"]["200"]["content"][media_type]["schema"] = schema,
        }
        if *action == "list" {
            let parameters = LIST_PARAMETERS.map(|[name, type_, what]| self.parameter(name, "query", type_, what));
            json["parameters"] = parameters.into_iter().collect();
        }
        json
    }

    /// Returns the paths with what can be done there.
    fn paths(self) -> Value {
        let mut paths = Map::new();
        for operation in &OPERATIONS {
            let path = format!("/apis/{}/{}", api_version(), operation.path);
            let of_path = PATH_PARAMETERS.iter().filter(|[name, _]| path.contains(&format!("{{{name}}}")));
            let mut item = json!({ "get": self.operation(operation) });
            let parameters: Vec<Value> =
                of_path.map(|[name, what]| self.parameter(name, "path", "string", what)).collect();
            if !parameters.is_empty() {
                item["parameters"] = parameters.into();
            }
            paths.insert(path, item);
        }
        paths.into()
    }

    fn schemas(self) -> Value {
        let revision = text("The revision of the list, from which a watch can continue.");
        let next = text("The value of the parameter continue for the next page, if there is one.");
        let list = json!({
            "description": "The packages of all catalogs that a namespace can use.", "type": "object", "required": ["items"],
            "properties": {
                "apiVersion": text("The API group and version of the list."), "kind": text("The kind of the list."),
                "metadata": {
                    "description": "The revision of the list, and where its next page begins.", "type": "object",
                    "properties": { "resourceVersion": revision, "continue": next, "remainingItemCount": {
                        "description": "The number of packages on the next pages, if it is known.", "type": "integer", "format": "int64",
                    } },
                },
                "items": { "description": "The packages, sorted by name.", "type": "array", "items": self.reference(KIND) },
            },
            "x-kubernetes-group-version-kind": [kind(LIST)],
        });
        json!({ format!("{PREFIX}.{KIND}"): *SCHEMA, format!("{PREFIX}.{LIST}"): list })
    }
}

/// The kind of lists.
const LIST: &str = "PackageManifestList";

fn kind(kind: &str) -> Value {
    json!({ "group": GROUP, "version": VERSION, "kind": kind })
}

/// What can be done with a path: always a GET.
struct Operation {
    /// Below the version.
    path: &'static str,
    id: &'static str,
    action: &'static str,
    description: &'static str,
    /// The kind of the response; `None`: an image.
    returns: Option<&'static str>,
    media_type: &'static str,
}

const OPERATIONS: [Operation; 4] = [
    Operation {
        path: PLURAL,
        id: "listPackagesOperatorsCoreosComV1PackageManifestForAllNamespaces",
        action: "list",
        description: "list or watch the packages of all catalogs",
        returns: Some(LIST),
        media_type: JSON,
    },
    Operation {
        path: "namespaces/{namespace}/packagemanifests",
        id: "listPackagesOperatorsCoreosComV1NamespacedPackageManifest",
        action: "list",
        description: "list or watch the packages that a namespace can use",
        returns: Some(LIST),
        media_type: JSON,
    },
    Operation {
        path: "namespaces/{namespace}/packagemanifests/{name}",
        id: "readPackagesOperatorsCoreosComV1NamespacedPackageManifest",
        action: "get",
        description: "read a package",
        returns: Some(KIND),
        media_type: JSON,
    },
    Operation {
        path: "namespaces/{namespace}/packagemanifests/{name}/icon",
        id: "readPackagesOperatorsCoreosComV1NamespacedPackageManifestIcon",
        action: "get",
        description: "read the icon of a package",
        returns: None,
        media_type: "image/*",
    },
];

const PATH_PARAMETERS: [[&str; 2]; 2] =
    [["name", "name of the package"], ["namespace", "namespace whose catalogs are used, besides global ones"]];

const LIST_PARAMETERS: [[&str; 3]; 7] = [
    ["continue", "string", "where the page begins, as in the metadata of the previous page"],
    ["fieldSelector", "string", "selector of the fields metadata.name and metadata.namespace"],
    ["labelSelector", "string", "selector of labels"],
    ["limit", "integer", "maximum number of packages on a page"],
    ["resourceVersion", "string", "revision from which a watch continues"],
    ["timeoutSeconds", "integer", "duration of a watch"],
    ["watch", "boolean", "report changes, as a stream of events"],
];

fn v2() -> Value {
    json!({
        "swagger": "2.0", "info": { "title": GROUP, "version": VERSION },
        "paths": Version::Two.paths(), "definitions": Version::Two.schemas(),
    })
}

fn v3() -> Value {
    json!({
        "openapi": "3.0.0", "info": { "title": GROUP, "version": VERSION },
        "paths": Version::Three.paths(), "components": { "schemas": Version::Three.schemas() },
    })
}
