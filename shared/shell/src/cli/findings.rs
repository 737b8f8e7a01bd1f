//! Output of findings as text, data, SARIF, and annotations of GitHub's workflows.

use std::collections::BTreeSet;

use clap::ValueEnum;
use olm_core::finding::{Finding, Severity};
use serde_json::{Value, json};

use super::{CliError, Printer};

/// An output format of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// `file:line: object: message`, followed by a hint.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// SARIF 2.1.0, for code scanners.
    Sarif,
    /// Annotations for GitHub's workflows.
    Github,
}

/// The description of a finding's code.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The code.
    pub code: &'a str,
    /// A mnemonic name.
    pub name: &'a str,
    /// What it finds, in one line.
    pub summary: &'a str,
    /// Why it is a problem, and how to fix it.
    pub help: &'a str,
}

/// Findings to report.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The findings, in the order of output.
    pub findings: &'a [Finding],
    /// The descriptions of their codes, where available.
    pub about: &'a [About<'a>],
}

impl Report<'_> {
    /// Prints the findings as text on stdout.
    pub fn text(&self, printer: &mut Printer) -> Result<(), CliError> {
        for finding in self.findings {
            let Finding { file, line, severity, code, subject, message, hint } = finding;
            let place = match (file.as_str(), line) {
                ("", _) => String::new(),
                (file, 0) => format!("{file}: "),
                (file, line) => format!("{file}:{line}: "),
            };
            let about = if subject.is_empty() { String::new() } else { format!("{subject}: ") };
            let severity = printer.paint().severity(*severity);
            printer.line(format_args!("{place}{severity}: {about}{message} [{code}]"))?;
            if !hint.is_empty() {
                printer.line(format_args!("  hint: {hint}"))?;
            }
        }
        Ok(())
    }

    /// Prints the findings in a format: as data they are added to `document` under `findings`.
    pub fn data(&self, format: Format, mut document: Value, printer: &mut Printer) -> Result<(), CliError> {
        match format {
            Format::Text => self.text(printer),
            Format::Json | Format::Yaml => {
                document["findings"] = json!(self.findings);
                if format == Format::Json { printer.json(&document) } else { printer.yaml(&document) }
            }
            Format::Sarif => printer.json(&self.sarif()),
            Format::Github => self.findings.iter().try_for_each(|finding| printer.line(annotation(finding))),
        }
    }

    fn sarif(&self) -> Value {
        let codes: BTreeSet<&str> = self.findings.iter().map(|f| f.code).collect();
        let rules: Vec<Value> = codes.iter().map(|code| self.rule(code)).collect();
        let results: Vec<Value> = self.findings.iter().map(result).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {"name": "kubectl-olm", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
                "results": results,
            }],
        })
    }

    fn rule(&self, code: &str) -> Value {
        let Some(about) = self.about.iter().find(|about| about.code == code) else { return json!({"id": code}) };
        json!({
            "id": code, "name": about.name,
            "shortDescription": {"text": about.summary},
            "help": {"text": about.help},
        })
    }
}

fn result(finding: &Finding) -> Value {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    };
    let mut result = json!({
        "ruleId": finding.code,
        "level": level,
        "message": {"text": in_full(finding)},
    });
    if !finding.file.is_empty() {
        let mut place = json!({"artifactLocation": {"uri": finding.file.replace('\\', "/")}});
        if finding.line > 0 {
            place["region"] = json!({"startLine": finding.line});
        }
        result["locations"] = json!([{ "physicalLocation": place }]);
    } else if !finding.subject.is_empty() {
        // The location of a finding without a file is its object.
        let object = json!([{ "fullyQualifiedName": finding.subject, "kind": "object" }]);
        result["locations"] = json!([{ "logicalLocations": object }]);
    }
    result
}

/// Returns the message with its object and hint, for formats with a single text field.
fn in_full(finding: &Finding) -> String {
    let Finding { subject, message, hint, .. } = finding;
    let about = if subject.is_empty() { message.clone() } else { format!("{subject}: {message}") };
    if hint.is_empty() { about } else { format!("{about}\nhint: {hint}") }
}

fn annotation(finding: &Finding) -> String {
    let escape = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let in_property = |text: &str| escape(text).replace(':', "%3A").replace(',', "%2C");
    let mut properties = Vec::new();
    if !finding.file.is_empty() {
        properties.push(format!("file={}", in_property(&finding.file)));
    }
    if finding.line > 0 {
        properties.push(format!("line={}", finding.line));
    }
    properties.push(format!("title={}", in_property(finding.code)));
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    format!("::{command} {}::{}", properties.join(","), escape(&in_full(finding)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::streams::Buffer;

    fn printed(format: Format) -> String {
        let findings = [
            Finding::new("bad-edge", "100% wrong").at("a,b.yaml", 3).about("channel \"c\"").hint("fix it"),
            Finding::new("lost", "gone").warning(),
        ];
        let out = Buffer::default();
        let mut printer = Printer::to(out.clone(), Buffer::default());
        let about = [About { code: "lost", name: "lost-tea", summary: "tea is lost", help: "look again" }];
        Report { findings: &findings, about: &about }.data(format, json!({"kind": "Tea"}), &mut printer).unwrap();
        out.text()
    }

    #[test]
    fn no_finding_makes_another() {
        let findings = [Finding::new("lost", "gone\nerror: b").at("a\nb", 1).about("c\u{202e}").hint("d\n::error ::e")];
        let lines = |format| {
            let out = Buffer::default();
            let mut printer = Printer::to(out.clone(), Buffer::default());
            Report { findings: &findings, about: &[] }.data(format, json!({}), &mut printer).unwrap();
            assert!(!out.text().contains(|c| olm_core::visible::is_harmful(c) && c != '\n'), "{}", out.text());
            out.text().lines().count()
        };
        assert_eq!((lines(Format::Text), lines(Format::Github)), (2, 1));
        for format in [Format::Json, Format::Yaml, Format::Sarif] {
            lines(format);
        }
    }

    #[test]
    fn every_format_contains_all_fields() {
        assert_eq!(
            printed(Format::Text),
            "a,b.yaml:3: error: channel \"c\": 100% wrong [bad-edge]\n  hint: fix it\nwarning: gone [lost]\n"
        );
        assert_eq!(
            printed(Format::Github),
            "::error file=a%2Cb.yaml,line=3,title=bad-edge::channel \"c\": 100%25 wrong%0Ahint: fix it\n\
             ::warning title=lost::gone\n"
        );
        let json: Value = serde_json::from_str(&printed(Format::Json)).unwrap();
        assert_eq!((&json["kind"], &json["findings"][1]["severity"]), (&json!("Tea"), &json!("warning")));
        let sarif: Value = serde_json::from_str(&printed(Format::Sarif)).unwrap();
        let results = &sarif["runs"][0]["results"];
        assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 3);
        assert_eq!((&results[1]["level"], &results[1]["locations"]), (&json!("warning"), &Value::Null));
        let rules = &sarif["runs"][0]["tool"]["driver"]["rules"];
        assert_eq!((&rules[0], &rules[1]["help"]["text"]), (&json!({"id": "bad-edge"}), &json!("look again")));
    }
}
