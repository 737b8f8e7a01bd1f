use super::*;

fn request(mode: &str, targets: &[&str]) -> GroupRequest {
    GroupRequest {
        name: "roses".to_owned(),
        namespace: "garden".to_owned(),
        mode: mode.parse().ok(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        service_account: None,
    }
}

#[test]
fn a_mode_and_matching_namespaces() {
    for (mode, targets, expected) in [
        ("", &[][..], ("OwnNamespace", json!({"targetNamespaces": ["garden"]}))),
        ("OwnNamespace", &[], ("OwnNamespace", json!({"targetNamespaces": ["garden"]}))),
        ("ownnamespace", &["garden"], ("OwnNamespace", json!({"targetNamespaces": ["garden"]}))),
        ("", &["garden"], ("OwnNamespace", json!({"targetNamespaces": ["garden"]}))),
        ("SingleNamespace", &["park"], ("SingleNamespace", json!({"targetNamespaces": ["park"]}))),
        ("", &["park"], ("SingleNamespace", json!({"targetNamespaces": ["park"]}))),
        (
            "MultiNamespace",
            &["park", "garden", "park"],
            ("MultiNamespace", json!({"targetNamespaces": ["garden", "park"]})),
        ),
        ("", &["a", "b"], ("MultiNamespace", json!({"targetNamespaces": ["a", "b"]}))),
        ("AllNamespaces", &[], ("AllNamespaces", json!({}))),
        ("AllNamespaces", &[""], ("AllNamespaces", json!({}))),
        ("", &[""], ("AllNamespaces", json!({}))),
    ] {
        let compiled = compile(&request(mode, targets)).unwrap();
        assert_eq!((compiled.mode.to_string().as_str(), &compiled.group["spec"]), (expected.0, &expected.1));
        assert_eq!(compiled.group["metadata"], json!({"name": "roses", "namespace": "garden"}));
    }
}

#[test]
fn invalid_combinations_are_refused() {
    for (mode, targets, message, hint) in [
        (
            "OwnNamespace",
            &["park"][..],
            "only the operator's own namespace, garden: not park",
            "--install-mode SingleNamespace",
        ),
        ("OwnNamespace", &["garden", "park"], "not garden, park", "--install-mode MultiNamespace"),
        ("OwnNamespace", &[""], "not all", "--install-mode AllNamespaces"),
        ("SingleNamespace", &[], "no namespace was given", "--target-namespaces NAMESPACE"),
        ("SingleNamespace", &["garden"], "other than the operator's own", "--install-mode OwnNamespace"),
        ("SingleNamespace", &["a", "b"], "not a, b", "--install-mode MultiNamespace"),
        ("SingleNamespace", &[""], "not all", "--install-mode AllNamespaces"),
        ("MultiNamespace", &["park"], "at least two namespaces: not park", "--install-mode SingleNamespace"),
        ("MultiNamespace", &["park", "park"], "at least two", "SingleNamespace"),
        ("MultiNamespace", &[], "no namespace was given", "--target-namespaces A,B"),
        ("AllNamespaces", &["park"], "takes no names: not park", "--install-mode SingleNamespace"),
        ("", &["", "park"], "mutually exclusive", "--target-namespaces ''"),
        ("", &["Park"], "\"Park\" is not a valid name of a namespace", "up to 63"),
        ("", &["-a"], "is not a valid name", "both ends"),
        ("", &["a.b"], "is not a valid name", "both ends"),
    ] {
        let refused = compile(&request(mode, targets)).unwrap_err();
        assert!(refused.message.contains(message), "{mode} {targets:?}: {refused:?}");
        assert!(refused.hint.contains(hint), "{mode} {targets:?}: {refused:?}");
    }
    let unnamed = GroupRequest { name: "a..b".to_owned(), ..request("", &[]) };
    assert_eq!(compile(&unnamed).unwrap_err().message, "\"a..b\" is not a valid name of an OperatorGroup");
}

#[test]
fn a_service_account_is_named_in_the_spec() {
    let compiled =
        compile(&GroupRequest { service_account: Some("gardener".to_owned()), ..request("AllNamespaces", &[]) });
    assert_eq!(compiled.unwrap().group["spec"], json!({"serviceAccountName": "gardener"}));
}

#[test]
fn an_operator_has_to_support_the_namespaces() {
    let csv = |modes: &[&str]| {
        // All modes are listed; for unlisted modes support is inferred.
        let all = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
        let modes: Vec<Value> =
            all.iter().map(|mode| json!({"type": mode, "supported": modes.contains(mode)})).collect();
        json!({"metadata": {"name": "rose.v1"}, "spec": {"installModes": modes}})
    };
    let targets = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    assert_eq!(supports(&csv(&["OwnNamespace"]), "garden", &targets(&["garden"])), Ok(()));
    let refused = supports(&csv(&["AllNamespaces", "SingleNamespace"]), "garden", &targets(&["garden"])).unwrap_err();
    assert_eq!(
        (refused.message.as_str(), refused.hint.as_str()),
        (
            "rose.v1 cannot be a member: OwnNamespace InstallModeType not supported, cannot configure to watch own namespace",
            "it supports --install-mode SingleNamespace or AllNamespaces"
        )
    );
    assert_eq!(supports(&csv(&[]), "garden", &targets(&[""])).unwrap_err().hint, "it supports no install mode");
}
