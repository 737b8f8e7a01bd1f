//! `kubectl olm catalog` reads the installed versions from a real API server, without writes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::path::Path;

use olm_core::api::crd;
use olm_shell::catalog::{InstalledFrom, diff, resolve};
use olm_shell::cli::flags::ClusterFlags;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::image;
use olm_tests::control_plane::{ControlPlane, Options, skipped};

const INSTALLED: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: garden}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: all, namespace: garden}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: roses, namespace: garden}
spec: {name: rose, channel: stable, source: main, sourceNamespace: olm}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: rose.v1.0.0, namespace: garden}
spec: {displayName: Rose, version: 1.0.0, install: {strategy: deployment}}
";

/// Returns a catalog of roses with these entries.
fn roses(entries: &[(&str, &str)]) -> String {
    let mut text = "schema: olm.package\nname: rose\ndefaultChannel: stable\n".to_owned();
    let lines: String = entries.iter().map(|(version, edge)| format!("- {{name: rose.v{version}{edge}}}\n")).collect();
    text += &format!("---\nschema: olm.channel\npackage: rose\nname: stable\nentries:\n{lines}");
    for (version, _) in entries {
        text += &format!(
            "---\nschema: olm.bundle\npackage: rose\nname: rose.v{version}\nimage: example.com/rose:{version}\n\
             properties: [{{type: olm.package, value: {{packageName: rose, version: {version}}}}}]\n"
        );
    }
    text
}

fn flags(kubeconfig: &Path) -> InstalledFrom {
    InstalledFrom::new(Vec::new(), ClusterFlags { kubeconfig: Some(kubeconfig.to_owned()), ..ClusterFlags::default() })
        .unwrap()
}

/// Returns the result, standard output and standard error.
fn run_captured(
    run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>,
) -> (Result<Outcome, CliError>, String, String) {
    let (out, err) = (Buffer::default(), Buffer::default());
    let answer = run(&mut Printer::to(out.clone(), err.clone()));
    (answer, out.text(), err.text())
}

#[test]
fn installed_versions_are_read_from_the_cluster() {
    if skipped() {
        return;
    }
    let plane =
        ControlPlane::start_with(Options { scheduler: false, kwok: false, crds: crd::all(), ..Options::default() })
            .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let kubectl = |arguments: &[&str]| {
        let output = plane.kubectl(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    kubectl(&["apply", "-f", &file("installed.yaml", INSTALLED)]);
    let status = |of: &str, status: &str| {
        kubectl(&["patch", of, "-n", "garden", "--subresource=status", "--type=merge", "-p", status]);
    };
    let csvs = r#""installedCSV": "rose.v1.0.0", "currentCSV": "rose.v1.0.0""#;
    status("subscription/roses", &format!(r#"{{"status": {{"lastUpdated": "2026-11-21T00:00:00Z", {csvs}}}}}"#));
    status("clusterserviceversion/rose.v1.0.0", r#"{"status": {"phase": "Succeeded"}}"#);
    let old = file("old.yaml", &roses(&[("2.0.0", ", replaces: rose.v1.0.0"), ("1.0.0", "")]));
    let new = file("new.yaml", &roses(&[("2.0.0", "")]));

    let resolved = |there: InstalledFrom| {
        let options = resolve::Options {
            wanted: Vec::new(),
            catalogs: vec![old.parse().unwrap()],
            installed_from: there,
            namespace: Some("garden".to_owned()),
            what_if: Vec::new(),
            images: image::Options::of_user(),
            output: "name".parse().unwrap(),
        };
        run_captured(|printer| resolve::run(&options, printer))
    };
    let (answer, text, talk) = resolved(flags(plane.kubeconfig()));
    assert_eq!((answer, text.as_str()), (Ok(Outcome::Done), "bundle/rose.v2.0.0\n"), "{talk}");
    assert!(talk.contains("as CatalogSource olm/main"), "{talk}");

    let compared = |there: InstalledFrom, namespace: Option<&str>| {
        let options = diff::Options {
            old: old.parse().unwrap(),
            new: new.parse().unwrap(),
            installed_from: there,
            namespace: namespace.map(str::to_owned),
            source: None,
            images: image::Options::of_user(),
            output: String::new().parse().unwrap(),
        };
        run_captured(|printer| diff::run(&options, printer))
    };
    let (answer, text, talk) = compared(flags(plane.kubeconfig()), None);
    assert_eq!(answer, Ok(Outcome::Negative), "{text}{talk}");
    assert!(text.contains("rose, channel stable: rose.v1.0.0 of Subscription garden/roses\n"), "{text}");
    let (answer, _, talk) = compared(flags(plane.kubeconfig()), Some("default"));
    assert_eq!(answer, Ok(Outcome::Done));
    assert!(talk.starts_with("warning: no matching Subscriptions"), "{talk}");

    let unprivileged = plane.kubeconfig_for("nobody", Some("system:authenticated")).unwrap();
    for answer in [resolved(flags(&unprivileged)).0, compared(flags(&unprivileged), Some("garden")).0] {
        let refused = answer.unwrap_err();
        assert!(
            refused.message.starts_with("not allowed to list subscriptions.operators.coreos.com in namespace garden: "),
            "{refused}"
        );
        assert!(
            refused.hints.join("; ").ends_with("kubectl auth can-i list subscriptions.operators.coreos.com -n garden")
        );
    }
}
