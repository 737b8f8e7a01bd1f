//! `kubectl olm install-plan list`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use super::run_in;

/// Plans of two namespaces in every phase, and related objects.
const GARDEN: &str = include_str!("garden.yaml");

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("garden.yaml"), GARDEN).unwrap();
    folder
}

/// Returns the output without ages.
fn listed(arguments: &[&str]) -> (i32, String, String) {
    let folder = folder();
    run_in(folder.path(), &[&["list", "--from", "garden.yaml"], arguments].concat())
}

#[test]
fn every_plan_and_its_reason() {
    let (code, table, talk) = listed(&[]);
    assert_eq!((code, talk.as_str()), (0, ""));
    insta::assert_snapshot!(table);
    insta::assert_snapshot!(listed(&["-o", "wide", "-n", "park"]).1);
    insta::assert_snapshot!(listed(&["-o", "yaml", "-n", "park"]).1);
}

#[test]
fn selected_plans() {
    let names = |arguments: &[&str]| listed(&[&["-o", "name"], arguments].concat()).1;
    assert_eq!(names(&["--pending"]), "installplan/install-next -n garden\n");
    assert_eq!(names(&["-l", "who=me"]), "installplan/install-old -n garden\n");
    assert_eq!(names(&["-n", "garden", "--pending"]), "installplan/install-next\n");
    let path = "-ojsonpath={range .items[*]}{.metadata.name}={.phase} {end}";
    assert_eq!(
        listed(&["-n", "garden", path]).1,
        "install-first=Complete install-old=RequiresApproval install-next=RequiresApproval "
    );
    let (code, table, talk) = listed(&["-n", "nowhere"]);
    assert_eq!(
        (code, table.as_str(), talk.as_str()),
        (0, "", "No InstallPlans found in nowhere namespace; -A lists all namespaces\n")
    );
}

#[test]
fn invalid_arguments_are_refused() {
    for wrong in
        [&["-l", "a b"][..], &["-o", "xml"], &["--context", "mine"], &["--from", "./gone"], &["--catalog", "a=./gone"]]
    {
        let (code, table, talk) = listed(wrong);
        assert_eq!((code, table.as_str()), (2, ""), "{wrong:?}");
        assert!(talk.starts_with("error: "), "{wrong:?}: {talk}");
    }
}

/// Returns a folder with the kubeconfig of an API server that has only these InstallPlans, as JSON.
fn serving(plans: Vec<String>) -> tempfile::TempDir {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut head = BufReader::new(&stream).lines().map_while(Result::ok);
            let path = head.next().unwrap_or_default();
            head.take_while(|line| !line.is_empty()).for_each(drop);
            let items = if path.contains("/installplans") { plans.join(",") } else { String::new() };
            let body = format!(r#"{{"kind":"List","metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length";
            // The client may have closed the connection.
            drop(write!(stream, "{head}: {}\r\n\r\n{body}", body.len()));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{ "name": "u", "user": {} }],
        "clusters": [{ "name": "c", "cluster": { "server": server } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u", "namespace": "garden" } }],
    });
    fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
    folder
}

fn plan(name: &str, status: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"garden","uid":"u-{name}","resourceVersion":"5"}},"spec":{{"approval":"Manual","approved":false,"clusterServiceVersionNames":["rose.v1.0.0"]}},"status":{status}}}"#
    )
}

#[test]
fn an_unreadable_plan_is_reported_and_the_others_are_listed() {
    let readable = plan("install-well", r#"{"phase":"RequiresApproval"}"#);
    let list = |folder: &tempfile::TempDir, more: &[&str]| {
        run_in(folder.path(), &[&["list", "--kubeconfig", "kubeconfig"], more].concat())
    };
    let well = serving(vec![readable.clone()]);
    let (code, names, talk) = list(&well, &["-o", "name"]);
    assert_eq!((code, names.as_str()), (0, "installplan/install-well\n"), "{talk}");
    assert_eq!(list(&well, &["install-gone"]).0, 1, "the answer is no");
    // Valid in Kubernetes, but nested too deeply.
    let deep = plan("install-deep", &format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200)));
    let ill = serving(vec![deep, readable]);
    for more in [&["-o", "name"][..], &["-o", "name", "-A"], &["-o", "name", "install-well", "install-deep"]] {
        let (code, names, talk) = list(&ill, more);
        assert_eq!(code, 2, "unknown: {talk}");
        assert!(names.contains("install-well") && !names.contains("install-deep"), "{names}");
        assert!(talk.contains("install-deep in namespace garden: it is nested more than 128 levels deep"), "{talk}");
        assert!(!talk.contains("not found"), "{talk}");
    }
    assert_eq!(list(&ill, &["-o", "name", "install-well"]).0, 0, "of the one that was asked about all is known");
    let deep = plan("install-deep", &format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200)));
    let (code, table, talk) = list(&serving(vec![deep]), &[]);
    assert_eq!((code, table.as_str(), talk.contains("No InstallPlans")), (2, "", false), "{talk}");
}
