//! Discovery of a group version.

use std::collections::BTreeMap;

use super::api_server::ApiServer;
use super::store::Key;
use crate::api::object::{Gvk, at};
use crate::world::Discovery;

impl ApiServer {
    /// Marks the known kinds as incomplete: unknown kinds may be served, too.
    pub fn know_kinds_in_part(&mut self) {
        self.unstored.is_partial = true;
    }

    /// Returns whether all kinds are known, apart from group versions for which discovery fails.
    pub fn knows_all_kinds(&self) -> bool {
        !self.unstored.is_partial
    }

    /// Makes discovery of a group version fail with this error.
    pub fn hide_version(&mut self, group: &str, version: &str, error: &str) {
        self.unstored.hidden.insert((group.to_owned(), version.to_owned()), error.to_owned());
    }

    /// Returns the discovery result of a group version (GET `/apis/<group>/<version>`).
    pub fn discover(&self, group: &str, version: &str) -> Discovery {
        let stored = self.kinds().filter(|kind| kind.group == group);
        let served = stored.filter(|kind| kind.version(version).is_some_and(|version| version.served));
        let mut kinds: BTreeMap<String, Option<bool>> =
            served.map(|kind| (kind.kind.clone(), Some(kind.namespaced))).collect();
        for (of_group, of_version, scope, names) in UNSTORED {
            let is_known = match (self.unstored.is_listed, scope) {
                (false, _) => true,
                (true, None) => !kinds.is_empty(),
                (true, Some(_)) => false,
            };
            if (*of_group, *of_version) == (group, version) && is_known {
                for name in names.split(' ') {
                    kinds.entry(name.to_owned()).or_insert(*scope);
                }
            }
        }
        let api_version = Gvk::new(group, version, "").api_version();
        let error = match self.unstored.hidden.get(&(group.to_owned(), version.to_owned())) {
            Some(error) => Some(error.clone()),
            None if self.unstored.is_partial => Some(format!("the kinds of {api_version} are not all known")),
            None if kinds.is_empty() && self.is_aggregated(group, version) => {
                Some("the server is currently unable to handle the request".to_owned())
            }
            None => None,
        };
        let is_answer = error.is_none() || !kinds.is_empty() || self.unstored.is_partial;
        Discovery { kinds: is_answer.then_some(kinds), error }
    }

    /// Returns whether pods serve the group version. In a simulation such an API is never available.
    fn is_aggregated(&self, group: &str, version: &str) -> bool {
        let key = Key::new("apiregistration.k8s.io", "APIService", "", &format!("{version}.{group}"));
        self.store.get(&key).is_some_and(|service| !at(service, &["spec", "service"]).is_null())
    }
}

/// Kinds of Kubernetes 1.36 that the server does not store: group, version, whether their objects are namespaced, and names.
/// Kinds of which only a subresource is served have no scope.
const UNSTORED: &[(&str, &str, Option<bool>, &str)] = &[
    ("", "v1", Some(true), "Binding PodTemplate ReplicationController"),
    ("", "v1", Some(false), "ComponentStatus"),
    (
        "",
        "v1",
        None,
        "Eviction NodeProxyOptions PodAttachOptions PodExecOptions PodPortForwardOptions PodProxyOptions Scale ServiceProxyOptions TokenRequest",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        Some(false),
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
    ),
    ("apps", "v1", Some(true), "ControllerRevision"),
    ("apps", "v1", None, "Scale"),
    ("authentication.k8s.io", "v1", Some(false), "SelfSubjectReview TokenReview"),
    ("authorization.k8s.io", "v1", Some(true), "LocalSubjectAccessReview"),
    ("authorization.k8s.io", "v1", Some(false), "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"),
    ("certificates.k8s.io", "v1", Some(false), "CertificateSigningRequest"),
    ("events.k8s.io", "v1", Some(true), "Event"),
    ("flowcontrol.apiserver.k8s.io", "v1", Some(false), "FlowSchema PriorityLevelConfiguration"),
    ("networking.k8s.io", "v1", Some(false), "IPAddress ServiceCIDR"),
    ("resource.k8s.io", "v1", Some(true), "ResourceClaim ResourceClaimTemplate"),
    ("resource.k8s.io", "v1", Some(false), "DeviceClass ResourceSlice"),
    ("storage.k8s.io", "v1", Some(true), "CSIStorageCapacity"),
    ("storage.k8s.io", "v1", Some(false), "CSINode VolumeAttachment VolumeAttributesClass"),
];
