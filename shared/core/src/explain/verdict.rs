//! The verdict of an explanation, derived from its other parts.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_copy::ClusterCopy;
use super::simulated_plan::{self, SimulatedPlan};
use super::{
    Change, CsvChange, Deprecation, Escalation, Explanation, Permission, REASONS, UnreadableResource, Verdict,
    VerdictReason, VerdictResult,
};
use crate::api::cluster_service_version;
use crate::api::conditions::Conditions;
use crate::api::install_plan::{InstallPlan, Phase};
use crate::api::kinds::OLM_GROUP;
use crate::api::object::{self, Gvk};
use crate::api::subscription::condition_type;
use crate::plan::{Controller, Reason};
use crate::visible::word;
use crate::{installplan, version};

/// Returns the verdict with its reasons, the most severe first.
pub(super) fn judge(simulated: &SimulatedPlan, copy: &ClusterCopy, explanation: &Explanation) -> Verdict {
    let unknown = Unknown::from_plan(simulated, explanation);
    let mut reasons = Vec::new();
    served(simulated, explanation, &mut reasons);
    crds(explanation, &mut reasons);
    plan(simulated, explanation, &unknown, &mut reasons);
    catalog(simulated, copy, &mut reasons);
    unreadable(simulated, explanation, &unknown, &mut reasons);
    requested(simulated, explanation, &mut reasons);
    operators(simulated, explanation, &unknown, &mut reasons);
    permissions(explanation, &mut reasons);
    object_privileges(explanation, &mut reasons);
    notes(simulated, explanation, &mut reasons);
    reasons.sort_by_key(|because| std::cmp::Reverse(because.result));
    Verdict { result: reasons.iter().map(|because| because.result).max().unwrap_or_default(), reasons }
}

fn because(result: VerdictResult, reason: &str, message: impl Into<String>, hint: impl Into<String>) -> VerdictReason {
    debug_assert!(REASONS.iter().any(|(known, _)| *known == reason), "{reason}");
    VerdictReason { result, reason: reason.to_owned(), message: message.into(), hint: hint.into() }
}

fn served(simulated: &SimulatedPlan, explanation: &Explanation, reasons: &mut Vec<VerdictReason>) {
    let namespace = &explanation.namespace;
    for unserved in explanation.unserved.iter().filter(|unserved| !unserved.optional) {
        let of = match &unserved.subscriptions[..] {
            [] => String::new(),
            [one] => format!(" of Subscription {one}"),
            many => format!(" of Subscriptions {}", many.join(", ")),
        };
        let held = match &unserved.blocks[..] {
            [] => String::new(),
            others => format!(", and it blocks {} in the same plan", others.join(", ")),
        };
        let Gvk { group, version, kind } = &unserved.gvk;
        let discovery = simulated.before.api().discover(group, version);
        // With files as input, kinds that they do not contain count as not served.
        let unknown = discovery.serves(kind).err().filter(|_| simulated.before.api().knows_all_kinds());
        if let Some(error) = unknown {
            let needs = format!("bundle {}{of} needs {}", unserved.csv, api(unserved));
            let message = format!("{needs}, and it is not known whether this cluster serves it: {error}");
            let hint = "run kubectl get apiservices to see which aggregated APIs are unavailable, and why";
            reasons.push(because(VerdictResult::Unknown, "unserved", message, hint));
            continue;
        }
        let message = match &unserved.served[..] {
            [] => format!("bundle {}{of} needs {}, which this cluster does not serve", unserved.csv, api(unserved)),
            versions => format!(
                "bundle {}{of} has {kind}s of {}, but this cluster serves only {}",
                unserved.csv,
                unserved.gvk.api_version(),
                versions.join(", ")
            ),
        };
        let plan = object::name(&simulated.plan);
        let names: Vec<_> = unserved.subscriptions.iter().map(|name| word(name)).collect();
        let delete = format!("kubectl -n {namespace} delete subscription {}", names.join(" "));
        let hint = match (&unserved.subscriptions[..], &unserved.blocks[..]) {
            ([], _) => "try another version of the operator: it may not need this kind".to_owned(),
            (_, []) => format!("the plan contains nothing else; to remove the Subscription, run {delete}"),
            (names, _) if !simulated_plan::helps(simulated, names, &unserved.csv) => {
                format!("run {delete}, then delete and recreate the other Subscriptions")
            }
            _ if explanation.plan.exists => format!(
                "the other bundles can be installed without it (verified in a simulation): {delete} && kubectl -n {namespace} delete \
                 installplan {plan}"
            ),
            _ => format!("the other bundles can be installed without it (verified in a simulation): {delete}"),
        };
        reasons.push(because(
            VerdictResult::WouldFail,
            "unserved",
            format!("{message}: it cannot be installed{held}"),
            hint,
        ));
    }
}

fn api(unserved: &super::Unserved) -> String {
    format!("{} ({})", unserved.gvk.kind, unserved.gvk.api_version())
}

fn crds(explanation: &Explanation, reasons: &mut Vec<VerdictReason>) {
    for crd in explanation.crds.iter().filter(|crd| !crd.safe) {
        let result = match crd.existing {
            None => VerdictResult::Unknown,
            Some(_) if crd.message.contains("webhook converts") => VerdictResult::NeedsDecision,
            Some(_) if crd.invalid_count == 0 && crd.loss_count > 0 => VerdictResult::NeedsDecision,
            Some(_) => VerdictResult::WouldFail,
        };
        let first = crd.invalid.first().or_else(|| crd.losses.first());
        let first = first.map(|named| format!(": {named}")).unwrap_or_default();
        let hint = match crd.invalid.first() {
            Some(_) => "correct or delete these objects",
            None if result == VerdictResult::WouldFail => {
                "rewrite every object of the kind, so that it is stored in the storage version, then remove the old version from \
                 status.storedVersions of the CustomResourceDefinition"
            }
            None if crd.loss_count > 0 => "back up these fields first, or do not change the version",
            None => "",
        };
        let message = format!("CustomResourceDefinition {}: {}{first}", crd.name, crd.message);
        reasons.push(because(result, "crd", message, hint));
    }
    for crd in explanation.crds.iter().filter(|crd| crd.safe && !crd.removed_versions.is_empty()) {
        let versions = crd.removed_versions.join(", ");
        let message = format!("CustomResourceDefinition {} is no longer served in version {versions}", crd.name);
        let hint = "update clients that use that version first: their requests will fail";
        reasons.push(because(VerdictResult::NeedsDecision, "crd", message, hint));
    }
}

/// Inputs of the plan that are missing from the copy because they could not be read. Unreadable objects do not count as absent.
struct Unknown {
    /// The OperatorGroup of the namespace.
    group: bool,
    /// Permissions of the ServiceAccount that the plan is executed with.
    permissions: bool,
}

impl Unknown {
    fn from_plan(simulated: &SimulatedPlan, explanation: &Explanation) -> Self {
        let here = |unreadable: &&UnreadableResource| {
            unreadable.namespace.is_empty() || unreadable.namespace == simulated.namespace
        };
        let unreadable: Vec<&UnreadableResource> = explanation.unreadable.iter().filter(here).collect();
        let mut groups = simulated.before.api().list(OLM_GROUP, "OperatorGroup", Some(&simulated.namespace));
        Self {
            group: groups.next().is_none() && unreadable.iter().any(|unreadable| is_of_groups(unreadable)),
            permissions: explanation.plan.service_account.is_some()
                && unreadable.iter().any(|unreadable| is_of_permissions(unreadable)),
        }
    }

    /// Reports whether the result of the plan is unknown because of that resource.
    fn is_due_to(&self, unreadable: &UnreadableResource) -> bool {
        self.group && is_of_groups(unreadable) || self.permissions && is_of_permissions(unreadable)
    }
}

fn is_of_groups(unreadable: &UnreadableResource) -> bool {
    unreadable.resource == "operatorgroups.operators.coreos.com"
}

fn is_of_permissions(unreadable: &UnreadableResource) -> bool {
    unreadable.resource.ends_with(".rbac.authorization.k8s.io")
}

/// Adds the reasons why the plan itself, or the resolution that creates it, fails or waits.
fn plan(simulated: &SimulatedPlan, explanation: &Explanation, unknown: &Unknown, reasons: &mut Vec<VerdictReason>) {
    let name = object::name(&simulated.plan);
    let is_reported = |reason: &Reason| {
        let (Reason::InstallPlanFailed { message, .. } | Reason::InstallPlanRetries { message, .. }) = reason else {
            return false;
        };
        let unserved = message.contains("api-server resource not found");
        unserved && reasons_have(reasons, "unserved")
            || (message.contains("existing CRs") || message.contains("risk of data loss"))
                && reasons_have(reasons, "crd")
    };
    let mut found: Vec<VerdictReason> = Vec::new();
    for reason in simulated.reasons(Controller::InstallPlan, name) {
        if is_reported(reason) || matches!(reason, Reason::OptionalNotCreated { .. } | Reason::Ignored { .. }) {
            continue;
        }
        let result = match reason {
            Reason::BundleUnpacking { .. }
            | Reason::BundleUnpackFailed { .. }
            | Reason::BundleNotProvided { .. }
            | Reason::Missing { .. } => VerdictResult::Unknown,
            // A role or binding that could not be read may grant these permissions.
            Reason::PermissionsMissing { .. } if unknown.permissions => VerdictResult::Unknown,
            Reason::InstallPlanFailed { message, .. } | Reason::InstallPlanRetries { message, .. }
                if unknown.permissions && message.contains(" is forbidden")
                    || installplan::is_unknown_scope(message) =>
            {
                VerdictResult::Unknown
            }
            // Caused by the unreadable OperatorGroup, which is reported separately.
            _ if unknown.group => continue,
            _ => VerdictResult::WouldFail,
        };
        // The number of attempts in the copy and the time of the next one are meaningless to the user.
        let mut text = match reason {
            Reason::InstallPlanRetries { namespace, name, message, blocking_bundle, .. } => {
                format!("InstallPlan {namespace}/{name} would not make progress: {message}{blocking_bundle}")
            }
            reason => reason.cause(),
        };
        if !explanation.plan.exists {
            text = text.replace(&format!("InstallPlan {}/{name}", simulated.namespace), "the InstallPlan");
        }
        let hint = if result == VerdictResult::Unknown { String::new() } else { hint(reason) };
        found.push(because(result, "plan", text, hint));
    }
    if simulated.subscription.is_some() && simulated.plan.is_null() {
        for reason in simulated.reasons(Controller::Resolution, &simulated.namespace) {
            let result = match reason {
                Reason::CatalogNotReady { .. }
                | Reason::CatalogUnavailable { .. }
                | Reason::CatalogNotProvided { .. }
                | Reason::BundleUnpacking { .. }
                | Reason::BundleUnpackFailed { .. }
                | Reason::BundleNotProvided { .. }
                | Reason::Missing { .. } => VerdictResult::Unknown,
                _ if unknown.group => continue,
                _ => VerdictResult::WouldFail,
            };
            let mut hint = hint(reason);
            if let Reason::CatalogNotReady { namespace, name, .. } = reason
                && hint.is_empty()
            {
                hint = stand_in(namespace, name);
            }
            found.push(because(result, "resolution", simulated.without_made_up_names(&reason.cause()), hint));
        }
        found.extend(unresolved(simulated).filter(|_| !unknown.group));
    }
    reasons.extend(found);
}

fn reasons_have(reasons: &[VerdictReason], what: &str) -> bool {
    let counts = |result| matches!(result, VerdictResult::WouldFail) || what == "unserved";
    reasons.iter().any(|because| because.reason == what && counts(because.result))
}

/// Returns the hint of a reason. A missing approval gets none, because the explanation is what the approval is based on, and neither does
/// a missing image, because only a simulation accepts its content.
fn hint(reason: &Reason) -> String {
    match reason {
        Reason::ApprovalNeeded { .. } | Reason::BundleNotProvided { .. } => String::new(),
        reason => reason.hint().unwrap_or_default(),
    }
}

/// Returns the failure that the status of the Subscription in question reports for its resolution.
fn unresolved(simulated: &SimulatedPlan) -> Option<VerdictReason> {
    let name = simulated.subscription.as_deref()?;
    let subscription = simulated.subscriptions().find(|s| object::name(s) == name)?;
    let failed = Conditions::new(subscription).holding(condition_type::RESOLUTION_FAILED)?;
    let already = simulated.reasons(Controller::Resolution, &simulated.namespace);
    if already.iter().any(|reason| matches!(reason, Reason::Unsatisfiable { .. })) {
        return None;
    }
    let message = simulated.without_made_up_names(failed.message());
    Some(because(VerdictResult::WouldFail, "resolution", message, ""))
}

/// Adds catalogs of unknown content: what a Subscription gets from such a catalog cannot be determined.
fn catalog(simulated: &SimulatedPlan, copy: &ClusterCopy, reasons: &mut Vec<VerdictReason>) {
    let name = simulated.subscription.as_deref().filter(|_| simulated.plan.is_null());
    let Some(subscription) = name.and_then(|name| simulated.subscriptions().find(|s| object::name(s) == name)) else {
        return;
    };
    let [namespace, source] = ["sourceNamespace", "source"].map(|key| object::text(subscription, &["spec", key]));
    others(simulated, copy, reasons);
    // The catalog of a bundle in question is generated, so its content is known.
    if simulated.offered.is_some() {
        return;
    }
    if copy.catalogs.contains_key(&(namespace.to_owned(), source.to_owned())) {
        return;
    }
    reasons.retain(|because| because.reason != "resolution");
    let message = format!("the content of catalog {namespace}/{source} is not known");
    reasons.push(because(VerdictResult::Unknown, "catalog", message, stand_in(namespace, source)));
}

/// Replaces resolution failures that are caused by catalogs of unknown content. OLM resolves nothing while one of the available catalogs
/// is down, but catalogs of unknown content are down only in the copy.
fn others(simulated: &SimulatedPlan, copy: &ClusterCopy, reasons: &mut Vec<VerdictReason>) {
    for place in [&simulated.namespace, &copy.global] {
        for source in simulated.before.api().list(OLM_GROUP, "CatalogSource", Some(place)) {
            let (namespace, name) = (object::namespace(source), object::name(source));
            if copy.catalogs.contains_key(&(namespace.to_owned(), name.to_owned())) {
                continue;
            }
            let labels = [format!("{name}/{namespace}"), format!("{namespace}/{name}")];
            let is_due_to = |because: &VerdictReason| {
                because.reason == "resolution" && labels.iter().any(|label| because.message.contains(label.as_str()))
            };
            if reasons.iter().any(is_due_to) {
                reasons.retain(|because| !is_due_to(because));
                let message = format!(
                    "the content of catalog {namespace}/{name} is not known, and OLM resolves no Subscriptions in namespace {} while one \
                     of its catalogs is unavailable",
                    simulated.namespace
                );
                reasons.push(because(VerdictResult::Unknown, "catalog", message, stand_in(namespace, name)));
            }
        }
        if *place == copy.global {
            break;
        }
    }
}

fn stand_in(namespace: &str, catalog: &str) -> String {
    format!("pass its content as a directory: --catalog {catalog}.{namespace}=DIR")
}

fn unreadable(
    simulated: &SimulatedPlan,
    explanation: &Explanation,
    unknown: &Unknown,
    reasons: &mut Vec<VerdictReason>,
) {
    for bundle in explanation.bundles.iter().filter(|bundle| !bundle.unpacked) {
        let message = format!("the content of bundle {} is not known: {}", bundle.csv, bundle.message);
        reasons.retain(|because| !(because.reason == "plan" && because.message.contains(&bundle.csv)));
        reasons.retain(|because| !(because.reason == "resolution" && because.message.contains(&bundle.csv)));
        reasons.push(because(VerdictResult::Unknown, "unpack", message, ""));
    }
    for unreadable in &explanation.unreadable {
        let plural = |kind: &str, group: &str| {
            let found = simulated.before.api().kind(group, kind).or_else(|| simulated.after.api().kind(group, kind));
            found.map(crate::sim::ResourceKind::resource)
        };
        let matters = explanation.objects.iter().any(|o| {
            let same_place = unreadable.namespace.is_empty() || unreadable.namespace == o.namespace;
            same_place && plural(&o.gvk.kind, &o.gvk.group).as_ref() == Some(&unreadable.resource)
        });
        let result =
            if matters || unknown.is_due_to(unreadable) { VerdictResult::Unknown } else { VerdictResult::Safe };
        reasons.push(because(result, "unreadable", unreadable.message.clone(), ""));
    }
}

/// Adds a reason if the Subscription gets a version outside of the requested range.
fn requested(simulated: &SimulatedPlan, explanation: &Explanation, reasons: &mut Vec<VerdictReason>) {
    let Some((package, range)) = &simulated.wanted else { return };
    let fits = |version: &str| version::parse_tolerant(version).is_ok_and(|version| range.contains(&version));
    let gets = explanation.csvs.iter().find(|csv| csv.package == *package).and_then(|csv| csv.to.as_deref());
    let subscription = simulated.subscription.as_deref().unwrap_or_default();
    let message = match gets {
        Some(version) if fits(version) => return,
        Some(version) => {
            format!("Subscription {subscription} gets version {version} next, which is not in the range {range}")
        }
        None => format!("Subscription {subscription} has no newer version of {package} to install"),
    };
    reasons.push(because(VerdictResult::WouldFail, "range", message, ""));
}

fn operators(
    simulated: &SimulatedPlan,
    explanation: &Explanation,
    unknown: &Unknown,
    reasons: &mut Vec<VerdictReason>,
) {
    let fails =
        reasons.iter().any(|because| because.result == VerdictResult::WouldFail || because.reason == "unserved");
    let fails = fails || unknown.group;
    for csv in &explanation.csvs {
        match csv.change {
            CsvChange::Remove => {
                let message = format!("operator {} is removed without a replacement", csv.name);
                reasons.push(because(VerdictResult::NeedsDecision, "removal", message, ""));
            }
            CsvChange::Downgrade => {
                let from = csv.from.as_deref().unwrap_or_default();
                let message = format!("{} is a downgrade: it replaces the newer version {from}", csv.name);
                reasons.push(because(VerdictResult::NeedsDecision, "downgrade", message, ""));
            }
            _ => {}
        }
        // If the plan fails, its operators are expected not to succeed.
        let is_well = cluster_service_version::Phase::from(csv.phase.as_str()).has_succeeded();
        if !is_well && !fails && csv.change != CsvChange::Remove && !csv.phase.is_empty() {
            let blocking = simulated.reasons(Controller::ClusterServiceVersion, &csv.name);
            reasons.push(match unknown_apis(blocking) {
                Some(unknown) => because(VerdictResult::Unknown, "discovery", unknown.to_string(), hint(unknown)),
                None => {
                    let message = format!("{} would stay in phase {}: {}", csv.name, csv.phase, csv.message);
                    because(VerdictResult::WouldFail, "csv", message, "")
                }
            });
        }
    }
    let names = |bystander: bool| -> Vec<&str> {
        explanation.csvs.iter().filter(|csv| csv.bystander == bystander).map(|csv| csv.name.as_str()).collect()
    };
    let (bystanders, others) = (names(true), names(false));
    if !bystanders.is_empty() {
        let message = if others.is_empty() {
            format!(
                "the plan contains several operators, and approval applies to all of them: {}",
                bystanders.join(", ")
            )
        } else {
            let are = if bystanders.len() == 1 { "is" } else { "are" };
            format!("{} {are} unrelated, but part of the same plan, and would also be installed", bystanders.join(", "))
        };
        let hint = "all Subscriptions of a namespace share InstallPlans: use separate namespaces to keep operators independent";
        reasons.push(because(VerdictResult::NeedsDecision, "bystanders", message, hint));
    }
    if explanation.plan.superseded {
        let message = "this InstallPlan is superseded by a newer one in the namespace";
        reasons.push(because(
            VerdictResult::NeedsDecision,
            "superseded",
            message,
            "explain the newer InstallPlan instead",
        ));
    }
}

/// Returns the reason that blocks a ClusterServiceVersion if it is only that the kinds that the cluster serves are unknown.
fn unknown_apis(blocking: &[Reason]) -> Option<&Reason> {
    let [unknown @ Reason::ApisUnknown { assumed_served: false, .. }, others @ ..] = blocking else { return None };
    others.iter().all(|reason| matches!(reason, Reason::ApisUnknown { .. })).then_some(unknown)
}

fn permissions(explanation: &Explanation, reasons: &mut Vec<VerdictReason>) {
    let mut accounts: BTreeMap<&str, Vec<&Permission>> = BTreeMap::new();
    for permission in explanation.rbac.gained.iter().filter(|permission| !permission.escalations.is_empty()) {
        accounts.entry(&permission.account).or_default().push(permission);
    }
    for (account, marked) in accounts {
        let mut kinds: Vec<_> = marked.iter().flat_map(|permission| permission.escalations.iter().copied()).collect();
        kinds.sort();
        kinds.dedup();
        let kinds: Vec<&str> = kinds.into_iter().map(Escalation::words).collect();
        let message = format!("{account} gains privileged permissions: {}", kinds.join(", "));
        reasons.push(because(VerdictResult::NeedsDecision, "escalation", message, ""));
    }
}

/// Adds objects with escalations, grouped by the operator that they belong to.
fn object_privileges(explanation: &Explanation, reasons: &mut Vec<VerdictReason>) {
    let mut marked: BTreeMap<String, BTreeSet<Escalation>> = BTreeMap::new();
    for object in explanation.objects.iter().filter(|object| !object.escalations.is_empty()) {
        let of = match object.csv.as_str() {
            "" => format!("{} {}", object.gvk.kind, object.name),
            csv => csv.to_owned(),
        };
        marked.entry(of).or_default().extend(&object.escalations);
    }
    for (of, kinds) in marked {
        let kinds: Vec<&str> = kinds.into_iter().map(Escalation::words).collect();
        let message = format!("{of} has effects beyond its namespace: {}", kinds.join(", "));
        reasons.push(because(VerdictResult::NeedsDecision, "escalation", message, ""));
    }
}

/// Adds notes, which need no decision.
fn notes(simulated: &SimulatedPlan, explanation: &Explanation, reasons: &mut Vec<VerdictReason>) {
    let mut note = |reason: &str, message: String| reasons.push(because(VerdictResult::Safe, reason, message, ""));
    for message in installplan::ignored_edits(&simulated.plan) {
        note("ignoredEdit", message);
    }
    for optional in explanation.optional.iter().filter(|optional| optional.skipped) {
        let message = format!("the plan skips optional {} {}", optional.gvk.kind, optional.name);
        note("optional", format!("{message}: {}", optional.message));
    }
    for deprecation in &explanation.deprecations {
        let Deprecation { what, name, message, .. } = deprecation;
        note("deprecated", format!("{what} {name} is deprecated: {message}"));
    }
    if explanation.plan.exists
        && explanation.plan.approved
        && Phase::from(explanation.plan.phase.as_str()) == Phase::RequiresApproval
    {
        note(
            "approved",
            "the plan is approved but not executed yet: it is executed as soon as OLM's controllers run".to_owned(),
        );
    }
    let deleted = explanation.objects.iter().filter(|o| o.change == Change::Delete && o.by == super::By::Step).count();
    if deleted > 0 {
        note("deletion", format!("steps of the plan delete {deleted} objects"));
    }
    if simulated.plan.is_null() && reasons.is_empty() {
        let message = "everything that was requested is installed, and no newer version is available";
        reasons.push(because(VerdictResult::Safe, "nothingToInstall", message, ""));
    } else if !simulated.plan.is_null() && InstallPlan::new(&simulated.plan).phase() == Phase::Complete {
        reasons.push(because(VerdictResult::Safe, "complete", "the plan is complete: nothing is left to do", ""));
    }
}
