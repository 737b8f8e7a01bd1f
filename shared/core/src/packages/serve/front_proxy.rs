//! Who sends a request, and what it needs permission for: the API server authenticates users, and forwards their names in headers, with
//! a client certificate of its own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::request::{Query, Target, decoded};
use crate::api::object;
use crate::api::status::Status;
use crate::packages::{GROUP, PLURAL, VERSION};

/// Namespace and name of the ConfigMap in which the API server publishes how it authenticates itself.
pub const CONFIG_MAP: (&str, &str) = ("kube-system", "extension-apiserver-authentication");

/// The group whose members may do everything. The API server uses it to check whether this API responds.
const MASTERS: &str = "system:masters";
/// The group of users with authentication.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of users without authentication.
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// How the API server authenticates itself and names users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontProxy {
    /// The certificate authority of its client certificate, in PEM.
    pub authority: String,
    /// The permitted common names of the client certificate; empty: all.
    names: Vec<String>,
    user_headers: Vec<String>,
    group_headers: Vec<String>,
    uid_headers: Vec<String>,
    extra_prefixes: Vec<String>,
}

impl FrontProxy {
    /// Reads the ConfigMap.
    ///
    /// # Errors
    /// The API server does not authenticate itself to aggregated APIs, or a value is invalid.
    pub fn read(config_map: &Value) -> Result<Self, String> {
        let text = |key: &str| object::text(config_map, &["data", key]);
        let list = |key: &str, default: &str| match text(key) {
            "" => Ok([default].iter().filter(|name| !name.is_empty()).map(|name| (*name).to_owned()).collect()),
            value => serde_json::from_str::<Vec<String>>(value).map_err(|e| format!("{key}: {e}")),
        };
        let lower = |names: Vec<String>| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let authority = text("requestheader-client-ca-file").to_owned();
        if authority.is_empty() {
            return Err("it has no requestheader-client-ca-file".to_owned());
        }
        Ok(Self {
            authority,
            names: list("requestheader-allowed-names", "")?,
            user_headers: lower(list("requestheader-username-headers", "X-Remote-User")?),
            group_headers: lower(list("requestheader-group-headers", "X-Remote-Group")?),
            uid_headers: lower(list("requestheader-uid-headers", "X-Remote-Uid")?),
            extra_prefixes: lower(list("requestheader-extra-headers-prefix", "X-Remote-Extra-")?),
        })
    }

    /// Returns the user of a request with these headers, in lower case, by the owner of a verified client certificate.
    ///
    /// # Errors
    /// The certificate is not that of the API server, or there is no user: 401.
    pub fn user<'h>(
        &self,
        common_name: &str,
        headers: impl Iterator<Item = (&'h str, &'h str)> + Clone,
    ) -> Result<User, Status> {
        let unauthorized = || Status::new(401, "Unauthorized", "Unauthorized");
        if !self.names.is_empty() && !self.names.iter().any(|name| name == common_name) {
            return Err(unauthorized());
        }
        let all = |names: &[String]| -> Vec<String> {
            let of_name = |name: &String| {
                let name = name.clone();
                headers.clone().filter(move |(header, _)| *header == name).map(|(_, value)| value.to_owned())
            };
            names.iter().flat_map(of_name).collect()
        };
        let first = |names: &[String]| all(names).into_iter().find(|value| !value.is_empty());
        let name = first(&self.user_headers).ok_or_else(unauthorized)?;
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (header, value) in headers.clone() {
            let key = self.extra_prefixes.iter().find_map(|prefix| header.strip_prefix(prefix.as_str()));
            if let Some(key) = key.and_then(|key| decoded(key, false)) {
                extra.entry(key).or_default().push(value.to_owned());
            }
        }
        let mut groups = all(&self.group_headers);
        // The API server sends its own users without it, and each authenticated user belongs to it.
        if !groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Ok(User { name, groups, uid: first(&self.uid_headers).unwrap_or_default(), extra })
    }
}

/// Returns the common name of the owner of a certificate in DER.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject().iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
}

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Name.
    pub name: String,
    /// Groups.
    pub groups: Vec<String>,
    uid: String,
    extra: BTreeMap<String, Vec<String>>,
}

/// What a request needs permission for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attributes {
    /// A path that is no resource.
    Path {
        /// The path.
        path: String,
        /// The HTTP method in lower case.
        verb: String,
    },
    /// PackageManifests.
    Resource {
        /// The namespace; empty: all.
        namespace: String,
        /// The name; empty: all.
        name: String,
        /// The subresource; empty: the objects.
        subresource: String,
        /// `get`, `list`, `watch`, …
        verb: String,
    },
}

impl Attributes {
    /// Returns what a request needs permission for; `None` if it needs none.
    pub fn from_request(method: &str, path: &str, target: &Target, query: &str) -> Option<Self> {
        let Target::Objects { namespace, name, subresource } = target else {
            let path = || Self::Path { path: path.to_owned(), verb: method.to_ascii_lowercase() };
            return (*target != Target::Health).then(path);
        };
        let verb = match (method, name.is_empty()) {
            ("GET" | "HEAD", true) if Query::is_watch(query) => "watch",
            ("GET" | "HEAD", true) => "list",
            ("GET" | "HEAD", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "deletecollection",
            ("DELETE", false) => "delete",
            (other, _) => &other.to_ascii_lowercase(),
        };
        Some(Self::Resource {
            namespace: namespace.clone(),
            name: name.clone(),
            subresource: subresource.clone(),
            verb: verb.to_owned(),
        })
    }
}

impl User {
    /// Returns whether the user may do everything, so that no authorizer is asked.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// Returns the SubjectAccessReview that decides whether the user has the permission.
    pub fn review(&self, attributes: &Attributes) -> Value {
        let mut spec = json!({ "user": self.name, "groups": self.groups });
        if !self.uid.is_empty() {
            spec["uid"] = self.uid.clone().into();
        }
        if !self.extra.is_empty() {
            let extra = self.extra.iter().map(|(key, values)| (key.clone(), json!(values)));
            spec["extra"] = Value::Object(extra.collect::<Map<_, _>>());
        }
        match attributes {
            Attributes::Path { path, verb } => spec["nonResourceAttributes"] = json!({ "path": path, "verb": verb }),
            Attributes::Resource { namespace, name, subresource, verb } => {
                let mut resource = json!({ "group": GROUP, "version": VERSION, "resource": PLURAL, "verb": verb });
                for (field, value) in [("namespace", namespace), ("name", name), ("subresource", subresource)] {
                    if !value.is_empty() {
                        resource[field] = value.clone().into();
                    }
                }
                spec["resourceAttributes"] = resource;
            }
        }
        json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec })
    }

    /// Returns the refusal of a request without permission, as the API server words it.
    pub fn forbidden(&self, attributes: &Attributes) -> Status {
        let message = match attributes {
            Attributes::Path { path, verb } => format!("forbidden: User {:?} cannot {verb} path {path:?}", self.name),
            Attributes::Resource { namespace, name, subresource, verb } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
                let scope = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {namespace:?}")
                };
                format!(
                    "{PLURAL}.{GROUP}{named} is forbidden: User {:?} cannot {verb} resource \"{PLURAL}{slash}{subresource}\" in API group {GROUP:?} {scope}",
                    self.name
                )
            }
        };
        Status::new(403, "Forbidden", message)
    }
}

/// Returns whether a SubjectAccessReview permits the request.
pub fn is_allowed(review: &Value) -> bool {
    object::at(review, &["status", "allowed"]) == true && object::at(review, &["status", "denied"]) != true
}
