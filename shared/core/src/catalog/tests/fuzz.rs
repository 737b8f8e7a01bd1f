//! Arbitrary catalog content causes no panic and no unbounded memory use, and gives the same result every time.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use super::{CATALOG, render};
use crate::yaml::{self, Format};

/// A mutation of a text.
#[derive(Clone, Debug)]
enum Change {
    Cut(usize, usize),
    Repeat(usize, usize),
    Insert(usize, &'static str),
    Byte(usize, u8),
}

fn change() -> impl Strategy<Value = Change> {
    const WORDS: [&str; 14] =
        ["{", "}", "\"", "\n---\n", "null", "- ", ": ", "\u{feff}", "&a *a", "<<: ", "0x1f", "\\u0000", "[1, {}]", "é"];
    let at = 0..CATALOG.len() * 2;
    prop_oneof![
        (at.clone(), 0..200_usize).prop_map(|(at, n)| Change::Cut(at, n)),
        (at.clone(), 0..200_usize).prop_map(|(at, n)| Change::Repeat(at, n)),
        (at.clone(), prop::sample::select(WORDS.to_vec())).prop_map(|(at, word)| Change::Insert(at, word)),
        (at, any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
    ]
}

fn changed(text: &str, changes: &[Change]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for change in changes {
        let within = |at: usize| at % (bytes.len() + 1);
        match *change {
            Change::Cut(at, n) => {
                let (from, to) = (within(at), bytes.len().min(within(at) + n));
                bytes.drain(from..to);
            }
            Change::Repeat(at, n) => {
                let (from, to) = (within(at), bytes.len().min(within(at) + n));
                let part = bytes[from..to].to_vec();
                bytes.splice(to..to, part);
            }
            Change::Insert(at, word) => {
                let at = within(at);
                bytes.splice(at..at, word.bytes());
            }
            Change::Byte(at, byte) => {
                let at = within(at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
        }
    }
    bytes
}

/// Reads a file in chunks of a size, as the shell does.
fn in_chunks(bytes: &[u8], size: usize) -> CatalogIndex {
    let stored: Arc<dyn Stored> = Arc::new(bytes.to_vec());
    let mut loader = Loader::default();
    let (mut start, mut end, mut line) = (0, 0, 1);
    while start < bytes.len() {
        end = bytes.len().min(end + size);
        let Some(format) = Format::detect(&bytes[..end]) else {
            if end == bytes.len() {
                break;
            }
            continue;
        };
        let cut = if end == bytes.len() { end - start } else { yaml::whole(&bytes[start..end], format) };
        let chunk = &bytes[start..start + cut];
        loader.add(Parsed::blobs(&Chunk { path: "c", line, offset: start, bytes: chunk, format, file: &stored }));
        line += chunk.split(|b| *b == b'\n').count() - 1;
        start += cut;
        if end == bytes.len() && cut == 0 {
            break;
        }
    }
    loader.finish()
}

fn check(bytes: &[u8]) {
    let file = File::new("c", bytes);
    let load = load(std::slice::from_ref(&file));
    for entry in load.snapshot.entries() {
        // Unreadable objects are absent; reading them must not panic.
        let _ = load.snapshot.bundle(&entry.package, &entry.channel, &entry.name);
    }
    assert!(
        load.findings.iter().all(|f| !f.code.is_empty() && !f.message.is_empty() && f.line > 0),
        "{:?}",
        load.findings
    );
    let again = super::super::load(std::slice::from_ref(&file));
    assert_eq!((&again.snapshot, &again.findings), (&load.snapshot, &load.findings));
    if std::str::from_utf8(bytes).is_ok() && !bytes.is_empty() {
        let chunks = in_chunks(bytes, 97).load();
        assert_eq!((&chunks.snapshot, &chunks.findings), (&load.snapshot, &load.findings));
    }
    for blob in index_files(&[file]).blobs(MigrationLevel::BundleObjectToCsvMetadata) {
        serde_json::to_string(&blob.unwrap()).unwrap();
    }
    if let Ok(template) = Template::read("c", bytes, None) {
        let _ = template.render(&mut |image| Err(image.to_owned()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn mutated_catalogs(changes in prop::collection::vec(change(), 0..6), as_json in any::<bool>()) {
        let json: String = render::rendered(CATALOG).iter().map(|m| serde_json::to_string_pretty(m).unwrap() + "\n").collect();
        check(&changed(if as_json { &json } else { CATALOG }, &changes));
    }

    #[test]
    fn mutated_templates(changes in prop::collection::vec(change(), 0..4)) {
        const TEMPLATE: &str = "schema: olm.semver\ngenerateMajorChannels: true\nstable:\n  bundles:\n  - image: i:1\n  - image: i:2\n";
        check(&changed(TEMPLATE, &changes));
    }
}

#[test]
fn bombs_are_refused() {
    let laughs: String =
        (1..9).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","))).collect();
    let bomb = format!("schema: x\na0: &a0 lol\n{laughs}");
    let deep = |open: &str, n: usize| format!("{{\"schema\": \"x\", \"a\": {}", open.repeat(n));
    for text in
        [bomb, deep("[", 100_000), deep("{\"a\":", 100_000), format!("a: {}", "[".repeat(10_000)), "- ".repeat(10_000)]
    {
        let load = load(&[File::new("c", text.as_bytes())]);
        assert!(!load.findings.is_empty(), "{}", &text[..40]);
    }
}
