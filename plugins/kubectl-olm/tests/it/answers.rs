//! The built-in commands: help, version, completion.

use serde_json::Value;

use crate::home::Home;

fn stdout(home: &Home, words: &[&str]) -> String {
    let output = home.olm(words).assert().success().stderr("");
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

#[test]
fn the_help_tree() {
    let home = Home::new();
    let pages = [
        &["--help"][..],
        &["install", "--help"],
        &["upgrade", "--help"],
        &["uninstall", "--help"],
        &["status", "--help"],
        &["version", "--help"],
        &["completion", "--help"],
    ];
    let tree: Vec<_> =
        pages.iter().map(|page| format!("$ kubectl olm {}\n{}", page.join(" "), stdout(&home, page))).collect();
    insta::assert_snapshot!(tree.join("\n"));
}

#[test]
fn help_is_available_in_every_spelling() {
    let home = Home::new();
    let page = stdout(&home, &["--help"]);
    let next = "No cluster is configured: there is no kubeconfig file.\n\n  kubectl olm run --simulate DIR ";
    assert!(stdout(&home, &[]).starts_with(next));
    assert_eq!(page, stdout(&home, &["help"]));
    assert_eq!(page, stdout(&home, &["-h"]));
    assert_eq!(stdout(&home, &["version", "--help"]), stdout(&home, &["help", "version"]));
}

#[test]
fn help_lists_the_installed_plugins() {
    let home = Home::new().with("kubectl-olm-tea_pot", "echo-arguments").with("kubectl-olm_brew", "echo-arguments");
    let page = stdout(&home, &["help"]);
    // The paths may be long and wrap.
    let unbroken = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = unbroken(&page);
    assert!(words.contains(" run Run OLM's controllers "), "{page}");
    assert!(words.contains(" (not installed) "), "{page}");
    for (word, file) in [("tea-pot", "kubectl-olm-tea_pot"), ("brew", "kubectl-olm_brew")] {
        assert!(words.contains(&format!(" {word} {} ", home.path(file).display())), "{page}");
    }
    let installed = stdout(&home.with("kubectl-olm-run", "echo-arguments"), &["help"]);
    let missing = |words: &str| words.matches("(not installed)").count();
    assert_eq!(missing(&unbroken(&installed)), missing(&words) - 1, "{installed}");
}

#[test]
fn version_of_the_client_needs_no_cluster() {
    let home = Home::new();
    let version = concat!("Client Version: v", env!("CARGO_PKG_VERSION"), "\nCompatible With: OLM v0.46.0\n");
    assert_eq!(stdout(&home, &["version", "--client"]), version);
    home.olm(&["version"])
        .assert()
        .success()
        .stdout(version)
        .stderr("no cluster is configured: there is no kubeconfig file, and this is not a pod\n");
}

#[test]
fn version_is_data_when_asked() {
    let home = Home::new();
    let json: Value = serde_json::from_str(&stdout(&home, &["version", "--client", "-o", "json"])).unwrap();
    assert_eq!(json["apiVersion"], "kubectl-olm/v1");
    assert_eq!(json["kind"], "Version");
    assert_eq!(json["clientVersion"]["version"], concat!("v", env!("CARGO_PKG_VERSION")));
    let yaml: Value = serde_yaml::from_str(&stdout(&home, &["version", "--client", "-oyaml"])).unwrap();
    assert_eq!(json, yaml);
    home.olm(&["version", "-o", "wide"]).assert().code(2).stdout("");
}

#[test]
fn an_unreachable_server_is_reported_after_the_client_version() {
    // Nothing listens on port 1.
    let asked = Home::new().olm(&["version", "--server", "http://127.0.0.1:1"]).assert().code(2);
    let (out, err) = (&asked.get_output().stdout, String::from_utf8_lossy(&asked.get_output().stderr));
    assert!(out.starts_with(b"Client Version: v"));
    assert!(err.starts_with("error: no answer from the server: "), "{err}");
    assert!(err.contains("\nhint: "), "{err}");
}

#[test]
fn a_broken_kubeconfig_is_named() {
    let home = Home::new();
    let missing = home.path("missing.yaml");
    let asked = home.olm(&["version"]).arg("--kubeconfig").arg(&missing).assert().code(2);
    let err = String::from_utf8_lossy(&asked.get_output().stderr).into_owned();
    assert_eq!(err, format!("error: {}: No such file or directory (os error 2)\n", missing.display()));
}

#[test]
fn completion_knows_commands_plugins_and_flags() {
    let home = Home::new().with("kubectl-olm-brew", "echo-arguments");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        // The script runs the program, so it depends on the plugins installed at that time.
        assert!(stdout(&home, &["completion", shell]).contains("__complete"), "{shell}");
    }
    let offered = |words: &[&str]| stdout(&home, &[&["__complete"], words].concat());
    for word in ["version", "completion", "brew"] {
        assert!(offered(&[""]).lines().any(|line| line.split('\t').next() == Some(word)), "{word}");
    }
    assert!(offered(&["version", "--req"]).starts_with("--request-timeout\t"));
    // A third-party plugin may not know the completion protocol, so it is not run.
    assert_eq!(offered(&["brew", ""]), ":4\n");
    home.olm(&["completion", "tcsh"]).assert().code(2).stdout("");
}

#[test]
fn bash_accepts_the_completion_script() {
    let script = stdout(&Home::new(), &["completion", "bash"]);
    assert_cmd::Command::new("bash").arg("-n").write_stdin(script).assert().success().stderr("");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = Home::new();
    let pipe = "set -o pipefail; kubectl-olm completion zsh | head -n 1 >&2; kubectl-olm --help | true";
    let piped = home.command("/bin/bash").args(["-c", pipe]).assert().success();
    assert_eq!(String::from_utf8_lossy(&piped.get_output().stderr), "#compdef kubectl-olm\n");
}

/// Output that shared/docs/kubectl-olm.md shows.
const CRDS: &str = "\
customresourcedefinition.apiextensions.k8s.io/catalogsources.operators.coreos.com created (dry run)
customresourcedefinition.apiextensions.k8s.io/clusterserviceversions.operators.coreos.com created (dry run)
customresourcedefinition.apiextensions.k8s.io/installplans.operators.coreos.com created (dry run)
customresourcedefinition.apiextensions.k8s.io/olmconfigs.operators.coreos.com created (dry run)
customresourcedefinition.apiextensions.k8s.io/operatorconditions.operators.coreos.com created (dry run)
customresourcedefinition.apiextensions.k8s.io/operatorgroups.operators.coreos.com created (dry run)
customresourcedefinition.apiextensions.k8s.io/operators.operators.coreos.com created (dry run)
customresourcedefinition.apiextensions.k8s.io/subscriptions.operators.coreos.com created (dry run)
namespace/olm created (dry run)
";

#[test]
fn manifests_are_printed_without_a_cluster() {
    let home = Home::new();
    assert_eq!(stdout(&home, &["install", "--crds-only", "--dry-run"]), CRDS);
    let text = stdout(&home, &["install", "--image", "example.com/run:1", "--dry-run", "-o", "yaml"]);
    let list: Value = serde_yaml::from_str(&text).unwrap();
    let kinds: Vec<&str> = list["items"].as_array().unwrap().iter().filter_map(|item| item["kind"].as_str()).collect();
    assert_eq!((kinds.len(), kinds.last()), (18, Some(&"Deployment")));
}

#[test]
fn an_image_is_required_until_there_is_a_release() {
    let talk = "error: --image is required: this build of kubectl-olm has no published image of the controllers\n";
    let refused = Home::new().olm(&["install"]).assert().code(2).stdout("");
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.starts_with(talk), "{said}");
    assert!(said.contains("kubectl olm install --crds-only && kubectl olm run\n"), "{said}");
    let refused = Home::new().olm(&["install", "--version", "latest"]).assert().code(2).stdout("");
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.starts_with("error: --version \"latest\" is not a version\n"), "{said}");
}
