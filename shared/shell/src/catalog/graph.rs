//! `kubectl olm catalog graph`: the upgrade graph of a package, and its stranded versions.

use std::fmt;

use clap::ValueEnum;
use olm_core::catalog::channel::{Point, Update};
use olm_core::catalog::diff::Installed;
use olm_core::catalog::graph::{Drawing, End, Graph, Grid, Hop, Lanes, Node, Part, Picture, Text, Walk};
use olm_core::catalog::{Channel, Package, Snapshot};
use olm_core::version::{self, Range, Version};
use serde_json::{Value, json};

use super::installed::{self, InstalledFrom};
use super::page;
use super::source::{OpenCatalog, Ref};
use crate::cli::output::API_VERSION;
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;
use crate::visible::one_line;

/// The maximum number of versions in a readable drawing.
const DRAWN: usize = 250;

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// Catalogs, merged into one.
    pub refs: Vec<Ref>,
    /// The package; `None` means all.
    pub package: Option<String>,
    /// Its channels; empty means all.
    pub channels: Vec<String>,
    /// Restricts the graph to versions in this range, and their next updates.
    pub versions: Option<Range>,
    /// The first version of a path, a bundle name or a version.
    pub from: Option<String>,
    /// The last version of a path.
    pub to: Option<String>,
    /// The source of installed objects, whose versions are marked.
    pub installed_from: InstalledFrom,
    /// How images are pulled.
    pub images: image::Options,
    /// The output format.
    pub format: Format,
}

/// An output format of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text; each version is below the one that it is updated to.
    #[default]
    Text,
    /// Graphviz.
    Dot,
    /// Mermaid, which GitHub and GitLab render in Markdown.
    Mermaid,
    /// An SVG image: versions are rows, channels are columns.
    Svg,
    /// A page in one file, without scripts: the image, and a table with the reasons.
    Html,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// Prints the graph. The outcome is negative if the package or channel does not exist, or there is no path between the versions.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let loaded = OpenCatalog::read(&options.refs, &options.images, printer)?;
    let snapshot = &loaded.load.snapshot;
    let installed = match &options.installed_from {
        InstalledFrom::Nothing => Vec::new(),
        there => installed::versions(there, None, None, "no version is marked", printer)?,
    };
    let package = match &options.package {
        Some(name) => match loaded.package(name, printer) {
            Some(package) => Some(package),
            None => return Ok(Outcome::Negative),
        },
        None => snapshot.packages().values().next().filter(|_| snapshot.packages().len() == 1),
    };
    let needs_package = options.from.is_some() || !options.channels.is_empty() || options.versions.is_some();
    let Some(package) = package else {
        if needs_package {
            return Err(CliError::usage(format!("the catalog has {} packages", snapshot.packages().len()))
                .hint("specify the package"));
        }
        return all(snapshot, &installed, options.format, printer);
    };
    let Some(channels) = channels(package, &options.channels, printer) else { return Ok(Outcome::Negative) };
    if let Some(from) = &options.from {
        return way(package, &channels, from, options, printer);
    }
    let graphs: Vec<Graph<'_>> = channels.into_iter().map(Graph::new).collect();
    show(package, graphs, &installed, options, printer)?;
    Ok(Outcome::Done)
}

/// Returns the selected channels.
fn channels<'a>(package: &'a Package, names: &[String], printer: &mut Printer) -> Option<Vec<&'a Channel>> {
    if names.is_empty() {
        return Some(package.channels.iter().collect());
    }
    let mut found = Vec::new();
    for name in names {
        let Some(channel) = package.channel(name) else {
            let known: Vec<&str> = package.channels.iter().map(|c| c.name.as_str()).collect();
            printer.talk(format_args!(
                "package {} has no channel {name:?}; its channels: {}",
                package.name,
                known.join(", ")
            ));
            return None;
        };
        found.push(channel);
    }
    Some(found)
}

/// Prints all packages, as text with a line for each channel.
fn all(
    snapshot: &Snapshot,
    installed: &[Installed],
    format: Format,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let packages = snapshot.packages().values();
    let graphs: Vec<(&Package, Vec<Graph<'_>>)> =
        packages.map(|p| (p, p.channels.iter().map(Graph::new).collect())).collect();
    if format != Format::Text {
        draw(&graphs, "catalog", |_| true, installed, format, printer)?;
        return Ok(Outcome::Done);
    }
    let mut table = Table::new(["PACKAGE", "CHANNEL", "HEAD", "VERSIONS", "STRANDED"]);
    for (package, graphs) in &graphs {
        for graph in graphs {
            let stranded = graph.nodes().iter().filter(|node| !node.reaches_head).count();
            let stranded = if stranded == 0 { String::new() } else { stranded.to_string() };
            let Channel { name, entries, .. } = graph.channel();
            let head = graph.head().to_owned();
            table.row([package.name.clone(), name.clone(), head, entries.len().to_string(), stranded]);
        }
    }
    printer.data(table)?;
    Ok(Outcome::Done)
}

/// Prints the channels of a package, or their selected versions.
fn show(
    package: &Package,
    graphs: Vec<Graph<'_>>,
    installed: &[Installed],
    options: &Options,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let in_range = |node: &Node<'_>| {
        let version = node.entry.and_then(|e| e.version.as_ref());
        options.versions.as_ref().is_none_or(|range| version.is_some_and(|v| range.contains(v)))
    };
    if options.format != Format::Text {
        return draw(&[(package, graphs)], &package.name, in_range, installed, options.format, printer);
    }
    let mut is_shortened = false;
    let of_package = || installed.iter().filter(|one| one.package == package.name);
    let lanes = graphs.iter().map(|graph| (graph, Lanes::new(graph, in_range)));
    let shown: Vec<_> = lanes.filter(|(_, lanes)| !lanes.rows.is_empty()).collect();
    for (n, (graph, lanes)) in shown.iter().enumerate() {
        let text = Text { graph, lanes };
        is_shortened |= text.is_shortened();
        if n > 0 {
            printer.line("")?;
        }
        printer.line(format_args!("package {}, {}", package.name, heading(package, graph)))?;
        if let Some(problem) = graph.problem() {
            printer.line(format_args!("OLM installs nothing from this channel: {problem}"))?;
        }
        printer.data(text)?;
    }
    for one in of_package() {
        let Installed { subscription, channel, name, .. } = one;
        let of = if channel.is_empty() { String::new() } else { format!(", channel {channel}") };
        let words = format!("installed: {name} by Subscription {}/{}{of}", subscription.namespace, subscription.name);
        printer.talk(one_line(&words));
    }
    if shown.is_empty() {
        printer.talk(format_args!("package {} has no matching versions", package.name));
    }
    if is_shortened {
        printer.talk(
            "long rows are truncated; --version RANGE prints a part, --from VERSION one path, -o json everything",
        );
    }
    Ok(())
}

fn heading(package: &Package, graph: &Graph<'_>) -> String {
    let Channel { name, deprecation, entries, .. } = graph.channel();
    let mut notes = Vec::new();
    if *name == package.default_channel {
        notes.push("default");
    }
    if deprecation.is_some() {
        notes.push("deprecated");
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let versions = if entries.len() == 1 { "1 version".to_owned() } else { format!("{} versions", entries.len()) };
    format!("channel {name}{notes}: {versions}, head {}", graph.head())
}

/// Prints graphs as data or drawings.
fn draw(
    graphs: &[(&Package, Vec<Graph<'_>>)],
    title: &str,
    is_shown: impl Fn(&Node<'_>) -> bool,
    installed: &[Installed],
    format: Format,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let packages = || {
        graphs.iter().map(|(package, graphs)| {
            let installed = installed.iter().filter(|one| one.package == package.name);
            package_document(package, graphs, &installed.collect::<Vec<_>>(), &is_shown)
        })
    };
    match format {
        Format::Text | Format::Json | Format::Yaml => {
            let document = json!({
                "apiVersion": API_VERSION,
                "kind": "UpdateGraph",
                "packages": packages().collect::<Vec<_>>(),
            });
            if format == Format::Yaml { printer.yaml(&document) } else { printer.json(&document) }
        }
        Format::Svg | Format::Html => {
            let grid =
                |(package, graphs): &(&Package, Vec<Graph<'_>>)| Grid::new(package, graphs, &is_shown, installed, &[]);
            let grids: Vec<Grid> = graphs.iter().map(grid).filter(|grid| !grid.is_empty()).collect();
            let title = if graphs.len() == 1 {
                format!("Updates of package {title}")
            } else {
                "Updates of all packages".to_owned()
            };
            print_grids(&title, grids, "", format, printer)
        }
        Format::Dot | Format::Mermaid => {
            let part = |package: &Package, graph: &Graph<'_>| {
                Part::new(graph, format!("package {}, {}", package.name, heading(package, graph)), &is_shown)
            };
            let parts = graphs.iter().flat_map(|(package, graphs)| graphs.iter().map(|graph| part(package, graph)));
            let drawing = Drawing { title: title.to_owned(), parts: parts.filter(|part| !part.is_empty()).collect() };
            print(&drawing, format, printer)
        }
    }
}

fn print(drawing: &Drawing, format: Format, printer: &mut Printer) -> Result<(), CliError> {
    drawable(drawing.len())?;
    printer.data(if format == Format::Mermaid { drawing.mermaid() } else { drawing.dot() })
}

fn print_grids(
    title: &str,
    grids: Vec<Grid>,
    note: &str,
    format: Format,
    printer: &mut Printer,
) -> Result<(), CliError> {
    drawable(grids.iter().map(Grid::len).sum())?;
    match format {
        Format::Html => printer.data(page::graphs(title, &grids, note)),
        _ => printer.data(Picture { title: title.to_owned(), grids }.svg()),
    }
}

/// Returns an error if a drawing of so many versions would not be readable.
fn drawable(versions: usize) -> Result<(), CliError> {
    if versions <= DRAWN {
        return Ok(());
    }
    let refused = format!("{versions} versions are too many for a drawing; the limit is {DRAWN}");
    Err(CliError::usage(refused).hint(
        "specify a package, and select a part with --channel NAME, --version RANGE or --from VERSION; -o text and -o json print everything",
    ))
}

fn package_document(
    package: &Package,
    graphs: &[Graph<'_>],
    installed: &[&Installed],
    is_shown: impl Fn(&Node<'_>) -> bool,
) -> Value {
    let version = |graph: &Graph<'_>, node: &Node<'_>| {
        let next = node.next.map(|(next, by)| json!({ "name": graph.nodes()[next].name, "by": by }));
        let reason = match graph.walk(node.point()).end {
            End::Head => None,
            end => Some(end.to_string()),
        };
        let mut version = json!({
            "name": node.name, "inChannel": node.entry.is_some(), "skippedBy": node.skipped_by, "next": next,
            "reachesHead": node.reaches_head, "reason": reason,
        });
        if let Some(entry) = node.entry {
            version["version"] = entry.version_text.clone().into();
            version["replaces"] = json!(entry.replaces);
            version["skips"] = json!(entry.skips);
            version["skipRange"] = json!(entry.skip_range);
            version["deprecation"] = json!(entry.deprecation);
        }
        let by = |one: &Installed| one.name == node.name && serves(one, package, graph.channel());
        let by = installed.iter().filter(|one| by(one)).map(|one| json!(one.subscription));
        let by: Vec<Value> = by.collect();
        if !by.is_empty() {
            version["installedBy"] = by.into();
        }
        without_null(version)
    };
    let channel = |graph: &Graph<'_>| {
        let Channel { name, deprecation, .. } = graph.channel();
        let versions: Vec<Value> = graph.nodes().iter().filter(|n| is_shown(n)).map(|n| version(graph, n)).collect();
        without_null(json!({
            "name": name, "head": graph.head(), "deprecation": deprecation,
            "problem": graph.problem().map(ToString::to_string), "versions": versions,
        }))
    };
    let channels: Vec<Value> = graphs.iter().map(channel).collect();
    json!({ "name": package.name, "defaultChannel": package.default_channel, "channels": channels })
}

/// Returns whether the Subscription follows the channel.
fn serves(installed: &Installed, package: &Package, channel: &Channel) -> bool {
    let name = if installed.channel.is_empty() { &package.default_channel } else { &installed.channel };
    *name == channel.name
}

fn without_null(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, v| !v.is_null());
    }
    value
}

/// A version that was named on the command line.
struct Start {
    name: String,
    version: Option<Version>,
}

impl Start {
    /// Parses a bundle name or a version of the package.
    fn read(text: &str, package: &Package, channel: &Channel, printer: &mut Printer) -> Result<Self, CliError> {
        let here = || channel.entries.iter().chain(package.entries());
        if let Some(entry) = here().find(|e| e.name == text) {
            return Ok(Self { name: text.to_owned(), version: entry.version.clone() });
        }
        let read = version::parse_tolerant(text).ok();
        let same =
            |v: &Version| here().find(|e| e.version.as_ref().is_some_and(|known| version::compare(known, v).is_eq()));
        if let Some(entry) = read.as_ref().and_then(same) {
            return Ok(Self { name: entry.name.clone(), version: entry.version.clone() });
        }
        let is_mentioned = here().any(|e| e.replaces.as_deref() == Some(text) || e.skips.iter().any(|s| s == text));
        let guessed = match read {
            Some(version) => Some(version),
            None => text.split_once(".v").and_then(|(_, version)| version::parse_tolerant(version).ok()),
        };
        match (&guessed, is_mentioned) {
            (Some(version), _) => {
                printer.talk(format_args!("{text} is not in the catalog; assuming version {version}"));
            }
            (None, true) => printer.talk(format_args!("{text} is not in the catalog, so its version is unknown")),
            (None, false) => {
                let newest: Vec<&str> = channel.entries.iter().rev().take(5).map(|e| e.name.as_str()).collect();
                let refused = format!("package {} has no version {text:?}", package.name);
                return Err(CliError::usage(refused).hint(format!(
                    "specify a bundle or a version; channel {} has {}, …",
                    channel.name,
                    newest.join(", ")
                )));
            }
        }
        Ok(Self { name: text.to_owned(), version: guessed })
    }

    fn point(&self) -> Point<'_> {
        Point { name: &self.name, version: self.version.as_ref() }
    }
}

/// The update path from a version.
struct UpdatePath<'a> {
    package: &'a str,
    channel: &'a str,
    from: Start,
    to: Option<Start>,
    hops: Vec<Hop<'a>>,
    /// Why the path does not reach its target.
    reason: Option<String>,
    /// Other channels with a path to the target.
    others: Vec<&'a str>,
}

/// Prints the path from one version to another, or to the last reachable version.
fn way(
    package: &Package,
    channels: &[&Channel],
    from: &str,
    options: &Options,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let channel = match channels {
        [only] => *only,
        _ if !options.channels.is_empty() => {
            return Err(CliError::usage("--from requires a single channel").hint("specify one with --channel"));
        }
        many => {
            let default = many.iter().find(|c| c.name == package.default_channel).or_else(|| many.first());
            *default.ok_or_else(|| CliError::usage(format!("package {} has no channels", package.name)))?
        }
    };
    let graph = Graph::new(channel);
    let from = Start::read(from, package, channel, printer)?;
    let to = options.to.as_ref().map(|to| Start::read(to, package, channel, printer)).transpose()?;
    let (hops, reason) = hops(&graph, &from, to.as_ref());
    let leads = |c: &&Channel| c.name != channel.name && self::hops(&Graph::new(c), &from, to.as_ref()).1.is_none();
    let others = match reason {
        Some(_) => package.channels.iter().filter(leads).map(|c| c.name.as_str()).collect(),
        None => Vec::new(),
    };
    let way = UpdatePath { package: &package.name, channel: &channel.name, from, to, hops, reason, others };
    match options.format {
        Format::Text => printer.data(&way)?,
        Format::Json => printer.json(&way.document())?,
        Format::Yaml => printer.yaml(&way.document())?,
        format @ (Format::Svg | Format::Html) => {
            let title = format!("Updates of package {} from {}, channel {}", package.name, way.from.name, channel.name);
            let grid = Grid::of_walk(&package.name, &graph, &way.from.name, &way.hops);
            let note = way.reason.as_ref().map(|reason| format!("no further update: {reason}")).unwrap_or_default();
            print_grids(&title, vec![grid], &note, format, printer)?;
        }
        format => {
            let title = format!("package {}, channel {}", package.name, channel.name);
            let part = Part::of_walk(&graph, title, &way.from.name, &way.hops);
            print(&Drawing { title: package.name.clone(), parts: vec![part] }, format, printer)?;
        }
    }
    Ok(if way.reason.is_none() { Outcome::Done } else { Outcome::Negative })
}

/// Returns the updates to a version, or to the head, and why they do not reach it.
fn hops<'a>(graph: &Graph<'a>, from: &Start, to: Option<&Start>) -> (Vec<Hop<'a>>, Option<String>) {
    let Walk { mut hops, end } = graph.walk(from.point());
    let channel = &graph.channel().name;
    let Some(to) = to else {
        let because = Some(end).filter(|end| *end != End::Head).map(|end| end.to_string());
        return (hops, because);
    };
    if from.name == to.name {
        return (Vec::new(), None);
    }
    if let Some(at) = hops.iter().position(|hop| hop.to.name == to.name) {
        hops.truncate(at + 1);
        return (hops, None);
    }
    let passed = |hop: &Hop<'_>| {
        let [over, wanted] = [&hop.to.version, &to.version];
        matches!((over, wanted), (Some(over), Some(wanted)) if version::compare(over, wanted).is_gt())
    };
    let because = match graph.node(&to.name) {
        None => format!("channel {channel} does not have {}", to.name),
        Some(node) if node.entry.is_none() => {
            format!("channel {channel} refers to {}, but does not contain it", to.name)
        }
        Some(Node { skipped_by: Some(skipper), .. }) => {
            format!("OLM never chooses {}, because {skipper} skips it", to.name)
        }
        Some(_) => match hops.iter().position(passed) {
            Some(at) => {
                let before = at.checked_sub(1).map_or(&from.name, |before| &hops[before].to.name);
                format!("OLM updates {before} directly to {}, past {}", hops[at].to.name, to.name)
            }
            None if hops.is_empty() && end == End::Head => format!("{} is the head of channel {channel}", from.name),
            None => end.to_string(),
        },
    };
    (hops, Some(because))
}

impl UpdatePath<'_> {
    fn document(&self) -> Value {
        let mut at = self.from.name.as_str();
        let mut hops = Vec::new();
        for Hop { to, by } in &self.hops {
            hops.push(without_null(json!({
                "from": at, "to": to.name, "version": to.version_text, "by": by,
                "skipRange": to.skip_range.as_ref().filter(|_| *by == Update::SkipRange),
            })));
            at = &to.name;
        }
        without_null(json!({
            "apiVersion": API_VERSION, "kind": "UpdatePath", "package": self.package, "channel": self.channel,
            "from": self.from.name, "to": self.to.as_ref().map(|to| &to.name), "reachesTarget": self.reason.is_none(),
            "hops": hops, "reason": self.reason, "otherChannels": self.others,
        }))
    }
}

impl fmt::Display for UpdatePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package, channel, from, to, hops, reason, others } = self;
        writeln!(f, "package {}, channel {}", one_line(package), one_line(channel))?;
        writeln!(f, "{}", one_line(&from.name))?;
        let mut at = from.version.as_ref();
        for Hop { to, by } in hops {
            let by = match (by, &to.skip_range, at) {
                (Update::SkipRange, Some(range), Some(version)) => {
                    format!("covers {version} by its skipRange {}", one_line(range))
                }
                (Update::SkipRange, ..) => "covers it by its skipRange".to_owned(),
                (Update::Replaces, ..) => "replaces it".to_owned(),
                (Update::Skips, ..) => "skips it".to_owned(),
            };
            writeln!(f, "-> {}   {by}", one_line(&to.name))?;
            at = to.version.as_ref();
        }
        let count = if hops.len() == 1 { "1 update".to_owned() } else { format!("{} updates", hops.len()) };
        match reason {
            None if to.is_some() => writeln!(f, "reached after {count}"),
            None => writeln!(f, "reached the channel head after {count}"),
            Some(reason) => {
                let already = reason.contains(" has no update: ");
                writeln!(f, "{}{}", if already { "" } else { "no further update: " }, one_line(reason))?;
                if others.is_empty() {
                    Ok(())
                } else {
                    writeln!(f, "possible in channel {}", one_line(&others.join(" or ")))
                }
            }
        }
    }
}
