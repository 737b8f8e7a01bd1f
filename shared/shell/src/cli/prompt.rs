//! Prompts on the terminal: for confirmation before a change, and for text.
//!
//! Lines are read in the terminal's normal mode, so that nothing needs a reset if Ctrl-C ends the process.

use std::io;

use dialoguer::Input;

use super::paint::Paint;
use super::{CliError, Printer};
use crate::visible;

/// How often an invalid answer may be corrected. Also ends prompts on a terminal that is closed.
const TRIES: usize = 10;

/// Prompts with `question` on the terminal, and returns the answer; true with `--yes`.
///
/// # Errors
/// There is no terminal to prompt on.
pub fn confirm(printer: &mut Printer, question: &str, yes: bool) -> Result<bool, CliError> {
    ask(printer, question, yes, None)
}

/// Like [`confirm`], and prints `details` for the answer `d`, as often as they are requested.
///
/// # Errors
/// There is no terminal to prompt on.
pub fn confirm_with(
    printer: &mut Printer,
    question: &str,
    yes: bool,
    details: impl Fn(Paint) -> String,
) -> Result<bool, CliError> {
    ask(printer, question, yes, Some(&details))
}

fn ask(
    printer: &mut Printer,
    question: &str,
    yes: bool,
    details: Option<&dyn Fn(Paint) -> String>,
) -> Result<bool, CliError> {
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
    printer.flush()?;
    let answers = if details.is_some() { "[y/N/d]" } else { "[y/N]" };
    let mut tries = 0;
    while tries < TRIES {
        match (parse_answer(&read_line(&format!("{question} {answers}"), None)?), details) {
            (Answer::Yes, _) => return Ok(true),
            (Answer::No, _) => return Ok(false),
            (Answer::Details, Some(details)) => {
                // Indented, so that no line looks like a separate message.
                let lines: Vec<String> = details(printer.paint()).lines().map(|line| format!("  {line}")).collect();
                printer.reason(lines.join("\n"));
            }
            (Answer::Details | Answer::Invalid, None) => tries += 1,
            (Answer::Invalid, Some(_)) => {
                tries += 1;
                printer.reason("answer y for yes, n for no, or d to print the differences");
            }
        }
    }
    Ok(false)
}

/// Prompts for text on the terminal; an empty answer is the default. `check` returns why an answer is invalid.
///
/// # Errors
/// There is no answer, or no valid one.
pub fn text(
    printer: &mut Printer,
    question: &str,
    default: Option<&str>,
    check: &dyn Fn(&str) -> Result<(), String>,
) -> Result<String, CliError> {
    printer.flush()?;
    for _ in 0..TRIES {
        let answer = read_line(question, default)?;
        match check(answer.trim()) {
            Ok(()) => return Ok(answer.trim().to_owned()),
            Err(problem) => printer.reason(problem),
        }
    }
    Err(CliError::usage(format!("no valid answer to: {question}")))
}

/// Prompts for text that may be left out. Returns nothing for an empty answer.
///
/// # Errors
/// There is no answer, or no valid one.
pub fn optional(
    printer: &mut Printer,
    question: &str,
    check: &dyn Fn(&str) -> Result<(), String>,
) -> Result<Option<String>, CliError> {
    let answer = text(printer, question, None, &|answer| if answer.is_empty() { Ok(()) } else { check(answer) })?;
    Ok(Some(answer).filter(|answer| !answer.is_empty()))
}

fn read_line(question: &str, default: Option<&str>) -> Result<String, CliError> {
    let input = Input::new().with_prompt(visible::painted(question)).allow_empty(true).report(false);
    let input = match default {
        Some(default) => input.default(default.to_owned()),
        None => input,
    };
    Ok(input.interact().map_err(io::Error::from)?)
}

/// An answer to a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Details,
    Invalid,
}

/// Parses an answer; an empty one is no.
fn parse_answer(answer: &str) -> Answer {
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Yes,
        "" | "n" | "no" => Answer::No,
        "d" | "diff" | "details" => Answer::Details,
        _ => Answer::Invalid,
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
        assert_eq!(parse_answer("Yes\n"), Answer::Yes);
        assert_eq!(parse_answer("\n"), Answer::No);
        assert_eq!(parse_answer("d\n"), Answer::Details);
        assert_eq!(parse_answer("what?\n"), Answer::Invalid);
        assert_eq!(refused.hints.first().map(String::as_str), Some("pass --yes to proceed without a prompt"));
    }
}
