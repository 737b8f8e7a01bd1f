//! JSON Schemas of the documents that commands print with `-o json` and `-o yaml`: written to `shared/docs/schemas`, and
//! compared with real output (`answers`).
//!
//! The types only define the form. If a document is a type of the code, that type's own schema is used.

#![allow(dead_code, reason = "only the form of these types matters")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use olm_core::explain::{Explanation, REASONS};
use olm_core::validate::Validator;
use olm_shell::cli::output::API_VERSION;
use olm_shell::installplan::policy::Tried;
use olm_shell::run::audit::AuditEvent;
use olm_tests::house::generated::Generated;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Defines types that are only used for their schema.
macro_rules! forms {
    ($($(#[$meta:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* })+) => {
        $(
            $(#[$meta])*
            #[derive(JsonSchema)]
            #[schemars(rename_all = "camelCase")]
            pub(crate) struct $name { $($(#[$of_field])* $field: $type,)* }
        )+
    };
}

forms! {
    /// An image of a bundle: bundle build and bundle push.
    BundleImage {
        /// The name, as given by the user.
        reference: Option<String>,
        #[schemars(flatten)] manifest: ImageBlob,
        /// The configurations and layers.
        blobs: Vec<ImageBlob>,
    }
    ImageBlob {
        media_type: String,
        digest: String,
        /// In bytes.
        size: u64,
    }
    /// The effects of an InstallPlan: install-plan explain.
    InstallPlanExplanation {
        #[schemars(flatten)] explanation: Explanation,
        /// The results of the policies given with --if.
        policies: Option<Vec<Tried>>,
    }
    /// The states of InstallPlans: install-plan list.
    InstallPlanList { items: Vec<InstallPlanState>, }
    /// The state of an InstallPlan.
    InstallPlanState {
        metadata: Metadata,
        /// spec.generation
        generation: Option<i64>,
        #[schemars(flatten)] standing: PlanSummary,
        /// The Subscriptions that it was created for.
        subscriptions: Vec<String>,
        /// Why it is not complete, as text.
        message: Option<String>,
        /// How a user can resolve it.
        hint: Option<String>,
        steps: Steps,
    }
    /// The printed fields of an object's metadata.
    Metadata {
        namespace: String,
        name: String,
        creation_timestamp: Option<String>,
        labels: Option<Map<String, Value>>,
        annotations: Option<Map<String, Value>>,
        resource_version: Option<String>,
    }
    /// The state of a plan, from its status.
    PlanSummary {
        /// status.phase; empty if it is not set.
        phase: String,
        /// Automatic or Manual.
        approval: String,
        approved: bool,
        /// The ClusterServiceVersions that it installs, and those that they replace.
        csvs: Vec<Replacement>,
        /// The next step, or the failed one.
        step: Option<Step>,
        /// The newer plan of the namespace, if there is one.
        superseded_by: Option<String>,
        /// Why it is not complete: the field `reason` contains the code, the other fields depend on it.
        reason: Option<Map<String, Value>>,
        /// Fields of its spec that OLM ignores.
        ignored_edits: Option<Vec<String>>,
    }
    Replacement { from: Option<String>, to: String, }
    Step { kind: String, name: String, status: String, resolving: String, }
    /// The states of operators: operator list.
    OperatorList { items: Vec<OperatorState>, }
    /// The state of an operator.
    OperatorState {
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
        /// The installed version.
        installed: Option<OperatorVersion>,
        /// The version that is being installed, or that waits for approval.
        next: Option<OperatorVersion>,
        /// The InstallPlan of the Subscription.
        install_plan: Option<String>,
        /// Healthy, Upgradable, Progressing or Blocked.
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
    /// A ClusterServiceVersion of an operator.
    OperatorVersion {
        /// Its name.
        csv: String,
        /// spec.version
        version: Option<String>,
        /// status.phase
        phase: Option<String>,
    }
    /// The number of completed steps.
    Steps { done: u64, all: u64, }
    /// A change that install-plan wait reports, one per line.
    InstallPlanEvent {
        time: String,
        namespace: String,
        /// The plan.
        name: Option<String>,
        /// The Subscription, as long as it has no plan.
        subscription: Option<String>,
        phase: Option<String>,
        approval: Option<String>,
        approved: Option<bool>,
        csvs: Option<Vec<Replacement>>,
        steps: Option<Steps>,
        step: Option<Step>,
        superseded_by: Option<String>,
        reason: Option<Map<String, Value>>,
        ignored_edits: Option<Vec<String>>,
        message: Option<String>,
        /// Whether the awaited state was reached.
        reached: Option<bool>,
        /// Whether this is the last event.
        r#final: Option<bool>,
        deleted: Option<bool>,
        timed_out: Option<bool>,
    }
    /// The state of OLM itself, of catalogs and of operators: status.
    OLMStatus {
        /// What is installed: one installation, unless something is wrong.
        installations: Vec<Installation>,
        /// Held Leases of kubectl olm run.
        leases: Vec<OLMLease>,
        /// The objects of OLM.
        objects: Vec<OLMObject>,
        catalogs: Vec<OLMObject>,
        /// As operator list prints them.
        operators: Vec<OperatorState>,
    }
    Installation {
        /// kubectl-olm or upstream
        distribution: String,
        version: Option<String>,
        namespace: String,
        /// The names of the Deployments.
        controllers: Vec<String>,
    }
    OLMLease { namespace: String, holder_identity: String, }
    OLMObject {
        api_version: String,
        kind: String,
        namespace: Option<String>,
        name: String,
        /// Present, Absent, Changed (it differs from the manifest), Unhealthy or Deleting.
        state: String,
        message: Option<String>,
    }
    /// The versions of the client and the server: version.
    Version { client_version: Client, server_version: Option<Server>, }
    Client { version: String, olm_version: String, platform: String, }
    Server {
        kubernetes_version: String,
        /// Served versions of OLM's API group.
        api_versions: Vec<String>,
        /// Deployments of a real OLM; absent without permission to list them.
        controllers: Option<Vec<Controller>>,
        /// Held Leases of kubectl olm run; absent without permission to list them.
        leases: Option<Vec<HeldLease>>,
    }
    Controller { namespace: String, name: String, image: String, }
    HeldLease { namespace: String, name: String, holder_identity: String, acquire_time: Option<String>, }
    /// A package of a catalog: catalog list PACKAGE.
    Package { #[schemars(flatten)] package: PackageItem, }
    /// Packages of a catalog: catalog list.
    PackageList {
        /// Invalid packages, which are not served.
        set_aside: Vec<String>,
        items: Vec<PackageItem>,
    }
    PackageItem {
        name: String,
        default_channel: Option<String>,
        deprecation: Option<String>,
        channels: Option<Vec<PackageChannel>>,
    }
    PackageChannel {
        name: String,
        head: Option<String>,
        deprecation: Option<String>,
        /// The versions, newest first.
        entries: Option<Vec<PackageEntry>>,
    }
    PackageEntry {
        name: String,
        version: Option<String>,
        replaces: Option<String>,
        skips: Option<Vec<String>>,
        skip_range: Option<String>,
        image: Option<String>,
        deprecation: Option<String>,
    }
    /// The findings about a catalog: catalog validate.
    CatalogValidation {
        passed: bool,
        strict: bool,
        /// The number of served packages.
        packages: u64,
        bundles: u64,
        set_aside: Vec<String>,
        findings: Vec<Finding>,
    }
    Finding {
        file: String,
        /// The line, from 1; 0 if unknown.
        line: u64,
        severity: Severity,
        code: String,
        subject: String,
        message: String,
        hint: String,
    }
    /// Where each object of plain manifests goes: bundle synthesize --account.
    BundleAccount { objects: Vec<AccountEntry>, findings: Vec<Finding>, }
    AccountEntry {
        file: String,
        /// The line on which the object begins.
        line: u64,
        /// `Kind/namespace/name`
        object: String,
        /// Empty if the object is not carried; it then has a finding.
        destinations: Vec<Destination>,
    }
    Destination {
        /// A field of the ClusterServiceVersion, an object that OLM generates, or the manifests of the bundle.
        r#type: DestinationType,
        /// The path of the field, or what is generated.
        value: Option<String>,
    }
    /// The findings about bundles: bundle validate.
    BundleValidation {
        /// Whether no finding has the severity of --fail-on.
        passed: bool,
        bundles: Vec<ValidatedBundle>,
        findings: Vec<Finding>,
        /// The number of findings that the baseline omitted.
        in_baseline: u64,
    }
    ValidatedBundle {
        path: String,
        /// The name of the ClusterServiceVersion.
        name: String,
        package: String,
        errors: u64,
        warnings: u64,
    }
    /// The differences between two catalogs: catalog diff.
    CatalogDiff { packages: Vec<ChangedPackage>, stranded: Vec<Stranded>, }
    ChangedPackage {
        name: String,
        change: CatalogChange,
        fields: Vec<ChangedField>,
        channels: Vec<ChangedChannel>,
        bundles: Vec<ChangedBundle>,
    }
    ChangedChannel { name: String, change: CatalogChange, fields: Vec<ChangedField>, entries: Vec<ChangedEntry>, }
    ChangedEntry { name: String, change: CatalogChange, fields: Vec<ChangedField>, }
    ChangedBundle { name: String, version: String, change: CatalogChange, fields: Vec<ChangedField>, }
    ChangedField { field: String, old: Vec<String>, new: Vec<String>, }
    /// A version from which updates no longer lead to the head of its channel.
    Stranded {
        package: String,
        channel: String,
        name: String,
        because: String,
        ways_out: Vec<String>,
        namespace: Option<String>,
        subscription: Option<String>,
    }
    /// The bundles added to a catalog: catalog add.
    CatalogAddition { dry_run: bool, bundles: Vec<AddedBundle>, files: Vec<String>, }
    AddedBundle {
        name: String,
        package: String,
        version: String,
        image: String,
        channels: Vec<AddedTo>,
        file: String,
    }
    AddedTo { name: String, head: bool, replaces: String, skips: Vec<String>, skip_range: String, }
    /// The update graph: catalog graph.
    UpdateGraph { packages: Vec<GraphPackage>, }
    GraphPackage { name: String, default_channel: String, channels: Vec<GraphChannel>, }
    GraphChannel {
        name: String,
        head: String,
        deprecation: Option<String>,
        problem: Option<String>,
        versions: Vec<GraphVersion>,
    }
    GraphVersion {
        name: String,
        in_channel: bool,
        skipped_by: Option<Value>,
        next: Option<GraphNext>,
        comes_to_head: bool,
        because: Option<String>,
        version: Option<String>,
        replaces: Option<String>,
        skips: Option<Vec<String>>,
        skip_range: Option<String>,
        deprecation: Option<String>,
    }
    GraphNext { name: String, by: String, }
    /// The update path from one version: catalog graph --from.
    UpdatePath {
        package: String,
        channel: String,
        from: String,
        to: Option<String>,
        arrives: bool,
        hops: Vec<Hop>,
        because: Option<String>,
        other_channels: Vec<String>,
    }
    Hop { from: String, to: String, version: String, by: String, skip_range: Option<String>, }
    /// The bundles that OLM would install, with reasons: catalog resolve.
    Resolution {
        result: ResolutionResult,
        bundles: Option<Vec<ChosenBundle>>,
        warnings: Option<Vec<Said>>,
        /// The message of OLM.
        message: Option<String>,
        because: Option<Vec<Said>>,
        excluded: Option<Vec<ExcludedBundle>>,
        repairs: Option<Vec<Map<String, Value>>>,
    }
    ChosenBundle {
        #[schemars(flatten)] bundle: BundleName,
        replaces: String,
        because: Vec<Said>,
        passed_over: Vec<ExcludedBundle>,
    }
    ExcludedBundle { #[schemars(flatten)] bundle: BundleName, because: Said, }
    BundleName {
        package: String,
        name: String,
        version: String,
        channel: String,
        catalog: String,
        catalog_namespace: String,
    }
    Said { reason: String, text: String, }
    /// The images of a catalog: catalog render --images -o yaml.
    ImageList { images: Vec<CatalogImage>, }
    CatalogImage { image: String, bundles: Vec<String>, }
    /// The findings about OperatorGroups: operatorgroup lint.
    OperatorGroupLint {
        /// The number of checked OperatorGroups.
        operator_groups: u64,
        findings: Vec<GroupFinding>,
        /// The number of findings that the baseline excludes.
        in_baseline: u64,
        /// The rules that could be checked only in part.
        unchecked: Vec<UncheckedRules>,
        fixed: Option<Vec<GroupFinding>>,
        packages: Option<Vec<PackageMatrix>>,
    }
    UncheckedRules { codes: Vec<String>, why: String, }
    GroupFinding {
        code: String,
        rule: String,
        severity: Severity,
        object: Reference,
        message: String,
        /// The command that explains the rule.
        explain: String,
        also: Option<Vec<Reference>>,
        fix: Option<Fix>,
        file: Option<String>,
        line: Option<u64>,
        command: Option<String>,
    }
    Reference { api_version: String, kind: String, name: String, namespace: Option<String>, }
    Fix {
        what: String,
        /// Whether --fix applies it.
        safe: bool,
        command: Option<String>,
        patch: Option<Map<String, Value>>,
        objects: Option<Vec<Map<String, Value>>>,
    }
    PackageMatrix { catalog: String, package: String, groups: Vec<MatrixGroup>, versions: Vec<MatrixVersion>, }
    MatrixGroup { namespace: String, name: String, targets: Value, }
    MatrixVersion {
        name: String,
        version: String,
        channels: Vec<String>,
        groups: Vec<MatrixFit>,
        would_fit: Vec<String>,
    }
    MatrixFit { group: String, fits: Option<bool>, message: Option<String>, }
    /// The intersections of OperatorGroups: operatorgroup intersect.
    OperatorGroupIntersections {
        groups: Vec<IntersectingGroup>,
        intersections: Vec<Intersection>,
        /// The number of intersections with conflicting APIs.
        clashes: u64,
    }
    IntersectingGroup {
        namespace: String,
        name: String,
        created: Option<String>,
        global: bool,
        /// The namespaces; null means all.
        target_namespaces: Option<Vec<String>>,
        r#static: bool,
        #[schemars(rename = "providedAPIs")] provided_apis: Vec<String>,
        members: Vec<GroupMember>,
    }
    GroupMember {
        name: String,
        provides: Vec<String>,
        contested: Vec<String>,
        contested_by: Vec<GroupName>,
        row: String,
        condition: String,
        consequence: String,
        reason: Option<String>,
    }
    GroupName { namespace: String, name: String, }
    Intersection {
        groups: Vec<GroupName>,
        /// The namespaces; null means all.
        namespaces: Option<Vec<String>>,
        first: Option<GroupName>,
        apis: Vec<ContestedApi>,
        messages: Option<Vec<String>>,
        remedies: Option<Vec<Remedy>>,
    }
    ContestedApi { api: String, held_by: Vec<GroupName>, }
    Remedy { description: String, command: String, }
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum Severity {
    Error,
    Warning,
    Info,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum DestinationType {
    Field,
    Generated,
    Bundle,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum CatalogChange {
    Added,
    Removed,
    Changed,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum ResolutionResult {
    Resolved,
    Failed,
}

/// Returns the schema of a document of that kind.
fn schema<T: JsonSchema>(kind: &str) -> (String, Value) {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["title"] = kind.into();
    schema["properties"]["apiVersion"] = json!({ "const": API_VERSION });
    schema["properties"]["kind"] = json!({ "const": kind });
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    schema["required"] = [json!("apiVersion"), json!("kind")].into_iter().chain(required).collect();
    (kind.to_owned(), schema)
}

/// Returns the schemas by document kind.
pub(crate) fn schemas() -> Vec<(String, Value)> {
    macro_rules! of {
        ($($type:ident,)+) => { vec![$(schema::<$type>(stringify!($type)),)+] };
    }
    of! {
        AuditEvent, BundleAccount, BundleImage, BundleValidation, CatalogAddition, CatalogDiff, CatalogValidation, ImageList, InstallPlanEvent, InstallPlanExplanation, InstallPlanList,
        OLMStatus, OperatorGroupIntersections, OperatorGroupLint, OperatorList, Package, PackageList, Resolution, UpdateGraph, UpdatePath, Version,
    }
}

pub(crate) fn files() -> Vec<Generated> {
    let file = |path: String, text: String| Generated { file: PathBuf::from(path), text };
    let schemas = schemas();
    let mut files: Vec<Generated> = schemas
        .iter()
        .map(|(kind, schema)| {
            let text = serde_json::to_string_pretty(schema).unwrap_or_default();
            file(format!("shared/docs/schemas/{kind}.json"), format!("{text}\n"))
        })
        .collect();
    if let Some((_, schema)) = schemas.iter().find(|(kind, _)| kind == "InstallPlanExplanation") {
        files.push(file("shared/docs/install-plan-policies.md".to_owned(), policies(schema)));
    }
    files.push(file("shared/docs/bundle-rules.md".to_owned(), rules()));
    files
}

const RULES: &str = "# Rules of bundle validate

`kubectl olm bundle validate` reports these findings. `--select` takes codes, names and validators. Findings of the synthesis of plain
manifests have the codes of `kubectl olm bundle synthesize`.

This page is generated: `OLM_GENERATE=1 cargo test -p olm-tests generated`.

";

/// Returns the page of the validators and rules of bundles.
fn rules() -> String {
    let mut text = format!("{RULES}| validator | checks |\n| --- | --- |\n");
    for validator in Validator::ALL {
        text += &format!("| `{}` | {} |\n", validator.name(), validator.summary());
    }
    text += "\n| code | name | severity | validators | finds |\n| --- | --- | --- | --- | --- |\n";
    for rule in olm_core::validate::RULES {
        let validators: Vec<&str> = rule.validators.iter().map(|validator| validator.name()).collect();
        text += &format!(
            "| {} | `{}` | {} | {} | {} |\n",
            rule.code,
            rule.name,
            rule.severity,
            validators.join(", "),
            rule.summary
        );
    }
    text
}

const POLICIES: &str = "# Policies for InstallPlans

`kubectl olm install-plan approve --if EXPR` approves only InstallPlans for which EXPR is true; `explain --if EXPR` evaluates EXPR without
approving. EXPR is a CEL expression over the fields of `kubectl olm install-plan explain -o json`, which this page lists (schema:
`schemas/InstallPlanExplanation.json`). Every field is always present; a field that does not apply is null, empty or false. To compare
versions, use `semver(x).major()`, `.minor()`, `.patch()`, `.isLessThan(y)`, `.isGreaterThan(y)`, `.compareTo(y)`, and `isSemver(x)`.

    verdict.result == \"safe\" && rbac.escalates == false && crds.all(c, c.safe) && csvs.all(x, x.from != null && semver(x.to).major() == semver(x.from).major())

This page is generated: `OLM_GENERATE=1 cargo test -p olm-tests generated`.

| field | type | values and meaning |
| --- | --- | --- |
";

/// Returns the page of the fields that policies can use.
fn policies(schema: &Value) -> String {
    let mut lines = Vec::new();
    fields(schema, schema, "", &mut lines);
    let is_asked = |line: &&String| {
        !line.starts_with("| `policies") && !line.starts_with("| `apiVersion") && !line.starts_with("| `kind`")
    };
    let fields: String = lines.iter().filter(is_asked).map(|line| format!("{line}\n")).collect();
    let reasons: String = REASONS.iter().map(|(reason, what)| format!("| `{reason}` | {what} |\n")).collect();
    format!(
        "{POLICIES}{fields}\nThe values of `verdict.reasons[].reason`:\n\n| value | meaning |\n| --- | --- |\n{reasons}"
    )
}

/// Appends a line for every field below this one.
fn fields(root: &Value, schema: &Value, path: &str, lines: &mut Vec<String>) {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten().filter(|(name, _)| known.insert(name)) {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let (inner, is_list) = match &field["items"] {
            Value::Null => (resolved(root, field), false),
            items => (resolved(root, items), true),
        };
        let mut type_ = if inner["properties"].is_object() { "object".to_owned() } else { type_of(inner) };
        if is_list {
            type_ = format!("list of {type_}");
        }
        let described = field["description"].as_str().or_else(|| inner["description"].as_str()).unwrap_or_default();
        let mut meaning = described.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        let values = values(inner);
        if !values.is_empty() {
            meaning = format!("{meaning} Values: {}", values.join("; "));
        }
        lines.push(format!("| `{path}{}` | {type_} | {meaning} |", if is_list { "[]" } else { "" }));
        fields(root, inner, &format!("{path}{}", if is_list { "[]" } else { "" }), lines);
    }
}

fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        Some(path) => root.pointer(path).unwrap_or(schema),
        None => schema,
    }
}

fn type_of(schema: &Value) -> String {
    match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if !values(schema).is_empty() => "string".to_owned(),
        _ => "any".to_owned(),
    }
}

/// Returns the values of an enumeration with their descriptions.
fn values(schema: &Value) -> Vec<String> {
    let of_const = |one: &Value| {
        let value = one["const"].as_str()?;
        let meaning = one["description"].as_str().unwrap_or_default();
        Some(format!("`{value}`: {}", meaning.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.')))
    };
    let consts = schema["oneOf"].as_array().into_iter().flatten().filter_map(of_const);
    let plain = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    consts.chain(plain.map(|value| format!("`{value}`"))).collect()
}
