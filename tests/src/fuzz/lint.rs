//! Findings about OperatorGroups, in every output format.

use std::path::Path;

use olm_shell::cli::findings::Format;
use olm_shell::image;
use olm_shell::operatorgroup::{intersect, lint};

use super::must_gather::{everywhere, gathered, source};
use super::shown::{Data, shown, value};

/// Every format of findings, and how it is parsed.
const FORMATS: [(Format, Option<Data>); 5] = [
    (Format::Text, None),
    (Format::Json, Some(Data::Json)),
    (Format::Yaml, Some(Data::Yaml)),
    (Format::Sarif, Some(Data::Json)),
    (Format::Github, None),
];

/// Every format of intersections, and how it is parsed.
const INTERSECTIONS: [(intersect::Format, Option<Data>); 6] = [
    (intersect::Format::Text, None),
    (intersect::Format::Wide, None),
    (intersect::Format::Matrix, None),
    (intersect::Format::Json, Some(Data::Json)),
    (intersect::Format::Yaml, Some(Data::Yaml)),
    (intersect::Format::Dot, None),
];

/// Lints the content of a folder, and finds groups that intersect.
///
/// # Panics
/// The output contains terminal control characters, or invalid data.
pub(super) fn run(bytes: &[u8]) {
    let folder = gathered(bytes);
    linted(folder.path());
    for (format, data) in INTERSECTIONS {
        let options = intersect::Options {
            groups: Vec::new(),
            source: source(folder.path()),
            namespaces: everywhere(),
            on_top: Vec::new(),
            images: image::Options::default(),
            format,
        };
        let (_, shown) = shown(|printer| intersect::run(&options, printer));
        data.map(|data| value(&shown, data));
    }
}

fn linted(folder: &Path) {
    for complete in [false, true] {
        for (format, data) in FORMATS {
            let options = lint::Options {
                source: source(folder),
                namespaces: everywhere(),
                on_top: Vec::new(),
                complete,
                package: None,
                images: image::Options::default(),
                format,
                baseline: None,
                create_baseline: false,
                fail_on: lint::FailOn::Warning,
                fix: false,
                yes: false,
            };
            let (_, shown) = shown(|printer| lint::run(&options, printer));
            data.map(|data| value(&shown, data));
            if matches!(format, Format::Github) {
                let forged = shown.out.lines().find(|line| !line.is_empty() && !line.starts_with("::"));
                assert!(forged.is_none(), "{forged:?}");
            }
        }
    }
}
