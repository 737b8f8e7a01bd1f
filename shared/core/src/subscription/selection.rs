//! Selects the catalog, the channel and the version for a new Subscription.
//!
//! *Guarantee*: what is ambiguous is an error that names the candidates; nothing is chosen by the order of names.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Channel, Entry, Package, Snapshot};
use crate::listing::shortened;
use crate::version::{self, Range};

/// A catalog that a namespace can use.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its namespace and name.
    pub catalog: (String, String),
    /// Its content.
    pub snapshot: Arc<Snapshot>,
    /// `spec.priority` of the CatalogSource.
    pub priority: i64,
    /// Whether it is in the namespace of the Subscription, which takes precedence over global catalogs.
    pub is_own: bool,
}

/// What to subscribe to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'r> {
    /// The package.
    pub package: &'r str,
    /// The acceptable versions; `None` for the head of the channel.
    pub range: Option<&'r Range>,
    /// The channel; `None` for the default channel.
    pub channel: Option<&'r str>,
    /// Name of the catalog, with its namespace if that is given.
    pub catalog: Option<(Option<&'r str>, &'r str)>,
}

/// The result of a selection.
#[derive(Clone, Debug)]
pub struct Selection<'c> {
    /// Namespace and name of the catalog.
    pub catalog: &'c (String, String),
    /// Its content.
    pub snapshot: &'c Arc<Snapshot>,
    /// The package.
    pub package: &'c Package,
    /// The channel.
    pub channel: &'c Channel,
    /// The version that is requested; without a range the head of the channel.
    pub entry: &'c Entry,
}

/// Why nothing can be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unselectable {
    /// The namespace can use no catalog.
    #[error("there are no catalogs with readable content")]
    NoCatalogs,
    /// No catalog has that name.
    #[error("there is no catalog {name}; catalogs: {}", shortened(catalogs))]
    UnknownCatalog {
        /// The requested name.
        name: String,
        /// The existing catalogs, `NAMESPACE/NAME`.
        catalogs: Vec<String>,
    },
    /// No catalog has the package.
    #[error("there is no package {package} in {}", shortened(catalogs))]
    UnknownPackage {
        /// The package.
        package: String,
        /// The searched catalogs, `NAMESPACE/NAME`.
        catalogs: Vec<String>,
        /// Existing packages with similar names.
        similar: Vec<String>,
    },
    /// Several catalogs of equal rank have the package.
    #[error("package {package} is in several catalogs: {}", shortened(catalogs))]
    SeveralCatalogs {
        /// The package.
        package: String,
        /// The catalogs, `NAMESPACE/NAME`.
        catalogs: Vec<String>,
    },
    /// The package has no such channel.
    #[error("package {package} has no channel {channel}; channels: {}", shortened(channels))]
    UnknownChannel {
        /// The package.
        package: String,
        /// The requested channel.
        channel: String,
        /// The existing channels.
        channels: Vec<String>,
    },
    /// The range contains several versions of equal rank: they are in different channels, none of which is the default.
    #[error(
        "version {version} of package {package} is in several channels, none of which is the default: {}",
        shortened(channels)
    )]
    SeveralChannels {
        /// The package.
        package: String,
        /// The newest version in the range.
        version: String,
        /// The channels.
        channels: Vec<String>,
    },
    /// The range contains no version.
    #[error("package {package} has no version {range}{}; versions: {}", in_channel(channel.as_deref()), shortened(versions))]
    UnknownVersion {
        /// The package.
        package: String,
        /// The range.
        range: String,
        /// The channel, if one was requested.
        channel: Option<String>,
        /// The existing versions, the newest first.
        versions: Vec<String>,
    },
    /// The channel is empty.
    #[error("channel {channel} of package {package} has no bundles")]
    EmptyChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
}

fn in_channel(channel: Option<&str>) -> String {
    channel.map(|channel| format!(" in channel {channel}")).unwrap_or_default()
}

impl Unselectable {
    /// Returns whether the catalog or the package is not known: it may be in a catalog that was not read.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NoCatalogs | Self::UnknownCatalog { .. } | Self::UnknownPackage { .. })
    }

    /// Returns the next thing to try.
    pub fn hint(&self) -> String {
        match self {
            Self::NoCatalogs => {
                "kubectl get catalogsources -A lists catalogs and their state; --catalog NAME=DIR uses a directory"
                    .to_owned()
            }
            Self::UnknownCatalog { catalogs, name } => {
                let names = catalogs.iter().map(|catalog| catalog.rsplit('/').next().unwrap_or(catalog));
                nearest(name, names).map_or_else(|| "specify one of them with --catalog".to_owned(), did_you_mean)
            }
            Self::UnknownPackage { similar, .. } if !similar.is_empty() => did_you_mean(similar.join(" or ")),
            Self::UnknownPackage { .. } => "kubectl olm catalog list prints the packages".to_owned(),
            Self::SeveralCatalogs { .. } => "specify one of them with --catalog NAMESPACE/NAME".to_owned(),
            Self::UnknownChannel { channel, channels, .. } => nearest(channel, channels.iter().map(String::as_str))
                .map_or_else(|| "specify one of them with --channel".to_owned(), did_you_mean),
            Self::SeveralChannels { .. } => "specify one of them with --channel".to_owned(),
            Self::UnknownVersion { .. } => "write a range as in catalogs: '>=1.2.0 <2.0.0', or one version".to_owned(),
            Self::EmptyChannel { .. } => "specify another channel with --channel".to_owned(),
        }
    }
}

fn did_you_mean(name: impl std::fmt::Display) -> String {
    format!("did you mean {name}?")
}

/// Most similar names to suggest.
const SUGGESTED: usize = 3;

/// Returns whether `name` may be a misspelling of `known`, or an incomplete form of it.
fn is_similar(known: &str, name: &str) -> bool {
    let distance = strsim::damerau_levenshtein(known, name);
    distance <= 1 + name.len() / 4 || (name.len() > 2 && (known.contains(name) || name.contains(known)))
}

fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let near = known.filter(|known| is_similar(known, name));
    near.min_by_key(|known| strsim::damerau_levenshtein(known, name))
}

/// Selects a bundle.
///
/// # Errors
/// Nothing matches the request, or several candidates of equal rank do.
pub fn select<'c>(candidates: &'c [Candidate], request: Request<'_>) -> Result<Selection<'c>, Unselectable> {
    let named = |candidate: &&Candidate| {
        request.catalog.is_none_or(|(namespace, name)| {
            candidate.catalog.1 == name && namespace.is_none_or(|namespace| candidate.catalog.0 == namespace)
        })
    };
    if candidates.is_empty() {
        return Err(Unselectable::NoCatalogs);
    }
    let searched: Vec<&Candidate> = candidates.iter().filter(named).collect();
    if searched.is_empty() {
        let name = request.catalog.map(|(namespace, name)| match namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        });
        return Err(Unselectable::UnknownCatalog {
            name: name.unwrap_or_default(),
            catalogs: candidates.iter().map(label).collect(),
        });
    }
    let package = request.package.to_owned();
    let offering: Vec<(&Candidate, &Package)> =
        searched.iter().filter_map(|candidate| Some((*candidate, candidate.snapshot.package(&package)?))).collect();
    if offering.is_empty() {
        return Err(unknown_package(&searched, package));
    }
    let mut found = Vec::new();
    let mut refusal = None;
    for (candidate, package) in offering {
        match in_package(package, request) {
            Ok((channel, entry)) => found.push((candidate, package, channel, entry)),
            Err(unselectable) => refusal = refusal.or(Some(unselectable)),
        }
    }
    let rank = |candidate: &Candidate| (candidate.is_own, candidate.priority);
    let best = found.iter().map(|(candidate, ..)| rank(candidate)).max();
    let first: Vec<_> = found.into_iter().filter(|(candidate, ..)| Some(rank(candidate)) == best).collect();
    match (&first[..], refusal) {
        ([], refusal) => Err(refusal.unwrap_or(Unselectable::NoCatalogs)),
        ([(candidate, package, channel, entry)], _) => {
            Ok(Selection { catalog: &candidate.catalog, snapshot: &candidate.snapshot, package, channel, entry })
        }
        (several, _) => {
            let catalogs = several.iter().map(|(candidate, ..)| label(candidate)).collect();
            Err(Unselectable::SeveralCatalogs { package, catalogs })
        }
    }
}

fn label(candidate: &Candidate) -> String {
    format!("{}/{}", candidate.catalog.0, candidate.catalog.1)
}

fn unknown_package(searched: &[&Candidate], package: String) -> Unselectable {
    let known = searched.iter().flat_map(|candidate| candidate.snapshot.packages().keys());
    let mut similar: Vec<&String> = known.filter(|known| is_similar(known, &package)).collect();
    similar.sort_by_key(|known| (strsim::damerau_levenshtein(known, &package), *known));
    similar.dedup();
    similar.truncate(SUGGESTED);
    let similar = similar.into_iter().cloned().collect();
    Unselectable::UnknownPackage { package, catalogs: searched.iter().map(|c| label(c)).collect(), similar }
}

/// Selects the channel and the entry in a package.
fn in_package<'p>(package: &'p Package, request: Request<'_>) -> Result<(&'p Channel, &'p Entry), Unselectable> {
    let channels: Vec<&Channel> = match request.channel {
        None => package.channels.iter().collect(),
        Some(name) => {
            let unknown = || Unselectable::UnknownChannel {
                package: package.name.clone(),
                channel: name.to_owned(),
                channels: package.channels.iter().map(|channel| channel.name.clone()).collect(),
            };
            vec![package.channel(name).ok_or_else(unknown)?]
        }
    };
    let default =
        || channels.iter().find(|channel| channel.name == package.default_channel).or_else(|| channels.first());
    let Some(range) = request.range else {
        let empty =
            |channel: &str| Unselectable::EmptyChannel { package: package.name.clone(), channel: channel.to_owned() };
        let channel = default().ok_or_else(|| empty(&package.default_channel))?;
        let entry = channel.entry(&channel.head).or_else(|| channel.entries.first());
        return Ok((channel, entry.ok_or_else(|| empty(&channel.name))?));
    };
    let found: Vec<(&Channel, &Entry)> =
        channels.iter().filter_map(|channel| Some((*channel, newest(channel, range)?))).collect();
    if let Some(found) = found.iter().find(|(channel, _)| channel.name == package.default_channel) {
        return Ok(*found);
    }
    let best = found.iter().filter_map(|(_, entry)| entry.version.as_ref()).max_by(|a, b| version::compare(a, b));
    let first: Vec<_> = found.iter().filter(|(_, entry)| entry.version.as_ref() == best).collect();
    match (&first[..], best) {
        ([one], _) => Ok(**one),
        ([], _) | (_, None) => Err(Unselectable::UnknownVersion {
            package: package.name.clone(),
            range: range.to_string(),
            channel: request.channel.map(str::to_owned),
            versions: versions(&channels),
        }),
        (several, Some(version)) => Err(Unselectable::SeveralChannels {
            package: package.name.clone(),
            version: version.to_string(),
            channels: several.iter().map(|(channel, _)| channel.name.clone()).collect(),
        }),
    }
}

/// Returns the newest entry of a channel in a range.
fn newest<'p>(channel: &'p Channel, range: &Range) -> Option<&'p Entry> {
    let matching = channel.entries.iter().filter_map(|entry| Some((entry, entry.version.as_ref()?)));
    let matching = matching.filter(|(_, version)| range.contains(version));
    matching.max_by(|(_, a), (_, b)| version::compare(a, b)).map(|(entry, _)| entry)
}

/// Returns the versions of channels, the newest first.
fn versions(channels: &[&Channel]) -> Vec<String> {
    let entries = channels.iter().flat_map(|channel| &channel.entries);
    let mut versions: Vec<_> = entries.filter_map(|entry| entry.version.as_ref()).collect();
    versions.sort_by(|a, b| version::compare(b, a));
    versions.dedup();
    versions.into_iter().map(ToString::to_string).collect()
}

/// Returns the catalogs of a namespace as candidates.
pub fn candidates(
    catalogs: &BTreeMap<(String, String), Arc<Snapshot>>,
    namespace: &str,
    priority: impl Fn(&str, &str) -> i64,
) -> Vec<Candidate> {
    let candidate = |(catalog, snapshot): (&(String, String), &Arc<Snapshot>)| Candidate {
        catalog: catalog.clone(),
        snapshot: snapshot.clone(),
        priority: priority(&catalog.0, &catalog.1),
        is_own: catalog.0 == namespace,
    };
    catalogs.iter().map(candidate).collect()
}
