//! olm-core decides and never acts: no clock, randomness, environment, file, network, process, thread or terminal.

use super::Finding;
use super::sources::{Source, code};

/// Modules of the standard library that touch the world, and types whose order or value differs from run to run.
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

/// Functions that read a clock, however their type was imported.
const CLOCKS: [&str; 4] = ["Timestamp::now", "Zoned::now", "SystemTime::now", "Instant::now"];

/// Macros that print.
const PRINTING: [&str; 5] = ["dbg", "eprint", "eprintln", "print", "println"];

/// Places in olm-core that touch the world or depend on it.
pub fn core(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.file.starts_with("shared/core/src")) {
        let code = code(source);
        for (path, line) in code.paths {
            let impure = IMPURE
                .iter()
                .any(|impure| path.strip_prefix(impure).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")));
            if impure || CLOCKS.iter().any(|clock| path.ends_with(clock)) {
                let what = format!("{path}: the core gets this as an argument, and keeps its order in a BTreeMap");
                findings.push(Finding::new(&source.file, line, what));
            }
        }
        let printed = code.macros.into_iter().filter(|(name, _)| PRINTING.contains(&name.as_str()));
        findings.extend(printed.map(|(name, line)| Finding::new(&source.file, line, format!("{name}! in the core"))));
    }
    findings
}
