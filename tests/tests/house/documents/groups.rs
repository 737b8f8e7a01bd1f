//! Documents about OperatorGroups.

use serde_json::{Map, Value};

use super::shared::{Reference, Severity};

forms! {
    /// The findings about OperatorGroups: operatorgroup lint.
    OperatorGroupLint {
        /// The number of checked OperatorGroups.
        operator_groups: u64,
        /// The findings, without those in the baseline.
        findings: Vec<GroupFinding>,
        /// The number of findings that the baseline excludes.
        in_baseline: u64,
        /// The rules that could be checked only in part.
        unchecked: Vec<UncheckedRules>,
        /// The findings that --fix corrected, with the command that does the same.
        fixed: Option<Vec<GroupFinding>>,
        /// The packages given with --package, and which of their versions fit the OperatorGroups.
        packages: Option<Vec<PackageMatrix>>,
    }
    /// Rules that could be checked only in part, because data is missing.
    UncheckedRules {
        /// The codes of the rules.
        codes: Vec<String>,
        /// What could not be read, and why.
        reason: String,
    }
    /// A problem of an OperatorGroup or of an object that depends on it.
    GroupFinding {
        /// Stable identifier of the rule, for filters and baselines.
        code: String,
        /// Name of the rule, which --select and --ignore accept as well.
        rule: String,
        /// How serious it is.
        severity: Severity,
        /// The object with the problem.
        object: Reference,
        /// What is wrong, as a sentence without a full stop.
        message: String,
        /// The command that explains the rule.
        explain: String,
        /// Further objects that are involved.
        other_objects: Option<Vec<Reference>>,
        /// The smallest change that corrects it; absent if there is none.
        fix: Option<Fix>,
        /// The file that contains the object, if it was read from a file.
        file: Option<String>,
        /// The line on which the object begins; 0 if unknown.
        line: Option<u64>,
        /// The command that has the effect of the applied fix.
        command: Option<String>,
    }
    /// A change that corrects a problem.
    Fix {
        /// What to change, as a sentence without a full stop.
        description: String,
        /// Whether it removes nothing that a user may need; operatorgroup lint --fix applies such fixes.
        safe: bool,
        /// A shell command that applies it.
        command: Option<String>,
        /// The merge patch of the object, if the fix changes one.
        patch: Option<Map<String, Value>>,
        /// The objects to apply, if the fix creates some.
        objects: Option<Vec<Map<String, Value>>>,
    }
    /// The versions of a package, and the OperatorGroups whose targets they support.
    PackageMatrix {
        /// The catalog that contains the package.
        catalog: String,
        /// Name of the package.
        package: String,
        /// The OperatorGroups that were checked.
        groups: Vec<MatrixGroup>,
        /// The versions of the package, newest first.
        versions: Vec<MatrixVersion>,
    }
    /// An OperatorGroup and its targets.
    MatrixGroup {
        /// Namespace of the OperatorGroup.
        namespace: String,
        /// Name of the OperatorGroup.
        name: String,
        /// Its targets, in words: the namespaces, or all namespaces.
        targets: String,
    }
    /// A version of a package, and the OperatorGroups that it fits.
    MatrixVersion {
        /// Name of the bundle.
        name: String,
        /// Version of the bundle.
        version: String,
        /// The channels that contain the bundle.
        channels: Vec<String>,
        /// The result for each of the OperatorGroups, in their order.
        groups: Vec<MatrixFit>,
        /// The kinds of targets that this version supports, in words.
        supported_targets: Vec<String>,
    }
    /// Whether a version supports the targets of an OperatorGroup.
    MatrixFit {
        /// The OperatorGroup as NAMESPACE/NAME.
        group: String,
        /// Whether it fits; null if the install modes of the version are unknown.
        fits: Option<bool>,
        /// Why it does not fit, or why that is unknown.
        message: Option<String>,
    }
    /// The intersections of OperatorGroups: operatorgroup intersect.
    OperatorGroupIntersections {
        /// The OperatorGroups that were requested, and those that intersect with them.
        groups: Vec<IntersectingGroup>,
        /// The pairs of OperatorGroups that have common namespaces.
        intersections: Vec<Intersection>,
        /// The number of intersections with conflicting APIs.
        conflicts: u64,
    }
    /// An OperatorGroup, its targets and its members.
    IntersectingGroup {
        /// Namespace of the OperatorGroup.
        namespace: String,
        /// Name of the OperatorGroup.
        name: String,
        /// When it was created, in RFC 3339; null if it does not exist yet.
        created: Option<String>,
        /// Whether it targets all namespaces.
        global: bool,
        /// The namespaces; null means all.
        target_namespaces: Option<Vec<String>>,
        /// Whether OLM must not change its provided APIs, from spec.staticProvidedAPIs.
        r#static: bool,
        /// The APIs in its annotation olm.providedAPIs, each as Kind.version.group.
        #[schemars(rename = "providedAPIs")] provided_apis: Vec<String>,
        /// The ClusterServiceVersions of the OperatorGroup, and what OLM does about their APIs.
        members: Vec<GroupMember>,
    }
    /// A ClusterServiceVersion of an OperatorGroup.
    GroupMember {
        /// Name of the ClusterServiceVersion.
        name: String,
        /// The APIs that it provides, each as Kind.version.group.
        provides: Vec<String>,
        /// Its APIs that other intersecting OperatorGroups provide as well.
        #[schemars(rename = "conflictingAPIs")]
        conflicting_apis: Vec<String>,
        /// The OperatorGroups that provide the same APIs.
        conflicts_with: Vec<GroupName>,
        /// The rule of OLM that applies: Continue, Add, StaticLacks, Conflict, Remove or StaticContested.
        case: String,
        /// The condition under which the rule applies.
        condition: String,
        /// What OLM does by this rule.
        consequence: String,
        /// The reason in the status of the ClusterServiceVersion, if it fails.
        reason: Option<String>,
    }
    /// The namespace and name of an OperatorGroup.
    GroupName {
        /// Namespace of the OperatorGroup.
        namespace: String,
        /// Name of the OperatorGroup.
        name: String,
    }
    /// Two OperatorGroups that have common namespaces.
    Intersection {
        /// The two OperatorGroups, by namespace and name.
        groups: Vec<GroupName>,
        /// The namespaces; null means all.
        namespaces: Option<Vec<String>>,
        /// The OperatorGroup that was created first; null if that is unknown.
        first: Option<GroupName>,
        /// The APIs that both provide; empty if there is no conflict.
        apis: Vec<ContestedApi>,
        /// The effects of the conflict, as sentences.
        messages: Option<Vec<String>>,
        /// Changes that resolve the conflict.
        remedies: Option<Vec<Remedy>>,
    }
    /// An API that both OperatorGroups provide.
    ContestedApi {
        /// The API as Kind.version.group.
        api: String,
        /// The OperatorGroups that have the API in their annotation; members of the others fail.
        provided_by: Vec<GroupName>,
    }
    /// A change that resolves a conflict.
    Remedy {
        /// What the change does, as a sentence without a full stop.
        description: String,
        /// A shell command that applies it.
        command: String,
    }
}
