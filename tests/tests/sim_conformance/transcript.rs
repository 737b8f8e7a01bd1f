//! The requests and responses of a script, as text.

use std::fmt::Write;
use std::time::{Duration, Instant};

use olm_core::api::object::ObjectRef;
use olm_core::api::status::Status;
use olm_core::sim::{Patch, Preconditions, Propagation};
use serde_json::Value;

use crate::normalise::{Normaliser, refusal};
use crate::servers::Server;

/// A script: a sequence of requests, which may use previous responses.
pub(crate) type Script = fn(&mut Transcript<'_>);

/// The server of a script, and the transcript so far.
pub(crate) struct Transcript<'a> {
    server: &'a mut dyn Server,
    /// The namespace of the script.
    pub(crate) namespace: String,
    /// Records only the spec of objects, because their controller may write the rest at any time.
    pub(crate) only_spec: bool,
    normaliser: Normaliser,
    text: String,
}

impl Transcript<'_> {
    /// Returns the transcript of a script on this server.
    pub(crate) fn record(server: &mut dyn Server, name: &str, script: Script) -> String {
        let namespace = name.replace('_', "-");
        let made = server.create(serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        }));
        assert!(made.is_ok(), "{made:?}");
        let mut transcript =
            Transcript { server, namespace, only_spec: false, normaliser: Normaliser::default(), text: String::new() };
        script(&mut transcript);
        transcript.text
    }

    fn note(&mut self, what: &str, answer: &Result<Value, Status>) {
        match answer {
            Ok(object) => {
                let mut object = self.normaliser.object(object);
                if let (Value::Object(map), true) = (&mut object, self.only_spec) {
                    map.retain(|field, _| field == "spec");
                }
                writeln!(self.text, "# {what}\n{}", serde_yaml::to_string(&object).unwrap()).unwrap();
            }
            Err(Status { code, reason, message }) => {
                let message = refusal(&self.normaliser.text(message));
                writeln!(self.text, "# {what}\n{code} {reason}: {message}\n").unwrap();
            }
        }
    }

    /// Executes requests without recording them.
    pub(crate) fn silently(&mut self, something: impl FnOnce(&mut Self)) {
        let length = self.text.len();
        something(self);
        self.text.truncate(length);
    }

    pub(crate) fn create(&mut self, object: Value) -> Value {
        let what = format!("create {}", ObjectRef::from_object(&object));
        let answer = self.server.create(object);
        self.note(&what, &answer);
        answer.unwrap_or_default()
    }

    pub(crate) fn update(&mut self, object: Value, subresource: Option<&str>) -> Value {
        let what = format!("update {} {}", ObjectRef::from_object(&object), subresource.unwrap_or_default());
        let answer = self.server.update(object, subresource);
        self.note(what.trim_end(), &answer);
        answer.unwrap_or_default()
    }

    pub(crate) fn patch(&mut self, object: &Value, patch: Patch) -> Value {
        let what = format!("patch {}", ObjectRef::from_object(object));
        let answer = self.server.patch(&crate::servers::target(object), patch, None);
        self.note(&what, &answer);
        answer.unwrap_or_default()
    }

    pub(crate) fn apply(&mut self, object: Value, manager: &str, force: bool) -> Value {
        let what = format!("apply {} as {manager}", ObjectRef::from_object(&object));
        let target = crate::servers::target(&object);
        let answer = self.server.patch(&target, Patch::Apply { object, manager: manager.into(), force }, None);
        self.note(&what, &answer);
        answer.unwrap_or_default()
    }

    pub(crate) fn delete(&mut self, object: &Value, propagation: Propagation) {
        self.delete_if(object, Preconditions::default(), propagation);
    }

    pub(crate) fn delete_if(&mut self, object: &Value, preconditions: Preconditions, propagation: Propagation) {
        let what = format!("delete {}", ObjectRef::from_object(object));
        let answer = self.server.delete(&crate::servers::target(object), preconditions, propagation);
        self.note(&what, &answer.map(Option::unwrap_or_default));
    }

    pub(crate) fn get(&mut self, object: &Value) -> Value {
        let found = self.server.get(&crate::servers::target(object)).unwrap_or_default();
        self.note(&format!("get {}", ObjectRef::from_object(object)), &Ok(found.clone()));
        found
    }

    /// Creates and deletes an object as soon as its kind is served, which is some time after its definition is established.
    pub(crate) fn until_served(&mut self, object: &Value) {
        let target = crate::servers::target(object);
        let start = Instant::now();
        while let Err(refusal) = self.server.create(object.clone()) {
            assert!(start.elapsed() < Duration::from_secs(30), "not served: {refusal}");
        }
        let gone = self.server.delete(&target, Preconditions::default(), Propagation::Background);
        assert!(gone.is_ok(), "{gone:?}");
    }

    /// Waits until the condition holds for the object (null if absent), and records it.
    pub(crate) fn wait(&mut self, object: &Value, wanted: fn(&Value) -> bool) -> Value {
        let (found, how) = match self.server.wait(&crate::servers::target(object), wanted) {
            Ok(found) => (found, "wait"),
            Err(found) => (found, "wait in vain"),
        };
        self.note(&format!("{how} for {}", ObjectRef::from_object(object)), &Ok(found.clone()));
        found
    }
}
