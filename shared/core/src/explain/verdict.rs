//! Whether all goes well, from all that was found.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_copy::ClusterCopy;
use super::trial::{self, Trial};
use super::{
    Because, Change, CsvChange, Deprecation, Escalation, Explanation, Outcome, REASONS, Right, Unread, Verdict,
};
use crate::api::conditions::Conditions;
use crate::api::install_plan::{InstallPlan, Phase};
use crate::api::kinds::OLM;
use crate::api::object::{self, Gvk};
use crate::api::subscription::condition_type;
use crate::installplan;
use crate::plan::{Controller, Reason};
use crate::version;
use crate::visible::word;

/// Judges.
pub(super) fn judge(trial: &Trial, copy: &ClusterCopy, explanation: &Explanation) -> Verdict {
    let unknown = Unknown::of(trial, explanation);
    let mut reasons = Vec::new();
    served(trial, explanation, &mut reasons);
    crds(explanation, &mut reasons);
    plan(trial, explanation, &unknown, &mut reasons);
    catalog(trial, copy, &mut reasons);
    unread(trial, explanation, &unknown, &mut reasons);
    wanted(trial, explanation, &mut reasons);
    operators(trial, explanation, &unknown, &mut reasons);
    rights(explanation, &mut reasons);
    powers(explanation, &mut reasons);
    notes(trial, explanation, &mut reasons);
    reasons.sort_by_key(|because| std::cmp::Reverse(because.result));
    Verdict { result: reasons.iter().map(|because| because.result).max().unwrap_or_default(), reasons }
}

fn because(result: Outcome, reason: &str, message: impl Into<String>, hint: impl Into<String>) -> Because {
    debug_assert!(REASONS.iter().any(|(known, _)| *known == reason), "{reason}");
    Because { result, reason: reason.to_owned(), message: message.into(), hint: hint.into() }
}

fn served(trial: &Trial, explanation: &Explanation, reasons: &mut Vec<Because>) {
    let namespace = &explanation.namespace;
    for unserved in explanation.unserved.iter().filter(|unserved| !unserved.optional) {
        let of = match &unserved.subscriptions[..] {
            [] => String::new(),
            [one] => format!(" of Subscription {one}"),
            many => format!(" of Subscriptions {}", many.join(", ")),
        };
        let held = match &unserved.holds_up[..] {
            [] => String::new(),
            others => format!(", and {} in the same plan with it", others.join(", ")),
        };
        let Gvk { group, version, kind } = &unserved.gvk;
        let discovery = trial.before.api().discover(group, version);
        // What files do not name is taken not to be served.
        let unknown = discovery.serves(kind).err().filter(|_| trial.before.api().knows_all_kinds());
        if let Some(error) = unknown {
            let needs = format!("bundle {}{of} needs {}", unserved.csv, api(unserved));
            let message = format!("{needs}, and it is not known whether this cluster serves it: {error}");
            let hint = "kubectl get apiservices shows which aggregated APIs do not answer, and why";
            reasons.push(because(Outcome::Unknown, "unserved", message, hint));
            continue;
        }
        let message = match &unserved.served[..] {
            [] => format!("bundle {}{of} needs {}, which this cluster does not serve", unserved.csv, api(unserved)),
            versions => format!(
                "bundle {}{of} has {kind}s of {}, of which this cluster serves {} only",
                unserved.csv,
                unserved.gvk.api_version(),
                versions.join(", ")
            ),
        };
        let plan = object::name(&trial.plan);
        let names: Vec<_> = unserved.subscriptions.iter().map(|name| word(name)).collect();
        let delete = format!("kubectl -n {namespace} delete subscription {}", names.join(" "));
        let hint = match (&unserved.subscriptions[..], &unserved.holds_up[..]) {
            ([], _) => "another version of the operator may do without it".to_owned(),
            (_, []) => format!("nothing else is in the plan: unsubscribe it with {delete}"),
            (names, _) if !trial::helps(trial, names, &unserved.csv) => {
                format!("unsubscribe it with {delete}; then make the other Subscriptions anew")
            }
            _ if explanation.plan.exists => format!(
                "without it there is a plan for the others (this was tried): {delete} && kubectl -n {namespace} delete \
                 installplan {plan}"
            ),
            _ => format!("without it there is a plan for the others (this was tried): {delete}"),
        };
        reasons.push(because(Outcome::WouldFail, "unserved", format!("{message}: it cannot be installed{held}"), hint));
    }
}

fn api(unserved: &super::Unserved) -> String {
    format!("{} ({})", unserved.gvk.kind, unserved.gvk.api_version())
}

fn crds(explanation: &Explanation, reasons: &mut Vec<Because>) {
    for crd in explanation.crds.iter().filter(|crd| !crd.safe) {
        let result = match crd.existing {
            None => Outcome::Unknown,
            Some(_) if crd.message.contains("webhook converts") => Outcome::NeedsDecision,
            Some(_) if crd.misfit_count == 0 && crd.loss_count > 0 => Outcome::NeedsDecision,
            Some(_) => Outcome::WouldFail,
        };
        let first = crd.misfits.first().or_else(|| crd.losses.first());
        let first = first.map(|named| format!(": {named}")).unwrap_or_default();
        let hint = match crd.misfits.first() {
            Some(_) => "mend or delete the objects that are named",
            None if result == Outcome::WouldFail => {
                "write every object of the kind once, so that it is stored in the storage version, then take the old version out \
                 of the definition's status.storedVersions"
            }
            None if crd.loss_count > 0 => "stay with the newer version, or save what the fields hold before",
            None => "",
        };
        let message = format!("CustomResourceDefinition {}: {}{first}", crd.name, crd.message);
        reasons.push(because(result, "crd", message, hint));
    }
    for crd in explanation.crds.iter().filter(|crd| crd.safe && !crd.removed_versions.is_empty()) {
        let versions = crd.removed_versions.join(", ");
        let message = format!("CustomResourceDefinition {} is not served in version {versions} any more", crd.name);
        let hint = "whatever still asks for that version will fail: look for it before";
        reasons.push(because(Outcome::NeedsDecision, "crd", message, hint));
    }
}

/// Things that the plan goes by and that are not in the copy because they could not be read: unreadable is not absent.
struct Unknown {
    /// The OperatorGroup of the namespace.
    group: bool,
    /// Rights of the ServiceAccount that the plan is executed with.
    rights: bool,
}

impl Unknown {
    fn of(trial: &Trial, explanation: &Explanation) -> Self {
        let here = |unread: &&Unread| unread.namespace.is_empty() || unread.namespace == trial.namespace;
        let unread: Vec<&Unread> = explanation.unread.iter().filter(here).collect();
        let mut groups = trial.before.api().list(OLM, "OperatorGroup", Some(&trial.namespace));
        Self {
            group: groups.next().is_none() && unread.iter().any(|unread| is_of_groups(unread)),
            rights: explanation.plan.service_account.is_some() && unread.iter().any(|unread| is_of_rights(unread)),
        }
    }

    /// Is the plan's end not known because of that?
    fn is_due_to(&self, unread: &Unread) -> bool {
        self.group && is_of_groups(unread) || self.rights && is_of_rights(unread)
    }
}

fn is_of_groups(unread: &Unread) -> bool {
    unread.resource == "operatorgroups.operators.coreos.com"
}

fn is_of_rights(unread: &Unread) -> bool {
    unread.resource.ends_with(".rbac.authorization.k8s.io")
}

/// How the plan itself ends.
fn plan(trial: &Trial, explanation: &Explanation, unknown: &Unknown, reasons: &mut Vec<Because>) {
    let name = object::name(&trial.plan);
    let is_told = |reason: &Reason| {
        let (Reason::InstallPlanFailed { message, .. } | Reason::InstallPlanRetries { message, .. }) = reason else {
            return false;
        };
        let unserved = message.contains("api-server resource not found");
        unserved && reasons_have(reasons, "unserved")
            || (message.contains("existing CRs") || message.contains("risk of data loss"))
                && reasons_have(reasons, "crd")
    };
    let mut found: Vec<Because> = Vec::new();
    for reason in trial.reasons(Controller::InstallPlan, name) {
        if is_told(reason) || matches!(reason, Reason::OptionalNotCreated { .. } | Reason::Ignored { .. }) {
            continue;
        }
        let result = match reason {
            Reason::BundleUnpacking { .. }
            | Reason::BundleUnpackFailed { .. }
            | Reason::BundleNotGiven { .. }
            | Reason::Missing { .. } => Outcome::Unknown,
            // What may be granted by what could not be read is not missing for certain.
            Reason::RightsMissing { .. } if unknown.rights => Outcome::Unknown,
            Reason::InstallPlanFailed { message, .. } | Reason::InstallPlanRetries { message, .. }
                if unknown.rights && message.contains(" is forbidden") || installplan::is_unknown_scope(message) =>
            {
                Outcome::Unknown
            }
            // The reason is what could not be read, and that is told.
            _ if unknown.group => continue,
            _ => Outcome::WouldFail,
        };
        // How often it is refused in the copy, and when it would be tried again there, is of no interest.
        let mut text = match reason {
            Reason::InstallPlanRetries { namespace, name, message, culprit, .. } => {
                format!("InstallPlan {namespace}/{name} would not get on: {message}{culprit}")
            }
            reason => reason.cause(),
        };
        if !explanation.plan.exists {
            text = text.replace(&format!("InstallPlan {}/{name}", trial.namespace), "the InstallPlan");
        }
        let hint = if result == Outcome::Unknown { String::new() } else { hint(reason) };
        found.push(because(result, "plan", text, hint));
    }
    if trial.subscription.is_some() && trial.plan.is_null() {
        for reason in trial.reasons(Controller::Resolution, &trial.namespace) {
            let result = match reason {
                Reason::CatalogNotReady { .. }
                | Reason::CatalogUnavailable { .. }
                | Reason::CatalogNotGiven { .. }
                | Reason::BundleUnpacking { .. }
                | Reason::BundleUnpackFailed { .. }
                | Reason::BundleNotGiven { .. }
                | Reason::Missing { .. } => Outcome::Unknown,
                _ if unknown.group => continue,
                _ => Outcome::WouldFail,
            };
            let mut hint = hint(reason);
            if let Reason::CatalogNotReady { namespace, name, .. } = reason
                && hint.is_empty()
            {
                hint = stand_in(namespace, name);
            }
            found.push(because(result, "resolution", trial.without_made_up_names(&reason.cause()), hint));
        }
        found.extend(unresolved(trial).filter(|_| !unknown.group));
    }
    reasons.extend(found);
}

fn reasons_have(reasons: &[Because], what: &str) -> bool {
    let counts = |result| matches!(result, Outcome::WouldFail) || what == "unserved";
    reasons.iter().any(|because| because.reason == what && counts(because.result))
}

/// What a person could do. Approval is what they are about to decide.
fn hint(reason: &Reason) -> String {
    match reason {
        Reason::ApprovalNeeded { .. } => String::new(),
        reason => reason.hint().unwrap_or_default(),
    }
}

/// What the Subscription that was asked about says of its resolution.
fn unresolved(trial: &Trial) -> Option<Because> {
    let name = trial.subscription.as_deref()?;
    let subscription = trial.subscriptions().find(|s| object::name(s) == name)?;
    let failed = Conditions::of(subscription).holding(condition_type::RESOLUTION_FAILED)?;
    let already = trial.reasons(Controller::Resolution, &trial.namespace);
    if already.iter().any(|reason| matches!(reason, Reason::Unsatisfiable { .. })) {
        return None;
    }
    let message = trial.without_made_up_names(failed.message());
    Some(because(Outcome::WouldFail, "resolution", message, ""))
}

/// Without the content of its catalog nobody can tell what a Subscription gets.
fn catalog(trial: &Trial, copy: &ClusterCopy, reasons: &mut Vec<Because>) {
    let name = trial.subscription.as_deref().filter(|_| trial.plan.is_null());
    let Some(subscription) = name.and_then(|name| trial.subscriptions().find(|s| object::name(s) == name)) else {
        return;
    };
    let [namespace, source] = ["sourceNamespace", "source"].map(|key| object::text(subscription, &["spec", key]));
    others(trial, copy, reasons);
    // The catalog of a bundle that was asked about is made up, and known.
    if trial.offered.is_some() {
        return;
    }
    if copy.catalogs.contains_key(&(namespace.to_owned(), source.to_owned())) {
        return;
    }
    reasons.retain(|because| because.reason != "resolution");
    let message = format!("the content of catalog {namespace}/{source} is not known");
    reasons.push(because(Outcome::Unknown, "catalog", message, stand_in(namespace, source)));
}

/// OLM resolves nothing while one of the catalogs on offer is down. Those whose content is not known are down in the copy only: what the
/// copy says of them is not known either.
fn others(trial: &Trial, copy: &ClusterCopy, reasons: &mut Vec<Because>) {
    for place in [&trial.namespace, &copy.global] {
        for source in trial.before.api().list(OLM, "CatalogSource", Some(place)) {
            let (namespace, name) = (object::namespace(source), object::name(source));
            if copy.catalogs.contains_key(&(namespace.to_owned(), name.to_owned())) {
                continue;
            }
            let labels = [format!("{name}/{namespace}"), format!("{namespace}/{name}")];
            let is_due_to = |because: &Because| {
                because.reason == "resolution" && labels.iter().any(|label| because.message.contains(label.as_str()))
            };
            if reasons.iter().any(is_due_to) {
                reasons.retain(|because| !is_due_to(because));
                let message = format!(
                    "the content of catalog {namespace}/{name} is not known, and OLM resolves nothing in namespace {} while one of its \
                     catalogs is down",
                    trial.namespace
                );
                reasons.push(because(Outcome::Unknown, "catalog", message, stand_in(namespace, name)));
            }
        }
        if *place == copy.global {
            break;
        }
    }
}

fn stand_in(namespace: &str, catalog: &str) -> String {
    format!("a directory can stand in for it: --catalog {catalog}.{namespace}=DIR")
}

fn unread(trial: &Trial, explanation: &Explanation, unknown: &Unknown, reasons: &mut Vec<Because>) {
    for bundle in explanation.bundles.iter().filter(|bundle| !bundle.unpacked) {
        let message = format!("the content of bundle {} is not known: {}", bundle.csv, bundle.message);
        reasons.retain(|because| !(because.reason == "plan" && because.message.contains(&bundle.csv)));
        reasons.retain(|because| !(because.reason == "resolution" && because.message.contains(&bundle.csv)));
        reasons.push(because(Outcome::Unknown, "unpack", message, ""));
    }
    for unread in &explanation.unread {
        let plural = |kind: &str, group: &str| {
            let found = trial.before.api().kind(group, kind).or_else(|| trial.after.api().kind(group, kind));
            found.map(crate::sim::ResourceKind::resource)
        };
        let matters = explanation.objects.iter().any(|o| {
            let same_place = unread.namespace.is_empty() || unread.namespace == o.namespace;
            same_place && plural(&o.gvk.kind, &o.gvk.group).as_ref() == Some(&unread.resource)
        });
        let result = if matters || unknown.is_due_to(unread) { Outcome::Unknown } else { Outcome::Safe };
        reasons.push(because(result, "unread", unread.message.clone(), ""));
    }
}

/// Are the versions that were asked for those that the Subscription gets?
fn wanted(trial: &Trial, explanation: &Explanation, reasons: &mut Vec<Because>) {
    let Some((package, range)) = &trial.wanted else { return };
    let fits = |version: &str| version::parse_tolerant(version).is_ok_and(|version| range.contains(&version));
    let gets = explanation.csvs.iter().find(|csv| csv.package == *package).and_then(|csv| csv.to.as_deref());
    let subscription = trial.subscription.as_deref().unwrap_or_default();
    let message = match gets {
        Some(version) if fits(version) => return,
        Some(version) => format!("Subscription {subscription} gets version {version} next, which is none of {range}"),
        None => format!("Subscription {subscription} gets no other version of {package} now"),
    };
    reasons.push(because(Outcome::WouldFail, "range", message, ""));
}

fn operators(trial: &Trial, explanation: &Explanation, unknown: &Unknown, reasons: &mut Vec<Because>) {
    let fails = reasons.iter().any(|because| because.result == Outcome::WouldFail || because.reason == "unserved");
    let fails = fails || unknown.group;
    for csv in &explanation.csvs {
        match csv.change {
            CsvChange::Remove => {
                let message = format!("operator {} goes, and nothing takes its place", csv.name);
                reasons.push(because(Outcome::NeedsDecision, "removal", message, ""));
            }
            CsvChange::Downgrade => {
                let from = csv.from.as_deref().unwrap_or_default();
                let message = format!("{} is older than version {from}, which it replaces", csv.name);
                reasons.push(because(Outcome::NeedsDecision, "downgrade", message, ""));
            }
            _ => {}
        }
        // A plan that fails leaves its operators unfinished.
        let is_well = matches!(csv.phase.as_str(), "Succeeded" | "Replacing" | "Deleting");
        if !is_well && !fails && csv.change != CsvChange::Remove && !csv.phase.is_empty() {
            let told = trial.reasons(Controller::ClusterServiceVersion, &csv.name);
            reasons.push(match unknown_apis(told) {
                Some(unknown) => because(Outcome::Unknown, "discovery", unknown.to_string(), hint(unknown)),
                None => {
                    let message = format!("{} would stay {}: {}", csv.name, csv.phase, csv.message);
                    because(Outcome::WouldFail, "csv", message, "")
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
            format!("the plan is for several operators, and approving it means all of them: {}", bystanders.join(", "))
        } else {
            let ride = if bystanders.len() == 1 { "rides along: it is" } else { "ride along: they are" };
            format!("{} {ride} in the same plan, and would be installed as well", bystanders.join(", "))
        };
        let hint = "all Subscriptions of a namespace share a plan: namespaces of their own keep operators apart";
        reasons.push(because(Outcome::NeedsDecision, "bystanders", message, hint));
    }
    if explanation.plan.superseded {
        let message = "there is a newer InstallPlan in the namespace: this one is of the past";
        reasons.push(because(Outcome::NeedsDecision, "superseded", message, "explain the newer one"));
    }
}

/// What keeps a ClusterServiceVersion from going on, if it is only that nobody knows whether a kind is served.
fn unknown_apis(told: &[Reason]) -> Option<&Reason> {
    let [unknown @ Reason::ApisUnknown { counts: false, .. }, others @ ..] = told else { return None };
    others.iter().all(|reason| matches!(reason, Reason::ApisUnknown { .. })).then_some(unknown)
}

fn rights(explanation: &Explanation, reasons: &mut Vec<Because>) {
    let mut accounts: BTreeMap<&str, Vec<&Right>> = BTreeMap::new();
    for right in explanation.rbac.gained.iter().filter(|right| !right.escalations.is_empty()) {
        accounts.entry(&right.account).or_default().push(right);
    }
    for (account, marked) in accounts {
        let mut kinds: Vec<_> = marked.iter().flat_map(|right| right.escalations.iter().copied()).collect();
        kinds.sort();
        kinds.dedup();
        let kinds: Vec<&str> = kinds.into_iter().map(Escalation::words).collect();
        let message = format!("{account} gains rights that reach far: {}", kinds.join(", "));
        reasons.push(because(Outcome::NeedsDecision, "escalation", message, ""));
    }
}

/// What reaches far by what it is, by the operator that it belongs to.
fn powers(explanation: &Explanation, reasons: &mut Vec<Because>) {
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
        let message = format!("{of} brings what reaches out of its namespace: {}", kinds.join(", "));
        reasons.push(because(Outcome::NeedsDecision, "escalation", message, ""));
    }
}

/// What is worth a word, and nobody has to decide.
fn notes(trial: &Trial, explanation: &Explanation, reasons: &mut Vec<Because>) {
    let mut note = |reason: &str, message: String| reasons.push(because(Outcome::Safe, reason, message, ""));
    for message in installplan::unheeded(&trial.plan) {
        note("unheeded", message);
    }
    for optional in explanation.optional.iter().filter(|optional| optional.skipped) {
        let message = format!("the plan goes on without optional {} {}", optional.gvk.kind, optional.name);
        note("optional", format!("{message}: {}", optional.message));
    }
    for deprecation in &explanation.deprecations {
        let Deprecation { what, name, message, .. } = deprecation;
        note("deprecated", format!("{what} {name} is deprecated: {message}"));
    }
    if explanation.plan.exists && explanation.plan.approved && explanation.plan.phase == "RequiresApproval" {
        note(
            "approved",
            "the plan is approved and not executed yet: a controller executes it as soon as it runs".to_owned(),
        );
    }
    let deleted = explanation.objects.iter().filter(|o| o.change == Change::Delete && o.by == super::By::Step).count();
    if deleted > 0 {
        note("deletion", format!("{deleted} objects are deleted"));
    }
    if trial.plan.is_null() && reasons.is_empty() {
        let message = "what is wanted is there, and no newer version is on offer";
        reasons.push(because(Outcome::Safe, "nothing", message, ""));
    } else if !trial.plan.is_null() && InstallPlan::of(&trial.plan).phase() == Phase::Complete {
        reasons.push(because(Outcome::Safe, "complete", "the plan is complete: there is nothing left to do", ""));
    }
}
