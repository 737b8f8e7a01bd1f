//! Parts of an object that are carried, not decided on: they stay JSON, and have the schema of a type all the same.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// JSON with the schema of `T`, readable here as JSON.
pub struct Raw<T> {
    /// The JSON.
    pub json: Value,
    type_: PhantomData<fn() -> T>,
}

/// A part with the schema of `T` that is not read at all: it is only in the object's JSON.
pub struct Carried<T>(PhantomData<fn() -> T>);

impl<T> Default for Raw<T> {
    fn default() -> Self {
        Self { json: Value::Null, type_: PhantomData }
    }
}

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        Self { json: self.json.clone(), type_: PhantomData }
    }
}

impl<T> PartialEq for Raw<T> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<T> std::fmt::Debug for Raw<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.json.fmt(f)
    }
}

impl<'de, T> Deserialize<'de> for Raw<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { json: Value::deserialize(deserializer)?, type_: PhantomData })
    }
}

impl<T: JsonSchema> JsonSchema for Raw<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T> Default for Carried<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T> Clone for Carried<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> PartialEq for Carried<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> std::fmt::Debug for Carried<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(carried)")
    }
}

impl<'de, T> Deserialize<'de> for Carried<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self::default())
    }
}

impl<T: JsonSchema> JsonSchema for Carried<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
