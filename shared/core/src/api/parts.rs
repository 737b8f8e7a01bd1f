//! What several of OLM's resources are made of: times, references, conditions, selectors, and words with a fixed meaning.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::crd::kubernetes::type_of_kubernetes;

/// Makes an enum of texts that have a meaning; a text without one is kept as `Other`. The first is the default.
macro_rules! texts {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* #[doc = concat!("`", $text, "`")] $variant,)+
            /// Any other text.
            Other(String),
        }

        impl $name {
            /// The text as it stands in an object.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                [$(Self::$variant),+].into_iter().next().unwrap_or(Self::Other(String::new()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(String::deserialize(deserializer)?.as_str()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}

pub(super) use texts;

/// A point in time; `None` when it is absent or no RFC 3339 time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Option<Timestamp>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?.parse().ok()))
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// A reference to an object, as status fields hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectReference {
    /// Group and version, `v1` for the core group.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty when cluster-scoped.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The uid that the object had.
    pub uid: String,
    /// The resourceVersion that the object had.
    pub resource_version: String,
}

type_of_kubernetes!(ObjectReference = "io.k8s.api.core.v1.ObjectReference");

/// A condition in Kubernetes' common form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// What is asked.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The answer's reason, one word.
    pub reason: String,
    /// The answer for people.
    pub message: String,
    /// The `metadata.generation` that it was given for; 0 when not said.
    pub observed_generation: i64,
    /// When `status` last changed.
    pub last_transition_time: Time,
}

type_of_kubernetes!(Condition = "io.k8s.apimachinery.pkg.apis.meta.v1.Condition");

/// A selector of objects by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have this value.
    pub match_labels: BTreeMap<String, String>,
    /// Expressions that must hold.
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// An expression of a label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// For `In` and `NotIn`: the values.
    pub values: Vec<String>,
}

type_of_kubernetes!(LabelSelector = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector");

/// What may be done to which resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicyRule {
    /// Verbs, `*` for all.
    pub verbs: Vec<String>,
    /// API groups, `*` for all, empty text for the core group.
    pub api_groups: Vec<String>,
    /// Resources and `resource/subresource`, `*` for all.
    pub resources: Vec<String>,
    /// Names; none means every name.
    pub resource_names: Vec<String>,
    /// Paths that are no resources, for cluster-wide rules only.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}

type_of_kubernetes!(PolicyRule = "io.k8s.api.rbac.v1.PolicyRule");
