//! What a plan wants done: whole objects and preconditions, nothing left to decide.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::certificate::{self, Certificate, Issued};
use crate::api::catalog_source::Target;
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::bundle::{BundleImage, Unpacking};
use crate::structural::SchemaCheck;

/// One request to the API server, or a question to the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// POST. When the object exists already, that is observed and planned for; it is never overwritten blindly.
    Create(Value),
    /// PUT. The object carries the uid and resourceVersion it was made from.
    Update(Value),
    /// PUT of the status subresource. The object carries the uid and resourceVersion it was made from.
    UpdateStatus(Value),
    /// JSON merge patch of metadata and spec of an object whose whole content is not known here.
    Patch {
        /// What to patch.
        target: ObjectRef,
        /// Precondition: the object's uid.
        uid: String,
        /// The merge patch. May carry `metadata.resourceVersion` as a precondition.
        patch: Value,
    },
    /// DELETE.
    Delete {
        /// What to delete.
        target: ObjectRef,
        /// Precondition: the object's uid.
        uid: String,
        /// What becomes of its dependents.
        propagation: Propagation,
    },
    /// A core Event about an object.
    Emit(Emit),
    /// Something the shell should find out. The answer arrives in the World as a fact.
    Ask(Question),
    /// A request that is made with the rights of a ServiceAccount, not with our own.
    As(Account, Box<Self>),
    /// A create or update of a Secret, into which a new certificate is put when it is executed.
    Certify(Certificate, Box<Self>),
}

/// A ServiceAccount whose rights are used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// What the API server calls it.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// What becomes of an object's dependents when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

/// A core Event: what OLM tells about an object (olm-behaviour/processes.md#events).
#[derive(Clone, Debug, PartialEq)]
pub struct Emit {
    /// The object it is about, whole or as a reference with apiVersion, kind and metadata, and perhaps the fieldPath of a part of it.
    pub regarding: Value,
    /// Is it a `Warning` (else `Normal`)?
    pub warning: bool,
    /// Reason, in CamelCase.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

/// The component that OLM's events name (olm-behaviour/processes.md#events).
const COMPONENT: &str = "operator-lifecycle-manager";

impl Emit {
    /// The core Event. Events about cluster-scoped objects are kept in namespace `default`, as Kubernetes does.
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

/// Something that only the shell can find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Keep the content of this target known as the catalog of this namespace and name.
    Connect {
        /// Namespace of the CatalogSource.
        namespace: String,
        /// Name of the CatalogSource.
        name: String,
        /// What to read.
        target: Target,
    },
    /// Look now whether the content of the catalog of this namespace and name has changed: whether an image's tag has moved.
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
    /// Keep known which kinds the API server serves in this version of a group, as long as a plan reads it. The first answer is there
    /// before the work that asks is done.
    Discover {
        /// The group; empty for the core group.
        group: String,
        /// The version.
        version: String,
    },
    /// Look whether the custom resources that exist fit schemas. It is answered before the work that asks is done.
    CheckSchema(SchemaCheck),
    /// Pull the image of a bundle and read the bundle in it.
    Unpack {
        /// The image.
        image: BundleImage,
        /// What is known while the attempt is under way.
        begun: Unpacking,
    },
    /// Forget the image of a bundle, and give up pulling it.
    Forget(BundleImage),
}

/// What kind of request an action is.
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
    /// The word for people: `create`, `update status of`, …
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
    /// The action with a certificate that was issued for it in its Secret. Nobody but the API server may see it.
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

    /// What kind of request it is.
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

    /// The object it is about. For a create by `generateName` the name is empty.
    pub fn target(&self) -> ObjectRef {
        match self {
            Self::Create(o) | Self::Update(o) | Self::UpdateStatus(o) => ObjectRef::of(o),
            Self::Patch { target, .. } | Self::Delete { target, .. } => target.clone(),
            Self::Emit(emit) => ObjectRef::of(&emit.regarding),
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
            // There is no object of it; what it is for is the next best thing.
            Self::Ask(Question::Unpack { image, .. } | Question::Forget(image)) => ObjectRef {
                gvk: kinds::CATALOG_SOURCE.gvk(),
                namespace: image.catalog_namespace.clone(),
                name: image.catalog.clone(),
            },
        }
    }

    /// Does it change the cluster (Events aside)?
    pub fn writes(&self) -> bool {
        match self {
            Self::Emit(_) | Self::Ask(_) => false,
            Self::As(_, action) | Self::Certify(_, action) => action.writes(),
            _ => true,
        }
    }

    /// The same with the rights of a ServiceAccount, if there is one to use.
    pub fn with_rights_of(self, account: Option<&Account>) -> Self {
        match account {
            Some(account) => Self::As(account.clone(), Box::new(self)),
            None => self,
        }
    }

    /// A merge patch that sets labels on an object.
    pub fn label(object: &Value, labels: Value) -> Self {
        Self::Patch {
            target: ObjectRef::of(object),
            uid: object::uid(object).to_owned(),
            patch: json!({ "metadata": { "labels": labels } }),
        }
    }

    /// The deletion of an object as it is known.
    pub fn delete(object: &Value, propagation: Propagation) -> Self {
        Self::Delete { target: ObjectRef::of(object), uid: object::uid(object).to_owned(), propagation }
    }
}
