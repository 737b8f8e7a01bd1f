//! Completion of `kubectl olm`: its own commands, and the arguments of plugins as the plugins report them.

use std::process::{Command, Stdio};

use olm_shell::completion::{self, Question};
use olm_shell::program;

use crate::plugins;

/// Returns the completion candidates at the cursor, in cobra's protocol.
pub(crate) fn answer(question: Question) -> String {
    let Question { mut words, plugin } = question;
    // kubectl passes olm-run for `kubectl olm run`, and olm_run for krew's `kubectl olm-run`.
    let word = plugin.as_deref().and_then(|plugin| plugin.strip_prefix("olm")?.strip_prefix(['-', '_']));
    if let Some(word) = word {
        words.insert(0, word.replace('_', "-"));
    }
    let is_own = |word: &String| word.starts_with('-') || crate::own_words().contains(word);
    if let Some((word, rest)) = words.split_first().filter(|(word, rest)| !rest.is_empty() && !is_own(word)) {
        return candidates_of_plugin(word, rest).unwrap_or_else(|| completion::Reply::default().to_string());
    }
    let command = plugins::installed_in(program::command::<crate::Arguments>("kubectl olm"));
    let mut reply = completion::complete(command, &words);
    if plugin.is_some() {
        // kubectl completes these itself.
        reply.candidates.retain(|candidate| !plugins::is_kubectls(&candidate.value));
    }
    reply.to_string()
}

/// Returns the candidates of a plugin. A plugin of this release is run with the completion argument. A third-party
/// plugin is never run, since it could take the argument for a command; its completion executable is, as kubectl does.
fn candidates_of_plugin(word: &str, rest: &[String]) -> Option<String> {
    let mut program = if plugins::is_ours(word) {
        let mut program = Command::new(plugins::find(word)?);
        program.arg(completion::WORD);
        program
    } else {
        Command::new(plugins::completer(word)?)
    };
    let answer = program.args(rest).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    answer.status.success().then(|| String::from_utf8_lossy(&answer.stdout).into_owned())
}
