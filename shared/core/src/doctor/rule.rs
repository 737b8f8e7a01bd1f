//! The table of all rules, with the texts that `--explain` prints.

use crate::finding::Severity;
use crate::lint::Rule;
use crate::world::{GroupKind, kind};

/// The command that checks the rules of this table.
const DOCTOR: &str = "kubectl olm operator doctor";

macro_rules! rules {
    ($($ident:ident: $code:literal $name:literal $severity:ident $summary:literal, $why:literal, $example:literal, $fix:literal, [$($gk:ident)*];)*) => {
        $(pub(super) static $ident: Rule = Rule {
            code: $code,
            explained_by: DOCTOR,
            name: $name,
            severity: Severity::$severity,
            summary: $summary,
            why: $why,
            example: $example,
            fix: $fix,
            here: &[],
            everywhere: {
                const KINDS: &[GroupKind] = &[$(kind::$gk),*];
                KINDS
            },
            reads: &[],
        };)*

        /// All rules, by code.
        pub static RULES: [&Rule; 10] = [$(&$ident),*];
    };
}

rules! {
    STALE_API_SERVICE: "DR001" "stale-api-service" Error
        "An APIService does not respond",
        "The API server forwards the requests for its group to a Service. While that does not respond, or does not exist, discovery is \
         incomplete: every client is slow or fails, the garbage collector waits, and no namespace of the cluster can be deleted. The \
         APIService of OLM's package server, v1.packages.operators.coreos.com, often remains after OLM was deleted.",
        "kind: APIService\nmetadata: {name: v1.packages.operators.coreos.com}\nstatus: {conditions: [{type: Available, status: \"False\", reason: ServiceNotFound}]}",
        "repair the pods of its Service; if what served it was removed, delete the APIService.",
        [API_SERVICE SERVICE];

    STUCK_NAMESPACE: "DR002" "stuck-namespace" Error
        "A namespace is being deleted, and the deletion does not end",
        "Kubernetes deletes the content of a namespace first. An object with a finalizer that no controller removes, or an APIService that \
         does not respond, prevents that. Nothing can be created in the namespace meanwhile.",
        "kind: Namespace\nmetadata: {name: garden, deletionTimestamp: \"2026-01-01T10:00:00Z\"}\nstatus: {phase: Terminating}",
        "remove what blocks it: the message contains what the API server reports. Do not remove the finalizer of the namespace itself, \
         which leaves its content behind.",
        [NAMESPACE];

    UNOWNED_DEFINITION: "DR003" "unowned-definition" Info
        "No ClusterServiceVersion owns a CustomResourceDefinition that OLM has installed",
        "OLM retains the definitions of a removed operator, because their deletion deletes all custom resources. Nothing processes these any \
         more, and another operator with the same definition may be refused because it does not fit them.",
        "kind: CustomResourceDefinition\nmetadata: {name: roses.example.com, labels: {operators.coreos.com/rose.garden: \"\"}}",
        "install the operator again, or delete the definition if its custom resources are of no use.",
        [CUSTOM_RESOURCE_DEFINITION CLUSTER_SERVICE_VERSION SUBSCRIPTION];

    DANGLING_WEBHOOK: "DR004" "dangling-webhook" Error
        "An admission webhook calls a Service that does not exist, or belongs to an operator that does not exist",
        "With failurePolicy Fail, the API server refuses every request that the webhook concerns: objects can be neither created nor \
         changed, in the worst case of all kinds. With Ignore, each request waits for the failure.",
        "kind: ValidatingWebhookConfiguration\nmetadata: {name: vrose.example.com-x7k2p, labels: {olm.owner: rose.v1, \
         olm.owner.namespace: garden, olm.owner.kind: ClusterServiceVersion}}",
        "delete the configuration, unless the operator is to be installed again.",
        [VALIDATING_WEBHOOK_CONFIGURATION MUTATING_WEBHOOK_CONFIGURATION SERVICE CLUSTER_SERVICE_VERSION SUBSCRIPTION];

    DANGLING_CONVERSION: "DR005" "dangling-conversion" Error
        "A conversion webhook calls a Service that does not exist",
        "The API server cannot convert the custom resources between versions. They can be neither read, changed nor deleted in other \
         versions than the stored one; the deletion of their definition and of their namespaces does not end, and the garbage collector \
         and other clients that list all kinds fail.",
        "kind: CustomResourceDefinition\nmetadata: {name: roses.example.com}\nspec: {conversion: {strategy: Webhook, webhook: \
         {clientConfig: {service: {namespace: garden, name: rose-service}}}}}",
        "install the operator again; if it is not used any more, set the conversion to None. Then fields that only one version has are not \
         converted.",
        [CUSTOM_RESOURCE_DEFINITION SERVICE];

    STUCK_DELETION: "DR006" "stuck-deletion" Warning
        "The deletion of an object does not end",
        "The API server removes an object when its last finalizer is removed. The finalizer of ClusterServiceVersions is removed by OLM, \
         those of custom resources by their operator. If these do not run, or are already deleted, the deletion never ends, nor that of \
         the namespace.",
        "kind: ClusterServiceVersion\nmetadata: {name: rose.v1, namespace: garden, deletionTimestamp: \"2026-01-01T10:00:00Z\",\n  \
         finalizers: [operators.coreos.com/csv-cleanup]}",
        "run the controller that removes the finalizer. Without one for ClusterServiceVersions: kubectl olm run --release-finalizers.",
        [CLUSTER_SERVICE_VERSION SUBSCRIPTION CUSTOM_RESOURCE_DEFINITION];

    COSTLY_COPIES: "DR007" "costly-copies" Info
        "Copies of ClusterServiceVersions take much space",
        "OLM copies the ClusterServiceVersion of an operator to every namespace that it watches. Each copy has the whole content. They are \
         stored in etcd, and in the memory of the API servers and of every client that watches ClusterServiceVersions.",
        "10000 copies of a ClusterServiceVersion of 100 KiB: 976 MiB",
        "disable copies of operators that watch all namespaces, in OLMConfig cluster. Users then do not see these operators in their \
         namespaces; consoles and other clients have to read the original.",
        [CLUSTER_SERVICE_VERSION OLM_CONFIG];

    ORPHAN: "DR008" "orphan" Warning
        "A Subscription, a ClusterServiceVersion, or permissions belong to something that does not exist",
        "A Subscription whose installed ClusterServiceVersion was deleted does not install it again, and blocks the resolution of its \
         namespace. A ClusterServiceVersion without a Subscription is not updated. ClusterRoles and bindings of a deleted \
         ClusterServiceVersion grant permissions to a ServiceAccount, which another user may create again.",
        "kind: Subscription\nmetadata: {name: rose, namespace: garden}\nstatus: {installedCSV: rose.v1}   # and no ClusterServiceVersion rose.v1",
        "remove what is left of the operator, or install it again.",
        [SUBSCRIPTION CLUSTER_SERVICE_VERSION CLUSTER_ROLE CLUSTER_ROLE_BINDING];

    OLD_INSTALL_PLANS: "DR009" "old-install-plans" Warning
        "There are many old InstallPlans in a namespace",
        "OLM retains five InstallPlans of a namespace, and deletes older ones. If there are more, its garbage collection does not run or is \
         refused. Each contains all manifests of the installed versions, and lists of InstallPlans become slow.",
        "$ kubectl get installplans -n garden -o name | wc -l\n137",
        "run the controllers of OLM, and check that they have permission to delete InstallPlans.",
        [INSTALL_PLAN];

    COMPETING_CONTROLLERS: "DR010" "competing-controllers" Error
        "Several controllers of OLM process the same objects, or a Lease is held by a process that does not respond",
        "Two installations overwrite each other's results: InstallPlans are created twice, and phases alternate. A Lease whose holder does \
         not respond delays the start of the next kubectl olm run. A holder renews the Lease only when another process requests it, so \
         a Lease without a request is not judged.",
        "kind: Deployment\nmetadata: {name: olm-operator, namespace: olm}\n---\nkind: Deployment\nmetadata: {name: olm-operator, namespace: operators}",
        "remove all installations but one: kubectl olm status shows them. A Lease of a process that has ended is acquired by the next one \
         after a minute.",
        [DEPLOYMENT LEASE CLUSTER_SERVICE_VERSION];
}
