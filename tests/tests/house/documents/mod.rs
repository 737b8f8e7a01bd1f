//! JSON Schemas of the documents that commands print with `-o json` and `-o yaml`: written to `shared/docs/schemas`, and
//! compared with real output (`answers`).
//!
//! The types only define the form and describe the fields. If a document is a type of the code, that type's own schema is used.

#![allow(dead_code, reason = "only the form of these types matters")]

/// Defines types that are only used for their schema.
macro_rules! forms {
    ($($(#[$meta:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* })+) => {
        $(
            $(#[$meta])*
            #[derive(schemars::JsonSchema)]
            #[schemars(rename_all = "camelCase")]
            pub(crate) struct $name { $($(#[$of_field])* $field: $type,)* }
        )+
    };
}

mod bundles;
mod catalogs;
mod groups;
mod operators;
mod shared;

use std::collections::BTreeSet;
use std::path::PathBuf;

use olm_core::explain::REASONS;
use olm_shell::cli::output::API_VERSION;
use olm_shell::run::audit::AuditEvent;
use olm_tests::house::generated::Generated;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use self::bundles::{BundleAccount, BundleImage, BundleValidation};
use self::catalogs::{
    CatalogAddition, CatalogDiff, CatalogValidation, ImageList, Package, PackageList, Resolution, UpdateGraph,
    UpdatePath,
};
use self::groups::{OperatorGroupIntersections, OperatorGroupLint};
use self::operators::{
    ClusterCheckup, InstallPlanEvent, InstallPlanExplanation, InstallPlanList, OLMStatus, OperatorCleanup,
    OperatorDiagnosis, OperatorList, OperatorRemoval, OperatorRollback, OperatorUpgrade, OperatorWait,
    OutdatedOperators, Version,
};
use super::pages;

/// Returns the schema of a document of that kind.
fn schema<T: JsonSchema>(kind: &str) -> (String, Value) {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["title"] = kind.into();
    schema["properties"]["apiVersion"] = json!({ "const": API_VERSION });
    schema["properties"]["kind"] = json!({ "const": kind });
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    schema["required"] = [json!("apiVersion"), json!("kind")].into_iter().chain(required).collect();
    (kind.to_owned(), schema)
}

/// Returns the schemas by document kind.
pub(crate) fn schemas() -> Vec<(String, Value)> {
    macro_rules! of {
        ($($type:ident,)+) => { vec![$(schema::<$type>(stringify!($type)),)+] };
    }
    of! {
        AuditEvent, BundleAccount, BundleImage, BundleValidation, CatalogAddition, CatalogDiff, CatalogValidation, ClusterCheckup, ImageList, InstallPlanEvent, InstallPlanExplanation, InstallPlanList,
        OLMStatus, OperatorCleanup, OperatorDiagnosis, OperatorGroupIntersections, OperatorGroupLint, OperatorList, OperatorRemoval, OperatorRollback, OperatorUpgrade, OperatorWait, OutdatedOperators, Package, PackageList, Resolution, UpdateGraph, UpdatePath, Version,
    }
}

pub(crate) fn files() -> Vec<Generated> {
    let file = |path: String, text: String| Generated { file: PathBuf::from(path), text };
    let schemas = schemas();
    let mut files: Vec<Generated> = schemas
        .iter()
        .map(|(kind, schema)| {
            let text = serde_json::to_string_pretty(schema).unwrap_or_default();
            file(format!("shared/docs/schemas/{kind}.json"), format!("{text}\n"))
        })
        .collect();
    if let Some((_, schema)) = schemas.iter().find(|(kind, _)| kind == "InstallPlanExplanation") {
        files.push(file("shared/docs/install-plan-policies.md".to_owned(), policies(schema)));
    }
    files.push(file("shared/docs/bundle-rules.md".to_owned(), pages::bundle_rules()));
    files.push(file("shared/docs/troubleshooting.md".to_owned(), pages::troubleshooting()));
    files
}

const POLICIES: &str = "# Policies for InstallPlans

`kubectl olm install-plan approve --if EXPR` approves only InstallPlans for which EXPR is true; `explain --if EXPR` evaluates EXPR without
approving. EXPR is a CEL expression over the fields of `kubectl olm install-plan explain -o json`, which this page lists (schema:
`schemas/InstallPlanExplanation.json`). Every field is always present; a field that does not apply is null, empty or false. To compare
versions, use `semver(x).major()`, `.minor()`, `.patch()`, `.isLessThan(y)`, `.isGreaterThan(y)`, `.compareTo(y)`, and `isSemver(x)`.

    verdict.result == \"safe\" && rbac.escalates == false && crds.all(c, c.safe) && csvs.all(x, x.from != null && semver(x.to).major() == semver(x.from).major())

This page is generated: `OLM_GENERATE=1 cargo test -p olm-tests generated`.

| field | type | values and meaning |
| --- | --- | --- |
";

/// Returns the page of the fields that policies can use.
fn policies(schema: &Value) -> String {
    let mut lines = Vec::new();
    fields(schema, schema, "", &mut lines);
    let is_asked = |line: &&String| {
        !line.starts_with("| `policies") && !line.starts_with("| `apiVersion") && !line.starts_with("| `kind`")
    };
    let fields: String = lines.iter().filter(is_asked).map(|line| format!("{line}\n")).collect();
    let reasons: String = REASONS.iter().map(|(reason, what)| format!("| `{reason}` | {what} |\n")).collect();
    format!(
        "{POLICIES}{fields}\nThe values of `verdict.reasons[].reason`:\n\n| value | meaning |\n| --- | --- |\n{reasons}"
    )
}

/// Appends a line for every field below this one.
fn fields(root: &Value, schema: &Value, path: &str, lines: &mut Vec<String>) {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten().filter(|(name, _)| known.insert(name)) {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let (inner, is_list) = match &field["items"] {
            Value::Null => (resolved(root, field), false),
            items => (resolved(root, items), true),
        };
        let mut type_ = if inner["properties"].is_object() { "object".to_owned() } else { type_of(inner) };
        if is_list {
            type_ = format!("list of {type_}");
        }
        let described = field["description"].as_str().or_else(|| inner["description"].as_str()).unwrap_or_default();
        let mut meaning = described.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        let values = values(inner);
        if !values.is_empty() {
            meaning = format!("{meaning} Values: {}", values.join("; "));
        }
        lines.push(format!("| `{path}{}` | {type_} | {meaning} |", if is_list { "[]" } else { "" }));
        fields(root, inner, &format!("{path}{}", if is_list { "[]" } else { "" }), lines);
    }
}

fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        Some(path) => root.pointer(path).unwrap_or(schema),
        None => schema,
    }
}

fn type_of(schema: &Value) -> String {
    match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if !values(schema).is_empty() => "string".to_owned(),
        _ => "any".to_owned(),
    }
}

/// Returns the values of an enumeration with their descriptions.
fn values(schema: &Value) -> Vec<String> {
    let of_const = |one: &Value| {
        let value = one["const"].as_str()?;
        let meaning = one["description"].as_str().unwrap_or_default();
        Some(format!("`{value}`: {}", meaning.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.')))
    };
    let consts = schema["oneOf"].as_array().into_iter().flatten().filter_map(of_const);
    let plain = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    consts.chain(plain.map(|value| format!("`{value}`"))).collect()
}
