//! Update graphs and lists of catalogs, in every format.

use olm_shell::catalog::graph::{self, Format};
use olm_shell::catalog::{InstalledFrom, Ref, list, validate};
use olm_shell::cli::findings;
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::output::Output;
use olm_shell::image;

use super::must_gather::gathered;
use super::shown::{Data, Shown, shown, value};
use crate::well_formed::is_well_formed;

/// Every format of a graph, and how it is parsed.
const FORMATS: [(Format, Option<Data>); 7] = [
    (Format::Text, None),
    (Format::Dot, None),
    (Format::Mermaid, None),
    (Format::Svg, None),
    (Format::Html, None),
    (Format::Json, Some(Data::Json)),
    (Format::Yaml, Some(Data::Yaml)),
];

/// Draws the catalog in a folder.
///
/// # Panics
/// The output contains terminal control characters, invalid data, or a drawing with additional parts.
pub(super) fn run(bytes: &[u8]) {
    let folder = gathered(bytes);
    let refs = vec![Ref::Directory(folder.path().to_owned())];
    for (format, data) in FORMATS {
        let options = graph::Options {
            refs: refs.clone(),
            package: None,
            channels: Vec::new(),
            versions: None,
            from: None,
            to: None,
            installed_from: InstalledFrom::Nothing,
            images: image::Options::default(),
            format,
        };
        let (_, shown) = shown(|printer| graph::run(&options, printer));
        data.map(|data| value(&shown, data));
        structure(format, &shown);
    }
    for (output, versions) in [("", false), ("wide", true), ("name", false), ("json", false), ("yaml", true)] {
        let mut list = ListFlags::default();
        list.output.output = output.parse::<Output>().unwrap_or_default();
        let options = list::Options {
            refs: refs.clone(),
            packages: Vec::new(),
            versions,
            list,
            images: image::Options::default(),
        };
        let (_, shown) = shown(|printer| list::run(&options, printer));
        match output {
            "json" => drop(value(&shown, Data::Json)),
            "yaml" => drop(value(&shown, Data::Yaml)),
            _ => {}
        }
    }
    use findings::Format as F;
    for format in [F::Text, F::Json, F::Sarif, F::Junit, F::Github] {
        let options = validate::Options { refs: refs.clone(), strict: true, format, images: image::Options::default() };
        let (_, shown) = shown(|printer| validate::run(&options, printer));
        if matches!(format, findings::Format::Json | findings::Format::Sarif) {
            value(&shown, Data::Json);
        }
    }
}

/// Checks the structure of a drawing.
fn structure(format: Format, shown: &Shown) {
    let out = &shown.out;
    match format {
        Format::Svg | Format::Html if !out.is_empty() => {
            assert_eq!(is_well_formed(out), Ok(()));
            assert!(format == Format::Html || out.matches("<svg").count() == 1, "{out}");
            let forged =
                ["<script", "<foreignObject", "<image", "<img", "<a ", "<use"].iter().find(|word| out.contains(**word));
            assert!(forged.is_none(), "{forged:?} in {out}");
        }
        Format::Mermaid if !out.is_empty() => {
            const LINES: [&str; 5] = ["flowchart BT", "  subgraph c", "    c", "  end", "  classDef "];
            let forged = out.lines().find(|line| !LINES.iter().any(|known| line.starts_with(known)));
            assert!(forged.is_none(), "{forged:?} in {out}");
        }
        Format::Dot if !out.is_empty() => assert!(out.starts_with("digraph") && out.ends_with("}\n"), "{out}"),
        _ => {}
    }
}
