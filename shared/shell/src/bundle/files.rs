//! The files of a bundle, in each of the formats in which it can be written.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::api::{hash, object};
use olm_core::bundle::File;
use olm_core::bundle::synthesis::{MEDIA_TYPE, Manifest, OLM_YAML, Synthesis};
use serde_json::{Value, json};

use super::carried::Carried;
use super::directory::REGISTRY_V1;
use super::options::{Options, Target};
use super::package_manifest::{self, PackageManifest};
use crate::cli::CliError;
use crate::cli::data::yaml;
use crate::image::{
    BUNDLE_LABEL, CHANNELS_LABEL, DEFAULT_CHANNEL_LABEL, MANIFESTS_LABEL, MEDIA_TYPE_LABEL, METADATA_LABEL,
};

/// The channel of a bundle for which none is stated.
const DEFAULT_CHANNEL: &str = "stable";
/// Maximum number of characters of a name in a file name; file systems accept 255 bytes.
const NAME: usize = 100;

/// The files of a bundle, by their path in its directory.
pub(super) type Files = BTreeMap<String, String>;

/// What a bundle is written from.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) synthesis: &'a Synthesis,
    pub(super) manifests: &'a [Manifest],
    /// olm.yaml.
    pub(super) metadata: Option<&'a File>,
    pub(super) carried: &'a Carried,
}

/// Returns the files of the bundle, and the names of those that were edited in place, with nothing left to merge. `read_package_manifest` reads the package's file, if it
/// exists.
pub(super) fn of_bundle(
    options: &Options,
    parts: Parts<'_>,
    read_package_manifest: &dyn Fn(&str) -> Result<Option<PackageManifest>, CliError>,
) -> Result<(Files, BTreeSet<String>), CliError> {
    let Parts { synthesis, manifests, metadata, carried } = parts;
    let name = object::name(&synthesis.csv);
    let package = options.package.as_deref().or_else(|| carried.package());
    let package = package.unwrap_or_else(|| name.split(".v").next().unwrap_or(name)).to_owned();
    let (channels, default_channel) = channels(options, carried)?;
    let (mut files, mut edited) = (Files::new(), BTreeSet::new());
    match options.target {
        Target::Csv => {
            files.insert(csv_file("manifests", name), yaml(&synthesis.csv)?);
            return Ok((files, edited));
        }
        Target::RegistryV1 => objects("manifests", synthesis, &mut files)?,
        Target::PackageManifests => {
            let version = object::text(&synthesis.csv, &["spec", "version"]);
            objects(version, synthesis, &mut files)?;
            let file = format!("{package}.package.yaml");
            let known = read_package_manifest(&file)?;
            let content = known.as_ref().map(|known| known.content.clone());
            let wanted =
                package_manifest::with_channels(&package, name, &channels, default_channel.as_deref(), content)?;
            let text = match known.and_then(|known| package_manifest::edited(&known, &wanted)) {
                Some(text) => {
                    edited.insert(file.clone());
                    text
                }
                None => yaml(&wanted)?,
            };
            files.insert(file, text);
            return Ok((files, edited));
        }
        Target::PlainV1 => {
            for manifest in manifests {
                let text = manifest.text().map(|text| {
                    let text = text.trim_start_matches(['\n', '\r']);
                    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
                });
                // Comments stay, unless the text alone means something else.
                let is_same = |text: &String| {
                    olm_core::yaml::first(text.as_bytes()).is_ok_and(|object| object == manifest.object)
                };
                let text = match text.filter(is_same) {
                    Some(text) => text,
                    None => yaml(&manifest.object)?,
                };
                files.insert(file_name("manifests", &manifest.object, &files), text);
            }
            let text = metadata.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).unwrap_or_default();
            files.insert(OLM_YAML.to_owned(), text);
        }
    }
    let media_type = if options.target == Target::PlainV1 { MEDIA_TYPE } else { REGISTRY_V1 };
    let mut annotations = carried.annotations.clone();
    let own = [
        (MEDIA_TYPE_LABEL, media_type),
        (MANIFESTS_LABEL, "manifests/"),
        (METADATA_LABEL, "metadata/"),
        (BUNDLE_LABEL, &package),
        (CHANNELS_LABEL, &channels.join(",")),
    ];
    annotations.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
    match default_channel {
        Some(channel) => drop(annotations.insert(DEFAULT_CHANNEL_LABEL.to_owned(), channel)),
        None => drop(annotations.remove(DEFAULT_CHANNEL_LABEL)),
    }
    files.extend(carried.files.clone());
    files.insert("metadata/annotations.yaml".to_owned(), yaml(&json!({ "annotations": annotations }))?);
    Ok((files, edited))
}

/// Returns the channels and the default channel: those of the flags, else those of the input.
fn channels(options: &Options, carried: &Carried) -> Result<(Vec<String>, Option<String>), CliError> {
    let stated = || carried.channels().map(|text| text.split(',').map(|name| name.trim().to_owned()).collect());
    let channels: Vec<String> = match &options.channels[..] {
        [] => stated().unwrap_or_else(|| vec![DEFAULT_CHANNEL.to_owned()]),
        given => given.to_vec(),
    };
    let of_input = carried.default_channel().filter(|default| channels.iter().any(|channel| channel == default));
    let default = options.default_channel.clone().or_else(|| of_input.map(str::to_owned));
    if let Some(default) = default.as_ref().filter(|default| !channels.contains(default)) {
        let channels = channels.join(", ");
        return Err(CliError::usage(format!("--default-channel {default} is not one of the channels: {channels}")));
    }
    Ok((channels, default))
}

fn csv_file(directory: &str, name: &str) -> String {
    format!("{directory}/{name}.clusterserviceversion.yaml")
}

/// Adds the ClusterServiceVersion and the objects beside it.
fn objects(directory: &str, synthesis: &Synthesis, files: &mut Files) -> Result<(), CliError> {
    files.insert(csv_file(directory, object::name(&synthesis.csv)), yaml(&synthesis.csv)?);
    for object in &synthesis.objects {
        files.insert(file_name(directory, object, files), yaml(object)?);
    }
    Ok(())
}

/// Returns a file name for an object that no other object of the bundle has. A name with characters that file names should not have
/// gets a digest, so that it does not depend on the other objects.
fn file_name(directory: &str, object: &Value, others: &Files) -> String {
    let [kind, name] = [object::kind(object).to_lowercase(), object::name(object).to_owned()].map(|text| {
        let safe = text.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' });
        let safe: String = safe.take(NAME).collect();
        // Hidden files are not part of a bundle, and some file systems ignore case.
        let safe = if safe.starts_with('.') { format!("_{safe}") } else { safe };
        if safe == text && !text.contains(|c: char| c.is_ascii_uppercase()) {
            safe
        } else {
            format!("{safe}-{}", &hash::sha256_hex(text.as_bytes())[..8])
        }
    });
    let first = format!("{directory}/{name}.{kind}.yaml");
    let numbered = (2..).map(|n| format!("{directory}/{name}-{n}.{kind}.yaml"));
    std::iter::once(first).chain(numbered).find(|name| !others.contains_key(name)).unwrap_or_default()
}
