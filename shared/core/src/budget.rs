//! Limits on input: the single place for the limits of documents, bundles and catalogs.
//!
//! All input is untrusted. A reader refuses input that exceeds a limit, states the limit in its message, and continues with the rest. The
//! limits of images that are written to disk are in the shell (`image::Limits`), and are derived from these.

use std::cell::Cell;

/// Maximum size of one document of a catalog, in bytes. The largest blobs of public catalogs have two million bytes.
pub const DOCUMENT_BYTES: usize = 32 << 20;

/// Maximum size of the files of one bundle, in bytes: forty times the maximum size of an object of the API server.
pub const BUNDLE_BYTES: u64 = 64 << 20;

/// Maximum size of the files of a catalog, in bytes. The largest public catalog has 120 million bytes.
pub const CATALOG_BYTES: u64 = 2 << 30;

/// Maximum size of the bundles of a catalog in a ConfigMap, in bytes. A bundle counts once per channel that contains it; the ConfigMap itself
/// has at most a million bytes.
pub(crate) const CONFIG_MAP_BYTES: usize = 64 << 20;

/// Maximum number of values of a catalog that stay in memory: in the properties of its bundles, and in the entries of its channels. A value
/// typically takes a hundred bytes, and at most [`VALUE_BYTES`]; the largest public catalog has five hundred thousand values.
pub const CATALOG_VALUES: usize = 5_000_000;

/// Maximum memory for the gRPC messages of a catalog, in bytes.
pub const CATALOG_MESSAGES: usize = 512 << 20;

/// Maximum memory for all catalogs outside of the global namespace, over gRPC and of images, in bytes. A namespace may use as much as it
/// leaves for others, that is at most half.
pub const TENANTS_MEMORY: usize = 512 << 20;

/// Maximum disk space for the images of all catalogs outside of the global namespace, in bytes, shared in the same way.
pub const TENANTS_FILES: usize = 8 << 30;

/// Maximum disk space for one such image, in bytes. The largest public catalog has 120 million bytes.
pub const TENANT_IMAGE: u64 = 512 << 20;

/// Maximum memory for one value of a catalog ([`CATALOG_VALUES`]), in bytes.
pub const VALUE_BYTES: usize = 400;

/// Memory for an entry of a channel in addition to its strings, in bytes: the entry itself, its keys in three maps, and the default
/// property `olm.package`.
pub const ENTRY_BYTES: usize = 2048;

/// Maximum size of one gRPC message, in bytes: a bundle with its objects. A message of empty strings takes 24 times its size in memory.
pub const MESSAGE_BYTES: usize = 16 << 20;

/// Maximum number of findings that are stored for one catalog; further findings are only counted.
pub const CATALOG_FINDINGS: usize = 10_000;

/// Maximum number of duplicate keys of one document that are reported.
pub(crate) const REPEATED_KEYS: usize = 20;

/// Limits on one document in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document {
    /// Maximum number of maps, lists and scalars, counted each time that an alias repeats them.
    pub nodes: usize,
    /// Maximum size of strings and keys, in bytes, counted in the same way.
    pub bytes: usize,
    /// Maximum nesting depth of maps and lists, which is the depth that the parsers support.
    pub depth: usize,
}

impl Document {
    /// Limits of a manifest, a blob of a catalog, or a value of a ConfigMap. A node takes up to 350 bytes, so one document takes at most
    /// 105 MB; the largest documents of public catalogs have thirty thousand nodes.
    pub const MANIFEST: Self = Self { nodes: 300_000, bytes: 2 * DOCUMENT_BYTES, depth: 120 };

    /// Limits of a file that the user passes, which may contain a List of all objects of a large cluster.
    pub const FILE: Self = Self { nodes: 50_000_000, bytes: 3 << 30, ..Self::MANIFEST };

    /// Maximum number of nodes that aliases may add.
    const ALIAS_NODES: usize = 10_000;
    /// Maximum number of bytes that aliases may add.
    const ALIAS_BYTES: usize = 1 << 20;

    /// Returns the limits for a text of that length. Without aliases, a text has no more nodes than bytes, and escapes of YAML and JSON at
    /// most double its length. Anything beyond that comes from aliases, which have limits of their own.
    pub(crate) fn of_text(self, length: usize) -> Self {
        Self {
            nodes: self.nodes.min(length.saturating_add(Self::ALIAS_NODES)),
            bytes: self.bytes.min(length.saturating_mul(2).saturating_add(Self::ALIAS_BYTES)),
            ..self
        }
    }
}

/// The limit of a document that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    #[error("the document has more than {0} values, including those that aliases repeat")]
    Nodes(usize),
    #[error("the document has more than {0} bytes of text, including text that aliases repeat")]
    Bytes(usize),
    #[error("the document has more than {0} levels of maps and lists")]
    Depth(usize),
}

impl Exceeded {
    /// Returns a suggested next step.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Nodes(_) | Self::Bytes(_) => "replace aliases by their values, or split the document",
            Self::Depth(_) => "reduce the nesting of maps and lists",
        }
    }
}

/// Counts the nodes and bytes of a document while it is read.
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

    /// Counts one value at that depth, with a string of that length.
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

    /// Returns the limit that was exceeded, if one was.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded.get()
    }
}

/// Checks the number of values of a JSON text, before it is parsed. Separators inside of strings count, too, which legitimate documents
/// tolerate because they stay far below the limit.
pub(crate) fn check_json(text: &str, limits: Document) -> Result<(), Exceeded> {
    let separators = memchr::memchr3_iter(b',', b'{', b'[', text.as_bytes()).take(limits.nodes + 1).count();
    if separators > limits.nodes { Err(Exceeded::Nodes(limits.nodes)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::yaml;

    /// Returns why the only document of a text is refused, and the hint.
    fn refused(text: &str) -> (String, &'static str) {
        let error = yaml::first(text.as_bytes()).unwrap_err();
        (error.message, error.hint.unwrap_or_default())
    }

    #[test]
    fn documents_that_aliases_multiply_are_refused() {
        // 10^9 values, in lists, in maps, and by merge keys.
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
            assert_eq!(
                message,
                format!("the document has more than {most} values, including those that aliases repeat")
            );
            assert!(hint.starts_with("replace aliases by their values"), "{hint}");
        }
        // A long string that is repeated, as a value and as a key.
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
                format!("the document has more than {most} bytes of text, including text that aliases repeat")
            );
        }
    }

    #[test]
    fn ordinary_aliases_and_merge_keys_are_read() {
        let text = "base: &base {cpu: 1, labels: &l {app: rose}}\nmore: &more {<<: *base, cpu: 2}\n\
                    list: [*l, {<<: [*more, {cpu: 3, memory: 4}], x: *l}]\n";
        let rose = json!({ "app": "rose" });
        let wanted = json!([rose, { "cpu": 2, "labels": rose, "memory": 4, "x": rose }]);
        assert_eq!(yaml::first(text.as_bytes()).unwrap()["list"], wanted);
        assert_eq!(refused("a: {<<: 1}").0, "the value of a merge key << must be a map, or a list of maps");
    }

    #[test]
    fn depth_and_length_are_limited_in_both_formats() {
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(yaml::first(nested(120).as_bytes()).is_ok());
        let (message, hint) = refused(&nested(121));
        assert_eq!(
            (message.as_str(), hint),
            ("the document has more than 120 levels of maps and lists", "reduce the nesting of maps and lists")
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
