//! Generated pages of the documentation: rules of bundles, and problems of operators.

use olm_core::diagnosis::{CODES, Code};
use olm_core::plan::Severity;
use olm_core::validate::Validator;

const RULES: &str = "# Rules of bundle validate

`kubectl olm bundle validate` reports these findings. `--select` takes codes, names and validators. Findings of the synthesis of plain
manifests have the codes of `kubectl olm bundle synthesize`.

This page is generated: `OLM_GENERATE=1 cargo test -p olm-tests generated`.

";

/// Returns the page of the validators and rules of bundles.
pub(crate) fn bundle_rules() -> String {
    let mut text = format!("{RULES}| validator | checks |\n| --- | --- |\n");
    for validator in Validator::ALL {
        text += &format!("| `{}` | {} |\n", validator.name(), validator.summary());
    }
    text += "\n| code | name | severity | validators | finds |\n| --- | --- | --- | --- | --- |\n";
    for rule in olm_core::validate::RULES {
        let validators: Vec<&str> = rule.validators.iter().map(|validator| validator.name()).collect();
        text += &format!(
            "| {} | `{}` | {} | {} | {} |\n",
            rule.code,
            rule.name,
            rule.severity,
            validators.join(", "),
            rule.summary
        );
    }
    text
}

const TROUBLESHOOTING: &str = "# Troubleshooting operators

`kubectl olm operator describe NAME` ([page](operator.md#describe)) walks from the Subscription of an operator to its pods and certificates, and reports
problems with these codes. `kubectl olm operator describe --explain CODE` prints an entry of this page. Codes and names are stable. In the commands,
`NAMESPACE` and `NAME` stand for the object that the report names, `OPERATOR` for the operator.

A problem is *blocked* if a user has to act, and *waiting* if it may end by itself. A *notice* is neither. What could not be read, because of missing
permissions or because a must-gather does not contain it, is `Unknown` in the report and never a problem.

This page is generated: `OLM_GENERATE=1 cargo test -p olm-tests generated`.

";

/// Returns the page of the problems of operators.
pub(crate) fn troubleshooting() -> String {
    let mut text = format!("{TROUBLESHOOTING}| code | name | severity | meaning |\n| --- | --- | --- | --- |\n");
    for Code { code, name, severity, summary, .. } in CODES.iter().copied() {
        text += &format!("| [{code}](#{}) | `{name}` | {} | {summary} |\n", code.to_lowercase(), word(*severity));
    }
    for Code { code, name, severity, summary, cause, example, fix, command } in CODES.iter().copied() {
        let severity = word(*severity);
        text += &format!(
            "\n## {code}\n\n`{name}` ({severity}): {summary}.\n\n{cause}\n\nExample: `{example}`\n\nFix: {fix}\n\n    {command}\n"
        );
    }
    text
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocked => "blocked",
        Severity::Waiting => "waiting",
        Severity::Settled => "notice",
    }
}
