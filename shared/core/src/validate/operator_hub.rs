//! What OperatorHub.io requires, in the words of the operator-framework.

use serde_json::Value;

use super::input::Input;
use super::rule;
use crate::api::object::{annotation, at, list, text};
use crate::bundle::synthesis::Manifest;
use crate::go_format::quote;
use crate::version;

/// The levels of capabilities.
const CAPABILITIES: [&str; 5] = ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];
/// The categories.
const CATEGORIES: [&str; 16] = [
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Developer Tools",
    "Database",
    "Integration & Delivery",
    "Logging & Tracing",
    "Monitoring",
    "Modernization & Migration",
    "Networking",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
    "Observability",
];
/// The media types of icons.
const MEDIA_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/svg+xml"];

/// Checks the descriptive fields.
pub(super) fn check(input: &mut Input, csv: &Manifest) {
    let spec = at(&csv.object, &["spec"]);
    if text(spec, &["provider", "name"]).trim().is_empty() {
        input.report(&rule::PROVIDER, csv, &["spec", "provider"], "csv.Spec.Provider.Name not specified");
    }
    for (n, maintainer) in list(spec, &["maintainers"]).iter().enumerate() {
        let path = ["spec", "maintainers", &n.to_string()];
        let (name, email) = (text(maintainer, &["name"]), text(maintainer, &["email"]));
        if name.is_empty() || email.is_empty() {
            let message = "csv.Spec.Maintainers elements should contain both name and email";
            input.report(&rule::MAINTAINER, csv, &path, message);
        }
        if !email.is_empty()
            && let Some(problem) = address_problem(email)
        {
            let message = format!("csv.Spec.Maintainers email {email} is invalid: {problem}");
            input.report(&rule::MAINTAINER, csv, &path, message);
        }
    }
    for (n, link) in list(spec, &["links"]).iter().enumerate() {
        let path = ["spec", "links", &n.to_string()];
        let (name, url) = (text(link, &["name"]), text(link, &["url"]));
        if name.is_empty() || url.is_empty() {
            input.report(&rule::LINK, csv, &path, "csv.Spec.Links elements should contain both name and url");
        }
        if !url.is_empty()
            && let Some(problem) = url_problem(url)
        {
            input.report(&rule::LINK, csv, &path, format!("csv.Spec.Links url {url} is invalid: {problem}"));
        }
    }
    let is_zero = |version: &version::Version| {
        (version.major, version.minor, version.patch) == (0, 0, 0) && version.pre.is_empty()
    };
    if version::parse_tolerant(text(spec, &["version"])).map_or(true, |version| is_zero(&version)) {
        input.report(&rule::NO_VERSION, csv, &["spec", "version"], "csv.Spec.Version must be set");
    }
    icon(input, csv);
}

fn icon(input: &mut Input, csv: &Manifest) {
    let path = ["spec", "icon"];
    let Some(icons) = at(&csv.object, &path).as_array() else {
        return input.report(&rule::NO_ICON, csv, &["spec"], "csv.Spec.Icon not specified");
    };
    if icons.len() != 1 {
        input.report(&rule::ICON, csv, &path, "csv.Spec.Icon should only have one element");
    }
    let Some(icon) = icons.first() else { return };
    let media_type = text(icon, &["mediatype"]);
    if media_type.is_empty() || text(icon, &["base64data"]).is_empty() {
        input.report(&rule::ICON, csv, &path, "csv.Spec.Icon elements should contain both data and mediatype");
    }
    if !media_type.is_empty() && !MEDIA_TYPES.contains(&media_type) {
        input.report(&rule::ICON, csv, &path, format!("csv.Spec.Icon {media_type} does not have a valid mediatype"));
    }
}

/// Returns why a text is not one email address (RFC 5322), optionally with a name in front of it.
fn address_problem(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => match rest.strip_suffix('>') {
            Some(address) => address,
            None => return Some("mail: unclosed angle-addr"),
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return Some("mail: missing '@' or angle-addr") };
    let is_atom = |atom: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c);
        !atom.is_empty() && atom.chars().all(allowed)
    };
    let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    if !is_quoted && !local.split('.').all(is_atom) {
        return Some("mail: no angle-addr");
    }
    let is_literal = domain.starts_with('[') && domain.ends_with(']');
    (!is_literal && !domain.split('.').all(is_atom)).then_some("mail: missing or invalid domain")
}

/// Returns why a text is not an absolute URL or path, as Go's `url.ParseRequestURI` reads it.
fn url_problem(url: &str) -> Option<String> {
    let refused = |why: &str| Some(format!("parse {}: {why}", quote(url)));
    if url.chars().any(|c| c.is_ascii_control()) {
        return refused("net/url: invalid control character in URL");
    }
    if url.starts_with('/') {
        return None;
    }
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    let rest = match url.split_once(':') {
        Some(("", _)) => return refused("missing protocol scheme"),
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ => return refused("invalid URI for request"),
    };
    let host = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    if host.contains(' ') { refused("invalid character \" \" in host name") } else { None }
}

/// Checks the annotation with the level of capabilities.
pub(super) fn capabilities(input: &mut Input, csv: &Manifest) {
    let Some(level) = annotation(&csv.object, "capabilities") else { return };
    if !CAPABILITIES.contains(&level) {
        let message =
            format!("csv.Metadata.Annotations.Capabilities {} is not a valid capabilities level", quote(level));
        input.report(&rule::CAPABILITIES, csv, &["metadata", "annotations", "capabilities"], message);
    }
}

/// Checks the annotation with the categories; `custom` replaces the standard ones.
pub(super) fn categories(input: &mut Input, csv: &Manifest, custom: Option<&[String]>) {
    let Some(categories) = annotation(&csv.object, "categories") else { return };
    let is_known = |category: &str| match custom {
        Some(custom) => custom.iter().any(|known| known == category),
        None => CATEGORIES.contains(&category),
    };
    let set = if custom.is_some() { "custom" } else { "standard" };
    for category in categories.split(',').filter(|category| !is_known(category.trim())) {
        let message = format!(
            "csv.Metadata.Annotations[\"categories\"] value {} is not in the set of {set} categories",
            quote(category)
        );
        input.report(&rule::CATEGORIES, csv, &["metadata", "annotations", "categories"], message);
    }
}

/// Reads a file with custom categories: `{"categories": [...]}`.
pub fn custom_categories(file: &Value) -> Option<Vec<String>> {
    let categories = file.get("categories")?.as_array()?;
    Some(categories.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
