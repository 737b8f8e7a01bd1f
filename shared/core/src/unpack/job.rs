//! Bundles unpacked by Jobs, as in OLM (`--catalog-pods`; olm-behaviour/subscription.md#unpack-jobs,
//! olm-behaviour/subscription.md#unpacked-bundles).
//!
//! ```text
//!   CatalogSource <-- ConfigMap <-- Role, ServiceAccount, RoleBinding, Job     each owned by the previous one
//!                         '---- the Job's pod writes the bundle's files there
//! ```

use serde_json::{Value, json};

use super::{Images, PLAIN_DISABLED, Pending, State};
use crate::api::catalog_source::{CatalogSource, pull_policy};
use crate::api::conditions::{COMPLETE, Conditions, FAILED};
use crate::api::metadata::Metadata;
use crate::api::{labels, object};
use crate::bundle::{BundleContent, BundleImage, reference};
use crate::plan::{Action, Propagation};
use crate::settings::CatalogPods;
use crate::world::{GroupKind, Reader, kind};

/// The label of the Job and its pods.
const REFERENCE: &str = "operatorframework.io/bundle-unpack-ref";
/// Length to which the name is truncated when a random suffix is added.
const NAME_OF_RETRY: usize = 58;
/// Number of failed Jobs that are retained.
const FAILED_JOBS: usize = 5;

/// Returns what the Job of a bundle has unpacked; or the state, with the actions to take.
pub(super) fn content(
    images: &Images<'_, '_>,
    pods: &CatalogPods,
    bundle: &str,
    image: &BundleImage,
    source: &Value,
) -> Result<BundleContent, Box<Pending>> {
    let job = Job { images, pods, image, source, name: reference::config_map_name(&image.image) };
    let pending = |actions: Vec<Action>, state: State| {
        let (bundle, image) = (bundle.to_owned(), image.image.clone());
        Err(Box::new(Pending { bundle, image, state, actions, again: None }))
    };
    let Some(config_map) = images.world.json(&kind::CONFIG_MAP, &image.catalog_namespace, &job.name) else {
        return pending(vec![Action::Create(job.config_map())], State::Waits(None));
    };
    let actions = job.access(config_map);
    let (best, surplus) = job.jobs();
    let Some(best) = best else {
        let make = Action::Create(job.job(config_map, false));
        return pending(actions.into_iter().chain([make]).collect(), State::Waits(None));
    };
    let mut actions: Vec<Action> =
        actions.into_iter().chain(surplus.iter().map(|job| Action::delete(job, Propagation::Background))).collect();
    if let Some(failed) = Conditions::new(best).holding(FAILED) {
        let state = State::JobFailed(failed.reason().to_owned(), failed.message().to_owned());
        let since = failed.last_transition();
        let next = since.zip(images.timeouts.annotated_retry).and_then(|(since, retry)| since.checked_add(retry).ok());
        if next.is_some_and(|next| next <= images.now) {
            actions.push(Action::Create(job.job(config_map, true)));
        }
        return pending(actions, state).map_err(|mut pending| {
            pending.again = next.filter(|next| *next > images.now);
            pending
        });
    }
    if !object::covers(object::at(best, &["spec"]), &job.spec()) {
        actions.push(Action::delete(best, Propagation::Background));
        return pending(actions, State::Waits(None));
    }
    if !Conditions::new(best).is_true(COMPLETE) {
        return pending(actions, State::Waits(job.held_up(best)));
    }
    if !actions.is_empty() || object::at(config_map, &["binaryData"]).is_null() {
        return pending(actions, State::Waits(None));
    }
    match reference::content(config_map) {
        Ok(content) if content.is_plain && !images.settings.plain_bundles => {
            pending(actions, State::Failed("UnpackFailed", PLAIN_DISABLED.to_owned()))
        }
        Ok(content) => Ok(content),
        Err(message) => pending(actions, State::Failed("UnpackFailed", message)),
    }
}

/// Returns whether the reason is a pull failure.
fn is_pull(reason: &str) -> bool {
    matches!(reason, "ImagePullBackOff" | "ErrImagePull")
}

struct Job<'j, 'w, 'r> {
    images: &'j Images<'w, 'r>,
    pods: &'j CatalogPods,
    image: &'j BundleImage,
    source: &'j Value,
    name: String,
}

impl<'w> Job<'_, 'w, '_> {
    fn world(&self) -> &Reader<'w> {
        self.images.world
    }

    fn object(&self, api_version: &str, kind: &str, owner: &Value) -> Value {
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": self.name, "namespace": self.image.catalog_namespace, "labels": { labels::MANAGED: "true" },
                "ownerReferences": [{
                    "apiVersion": object::text(owner, &["apiVersion"]), "kind": object::kind(owner),
                    "name": object::name(owner), "uid": object::uid(owner),
                    "controller": false, "blockOwnerDeletion": false,
                }],
            },
        })
    }

    fn config_map(&self) -> Value {
        self.object("v1", "ConfigMap", self.source)
    }

    /// Returns the objects with which the Job's pod may write the ConfigMap, as far as they are missing.
    fn access(&self, config_map: &Value) -> Vec<Action> {
        let rbac = "rbac.authorization.k8s.io/v1";
        let mut role = self.object(rbac, "Role", config_map);
        role["rules"] = json!([{
            "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [self.name], "verbs": ["create", "get", "update"],
        }]);
        let account = self.object("v1", "ServiceAccount", config_map);
        let mut binding = self.object(rbac, "RoleBinding", config_map);
        binding["subjects"] =
            json!([{ "kind": "ServiceAccount", "name": self.name, "namespace": self.image.catalog_namespace }]);
        binding["roleRef"] = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self.name });
        let known = |kind: &GroupKind| self.world().json(kind, &self.image.catalog_namespace, &self.name);
        let mut actions = Vec::new();
        match known(&kind::ROLE) {
            None => actions.push(Action::Create(role)),
            Some(known) if !object::list(known, &["rules"]).contains(&role["rules"][0]) => {
                let mut restored = known.clone();
                let rules = object::list(known, &["rules"]).iter().chain([&role["rules"][0]]);
                restored["rules"] = rules.cloned().collect();
                actions.push(Action::Update(restored));
            }
            Some(_) => {}
        }
        if known(&kind::SERVICE_ACCOUNT).is_none() {
            actions.push(Action::Create(account));
        }
        match known(&kind::ROLE_BINDING) {
            None => actions.push(Action::Create(binding)),
            Some(known) if known["subjects"] != binding["subjects"] || known["roleRef"] != binding["roleRef"] => {
                actions.push(Action::delete(known, Propagation::Background));
                actions.push(Action::Create(binding));
            }
            Some(_) => {}
        }
        actions
    }

    /// Returns the current Job: the newest, preferably one that has not failed; and failed Jobs beyond the limit.
    fn jobs(&self) -> (Option<&'w Value>, Vec<&'w Value>) {
        let jobs = self.world().in_namespace(&kind::JOB, &self.image.catalog_namespace).map(|job| job.json());
        let mut jobs: Vec<&Value> = jobs
            .filter(|job| {
                let reference = object::label(job, REFERENCE);
                let is_ours =
                    reference == Some(self.name.as_str()) || reference.is_none() && object::name(job) == self.name;
                is_ours && !object::is_deleting(job)
            })
            .collect();
        let created = |job: &Value| Metadata::new(job).created().to_owned();
        jobs.sort_by_key(|job| (Conditions::new(job).is_true(FAILED), std::cmp::Reverse(created(job))));
        let best = jobs.first().copied();
        let mut failed: Vec<&Value> = jobs.into_iter().filter(|job| Conditions::new(job).is_true(FAILED)).collect();
        // The oldest failure is retained.
        failed.pop();
        (best, failed.split_off(failed.len().min(FAILED_JOBS - 1)))
    }

    fn job(&self, config_map: &Value, again: bool) -> Value {
        let mut job = self.object("batch/v1", "Job", config_map);
        let metadata = object::map_mut(&mut job, &["metadata"]);
        if again {
            metadata.remove("name");
            metadata.insert("generateName".to_owned(), self.name[..NAME_OF_RETRY].into());
        }
        metadata.insert("labels".to_owned(), self.labels());
        job["spec"] = self.spec();
        job
    }

    fn labels(&self) -> Value {
        json!({ labels::MANAGED: "true", REFERENCE: self.name })
    }

    fn spec(&self) -> Value {
        let (bundle, util) =
            (json!({ "name": "bundle", "mountPath": "/bundle" }), json!({ "name": "util", "mountPath": "/util" }));
        let container = |name: &str, image: &str, command: Value, mounts: &[&Value]| {
            json!({
                "name": name, "image": image, "command": command, "volumeMounts": mounts,
                "resources": { "requests": { "cpu": "10m", "memory": "50Mi" } },
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "readOnlyRootFilesystem": true,
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
            })
        };
        let (namespace, image) = (&self.image.catalog_namespace, &self.image.image);
        let extract =
            json!(["opm", "alpha", "bundle", "extract", "-m", "/bundle/", "-n", namespace, "-c", self.name, "-z"]);
        let mut extract = container("extract", &self.pods.opm_image, extract, &[&bundle]);
        extract["env"] = json!([{ "name": "CONTAINER_IMAGE", "value": image }]);
        let copy = json!(["/bin/cp", "-Rv", "/bin/cpb", "/util/cpb"]);
        let copy = container("util", &self.pods.util_image, copy, &[&util]);
        let mut pull = container("pull", image, json!(["/util/cpb", "/bundle"]), &[&bundle, &util]);
        pull["imagePullPolicy"] = pull_policy(image).into();
        let architecture = |value: &str| json!({ "key": "kubernetes.io/arch", "operator": "Equal", "value": value });
        let node = |what: &str| json!({ "key": format!("node.kubernetes.io/{what}"), "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 120 });
        let mut tolerations: Vec<Value> = ["amd64", "arm64", "ppc64le", "s390x"].map(architecture).into();
        tolerations
            .push(json!({ "key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule" }));
        tolerations.extend(["unreachable", "not-ready"].map(node));
        let mut security = json!({ "seccompProfile": { "type": "RuntimeDefault" } });
        if self.pods.set_workload_user_id {
            security["runAsUser"] = 1001.into();
            security["runAsNonRoot"] = true.into();
        }
        let mut pod = json!({
            "serviceAccountName": self.name, "restartPolicy": "Never", "securityContext": security,
            "nodeSelector": { "kubernetes.io/os": "linux" }, "tolerations": tolerations,
            "initContainers": [copy, pull], "containers": [extract],
            "volumes": [{ "name": "bundle", "emptyDir": {} }, { "name": "util", "emptyDir": {} }],
        });
        let secrets = CatalogSource::new(self.source).secrets();
        let secrets: Vec<Value> = secrets.map(|name| json!({ "name": name })).collect();
        if !secrets.is_empty() {
            pod["imagePullSecrets"] = secrets.into();
        }
        let mut spec = json!({
            "backoffLimit": 3, "ttlSecondsAfterFinished": 300,
            "template": { "metadata": { "name": self.name, "labels": self.labels() }, "spec": pod },
        });
        if let Some(deadline) = self.images.timeouts.deadline {
            spec["activeDeadlineSeconds"] = deadline.as_secs().into();
        }
        spec
    }

    /// Returns why the Job's pods do not start: the state of their first containers that are not ready.
    fn held_up(&self, job: &Value) -> Option<String> {
        let pods = self.world().in_namespace(&kind::POD, &self.image.catalog_namespace).map(|pod| pod.json());
        let pods = pods.filter(|pod| object::label(pod, "job-name") == Some(object::name(job)));
        let mut said = pods.filter(|pod| object::text(pod, &["status", "phase"]) == "Pending").flat_map(|pod| {
            let waiting = object::list(pod, &["status", "initContainerStatuses"]).iter();
            waiting.filter(|status| status["ready"] != true).filter_map(move |status| {
                let waiting = |field| object::text(status, &["state", "waiting", field]);
                is_pull(waiting("reason")).then(|| {
                    let (reason, message) = (waiting("reason"), waiting("message"));
                    format!("{reason} in pod {}/{}: {message}", object::namespace(pod), object::name(pod))
                })
            })
        });
        said.next()
    }
}
