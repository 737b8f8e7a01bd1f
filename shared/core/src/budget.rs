//! Limits on what is read: the one place for the limits of a document, a bundle and a catalog.
//!
//! Everything that is read may be hostile. A reader refuses what exceeds a limit, names the number, and goes on with the rest.
//! The limits of images on their way to the disk are in the shell (`image::Limits`), and are made of these.

use std::cell::Cell;

/// Most bytes of one document of a catalog. The largest blobs of public catalogs have two million.
pub const DOCUMENT_BYTES: usize = 32 << 20;

/// Most bytes of the files of one bundle: forty times what an API server takes as one object.
pub const BUNDLE_BYTES: u64 = 64 << 20;

/// Most bytes of a catalog's files. The largest public catalog has 120 million.
pub const CATALOG_BYTES: u64 = 2 << 30;

/// Most bytes of the bundles of a catalog in a ConfigMap, which has a million bytes itself, each as often as a channel has it.
pub(crate) const CONFIG_MAP_BYTES: usize = 64 << 20;

/// Most values of a catalog that stay in memory: of the properties of its bundles, and of the entries of its channels. They take a
/// hundred bytes each, and [`VALUE_BYTES`] at worst; the largest public catalog has five hundred thousand.
pub const CATALOG_VALUES: usize = 5_000_000;

/// Most bytes of what a catalog says over gRPC, with what it takes in memory.
pub const CATALOG_MESSAGES: usize = 512 << 20;

/// Most bytes in memory of all catalogs outside the global namespace, over gRPC and of images. A namespace has as much of them as it
/// leaves to others: alone half.
pub const TENANTS_MEMORY: usize = 512 << 20;

/// Most bytes on disk of the images of all catalogs outside the global namespace, divided in the same way.
pub const TENANTS_FILES: usize = 8 << 30;

/// Most bytes on disk of one such image. The largest public catalog has 120 million.
pub const TENANT_IMAGE: u64 = 512 << 20;

/// What one value of a catalog ([`CATALOG_VALUES`]) takes in memory at worst, in bytes.
pub const VALUE_BYTES: usize = 400;

/// What an entry of a channel takes in memory besides its texts, in bytes: itself, its places in three maps, and the property `olm.package`
/// that it gets when it has none.
pub const ENTRY_BYTES: usize = 2048;

/// Most bytes of one message over gRPC: a bundle with its objects. Of empty strings a message makes 24 times as much in memory.
pub const MESSAGE_BYTES: usize = 16 << 20;

/// Most findings that are kept of one catalog; the others are counted.
pub const CATALOG_FINDINGS: usize = 10_000;

/// Most keys of one document that are named because they stand there twice.
pub(crate) const REPEATED_KEYS: usize = 20;

/// Limits on what one document may become in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document {
    /// Most maps, lists and scalars, counted each time that an alias repeats them.
    pub nodes: usize,
    /// Most bytes of texts and keys, counted in the same way.
    pub bytes: usize,
    /// Most levels of maps and lists, as deep as the parsers follow.
    pub depth: usize,
}

impl Document {
    /// A manifest, a blob of a catalog, or a value of a ConfigMap. A node takes up to 350 bytes, so one document takes 105 MB at most;
    /// the largest of public catalogs have thirty thousand nodes.
    pub const MANIFEST: Self = Self { nodes: 300_000, bytes: 2 * DOCUMENT_BYTES, depth: 120 };

    /// A file that the user names, which may hold the List of all objects of a large cluster.
    pub const FILE: Self = Self { nodes: 50_000_000, bytes: 3 << 30, ..Self::MANIFEST };

    /// What aliases may add to the nodes of a document that has none.
    const ALIAS_NODES: usize = 10_000;
    /// What aliases may add to its bytes.
    const ALIAS_BYTES: usize = 1 << 20;

    /// The limits for a text of that length. Without aliases no text has more nodes than bytes, and no escape of YAML or JSON makes a
    /// text more than twice as long: what is beyond that comes from aliases, which may add little.
    pub(crate) fn of_text(self, length: usize) -> Self {
        Self {
            nodes: self.nodes.min(length.saturating_add(Self::ALIAS_NODES)),
            bytes: self.bytes.min(length.saturating_mul(2).saturating_add(Self::ALIAS_BYTES)),
            ..self
        }
    }
}

/// Which limit of a document was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    #[error("the document has more than {0} values, with what its aliases repeat")]
    Nodes(usize),
    #[error("the document has more than {0} bytes of text, with what its aliases repeat")]
    Bytes(usize),
    #[error("the document has more than {0} levels of maps and lists")]
    Depth(usize),
}

impl Exceeded {
    /// What to do about it.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Nodes(_) | Self::Bytes(_) => "write out what the aliases stand for, or divide the document",
            Self::Depth(_) => "nest fewer maps and lists",
        }
    }
}

/// Counts what becomes of a document while it is read.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: Document,
    nodes: Cell<usize>,
    bytes: Cell<usize>,
    exceeded: Cell<Option<Exceeded>>,
}

impl Meter {
    pub(crate) fn new(limits: Document) -> Self {
        Self { limits, nodes: Cell::new(0), bytes: Cell::new(0), exceeded: Cell::new(None) }
    }

    /// Counts one value at that depth, with a text of that length.
    pub(crate) fn count(&self, depth: usize, bytes: usize) -> Result<(), Exceeded> {
        self.charge(1, depth, bytes)
    }

    /// Counts a key of that length.
    pub(crate) fn count_key(&self, bytes: usize) -> Result<(), Exceeded> {
        self.charge(0, 0, bytes)
    }

    fn charge(&self, nodes: usize, depth: usize, bytes: usize) -> Result<(), Exceeded> {
        self.nodes.set(self.nodes.get().saturating_add(nodes));
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        let Document { nodes: most_nodes, bytes: most_bytes, depth: deepest } = self.limits;
        let exceeded = if depth > deepest {
            Exceeded::Depth(deepest)
        } else if self.nodes.get() > most_nodes {
            Exceeded::Nodes(most_nodes)
        } else if self.bytes.get() > most_bytes {
            Exceeded::Bytes(most_bytes)
        } else {
            return Ok(());
        };
        self.exceeded.set(Some(exceeded));
        Err(exceeded)
    }

    /// The limit that was exceeded, if one was.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded.get()
    }
}

/// Does a JSON text have more values than one document may? What separates values is counted in texts, too: no honest document comes near.
pub(crate) fn check_json(text: &str, limits: Document) -> Result<(), Exceeded> {
    let separators = memchr::memchr3_iter(b',', b'{', b'[', text.as_bytes()).take(limits.nodes + 1).count();
    if separators > limits.nodes { Err(Exceeded::Nodes(limits.nodes)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::yaml;

    /// Why the only document of a text is refused, and the hint.
    fn refused(text: &str) -> (String, &'static str) {
        let error = yaml::first(text.as_bytes()).unwrap_err();
        (error.message, error.hint.unwrap_or_default())
    }

    #[test]
    fn aliases_may_not_multiply_a_document() {
        // Ten to the power of nine values, in lists, in maps, and by merge keys.
        let (mut lists, mut maps) = ("a0: &a0 [x]\n".to_owned(), "a0: &a0 {k: x}\n".to_owned());
        let mut merged = maps.clone();
        for n in 1..10 {
            let aliases = vec![format!("*a{}", n - 1); 10];
            lists += &format!("a{n}: &a{n} [{}]\n", aliases.join(", "));
            let fields: Vec<String> =
                aliases.iter().enumerate().map(|(key, alias)| format!("k{key}: {alias}")).collect();
            maps += &format!("a{n}: &a{n} {{{}}}\n", fields.join(", "));
            merged += &format!("a{n}: &a{n} {{<<: [{}], {}}}\n", aliases.join(", "), fields.join(", "));
        }
        for text in [lists, maps, merged] {
            assert!(text.len() < 2000);
            let (message, hint) = refused(&text);
            let most = text.len() + super::Document::ALIAS_NODES;
            assert_eq!(message, format!("the document has more than {most} values, with what its aliases repeat"));
            assert!(hint.starts_with("write out what the aliases stand for"), "{hint}");
        }
        // A long text many times; as a key, too.
        let long = "x".repeat(10_000);
        for text in [
            format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 2500].join(", ")),
            format!("a: &a\n  ? {long}\n  : 1\nb: [{}]\n", vec!["*a"; 2500].join(", ")),
        ] {
            assert!(text.len() < 21_000);
            let (message, _) = refused(&text);
            let most = 2 * text.len() + super::Document::ALIAS_BYTES;
            assert_eq!(
                message,
                format!("the document has more than {most} bytes of text, with what its aliases repeat")
            );
        }
    }

    #[test]
    fn honest_aliases_and_merge_keys_are_read() {
        let text = "base: &base {cpu: 1, labels: &l {app: rose}}\nmore: &more {<<: *base, cpu: 2}\n\
                    list: [*l, {<<: [*more, {cpu: 3, memory: 4}], x: *l}]\n";
        let rose = json!({ "app": "rose" });
        let wanted = json!([rose, { "cpu": 2, "labels": rose, "memory": 4, "x": rose }]);
        assert_eq!(yaml::first(text.as_bytes()).unwrap()["list"], wanted);
        assert_eq!(refused("a: {<<: 1}").0, "a merge key << takes a map, or a list of maps");
    }

    #[test]
    fn depth_and_length_are_bounded_in_both_formats() {
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(yaml::first(nested(120).as_bytes()).is_ok());
        let (message, hint) = refused(&nested(121));
        assert_eq!(
            (message.as_str(), hint),
            ("the document has more than 120 levels of maps and lists", "nest fewer maps and lists")
        );
        let yaml: String = (0..125).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert_eq!(refused(&yaml).0, message);
        for many in [format!("[{}1]", "1,".repeat(300_000)), format!("{{\"a\": [{}1]}}", "1,".repeat(300_000))] {
            assert!(refused(&many).0.starts_with("the document has more than 300000 values"));
            let documents = yaml::documents(many.as_bytes()).unwrap();
            let (value, _) = documents[0].parse_within(super::Document::FILE).unwrap();
            assert_eq!(value.as_array().or_else(|| value["a"].as_array()).map(Vec::len), Some(300_001));
        }
        assert_eq!(yaml::first(b"a: 1\na: 2").unwrap(), json!({ "a": 2 }));
        let repeated: String = (0..100).map(|_| "a: 1\n").collect();
        let (value, keys): (Value, Vec<String>) = yaml::documents(repeated.as_bytes()).unwrap()[0].parse().unwrap();
        assert_eq!((value, keys.len()), (json!({ "a": 1 }), super::REPEATED_KEYS));
    }
}
