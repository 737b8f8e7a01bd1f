//! The table of all problems of operators: stable codes, with the texts that `--explain` prints.

use crate::listing::wrapped;
use crate::plan::Severity;
use crate::visible::word;

/// A kind of problem.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// Stable code.
    pub code: &'static str,
    /// Stable name.
    pub name: &'static str,
    /// Whether a user has to act.
    pub severity: Severity,
    /// What it is, in one line without a full stop.
    pub summary: &'static str,
    /// The usual causes, in sentences.
    pub cause: &'static str,
    /// The message or state by which it is recognised.
    pub example: &'static str,
    /// How to fix it, in sentences.
    pub fix: &'static str,
    /// The command that fixes it or shows more about it. `NAMESPACE` and `NAME` stand for the object with the problem, `OPERATOR` for the
    /// Subscription or ClusterServiceVersion.
    pub command: &'static str,
}

impl Code {
    /// Returns the command for an object and an operator.
    pub(super) fn command(&self, namespace: &str, name: &str, operator: &str) -> String {
        let words = self.command.split(' ').map(|text| match text {
            "NAMESPACE" => word(namespace).into_owned(),
            "NAME" => word(name).into_owned(),
            "OPERATOR" => word(operator).into_owned(),
            text => text.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns the command that prints [`Self::explanation`].
    pub fn explain_command(&self) -> String {
        format!("kubectl olm operator describe --explain {}", self.code)
    }

    /// Returns the full description, as text.
    pub fn explanation(&self) -> String {
        let Self { code, name, severity, summary, cause, example, fix, command } = self;
        let severity = severity_word(*severity);
        let [cause, fix] = [(*cause).to_owned(), format!("Fix: {fix}")].map(|text| wrapped(&text, 100));
        format!(
            "{code} {name} ({severity})\n\n{summary}.\n\n{cause}\n\nExample:\n  {example}\n\n{fix}\n\nCommand:\n  {command}\n"
        )
    }
}

/// Returns the word for a severity: `blocked`, `waiting` or `notice`.
pub(super) fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocked => "blocked",
        Severity::Waiting => "waiting",
        Severity::Settled => "notice",
    }
}

/// Returns the code or name, ignoring case.
pub fn code(name: &str) -> Option<&'static Code> {
    CODES.iter().copied().find(|code| code.code.eq_ignore_ascii_case(name) || code.name.eq_ignore_ascii_case(name))
}

macro_rules! codes {
    ($($name:ident = $code:literal $title:literal $severity:ident {
        $summary:literal, $cause:literal, $example:literal, $fix:literal, $command:literal
    })*) => {
        $(pub(super) static $name: Code = Code {
            code: $code,
            name: $title,
            severity: Severity::$severity,
            summary: $summary,
            cause: $cause,
            example: $example,
            fix: $fix,
            command: $command,
        };)*

        /// All codes, in the order of the stages.
        pub static CODES: &[&Code] = &[$(&$name),*];
    };
}

codes! {
    NO_CONTROLLERS = "OP001" "no-controllers" Blocked {
        "No controllers of OLM are running",
        "Subscriptions, InstallPlans and ClusterServiceVersions are only processed while the controllers run: the Deployments olm-operator \
         and catalog-operator of OLM, or kubectl olm run.",
        "the Subscription has no status",
        "start the controllers: kubectl olm run serves the cluster from outside, kubectl olm install installs them.",
        "kubectl olm status"
    }
    NAMESPACE_TERMINATING = "OP002" "namespace-terminating" Blocked {
        "The namespace is being deleted",
        "The API server refuses to create objects in such a namespace, so nothing can be installed in it. If the deletion does not end, \
         objects with finalizers are left, or an aggregated API does not respond.",
        "namespace garden is being deleted, so nothing is created in it",
        "let the deletion end: the conditions of the namespace name what is left. Then create the namespace and the Subscription again.",
        "kubectl get namespace NAMESPACE -o yaml"
    }
    CATALOG_MISSING = "OP003" "catalog-missing" Blocked {
        "The CatalogSource of the Subscription does not exist",
        "spec.source or spec.sourceNamespace is misspelt, the CatalogSource was deleted, or it is in a namespace that is neither global nor \
         that of the Subscription. Installed operators keep running; they are not upgraded.",
        "no operators found from catalog market in namespace olm referenced by subscription rose",
        "correct spec.source and spec.sourceNamespace of the Subscription, or create the CatalogSource.",
        "kubectl get catalogsources -A"
    }
    CATALOG_INVALID = "OP004" "catalog-invalid" Blocked {
        "The CatalogSource is invalid",
        "spec.sourceType determines the other fields: grpc needs an image or an address, configmap needs a ConfigMap.",
        "image and address unset: at least one must be set for sourcetype: grpc",
        "correct the spec of the CatalogSource.",
        "kubectl -n NAMESPACE edit catalogsource NAME"
    }
    CATALOG_NOT_READY = "OP005" "catalog-not-ready" Waiting {
        "The catalog cannot be read",
        "The registry of the catalog does not respond: its pod is not ready, a NetworkPolicy or proxy blocks the port, or its address is \
         wrong. No Subscription of a namespace is resolved while a catalog that the namespace can use is unreadable.",
        "status.connectionState.lastObservedState: TRANSIENT_FAILURE",
        "check the pod and the Service of the catalog, or its address. A catalog that is not needed can be deleted.",
        "kubectl -n NAMESPACE describe catalogsource NAME"
    }
    CATALOG_POD = "OP006" "catalog-pod" Blocked {
        "The pod of the catalog cannot start",
        "The catalog image cannot be pulled (wrong name, missing pull secret, no access to the registry), or its program ends: a container \
         that runs without root may not write its cache.",
        "pod market-x7k2p: ImagePullBackOff: Back-off pulling image \"example.com/market:v1\"",
        "correct spec.image, add the pull secret to spec.secrets, or set spec.grpcPodConfig.securityContextConfig.",
        "kubectl -n NAMESPACE describe pod NAME"
    }
    PACKAGE_MISSING = "OP007" "package-missing" Blocked {
        "The catalog has no such package",
        "spec.name of the Subscription is misspelt, or the package is in another catalog.",
        "no operators found in package roze in the catalog referenced by subscription rose",
        "list the packages, and correct spec.name or spec.source of the Subscription.",
        "kubectl olm catalog list"
    }
    CHANNEL_MISSING = "OP008" "channel-missing" Blocked {
        "The package has no such channel",
        "spec.channel of the Subscription is misspelt, or the publisher removed the channel. The installed version keeps running.",
        "no operators found in channel stabel of package rose in the catalog referenced by subscription rose",
        "list the channels of the package, and correct spec.channel. Removing spec.channel selects the default channel.",
        "kubectl -n NAMESPACE edit subscription OPERATOR"
    }
    VERSION_MISSING = "OP009" "version-missing" Blocked {
        "The channel has no such version",
        "spec.startingCSV names a ClusterServiceVersion that is not in the channel.",
        "no operators found with name rose.v9.0.0 in channel stable of package rose in the catalog referenced by subscription rose",
        "correct spec.startingCSV (the Subscription has to be created again), or select the channel that contains it.",
        "kubectl -n NAMESPACE get subscription OPERATOR -o yaml"
    }
    DEPENDENCY_MISSING = "OP010" "dependency-missing" Blocked {
        "No catalog has an operator that is required",
        "The bundle requires a package or an API, and no catalog that the namespace can use contains a version of it that fits.",
        "bundle rose.v1.0.0 requires an operator with package: pot and with version in range: >=1.0.0",
        "add a catalog with the required operator, or select a version of the operator that does not require it.",
        "kubectl olm catalog list"
    }
    CONFLICTING_OPERATORS = "OP011" "conflicting-operators" Blocked {
        "Operators of the namespace exclude each other",
        "All Subscriptions of a namespace are resolved together. At most one version of a package and one provider of an API may be \
         installed, and a ClusterServiceVersion that no Subscription installed has to stay.",
        "main/olm/stable/rose.v2.0.0 and @existing/garden//rose.v1.1.0 originate from package rose",
        "change or delete one of the Subscriptions that the message names, or delete the ClusterServiceVersion without a Subscription. \
         Operators that conflict need different namespaces.",
        "kubectl olm operator list -n NAMESPACE"
    }
    RESOLUTION_FAILED = "OP012" "resolution-failed" Blocked {
        "The Subscriptions of the namespace cannot be resolved",
        "The constraints of the Subscriptions, of installed operators and of the candidates cannot be satisfied together, or a catalog \
         cannot be read. One Subscription that cannot be satisfied blocks all others of its namespace.",
        "constraints not satisfiable: subscription rose exists, …",
        "the message names the Subscriptions and versions: change one of them.",
        "kubectl -n NAMESPACE describe subscription OPERATOR"
    }
    BUNDLE_IMAGE = "OP013" "bundle-image" Blocked {
        "The image of the bundle cannot be pulled",
        "The image does not exist, the registry requires credentials that the CatalogSource does not name, or the cluster cannot reach the \
         registry (a mirror is missing).",
        "unpack job not completed: Unpack pod(olm/9b8c…) container(pull) is pending. Reason: ImagePullBackOff",
        "make the image available: add the pull secret to spec.secrets of the CatalogSource, mirror the image, or correct the catalog.",
        "kubectl -n NAMESPACE describe subscription OPERATOR"
    }
    UNPACK_DEADLINE = "OP014" "unpack-deadline" Blocked {
        "The bundle was not unpacked in time",
        "The Job that unpacks the bundle image did not end within ten minutes, usually because the image could not be pulled or the pod \
         was not scheduled. It is not always retried.",
        "bundle unpacking failed. Reason: DeadlineExceeded, and Message: Job was active longer than specified deadline",
        "fix the cause, then delete the failed Job and its ConfigMap in the namespace of the catalog. The annotation \
         operatorframework.io/bundle-unpack-min-retry-interval of the OperatorGroup enables retries.",
        "kubectl get jobs -A -l operatorframework.io/bundle-unpack-ref"
    }
    UNPACK_FAILED = "OP015" "unpack-failed" Blocked {
        "The bundle cannot be unpacked",
        "The Job that unpacks the bundle image failed, or the content of the image is not a valid bundle.",
        "bundle unpacking failed. Reason: BackoffLimitExceeded",
        "check the bundle image with kubectl olm bundle validate; the pods of the Job have its log.",
        "kubectl -n NAMESPACE describe subscription OPERATOR"
    }
    APPROVAL_NEEDED = "OP016" "approval-needed" Blocked {
        "An InstallPlan waits for approval",
        "spec.installPlanApproval of a Subscription of the namespace is Manual, so a user approves each installation and upgrade.",
        "status.phase: RequiresApproval",
        "review what the InstallPlan does, then approve it.",
        "kubectl olm install-plan approve NAME -n NAMESPACE"
    }
    PLAN_MISSING = "OP017" "install-plan-missing" Blocked {
        "The InstallPlan of the Subscription does not exist",
        "It was deleted before it was executed. OLM creates no other one while the Subscription refers to it and its catalog does not change.",
        "status.installPlanRef names an InstallPlan that does not exist",
        "delete the Subscription, and its ClusterServiceVersion if there is one, and create the Subscription again.",
        "kubectl -n NAMESPACE get installplans"
    }
    PLAN_FAILED = "OP018" "install-plan-failed" Blocked {
        "The InstallPlan failed",
        "A step was refused, or could not be executed within the time limit. A failed InstallPlan is not executed again.",
        "status.phase: Failed",
        "fix the cause that the message states, then delete the InstallPlan: OLM creates a new one.",
        "kubectl olm install-plan explain NAME -n NAMESPACE"
    }
    PLAN_RETRIES = "OP019" "install-plan-retries" Blocked {
        "A step of the InstallPlan fails and is retried",
        "The API server refuses a step. OLM retries it until the time limit, then the InstallPlan fails.",
        "retrying execution due to error: …",
        "fix the cause that the message states; the InstallPlan then continues.",
        "kubectl olm install-plan explain NAME -n NAMESPACE"
    }
    STORED_VERSION = "OP020" "stored-version" Blocked {
        "A new CustomResourceDefinition lacks a version in which objects are stored",
        "status.storedVersions of the CustomResourceDefinition lists a version that the new one removes. OLM refuses it, because the stored \
         objects could not be read.",
        "risk of data loss updating \"roses.garden.example.com\": new CRD removes version v1alpha1 that is listed as a stored version",
        "rewrite every object of the kind, then remove the old version from status.storedVersions.",
        "kubectl olm install-plan explain NAME -n NAMESPACE"
    }
    INVALID_RESOURCES = "OP021" "invalid-resources" Blocked {
        "Existing custom resources do not fit a new CustomResourceDefinition",
        "OLM validates the existing objects of a kind against the new schema before it updates the definition.",
        "error validating existing CRs against new CRD's schema for \"roses.garden.example.com\"",
        "correct or delete the objects that the message names.",
        "kubectl olm install-plan explain NAME -n NAMESPACE"
    }
    API_NOT_SERVED = "OP022" "api-not-served" Blocked {
        "The cluster does not serve a kind that the bundle contains",
        "The bundle contains an object of a kind whose CustomResourceDefinition is not installed, such as a ServiceMonitor without the \
         Prometheus operator, or of an API version that Kubernetes has removed.",
        "api-server resource not found installing PodMonitor",
        "install the component that provides the kind, or select a version of the operator for this version of Kubernetes.",
        "kubectl olm install-plan explain NAME -n NAMESPACE"
    }
    PERMISSIONS_MISSING = "OP023" "permissions-missing" Blocked {
        "A ServiceAccount lacks permissions",
        "With spec.serviceAccountName in the OperatorGroup, OLM installs operators with the permissions of that ServiceAccount. Otherwise a \
         Role or binding that the operator needs is missing or was changed.",
        "roles.rbac.authorization.k8s.io is forbidden: User \"system:serviceaccount:garden:installer\" cannot create …",
        "bind the ServiceAccount that the message names to a role with the permissions, or remove serviceAccountName.",
        "kubectl -n NAMESPACE get rolebindings,serviceaccounts"
    }
    NO_GROUP = "OP024" "no-operator-group" Blocked {
        "The namespace has no OperatorGroup",
        "An OperatorGroup selects the namespaces that the operators of its namespace watch. Without one nothing is installed.",
        "csv in namespace with no operatorgroups",
        "create an OperatorGroup with targets that the operator supports.",
        "kubectl olm operatorgroup create -n NAMESPACE"
    }
    SEVERAL_GROUPS = "OP025" "several-operator-groups" Blocked {
        "The namespace has several OperatorGroups",
        "OLM does not choose one: nothing is installed, and ClusterServiceVersions fail.",
        "csv created in namespace with multiple operatorgroups, can't pick one automatically",
        "delete all but one.",
        "kubectl olm operatorgroup lint -n NAMESPACE"
    }
    GROUP_INVALID = "OP026" "operator-group-invalid" Blocked {
        "The OperatorGroup is invalid or has no targets",
        "Its selector is invalid or matches no namespace, or its targets cannot be determined.",
        "no targetNamespaces are matched operatorgroups namespace selection",
        "correct spec.selector or spec.targetNamespaces, or add the labels to the namespaces.",
        "kubectl olm operatorgroup lint -n NAMESPACE"
    }
    ACCOUNT_MISSING = "OP027" "service-account-missing" Blocked {
        "The ServiceAccount of the OperatorGroup does not exist",
        "spec.serviceAccountName names a ServiceAccount that is not in the namespace of the OperatorGroup. Nothing is installed.",
        "ServiceAccount installer not found",
        "create the ServiceAccount, or correct spec.serviceAccountName.",
        "kubectl olm operatorgroup lint -n NAMESPACE"
    }
    UNSUPPORTED_MODE = "OP028" "unsupported-install-mode" Blocked {
        "The operator does not support the targets of the OperatorGroup",
        "spec.installModes of the ClusterServiceVersion states whether the operator can watch its own namespace, another one, several, or \
         all.",
        "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace",
        "change the targets of the OperatorGroup, or install the operator in a namespace of its own.",
        "kubectl olm operatorgroup lint -n NAMESPACE"
    }
    INTERSECTING_GROUPS = "OP029" "intersecting-operator-groups" Blocked {
        "Another OperatorGroup provides the same APIs in a common namespace",
        "Two operators would process the same objects. OLM fails the later one, and deletes its Deployments. A group with \
         staticProvidedAPIs refuses APIs that it does not list.",
        "intersecting operatorgroups provide the same APIs",
        "uninstall one of the operators, or change the targets of one OperatorGroup so that they have no namespace in common.",
        "kubectl olm operatorgroup intersect -n NAMESPACE"
    }
    REQUIRED_API_MISSING = "OP030" "required-api-missing" Blocked {
        "A CustomResourceDefinition or API that the operator needs is missing",
        "Its definition was deleted or does not serve the version, or the operator that provides a required API is not installed. \
         OLM resolves dependencies only for Subscriptions, not for ClusterServiceVersions that were created by hand.",
        "CustomResourceDefinition roses.garden.example.com: CRD is not present",
        "install the operator that provides the API. A definition of the operator itself is created again by a new InstallPlan.",
        "kubectl -n NAMESPACE describe clusterserviceversion NAME"
    }
    REQUIREMENTS_NOT_MET = "OP031" "requirements-not-met" Blocked {
        "Requirements of the ClusterServiceVersion are not met",
        "A ServiceAccount does not exist or belongs to another operator, or the cluster is older than spec.minKubeVersion.",
        "one or more requirements couldn't be found",
        "provide what the message names.",
        "kubectl -n NAMESPACE describe clusterserviceversion NAME"
    }
    APIS_UNKNOWN = "OP032" "apis-unknown" Blocked {
        "It is unknown whether APIs that the operator needs are served",
        "An aggregated API does not respond to discovery.",
        "it is not known whether the API server serves Rose (garden.example.com/v1)",
        "repair the APIService that is not available.",
        "kubectl get apiservices"
    }
    OWNER_CONFLICT = "OP033" "owner-conflict" Blocked {
        "Another operator of the namespace owns the same API",
        "Two ClusterServiceVersions of the namespace own a CustomResourceDefinition or APIService, and neither replaces the other.",
        "owner conflict",
        "uninstall one of the operators.",
        "kubectl olm operator list -n NAMESPACE"
    }
    NOT_UPGRADEABLE = "OP034" "not-upgradeable" Waiting {
        "The installed operator does not allow an upgrade",
        "The installed operator reports Upgradeable=False in its OperatorCondition, usually because a migration is in progress.",
        "operator is not upgradeable: The operator is not upgradeable: migration in progress",
        "wait until the operator reports that it is upgradeable. An override in spec.overrides of the OperatorCondition ignores it.",
        "kubectl -n NAMESPACE get operatorconditions -o yaml"
    }
    CSV_FAILED = "OP035" "csv-failed" Blocked {
        "The ClusterServiceVersion failed",
        "Its Deployments, APIs or webhooks could not be installed, or do not work any more.",
        "InstallCheckFailed: install timeout",
        "the message and the problems of Deployments and pods state the cause; OLM retries when it is fixed.",
        "kubectl -n NAMESPACE describe clusterserviceversion NAME"
    }
    OBJECT_MISSING = "OP036" "object-missing" Blocked {
        "An object that another one refers to does not exist",
        "The ClusterServiceVersion was deleted while its Subscription stayed: OLM does not install it again.",
        "Subscription garden/rose needs ClusterServiceVersion rose.v1.0.0, which does not exist",
        "delete the Subscription and create it again, or kubectl olm operator uninstall and install.",
        "kubectl olm operator uninstall OPERATOR -n NAMESPACE --dry-run"
    }
    PROGRESSING = "OP037" "progressing" Waiting {
        "An operation is in progress",
        "The controllers or Kubernetes are working on it; no action is required.",
        "installing: waiting for deployment rose-operator to become ready",
        "wait. If it takes longer than minutes, the following stages show what it waits for.",
        "kubectl olm operator wait OPERATOR -n NAMESPACE"
    }
    DEPLOYMENT_MISSING = "OP038" "deployment-missing" Blocked {
        "A Deployment of the operator does not exist",
        "It was deleted, or may not be created. OLM creates it again unless it lacks permissions or a quota is exceeded.",
        "installing: missing deployment with name=rose-operator",
        "check the state of the ClusterServiceVersion and whether the controllers run.",
        "kubectl -n NAMESPACE describe clusterserviceversion OPERATOR"
    }
    SCALED_TO_ZERO = "OP039" "scaled-to-zero" Blocked {
        "A Deployment of the operator is scaled to zero",
        "The bundle or a user set spec.replicas to 0. OLM corrects a change of its Deployments only when it checks them.",
        "spec.replicas: 0",
        "scale the Deployment, or correct it in the ClusterServiceVersion.",
        "kubectl -n NAMESPACE scale deployment NAME --replicas=1"
    }
    ROLLOUT_STUCK = "OP040" "rollout-stuck" Blocked {
        "The pods of a Deployment did not become available in time",
        "The pods do not start, or their readiness probes fail.",
        "ProgressDeadlineExceeded: ReplicaSet \"rose-5d8f\" has timed out progressing",
        "the pods state the cause.",
        "kubectl -n NAMESPACE describe deployment NAME"
    }
    QUOTA_EXCEEDED = "OP041" "quota-exceeded" Blocked {
        "A quota prevents the pods of the operator",
        "A ResourceQuota of the namespace is exceeded, or requires limits that the pods do not have.",
        "pods \"rose-5d8f-x7k2p\" is forbidden: exceeded quota: compute",
        "raise the quota, delete what uses it, or set resources in spec.config of the Subscription.",
        "kubectl -n NAMESPACE describe resourcequota"
    }
    POD_REFUSED = "OP042" "pod-refused" Blocked {
        "The API server refuses the pods of the operator",
        "Pod Security admission, an admission webhook or a missing ServiceAccount refuses them.",
        "pods \"rose-5d8f-x7k2p\" is forbidden: violates PodSecurity \"restricted:latest\"",
        "change the label pod-security.kubernetes.io/enforce of the namespace, or what else the message names.",
        "kubectl -n NAMESPACE describe deployment NAME"
    }
    UNSCHEDULABLE = "OP043" "unschedulable" Blocked {
        "No node accepts a pod of the operator",
        "Nodes lack CPU or memory, have taints that the pod does not tolerate, or its node selector matches none.",
        "Unschedulable: 0/3 nodes are available: 3 Insufficient memory",
        "add nodes, or set resources, nodeSelector or tolerations in spec.config of the Subscription.",
        "kubectl -n NAMESPACE describe pod NAME"
    }
    IMAGE_PULL = "OP044" "image-pull" Blocked {
        "An image of the operator cannot be pulled",
        "The image does not exist, the registry requires credentials that the ServiceAccount does not have, or the cluster cannot reach the \
         registry (a mirror is missing).",
        "ImagePullBackOff: Back-off pulling image \"example.com/rose:v1\"",
        "make the image available, or add imagePullSecrets to the ServiceAccount.",
        "kubectl -n NAMESPACE describe pod NAME"
    }
    CONTAINER_CONFIG = "OP045" "container-config" Blocked {
        "A container of the operator cannot be created",
        "A ConfigMap or Secret that it reads does not exist, its user is root where that is forbidden, or its command does not exist.",
        "CreateContainerConfigError: secret \"rose-credentials\" not found",
        "create what the message names, or correct spec.config of the Subscription.",
        "kubectl -n NAMESPACE describe pod NAME"
    }
    CRASH_LOOP = "OP046" "crash-loop" Blocked {
        "A container of the operator ends again and again",
        "The program fails: wrong configuration, missing permissions, an API that is not served, or too little memory (OOMKilled).",
        "CrashLoopBackOff: the container ended with exit code 1 (Error)",
        "the log states the cause. Set resources or environment variables in spec.config of the Subscription.",
        "kubectl -n NAMESPACE logs NAME --all-containers --previous"
    }
    NOT_READY = "OP047" "not-ready" Waiting {
        "A pod of the operator is not ready",
        "It is starting, or its readiness probe fails.",
        "container manager is not ready",
        "wait. If it lasts, the log and the Events of the pod state the cause.",
        "kubectl -n NAMESPACE describe pod NAME"
    }
    API_SERVICE_UNAVAILABLE = "OP048" "api-service-unavailable" Blocked {
        "An APIService of the operator is missing or not available",
        "The API server cannot reach the pods that serve the API, or does not trust their certificate. Requests for its kinds fail, and \
         namespaces cannot be deleted.",
        "FailedDiscoveryCheck: failing or missing response from https://10.0.0.1:443/apis/…",
        "repair the Deployment that serves it. If the operator is not used any more, delete the APIService.",
        "kubectl describe apiservice NAME"
    }
    WEBHOOK_MISSING = "OP049" "webhook-missing" Blocked {
        "A webhook of the operator is not configured",
        "The configuration was deleted, or its certificate could not be created. Objects are then neither validated, changed nor converted.",
        "webhooks not installed",
        "check the state of the ClusterServiceVersion: OLM creates the configuration again.",
        "kubectl -n NAMESPACE describe clusterserviceversion OPERATOR"
    }
    WEBHOOK_SERVICE = "OP050" "webhook-service-missing" Blocked {
        "The Service of a webhook does not exist",
        "It was deleted. With failurePolicy Fail, the API server refuses all requests that the webhook concerns.",
        "failed calling webhook \"vrose.kb.io\": service \"rose-operator-service\" not found",
        "OLM creates the Service again when it installs the ClusterServiceVersion. If the operator is not used any more, delete the \
         webhook configuration.",
        "kubectl -n NAMESPACE get services"
    }
    CA_MISMATCH = "OP051" "ca-mismatch" Blocked {
        "The API server trusts another certificate authority than that of the operator's certificate",
        "caBundle of the webhook, conversion or APIService differs from the Secret: one of them was changed or restored from a backup.",
        "x509: certificate signed by unknown authority",
        "delete the Secret: OLM issues a new certificate and updates every caBundle.",
        "kubectl -n NAMESPACE delete secret NAME"
    }
    CERTIFICATE_INVALID = "OP052" "certificate-invalid" Blocked {
        "The serving certificate of the operator is missing or invalid",
        "The Secret was deleted, or its content is not a certificate for the Service that was signed by the authority in it.",
        "Secret rose-operator-service-cert has no valid certificate",
        "delete the Secret if it exists: OLM issues a new certificate.",
        "kubectl -n NAMESPACE delete secret NAME --ignore-not-found"
    }
    CERTIFICATE_EXPIRED = "OP053" "certificate-expired" Blocked {
        "The serving certificate of the operator has expired",
        "OLM renews certificates a day before they expire; it did not run then, or could not write the Secret.",
        "x509: certificate has expired or is not yet valid",
        "start the controllers, or delete the Secret so that OLM issues a new certificate.",
        "kubectl -n NAMESPACE delete secret NAME"
    }
    OPTIONAL_MISSING = "OP054" "optional-missing" Settled {
        "Optional objects of the bundle were not created",
        "The bundle marks them as optional, and the API server refused them or does not serve their kind.",
        "InstallPlan garden/install-x is complete without optional PodMonitor rose",
        "nothing has to be done. Events of the InstallPlan state the causes.",
        "kubectl -n NAMESPACE describe installplan NAME"
    }
    DEPRECATED = "OP055" "deprecated" Settled {
        "The package, channel or version is deprecated",
        "The publisher of the catalog marks it as deprecated.",
        "olm.channel/stable is deprecated: use channel v2",
        "follow the message: select another channel, version or operator.",
        "kubectl -n NAMESPACE edit subscription OPERATOR"
    }
    INVALID_OBJECT = "OP056" "invalid-object" Blocked {
        "An object is invalid",
        "Its spec has values that OLM refuses or ignores; an InstallPlan that OLM has not created is not executed.",
        "InstallPlan garden/mine: it has no steps: OLM executes only InstallPlans that it has created itself",
        "correct the object that the message names.",
        "kubectl -n NAMESPACE describe subscription OPERATOR"
    }
    UNREADABLE = "OP057" "unreadable" Blocked {
        "An object exists but cannot be read",
        "Its content is not valid, or is larger than the limits of kubectl-olm.",
        "Subscription garden/rose cannot be read, so nothing is done that depends on it",
        "inspect the object, and correct or delete it.",
        "kubectl -n NAMESPACE get subscription OPERATOR -o yaml"
    }
    REFUSED = "OP058" "refused" Blocked {
        "The API server refuses an action of the controllers",
        "An admission webhook, a quota or missing permissions refuse it; it is retried.",
        "the API server refused to create Deployment/garden/rose (3×)",
        "fix the cause that the message states.",
        "kubectl olm operator list -n NAMESPACE -o wide"
    }
    INTERNAL = "OP059" "internal-error" Blocked {
        "A bug in kubectl-olm",
        "Planning failed for this operator; others are not affected.",
        "planning failed inside kubectl-olm",
        "please report it with the log of kubectl olm run.",
        "kubectl olm version"
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_sequential_and_complete() {
        let names: BTreeSet<&str> = CODES.iter().map(|code| code.name).collect();
        assert_eq!(names.len(), CODES.len());
        for (at, entry) in CODES.iter().enumerate() {
            assert_eq!(entry.code, format!("OP{:03}", at + 1), "{}", entry.name);
            assert_eq!(code(&entry.code.to_lowercase()), Some(*entry));
            assert_eq!(code(entry.name), Some(*entry));
            assert!(!entry.summary.ends_with('.') && entry.cause.ends_with('.') && entry.fix.ends_with('.'));
            assert!(entry.command.starts_with("kubectl "), "{}", entry.code);
        }
        assert_eq!(code("OP000"), None);
    }

    #[test]
    fn a_command_quotes_hostile_names() {
        let command = IMAGE_PULL.command("garden", "a; rm -rf /", "NAME");
        assert_eq!(command, "kubectl -n garden describe pod 'a; rm -rf /'");
        assert_eq!(CHANNEL_MISSING.command("garden", "", "NAME"), "kubectl -n garden edit subscription NAME");
    }
}
