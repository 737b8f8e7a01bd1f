//! Selects the writes of a plan that are sent as dry runs, and classifies refusals.
//!
//! An API server evaluates each dry run on its own, with the permissions of the caller. A refusal that is due to other objects of the plan
//! that do not exist yet, or to the caller, is not a finding about the plan: such writes are not sent, or do not count as refused.

use super::dry_run::{Answer, Write};
use crate::api::object::{self, Gvk, ObjectRef};
use crate::api::status::Status;
use crate::world::{GroupKind, IndexKey, Reader, kind};

impl Write {
    /// Returns why a dry run would be meaningless, as a sentence without a full stop; `None` if it is meaningful. `serves` states whether
    /// the API server serves the kind, `None` if that is unknown; `knows_namespaces`, whether all Namespaces are in the World.
    pub fn hindrance(&self, world: &Reader<'_>, serves: Option<bool>, knows_namespaces: bool) -> Option<String> {
        let ObjectRef { gvk, namespace, name } = ObjectRef::from_object(&self.object);
        if serves == Some(false) {
            return Some("its kind is not served yet".to_owned());
        }
        if knows_namespaces && !namespace.is_empty() && world.json(&kind::NAMESPACE, "", &namespace).is_none() {
            return Some("its namespace does not exist yet".to_owned());
        }
        // Aggregated API servers need not support dry runs.
        if is_of_others(world, &gvk) {
            return Some("its API is not served by the API server itself, and may not support dry runs".to_owned());
        }
        let is_there = world.json(&GroupKind::new(&gvk.group, &gvk.kind), &namespace, &name).is_some();
        (self.exists && !is_there).then(|| "the object that it changes could not be read".to_owned())
    }
}

/// Reports whether the kind is served by an aggregated API server.
fn is_of_others(world: &Reader<'_>, gvk: &Gvk) -> bool {
    match world.json(&kind::API_SERVICE, "", &format!("{}.{}", gvk.version, gvk.group)) {
        Some(service) => !object::at(service, &["spec", "service"]).is_null(),
        None => {
            let defined = world.indexed(IndexKey::Definition(gvk.group.clone(), gvk.kind.clone()));
            !is_kubernetes(gvk) && defined.is_empty()
        }
    }
}

/// Reports whether the kind is built into Kubernetes.
fn is_kubernetes(gvk: &Gvk) -> bool {
    !gvk.group.contains('.') || gvk.group.ends_with(".k8s.io")
}

/// Reports whether a Role or binding was refused because the caller lacks the permissions that it grants. The controllers may grant any
/// permission.
pub fn lacks_grants(refusal: &Status) -> bool {
    refusal.is_forbidden() && refusal.message.contains("attempting to grant RBAC permissions not currently held")
}

impl From<Status> for Answer {
    /// Converts a refusal. Refusals that are due to the caller or to the request count as inconclusive.
    fn from(refusal: Status) -> Self {
        let not_sent = |why: &str| Self::NotSent(why.to_owned());
        match refusal.code {
            _ if lacks_grants(&refusal) => not_sent("not allowed to grant the permissions in it"),
            404 => not_sent("its namespace or its kind does not exist yet"),
            409 if refusal.is_already_exists() => not_sent("it already exists, and could not be read"),
            409 if refusal.is_conflict() => not_sent("it was changed in the meantime"),
            401 => Self::NotSent(refusal.message),
            400 if refusal.message.contains("does not support dry run") => Self::NotSent(refusal.message),
            _ => Self::Refused(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing;
    use crate::testing::world;

    fn object(api_version: &str, kind: &str) -> Value {
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "rose", "namespace": "garden" } })
    }

    fn garden() -> Value {
        testing::namespace("garden")
    }

    fn api_service(spec: &Value) -> Value {
        json!({ "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": { "name": "v1.example.com" }, "spec": spec })
    }

    #[track_caller]
    fn hindered(objects: &[Value], object: Value, exists: bool, serves: Option<bool>, knows: bool, by: &str) {
        let world = world(objects);
        let write = Write { object, exists, account: None };
        let why = write.hindrance(&Reader::new(&world), serves, knows).unwrap_or_default();
        assert!(if by.is_empty() { why.is_empty() } else { why.contains(by) }, "{why:?} instead of {by:?}");
    }

    #[test]
    fn objects_without_a_kind_or_namespace_are_not_sent() {
        let role = || object("rbac.authorization.k8s.io/v1", "Role");
        hindered(&[garden()], role(), false, Some(true), true, "");
        hindered(&[garden()], role(), false, None, true, "");
        hindered(&[garden()], role(), false, Some(false), true, "its kind is not served yet");
        hindered(&[], role(), false, Some(true), true, "its namespace does not exist yet");
        hindered(&[], role(), false, Some(true), false, "");
        let of_the_cluster =
            json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "high" } });
        hindered(&[], of_the_cluster, false, Some(true), true, "");
    }

    #[test]
    fn an_update_needs_the_existing_object() {
        let role = || object("rbac.authorization.k8s.io/v1", "Role");
        hindered(&[garden()], role(), true, Some(true), true, "could not be read");
        hindered(&[garden(), role()], role(), true, Some(true), true, "");
    }

    #[test]
    fn objects_of_aggregated_apis_are_not_sent() {
        let rose = || object("example.com/v1", "Rose");
        let others = "not served by the API server itself";
        hindered(&[garden()], rose(), false, Some(true), true, others);
        let crd = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "roses.example.com" },
            "spec": { "group": "example.com", "names": { "kind": "Rose" }, "versions": [{ "name": "v1", "served": true }] } });
        hindered(&[garden(), crd], rose(), false, Some(true), true, "");
        hindered(&[garden(), api_service(&json!({}))], rose(), false, Some(true), true, "");
        let away = api_service(&json!({ "service": { "name": "roses", "namespace": "garden" } }));
        hindered(&[garden(), away], rose(), false, Some(true), true, others);
        hindered(&[garden()], object("apps/v1", "Deployment"), false, Some(true), true, "");
    }

    #[test]
    fn refusals_that_are_due_to_the_caller_are_inconclusive() {
        let escalates = "user \"jane\" is attempting to grant RBAC permissions not currently held:\n{...}";
        for (code, reason, message, not_sent) in [
            (403, "Forbidden", escalates, Some("not allowed to grant the permissions in it")),
            (403, "Forbidden", "exceeded quota: few", None),
            (401, "Unauthorized", "Unauthorized", Some("Unauthorized")),
            (404, "NotFound", "namespaces \"garden\" not found", Some("its namespace or its kind does not exist yet")),
            (409, "AlreadyExists", "roles \"rose\" already exists", Some("it already exists, and could not be read")),
            (409, "Conflict", "the object has been modified", Some("it was changed in the meantime")),
            (409, "Gone", "something else", None),
            (
                400,
                "BadRequest",
                "admission webhook \"w\" does not support dry run",
                Some("admission webhook \"w\" does not support dry run"),
            ),
            (400, "BadRequest", "json: cannot unmarshal", None),
            (422, "Invalid", "spec.replicas: Invalid value", None),
            (0, "", "connection refused", None),
            (500, "InternalError", "failed calling webhook", None),
        ] {
            let refusal = Status::new(code, reason, message);
            let expected =
                not_sent.map_or_else(|| Answer::Refused(refusal.clone()), |why| Answer::NotSent(why.to_owned()));
            assert_eq!(Answer::from(refusal.clone()), expected, "{code} {message}");
            assert_eq!(lacks_grants(&refusal), message == escalates);
        }
    }
}
