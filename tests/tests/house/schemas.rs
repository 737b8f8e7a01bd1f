//! The schemas that olm-core embeds: OLM's CustomResourceDefinitions, from its own types, and the types of Kubernetes' kinds
//! that its simulated API server knows, from k8s-openapi. Also that of PackageManifests.

use std::path::PathBuf;

use k8s_openapi::api::{
    admissionregistration, apps, autoscaling, batch, coordination, core, discovery, networking, node, policy, rbac,
    scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use olm_core::api::crd::generate::generate;
use olm_core::packages::schema;
use olm_tests::house::generated::Generated;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value};

pub(crate) fn files() -> Vec<Generated> {
    let crds: Vec<String> = generate().iter().map(Value::to_string).collect();
    let types: Vec<String> = types().iter().map(|(name, type_)| format!("{name:?}:{type_}")).collect();
    let file = |path: &str, text: String| Generated { file: PathBuf::from(path), text };
    // One line each: they are embedded as they are, and indentation would be most of their size.
    vec![
        file("shared/core/src/api/crd/crds.json", format!("[\n{}\n]\n", crds.join(",\n"))),
        file("shared/core/src/packages/serve/schema.json", format!("{}\n", schema::generate())),
        file("shared/core/src/sim/kubernetes.json", format!("{{\n{}\n}}\n", types.join(",\n"))),
    ]
}

/// Returns Kubernetes' types by name.
fn types() -> Map<String, Value> {
    let mut generator: SchemaGenerator = SchemaSettings::draft2020_12().into_generator();
    macro_rules! add {
        ($($type:ty,)+) => { $(generator.subschema_for::<$type>();)+ };
    }
    add! {
        core::v1::ConfigMap,
        core::v1::Endpoints,
        core::v1::Event,
        core::v1::LimitRange,
        core::v1::Namespace,
        core::v1::Node,
        core::v1::PersistentVolumeClaim,
        core::v1::PersistentVolume,
        core::v1::Pod,
        core::v1::ResourceQuota,
        core::v1::Secret,
        core::v1::ServiceAccount,
        core::v1::Service,
        admissionregistration::v1::MutatingWebhookConfiguration,
        admissionregistration::v1::ValidatingWebhookConfiguration,
        apiextensions::v1::CustomResourceDefinition,
        apiregistration::v1::APIService,
        apps::v1::DaemonSet,
        apps::v1::Deployment,
        apps::v1::ReplicaSet,
        apps::v1::StatefulSet,
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::CronJob,
        batch::v1::Job,
        coordination::v1::Lease,
        discovery::v1::EndpointSlice,
        networking::v1::IngressClass,
        networking::v1::Ingress,
        networking::v1::NetworkPolicy,
        node::v1::RuntimeClass,
        policy::v1::PodDisruptionBudget,
        rbac::v1::ClusterRoleBinding,
        rbac::v1::ClusterRole,
        rbac::v1::RoleBinding,
        rbac::v1::Role,
        scheduling::v1::PriorityClass,
        storage::v1::CSIDriver,
        storage::v1::StorageClass,
    }
    let mut types = generator.take_definitions(true);
    types.values_mut().for_each(drop_words);
    types
}

/// Removes the descriptions.
fn drop_words(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(drop_words);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_words),
        _ => {}
    }
}
