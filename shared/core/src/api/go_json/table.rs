//! The table of Go types: how `encoding/json` writes each field, parsed once from `kubernetes.txt` and `olm.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The encoding of a Go value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string or a named string type.
    String,
    /// Any integer or float.
    Number,
    /// A boolean.
    Bool,
    /// `[]byte`: base64 text.
    Bytes,
    /// `metav1.Time`: RFC 3339, whole seconds, UTC.
    Time,
    /// `metav1.MicroTime`: like `metav1.Time`, with microseconds.
    MicroTime,
    /// `resource.Quantity`, in canonical form.
    Quantity,
    /// `intstr.IntOrString`: zero is the number 0.
    IntOrString,
    /// Not changed: `RawExtension`, `json.RawMessage`, …
    Raw,
    /// A pointer: missing is `null`.
    Pointer(Box<Self>),
    /// A slice: missing is `null`.
    Slice(Box<Self>),
    /// A map with strings as keys: missing is `null`.
    Map(Box<Self>),
    /// A struct of that name.
    Struct(&'static str),
    /// Objects, or the objects of a list, are such a struct; other values are not changed.
    Some(&'static str),
}

/// A field of a Go struct.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) omit_empty: bool,
    pub(super) omit_zero: bool,
}

/// The structs by name.
pub(super) type Table = BTreeMap<&'static str, Vec<Field>>;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::new();
    read(include_str!("kubernetes.txt"), &mut table);
    read(include_str!("olm.txt"), &mut table);
    table
});

/// Returns the name of a struct in the table, and its fields in Go's order.
pub(super) fn structure(name: &str) -> Option<(&'static str, &'static [Field])> {
    TABLE.get_key_value(name).map(|(name, fields)| (*name, fields.as_slice()))
}

#[cfg(test)]
pub(super) fn all() -> &'static Table {
    &TABLE
}

fn read(text: &'static str, table: &mut Table) {
    let mut current = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(field) = line.strip_prefix('\t') else {
            current = line;
            table.insert(current, Vec::new());
            continue;
        };
        let (name, rest) = field.split_once(' ').unwrap_or((field, "raw"));
        let mut rest = rest;
        let mut option = |word: &str| match rest.strip_suffix(word) {
            Some(shorter) => {
                rest = shorter;
                true
            }
            None => false,
        };
        let omit_zero = option(" omitzero");
        let omit_empty = option(" omitempty");
        table.entry(current).or_default().push(Field { name, kind: kind(rest), omit_empty, omit_zero });
    }
}

/// Parses a kind of the table; a word that is not a basic kind is the name of a struct.
pub(super) fn kind(text: &'static str) -> Kind {
    let boxed = |text| Box::new(kind(text));
    if let Some(inner) = text.strip_prefix('*') {
        return Kind::Pointer(boxed(inner));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Kind::Slice(boxed(inner));
    }
    if let Some(inner) = text.strip_prefix("{}") {
        return Kind::Map(boxed(inner));
    }
    if let Some(inner) = text.strip_prefix("some ") {
        return Kind::Some(inner);
    }
    match text {
        "string" => Kind::String,
        "number" => Kind::Number,
        "bool" => Kind::Bool,
        "bytes" => Kind::Bytes,
        "time" => Kind::Time,
        "microtime" => Kind::MicroTime,
        "quantity" => Kind::Quantity,
        "intorstring" => Kind::IntOrString,
        "raw" => Kind::Raw,
        name => Kind::Struct(name),
    }
}
