//! Tests of the rules about objects that OLM has not updated, or not deleted.

use super::*;

/// A group and its member in the state in which OLM leaves them.
const SETTLED: &str = "
kind: OperatorGroup
metadata:
  name: all
  namespace: garden
  creationTimestamp: '2026-01-01T00:00:00Z'
  managedFields: [{time: '2026-01-01T00:00:00Z'}]
  annotations: {olm.providedAPIs: Rose.v1.example.com}
spec: {targetNamespaces: [field, garden]}
status: {lastUpdated: '2026-01-01T00:00:00Z', namespaces: [garden, field]}
---
kind: ClusterServiceVersion
metadata:
  name: rose.v1
  namespace: garden
  managedFields: [{time: '2026-01-01T00:00:00Z'}]
  annotations: {olm.operatorGroup: all, olm.operatorNamespace: garden, olm.targetNamespaces: 'field,garden'}
spec:
  installModes: [{type: MultiNamespace, supported: true}, {type: OwnNamespace, supported: true}]
  customresourcedefinitions: {owned: [{name: roses.example.com, kind: Rose, version: v1}]}
status: {phase: Succeeded}
---
kind: Namespace
metadata: {name: garden}
---
kind: Namespace
metadata: {name: field}
";

/// Replaces a part, and returns the findings if the change is old, if it was made just now, and if its time is unknown.
#[track_caller]
fn changed(from: &str, to: &str) -> [Vec<String>; 3] {
    assert!(SETTLED.contains(from), "{from}");
    let text = SETTLED.replacen(from, to, 1);
    let just_now = text
        .replace("managedFields: [{time: '2026-01-01T00:00:00Z'}]", "managedFields: [{time: '2026-01-01T11:59:00Z'}]");
    let untold = text.replace("managedFields: [{time: '2026-01-01T00:00:00Z'}]", "managedFields: []");
    [text, just_now, untold].map(|text| found(&text))
}

/// A warning if the change is old; nothing if OLM may be about to react; info if the time of the change is unknown.
fn grows(code: &str, object: &str) -> [Vec<String>; 3] {
    [vec![format!("{code} warning {object}")], vec![], vec![format!("{code} info {object}")]]
}

const GROUP: &str = "OperatorGroup/garden/all";
const MEMBER: &str = "ClusterServiceVersion/garden/rose.v1";

#[test]
fn nothing_is_found_in_a_settled_namespace() {
    assert_eq!(found(SETTLED), [""; 0]);
}

#[test]
fn annotations_of_members_that_differ_from_the_group_are_reported() {
    assert_eq!(changed("'field,garden'", "field"), grows("OG013", MEMBER));
    // An annotation that was removed is reported at once.
    let at_once =
        [format!("OG013 warning {MEMBER}"), format!("OG013 warning {MEMBER}"), format!("OG013 info {MEMBER}")];
    for annotation in ["olm.operatorGroup: all, ", ", olm.targetNamespaces: 'field,garden'"] {
        assert_eq!(changed(annotation, ""), at_once.clone().map(|finding| vec![finding]), "{annotation}");
    }
    let text = SETTLED.replace("'field,garden'", "field").replace("{phase: Succeeded}", "{}");
    assert_eq!(found(&text), [""; 0], "OLM has not processed it");
}

#[test]
fn a_stale_status_is_reported() {
    let text = SETTLED.replace("spec: {targetNamespaces: [field, garden]}", "spec: {targetNamespaces: [garden]}");
    assert_eq!(found(&text), ["OG014 warning OperatorGroup/garden/all"]);
    let lags = changed("namespaces: [garden, field]", "namespaces: [garden]");
    let member = format!("OG013 warning {MEMBER}");
    assert_eq!(
        lags[0],
        [member, format!("OG014 warning {GROUP}")],
        "and the annotations of the member differ from the status"
    );
    assert_eq!(lags[1], [""; 0]);
    let never = SETTLED.replace("status: {lastUpdated: '2026-01-01T00:00:00Z', namespaces: [garden, field]}", "");
    assert_eq!(found(&never), ["OG014 warning OperatorGroup/garden/all"], "OLM has never processed it");
    let from_a_file = never.replace("creationTimestamp: '2026-01-01T00:00:00Z'", "generation: 1");
    assert_eq!(found(&from_a_file), [""; 0]);
    let condition = "lastUpdated: '2026-01-01T00:00:00Z', conditions: [{type: MultipleOperatorGroup, status: 'True'}]";
    assert_eq!(changed("lastUpdated: '2026-01-01T00:00:00Z'", condition), grows("OG014", GROUP));
}

#[test]
fn stale_provided_apis_are_reported() {
    let with = |apis: &str| changed("olm.providedAPIs: Rose.v1.example.com", &format!("olm.providedAPIs: '{apis}'"));
    assert_eq!(with("Rose.v1.example.com,Tulip.v1.example.com"), grows("OG015", GROUP));
    assert_eq!(with(""), grows("OG015", GROUP));
    let arriving =
        SETTLED.replace("phase: Succeeded", "phase: Pending").replace("Rose.v1.example.com", "Tulip.v1.example.com");
    assert_eq!(found(&arriving), [""; 0], "OLM removes nothing while an operator is being installed");
    let too_many = SETTLED.replace("Rose.v1.example.com", "'Rose.v1.example.com,Tulip.v1.example.com'");
    let is_static = too_many.replace("spec: {target", "spec: {staticProvidedAPIs: true, target");
    assert_eq!(found(&is_static), [""; 0]);
    let problem = only(&too_many);
    assert!(fix(&problem).is_safe && command(&problem).contains(r#""olm.providedAPIs":"Rose.v1.example.com""#));
}

#[test]
fn groups_that_reserve_apis_without_an_operator_are_reported() {
    let empty = SETTLED.replace("kind: ClusterServiceVersion", "kind: Subscription");
    let problem = only(&empty);
    assert_eq!(summaries(std::slice::from_ref(&problem)), ["OG016 warning OperatorGroup/garden/all"]);
    assert!(command(&problem).contains(r#"{"olm.providedAPIs":null}"#));
    assert_eq!(found(&empty.replace("spec: {target", "spec: {staticProvidedAPIs: true, target")), [""; 0]);
    // Another operator provides the APIs.
    let other = SETTLED
        .replace("garden", "park")
        .replace("olm.providedAPIs: Rose.v1.example.com", "a: b")
        .replace("Succeeded", "Failed");
    let problem = only(&format!("{}\n---\n{other}", empty.replace("managedFields", "x")));
    assert_eq!(summaries(std::slice::from_ref(&problem)), ["OG016 warning OperatorGroup/garden/all"]);
    assert!(problem.message.ends_with(", which prevents park/rose.v1 from running"), "{}", problem.message);
}

const COPY: &str = "
---
kind: ClusterServiceVersion
metadata: {name: rose.v1, namespace: field, labels: {olm.copiedFrom: garden}}
";

#[test]
fn orphaned_copies_are_reported() {
    assert_eq!(found(&format!("{SETTLED}{COPY}")), [""; 0]);
    let orphan = format!("{SETTLED}{}", COPY.replace("rose.v1", "tulip.v1"));
    let problem = only(&orphan);
    assert_eq!(summaries(std::slice::from_ref(&problem)), ["OG018 warning ClusterServiceVersion/field/tulip.v1"]);
    assert!(fix(&problem).is_safe);
    let elsewhere = format!("{SETTLED}{}", COPY.replace("field", "meadow"));
    assert_eq!(found(&elsewhere), ["OG018 warning ClusterServiceVersion/meadow/rose.v1"]);
    let leaving =
        orphan.replace("labels: {olm.copied", "deletionTimestamp: '2026-01-01T00:00:00Z', labels: {olm.copied");
    assert_eq!(found(&leaving), [""; 0]);
}

#[test]
fn orphaned_roles_of_groups_are_reported() {
    let role = |group: &str| {
        format!(
            "{SETTLED}---\nkind: ClusterRole\nmetadata: {{name: olm.og.{group}.admin-x, labels: {{olm.owner: {group}, olm.owner.namespace: garden, olm.owner.kind: OperatorGroup}}}}\n"
        )
    };
    assert_eq!(found(&role("all")), [""; 0]);
    let problem = only(&role("old"));
    assert_eq!(summaries(std::slice::from_ref(&problem)), ["OG019 warning ClusterRole/olm.og.old.admin-x"]);
    assert!(fix(&problem).is_safe);
    assert_eq!(problem.namespaces().into_iter().collect::<Vec<_>>(), ["garden"]);
    let bound = "---\nkind: ClusterRoleBinding\nmetadata: {name: jane}\nroleRef: {kind: ClusterRole, name: olm.og.old.admin-x}\n";
    let problem = only(&format!("{}{bound}", role("old")));
    assert!(!fix(&problem).is_safe, "jane would lose rights");
    assert!(fix(&problem).description.ends_with("ClusterRoleBinding/jane"), "{}", fix(&problem).description);
    assert_eq!(
        command(&problem),
        "kubectl delete clusterrolebinding.rbac.authorization.k8s.io jane && \
         kubectl delete clusterrole.rbac.authorization.k8s.io olm.og.old.admin-x"
    );
}

#[test]
fn orphaned_roles_of_operators_are_reported() {
    let rights = |kind: &str, csv: &str, more: &str| {
        format!(
            "{SETTLED}---\nkind: {kind}\nmetadata: {{name: x, labels: {{olm.owner: {csv}, olm.owner.namespace: garden, olm.owner.kind: ClusterServiceVersion{more}}}}}\n"
        )
    };
    assert_eq!(found(&rights("ClusterRole", "rose.v1", "")), [""; 0]);
    assert_eq!(found(&rights("ClusterRole", "rose.v0", "")), ["OG020 warning ClusterRole/x"]);
    assert_eq!(found(&rights("ClusterRoleBinding", "rose.v0", "")), ["OG020 warning ClusterRoleBinding/x"]);
    assert_eq!(found(&rights("Role", "rose.v0", ", olm.copiedFrom: park")), ["OG020 warning Role/x"]);
    assert_eq!(found(&rights("Role", "rose.v0", "")), [""; 0], "Kubernetes garbage-collects it");
    let plan = "---\nkind: InstallPlan\nmetadata: {name: a, namespace: garden}\nspec: {clusterServiceVersionNames: [rose.v0]}\n";
    let on_its_way =
        |phase: &str| found(&format!("{}{plan}status: {{phase: {phase}}}\n", rights("ClusterRole", "rose.v0", "")));
    assert_eq!(on_its_way("Installing"), [""; 0]);
    assert_eq!(on_its_way("Complete"), ["OG020 warning ClusterRole/x"]);
}

#[test]
fn only_rules_that_depend_on_unknown_objects_are_unchecked() {
    let world = world(SETTLED);
    let checked_in_part = |within: &[&str], asked: Option<&str>| -> Vec<&'static str> {
        let mut known = Known::everything().about(asked);
        let within = within.iter().map(|name| (*name).to_owned()).collect();
        known.limit(crate::world::kind::CLUSTER_SERVICE_VERSION, within, "not allowed to list them");
        let linted = lint(&world, &known, NOW.parse().unwrap());
        linted.unchecked.into_iter().flat_map(|unchecked| unchecked.codes).collect()
    };
    let by_others = ["OG009", "OG018", "OG020"];
    assert_eq!(checked_in_part(&["garden"], Some("garden")), by_others, "the other rules are checked");
    let none = checked_in_part(&[], Some("garden"));
    for code in ["OG002", "OG003", "OG004", "OG010", "OG013", "OG015"] {
        assert!(none.contains(&code), "{code} cannot check objects that may not be read: {none:?}");
    }
    assert_eq!(checked_in_part(&["garden"], None), none);
}

#[test]
fn namespaces_whose_plans_have_to_be_read() {
    use crate::lint::namespaces_of_plans;
    let names = |text: &str| namespaces_of_plans(&world(text)).into_iter().collect::<Vec<_>>();
    assert_eq!(names(SETTLED), [""; 0]);
    let rights = |csv: &str| {
        format!(
            "{SETTLED}---\nkind: ClusterRole\nmetadata: {{name: x, labels: {{olm.owner: {csv}, olm.owner.namespace: garden, olm.owner.kind: ClusterServiceVersion}}}}\n"
        )
    };
    assert_eq!(names(&rights("rose.v1")), [""; 0]);
    assert_eq!(names(&rights("rose.v0")), ["garden"]);
    let account = SETTLED.replace("spec: {target", "spec: {serviceAccountName: installer, target");
    assert_eq!(names(&account), ["garden"]);
}

#[test]
fn unknown_objects_are_not_reported_as_missing() {
    let text = format!("{SETTLED}{}", COPY.replace("rose.v1", "tulip.v1")).replace(
        "targetNamespaces: [field, garden]",
        "targetNamespaces: [field, garden, meadow], serviceAccountName: a",
    );
    let text = text
        .replace("namespaces: [garden, field]", "namespaces: [garden, field, meadow]")
        .replace("'field,garden'", "'field,garden,meadow'");
    let world = world(&text);
    let now = NOW.parse().unwrap();
    let all = lint(&world, &Known::everything(), now);
    assert_eq!(
        summaries(&all.problems),
        [
            "OG018 warning ClusterServiceVersion/field/tulip.v1",
            "OG008 warning OperatorGroup/garden/all",
            "OG011 error OperatorGroup/garden/all"
        ]
    );
    assert_eq!(all.unchecked, []);
    let of_files = lint(&world, &Known::of_files(&world, "the files may be incomplete"), now);
    assert_eq!(
        summaries(&of_files.problems),
        ["OG018 warning ClusterServiceVersion/field/tulip.v1"],
        "its namespace is in the files"
    );
    let [unchecked] = &of_files.unchecked[..] else { panic!("{:?}", of_files.unchecked) };
    assert!(
        unchecked.codes.contains(&"OG008") && unchecked.codes.contains(&"OG011") && !unchecked.codes.contains(&"OG003")
    );
}
