use serde_json::{Value, json};

use super::{Granted, InvalidRule, Work};
use crate::testing::world;
use crate::world::Reader;

fn role(kind: &str, namespace: &str, name: &str, rule: &Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": [rule]})
}

fn binding(kind: &str, namespace: &str, role: (&str, &str), subject: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": role.1, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1}, "subjects": [subject],
    })
}

fn account() -> Value {
    json!({"kind": "ServiceAccount", "namespace": "garden", "name": "rose"})
}

/// Returns whether `asked` is allowed when a ClusterRole grants exactly `granted`.
fn covers(granted: &Value, asked: &Value) -> Result<bool, InvalidRule> {
    let world = world(&[
        role("ClusterRole", "", "r", granted),
        binding("ClusterRoleBinding", "", ("ClusterRole", "r"), &account()),
    ]);
    Granted::to(&Reader::new(&world), ("garden", "rose"), None).allows(asked)
}

#[test]
fn a_rule_is_covered_when_every_combination_is() {
    let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
    let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    let named = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a", "b"]});
    let log = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]});
    let cases = [
        (&pods, json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), true, "part of the verbs"),
        (
            &pods,
            json!({"verbs": ["get", "watch"], "apiGroups": [""], "resources": ["pods"]}),
            false,
            "a verb is missing",
        ),
        (&pods, json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["pods"]}), false, "another group"),
        (
            &pods,
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "secrets"]}),
            false,
            "another resource",
        ),
        (&pods, json!({"verbs": ["get"], "resources": ["pods"]}), true, "no groups means the core group"),
        (
            &pods,
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
            true,
            "a name within all",
        ),
        (&pods, json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}), false, "a star needs a star"),
        (&all, json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), true, "a star has its star"),
        (
            &all,
            json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale"]}),
            true,
            "a star covers all",
        ),
        (
            &named,
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["b"]}),
            true,
            "a granted name",
        ),
        (
            &named,
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}),
            false,
            "all names asked, some granted",
        ),
        (&log, json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}), true, "a subresource"),
        (
            &pods,
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}),
            false,
            "no subresource by its parent",
        ),
        (&all, json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}), false, "resources are no URLs"),
    ];
    for (granted, asked, expected, why) in cases {
        assert_eq!(covers(granted, &asked), Ok(expected), "{why}: {asked}");
    }
    let any_log = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]});
    assert_eq!(covers(&any_log, &log), Ok(false), "OLM compares subresources whole");
}

#[test]
fn urls_match_whole_or_by_prefix() {
    let granted = json!({"verbs": ["get"], "nonResourceURLs": ["/metrics", "/healthz/*"]});
    for (url, expected) in [("/metrics", true), ("/metrics/x", false), ("/healthz/ready", true), ("/healthz", false)] {
        assert_eq!(covers(&granted, &json!({"verbs": ["get"], "nonResourceURLs": [url]})), Ok(expected), "{url}");
    }
    let star = json!({"verbs": ["get"], "nonResourceURLs": ["*"]});
    assert_eq!(covers(&star, &json!({"verbs": ["get"], "nonResourceURLs": ["/any"]})), Ok(true));
}

#[test]
fn invalid_rules_are_errors() {
    let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    assert_eq!(covers(&all, &json!({"resources": ["pods"]})), Err(InvalidRule::NoVerb));
    let both = json!({"verbs": ["get"], "resources": ["pods"], "nonResourceURLs": ["/metrics"]});
    assert_eq!(covers(&all, &both), Err(InvalidRule::ResourcesAndUrls));
    assert_eq!(InvalidRule::NoVerb.to_string(), "rule invalid: policy rule must have at least one verb");
}

#[test]
fn bindings_apply_to_their_namespace_and_subjects() {
    let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
    let user = |name: &str| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name});
    let group =
        json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts:garden"});
    let no_namespace = json!({"kind": "ServiceAccount", "name": "rose"});
    let in_garden = |subject: &Value| {
        vec![role("Role", "garden", "r", &pods), binding("RoleBinding", "garden", ("Role", "r"), subject)]
    };
    let cases = [
        (in_garden(&account()), Some("garden"), true, "in its namespace"),
        (in_garden(&account()), Some("field"), false, "in another namespace"),
        (in_garden(&account()), None, false, "in the whole cluster"),
        (in_garden(&no_namespace), Some("garden"), true, "the subject's namespace defaults to the binding's"),
        (in_garden(&user("system:serviceaccount:garden:rose")), Some("garden"), true, "by user name"),
        (in_garden(&user("rose")), Some("garden"), false, "another user"),
        (in_garden(&group), Some("garden"), false, "groups are ignored"),
        (
            vec![
                role("ClusterRole", "", "r", &pods),
                binding("RoleBinding", "garden", ("ClusterRole", "r"), &account()),
            ],
            Some("garden"),
            true,
            "a ClusterRole bound in the namespace",
        ),
        (
            vec![
                role("ClusterRole", "", "r", &pods),
                binding("ClusterRoleBinding", "", ("ClusterRole", "r"), &account()),
            ],
            Some("field"),
            true,
            "cluster-wide grants hold in every namespace",
        ),
        (vec![binding("ClusterRoleBinding", "", ("ClusterRole", "r"), &account())], None, false, "the role is missing"),
    ];
    for (objects, namespace, expected, why) in cases {
        let world = world(&objects);
        let granted = Granted::to(&Reader::new(&world), ("garden", "rose"), namespace);
        assert_eq!(granted.allows(&pods), Ok(expected), "{why}");
    }
}

/// The maximum number of rules in one object, each for another resource, and for another name.
fn many() -> Vec<Value> {
    let rule = |n: usize| json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": [format!("r{n}")]});
    let named =
        |n: usize| json!({"verbs": ["get"], "apiGroups": ["a"], "resources": ["b"], "resourceNames": [n.to_string()]});
    (0..10_000).map(rule).chain((0..10_000).map(named)).collect()
}

#[test]
fn many_rules_are_compared_with_an_index() {
    let (rules, work) = (many(), Work::default());
    let granted = Granted::from_rules(rules.iter().collect()).sharing(&work);
    for (n, rule) in rules.iter().enumerate() {
        assert_eq!(granted.granting(rule), Ok(vec![n]));
    }
    let asked = json!({"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["r7"]});
    assert_eq!(granted.allows(&asked), Ok(false));
    assert!(work.done() < 30 * 20_000, "{}", work.done());
}

#[test]
fn exceeding_the_limit_is_an_error_and_grants_nothing() {
    let list = |letter: &str| -> Vec<String> { (0..1_000).map(|n| format!("{letter}{n}")).collect() };
    let (verbs, groups, resources) = (list("v"), list("g"), list("r"));
    let asked = json!({"verbs": verbs, "apiGroups": groups, "resources": resources});
    // No single rule grants all of it, two together do.
    let half = |verbs: &[String]| json!({"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]});
    let granted = [half(&verbs[..500]), half(&verbs[500..])];
    let work = Work::default();
    let granted = Granted::from_rules(granted.iter().collect()).sharing(&work);
    assert_eq!(granted.allows(&asked), Err(InvalidRule::TooMuch));
    assert_eq!(
        granted.allows(&json!({"verbs": ["v0"], "apiGroups": ["x"], "resources": ["y"]})),
        Err(InvalidRule::TooMuch)
    );
    let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    assert_eq!(Granted::from_rules(vec![&all]).allows(&asked), Ok(true), "one rule suffices");
}

/// Like OLM: every combination against every rule.
fn simply(rules: &[Value], asked: &Value) -> bool {
    let of = |rule: &Value, field: &str| -> Vec<String> {
        let list = rule[field].as_array().cloned().unwrap_or_default();
        list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let or_empty = |list: Vec<String>| if list.is_empty() { vec![String::new()] } else { list };
    let lists =
        |rule: &Value, field: &str, item: &String| of(rule, field).iter().any(|listed| listed == "*" || listed == item);
    let [verbs, groups, resources, names] =
        ["verbs", "apiGroups", "resources", "resourceNames"].map(|field| or_empty(of(asked, field)));
    verbs.iter().all(|v| {
        groups.iter().all(|g| {
            resources.iter().all(|r| {
                names.iter().all(|n| {
                    rules.iter().any(|rule| {
                        let named = of(rule, "resourceNames");
                        lists(rule, "verbs", v)
                            && lists(rule, "apiGroups", g)
                            && lists(rule, "resources", r)
                            && (named.is_empty() || named.contains(n))
                    })
                })
            })
        })
    })
}

proptest::proptest! {
    #[test]
    fn the_index_agrees_with_an_exhaustive_check(lists in proptest::collection::vec(proptest::collection::vec(0_usize..4, 0..3), 4 * 5)) {
        let words = ["", "*", "a", "b"];
        let list = |n: usize| -> Vec<&str> { lists[n].iter().map(|word| words[*word]).collect() };
        let rules: Vec<Value> = (0..5)
            .map(|n| json!({"verbs": list(4 * n), "apiGroups": list(4 * n + 1), "resources": list(4 * n + 2), "resourceNames": list(4 * n + 3)}))
            .collect();
        let (asked, granted) = rules.split_first().unwrap();
        let found = Granted::from_rules(granted.iter().collect()).allows(asked);
        if list(0).is_empty() {
            proptest::prop_assert_eq!(found, Err(InvalidRule::NoVerb));
        } else {
            proptest::prop_assert_eq!(found, Ok(simply(granted, asked)));
        }
    }
}
