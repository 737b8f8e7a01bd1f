//! Tests of the rules about groups and their members.

use super::*;

/// An operator that supports every install mode.
const ROSE: &str = "
---
kind: ClusterServiceVersion
metadata: {name: rose.v1, namespace: garden}
spec:
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  - {type: MultiNamespace, supported: true}
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions: {owned: [{name: roses.example.com, kind: Rose, version: v1}]}
";

const GARDEN: &str = "
---
kind: Namespace
metadata: {name: garden}
---
kind: Namespace
metadata: {name: field, labels: {team: roses}}
";

/// A group in garden.
fn group(name: &str, spec: &str) -> String {
    format!("---\nkind: OperatorGroup\nmetadata: {{name: {name}, namespace: garden}}\nspec: {spec}\n")
}

fn rose(modes: &[&str]) -> String {
    let modes: Vec<String> = modes.iter().map(|mode| format!("{{type: {mode}, supported: true}}")).collect();
    let csv = "---\nkind: ClusterServiceVersion\nmetadata: {name: rose.v1, namespace: garden}\n";
    format!("{csv}spec: {{installModes: [{}]}}\n", modes.join(", "))
}

fn all_of(parts: &[&str]) -> String {
    parts.join("\n")
}

#[test]
fn of_several_groups_the_one_in_use_is_kept() {
    let named = ROSE.replace("namespace: garden}", "namespace: garden, annotations: {olm.operatorGroup: two}}");
    let both = all_of(&[&group("one", "{}"), &group("two", "{}")]);
    let problem = only(&all_of(&[&both, &named]));
    assert_eq!(summaries(std::slice::from_ref(&problem)), ["OG001 error OperatorGroup/garden/one"]);
    assert_eq!(command(&problem), "kubectl delete operatorgroup.operators.coreos.com one -n garden");
    assert!(!fix(&problem).is_safe, "which one is intended is unknown");
    assert_eq!(found(&all_of(&[&both, ROSE])), ["OG001 error OperatorGroup/garden/two"], "by name");
    let older = both.replacen("name: two", "name: two, creationTimestamp: '2026-01-01T11:59:00Z'", 1);
    assert_eq!(found(&all_of(&[&older, ROSE])), ["OG001 error OperatorGroup/garden/one"], "existing groups sort first");
    let elsewhere =
        both.replacen("namespace: garden", "namespace: field", 1).replace("{}", "{targetNamespaces: [garden]}");
    assert_eq!(found(&all_of(&[GARDEN, &elsewhere, ROSE])), ["OG017 info OperatorGroup/field/one"]);
}

/// Tenants choose names and values of fields, and administrators copy the commands.
#[test]
fn untrusted_names_are_quoted_in_commands() {
    let named = group("all", "{targetNamespaces: [garden], serviceAccountName: \"x; id #\"}");
    let problem = |text: &str, code: &str| linted(text).problems.into_iter().find(|p| p.rule.code == code).unwrap();
    let of_account = problem(&all_of(&[GARDEN, &named]), "OG011");
    assert_eq!(command(&of_account), "kubectl create serviceaccount 'x; id #' -n garden");
    let twice = all_of(&[&group("one", "{}"), &group("\"two'`id`\"", "{}"), ROSE]);
    assert_eq!(
        command(&problem(&twice, "OG001")),
        r"kubectl delete operatorgroup.operators.coreos.com 'two'\''`id`' -n garden"
    );
}

#[test]
fn operators_need_a_group() {
    let problem = only(ROSE);
    assert_eq!(summaries(std::slice::from_ref(&problem)), ["OG002 error Namespace/garden"]);
    assert!(fix(&problem).manifest().unwrap().contains("- garden"), "{:?}", fix(&problem).manifest());
    let everywhere = only(&rose(&["AllNamespaces"]));
    assert!(fix(&everywhere).manifest().unwrap().contains("spec: {}"));
    let subscription = "kind: Subscription\nmetadata: {name: rose, namespace: garden}\n";
    let problem = only(subscription);
    assert_eq!((problem.rule.code, fix(&problem).command()), ("OG002", None));
    let of_package = only(&format!("{subscription}spec: {{name: rose-operator}}\n"));
    assert!(fix(&of_package).description.contains("--package rose-operator "), "{}", fix(&of_package).description);
    let copy = ROSE.replace("namespace: garden}", "namespace: garden, labels: {olm.copiedFrom: field}}");
    assert_eq!(found(&copy), ["OG018 warning ClusterServiceVersion/garden/rose.v1"], "a copy needs no group");
}

#[test]
fn fields_that_the_api_server_would_refuse_are_reported() {
    let cases = [
        ("{targetNamespaces: garden}", "spec.targetNamespaces in body must be of type array", "see the valid fields"),
        ("{targetNamespace: [garden]}", "unknown field spec.targetNamespace", "use spec.targetNamespaces instead"),
        ("{serviceAccount: rose}", "unknown field spec.serviceAccount", "remove it"),
        (
            "{selector: {matchLabels: {team: true}}}",
            "spec.selector.matchLabels.team in body must be",
            "see the valid fields",
        ),
        (
            "{selector: {matchLabel: {team: roses}}}",
            "unknown field spec.selector.matchLabel",
            "use spec.selector.matchLabels instead",
        ),
        (
            "{selector: {matchExpressions: [{key: a}]}}",
            "spec.selector.matchExpressions[0].operator: Required",
            "see the valid fields",
        ),
        ("{upgradeStrategy: Never}", "spec.upgradeStrategy: Unsupported value", "see the valid fields"),
    ];
    for (spec, message, hint) in cases {
        let text = all_of(&[GARDEN, &group("all", spec)]);
        let problems = linted(&text).problems;
        let problem = problems.iter().find(|p| p.rule.code == "OG022").unwrap();
        assert!(problem.message.contains(message), "{spec}: {}", problem.message);
        assert!(fix(problem).description.starts_with(hint), "{spec}: {}", fix(problem).description);
    }
    let written = "{targetNamespaces: [garden], selector: {matchLabels: {team: roses}}, staticProvidedAPIs: true}";
    for spec in [written, "null", "{targetNamespaces: null}"] {
        let problems = linted(&all_of(&[GARDEN, &group("all", spec)])).problems;
        assert!(problems.iter().all(|p| p.rule.code != "OG022"), "{spec}: {:?}", summaries(&problems));
    }
}

#[test]
fn invalid_namespace_names_are_not_proposed_for_creation() {
    let problems = |spec: &str| linted(&all_of(&[GARDEN, &group("all", spec)])).problems;
    let found = problems("{targetNamespaces: ['garden, field']}");
    assert_eq!(found[0].rule.code, "OG005");
    assert_eq!(fix(&found[0]).description, "list each namespace as an item of its own: garden and field");
    assert!(command(&found[0]).contains(r#"["garden","field"]"#), "{}", command(&found[0]));
    let found = problems("{targetNamespaces: [Meadow_1]}");
    assert_eq!((found[0].rule.code, fix(&found[0]).command()), ("OG008", None));
    let found = problems("{targetNamespaces: [meadow, Meadow_1]}");
    assert_eq!(
        (fix(&found[0]).description.as_str(), fix(&found[0]).command()),
        ("correct Meadow_1: not a valid name of a namespace", None)
    );
}

#[test]
fn members_support_the_targets() {
    let case = |spec: &str, modes: &[&str]| {
        let text = all_of(&[GARDEN, &group("all", spec), &rose(modes)]);
        let problems = linted(&text).problems;
        problems.first().map(|p| (p.rule.code, p.message.clone(), fix(p).clone()))
    };
    let cases = [
        ("{}", &["AllNamespaces"][..], None),
        ("{}", &["OwnNamespace"], Some(("OG003", r#"{"spec":{"targetNamespaces":["garden"]}}"#))),
        ("{targetNamespaces: [field]}", &["SingleNamespace"], None),
        (
            "{targetNamespaces: [field]}",
            &["OwnNamespace"],
            Some(("OG004", r#"{"spec":{"targetNamespaces":["garden"]}}"#)),
        ),
        ("{targetNamespaces: [field]}", &["AllNamespaces"], Some(("OG003", r#"{"spec":{"targetNamespaces":null}}"#))),
        ("{targetNamespaces: [field, garden]}", &["MultiNamespace", "OwnNamespace"], None),
        // The controllers of kubectl-olm infer that its own namespace is supported.
        ("{targetNamespaces: [field, garden]}", &["MultiNamespace", "SingleNamespace"], Some(("OG003", ""))),
        (
            "{selector: {matchLabels: {team: roses}}}",
            &["OwnNamespace"],
            Some(("OG004", r#"{"spec":{"selector":null,"targetNamespaces":["garden"]}}"#)),
        ),
        ("{targetNamespaces: [field]}", &[], Some(("OG003", ""))),
    ];
    for (spec, modes, expected) in cases {
        let found = case(spec, modes);
        let patch = |fix: &Fix| fix.command().map_or(String::new(), |c| c.split('\'').nth(1).unwrap().to_owned());
        let found = found.as_ref().map(|(code, _, fix)| (*code, patch(fix)));
        assert_eq!(found, expected.map(|(code, patch)| (code, patch.to_owned())), "{spec} {modes:?}");
    }
    let (_, message, _) = case("{}", &["OwnNamespace"]).unwrap();
    assert!(message.contains("fails with UnsupportedOperatorGroup: AllNamespaces InstallModeType"), "{message}");
    let (code, message, _) = case("{}", &["OwnNamespace", "OwnNamespace"]).unwrap();
    assert_eq!(code, "OG003");
    assert!(message.contains("InvalidInstallModes"), "{message}");
}

#[test]
fn targets_that_are_supported_only_by_inference_are_reported() {
    let group = group("all", "{targetNamespaces: [field]}");
    let csv = rose(&["MultiNamespace"]);
    let problem = only(&all_of(&[GARDEN, &group, &csv]));
    assert_eq!(summaries(std::slice::from_ref(&problem)), ["OG003 info ClusterServiceVersion/garden/rose.v1"]);
    assert!(problem.message.contains("OLM's own controllers do not infer modes"), "{}", problem.message);
    let refused = format!("{csv}status: {{phase: Failed, reason: UnsupportedOperatorGroup}}\n");
    assert_eq!(
        found(&all_of(&[GARDEN, &group, &refused])),
        ["OG003 warning ClusterServiceVersion/garden/rose.v1"],
        "an OLM has refused it"
    );
}

#[test]
fn proposed_targets_avoid_clashes() {
    let modes = ROSE.replace("{type: MultiNamespace, supported: true}", "{type: MultiNamespace, supported: false}");
    let group = group("all", "{targetNamespaces: [field, garden]}");
    let alone = only(&all_of(&[GARDEN, &modes, &group]));
    assert!(command(&alone).contains(r#"["field"]"#), "{}", command(&alone));
    let rival = rival("{targetNamespaces: [field]}", "Rose.v1.example.com");
    let problems = linted(&all_of(&[GARDEN, &modes, &group, &rival])).problems;
    assert!(command(&problems[0]).contains(r#"["garden"]"#), "{}", command(&problems[0]));
}

#[test]
fn targets_that_not_all_members_support_are_not_proposed() {
    let other = rose(&["AllNamespaces"]).replace("rose.v1", "tulip.v1");
    let problem = only(&all_of(&[&group("all", "{}"), &rose(&["OwnNamespace"]), &other]));
    assert_eq!((problem.rule.code, fix(&problem).command()), ("OG003", None));
    assert!(fix(&problem).description.starts_with("move it to a namespace of its own: it supports its own namespace"));
}

#[test]
fn invalid_targets_are_reported() {
    let member = all_of(&[GARDEN, ROSE]);
    let case = |spec: &str| found(&all_of(&[&member, &group("all", spec)]));
    assert_eq!(case("{targetNamespaces: ['']}"), ["OG005 error OperatorGroup/garden/all"]);
    assert_eq!(case("{targetNamespaces: ['', field]}"), ["OG005 error OperatorGroup/garden/all"]);
    assert_eq!(
        case("{selector: {matchExpressions: [{key: a, operator: In}]}}"),
        ["OG005 error OperatorGroup/garden/all"]
    );
    let empty = only(&all_of(&[&member, &group("all", "{targetNamespaces: ['', garden]}")]));
    assert!(
        empty.message.starts_with("spec.targetNamespaces has an empty name in addition to garden: "),
        "{}",
        empty.message
    );
    let selector = only(&all_of(&[&member, &group("all", "{selector: {matchExpressions: [{key: a, operator: In}]}}")]));
    assert_eq!(command(&selector), "kubectl edit operatorgroup.operators.coreos.com all -n garden");
    assert_eq!(case("{selector: {matchExpressions: [{key: a, operator: DoesNotExist}]}}"), [""; 0]);
    assert_eq!(case("{targetNamespaces: []}"), [""; 0], "all namespaces");
}

#[test]
fn targets_in_addition_to_a_selector_are_reported() {
    let case = |spec: &str| linted(&all_of(&[GARDEN, ROSE, &group("all", spec)])).problems;
    let problems = case("{targetNamespaces: [field], selector: {matchLabels: {team: roses}}}");
    assert_eq!(summaries(&problems), ["OG006 warning OperatorGroup/garden/all"]);
    assert!(fix(&problems[0]).is_safe);
    assert!(command(&problems[0]).ends_with(r#"-p '{"spec":{"selector":null}}'"#));
    assert_eq!(summaries(&case("{targetNamespaces: [field], selector: {}}")), [""; 0], "an empty one selects nothing");
}

#[test]
fn selectors_without_matches_are_reported() {
    let selector = group("all", "{selector: {matchLabels: {team: roses}}}");
    assert_eq!(found(&all_of(&[GARDEN, ROSE, &selector])), [""; 0]);
    let nothing = selector.replace("roses", "tulips");
    assert_eq!(found(&all_of(&[GARDEN, ROSE, &nothing])), ["OG007 error OperatorGroup/garden/all"]);
    let what = fix(&only(&all_of(&[GARDEN, ROSE, &nothing]))).description.clone();
    assert!(what.contains("(kubectl label namespace NAMESPACE team=tulips)"), "{what}");
    let unused = ["OG007 warning OperatorGroup/garden/all", "OG017 info OperatorGroup/garden/all"];
    assert_eq!(found(&all_of(&[GARDEN, &nothing])), unused, "there is no operator that fails");
    let leaving = GARDEN.replace("name: field", "name: field, deletionTimestamp: '2026-01-01T00:00:00Z'");
    assert_eq!(found(&all_of(&[&leaving, ROSE, &selector])), ["OG007 warning OperatorGroup/garden/all"]);
}

#[test]
fn missing_target_namespaces_are_reported() {
    let case = |spec: &str| linted(&all_of(&[GARDEN, ROSE, &group("all", spec)])).problems;
    assert_eq!(summaries(&case("{targetNamespaces: [field, garden]}")), [""; 0]);
    let missing = case("{targetNamespaces: [filed, garden]}");
    assert_eq!(summaries(&missing), ["OG008 warning OperatorGroup/garden/all"]);
    assert!(command(&missing[0]).contains(r#"["field","garden"]"#), "nearly the same name: {}", command(&missing[0]));
    let unlike = case("{targetNamespaces: [meadow]}");
    assert_eq!(unlike[0].message, "target namespace meadow does not exist");
    assert!(fix(&unlike[0]).manifest().unwrap().contains("name: meadow"));
    let several = case("{targetNamespaces: [meadow, moor]}");
    assert_eq!(several[0].message, "target namespaces meadow and moor do not exist");
    let both = fix(&several[0]).manifest().unwrap();
    assert!(both.contains("name: meadow") && both.contains("name: moor"), "{both}");
    let leaving = GARDEN.replace("name: field", "name: field, deletionTimestamp: '2026-01-01T00:00:00Z'");
    let problem = only(&all_of(&[&leaving, ROSE, &group("all", "{targetNamespaces: [field]}")]));
    assert_eq!(problem.message, "field is being deleted, but still a target");
    assert_eq!(fix(&problem).command(), None, "without a name it would target all namespaces");
    let problem = only(&all_of(&[&leaving, ROSE, &group("all", "{targetNamespaces: [field, garden]}")]));
    assert!(command(&problem).contains(r#"["garden"]"#), "{}", command(&problem));
}

/// The same operator in another namespace, whose group has that annotation.
fn rival(spec: &str, apis: &str) -> String {
    let annotations =
        if apis.is_empty() { String::new() } else { format!(", annotations: {{olm.providedAPIs: '{apis}'}}") };
    let group =
        format!("---\nkind: OperatorGroup\nmetadata: {{name: rival, namespace: park{annotations}}}\nspec: {spec}\n");
    all_of(&[&group, &ROSE.replace("garden", "park"), "---\nkind: Namespace\nmetadata: {name: park}\n"])
}

#[test]
fn groups_that_provide_the_same_apis_are_reported() {
    let case = |own: &str, rival: &str| linted(&all_of(&[GARDEN, ROSE, &group("all", own), rival])).problems;
    const API: &str = "Rose.v1.example.com";
    let clash = case("{targetNamespaces: [field]}", &rival("{targetNamespaces: [field]}", API));
    assert_eq!(summaries(&clash), ["OG009 error OperatorGroup/garden/all"]);
    assert_eq!(
        clash[0].message,
        "OperatorGroup park/rival also provides Rose.v1.example.com to namespace field: that group was first, so \
         ClusterServiceVersion rose.v1 fails with InterOperatorGroupOwnerConflict"
    );
    let narrower = case("{targetNamespaces: [field, garden]}", &rival("{targetNamespaces: [field]}", API));
    assert_eq!(
        command(&narrower[0]),
        r#"kubectl patch operatorgroup all -n garden --type merge -p '{"spec":{"targetNamespaces":["garden"]}}'"#
    );
    let unclaimed = case("{targetNamespaces: [field]}", &rival("{}", ""));
    assert_eq!(
        summaries(&unclaimed),
        ["OG009 error OperatorGroup/park/rival"],
        "by name, as it is unknown which one was first"
    );
    assert!(
        unclaimed[0].message.contains("namespaces field and garden"),
        "the own one counts: {}",
        unclaimed[0].message
    );
    let own = case("{targetNamespaces: [field]}", &rival("{targetNamespaces: [garden]}", ""));
    assert_eq!(summaries(&own), ["OG009 error OperatorGroup/park/rival"], "the group's own namespace counts");
    assert_eq!(summaries(&case("{targetNamespaces: [garden]}", &rival("{targetNamespaces: [park]}", API))), [""; 0]);
    let other_version = rival("{}", API).replace("version: v1", "version: v2").replace(".v1.", ".v2.");
    assert_eq!(summaries(&case("{targetNamespaces: [field]}", &other_version)), [""; 0]);
    let unfit = rival("{}", "").replace("AllNamespaces", "Other");
    assert_eq!(
        summaries(&case("{targetNamespaces: [field]}", &unfit)),
        ["OG003 error ClusterServiceVersion/park/rose.v1"]
    );
}

#[test]
fn static_groups_reserve_apis() {
    let protects = |spec: &str| {
        format!(
            "---\nkind: OperatorGroup\nmetadata: {{name: guard, namespace: park, annotations: {{olm.providedAPIs: Rose.v1.example.com}}}}\nspec: {spec}\n"
        )
    };
    let case = |other: &str| found(&all_of(&[GARDEN, ROSE, &group("all", "{targetNamespaces: [field]}"), other]));
    assert_eq!(case(&protects("{staticProvidedAPIs: true}")), ["OG009 error OperatorGroup/garden/all"]);
    let empty = ["OG016 warning OperatorGroup/park/guard"];
    assert_eq!(case(&protects("{}")), empty, "it is not static, so OLM removes the API from its annotation");
    let two = all_of(&[
        &protects("{staticProvidedAPIs: true}"),
        &protects("{staticProvidedAPIs: true}").replace("namespace: park", "namespace: yard"),
    ]);
    assert_eq!(found(&two), ["OG009 warning OperatorGroup/yard/guard"], "no operator can run in either");
}

#[test]
fn static_groups_that_lack_an_api_of_a_member_are_reported() {
    let case = |apis: &str| {
        let group = group("all", "{staticProvidedAPIs: true}");
        linted(&all_of(&[
            ROSE,
            &group.replace("}\nspec", &format!(", annotations: {{olm.providedAPIs: '{apis}'}}}}\nspec")),
        ]))
        .problems
    };
    let lacks = case("Tulip.v1.example.com");
    assert_eq!(summaries(&lacks), ["OG010 error ClusterServiceVersion/garden/rose.v1"]);
    assert!(command(&lacks[0]).contains("Rose.v1.example.com,Tulip.v1.example.com"), "{}", command(&lacks[0]));
    assert!(!fix(&lacks[0]).is_safe);
    assert_eq!(summaries(&case("Rose.v1.example.com, Tulip.v1.example.com")), [""; 0]);
}

#[test]
fn unused_groups_are_reported() {
    assert_eq!(found(&group("all", "{}")), ["OG017 info OperatorGroup/garden/all"]);
    for used in ["kind: Subscription\nmetadata: {name: rose, namespace: garden}", ROSE] {
        assert_eq!(found(&all_of(&[&group("all", "{}"), "---", used])), [""; 0]);
    }
    assert_eq!(found(&group("global-operators", "{}")), [""; 0], "it comes with OLM");
    assert_eq!(found(&group("all", "{staticProvidedAPIs: true}")), [""; 0]);
}

const ACCOUNT: &str = "---\nkind: ServiceAccount\nmetadata: {name: installer, namespace: garden}\n";

#[test]
fn missing_service_accounts_are_reported() {
    let named = group("all", "{serviceAccountName: installer}");
    let problem = only(&all_of(&[ROSE, &named]));
    assert_eq!(problem.rule.code, "OG011");
    assert_eq!(command(&problem), "kubectl create serviceaccount installer -n garden");
    assert_eq!(found(&all_of(&[ROSE, &named, ACCOUNT])), [""; 0], "it has no Deployments that require rights");
    let elsewhere = ACCOUNT.replace("namespace: garden", "namespace: field");
    assert_eq!(found(&all_of(&[ROSE, &named, &elsewhere])), ["OG011 error OperatorGroup/garden/all"]);
}

const PLAN: &str = r#"
---
kind: InstallPlan
metadata: {name: install-a, namespace: garden}
status:
  phase: Installing
  plan:
  - resolving: rose.v1
    status: Unknown
    resource:
      {group: rbac.authorization.k8s.io, version: v1, kind: Role, name: rose, manifest: '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"rose"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}'}
  - resolving: rose.v1
    status: Created
    resource: {group: "", version: v1, kind: ServiceAccount, name: rose, manifest: "{}"}
  - resolving: rose.v1
    status: Unknown
    resource: {group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: rose, manifest: '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"rose"}}'}
"#;

const RIGHTS: &str = "
---
kind: ClusterRole
metadata: {name: everything}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
---
kind: ClusterRoleBinding
metadata: {name: everything}
roleRef: {kind: ClusterRole, name: everything}
";

#[test]
fn missing_rights_of_service_accounts_are_reported() {
    let deployment =
        ROSE.replace("  installModes:", "  install: {spec: {deployments: [{name: rose}]}}\n  installModes:");
    let text = all_of(&[&deployment, &group("all", "{serviceAccountName: installer}"), ACCOUNT, PLAN]);
    let problem = only(&text);
    assert_eq!(
        problem.message,
        "ServiceAccount installer lacks permissions for InstallPlan install-a and ClusterServiceVersion rose.v1: \
         create clusterroles.rbac.authorization.k8s.io in the cluster, create deployments.apps in namespace garden, \
         create roles.rbac.authorization.k8s.io in namespace garden and grant get pods in namespace garden"
    );
    assert_eq!(fix(&problem).description, "grant it these permissions, if it is intended to install them");
    let manifest = fix(&problem).manifest().unwrap();
    for part in ["kind: Role\n", "kind: ClusterRole\n", "name: garden-installer-installs", "- deployments", "- pods"] {
        assert!(manifest.contains(part), "{part}: {manifest}");
    }
    // The proposed roles are sufficient.
    let applied = world(&all_of(&[&text, "---", &manifest]));
    let again = lint(&applied, &Known::everything(), NOW.parse().unwrap());
    assert_eq!(summaries(&again.problems), [""; 0]);
    // Rules of a previously applied role are preserved.
    let role = "---\nkind: Role\nmetadata: {name: installer-installs, namespace: garden}\nrules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n";
    let manifest = fix(&only(&all_of(&[&text, role]))).manifest().unwrap();
    assert!(manifest.contains("- secrets") && manifest.contains("- deployments"), "{manifest}");
    for subject in [
        "{kind: ServiceAccount, name: installer, namespace: garden}",
        "{kind: Group, name: 'system:serviceaccounts:garden'}",
    ] {
        let rights = format!("{RIGHTS}subjects: [{subject}]\n");
        assert_eq!(found(&all_of(&[&text, &rights])), [""; 0], "{subject}");
    }
    let there = "---\nkind: Deployment\nmetadata: {name: rose, namespace: garden}\n";
    let complete = text.replace("phase: Installing", "phase: Complete");
    assert_eq!(found(&all_of(&[&complete, there])), [""; 0]);
}
