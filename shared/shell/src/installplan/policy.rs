//! The conditions under which a plan may be approved.

use olm_core::api::install_plan::Phase;
use olm_core::constraint::Policy;
use olm_core::explain::{Explanation, VerdictResult};
use olm_core::installplan::summary::PlanSummary;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cli::CliError;

/// The conditions that a plan must meet.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The hash of the explanation that was reviewed, or a prefix of it.
    pub explained: Option<String>,
    /// Whether the plan may contain unrelated operators that were not requested.
    pub allow_bystanders: bool,
    /// Whether plans may be approved that would fail, or whose result is unknown because OperatorGroups cannot be read.
    pub allow_failing: bool,
    /// CEL expressions over the explanation that must be true.
    pub policies: Vec<String>,
    /// The only ClusterServiceVersions that the plan may install; empty means any.
    pub only_csvs: Vec<String>,
}

/// Why a plan is not approved, and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) why: String,
    pub(crate) hint: String,
}

impl Refusal {
    pub(super) fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), hint: hint.into() }
    }
}

/// The minimum length of a hash prefix, which is enough to be unique.
const HASH: usize = 12;

/// Hint about the most frequent cause of evaluation errors.
const NULL: &str = "x.from is null for a new operator; test it with x.from == null";

/// Compiles policies over explanations.
///
/// # Errors
/// A policy is invalid.
pub(super) fn policies(texts: &[String]) -> Result<Vec<Policy>, CliError> {
    let example = serde_json::to_value(Explanation::default()).unwrap_or_default();
    let policies = texts.iter().map(|text| {
        Policy::compile(text, &example).map_err(|error| {
            CliError::usage(format!("--if is not a valid policy: {error}"))
                .hint("its variables are the fields of: kubectl olm install-plan explain -o json")
        })
    });
    policies.collect()
}

/// The result of evaluating a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyResult {
    /// The policy as it was written.
    pub policy: String,
    /// Whether the policy holds; `null` if it cannot be evaluated.
    pub holds: Option<bool>,
    /// The part that does not hold: the first operand of `&&` that is false; empty if the policy holds.
    pub failing: String,
    /// The evaluation error; empty if there is none.
    pub message: String,
}

impl PolicyResult {
    /// Evaluates a policy on an explanation.
    pub(super) fn new(policy: &Policy, explanation: &Value) -> Self {
        let tried =
            Self { policy: policy.text().to_owned(), holds: None, failing: String::new(), message: String::new() };
        match policy.failing(explanation) {
            Ok(None) => Self { holds: Some(true), ..tried },
            Ok(Some(failing)) => Self { holds: Some(false), failing, ..tried },
            Err(error) => Self { message: format!("{error}; {NULL}"), ..tried },
        }
    }
}

impl std::fmt::Display for PolicyResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { policy, holds, failing, message } = self;
        match holds {
            Some(true) => write!(f, "holds: {policy}"),
            Some(false) if failing == policy => write!(f, "does not hold: {policy}"),
            Some(false) => write!(f, "does not hold: {failing} (part of {policy})"),
            None => write!(f, "cannot be evaluated: {policy}: {message}"),
        }
    }
}

/// Parsed [`Terms`].
pub(crate) struct Understood {
    explained: Option<String>,
    allow_bystanders: bool,
    pub(super) allow_failing: bool,
    policies: Vec<Policy>,
    only_csvs: Vec<String>,
}

impl Terms {
    /// Parses the terms.
    ///
    /// # Errors
    /// A policy or the hash is invalid.
    pub(crate) fn understood(&self) -> Result<Understood, CliError> {
        let policies = policies(&self.policies)?;
        let explained = self.explained.as_deref().map(|hash| hash.strip_prefix("sha256:").unwrap_or(hash));
        if let Some(hash) = explained
            && (hash.len() < HASH || !hash.chars().all(|c| c.is_ascii_hexdigit()))
        {
            return Err(CliError::usage(format!("--explained {hash:?} is not the hash of an explanation"))
                .hint(format!("explain prints the hash; its first {HASH} characters are enough")));
        }
        Ok(Understood {
            explained: explained.map(str::to_owned),
            allow_bystanders: self.allow_bystanders,
            allow_failing: self.allow_failing,
            policies,
            only_csvs: self.only_csvs.clone(),
        })
    }
}

/// Returns why the plan in its current state cannot be approved, if so.
pub(super) fn summary_refusal(name: &str, summary: &PlanSummary) -> Option<Refusal> {
    if summary.left_over {
        let hint = format!("delete it: kubectl delete installplan {name}");
        return Some(Refusal::new("it is left over from operators that were uninstalled", hint));
    }
    if let Some(newer) = &summary.superseded_by {
        let hint = format!("it would install outdated versions; use {newer} instead, and delete {name}");
        return Some(Refusal::new(format!("superseded by {newer}"), hint));
    }
    (summary.phase != Phase::RequiresApproval).then(|| {
        let why =
            summary.reason.as_ref().map_or_else(|| "it does not wait for approval".to_owned(), ToString::to_string);
        Refusal::new(why, "only plans that were created by OLM and wait for approval can be approved")
    })
}

impl Understood {
    /// Returns which condition the plan does not meet; `None` if it may be approved.
    ///
    /// # Errors
    /// A policy cannot be evaluated.
    pub(super) fn refusal(
        &self,
        summary: &PlanSummary,
        explanation: &Explanation,
    ) -> Result<Option<Refusal>, CliError> {
        if let Some(hash) = &self.explained
            && !explanation.hash.trim_start_matches("sha256:").starts_with(hash.as_str())
        {
            let why = format!("its effect has changed since it was explained; the hash is now {}", explanation.hash);
            return Ok(Some(Refusal::new(
                why,
                "explain it again and review the changes; the hash also differs between users with different read permissions",
            )));
        }
        if let Some(refusal) = failing(explanation).filter(|_| !self.allow_failing) {
            return Ok(Some(refusal));
        }
        let others = summary.csvs.iter().map(|csv| csv.to.as_str());
        let others: Vec<&str> = others.filter(|csv| !self.only_csvs.iter().any(|only| only == csv)).collect();
        if !self.only_csvs.is_empty() && !others.is_empty() {
            let why = format!("it installs more than {}: {}", self.only_csvs.join(", "), others.join(", "));
            return Ok(Some(Refusal::new(why, "to allow these, name them with --only-csv as well")));
        }
        self.refusal_of_effects(explanation)
    }

    /// Returns which condition a plan that does not exist yet would not meet; `None` if it may be approved.
    ///
    /// # Errors
    /// A policy cannot be evaluated.
    pub(crate) fn refusal_in_advance(&self, explanation: &Explanation) -> Result<Option<Refusal>, CliError> {
        match failing(explanation).filter(|_| !self.allow_failing) {
            Some(refusal) => Ok(Some(refusal)),
            None => self.refusal_of_effects(explanation),
        }
    }

    /// Returns which condition on bystanders and policies is not met.
    fn refusal_of_effects(&self, explanation: &Explanation) -> Result<Option<Refusal>, CliError> {
        let riding = explanation.csvs.iter().filter(|csv| csv.bystander).map(|csv| csv.name.as_str());
        let riding: Vec<&str> = riding.filter(|csv| !self.only_csvs.iter().any(|only| only == csv)).collect();
        if !riding.is_empty() && !self.allow_bystanders {
            let why = format!("it contains operators that do not depend on each other: {}", riding.join(", "));
            let hint = "a plan is approved as a whole; allow all its operators with --allow-bystanders, or name them with --only-csv";
            return Ok(Some(Refusal::new(why, hint)));
        }
        if self.policies.is_empty() {
            return Ok(None);
        }
        let document = serde_json::to_value(explanation).unwrap_or_default();
        for policy in &self.policies {
            match policy.failing(&document) {
                Ok(None) => {}
                Ok(Some(part)) => {
                    let hint = if part == policy.text() {
                        "explain --if evaluates a policy, and prints what the plan would do".to_owned()
                    } else {
                        format!("this is part of {}; explain --if evaluates a policy", policy.text())
                    };
                    return Ok(Some(Refusal::new(
                        format!("the policy does not hold: {part}{}", marks(explanation)),
                        hint,
                    )));
                }
                Err(error) => {
                    return Err(
                        CliError::input(format!("policy {} cannot be evaluated: {error}", policy.text())).hint(NULL)
                    );
                }
            }
        }
        Ok(None)
    }
}

/// Returns the findings about the plan, to append to the policy that it does not meet.
fn marks(explanation: &Explanation) -> String {
    let reasons = explanation.verdict.reasons.iter().filter(|because| because.result != VerdictResult::Safe);
    let messages: Vec<&str> = reasons.map(|because| because.message.as_str()).collect();
    if messages.is_empty() { String::new() } else { format!(": {}", messages.join("; ")) }
}

/// Returns a refusal if the plan would fail.
fn failing(explanation: &Explanation) -> Option<Refusal> {
    let verdict = &explanation.verdict;
    if verdict.result != VerdictResult::WouldFail {
        return None;
    }
    let worst = verdict.reasons.iter().find(|because| because.result == VerdictResult::WouldFail);
    let (message, hint) = worst.map_or(("", ""), |because| (&because.message, &because.hint));
    let why = format!("it would fail: {message}");
    let hint = if hint.is_empty() { String::new() } else { format!("{hint}; ") };
    Some(Refusal::new(why.trim_end_matches(": "), format!("{hint}to approve it anyway, pass --allow-failing")))
}

#[cfg(test)]
mod tests {
    use olm_core::explain::{Csv, VerdictReason};
    use olm_core::installplan::summary;
    use olm_core::settings::Settings;
    use olm_core::world::{Reader, World};
    use serde_json::json;

    use super::*;

    fn plan(phase: &str, generation: i64) -> serde_json::Value {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {"namespace": "garden", "name": format!("install-{generation}")},
            "spec": {"approval": "Manual", "approved": false, "generation": generation, "clusterServiceVersionNames": ["rose", "pot"]},
            "status": {"phase": phase},
        })
    }

    fn standing_of(phase: &str, with_newer: bool) -> PlanSummary {
        let mut world = World::new();
        world.apply(plan(phase, 1));
        if with_newer {
            world.apply(plan("RequiresApproval", 2));
        }
        summary::summarize(&Settings::default(), &Reader::new(&world), &plan(phase, 1))
    }

    fn explanation(bystander: bool) -> Explanation {
        let csv = |name: &str| Csv {
            name: name.to_owned(),
            to: Some("2.0.0".to_owned()),
            from: Some("1.0.0".to_owned()),
            bystander,
            ..Csv::default()
        };
        Explanation {
            csvs: vec![csv("rose"), csv("pot")],
            hash: "sha256:0123456789abcdef".to_owned(),
            ..Explanation::default()
        }
    }

    #[test]
    fn plans_that_cannot_be_approved_are_refused() {
        assert_eq!(summary_refusal("install-1", &standing_of("RequiresApproval", false)), None);
        let refused = summary_refusal("install-1", &standing_of("RequiresApproval", true)).unwrap();
        assert_eq!(refused.why, "superseded by install-2");
        assert!(summary_refusal("install-1", &standing_of("", false)).unwrap().why.contains("no steps"));
    }

    #[test]
    fn every_term_is_checked() {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let none = Terms::default();
        for (terms, bystander, why) in [
            (none.clone(), false, None),
            (none.clone(), true, Some("do not depend on each other: rose, pot")),
            (Terms { allow_bystanders: true, ..none.clone() }, true, None),
            (Terms { only_csvs: own(&["rose", "pot"]), ..none.clone() }, true, None),
            (Terms { only_csvs: own(&["rose"]), ..none.clone() }, false, Some("it installs more than rose: pot")),
            (Terms { explained: Some("sha256:0123456789abcdef".to_owned()), ..none.clone() }, false, None),
            (Terms { explained: Some("0123456789ab".to_owned()), ..none.clone() }, false, None),
            (
                Terms { explained: Some("ffffffffffff".to_owned()), ..none.clone() },
                false,
                Some("has changed since it was explained"),
            ),
            (Terms { policies: own(&["rbac.escalates == false"]), ..none.clone() }, false, None),
            (
                Terms {
                    policies: own(&["csvs.all(x, semver(x.to).major() == semver(x.from).major())"]),
                    ..none.clone()
                },
                false,
                Some("the policy does not hold: csvs.all"),
            ),
        ] {
            let refusal =
                terms.understood().unwrap().refusal(&standing_of("RequiresApproval", false), &explanation(bystander));
            match (refusal.unwrap(), why) {
                (None, None) => {}
                (Some(refused), Some(why)) => assert!(refused.why.contains(why), "{}", refused.why),
                (refused, why) => panic!("{terms:?}: {refused:?} instead of {why:?}"),
            }
        }
    }

    #[test]
    fn a_plan_that_would_fail_is_refused_unless_that_is_allowed() {
        let mut failing = explanation(false);
        failing.verdict.result = VerdictResult::WouldFail;
        failing.verdict.reasons = vec![VerdictReason {
            result: VerdictResult::WouldFail,
            message: "namespace garden has several OperatorGroups: a, b".to_owned(),
            hint: "delete one".to_owned(),
            ..VerdictReason::default()
        }];
        let answer =
            |terms: Terms| terms.understood().unwrap().refusal(&standing_of("RequiresApproval", false), &failing);
        let refused = answer(Terms::default()).unwrap().unwrap();
        assert_eq!(refused.why, "it would fail: namespace garden has several OperatorGroups: a, b");
        assert_eq!(refused.hint, "delete one; to approve it anyway, pass --allow-failing");
        assert_eq!(answer(Terms { allow_failing: true, ..Terms::default() }).unwrap(), None);
    }

    #[test]
    fn invalid_terms_are_refused() {
        let own = |text: &str| vec![text.to_owned()];
        assert!(Terms { policies: own("csv.all(x, true)"), ..Terms::default() }.understood().is_err());
        assert!(Terms { explained: Some("yes".to_owned()), ..Terms::default() }.understood().is_err());
        let unclear = Terms { policies: own("csvs.all(x, semver(x.package).major() == 1)"), ..Terms::default() };
        let refusal =
            unclear.understood().unwrap().refusal(&standing_of("RequiresApproval", false), &explanation(false));
        assert!(refusal.unwrap_err().message.contains("invalid semantic version"));
    }
}
