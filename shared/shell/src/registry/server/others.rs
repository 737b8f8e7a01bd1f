//! The services in addition to `api.Registry`: blobs of other schemas, and health.

use olm_core::catalog::Snapshot;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as Message};
use serde_json::Value;
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::super::proto::ExperimentalListPackageCustomSchemasRequest;
use super::super::proto::experimental_registry_server::ExperimentalRegistry;
use super::service::{Answers, answers};

/// The health service, with the responses of opm: any service name is SERVING, Watch is not implemented.
pub(super) struct AlwaysServing;

#[tonic::async_trait]
impl Health for AlwaysServing {
    type WatchStream = Answers<HealthCheckResponse>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving.into() }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("Watch is not implemented, use Check"))
    }
}

/// `api.ExperimentalRegistry` (olm-behaviour/opm.md#registry-protocol).
pub(super) struct Experimental {
    pub(super) snapshots: watch::Receiver<Snapshot>,
}

#[tonic::async_trait]
impl ExperimentalRegistry for Experimental {
    type ExperimentalListPackageCustomSchemasStream = Answers<Struct>;

    async fn experimental_list_package_custom_schemas(
        &self,
        request: Request<ExperimentalListPackageCustomSchemasRequest>,
    ) -> Result<Response<Self::ExperimentalListPackageCustomSchemasStream>, Status> {
        let acknowledged = request.metadata().get("x-acknowledge-experimental").is_some_and(|v| v == "true");
        if !acknowledged {
            return Ok(answers(std::iter::empty()));
        }
        let ExperimentalListPackageCustomSchemasRequest { schema, package_name } = request.into_inner();
        if schema.is_empty() {
            return Err(Status::invalid_argument("schema is required"));
        }
        if !is_name(&schema) || !package_name.is_empty() && !is_name(&package_name) {
            return Err(Status::invalid_argument(
                "schema and packageName consist of letters, digits, '.', '_' and '-'",
            ));
        }
        let snapshot = self.snapshots.borrow().clone();
        let matches = |blob: &Value| {
            let text = |key| blob.get(key).and_then(Value::as_str).unwrap_or_default();
            text("schema") == schema && text("package") == package_name
        };
        let blobs = snapshot.others().iter().filter_map(|span| span.value().ok());
        let found: Vec<Struct> = blobs.filter(matches).filter_map(|blob| structure(&blob)).collect();
        Ok(answers(found.into_iter()))
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn structure(value: &Value) -> Option<Struct> {
    let fields = value.as_object()?.iter().map(|(key, value)| (key.clone(), message(value)));
    Some(Struct { fields: fields.collect() })
}

fn message(value: &Value) -> Message {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(*value),
        // The protocol has no integers.
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(values) => Kind::ListValue(ListValue { values: values.iter().map(message).collect() }),
        Value::Object(_) => Kind::StructValue(structure(value).unwrap_or_default()),
    };
    Message { kind: Some(kind) }
}
