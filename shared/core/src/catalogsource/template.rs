//! The annotation `olm.catalogImageTemplate`: an image reference that contains the cluster's version
//! (olm-behaviour/catalogsource.md#image-templates).

use serde_json::{Value, json};

use super::Work;
use crate::api::catalog_source::CatalogSource;
use crate::api::conditions::{self, Conditions};
use crate::api::names::is_image_reference;
use crate::api::object;
use crate::plan::Action;
use crate::world::Reader;

const ANNOTATION: &str = "olm.catalogImageTemplate";
const CONDITIONS: [&str; 2] = ["TemplatesHaveResolved", "ResolvedImage"];
/// OLM's replacement for an unknown part of the version.
const MISSING: &str = "missing";

/// Sets the resolved image in the spec, as the returned update, or otherwise the conditions in the status.
pub(super) fn apply(world: &Reader<'_>, work: &mut Work<'_>) -> Option<Action> {
    let Some(template) = object::annotation(work.source, ANNOTATION).filter(|t| !t.is_empty()) else {
        forget(work);
        return None;
    };
    let (image, unresolved) = fill(template, world.server_version().unwrap_or_default());
    let is_reference = is_image_reference(&image);
    if unresolved.is_empty() && is_reference {
        if CatalogSource::new(work.source).image() != image {
            let mut new = work.source.clone();
            object::map_mut(&mut new, &["spec"]).insert("image".to_owned(), image.into());
            return Some(Action::Update(new));
        }
        let reason = "AllTemplatesResolved";
        set(work, CONDITIONS[0], true, reason, "catalog image reference was successfully resolved");
        set(work, CONDITIONS[1], true, reason, &image);
        return None;
    }
    let mut message = "cannot construct catalog image reference".to_owned();
    if !unresolved.is_empty() {
        let names: Vec<String> = unresolved.iter().map(|name| format!("\"{name}\"")).collect();
        message += &format!(", because variable(s) {} could not be resolved", names.join(", "));
    }
    if !is_reference {
        let joined = if unresolved.is_empty() { ", because" } else { " and" };
        message += &format!("{joined} one or more template(s) has improper syntax");
    }
    for condition in CONDITIONS {
        set(work, condition, false, "UnableToResolve", &message);
    }
    None
}

/// Returns the template with its variables replaced by parts of a `gitVersion`, and the unresolved variables.
fn fill(template: &str, version: &str) -> (String, Vec<String>) {
    let numbers = version.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
    let mut numbers = numbers.split('.').map(|n| if n.is_empty() { MISSING } else { n });
    let mut image = template.to_owned();
    let mut unresolved = Vec::new();
    for part in ["major", "minor", "patch"] {
        let variable = format!("{{kube_{part}_version}}");
        let value = numbers.next().unwrap_or(MISSING);
        if image.contains(&variable) && value == MISSING {
            unresolved.push(format!("kube_{part}_version"));
        }
        image = image.replace(&variable, value);
    }
    (image, unresolved)
}

fn set(work: &mut Work<'_>, kind: &str, status: bool, reason: &str, message: &str) {
    let status = conditions::status(status);
    let mut conditions = Conditions::new(work.source).json().to_vec();
    if let Some(written) = work.status.get("conditions").and_then(Value::as_array) {
        conditions.clone_from(written);
    }
    let wanted = json!({ "type": kind, "status": status, "reason": reason, "message": message });
    let now = object::time(work.now);
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(known) if object::covers(known, &wanted) => return,
        Some(known) => {
            if known["status"] != status {
                known["lastTransitionTime"] = now.into();
            }
            for key in ["status", "reason", "message"] {
                known[key] = wanted[key].clone();
            }
        }
        None => {
            let mut new = wanted;
            new["lastTransitionTime"] = now.into();
            conditions.push(new);
        }
    }
    work.status.insert("conditions".to_owned(), conditions.into());
}

fn forget(work: &mut Work<'_>) {
    let Some(conditions) = work.status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    conditions::remove(conditions, &CONDITIONS);
    if conditions.is_empty() {
        work.status.remove("conditions");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_parts_of_the_servers_version() {
        let filled = |template: &str, version: &str| fill(template, version);
        let template = "registry.example.com/catalog:v{kube_major_version}.{kube_minor_version}.{kube_patch_version}";
        assert_eq!(filled(template, "v1.36.3-rc.1+k3s"), ("registry.example.com/catalog:v1.36.3".to_owned(), vec![]));
        assert_eq!(filled("a:{kube_minor_version}", "").1, ["kube_minor_version"]);
        assert!(is_image_reference("registry.example.com:5000/a/b:v1.36"));
        for wrong in ["", "a b", "a/{group}/b", "/a", "a:"] {
            assert!(!is_image_reference(wrong), "{wrong}");
        }
    }
}
