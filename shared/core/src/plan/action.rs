//! Actions of a plan: complete objects with preconditions, which are executed without further decisions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::certificate::{self, Certificate, Issued};
use crate::api::catalog_source::Target;
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::bundle::{BundleImage, Unpacking};
use crate::structural::SchemaCheck;

/// A request to the API server, or a question to the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// POST. An object that already exists is not overwritten: the refusal is observed, and the key is planned again.
    Create(Value),
    /// PUT. The object contains the uid and resourceVersion that it was derived from.
    Update(Value),
    /// PUT of the status subresource. The object contains the uid and resourceVersion that it was derived from.
    UpdateStatus(Value),
    /// JSON merge patch of metadata and spec, for an object that is only partly known.
    Patch {
        /// The object.
        target: ObjectRef,
        /// Precondition: the object's uid.
        uid: String,
        /// The merge patch. It may contain `metadata.resourceVersion` as a precondition.
        patch: Value,
    },
    /// DELETE.
    Delete {
        /// The object.
        target: ObjectRef,
        /// Precondition: the object's uid.
        uid: String,
        /// How its dependents are handled.
        propagation: Propagation,
    },
    /// A core Event about an object.
    Emit(Emit),
    /// A request to the shell for an external fact, which arrives in the World.
    Ask(Question),
    /// A request with the permissions of a ServiceAccount instead of the controllers' own, by impersonation.
    As(Account, Box<Self>),
    /// Creation or update of a Secret; a new certificate is inserted when the action is executed.
    Certify(Certificate, Box<Self>),
}

/// A ServiceAccount whose permissions are used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// Returns its username at the API server.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// How the dependents of a deleted object are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after the object.
    Background,
    /// They are deleted before the object.
    Foreground,
    /// They are not deleted.
    Orphan,
}

/// A core Event that OLM emits about an object (olm-behaviour/processes.md#events).
#[derive(Clone, Debug, PartialEq)]
pub struct Emit {
    /// The object that the Event is about: complete, or a reference with apiVersion, kind and metadata, optionally with a fieldPath.
    pub regarding: Value,
    /// Whether the type is `Warning` instead of `Normal`.
    pub warning: bool,
    /// Reason, in CamelCase.
    pub reason: String,
    /// Message.
    pub message: String,
}

/// The source component of OLM's Events (olm-behaviour/processes.md#events).
const COMPONENT: &str = "operator-lifecycle-manager";

impl Emit {
    /// Returns the core Event. Events about cluster-scoped objects are created in namespace `default`, as Kubernetes does.
    pub fn to_event(&self, now: jiff::Timestamp) -> Value {
        let Self { regarding, warning, reason, message } = self;
        let namespace = match object::namespace(regarding) {
            "" => "default",
            namespace => namespace,
        };
        let time = object::time(now);
        let mut event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{}.{:x}", object::name(regarding), now.as_nanosecond()),
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": object::text(regarding, &["apiVersion"]),
                "kind": object::kind(regarding),
                "namespace": object::namespace(regarding),
                "name": object::name(regarding),
                "uid": object::uid(regarding),
                "resourceVersion": object::resource_version(regarding),
            },
            "type": if *warning { "Warning" } else { "Normal" },
            "reason": reason,
            "message": message,
            "source": { "component": COMPONENT },
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        });
        let part = object::text(regarding, &["fieldPath"]);
        if !part.is_empty() {
            event["involvedObject"]["fieldPath"] = part.into();
        }
        event
    }
}

/// A request for an external fact, which only the shell can obtain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Read this target as the catalog of this namespace and name, and keep its content up to date.
    Connect {
        /// Namespace of the CatalogSource.
        namespace: String,
        /// Name of the CatalogSource.
        name: String,
        /// The target to read.
        target: Target,
    },
    /// Check now whether the content of the catalog of this namespace and name has changed, for example because an image's tag has moved.
    Refresh {
        /// Namespace of the CatalogSource.
        namespace: String,
        /// Name of the CatalogSource.
        name: String,
    },
    /// Forget the catalog of this namespace and name.
    Disconnect {
        /// Namespace of the CatalogSource.
        namespace: String,
        /// Name of the CatalogSource.
        name: String,
    },
    /// Discover which kinds the API server serves in this version of a group, and keep the result up to date while a plan reads it. The
    /// first result is available before the work that contains the question is done.
    Discover {
        /// The group; empty for the core group.
        group: String,
        /// The version.
        version: String,
    },
    /// Validate existing custom resources against schemas. The result is available before the work that contains the question is done.
    CheckSchema(SchemaCheck),
    /// Pull the image of a bundle and read the bundle in it.
    Unpack {
        /// The image.
        image: BundleImage,
        /// The fact that is known while the attempt is in progress.
        begun: Unpacking,
    },
    /// Forget the image of a bundle, and stop pulling it.
    Forget(BundleImage),
}

/// The kind of request of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// POST
    Create,
    /// PUT
    Update,
    /// PUT of the status
    UpdateStatus,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
    /// POST of an Event
    Emit,
    /// Not a request to the API server
    Ask,
}

impl Verb {
    /// All verbs.
    const ALL: [Self; 7] =
        [Self::Create, Self::Update, Self::UpdateStatus, Self::Patch, Self::Delete, Self::Emit, Self::Ask];

    /// Returns the verb with this text, as in messages.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }

    /// Returns the verb for messages: `create`, `update status of`, …
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::UpdateStatus => "update status of",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Emit => "emit event about",
            Self::Ask => "ask for",
        }
    }
}

impl Action {
    /// Returns the action with an issued certificate in its Secret. The result contains the private key: only send it to the API server.
    pub fn with_certificate(&self, issued: Issued) -> Self {
        let mut action = self.clone();
        if let Self::Create(secret) | Self::Update(secret) = &mut action {
            object::set_annotation(
                secret,
                certificate::AUTHORITY_HASH,
                &certificate::authority_hash(&issued.authority),
            );
            let data = object::map_mut(secret, &["data"]);
            let entries = [
                (certificate::AUTHORITY, issued.authority),
                (certificate::CERTIFICATE, issued.certificate),
                (certificate::KEY, issued.key),
            ];
            for (key, pem) in entries {
                data.insert(key.to_owned(), Value::from(STANDARD.encode(pem)));
            }
        }
        action
    }

    /// Returns the kind of request.
    pub fn verb(&self) -> Verb {
        match self {
            Self::Create(_) => Verb::Create,
            Self::Update(_) => Verb::Update,
            Self::UpdateStatus(_) => Verb::UpdateStatus,
            Self::Patch { .. } => Verb::Patch,
            Self::Delete { .. } => Verb::Delete,
            Self::Emit(_) => Verb::Emit,
            Self::Ask(_) => Verb::Ask,
            Self::As(_, action) | Self::Certify(_, action) => action.verb(),
        }
    }

    /// Returns the object that the action is about. The name is empty for a create with `generateName`.
    pub fn target(&self) -> ObjectRef {
        match self {
            Self::Create(o) | Self::Update(o) | Self::UpdateStatus(o) => ObjectRef::from_object(o),
            Self::Patch { target, .. } | Self::Delete { target, .. } => target.clone(),
            Self::Emit(emit) => ObjectRef::from_object(&emit.regarding),
            Self::As(_, action) | Self::Certify(_, action) => action.target(),
            Self::Ask(Question::CheckSchema(fit)) => ObjectRef {
                gvk: kinds::CUSTOM_RESOURCE_DEFINITION.gvk(),
                namespace: String::new(),
                name: fit.crd.clone(),
            },
            Self::Ask(Question::Discover { group, version }) => ObjectRef {
                gvk: kinds::API_SERVICE.gvk(),
                namespace: String::new(),
                name: format!("{version}.{group}"),
            },
            Self::Ask(
                Question::Connect { namespace, name, .. }
                | Question::Refresh { namespace, name }
                | Question::Disconnect { namespace, name },
            ) => ObjectRef { gvk: kinds::CATALOG_SOURCE.gvk(), namespace: namespace.clone(), name: name.clone() },
            // The image of a bundle is no object of the cluster; its catalog represents it.
            Self::Ask(Question::Unpack { image, .. } | Question::Forget(image)) => ObjectRef {
                gvk: kinds::CATALOG_SOURCE.gvk(),
                namespace: image.catalog_namespace.clone(),
                name: image.catalog.clone(),
            },
        }
    }

    /// Reports whether the action changes the cluster. Events do not count.
    pub fn writes(&self) -> bool {
        match self {
            Self::Emit(_) | Self::Ask(_) => false,
            Self::As(_, action) | Self::Certify(_, action) => action.writes(),
            _ => true,
        }
    }

    /// Returns the action with the permissions of the ServiceAccount, if there is one.
    pub fn with_permissions_of(self, account: Option<&Account>) -> Self {
        match account {
            Some(account) => Self::As(account.clone(), Box::new(self)),
            None => self,
        }
    }

    /// Creates a merge patch that sets labels on an object.
    pub fn label(object: &Value, labels: Value) -> Self {
        Self::Patch {
            target: ObjectRef::from_object(object),
            uid: object::uid(object).to_owned(),
            patch: json!({ "metadata": { "labels": labels } }),
        }
    }

    /// Creates the deletion of an object, with its uid as the precondition.
    pub fn delete(object: &Value, propagation: Propagation) -> Self {
        Self::Delete { target: ObjectRef::from_object(object), uid: object::uid(object).to_owned(), propagation }
    }
}
