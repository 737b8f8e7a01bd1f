//! Manifests that the user supplies to `operator run` instead of generated ones: OperatorGroup, Subscription and CatalogSource.

use std::path::PathBuf;

use olm_core::api::catalog_source::CatalogSource;
use olm_core::api::kinds;
use olm_core::api::object;
use olm_core::api::subscription::Subscription;
use serde_json::Value;

use crate::cli::{CliError, ErrorKind};
use crate::observe::files;

/// The supplied manifests.
#[derive(Clone, Debug, Default)]
pub(super) struct Supplied {
    pub(super) group: Option<Value>,
    pub(super) subscription: Option<Value>,
    pub(super) source: Option<Value>,
}

impl Supplied {
    /// Reads files and directories.
    ///
    /// # Errors
    /// A file cannot be read, or has an object of another kind, or a second one of a kind.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, CliError> {
        let mut supplied = Self::default();
        for given in files::read(paths)? {
            let (object, place) = (given.object, given.place);
            let slot = if kinds::OPERATOR_GROUP.is(&object) {
                &mut supplied.group
            } else if kinds::SUBSCRIPTION.is(&object) {
                &mut supplied.subscription
            } else if kinds::CATALOG_SOURCE.is(&object) {
                &mut supplied.source
            } else {
                let kind = object::kind(&object);
                let message = format!("{kind} {} is not used", object::name(&object));
                return Err(CliError::input(message)
                    .at(place)
                    .hint("--manifests accepts an OperatorGroup, a Subscription and a CatalogSource"));
            };
            if object::name(&object).is_empty() {
                return Err(CliError::input(format!("{} has no metadata.name", object::kind(&object))).at(place));
            }
            if slot.is_some() {
                return Err(CliError::input(format!("there are several objects of kind {}", object::kind(&object)))
                    .at(place)
                    .hint("supply one of each kind"));
            }
            *slot = Some(object);
        }
        Ok(supplied)
    }

    /// Checks that the manifests are about a bundle in a namespace, and adds the namespace.
    ///
    /// # Errors
    /// They are about another namespace, package, catalog or version, or have a catalog of their own.
    pub(super) fn bound_to(mut self, namespace: &str, package: &str, csv: &str) -> Result<Self, CliError> {
        let all = [&mut self.group, &mut self.subscription, &mut self.source].into_iter();
        for object in all.flatten() {
            let own = object::namespace(object).to_owned();
            if !own.is_empty() && own != namespace {
                return Err(refused(object, &format!("is in namespace {own}, not in {namespace}"))
                    .hint(format!("run the bundle in its namespace with -n {own}, or leave out metadata.namespace")));
            }
            object::map_mut(object, &["metadata"]).insert("namespace".to_owned(), namespace.into());
            // Only controllers write it.
            object::map_mut(object, &[]).remove("status");
        }
        if let Some(json) = &self.source {
            let source = CatalogSource::new(json);
            let has =
                ["address", "configMap"].into_iter().any(|field| !object::text(json, &["spec", field]).is_empty());
            if has || !source.image().is_empty() {
                return Err(refused(json, "has a catalog of its own in spec.image, spec.address or spec.configMap")
                    .hint("leave out these fields: the bundle becomes its content")
                    .hint("to install from that catalog: kubectl olm operator install PACKAGE --catalog NAME"));
            }
        }
        if let Some(json) = &self.subscription {
            let subscription = Subscription::new(json);
            let catalog = self.source.as_ref().map(object::name);
            let differs = |field: &str, has: &str, wanted: &str| {
                Err(refused(json, &format!("has {field} {has}, not {wanted}"))
                    .hint(format!("change {field}, or leave it out")))
            };
            let (of, starting) = (subscription.source_namespace(), subscription.starting_csv());
            if subscription.package() != package && !subscription.package().is_empty() {
                return differs("spec.name", subscription.package(), package);
            }
            if !of.is_empty() && of != namespace {
                return differs("spec.sourceNamespace", of, namespace);
            }
            if let Some(catalog) = catalog.filter(|_| !subscription.source().is_empty())
                && subscription.source() != catalog
            {
                return differs("spec.source", subscription.source(), catalog);
            }
            if !starting.is_empty() && starting != csv {
                return differs("spec.startingCSV", starting, csv);
            }
        }
        Ok(self)
    }

    /// Returns the name of the CatalogSource that the manifests state.
    pub(super) fn catalog(&self) -> Option<&str> {
        let of_subscription = || self.subscription.as_ref().map(|json| Subscription::new(json).source());
        self.source.as_ref().map(object::name).or_else(of_subscription).filter(|name| !name.is_empty())
    }

    /// Returns the channel that the Subscription states.
    pub(super) fn channel(&self) -> Option<&str> {
        let channel = self.subscription.as_ref().map(|json| Subscription::new(json).channel());
        channel.filter(|name| !name.is_empty())
    }
}

fn refused(object: &Value, why: &str) -> CliError {
    CliError::new(ErrorKind::Input, format!("the supplied {} {} {why}", object::kind(object), object::name(object)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(objects: &[Value]) -> Result<Supplied, CliError> {
        let folder = tempfile::tempdir().unwrap();
        let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
        std::fs::write(folder.path().join("olm.yaml"), text.join("\n---\n")).unwrap();
        Supplied::read(&[folder.path().to_owned()])
    }

    fn subscription(spec: Value) -> Value {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": { "name": "roses" }, "spec": spec,
        })
    }

    fn source(spec: Value) -> Value {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": { "name": "mine" }, "spec": spec,
        })
    }

    #[test]
    fn manifests_name_the_catalog_and_the_channel() {
        let supplied = read(&[subscription(json!({ "channel": "stable", "source": "theirs" }))]).unwrap();
        let supplied = supplied.bound_to("garden", "rose", "rose.v1.0.0").unwrap();
        assert_eq!((supplied.catalog(), supplied.channel()), (Some("theirs"), Some("stable")));
        assert_eq!(object::namespace(supplied.subscription.as_ref().unwrap()), "garden");
        assert_eq!(read(&[source(json!({}))]).unwrap().catalog(), Some("mine"));
        assert_eq!(Supplied::default().catalog(), None);
    }

    #[test]
    fn manifests_about_something_else_are_refused() {
        let config_map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        let unnamed = json!({ "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {} });
        let two = [source(json!({})), source(json!({}))];
        for (objects, words) in [
            (&[config_map][..], "ConfigMap a is not used"),
            (&[unnamed], "OperatorGroup has no metadata.name"),
            (&two, "several objects of kind CatalogSource"),
            (&[source(json!({ "image": "example.com/catalog" }))], "has a catalog of its own"),
            (&[source(json!({ "configMap": "a" }))], "has a catalog of its own"),
            (&[subscription(json!({ "name": "tulip" }))], "has spec.name tulip, not rose"),
            (&[subscription(json!({ "sourceNamespace": "olm" }))], "has spec.sourceNamespace olm, not garden"),
            (&[subscription(json!({ "startingCSV": "rose.v0" }))], "has spec.startingCSV rose.v0, not rose.v1.0.0"),
            (&[subscription(json!({ "source": "theirs" })), source(json!({}))], "has spec.source theirs, not mine"),
        ] {
            let bound = read(objects).and_then(|supplied| supplied.bound_to("garden", "rose", "rose.v1.0.0"));
            let error = bound.map(|_| ()).unwrap_err();
            assert!(error.message.contains(words), "{words}: {error}");
        }
    }
}
