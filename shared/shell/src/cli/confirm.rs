//! Prompts for confirmation before a change.

use super::{CliError, Printer};

/// Prompts with `question` on the terminal, and returns the answer; true with `--yes`.
///
/// # Errors
/// There is no terminal to prompt on.
pub fn confirm(printer: &mut Printer, question: &str, yes: bool) -> Result<bool, CliError> {
    if yes {
        return Ok(true);
    }
    if let Some(answer) = printer.answer(question) {
        return Ok(answer);
    }
    if !printer.is_interactive() {
        return Err(CliError::usage(format!("{question} Confirmation is required, and stdin is not a terminal"))
            .hint("pass --yes to proceed without a prompt"));
    }
    loop {
        printer.ask(format_args!("{question} [y/N] "))?;
        let mut answer = String::new();
        // Lines are read in the terminal's normal mode, so that it needs no reset if the process is interrupted.
        let n = std::io::stdin().read_line(&mut answer)?;
        if n == 0 {
            printer.talk("");
        }
        if let Some(answer) = understood(&answer) {
            return Ok(answer);
        }
    }
}

/// Parses an answer; an empty one is no.
fn understood(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "" | "n" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::streams::Buffer;

    #[test]
    fn without_a_terminal_only_yes_is_a_yes() {
        let mut printer = Printer::to(Buffer::default(), Buffer::default());
        assert_eq!(confirm(&mut printer, "Delete it?", true), Ok(true));
        let refused = confirm(&mut printer, "Delete it?", false).unwrap_err();
        assert_eq!(understood("Yes\n"), Some(true));
        assert_eq!(understood("\n"), Some(false));
        assert_eq!(understood("what?\n"), None);
        assert_eq!(refused.hints.first().map(String::as_str), Some("pass --yes to proceed without a prompt"));
    }
}
