//! Completes command lines, for kubectl and for shells, in cobra's protocol.
//!
//! ```text
//!   line      parses the words before the cursor by the definition of the command
//!   values    what an argument accepts: fixed words, files, or names
//!   names     looks up names in the kubeconfig, in files, and on the cluster
//!   reply     candidates as lines
//! ```
//!
//! A program completes its command line if its first argument is [`WORD`], or if its file name begins with [`PREFIX`],
//! as kubectl calls it. The words of the line follow; the last one is to be completed.
//!
//! *Guarantees*: a reply is sent within [`DEADLINE`], with the candidates known by then. Nothing is written to stderr
//! or to the cluster. Names that a shell would not read as a single word are omitted.

mod line;
mod names;
mod reply;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Command;

use self::line::{Line, Open};
pub use self::reply::{Candidate, Directive, Reply};
use self::values::Values;

/// The first argument of a completion request, as in cobra.
pub const WORD: &str = "__complete";

/// The prefix of the executables that kubectl runs to complete a plugin: `kubectl_complete-olm` for `kubectl-olm`.
pub const PREFIX: &str = "kubectl_complete-";

/// The time limit for looking up names. The whole reply should take at most 300 ms, since the user is waiting at a prompt.
pub const DEADLINE: Duration = Duration::from_millis(240);

/// The maximum number of candidates.
const MOST: usize = 500;

/// A completion request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The words, the last of which is to be completed; it may be empty.
    pub words: Vec<String>,
    /// In requests by kubectl, the file name after [`PREFIX`]: `olm`, `olm-install_plan`.
    pub plugin: Option<String>,
}

impl Question {
    /// Parses the arguments of a process, including the program name; `None` if they are not a completion request.
    pub fn from_arguments(arguments: &[OsString]) -> Option<Self> {
        let (program, words) = arguments.split_first()?;
        let file = Path::new(program).file_name()?.to_string_lossy();
        let file = file.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(&file);
        let plugin = file.strip_prefix(PREFIX).map(str::to_owned);
        let words = match (words.split_first(), &plugin) {
            (_, Some(_)) => words,
            (Some((first, words)), None) if first == WORD => words,
            _ => return None,
        };
        let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Some(Self { words, plugin })
    }
}

/// Completes the words of a command.
pub fn complete(mut command: Command, words: &[String]) -> Reply {
    let until = Instant::now() + DEADLINE;
    command.build();
    let line = Line::read(&command, words);
    let (mut candidates, sources) = offered(&line);
    let directive = if sources.contains(&Values::Files) { Directive::Files } else { Directive::Words };
    let mut reply = Reply { directive, ..Reply::default() };
    let wanted: Vec<values::Names> = sources.into_iter().filter_map(Values::names).collect();
    if !wanted.is_empty() {
        candidates.extend(found(&line, wanted, until));
    }
    let mut known = BTreeSet::new();
    candidates.retain(|candidate| {
        candidate.value.starts_with(&line.typed) && candidate.is_harmless() && known.insert(candidate.value.clone())
    });
    candidates.truncate(MOST);
    if !candidates.is_empty() && candidates.iter().all(|candidate| candidate.value.ends_with(['=', '/', ':'])) {
        reply.directive = reply.directive.without_space();
    }
    for candidate in &mut candidates {
        candidate.value.insert_str(0, &line.kept);
    }
    reply.candidates = candidates;
    reply
}

/// Returns the candidates known without a lookup, and the sources of further ones.
fn offered(line: &Line<'_>) -> (Vec<Candidate>, Vec<Values>) {
    let mut candidates = Vec::new();
    let mut sources = Vec::new();
    let of_value = match line.open {
        Open::Value(argument) | Open::ValueOrWord(argument) => Some(argument),
        Open::Word | Open::Operand => None,
    };
    let is_word = !matches!(line.open, Open::Value(_));
    let is_flag = line.typed.starts_with('-');
    if is_word && matches!(line.open, Open::Word | Open::ValueOrWord(_)) {
        candidates.extend(if is_flag { line.flags() } else { line.commands() });
    }
    let operand = line.operand().filter(|_| is_word && (!is_flag || matches!(line.open, Open::Operand)));
    for argument in of_value.into_iter().chain(operand) {
        let values = values::values(&line.path, argument);
        for value in &values {
            if let Values::Words(words) = value {
                candidates.extend(words.iter().cloned());
            }
        }
        sources.extend(values);
    }
    (candidates, sources)
}

/// Returns the names found until the deadline. Lookups that take longer are abandoned, since the process ends.
fn found(line: &Line<'_>, wanted: Vec<values::Names>, until: Instant) -> Vec<Candidate> {
    let (send, receive) = mpsc::channel();
    let given = Arc::new(line.given());
    for names in wanted {
        let (send, given) = (send.clone(), Arc::clone(&given));
        thread::spawn(move || names::find(names, &given, &send));
    }
    drop(send);
    let mut candidates = Vec::new();
    loop {
        match receive.recv_timeout(until.saturating_duration_since(Instant::now())) {
            // A name that looks like a flag would be parsed as one.
            Ok(more) => candidates.extend(more.into_iter().filter(|found: &Candidate| !found.value.starts_with('-'))),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return candidates,
        }
    }
}
