//! olm-core computes plans without side effects: no clock, randomness, environment, file, network, process, thread or terminal.

use super::Finding;
use super::sources::{Source, code};

/// Modules of the standard library with side effects, and types whose order or value differs between runs.
const IMPURE: [&str; 16] = [
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::hash::RandomState",
    "rand",
    "uuid",
];

/// Functions that read a clock, regardless of how their type was imported.
const CLOCKS: [&str; 4] = ["Timestamp::now", "Zoned::now", "SystemTime::now", "Instant::now"];

/// Macros that print.
const PRINTING: [&str; 5] = ["dbg", "eprint", "eprintln", "print", "println"];

/// Returns the places in olm-core that have side effects or depend on the environment.
pub fn core(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.file.starts_with("shared/core/src")) {
        let code = code(source);
        for (path, line) in code.paths {
            let impure = IMPURE
                .iter()
                .any(|impure| path.strip_prefix(impure).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")));
            if impure || CLOCKS.iter().any(|clock| path.ends_with(clock)) {
                let what = format!("{path}: the core gets this as an argument, and uses a BTreeMap for a stable order");
                findings.push(Finding::new(&source.file, line, what));
            }
        }
        let printed = code.macros.into_iter().filter(|(name, _)| PRINTING.contains(&name.as_str()));
        findings.extend(printed.map(|(name, line)| Finding::new(&source.file, line, format!("{name}! in the core"))));
    }
    findings
}
