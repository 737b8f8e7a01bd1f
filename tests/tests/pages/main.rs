//! The pages of `-o html` and the images of `-o svg`, rendered by headless Chromium: with content, on light and dark displays, and with
//! hostile content that stays inert.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "../explain/garden.rs"]
mod garden;
mod inputs;

use std::fs;
use std::path::{Path, PathBuf};

use olm_shell::catalog::graph::Format;
use olm_shell::installplan::explain::Form;
use olm_tests::browser::{Browser, NO_BROWSER};
use olm_tests::scenario::checked_in;
use olm_tests::skip;
use olm_tests::well_formed::{is_well_formed, names};
use tempfile::TempDir;

use garden::garden;
use inputs::{HOSTILE, catalog, diff, graph, operators};

/// Maximum size of the pages of these tests in bytes.
const SIZE: usize = 512 << 10;

/// The elements of pages.
const ELEMENTS: [&str; 38] = [
    "a", "article", "b", "body", "br", "circle", "code", "dd", "details", "div", "dl", "dt", "g", "h1", "h2", "h3",
    "head", "html", "li", "line", "meta", "p", "path", "polygon", "pre", "rect", "section", "span", "style", "summary",
    "svg", "table", "td", "text", "th", "title", "tr", "ul",
];

/// The attributes of pages.
const ATTRIBUTES: [&str; 27] = [
    "charset",
    "class",
    "content",
    "cx",
    "cy",
    "d",
    "height",
    "href",
    "http-equiv",
    "id",
    "lang",
    "name",
    "open",
    "points",
    "r",
    "role",
    "title",
    "transform",
    "viewBox",
    "width",
    "x",
    "x1",
    "x2",
    "xmlns",
    "y",
    "y1",
    "y2",
];

/// Writes the pages of every command about ordinary objects.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let old = catalog(folder, "old", &inputs::OLD, "");
    let new = catalog(folder, "new", &inputs::NEW, "");
    let mut cluster = garden(&checked_in().join("upgrade-manual-steps"), "01-subscribe-with-startingcsv.yaml");
    cluster.approve();
    let installed = inputs::installed(folder, "");
    let pages = [
        ("graph.html", graph(&old, Some(&installed), Format::Html)),
        ("graph.svg", graph(&old, Some(&installed), Format::Svg)),
        ("diff.html", diff(&old, &new, &installed)),
        ("explain.html", cluster.explained("rose", Form::Html).1),
        ("operators.html", operators(&[inputs::garden(), inputs::broken()])),
    ];
    write(folder, &pages)
}

/// Writes pages whose untrusted text is hostile.
fn hostile(folder: &Path) -> Vec<PathBuf> {
    let old = catalog(folder, "old", &inputs::OLD, HOSTILE);
    let new = catalog(folder, "new", &inputs::NEW, HOSTILE);
    let installed = inputs::installed(folder, HOSTILE);
    let pages = [
        ("graph.html", graph(&old, Some(&installed), Format::Html)),
        ("graph.svg", graph(&old, Some(&installed), Format::Svg)),
        ("diff.html", diff(&old, &new, &installed)),
        ("operators.html", operators(&[inputs::forged(folder)])),
    ];
    write(folder, &pages)
}

fn write(folder: &Path, pages: &[(&str, String)]) -> Vec<PathBuf> {
    let one = |(name, text): &(&str, String)| {
        let path = folder.join(name);
        assert!(!text.is_empty() && text.len() < SIZE, "{name}: {} bytes", text.len());
        fs::write(&path, text).unwrap();
        path
    };
    pages.iter().map(one).collect()
}

#[test]
fn pages_are_well_formed_and_refer_to_nothing() {
    for make in [pages, hostile] {
        let folder = TempDir::new().unwrap();
        for path in make(folder.path()) {
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(is_well_formed(&text), Ok(()), "{}", path.display());
            let (elements, attributes) = names(&text);
            for (found, known) in [(elements, &ELEMENTS[..]), (attributes, &ATTRIBUTES[..])] {
                let unknown: Vec<&String> = found.iter().filter(|name| !known.contains(&name.as_str())).collect();
                assert!(unknown.is_empty(), "{unknown:?} in {}", path.display());
            }
            assert!(!text.contains("url(") && !text.contains("@import"), "{}", path.display());
            let links: Vec<&str> = text.split(" href=\"").skip(1).collect();
            assert!(links.iter().all(|link| link.starts_with('#')), "{}", path.display());
        }
    }
}

#[test]
fn pages_have_content_on_light_and_dark_displays() {
    let Some(browser) = Browser::find().unwrap() else { skip!("{NO_BROWSER}") };
    let folder = TempDir::new().unwrap();
    let blank = folder.path().join("blank.html");
    fs::write(&blank, "<!DOCTYPE html><title>blank</title>").unwrap();
    let blank = browser.screenshot(&blank, false).unwrap();
    assert_eq!((blank.corner, blank.detail > 0.001), ([255; 3], false), "a blank page: {}", blank.detail);
    for path in pages(folder.path()) {
        for (is_dark, corner) in [(false, [255; 3]), (true, [0x11, 0x18, 0x27])] {
            let picture = browser.screenshot(&path, is_dark).unwrap();
            assert_eq!((picture.width, picture.height), (1200, 1500));
            assert!(picture.detail > 0.002, "{}: {}", path.display(), picture.detail);
            // The policy permits the style sheets.
            assert_eq!(picture.corner, corner, "{}, dark: {is_dark}", path.display());
        }
    }
}

#[test]
fn hostile_content_is_inert() {
    let Some(browser) = Browser::find().unwrap() else { skip!("{NO_BROWSER}") };
    let folder = TempDir::new().unwrap();
    // The content changes a page that does not escape it.
    let naive = folder.path().join("naive.html");
    fs::write(&naive, format!("<!DOCTYPE html><title>naive</title><p>{HOSTILE}</p>")).unwrap();
    let document = browser.document(&naive).unwrap();
    assert!(document.contains("<img") && document.contains("id=\"forged\""), "{document}");
    for path in hostile(folder.path()) {
        let document = browser.document(&path).unwrap();
        for element in ["<img", "<script", "<i ", "<parsererror", "<title>1<"] {
            assert!(!document.contains(element), "{element} in {}", path.display());
        }
        let attributes = names(&document).1;
        assert!(!attributes.contains("forged") && !attributes.contains("onerror"), "{attributes:?}");
        assert!(document.contains("&lt;img"), "the content of {} is shown as text", path.display());
        // The same as XML, which a browser refuses unless it is well-formed.
        let xml = path.with_extension(if path.extension().is_some_and(|e| e == "svg") { "svg" } else { "xhtml" });
        fs::copy(&path, &xml).ok();
        let document = browser.document(&xml).unwrap();
        assert!(!document.contains("parsererror"), "{}", path.display());
    }
}
