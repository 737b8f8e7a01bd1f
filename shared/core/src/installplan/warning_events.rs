//! Events about warnings of the API server while steps are applied, such as deprecated APIs (olm-behaviour/processes.md#events).

use serde_json::{Value, json};

use crate::api::install_plan::{InstallPlan, Step};
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::go_format;
use crate::plan::{Action, Emit};

const REASON: &str = "AppliedWithWarnings";

/// Returns the Event about the step of an InstallPlan that an action belongs to; `None` if it belongs to no step, or there are no warnings.
pub fn warning_event(plan: &Value, action: &Action, warnings: &[String]) -> Option<Emit> {
    if warnings.is_empty() {
        return None;
    }
    let steps = InstallPlan::new(plan).steps_json();
    let (index, step) = steps.iter().enumerate().find(|(_, step)| is_for(action, step))?;
    let resource = |key| object::text(step, &["resource", key]);
    let (kind, name) = (resource("kind"), go_format::quote(resource("name")));
    let (count, texts) = (warnings.len(), warnings.join(", "));
    let message = match Step::new(step).resolving() {
        "" => format!("{count} warning(s) generated during operator installation ({kind} {name}): {texts}"),
        csv => {
            let csv = go_format::quote(csv);
            format!("{count} warning(s) generated during installation of operator {csv} ({kind} {name}): {texts}")
        }
    };
    let regarding = json!({
        "apiVersion": object::text(plan, &["apiVersion"]),
        "kind": object::kind(plan),
        "metadata": {
            "name": object::name(plan), "namespace": object::namespace(plan), "uid": object::uid(plan),
            "resourceVersion": object::resource_version(plan),
        },
        "fieldPath": format!("status.plan[{index}]"),
    });
    Some(Emit { regarding, warning: true, reason: REASON.to_owned(), message })
}

/// Reports whether the action creates or changes the object of the step.
fn is_for(action: &Action, step: &Value) -> bool {
    let resource = |key| object::text(step, &["resource", key]);
    let kind = match resource("kind") {
        "BundleSecret" => "Secret",
        kind => kind,
    };
    let target = action.target();
    let generated = || match action {
        Action::Create(object) => Metadata::new(object).generate_name() == resource("name"),
        Action::As(_, action) => is_for(action, step),
        _ => false,
    };
    let is_named = if target.name.is_empty() { generated() } else { target.name == resource("name") };
    target.gvk.kind == kind && target.gvk.group == resource("group") && is_named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Account;

    fn plan() -> Value {
        let step = |csv: &str, group: &str, kind: &str, name: &str| json!({ "resolving": csv, "resource": { "group": group, "version": "v1", "kind": kind, "name": name } });
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": { "name": "install-abcde", "namespace": "garden", "uid": "u", "resourceVersion": "7" },
            "status": { "plan": [
                step("rose.v1", "operators.coreos.com", "ClusterServiceVersion", "rose.v1"),
                step("rose.v1", "policy", "PodDisruptionBudget", "rose"),
                step("", "", "BundleSecret", "thorn\"s"),
            ] },
        })
    }

    fn made(api_version: &str, kind: &str, name: &str) -> Action {
        Action::Create(
            json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "namespace": "garden" } }),
        )
    }

    #[test]
    fn warnings_about_a_step_have_olms_message() {
        let warnings = ["it is deprecated".to_owned(), "and useless".to_owned()];
        let account = Account { namespace: "garden".to_owned(), name: "gardener".to_owned() };
        let budget = Action::As(account, Box::new(made("policy/v1beta1", "PodDisruptionBudget", "rose")));
        let emit = warning_event(&plan(), &budget, &warnings).unwrap();
        assert_eq!(
            emit.message,
            "2 warning(s) generated during installation of operator \"rose.v1\" (PodDisruptionBudget \"rose\"): it is deprecated, and useless"
        );
        let event = emit.to_event(jiff::Timestamp::UNIX_EPOCH);
        assert_eq!((&event["type"], &event["reason"]), (&"Warning".into(), &"AppliedWithWarnings".into()));
        assert_eq!(
            event["involvedObject"],
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan", "namespace": "garden",
                "name": "install-abcde", "uid": "u", "resourceVersion": "7", "fieldPath": "status.plan[1]",
            })
        );
        let secret = warning_event(&plan(), &made("v1", "Secret", "thorn\"s"), &warnings[..1]).unwrap();
        assert_eq!(
            secret.message,
            "1 warning(s) generated during operator installation (BundleSecret \"thorn\\\"s\"): it is deprecated"
        );
    }

    #[test]
    fn warnings_about_other_objects_are_not_reported() {
        let warnings = ["w".to_owned()];
        assert_eq!(warning_event(&plan(), &made("v1", "Secret", "other"), &warnings), None);
        assert_eq!(
            warning_event(&plan(), &made("other.example.com/v1", "PodDisruptionBudget", "rose"), &warnings),
            None
        );
        assert_eq!(warning_event(&plan(), &made("policy/v1", "PodDisruptionBudget", "rose"), &[]), None);
        assert_eq!(warning_event(&plan(), &Action::UpdateStatus(plan()), &warnings), None);
    }
}
