//! YAML and JSON as JSON, within the limits of a document, recording every duplicate key of a mapping.

use std::cell::RefCell;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::budget::{Document, Meter, REPEATED_KEYS};

/// The state of reading a document.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) repeated: RefCell<Vec<String>>,
    pub(super) meter: Meter,
}

impl Reading {
    pub(super) fn new(limits: Document) -> Self {
        Self { repeated: RefCell::default(), meter: Meter::new(limits) }
    }

    /// Reads the document.
    pub(super) fn root(&self) -> Checked<'_> {
        Checked { reading: self, depth: 0 }
    }
}

/// Builds a [`Value`]. Of duplicate keys the last one is used, as in Go. What an alias repeats is counted before it is
/// built.
#[derive(Clone, Copy)]
pub(super) struct Checked<'r> {
    reading: &'r Reading,
    depth: usize,
}

impl Checked<'_> {
    fn count<E: serde::de::Error>(self, bytes: usize) -> Result<(), E> {
        self.reading.meter.count(self.depth, bytes).map_err(E::custom)
    }

    fn scalar<E: serde::de::Error>(self, value: impl Into<Value>) -> Result<Value, E> {
        self.count(0).map(|()| value.into())
    }

    fn inside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Checked<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        match Number::from_f64(value) {
            Some(number) => self.scalar(number),
            // JSON, which the API server is sent, has no such number.
            None => Err(E::custom("infinity and NaN cannot be values of Kubernetes objects")),
        }
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.count(value.len()).map(|()| value.into())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.count(value.len()).map(|()| value.into())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.inside())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.reading.meter.count_key(key.len()).map_err(A::Error::custom)?;
            let mut repeated = self.reading.repeated.borrow_mut();
            if map.contains_key(&key) && repeated.len() < REPEATED_KEYS {
                repeated.push(key.clone());
            }
            drop(repeated);
            let value = access.next_value_seed(self.inside())?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Resolves YAML's merge keys: `<<` adds the missing fields of a map, or of each map of a list.
pub(super) fn merge(value: &mut Value) -> Result<(), &'static str> {
    const WRONG: &str = "the value of a merge key << must be a map, or a list of maps";
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(merge),
        Value::Object(map) => {
            map.values_mut().try_for_each(merge)?;
            let merged = match map.remove("<<") {
                None => return Ok(()),
                Some(Value::Array(maps)) => maps,
                Some(other) => vec![other],
            };
            for fields in merged {
                let Value::Object(fields) = fields else { return Err(WRONG) };
                for (key, value) in fields {
                    map.entry(key).or_insert(value);
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
