//! Path, query and headers of a request.

use std::collections::BTreeMap;

use super::selector::Selector;
use crate::api::status::Status;
use crate::packages::{GROUP, PLURAL, VERSION};

/// The maximum duration of a watch, in seconds: the API server's own default is half an hour to an hour.
const LONGEST_WATCH: u64 = 30 * 60;

/// What a path identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/healthz`, `/livez` or `/readyz`.
    Health,
    /// `/apis`
    Groups,
    /// `/apis/packages.operators.coreos.com`
    Group,
    /// `/apis/packages.operators.coreos.com/v1`
    Resources,
    /// PackageManifests.
    Objects {
        /// The namespace; empty: all namespaces.
        namespace: String,
        /// The name of one object; empty: all objects.
        name: String,
        /// The subresource; empty: the object itself.
        subresource: String,
    },
    /// `/openapi/v2`, `/openapi/v3` and below.
    OpenApi(OpenApi),
    /// Anything else.
    Unknown,
}

/// A document that describes the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenApi {
    /// `/openapi/v2`
    V2,
    /// `/openapi/v3`, which lists groups and versions.
    V3,
    /// `/openapi/v3/apis/packages.operators.coreos.com/v1`
    V3OfGroup,
}

impl Target {
    /// Returns what the path of a URL identifies.
    pub fn from_path(path: &str) -> Self {
        let parts: Option<Vec<String>> = path.trim_matches('/').split('/').map(|part| decoded(part, false)).collect();
        let Some(parts) = parts else { return Self::Unknown };
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let objects = |namespace: &str, name: &str, subresource: &str| Self::Objects {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        };
        match parts[..] {
            ["healthz" | "livez" | "readyz"] => Self::Health,
            ["openapi", "v2"] => Self::OpenApi(OpenApi::V2),
            ["openapi", "v3"] => Self::OpenApi(OpenApi::V3),
            ["openapi", "v3", "apis", GROUP, VERSION] => Self::OpenApi(OpenApi::V3OfGroup),
            ["apis"] => Self::Groups,
            ["apis", GROUP] => Self::Group,
            ["apis", GROUP, VERSION] => Self::Resources,
            ["apis", GROUP, VERSION, PLURAL] => objects("", "", ""),
            ["apis", GROUP, VERSION, "namespaces", namespace, PLURAL] if !namespace.is_empty() => {
                objects(namespace, "", "")
            }
            ["apis", GROUP, VERSION, "namespaces", namespace, PLURAL, name]
                if !namespace.is_empty() && !name.is_empty() =>
            {
                objects(namespace, name, "")
            }
            ["apis", GROUP, VERSION, "namespaces", namespace, PLURAL, name, subresource]
                if !namespace.is_empty() && !name.is_empty() && !subresource.is_empty() =>
            {
                objects(namespace, name, subresource)
            }
            _ => Self::Unknown,
        }
    }
}

/// The form of objects that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Whole objects.
    Object,
    /// `PartialObjectMetadata`
    Metadata,
    /// `Table`
    Table,
}

impl Form {
    /// Returns the first form of an `Accept` header that is served.
    ///
    /// # Errors
    /// None is served: 406.
    pub fn from_accept(accept: &str) -> Result<Self, Status> {
        accepted(accept, |range| match range.get("as") {
            None => Some(Self::Object),
            Some("Table") => Some(Self::Table),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Self::Metadata),
            Some(_) => None,
        })
    }
}

/// The parameters of a media range: `as=Table;v=v1`.
pub(super) struct Parameters<'a>(&'a str);

impl<'a> Parameters<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let mut parameters = self.0.split(';').filter_map(|part| part.trim().split_once('='));
        parameters.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    }

    /// Returns the weight of the range, from 0, which excludes it, to 1, which an absent or invalid one also means.
    fn weight(&self) -> f32 {
        let weight = self.get("q").or_else(|| self.get("Q")).and_then(|text| text.parse::<f32>().ok());
        weight.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(1.0)
    }
}

/// Returns the form of the first range of an `Accept` header that includes JSON and has one, among those of the greatest weight. A range of
/// weight 0 excludes what it names, also from ranges with wildcards (RFC 9110, 12.5.1). Without ranges all are accepted.
///
/// # Errors
/// None is served: 406.
pub(super) fn accepted<T>(accept: &str, form: impl Fn(Parameters<'_>) -> Option<T>) -> Result<T, Status> {
    let accept = if accept.trim().is_empty() { "*/*" } else { accept };
    let ranges = accept.split(',').map(|range| {
        let (media, parameters) = range.split_once(';').unwrap_or((range, ""));
        (media.trim(), Parameters(parameters))
    });
    let (excluded, mut ranges): (Vec<_>, Vec<_>) = ranges.partition(|(_, parameters)| parameters.weight() == 0.0);
    ranges.sort_by(|(_, a), (_, b)| b.weight().total_cmp(&a.weight()));
    let is_excluded = |name: &str| excluded.iter().any(|(media, of)| *media == name && of.get("as").is_none());
    let is_json = |media: &str| match media {
        "application/json" => true,
        "application/*" => !is_excluded("application/json"),
        "*/*" => !is_excluded("application/json") && !is_excluded("application/*"),
        _ => false,
    };
    let form_of = |(media, parameters): (&str, Parameters<'_>)| is_json(media).then(|| form(parameters)).flatten();
    ranges.into_iter().find_map(form_of).ok_or_else(|| {
        let message = "only the following media types are accepted: application/json, objects also as a Table or PartialObjectMetadata";
        Status::new(406, "NotAcceptable", message)
    })
}

/// Which objects the rows of a Table contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Included {
    /// None.
    Nothing,
    /// Their metadata.
    Metadata,
    /// Whole objects.
    Object,
}

/// The query parameters of a request for PackageManifests.
#[derive(Clone, Debug)]
pub struct Query {
    /// Which objects are requested.
    pub selector: Selector,
    /// Whether changes are requested.
    pub watch: bool,
    /// The revision that a client knows; empty: none.
    pub resource_version: String,
    /// The maximum number of objects of a page; 0: no maximum.
    pub limit: usize,
    /// Where the page begins; empty: with the first object.
    pub from: String,
    /// Whether a watch begins with the existing objects; `None`: if no revision is stated.
    pub initial_events: Option<bool>,
    /// Whether a watch reports its revision from time to time.
    pub bookmarks: bool,
    /// The duration of a watch, in seconds.
    pub seconds: u64,
    /// Which objects the rows of a Table contain.
    pub included: Included,
}

/// Returns the `hash` of a document's URL; empty: none.
pub(super) fn hash(query: &str) -> Result<String, Status> {
    Ok(parameters(query)?.remove("hash").unwrap_or_default())
}

impl Query {
    /// Reads the query of a URL.
    ///
    /// # Errors
    /// A parameter is invalid: 400.
    pub fn read(query: &str) -> Result<Self, Status> {
        let parameters = parameters(query)?;
        let get = |name: &str| parameters.get(name).map_or("", String::as_str);
        let number = |name: &str| match get(name) {
            "" => Ok(0),
            text => text.parse::<u64>().map_err(|_| bad(format!("invalid value {text:?} of {name}: not a number"))),
        };
        let flag = |name: &str| match get(name) {
            // Kubernetes treats a parameter without a value as true.
            "" => Ok(parameters.contains_key(name)),
            "true" | "1" | "True" | "t" => Ok(true),
            "false" | "0" | "False" | "f" => Ok(false),
            text => Err(bad(format!("invalid value {text:?} of {name}: neither true nor false"))),
        };
        let included = match get("includeObject") {
            "None" => Included::Nothing,
            "" | "Metadata" => Included::Metadata,
            "Object" => Included::Object,
            other => return Err(bad(format!("invalid value {other:?} of includeObject: None, Metadata or Object"))),
        };
        let seconds = match number("timeoutSeconds")? {
            0 => LONGEST_WATCH,
            seconds => seconds.min(LONGEST_WATCH),
        };
        Ok(Self {
            selector: Selector::read(get("labelSelector"), get("fieldSelector")).map_err(bad)?,
            watch: flag("watch")?,
            resource_version: get("resourceVersion").to_owned(),
            limit: usize::try_from(number("limit")?).unwrap_or(usize::MAX),
            from: get("continue").to_owned(),
            initial_events: parameters
                .contains_key("sendInitialEvents")
                .then(|| flag("sendInitialEvents"))
                .transpose()?,
            bookmarks: flag("allowWatchBookmarks")?,
            seconds,
            included,
        })
    }

    /// Returns whether the query of a URL requests changes. A query that cannot be read is refused later.
    pub fn is_watch(query: &str) -> bool {
        Self::read(query).is_ok_and(|query| query.watch)
    }
}

/// Returns the refusal of an invalid request.
pub(super) fn bad(message: String) -> Status {
    Status::new(400, "BadRequest", message)
}

fn parameters(query: &str) -> Result<BTreeMap<String, String>, Status> {
    let mut parameters = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let both = decoded(name, true).zip(decoded(value, true));
        let (name, value) = both.ok_or_else(|| bad(format!("invalid query parameter {pair:?}: invalid escape")))?;
        // Of several values Kubernetes uses the first.
        parameters.entry(name).or_insert(value);
    }
    Ok(parameters)
}

/// Decodes a part of a URL. In queries `+` is a space. `None` if it is invalid.
pub(super) fn decoded(text: &str, is_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?].map(|digit| char::from(digit).to_digit(16));
                let [Some(high), Some(low)] = digits else { return None };
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if is_query => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
