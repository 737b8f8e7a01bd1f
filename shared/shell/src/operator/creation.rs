//! Creates objects, and names them as kubectl does.

use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use serde_json::Value;

use crate::cli::CliError;
pub(super) use crate::cli::output::qualified as label;
use crate::cluster::api::Api;
use crate::cluster::request_error::RequestError;

/// Creates an object. One that another client created in the meantime is used if it is a namespace.
pub(super) async fn send(api: &Api, object: &Value, is_dry_run: bool) -> Result<Value, CliError> {
    let answer = if is_dry_run { api.dry_run_create(object).await } else { api.create(object).await };
    match answer {
        Ok(stored) => Ok(stored),
        Err(refusal) if refusal.is_already_exists() && object::kind(object) == "Namespace" => Ok(object.clone()),
        Err(refusal) => {
            let ObjectRef { gvk, namespace, .. } = ObjectRef::from_object(object);
            let known = kinds::find(&gvk.group, &gvk.kind);
            let resource = known.map_or_else(|| gvk.kind.clone(), kinds::Kind::resource);
            Err(CliError::from(RequestError::new("create", resource, &namespace, refusal))
                .hint("the command continues where it ended when it is run again"))
        }
    }
}
