//! The forms of objects in responses and in events: whole, metadata alone, or as rows of a Table.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::request::{Form, Included};
use super::store::Item;
use crate::api::metadata::Metadata;
use crate::api::status::Status;
use crate::go_format;

/// The `apiVersion` of Tables and of metadata.
pub(super) const META: &str = "meta.k8s.io/v1";

/// Returns the body of a refusal, as the API server writes it.
pub(super) fn status_json(status: &Status) -> Value {
    let mut json = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": status.message,
        "reason": status.reason, "code": status.code,
    });
    if status.code == 503 {
        json["details"] = json!({ "retryAfterSeconds": 1 });
    }
    json
}

/// Appends an object.
pub(super) fn object(body: &mut Vec<Arc<[u8]>>, item: &Item, namespace: &str, form: Form) {
    if form == Form::Object {
        body.extend([item.beginning(namespace).into(), item.status.clone(), Arc::from(&b"}"[..])]);
    } else {
        body.push(partial(item, namespace).to_string().into_bytes().into());
    }
}

fn partial(item: &Item, namespace: &str) -> Value {
    json!({ "kind": "PartialObjectMetadata", "apiVersion": META, "metadata": item.metadata(namespace) })
}

/// Appends a Table. Of the Tables of a watch only the first has the definitions of the columns.
pub(super) fn table(
    body: &mut Vec<Arc<[u8]>>,
    items: &[&Item],
    namespace: &str,
    included: Included,
    metadata: &Value,
    with_columns: bool,
    now: Timestamp,
) {
    let column = |name: &str, format: &str, description: &str| json!({ "name": name, "type": "string", "format": format, "description": description, "priority": 0 });
    let columns = json!([
        column("Name", "name", "The name of the package."),
        column("Catalog", "", "The catalog that contains the package."),
        column("Age", "", "The age of the CatalogSource."),
    ]);
    let columns = if with_columns { columns } else { Value::Null };
    body.push(
        format!(
            r#"{{"kind":"Table","apiVersion":"{META}","metadata":{metadata},"columnDefinitions":{columns},"rows":["#
        )
        .into_bytes()
        .into(),
    );
    for (at, item) in items.iter().enumerate() {
        let created = Metadata::new(&item.head).created_at();
        let age = created.and_then(|created| std::time::Duration::try_from(now.duration_since(created)).ok());
        let age = age.map_or_else(|| "<unknown>".to_owned(), go_format::human_duration);
        let cells = json!([item.name, item.shown_catalog, age]);
        let comma = if at == 0 { "" } else { "," };
        body.push(format!(r#"{comma}{{"cells":{cells},"object":"#).into_bytes().into());
        match included {
            Included::Nothing => body.push(Arc::from(&b"null"[..])),
            Included::Metadata => object(body, item, namespace, Form::Metadata),
            Included::Object => object(body, item, namespace, Form::Object),
        }
        body.push(Arc::from(&b"}"[..]));
    }
    body.push(Arc::from(&b"]}"[..]));
}
