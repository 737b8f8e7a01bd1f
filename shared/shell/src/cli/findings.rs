//! Output of findings as text, data, SARIF, JUnit reports, and annotations of GitHub's workflows.

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
    /// A JUnit report, in XML.
    Junit,
    /// Annotations for GitHub's workflows.
    Github,
}

/// The lowest severity of a finding for exit code 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors.
    Error,
    /// Errors and warnings.
    #[default]
    Warning,
    /// All findings.
    Info,
    /// Never fail because of findings.
    Never,
}

impl FailOn {
    /// Returns whether a finding of that severity leads to exit code 1.
    pub(crate) fn counts(self, severity: Severity) -> bool {
        match self {
            Self::Error => severity == Severity::Error,
            Self::Warning => severity <= Severity::Warning,
            Self::Info => true,
            Self::Never => false,
        }
    }
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
    /// The names of what was checked, as prefixes of files of findings, for reports that list successes, too.
    pub checked: &'a [String],
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
            Format::Junit => printer.data(self.junit()),
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

    /// Returns a JUnit report with one suite for each checked name, and one for other findings. Information is not a failure.
    fn junit(&self) -> String {
        let of = |finding: &&Finding| {
            let names = self.checked.iter().filter(|name| is_within(&finding.file, name));
            names.max_by_key(|name| name.len()).map_or("", String::as_str).to_owned()
        };
        let others = self.findings.iter().any(|finding| of(&finding).is_empty()) || self.checked.is_empty();
        let suites = self.checked.iter().map(String::as_str).chain(others.then_some(""));
        let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kubectl-olm\">\n".to_owned();
        for suite in suites {
            let findings: Vec<&Finding> = self.findings.iter().filter(|finding| of(finding) == suite).collect();
            let failures = findings.iter().filter(|finding| finding.severity != Severity::Info).count();
            let name = if suite.is_empty() { "kubectl-olm" } else { suite };
            text += &format!(
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\">\n",
                xml(name),
                findings.len().max(1)
            );
            if findings.is_empty() {
                text += &format!("    <testcase classname=\"{}\" name=\"no findings\"/>\n", xml(name));
            }
            for finding in findings {
                text += &case(name, finding);
            }
            text += "  </testsuite>\n";
        }
        text + "</testsuites>\n"
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

/// Returns whether a file is that of a name, or below it.
fn is_within(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || name.is_empty())
}

/// Returns a test case of a JUnit report.
fn case(suite: &str, finding: &Finding) -> String {
    let Finding { file, line, severity, code, subject, .. } = finding;
    let name = if subject.is_empty() { (*code).to_owned() } else { format!("{code} {subject}") };
    let place = match (file.as_str(), line) {
        ("", _) => String::new(),
        (file, 0) => format!(" file=\"{}\"", xml(file)),
        (file, line) => format!(" file=\"{}\" line=\"{line}\"", xml(file)),
    };
    let content = match severity {
        Severity::Info => format!("<system-out>{}</system-out>", xml(&in_full(finding))),
        _ => {
            let message = xml(&finding.message);
            format!("<failure type=\"{severity}\" message=\"{message}\">{}</failure>", xml(&in_full(finding)))
        }
    };
    format!("    <testcase classname=\"{}\" name=\"{}\"{place}>{content}</testcase>\n", xml(suite), xml(&name))
}

/// Escapes text for XML. Characters that XML does not have are replaced.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
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
        Report { findings: &findings, about: &about, checked: &[] }
            .data(format, json!({"kind": "Tea"}), &mut printer)
            .unwrap();
        out.text()
    }

    #[test]
    fn no_finding_makes_another() {
        let findings = [Finding::new("lost", "gone\nerror: b").at("a\nb", 1).about("c\u{202e}").hint("d\n::error ::e")];
        let lines = |format| {
            let out = Buffer::default();
            let mut printer = Printer::to(out.clone(), Buffer::default());
            Report { findings: &findings, about: &[], checked: &[] }.data(format, json!({}), &mut printer).unwrap();
            assert!(!out.text().contains(|c| olm_core::visible::is_harmful(c) && c != '\n'), "{}", out.text());
            out.text().lines().count()
        };
        assert_eq!((lines(Format::Text), lines(Format::Github)), (2, 1));
        assert_eq!(lines(Format::Junit), 6);
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
        assert_eq!(
            printed(Format::Junit),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kubectl-olm\">\n  \
             <testsuite name=\"kubectl-olm\" tests=\"2\" failures=\"2\">\n    \
             <testcase classname=\"kubectl-olm\" name=\"bad-edge channel &quot;c&quot;\" file=\"a,b.yaml\" line=\"3\">\
             <failure type=\"error\" message=\"100% wrong\">channel &quot;c&quot;: 100% wrong&#10;hint: fix it</failure>\
             </testcase>\n    <testcase classname=\"kubectl-olm\" name=\"lost\">\
             <failure type=\"warning\" message=\"gone\">gone</failure></testcase>\n  </testsuite>\n</testsuites>\n"
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
