//! Parts of a type that only contribute to the schema.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A part with the schema of `T`, which need not have a default.
pub struct Carried<T>(PhantomData<fn() -> T>);

impl<T> Default for Carried<T> {
    fn default() -> Self {
        Self(PhantomData)
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
