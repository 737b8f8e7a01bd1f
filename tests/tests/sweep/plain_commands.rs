//! Published manifests as a user turns them into bundles: `bundle synthesize` of each folder, and `bundle validate` of the result.
//!
//! What is synthesized and which findings there are is in `tests/sweep/plain.tsv`, for the folder as it was published and after its
//! findings were followed: without the manifests that have errors, and with what is missing in olm.yaml. `OLM_GENERATE=1` renews it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use olm_core::api::object::{list, text};
use olm_core::bundle::synthesis::Format;
use olm_tests::plugin::binary;
use olm_tests::sweep::plain::{Project, VERSIONS};
use serde_json::Value;

use super::plain_projects::{check_table, folders};
use super::*;

/// The result of `synthesize` and `validate`.
struct Tried {
    /// The format of the bundle, or `-`.
    format: &'static str,
    /// The findings of `synthesize`.
    findings: String,
    /// The findings of `validate`, or `-` without a bundle.
    validation: String,
}

fn bundle(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary("kubectl-olm-bundle").unwrap());
    command.args(arguments).env("NO_COLOR", "1").output().unwrap()
}

/// Returns the codes of findings with their numbers, errors first: `error unsupported-kind×2, warning revisions`.
fn codes(findings: &[Value], code: &str) -> String {
    let mut numbers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for finding in findings {
        *numbers.entry((text(finding, &["severity"]), text(finding, &[code]))).or_default() += 1;
    }
    let mut groups: Vec<String> = Vec::new();
    for severity in ["error", "warning", "info"] {
        let of_severity = numbers.iter().filter(|((other, _), _)| *other == severity);
        let codes = of_severity.map(|((_, code), n)| if *n == 1 { (*code).to_owned() } else { format!("{code}×{n}") });
        let codes: Vec<String> = codes.collect();
        if !codes.is_empty() {
            groups.push(format!("{severity}: {}", codes.join(" ")));
        }
    }
    if groups.is_empty() { "none".to_owned() } else { groups.join("; ") }
}

/// Synthesizes `k8s+v1`, and `registry+v1` if that has errors; validates the result.
fn tried(name: &str, input: &Path, formats: &[&'static str]) -> Tried {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (input.to_str().unwrap(), folder.path().join(name));
    let output = output.to_str().unwrap();
    let mut findings = Vec::new();
    for format in formats {
        let flags = ["synthesize", input, "--package", name, "--version", VERSIONS[0], "--to", *format];
        let account = bundle(&[&flags[..], &["--account", "-o", "json"]].concat());
        let document: Value = serde_json::from_slice(&account.stdout).unwrap();
        findings.push(codes(list(&document, &["findings"]), "code"));
        let written = bundle(&[&flags[..], &["--output-dir", output]].concat());
        assert_eq!(written.status.code(), account.status.code(), "{name} {format}");
        if written.status.success() {
            let validated = bundle(&["validate", output, "-o", "json"]);
            let document: Value = serde_json::from_slice(&validated.stdout).unwrap();
            let validation = codes(list(&document, &["findings"]), "code");
            return Tried { format, findings: findings.pop().unwrap(), validation };
        }
        let errors = String::from_utf8_lossy(&written.stderr).matches("error: ").count();
        assert_ne!(errors, 0, "{name} {format}: not written, and without an error");
        assert!(!Path::new(output).exists(), "{name} {format}: something is written in spite of errors");
    }
    Tried { format: "-", findings: findings.swap_remove(0), validation: "-".to_owned() }
}

/// Returns the line of a folder, and whether a bundle results from it that passes.
fn line(folder: &Path) -> (String, bool) {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let published = tried(&name, folder, &["k8s+v1", "registry+v1"]);
    let project = Project::read(folder, None).unwrap();
    let followed = project.map(|project| {
        let input = tempfile::tempdir().unwrap();
        project.write_published(input.path()).unwrap();
        let format = if project.format == Format::Plain { "k8s+v1" } else { "registry+v1" };
        tried(&name, input.path(), &[format])
    });
    let without = Tried { format: "-", findings: "-".to_owned(), validation: "-".to_owned() };
    let followed = followed.unwrap_or(without);
    let columns =
        [published, followed].map(|tried| format!("{}\t{}\t{}", tried.format, tried.findings, tried.validation));
    (format!("{name}\t{}\n", columns.join("\t")), !columns[1].contains("\terror") && !columns[1].starts_with('-'))
}

#[test]
fn published_folders_become_bundles_or_findings() {
    let Some(mut folders) = folders() else { skip!("{NO_DATA}") };
    folders.retain(|folder| ASKED.is_empty() || ASKED.contains(&*folder.file_name().unwrap().to_string_lossy()));
    // Built once, not by each of the threads.
    binary("kubectl-olm-bundle").unwrap();
    let lines = each(&folders, |folder| line(folder));
    let mut table = String::from(
        "# folder\tsynthesized\tfindings\tvalidate\tafter following the findings\tremaining findings\tvalidate\n",
    );
    table.extend(lines.iter().map(|(line, _)| line.as_str()));
    print!("{table}");
    check_table("plain.tsv", &table);
}
