use super::*;
use crate::catalog::Package;
use crate::catalog::diff::{Installed, Subscription};
use crate::version::parse_tolerant;

/// `name`, `replaces`, `skips`, `skipRange`; the version follows the name's `.v`.
type Row = (&'static str, &'static str, &'static [&'static str], &'static str);

pub(in super::super) fn channel(name: &str, rows: &[Row]) -> Channel {
    let some = |text: &str| Some(text.to_owned()).filter(|t| !t.is_empty());
    let entry = |(entry, replaces, skips, range): &Row| Entry {
        name: (*entry).to_owned(),
        package: "rose".to_owned(),
        channel: name.to_owned(),
        version_text: entry.split_once(".v").map_or("", |(_, v)| v).to_owned(),
        version: entry.split_once(".v").and_then(|(_, v)| parse_tolerant(v).ok()),
        replaces: some(replaces),
        skips: skips.iter().map(|s| (*s).to_owned()).collect(),
        skip_range: some(range),
        ..Entry::default()
    };
    let mut entries: Vec<Entry> = rows.iter().map(entry).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Channel { name: name.to_owned(), entries, ..Channel::default() }
}

/// A channel with every kind of edge.
const GARDEN: [Row; 7] = [
    ("rose.v2.0.0", "rose.v1.2.0", &["rose.v1.2.1", "rose.v1.1.5"], ">=1.2.0 <2.0.0"),
    ("rose.v1.2.1", "rose.v1.1.0", &["rose.v1.0.1"], ""),
    ("rose.v1.2.0", "rose.v1.1.0", &[], ""),
    ("rose.v1.1.5", "", &[], ""),
    ("rose.v1.1.0", "rose.v1.0.0", &["rose.v0.8.0"], "<1.0.0"),
    ("rose.v1.0.1", "", &[], ""),
    ("rose.v1.0.0", "rose.v0.9.0", &[], ""),
];

fn at(text: &str) -> (String, Option<version::Version>) {
    (text.to_owned(), text.split_once(".v").and_then(|(_, v)| parse_tolerant(v).ok()))
}

/// The names of the hops, and the end.
fn walked(graph: &Graph<'_>, from: &str) -> (Vec<String>, String) {
    let (name, version) = at(from);
    let walk = graph.walk(Point { name: &name, version: version.as_ref() });
    (walk.hops.iter().map(|hop| format!("{} {}", hop.by, hop.to.name)).collect(), walk.end.to_string())
}

#[test]
fn updates_lead_to_the_entry_nearest_to_the_head() {
    let channel = channel("stable", &GARDEN);
    let graph = Graph::new(&channel);
    assert_eq!((graph.head(), graph.problem()), ("rose.v2.0.0", None));
    let head = "it is the head of the channel";
    // 1.2.1 also replaces it, but is skipped and thus never chosen.
    let hops = ["replaces rose.v1.2.0", "replaces rose.v2.0.0"].map(str::to_owned).to_vec();
    assert_eq!(walked(&graph, "rose.v1.1.0"), (hops, head.to_owned()));
    assert_eq!(walked(&graph, "rose.v1.1.5").0, ["skips rose.v2.0.0"]);
    assert_eq!(walked(&graph, "rose.v1.3.0").0, ["skipRange rose.v2.0.0"], "not in the channel at all");
    assert_eq!(walked(&graph, "rose.v0.9.0").0[..2], ["skipRange rose.v1.1.0", "replaces rose.v1.2.0"]);
    assert_eq!(walked(&graph, "rose.v2.0.0"), (Vec::new(), head.to_owned()));
}

#[test]
fn only_the_head_without_an_update_is_certainly_the_newest() {
    let covered: [Row; 2] = [("rose.v2.0.0", "rose.v1.0.0", &[], ""), ("rose.v1.0.0", "", &[], ">=1.0.0 <=2.0.0")];
    let two_heads: [Row; 2] = [("rose.v2.0.0", "", &[], ""), ("rose.v1.0.0", "", &[], "")];
    let channels = vec![channel("covered", &covered), channel("stable", &GARDEN), channel("two-heads", &two_heads)];
    let package = Package { default_channel: "stable".to_owned(), channels, ..Package::default() };
    for (channel, installed, expected) in [
        ("stable", "rose.v2.0.0", true),
        ("", "rose.v2.0.0", true),
        ("stable", "rose.v1.2.1", false),
        ("stable", "rose.v1.0.1", false),
        ("stable", "rose.v3.0.0", false),
        ("covered", "rose.v2.0.0", false),
        ("two-heads", "rose.v2.0.0", false),
        ("none", "rose.v2.0.0", false),
    ] {
        let (name, version) = at(installed);
        let installed = Point { name: &name, version: version.as_ref() };
        assert_eq!(is_newest(&package, channel, installed), expected, "{channel} {name}");
    }
}

#[test]
fn stranded_versions_have_a_reason() {
    let channel = channel("stable", &GARDEN);
    let graph = Graph::new(&channel);
    let why = "rose.v1.0.1 has no update: rose.v1.2.1 skips it, but OLM never chooses it, because rose.v2.0.0 skips \
               rose.v1.2.1 in turn";
    assert_eq!(walked(&graph, "rose.v1.0.1"), (Vec::new(), why.to_owned()));
    let why =
        "rose.v3.0.0 has no update: no entry in channel stable replaces or skips it, and no skipRange covers 3.0.0";
    assert_eq!(walked(&graph, "rose.v3.0.0"), (Vec::new(), why.to_owned()));
    let stranded: Vec<&str> = graph.nodes().iter().filter(|n| !n.reaches_head).map(|n| n.name).collect();
    assert_eq!(stranded, ["rose.v1.0.1"]);
}

#[test]
fn an_older_entry_may_cover_the_head() {
    let rows: [Row; 2] = [("rose.v2.0.0", "rose.v1.0.0", &[], ">=1.0.0 <=2.0.0"), ("rose.v1.0.0", "", &[], "")];
    let stays = channel("stable", &rows);
    assert_eq!(walked(&Graph::new(&stays), "rose.v2.0.0").0, Vec::<String>::new(), "a range that covers itself");
    let rows: [Row; 2] = [("rose.v2.0.0", "rose.v1.0.0", &[], ""), ("rose.v1.0.0", "", &[], ">=2.0.0")];
    let channel = channel("stable", &rows);
    let graph = Graph::new(&channel);
    let (hops, end) = walked(&graph, "rose.v1.0.0");
    assert_eq!(hops, ["replaces rose.v2.0.0", "skipRange rose.v1.0.0"]);
    assert_eq!(end, "the updates form a cycle that returns to rose.v1.0.0");
    assert!(graph.nodes().iter().all(|node| !node.reaches_head));
    assert_eq!(Lanes::new(&graph, |_| true).rows.len(), 2);
}

#[test]
fn a_channel_that_opm_accepts_and_olm_cannot_order() {
    let rows: [Row; 3] = [
        ("rose.v3.0.0", "rose.v2.0.0", &["rose.v2.0.0", "rose.v1.0.0"], ""),
        ("rose.v2.0.0", "rose.v1.0.0", &[], ""),
        ("rose.v1.0.0", "rose.v2.0.0", &[], ""),
    ];
    let channel = channel("stable", &rows);
    let nodes: Vec<channel::Node<'_>> = channel.entries.iter().map(Into::into).collect();
    assert_eq!(super::channel::check(&nodes), Ok(()));
    let graph = Graph::new(&channel);
    assert!(graph.problem().is_some());
    let (hops, end) = walked(&graph, "rose.v1.0.0");
    assert_eq!(hops, Vec::<String>::new());
    assert!(
        end.starts_with("rose.v1.0.0 has no update: OLM chooses nothing from this channel: a cycle exists"),
        "{end}"
    );
}

fn text(graph: &Graph<'_>, is_shown: impl Fn(&Node<'_>) -> bool) -> String {
    let lanes = Lanes::new(graph, is_shown);
    Text { graph, lanes: &lanes }.to_string()
}

#[test]
fn a_graph_as_text() {
    let channel = channel("stable", &GARDEN);
    let graph = Graph::new(&channel);
    let said = "\
● rose.v2.0.0     head
├─● rose.v1.2.1   skipped
├─● rose.v1.1.5   skipped
● rose.v1.2.0     replaced
● rose.v1.1.0     replaced
├─○ rose.v0.8.0   skipped, not in the channel
● rose.v1.0.0     replaced
○ rose.v0.9.0     replaced, not in the channel
stranded, without a path to the head
● rose.v1.0.1     no update: rose.v1.2.1 skips it, but OLM never chooses it, because rose.v2.0.0 skips rose.v1.2.1 in turn
";
    assert_eq!(text(&graph, |_| true), said);
    let part = text(&graph, |node| node.name == "rose.v1.1.0" || node.name == "rose.v1.0.0");
    assert_eq!(part, "● rose.v1.1.0   replaced by rose.v1.2.0\n● rose.v1.0.0   replaced\n");
}

/// A channel of many entries: each replaces the previous one, and the head skips a thousand others.
fn many() -> Channel {
    let entry = |n: u64| Entry {
        name: format!("rose.v1.{n}.0"),
        version: Some(version::Version::new(1, n, 0)),
        version_text: format!("1.{n}.0"),
        replaces: n.checked_sub(1).map(|m| format!("rose.v1.{m}.0")),
        skips: if n == 999 { (0..1000).map(|m| format!("rose.v0.{m}.0")).collect() } else { Vec::new() },
        ..Entry::default()
    };
    let mut entries: Vec<Entry> = (0..1000).map(entry).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Channel { name: "stable".to_owned(), entries, ..Channel::default() }
}

#[test]
fn a_thousand_versions_are_readable() {
    let channel = many();
    let graph = Graph::new(&channel);
    let lanes = Lanes::new(&graph, |_| true);
    assert_eq!(lanes.rows.len(), 2000);
    assert_eq!(lanes.rows.iter().map(|row| row.column).max(), Some(1));
    let text = Text { graph: &graph, lanes: &lanes };
    assert!(text.is_shortened());
    let text = text.to_string();
    assert_eq!(text.lines().count(), 1 + 7 + 7, "{text}");
    assert!(text.contains("│ ⋮ 994 more\n") && text.contains("\n⋮ 993 more\n"), "{text}");
    assert_eq!(graph.walk(Point { name: "rose.v1.0.0", version: None }).hops.len(), 999);
}

#[test]
fn rows_whose_ranges_differ_are_similar() {
    let entry = |n: u64| Entry {
        name: format!("rose.v1.{n}.0"),
        version: Some(version::Version::new(1, n, 0)),
        version_text: format!("1.{n}.0"),
        replaces: n.checked_sub(1).map(|m| format!("rose.v1.{m}.0")),
        skip_range: n.checked_sub(2).map(|m| format!(">=1.{m}.0 <1.{n}.0")),
        ..Entry::default()
    };
    let mut entries: Vec<Entry> = (0..100).map(entry).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let channel = Channel { name: "stable".to_owned(), entries, ..Channel::default() };
    let text = text(&Graph::new(&channel), |_| true);
    // The head, the entry that it replaces, and two columns that contain every other version.
    assert_eq!(text.lines().count(), 1 + 1 + (1 + 7) + 7, "{text}");
    assert!(text.contains("│ ● rose.v1.95.0   in skipRange >=1.95.0 <1.97.0\n"), "{text}");
}

/// Names with characters that need escaping.
fn hostile() -> Drawing {
    let mut channel = channel("stable", &[("rose.v1.0.0", "", &[], ""), ("rose.v2.0.0", "rose.v1.0.0", &[], "")]);
    channel.entries[1].name = "a\"]<b>&'\\\u{1}".to_owned();
    let graph = Graph::new(&channel);
    let part = Part::new(&graph, "channel \"<stable>\"".to_owned(), |_| true);
    Drawing { title: "</title>".to_owned(), parts: vec![part] }
}

#[test]
fn names_are_escaped() {
    let drawing = hostile();
    let dot = drawing.dot();
    assert!(dot.contains(r#"label="a\"]<b>&'\\"#), "{dot}");
    assert!(dot.contains("c0_1 -> c0_0 [label=\"replaces\"];"), "{dot}");
    let mermaid = drawing.mermaid();
    assert!(mermaid.contains("c0_0[\"a#34;]#60;b#62;#38;'#92;"), "{mermaid}");
    assert!(mermaid.contains("c0_1 -->|replaces| c0_0"), "{mermaid}");
}

#[test]
fn declared_updates_that_are_never_taken_are_dashed() {
    let channel = channel("stable", &GARDEN);
    let graph = Graph::new(&channel);
    let drawing = Drawing { title: "rose".to_owned(), parts: vec![Part::new(&graph, "stable".to_owned(), |_| true)] };
    assert_eq!(drawing.len(), 9);
    // 1.2.1 replaces 1.1.0 and skips 1.0.1.
    assert_eq!(drawing.dot().matches("style=dashed, constraint=false").count(), 2);
    assert_eq!(drawing.mermaid().matches("-.->").count(), 2);
    let walk = graph.walk(Point { name: "rose.v1.0.0", version: None });
    let way = Part::of_walk(&graph, "stable".to_owned(), "rose.v1.0.0", &walk.hops);
    let dot = Drawing { title: "rose".to_owned(), parts: vec![way] }.dot();
    assert_eq!(dot.matches(" -> ").count(), 3);
    assert!(dot.contains("c0_3 [label=\"rose.v1.0.0\""), "{dot}");
}

fn package(channels: Vec<Channel>) -> Package {
    Package { name: "rose".to_owned(), default_channel: "stable".to_owned(), channels, ..Package::default() }
}

fn grid(package: &Package, installed: &[Installed]) -> Grid {
    let graphs: Vec<Graph<'_>> = package.channels.iter().map(Graph::new).collect();
    Grid::new(package, &graphs, |_| true, installed, &[])
}

fn installed(namespace: &str, channel: &str, name: &str) -> Installed {
    let subscription = Subscription { namespace: namespace.to_owned(), name: "rose".to_owned() };
    let (name, version) = at(name);
    Installed { subscription, package: "rose".to_owned(), channel: channel.to_owned(), name, version }
}

/// A line for each row of a grid: name, notes, and the state in each channel.
fn rows(grid: &Grid) -> Vec<String> {
    let cell = |cell: &Option<Cell>| match cell {
        None => "-".to_owned(),
        Some(cell) => format!("{}{}", cell.look.name(), if cell.is_installed { "*" } else { "" }),
    };
    let row = |row: &GridRow| {
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        format!("{} [{}] {}", grid.label(&row.name), grid.notes(row).join(", "), cells.join(" "))
    };
    grid.rows.iter().map(row).collect()
}

#[test]
fn a_grid_has_each_version_once() {
    let fast: [Row; 2] = [("rose.v3.0.0", "rose.v2.0.0", &[], ""), ("rose.v2.0.0", "", &[], "")];
    let package = package(vec![channel("fast", &fast), channel("stable", &GARDEN)]);
    let installed = [
        installed("a", "stable", "rose.v1.0.0"),
        installed("b", "", "rose.v1.0.1"),
        installed("c", "fast", "rose.v0.1.0"),
        Installed { package: "tulip".to_owned(), ..installed("d", "stable", "rose.v1.1.0") },
    ];
    let grid = grid(&package, &installed);
    let names: Vec<&str> = grid.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((names, grid.prefix.as_str()), (vec!["stable", "fast"], "rose.v"));
    let said = [
        "3.0.0 [] - head",
        "2.0.0 [] head plain",
        "1.2.1 [] skipped -",
        "1.2.0 [] plain -",
        "1.1.5 [] skipped -",
        "1.1.0 [] plain -",
        "1.0.1 [stranded] stranded* -",
        "1.0.0 [] plain* -",
        "0.9.0 [] absent -",
        "0.8.0 [] absent -",
        "0.1.0 [stranded] - stranded*",
    ];
    assert_eq!(rows(&grid), said);
    assert_eq!(grid.rows[7].installed, ["a/rose"]);
    let reason = grid.rows[10].cells[1].as_ref().and_then(|cell| cell.reason.clone()).unwrap_or_default();
    assert!(reason.contains("no entry in channel fast replaces or skips it"), "{reason}");
}

#[test]
fn lines_in_the_same_lane_do_not_overlap() {
    for channel in [channel("stable", &GARDEN), many()] {
        let package = package(vec![channel]);
        let grid = grid(&package, &[]);
        let column = &grid.columns[0];
        let in_lanes: Vec<&grid::Link> = column.links.iter().filter(|link| link.lane.is_some()).collect();
        for (n, a) in in_lanes.iter().enumerate() {
            for b in &in_lanes[n + 1..] {
                let ((a_top, a_end), (b_top, b_end)) = (a.rows(), b.rows());
                assert!(a.lane != b.lane || a_end <= b_top || b_end <= a_top, "{a:?} {b:?}");
            }
        }
        // Each version has at most one update that is taken, and each of these is drawn.
        let taken: usize = column.links.iter().filter(|link| link.taken).map(|link| link.from.len()).sum();
        let updated = grid.rows.iter().flat_map(|row| row.cells.iter().flatten()).filter(|cell| cell.next.is_some());
        assert_eq!(taken, updated.count());
        assert!(column.lanes <= 4, "{}", column.lanes);
    }
}

#[test]
fn a_picture_of_a_grid() {
    let package = package(vec![channel("stable", &GARDEN)]);
    let svg = Picture { title: "rose".to_owned(), grids: vec![grid(&package, &[])] }.svg();
    // Nine versions; four dots in the legend, where no version is only plain, skipped, stranded, mentioned or head.
    assert_eq!(svg.matches("<circle").count(), 9 + 5, "{svg}");
    assert_eq!(svg.matches("(declared, never taken)").count(), 2, "{svg}");
    for name in ["2.0.0", "1.2.1", "0.8.0"] {
        assert_eq!(svg.matches(&format!(">{name}</text>")).count(), 1, "{svg}");
    }
}

#[test]
fn a_picture_escapes_names() {
    let mut hostile = channel("<b>", &[("rose.v1.0.0", "", &[], ""), ("rose.v2.0.0", "rose.v1.0.0", &[], "")]);
    hostile.entries[1].name = "a\"]<script>&'\u{1}\u{202e}".to_owned() + &"x".repeat(100);
    let package = package(vec![hostile]);
    let svg = Picture { title: "</title>".to_owned(), grids: vec![grid(&package, &[])] }.svg();
    assert!(svg.contains("<title>&lt;/title&gt;</title>") && svg.contains(">&lt;b&gt;<"), "{svg}");
    assert!(!svg.contains("<script") && !svg.contains('\u{202e}') && !svg.contains('\u{1}'), "{svg}");
    assert!(svg.contains("a&quot;]&lt;script&gt;&amp;&#39;\\u{1}"), "{svg}");
}
