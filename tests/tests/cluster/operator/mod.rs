//! `kubectl olm operator` on a real API server, as a script would use it: without a terminal, by exit codes and JSON.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod doctor;
mod lifecycle;
mod removal;
mod rollback;
mod run;
mod waiting;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use olm_tests::control_plane::ControlPlane;
use olm_tests::data::repository;
use olm_tests::plugin::{answered, binary};
use serde_json::Value;
use tempfile::TempDir;

/// Limits a wait, so that a failure ends the test. A wait normally takes seconds.
const TIMEOUT: &str = "3m";

/// The controllers; dropping ends them.
struct Controllers(Child);

impl Drop for Controllers {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Script {
    plane: ControlPlane,
    folder: TempDir,
}

impl Script {
    /// Starts an empty cluster.
    fn empty() -> Self {
        Self { plane: ControlPlane::start().unwrap(), folder: tempfile::tempdir().unwrap() }
    }

    /// Starts a cluster that is prepared for the controllers.
    fn new() -> Self {
        let script = Self::empty();
        // What a newcomer types: nothing else prepares the cluster for the controllers.
        let crds = script.plugin("kubectl-olm").args(["install", "--crds-only"]).output().unwrap();
        assert!(crds.status.success(), "{}", String::from_utf8_lossy(&crds.stderr));
        script
    }

    fn plugin(&self, name: &str) -> Command {
        let mut command = Command::new(binary(name).unwrap());
        command.current_dir(repository()).env("KUBECONFIG", self.plane.kubeconfig()).stdin(Stdio::null());
        command
    }

    fn controllers(&self) -> Controllers {
        self.controllers_with(MARKET)
    }

    /// Starts the controllers with a catalog.
    fn controllers_with(&self, catalog: &str) -> Controllers {
        let log = File::create(self.folder.path().join("controllers.log")).unwrap();
        let mut run = self.plugin("kubectl-olm-run");
        run.arg(catalog).stdout(log.try_clone().unwrap()).stderr(log);
        Controllers(run.spawn().unwrap())
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.plane.kubectl(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Applies a backup: the definitions first, because kubectl does not wait until they are served.
    fn restores(&self, backup: &Path) {
        let definitions = backup.join("0-customresourcedefinitions");
        if definitions.exists() {
            let definitions = definitions.to_str().unwrap();
            self.kubectl(&["apply", "-f", definitions]);
            self.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "-f", definitions]);
        }
        self.kubectl(&["apply", "-R", "-f", backup.to_str().unwrap()]);
    }

    /// Runs `kubectl olm operator`. Returns exit code, stdout and stderr.
    fn operator(&self, line: &str) -> (i32, String, String) {
        let output = self.plugin("kubectl-olm-operator").args(line.split(' ')).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// Runs it on a terminal on which its prompts are answered. Returns what is on the terminal; nothing without the program `script`.
    fn answers(&self, line: &str, answers: &str) -> Option<String> {
        answered("kubectl-olm-operator", line, self.plane.kubeconfig(), answers).unwrap()
    }

    /// Runs it successfully. Returns stdout.
    fn succeed(&self, line: &str) -> String {
        let (code, out, err) = self.operator(line);
        let log = fs::read_to_string(self.folder.path().join("controllers.log")).unwrap_or_default();
        assert_eq!(code, 0, "{line}: {out}{err}\n{log}");
        out
    }

    /// Runs it without success. Returns stderr.
    fn fail(&self, line: &str) -> String {
        let (code, out, err) = self.operator(line);
        assert_eq!(code, 2, "{line}: {out}{err}");
        err
    }

    fn exists(&self, what: &str, name: &str) -> bool {
        self.plane.kubectl(["get", what, name]).output().unwrap().status.success()
    }

    /// Applies objects, with their status.
    fn applies(&self, objects: impl IntoIterator<Item = Value>) {
        let file = self.folder.path().join("objects.json");
        let file = file.to_str().unwrap();
        for object in objects {
            fs::write(file, object.to_string()).unwrap();
            self.kubectl(&["apply", "-f", file]);
            if !object["status"].is_null() {
                let what = format!("{}.{}", object["kind"].as_str().unwrap().to_lowercase(), "operators.coreos.com");
                let at = |field: &str| object["metadata"][field].as_str().unwrap();
                self.patch_status(&what, at("name"), at("namespace"), &object["status"]);
            }
        }
    }

    /// Merges a patch into the status of an object.
    fn patch_status(&self, what: &str, name: &str, namespace: &str, status: &Value) {
        let patch = serde_json::json!({ "status": status }).to_string();
        self.kubectl(&["patch", what, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", &patch]);
    }

    /// Removes all finalizers of an object.
    fn releases(&self, what: &str, name: &str, namespace: &str) {
        let patch = r#"{"metadata": {"finalizers": null}}"#;
        self.kubectl(&["patch", what, name, "-n", namespace, "--type=merge", "-p", patch]);
    }

    /// Starts `kubectl olm operator`.
    fn starts(&self, line: &str) -> Running {
        let mut command = self.plugin("kubectl-olm-operator");
        command.args(line.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().unwrap(), said: String::new() }
    }
}

/// A command that runs; dropping kills it.
struct Running {
    child: Child,
    said: String,
}

impl Running {
    /// Waits until it writes these words to stderr.
    fn says(&mut self, words: &str) {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut lines = BufReader::with_capacity(1, stderr);
        while !self.said.contains(words) {
            let read = lines.read_line(&mut self.said).unwrap();
            assert!(read > 0, "{words}: {}", self.said);
        }
    }

    /// Waits for its end. Returns exit code, stdout and the rest of stderr.
    fn end(mut self) -> (i32, String, String) {
        let (out, err) = (self.child.stdout.take().unwrap(), self.child.stderr.take().unwrap());
        let out = std::io::read_to_string(out).unwrap();
        let err = std::mem::take(&mut self.said) + &std::io::read_to_string(err).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), out, err)
    }

    /// Kills it, as a lost session or a reboot does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const MARKET: &str = "--catalog=market=tests/quickstart/catalogs/market";
