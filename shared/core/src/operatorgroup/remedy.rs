//! Ways to resolve a conflict of two OperatorGroups, as commands.
//!
//! *Guarantee*: a suggested patch of targets leaves the two groups without a common namespace.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::intersection::{Clash, Holder, Intersections, Scope};
use crate::api::labels::PROVIDED_APIS;
use crate::api::object;
use crate::visible::word;
use crate::world::{Reader, kind};

/// A way to resolve a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// A description, as a sentence without a full stop.
    pub description: String,
    /// The command; empty when the user has to make a further decision.
    pub command: String,
}

fn remedy(description: String, command: String) -> Remedy {
    Remedy { description, command }
}

/// Returns the ways to resolve a conflict, the smallest change to the group that has to give way first.
pub fn remedies(world: &Reader<'_>, all: &Intersections<'_>, clash: &Clash) -> Vec<Remedy> {
    let pair = clash.pair;
    let gives_way = gives_way(all, clash);
    let stays = if gives_way == pair.a { pair.b } else { pair.a };
    let scopes = all.scopes();
    let mut remedies = Vec::new();
    for (at, other) in [(gives_way, stays), (stays, gives_way)] {
        remedies.extend(unprovided(&scopes[at], clash));
        if remedies.is_empty() || at == gives_way {
            remedies.extend(narrowed(all, at, other));
        }
    }
    for member in &scopes[gives_way].members {
        if member.provides.0.iter().any(|api| clash.apis.contains(api)) {
            remedies.push(uninstalled(world, &scopes[gives_way], object::name(member.csv)));
        }
    }
    if remedies.is_empty() {
        let names = [stays, gives_way].map(|at| label(&scopes[at]));
        remedies.push(remedy(
            format!("change the targets of {} and {} so that they share no namespaces", names[0], names[1]),
            String::new(),
        ));
    }
    remedies
}

/// Returns the group that has to give way: the one that does not hold the APIs, or the younger one.
pub fn gives_way(all: &Intersections<'_>, clash: &Clash) -> usize {
    let pair = clash.pair;
    let holders: BTreeSet<Option<usize>> = clash
        .apis
        .iter()
        .map(|api| match all.holder(pair, api) {
            Holder::One(holder) => Some(holder),
            Holder::Both | Holder::None => None,
        })
        .collect();
    let keeps = match holders.iter().collect::<Vec<_>>()[..] {
        [Some(holder)] => Some(*holder),
        _ => all.first(pair),
    };
    if keeps == Some(pair.b) { pair.a } else { pair.b }
}

/// `NAMESPACE/NAME`
fn label(scope: &Scope<'_>) -> String {
    format!("{}/{}", scope.group.namespace(), scope.group.name())
}

/// Removes APIs from an annotation that no member provides.
fn unprovided(scope: &Scope<'_>, clash: &Clash) -> Option<Remedy> {
    let provides = |api: &&String| scope.members.iter().any(|member| member.provides.0.contains(*api));
    let idle: BTreeSet<&String> =
        clash.apis.iter().filter(|api| scope.annotated.0.contains(*api)).filter(|api| !provides(api)).collect();
    if idle.is_empty() {
        return None;
    }
    let rest: Vec<&str> = scope.annotated.0.iter().filter(|api| !idle.contains(api)).map(String::as_str).collect();
    let kept =
        if scope.group.is_static() { "it is static, and no member provides them" } else { "no member provides them" };
    Some(remedy(
        format!("remove the APIs from the annotation of {}: {kept}", label(scope)),
        format!(
            "kubectl annotate operatorgroup {} -n {} --overwrite {}",
            word(scope.group.name()),
            word(scope.group.namespace()),
            word(&format!("{PROVIDED_APIS}={}", rest.join(","))),
        ),
    ))
}

/// Removes the namespaces that two groups share from the targets of one.
fn narrowed(all: &Intersections<'_>, at: usize, other: usize) -> Option<Remedy> {
    let scope = &all.scopes()[at];
    if scope.is_global() {
        return None;
    }
    let shared = all.shared(super::intersection::Pair::new(at, other))?;
    let rest: Vec<&str> = scope.targets.iter().map(String::as_str).filter(|target| !shared.contains(target)).collect();
    // Its own namespace is always included.
    if rest.is_empty() || shared.contains(&scope.group.namespace()) {
        return None;
    }
    let mut patch = json!({ "spec": { "targetNamespaces": rest } });
    if !scope.group.selector().is_null() {
        // OLM ignores a selector next to names.
        patch["spec"]["selector"] = Value::Null;
    }
    let n = shared.len();
    let which = if n == 1 { format!("namespace {}", shared[0]) } else { format!("the {n} namespaces that they share") };
    Some(remedy(
        format!("remove {which} from the targets of {}", label(scope)),
        format!(
            "kubectl patch operatorgroup {} -n {} --type merge -p {}",
            word(scope.group.name()),
            word(scope.group.namespace()),
            word(&patch.to_string()),
        ),
    ))
}

/// Removes a member, with the Subscription that installed it.
fn uninstalled(world: &Reader<'_>, scope: &Scope<'_>, csv: &str) -> Remedy {
    let namespace = scope.group.namespace();
    let mut subscriptions = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|o| o.json());
    let installed = subscriptions
        .find(|s| ["installedCSV", "currentCSV"].iter().any(|field| object::text(s, &["status", field]) == csv));
    let mut objects = vec![word(&format!("clusterserviceversion/{csv}")).into_owned()];
    objects.extend(
        installed.map(|s| word(&format!("subscription.operators.coreos.com/{}", object::name(s))).into_owned()),
    );
    objects.reverse();
    remedy(
        format!("uninstall {csv} from {namespace}"),
        format!("kubectl delete {} -n {}", objects.join(" "), word(namespace)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn group(namespace: &str, spec: &Value, apis: &str, created: &str) -> Value {
        testing::with_metadata(
            testing::operator_group(namespace, "og", spec),
            &json!({"creationTimestamp": created, "annotations": {PROVIDED_APIS: apis}}),
        )
    }

    fn csv(namespace: &str) -> Value {
        let spec = json!({
            "customresourcedefinitions": {"owned": [testing::owned_crd("Rose")]},
            "installModes": testing::install_modes(&testing::ALL_MODES),
        });
        testing::csv(namespace, "op.v1", &spec)
    }

    fn remedy_lines(objects: &[Value]) -> Vec<String> {
        let world = testing::world(objects);
        let reader = Reader::new(&world);
        let all = Intersections::from_world(&reader);
        let clashes = all.clashes();
        let [clash] = &clashes[..] else { panic!("{clashes:?}") };
        remedies(&reader, &all, clash).into_iter().map(|r| format!("{}: {}", r.description, r.command)).collect()
    }

    const ROSE: &str = "Rose.v1.x.io";

    #[test]
    fn the_younger_group_gives_way() {
        let a = group("a", &json!({"targetNamespaces": ["x", "y"]}), ROSE, "2026-01-02T00:00:00Z");
        let b = group("b", &json!({"targetNamespaces": ["x"]}), ROSE, "2026-01-01T00:00:00Z");
        let narrower = "remove namespace x from the targets of a/og: kubectl patch operatorgroup og -n a --type merge -p \
                        '{\"spec\":{\"targetNamespaces\":[\"y\"]}}'";
        let subscription =
            testing::with_status(testing::subscription("a", "s", &Value::Null), &json!({"installedCSV": "op.v1"}));
        let gone = "uninstall op.v1 from a: kubectl delete subscription.operators.coreos.com/s clusterserviceversion/op.v1 -n a";
        assert_eq!(remedy_lines(&[a, csv("a"), b, csv("b"), subscription]), [narrower, gone]);
    }

    #[test]
    fn a_selector_is_replaced_by_names() {
        let a = group("a", &json!({"selector": {"matchLabels": {"team": "roses"}}}), ROSE, "2026-01-02T00:00:00Z");
        let b = group("b", &json!({"targetNamespaces": ["x"]}), ROSE, "2026-01-01T00:00:00Z");
        let labels = json!({"team": "roses"});
        let namespace = |name: &str| testing::labelled_namespace(name, &labels);
        let lines = remedy_lines(&[a, csv("a"), b, csv("b"), namespace("x"), namespace("y")]);
        assert!(lines[0].ends_with("-p '{\"spec\":{\"selector\":null,\"targetNamespaces\":[\"y\"]}}'"), "{lines:?}");
    }

    #[test]
    fn the_group_that_does_not_hold_the_apis_gives_way() {
        let a = group("a", &json!({}), ROSE, "2026-01-02T00:00:00Z");
        let b = group("b", &json!({"targetNamespaces": ["b"]}), "", "2026-01-01T00:00:00Z");
        // Neither can be narrowed: a targets everything, and b only its own namespace.
        assert_eq!(
            remedy_lines(&[a, csv("a"), b, csv("b")]),
            ["uninstall op.v1 from b: kubectl delete clusterserviceversion/op.v1 -n b"]
        );
    }

    #[test]
    fn unneeded_annotations_are_removed() {
        let a = group(
            "a",
            &json!({"targetNamespaces": ["x"], "staticProvidedAPIs": true}),
            "Rose.v1.x.io,Tulip.v1.x.io",
            "2026-01-02T00:00:00Z",
        );
        let b = group("b", &json!({"targetNamespaces": ["x", "y"]}), "", "2026-01-01T00:00:00Z");
        let lines = remedy_lines(&[a, b, csv("b")]);
        assert!(lines[0].starts_with("remove namespace x from the targets of b/og: "), "{lines:?}");
        assert!(
            lines
                .iter()
                .any(|t| t
                    .ends_with("kubectl annotate operatorgroup og -n a --overwrite olm.providedAPIs=Tulip.v1.x.io")),
            "{lines:?}"
        );
    }
}
