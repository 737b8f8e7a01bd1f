//! Documents about OLM, operators and InstallPlans: version, status, operator list and install-plan.

use olm_core::explain::Explanation;
use olm_shell::installplan::policy::PolicyResult;
use serde_json::{Map, Value};

use super::groups::{Fix, UncheckedRules};
use super::shared::{Metadata, Reference, Severity};

forms! {
    /// The effects of an InstallPlan: install-plan explain.
    InstallPlanExplanation {
        #[schemars(flatten)] explanation: Explanation,
        /// The results of the policies given with --if.
        policies: Option<Vec<PolicyResult>>,
    }
    /// The states of InstallPlans: install-plan list.
    InstallPlanList {
        /// The InstallPlans, in the order of the table.
        items: Vec<InstallPlanState>,
    }
    /// The state of an InstallPlan.
    InstallPlanState {
        /// Metadata of the InstallPlan.
        metadata: Metadata,
        /// The generation of the plan in its namespace, from spec.generation.
        generation: Option<i64>,
        #[schemars(flatten)] standing: PlanSummary,
        /// The Subscriptions that it was created for.
        subscriptions: Vec<String>,
        /// Why it is not complete, as text.
        message: Option<String>,
        /// How a user can resolve it.
        hint: Option<String>,
        /// How many of its steps are done.
        steps: Steps,
    }
    /// The state of a plan, from its status.
    PlanSummary {
        /// The phase in its status; empty if it is not set.
        phase: String,
        /// How it is approved: Automatic or Manual.
        approval: String,
        /// Whether it is approved, from spec.approved.
        approved: bool,
        /// The ClusterServiceVersions that it installs, and those that they replace.
        csvs: Vec<Replacement>,
        /// The next step, or the failed one.
        step: Option<Step>,
        /// The newer plan of the namespace, if there is one.
        superseded_by: Option<String>,
        /// Whether it is left over from operators that were uninstalled; absent if not.
        left_over: Option<bool>,
        /// Why it is not complete: the field `reason` contains the code, the other fields depend on it.
        reason: Option<Map<String, Value>>,
        /// Fields of its spec that OLM ignores.
        ignored_edits: Option<Vec<String>>,
    }
    /// A ClusterServiceVersion that is installed, and the one that it replaces.
    Replacement {
        /// The replaced ClusterServiceVersion; absent for a new installation.
        from: Option<String>,
        /// The ClusterServiceVersion that is installed.
        to: String,
    }
    /// A step of an InstallPlan: an object that it creates or updates.
    Step {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// The status of the step, for example NotPresent, Present or Created.
        status: String,
        /// The ClusterServiceVersion that requires the object.
        resolving: String,
    }
    /// The number of completed steps.
    Steps {
        /// The number of completed steps.
        done: u64,
        /// The number of all steps.
        all: u64,
    }
    /// A change that install-plan wait reports, one per line.
    InstallPlanEvent {
        /// When the change was observed, in RFC 3339.
        time: String,
        /// Namespace of the InstallPlan.
        namespace: String,
        /// Name of the InstallPlan; absent as long as the Subscription has none.
        name: Option<String>,
        /// The Subscription, as long as it has no plan.
        subscription: Option<String>,
        /// The phase in the status of the InstallPlan.
        phase: Option<String>,
        /// How the InstallPlan is approved: Automatic or Manual.
        approval: Option<String>,
        /// Whether the InstallPlan is approved.
        approved: Option<bool>,
        /// The ClusterServiceVersions that it installs, and those that they replace.
        csvs: Option<Vec<Replacement>>,
        /// How many of its steps are done.
        steps: Option<Steps>,
        /// The next step, or the failed one.
        step: Option<Step>,
        /// The newer plan of the namespace, if there is one.
        superseded_by: Option<String>,
        /// Whether it is left over from operators that were uninstalled; absent if not.
        left_over: Option<bool>,
        /// Why it is not complete: the field `reason` contains the code, the other fields depend on it.
        reason: Option<Map<String, Value>>,
        /// Fields of its spec that OLM ignores.
        ignored_edits: Option<Vec<String>>,
        /// The state of the InstallPlan or the Subscription as a sentence.
        message: Option<String>,
        /// Whether the awaited state was reached.
        reached: Option<bool>,
        /// Whether this is the last event.
        r#final: Option<bool>,
        /// Whether the InstallPlan was deleted, which ends the wait.
        deleted: Option<bool>,
        /// Whether the time limit ended the wait.
        timed_out: Option<bool>,
    }
    /// The states of operators: operator list.
    OperatorList {
        /// The operators, in the order of the table.
        items: Vec<OperatorState>,
    }
    /// The state of an operator.
    OperatorState {
        /// Metadata of the Subscription, or of the ClusterServiceVersion if there is none.
        metadata: Metadata,
        /// Whether there is a Subscription; otherwise the operator is a ClusterServiceVersion alone.
        subscribed: bool,
        /// The package of the Subscription.
        package: Option<String>,
        /// The channel of the Subscription; absent for the default channel.
        channel: Option<String>,
        /// The catalog of the Subscription, NAMESPACE/NAME.
        catalog: Option<String>,
        /// How InstallPlans are approved: Automatic or Manual.
        approval: Option<String>,
        /// The ClusterServiceVersion that is installed.
        installed: Option<OperatorVersion>,
        /// The version that is being installed, or that waits for approval.
        next: Option<OperatorVersion>,
        /// The InstallPlan of the Subscription.
        install_plan: Option<String>,
        /// One of Healthy, Upgradable, Progressing and Blocked.
        health: String,
        /// Why it is not healthy: the field `reason` contains the code, the other fields depend on it.
        reason: Option<Map<String, Value>>,
        /// The reason as a sentence.
        message: Option<String>,
        /// How a user can resolve it.
        hint: Option<String>,
        /// The command that solves or shows the problem.
        command: Option<String>,
    }
    /// The return of an operator to an older version: operator rollback.
    OperatorRollback {
        /// The namespace of the operator.
        namespace: String,
        /// The name of the operator, as it was given.
        name: String,
        /// The package of its Subscription; empty if nothing was planned.
        package: String,
        /// The ClusterServiceVersion that is undone; empty if nothing was planned.
        from: String,
        /// The ClusterServiceVersion that is installed instead; with NothingToUndo the one that is installed or waits for approval.
        to: String,
        /// Whether nothing was changed, because of --dry-run.
        dry_run: bool,
        /// Planned (with --dry-run), RolledBack, NothingToUndo or Declined.
        result: String,
        /// The objects that this command has deleted, in this order.
        deleted: Vec<Reference>,
        /// What remains of the version that is undone, in sentences.
        not_undone: Vec<String>,
        /// The directory of the backup; null if there is none.
        backup: Option<String>,
    }
    /// The trouble of a cluster: operator doctor.
    ClusterCheckup {
        /// The numbers of objects that were checked.
        checked: CheckedObjects,
        /// The findings, without those in the baseline.
        findings: Vec<ClusterFinding>,
        /// The number of findings that the baseline excludes.
        in_baseline: u64,
        /// The rules that could be checked only in part.
        unchecked: Vec<UncheckedRules>,
    }
    /// The numbers of checked objects.
    CheckedObjects {
        /// The number of APIServices, including those of Kubernetes.
        api_services: u64,
        /// The number of CustomResourceDefinitions.
        custom_resource_definitions: u64,
        /// The number of ClusterServiceVersions that are not copies.
        cluster_service_versions: u64,
        /// The number of copies of ClusterServiceVersions in other namespaces.
        copied_cluster_service_versions: u64,
        /// The size of the copies in bytes, estimated by the size of their originals.
        copied_bytes: u64,
    }
    /// A problem of the cluster.
    ClusterFinding {
        /// Stable identifier of the rule, for filters and baselines.
        code: String,
        /// Name of the rule.
        rule: String,
        /// How serious it is.
        severity: Severity,
        /// The object with the problem; for several objects of a kind their CustomResourceDefinition or namespace.
        object: Reference,
        /// What is wrong, as a sentence without a full stop.
        message: String,
        /// The command that explains the rule.
        explain: String,
        /// Further objects that are involved.
        other_objects: Option<Vec<Reference>>,
        /// The smallest change that corrects it, or that shows more about it.
        fix: Option<Fix>,
        /// The file that contains the object, if it was read from a file.
        file: Option<String>,
        /// The line on which the object begins; 0 if unknown.
        line: Option<u64>,
    }
    /// The diagnosis of an operator: operator describe.
    OperatorDiagnosis {
        #[schemars(flatten)] operator: OperatorState,
        /// The stages from the Subscription to the certificates, in order. A stage with several objects occurs several times.
        stages: Vec<OperatorStage>,
        /// What is wrong, in the order of the stages.
        problems: Vec<OperatorProblem>,
        /// Whether a user has to act; the exit code is then 1.
        blocked: bool,
    }
    /// A stage of an operator.
    OperatorStage {
        /// Subscription, Catalog, Resolution, Unpack, InstallPlan, OperatorGroup, ClusterServiceVersion, Deployment, Pod, APIService,
        /// Webhook or Certificate.
        stage: String,
        /// Ok, Waiting, Failed, or Unknown if it could not be read.
        state: String,
        /// What was found, as a clause without a full stop.
        message: String,
        /// The object, if the stage is about a single one.
        object: Option<Reference>,
    }
    /// A problem of an operator.
    OperatorProblem {
        /// The stable code, which troubleshooting.md explains.
        code: String,
        /// The stable name of the code.
        name: String,
        /// blocked if a user has to act, waiting if it may end by itself, or notice.
        severity: String,
        /// The stage that has the problem.
        stage: String,
        /// The object that has the problem.
        object: Reference,
        /// What was found, as a clause without a full stop.
        message: String,
        /// The usual causes of problems of this code.
        cause: String,
        /// How to fix problems of this code.
        fix: String,
        /// A next step for exactly this case.
        hint: Option<String>,
        /// The command that fixes it or shows more about it.
        command: String,
        /// The command that explains the code.
        explain: String,
    }
    /// A ClusterServiceVersion of an operator.
    OperatorVersion {
        /// Name of the ClusterServiceVersion.
        csv: String,
        /// The version in its spec.
        version: Option<String>,
        /// The phase in its status.
        phase: Option<String>,
    }
    /// The state of OLM itself, of catalogs and of operators: status.
    OLMStatus {
        /// What is installed: one installation, and a stopped one after a take-over, unless something is wrong.
        installations: Vec<Installation>,
        /// Held Leases of kubectl olm run.
        leases: Vec<OLMLease>,
        /// The objects of OLM.
        objects: Vec<OLMObject>,
        /// The CatalogSources of all namespaces.
        catalogs: Vec<OLMObject>,
        /// The operators, as operator list prints them.
        operators: Vec<OperatorState>,
    }
    /// An installation of OLM.
    Installation {
        /// Which OLM it is: kubectl-olm or upstream.
        distribution: String,
        /// The version; absent if the objects do not state it.
        version: Option<String>,
        /// Namespace of the controllers.
        namespace: String,
        /// The names of the Deployments.
        controllers: Vec<String>,
        /// Whether all of its Deployments are scaled to zero, as after a take-over; absent if not.
        stopped: Option<bool>,
    }
    /// A held Lease of kubectl olm run.
    OLMLease {
        /// Namespace of the Lease.
        namespace: String,
        /// The process that holds the Lease: host, process id, and a number.
        holder_identity: String,
    }
    /// An object of OLM or a CatalogSource, and its state.
    OLMObject {
        /// Group and version of the object.
        api_version: String,
        /// Kind of the object.
        kind: String,
        /// Namespace of the object; absent if it is cluster-scoped.
        namespace: Option<String>,
        /// Name of the object.
        name: String,
        /// One of Present, Absent, Changed (it differs from the manifest), Unhealthy and Deleting.
        state: String,
        /// Why it is in that state, if the state needs an explanation.
        message: Option<String>,
    }
    /// The versions of the client and the server: version.
    Version {
        /// The version of this program.
        client_version: Client,
        /// What the server runs; absent with --client.
        server_version: Option<Server>,
    }
    /// The version of this program.
    Client {
        /// Version of kubectl-olm, `v0.1.0`.
        version: String,
        /// The release of OLM whose behaviour it implements.
        olm_version: String,
        /// Operating system and architecture in Go's notation, `linux/amd64`.
        platform: String,
    }
    /// What the server runs.
    Server {
        /// Version of the API server.
        kubernetes_version: String,
        /// Served versions of OLM's API group.
        api_versions: Vec<String>,
        /// Deployments of controllers, of kubectl-olm and of upstream OLM; absent without permission to list them.
        controllers: Option<Vec<Controller>>,
        /// Held Leases of kubectl olm run; absent without permission to list them.
        leases: Option<Vec<HeldLease>>,
    }
    /// A Deployment of controllers.
    Controller {
        /// Namespace of the Deployment.
        namespace: String,
        /// Name of the Deployment.
        name: String,
        /// Image of its first container.
        image: String,
        /// Whether the Deployment is scaled to zero, so that it does not run; absent if not.
        stopped: Option<bool>,
    }
    /// A held Lease of kubectl olm run.
    HeldLease {
        /// Namespace of the Lease.
        namespace: String,
        /// Name of the Lease.
        name: String,
        /// The process that holds the Lease: host, process id, and a number.
        holder_identity: String,
        /// When the process acquired the Lease, in RFC 3339.
        acquire_time: Option<String>,
    }
    /// Upgrades of operators: operator upgrade.
    OperatorUpgrade {
        /// The operators, in the order in which they were upgraded.
        operators: Vec<UpgradedOperator>,
    }
    /// The upgrade of an operator.
    UpgradedOperator {
        /// Namespace of the Subscription.
        namespace: String,
        /// Name of the Subscription.
        name: String,
        /// The version that was installed.
        from: String,
        /// The versions on the path, without the first.
        path: Vec<String>,
        /// The versions that were reached.
        reached: Vec<String>,
        /// One of UpToDate, Upgraded, Planned (a dry run, or --path), Declined and Blocked.
        result: String,
        /// Why it is blocked.
        message: Option<String>,
        /// How a user can resolve it.
        hints: Option<Vec<String>>,
    }
    /// The removal of what operator run has created: operator cleanup.
    OperatorCleanup {
        /// Namespace of the operators.
        namespace: String,
        /// Whether nothing was changed.
        dry_run: bool,
        /// What was created, by CatalogSource.
        catalogs: Vec<CatalogCleanup>,
    }
    /// The removal of what was created for one bundle.
    CatalogCleanup {
        /// Name of the CatalogSource.
        catalog: String,
        /// The package of the bundle; empty if it is unknown.
        package: String,
        /// The removals of its operators.
        removals: Vec<OperatorRemoval>,
        /// The other objects that the command deleted or, with --dry-run, would delete.
        deleted: Vec<Reference>,
        /// One of CleanedUp, Planned (a dry run), Declined, Incomplete (something is left, and so is the catalog) and Failed.
        result: String,
        /// Why it failed, as a sentence.
        message: Option<String>,
        /// How a user can resolve it.
        hints: Option<Vec<String>>,
    }
    /// The removal of an operator: operator uninstall.
    OperatorRemoval {
        /// Namespace of the operator.
        namespace: String,
        /// Name of the Subscription, or of the ClusterServiceVersion if there is none.
        name: String,
        /// The package; empty if it is unknown.
        package: String,
        /// Whether nothing was changed.
        dry_run: bool,
        /// The objects that the command itself deleted or, with --dry-run, would delete.
        deleted: Vec<Reference>,
        /// The CustomResourceDefinitions that are retained.
        retained_definitions: Vec<RetainedDefinition>,
        /// The ClusterRoles and ClusterRoleBindings of the bundles' manifests that are retained.
        retained_permissions: Vec<RetainedPermission>,
        /// CustomResourceDefinitions whose conversion webhook was removed.
        conversions_set_to_none: Vec<String>,
        /// The ClusterServiceVersions that require its APIs.
        dependents: Vec<String>,
        /// The Subscriptions for its dependencies, which are retained and which nothing else requires.
        dependencies: Vec<String>,
        /// The directory of the backup.
        backup: Option<String>,
        /// What still exists of it.
        left: Vec<String>,
    }
    /// A CustomResourceDefinition that is retained.
    RetainedDefinition {
        /// Name of the CustomResourceDefinition.
        name: String,
        /// Why it is retained.
        reason: String,
        /// The number of its objects that are retained; null if they cannot be read.
        objects: Option<u64>,
    }
    /// A ClusterRole or ClusterRoleBinding that is retained.
    RetainedPermission {
        /// Kind: ClusterRole or ClusterRoleBinding.
        kind: String,
        /// Name of the object in the cluster.
        name: String,
        /// Why it is retained.
        reason: String,
    }
    /// The end of a wait: operator wait.
    OperatorWait {
        /// Namespace of the operator.
        namespace: String,
        /// Name of the operator.
        name: String,
        /// The condition, which is true.
        condition: String,
        /// The operator; null if it does not exist.
        operator: Option<OperatorState>,
    }
    /// Operators that can be upgraded: operator outdated.
    OutdatedOperators {
        /// The operators, in the order of the table.
        items: Vec<OutdatedOperator>,
    }
    /// An operator that can be upgraded.
    OutdatedOperator {
        /// Metadata of the Subscription.
        metadata: Metadata,
        /// The package of the Subscription.
        package: String,
        /// The channel of the Subscription; empty for the default channel.
        channel: String,
        /// The catalog of the Subscription, NAMESPACE/NAME.
        catalog: String,
        /// The version that is installed.
        installed: String,
        /// The version after the next InstallPlan.
        next: String,
        /// The last version of the path.
        latest: String,
        /// The versions after each InstallPlan.
        path: Vec<String>,
        /// Whether the next InstallPlan is safe: yes, no, review (its effects need a decision) or unknown.
        safe: String,
        /// Why it is not safe.
        reasons: Vec<String>,
    }
}
