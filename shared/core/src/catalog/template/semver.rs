//! `olm.semver`: bundles by maturity. Channels, edges and the default channel are derived from their versions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::migrate;
use super::{Images, field, list_of, text_of};
use crate::api::object::{at, list, text};
use crate::bundle::encoded_again;
use crate::bundle::property::{CSV_METADATA, PACKAGE};
use crate::go_format::quote;
use crate::version::{self, Version};

/// The maturities, the least mature first.
const ARCHETYPES: [&str; 3] = ["candidate", "fast", "stable"];

/// The part of the version that the versions of a channel have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Major,
    Minor,
}

struct Settings {
    major: bool,
    minor: bool,
    preferred: Stream,
}

/// A bundle of one maturity.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    version: Version,
    image: String,
}

/// A channel under construction: its members in ascending order.
#[derive(Debug)]
struct Channel {
    name: String,
    archetype: usize,
    stream: Stream,
    members: Vec<Member>,
}

pub(super) fn render(template: &Map<String, Value>, images: &mut Images<'_>) -> Result<Vec<Value>, String> {
    let settings = settings(template).map_err(|e| format!("render: unable to read file: {e}"))?;
    let mut bundles: BTreeMap<String, Value> = BTreeMap::new();
    for archetype in ARCHETYPES {
        for image in images_of(template, archetype)? {
            if bundles.contains_key(&image) {
                continue;
            }
            let blobs = images(&image).map_err(|e| format!("render: {e}"))?;
            let mut found = blobs.into_iter().filter(|b| text(b, &["schema"]) == "olm.bundle");
            let (Some(bundle), None) = (found.next(), found.next()) else {
                return Err(format!("render: the image {image} does not contain exactly one bundle"));
            };
            bundles.insert(image, bundle);
        }
    }
    if bundles.is_empty() {
        return Err("render: no bundles specified or no bundles could be rendered".to_owned());
    }
    let mut package = None;
    let mut channels = Vec::new();
    let mut edges: BTreeMap<(usize, String), Value> = BTreeMap::new();
    for (index, archetype) in ARCHETYPES.iter().enumerate() {
        let members = members(&images_of(template, archetype)?, &bundles, &mut package)
            .map_err(|e| format!("render: unable to post-process bundle info: {e}"))?;
        for (member, entry) in members.iter().zip(entries(&members)) {
            edges.insert((index, member.name.clone()), entry);
        }
        for stream in [Stream::Major, Stream::Minor] {
            if (stream == Stream::Major && settings.major) || (stream == Stream::Minor && settings.minor) {
                channels.extend(channels_of(index, stream, &members));
            }
        }
    }
    let package = package.unwrap_or_default();
    let default = channels.iter().max_by(|a, b| {
        let first = |c: &Channel| c.members.first().map(|m| m.version.clone());
        let lowest = |a, b| match (first(a), first(b)) {
            (Some(a), Some(b)) => version::compare(&a, &b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        let is_preferred = |c: &Channel| c.stream == settings.preferred;
        a.archetype.cmp(&b.archetype).then_with(|| lowest(a, b)).then_with(|| is_preferred(a).cmp(&is_preferred(b)))
    });
    let mut blobs = Vec::new();
    if let Some(default) = default {
        let head = default.members.last().and_then(|m| bundles.get(&m.image));
        blobs.push(package_blob(&package, &default.name, head));
    }
    blobs.extend(channels.iter().map(|channel| {
        let entry = |m: &Member| edges.get(&(channel.archetype, m.name.clone())).cloned();
        let entries: Vec<Value> = channel.members.iter().filter_map(entry).collect();
        json!({"schema": "olm.channel", "name": channel.name, "package": package, "entries": entries})
    }));
    blobs.extend(bundles.into_values());
    Ok(blobs)
}

fn settings(template: &Map<String, Value>) -> Result<Settings, String> {
    const FIELDS: [&str; 7] = [
        "schema",
        "generateMajorChannels",
        "generateMinorChannels",
        "defaultChannelTypePreference",
        "candidate",
        "fast",
        "stable",
    ];
    let is_known = |key: &&String| FIELDS.iter().any(|known| key.eq_ignore_ascii_case(known));
    if let Some(unknown) = template.keys().find(|key| !is_known(key)) {
        return Err(format!("error unmarshaling JSON: while decoding JSON: json: unknown field {}", quote(unknown)));
    }
    let flag = |name: &str| match field(template, name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("{name} is not a boolean")),
    };
    let (major, minor) = (flag("generateMajorChannels")?, flag("generateMinorChannels")?);
    let minor = minor || !major;
    let mismatch = |kind: &str| {
        Err(format!(
            "schema attribute mismatch: DefaultChannelTypePreference set to '{kind}' doesn't make sense if not generating {kind}-version channels"
        ))
    };
    let preferred = match field(template, "defaultChannelTypePreference").and_then(Value::as_str).unwrap_or_default() {
        "" | "minor" if minor => Stream::Minor,
        "" => Stream::Major,
        "minor" => return mismatch("minor"),
        "major" if major => Stream::Major,
        "major" => return mismatch("major"),
        other => {
            let other = quote(other);
            return Err(format!("unknown DefaultChannelTypePreference: {other}\nValid values are 'major' or 'minor'"));
        }
    };
    Ok(Settings { major, minor, preferred })
}

fn images_of(template: &Map<String, Value>, archetype: &str) -> Result<Vec<String>, String> {
    match field(template, archetype) {
        Some(Value::Object(of)) => Ok(list_of(of, "bundles")?.iter().map(|b| text_of(b, "image").to_owned()).collect()),
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(_) => Err(format!("render: unable to read file: {archetype} is not an object with bundles")),
    }
}

/// Returns the bundles of one maturity in ascending order. All belong to one package.
fn members(
    images: &[String],
    bundles: &BTreeMap<String, Value>,
    package: &mut Option<String>,
) -> Result<Vec<Member>, String> {
    let mut members: Vec<Member> = Vec::new();
    for image in images {
        let Some(bundle) = bundles.get(image) else { continue };
        let name = text(bundle, &["name"]);
        let of: Vec<&Value> = list(bundle, &["properties"])
            .iter()
            .filter(|p| text(p, &["type"]) == PACKAGE)
            .map(|p| at(p, &["value"]))
            .collect();
        let [of] = of[..] else {
            return Err(format!("bundle {} has multiple {PACKAGE:?} properties, expected exactly 1", quote(name)));
        };
        let version = version::parse(text(of, &["version"])).map_err(|e| {
            format!("bundle {} has invalid version {}: {e}", quote(name), quote(text(of, &["version"])))
        })?;
        let belongs = text(of, &["packageName"]);
        let package = package.get_or_insert_with(|| belongs.to_owned());
        if belongs != package {
            return Err(format!("bundle {} does not belong to this package: {}", quote(belongs), quote(package)));
        }
        if members.iter().any(|m| m.name == name) {
            return Err(format!("duplicate bundle name {}", quote(name)));
        }
        members.push(Member { name: name.to_owned(), version, image: image.clone() });
    }
    members.sort_by(|a, b| version::compare(&a.version, &b.version));
    let same = |pair: &&[Member]| version::compare(&pair[0].version, &pair[1].version).is_eq();
    if let Some(pair) = members.windows(2).find(same) {
        return Err(format!(
            "encountered bundle versions which differ only by build metadata, which cannot be ordered: \
             {} and {} both have version {}",
            quote(&pair[0].name),
            quote(&pair[1].name),
            pair[0].version
        ));
    }
    Ok(members)
}

/// Returns the channel entries of members in ascending order. Only the highest patch of each minor version has edges: it
/// replaces that of the previous minor version, if the major version is the same, and skips all earlier versions of the
/// major version.
fn entries(members: &[Member]) -> Vec<Value> {
    let mut entries = Vec::new();
    let (mut earlier, mut replaced): (BTreeSet<&str>, Option<&str>) = (BTreeSet::new(), None);
    for (index, member) in members.iter().enumerate() {
        let mut entry = json!({"name": member.name});
        let next = members.get(index + 1).map(|m| (m.version.major, m.version.minor));
        if next != Some((member.version.major, member.version.minor)) {
            let skips: Vec<&str> = earlier.iter().copied().filter(|name| Some(*name) != replaced).collect();
            if let Some(replaced) = replaced {
                entry["replaces"] = replaced.into();
            }
            if !skips.is_empty() {
                entry["skips"] = skips.into();
            }
            replaced = Some(&member.name);
        }
        earlier.insert(&member.name);
        if next.is_some_and(|(major, _)| major != member.version.major) {
            (earlier, replaced) = (BTreeSet::new(), None);
        }
        entries.push(entry);
    }
    entries
}

fn channels_of(archetype: usize, stream: Stream, members: &[Member]) -> Vec<Channel> {
    let mut channels: Vec<Channel> = Vec::new();
    for member in members {
        let Version { major, minor, .. } = member.version;
        let name = match stream {
            Stream::Major => format!("{}-v{major}", ARCHETYPES[archetype]),
            Stream::Minor => format!("{}-v{major}.{minor}", ARCHETYPES[archetype]),
        };
        match channels.last_mut().filter(|c| c.name == name) {
            Some(channel) => channel.members.push(member.clone()),
            None => channels.push(Channel { name, archetype, stream, members: vec![member.clone()] }),
        }
    }
    channels
}

/// Returns the package's blob, described by the CSV of a bundle.
pub(in crate::catalog) fn package_blob(name: &str, default_channel: &str, head: Option<&Value>) -> Value {
    let mut package = json!({"schema": "olm.package", "name": name, "defaultChannel": default_channel});
    let properties = head.map_or(&[][..], |head| list(head, &["properties"]));
    let metadata = properties.iter().find(|p| text(p, &["type"]) == CSV_METADATA).map(|p| at(p, &["value"]).clone());
    let described = migrate::csv(properties).map(|csv| at(&csv, &["spec"]).clone()).or(metadata).unwrap_or_default();
    if let [icon, ..] = list(&described, &["icon"]) {
        let [data, mediatype] = ["base64data", "mediatype"].map(|key| text(icon, &[key]));
        package["icon"] = json!({"base64data": encoded_again(data), "mediatype": mediatype});
    }
    let description = text(&described, &["description"]);
    if !description.is_empty() {
        package["description"] = description.into();
    }
    package
}
