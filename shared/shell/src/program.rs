//! The `main` function of all plugins: parses arguments, runs the command, and returns the exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, FromArgMatches, Parser};

use crate::cli::CliError;
use crate::cli::flags::TalkFlags;
use crate::cli::logging::{self, Usually};
use crate::cli::{Outcome, Printer, name, signal};
use crate::completion::{self, Question};
use crate::reference;

/// The help template, in kubectl's order: description, examples, options, usage.
const HELP: &str = "{about-with-newline}\n{before-help}{all-args}\n\n{usage-heading}\n  {usage}{after-help}";

/// The placeholder for the command in help texts and examples.
const SPELLED: &str = "{cmd}";

/// Parses the arguments of this process, runs `body` and reports the result. Exit codes: 0 success, 1 negative result,
/// 2 error.
pub fn main<A: Parser>(body: impl FnOnce(A, &mut Printer) -> Result<Outcome, CliError>) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(question) = Question::from_arguments(&arguments) {
        let mut printer = Printer::stdio();
        let reply = completion::complete(command::<A>(""), &question.words);
        return finish(printer.data(reply).map(|()| Outcome::Done), &mut printer);
    }
    if let Some(page) = reference::<A>(&arguments) {
        let mut printer = Printer::stdio();
        return finish(printer.data(page).map(|()| Outcome::Done), &mut printer);
    }
    match parse::<A>(arguments) {
        Ok(Parsed { arguments, talk, logs_itself }) => {
            let mut printer = talk.printer();
            if !logs_itself {
                logging::start(talk.log, Usually::Warnings);
            }
            let ended = body(arguments, &mut printer);
            finish(ended, &mut printer)
        }
        Err(refusal) => refuse(&refusal),
    }
}

/// Returns the page of the reference that the arguments of this process request, if any.
pub fn reference<A: Parser>(arguments: &[OsString]) -> Option<String> {
    let spelled = name::spelled(arguments.first()?);
    reference::requested(arguments, || command::<A>(&spelled))
}

/// Reports the result of a body, and returns the exit code: 130 after Ctrl-C, whatever the result.
pub fn finish(ended: Result<impl Into<ExitCode>, CliError>, printer: &mut Printer) -> ExitCode {
    let code = match ended.and_then(|answer| printer.flush().map(|()| answer)) {
        Ok(answer) => answer.into(),
        Err(error) => {
            printer.error(&error);
            error.exit_code()
        }
    };
    if signal::was_interrupted() { ExitCode::from(signal::INTERRUPTED) } else { code }
}

/// Prints clap's output, help on stdout or an error on stderr, and returns the exit code.
pub fn refuse(refusal: &clap::Error) -> ExitCode {
    // A closed pipe while printing help is not an error.
    refusal.print().ok();
    ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(2))
}

/// A parsed command line.
#[derive(Debug)]
pub struct Parsed<A> {
    /// The arguments of the command.
    pub arguments: A,
    /// The flags of all commands.
    pub talk: TalkFlags,
    /// Whether the command starts logging itself. Controllers log more by default.
    pub logs_itself: bool,
}

/// Parses arguments; the first is the program.
pub fn parse<A: Parser>(arguments: Vec<OsString>) -> Result<Parsed<A>, clap::Error> {
    let spelled = name::spelled(arguments.first().map(OsString::as_os_str).unwrap_or_default());
    let mut command = command::<A>(&spelled);
    let matches = command.try_get_matches_from_mut(arguments)?;
    // A global flag is known to the subcommand that it follows, and to nested ones.
    let (mut deepest, mut own) = (&matches, A::command());
    let mut logs_itself = has_log(&own);
    // The arguments of external plugins are not subcommands.
    while let Some((name, below)) = deepest.subcommand()
        && let Some(command) = own.find_subcommand(name).cloned()
    {
        (deepest, own) = (below, command);
        logs_itself |= has_log(&own);
    }
    let talk = TalkFlags::from_arg_matches(deepest).map_err(|error| error.format(&mut command))?;
    let arguments = A::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    Ok(Parsed { arguments, talk, logs_itself })
}

/// Returns whether the command itself has log flags.
fn has_log(command: &clap::Command) -> bool {
    command.get_arguments().any(|argument| argument.get_id() == "verbosity")
}

/// Returns the command of `A` with the flags of all commands, and with the program name as called in usage and examples.
pub fn command<A: Parser>(spelled: &str) -> clap::Command {
    let mut command = A::command();
    let known: Vec<_> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    let of_all = TalkFlags::augment_args(clap::Command::new("")).get_arguments().cloned().collect::<Vec<_>>();
    command = command.args(of_all.into_iter().filter(|argument| !known.contains(argument.get_id())));
    dress(command.bin_name(spelled), spelled)
}

fn dress(mut command: clap::Command, spelled: &str) -> clap::Command {
    let spell = |text: &clap::builder::StyledStr| text.to_string().replace(SPELLED, spelled);
    if let Some(text) = command.get_before_help().map(spell) {
        command = command.before_help(text);
    }
    if let Some(text) = command.get_after_help().map(spell) {
        command = command.after_help(text);
    }
    if let Some(text) = command.get_long_about().map(spell) {
        command = command.long_about(text);
    }
    command.help_template(HELP).mut_subcommands(|sub| dress(sub, spelled))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brew tea.
    #[derive(Debug, Parser)]
    #[command(name = "kubectl-olm-brew", before_help = "Examples:\n  {cmd} --cups 2")]
    struct Brew {
        /// How many
        #[arg(long)]
        cups: u8,
    }

    fn refusal(arguments: &[&str]) -> clap::Error {
        parse::<Brew>(arguments.iter().map(Into::into).collect()).unwrap_err()
    }

    #[test]
    fn help_shows_the_program_name_as_called() {
        for (argv0, spelled) in [("/bin/kubectl-olm-brew", "kubectl olm brew"), ("brew", "brew")] {
            let help = refusal(&[argv0, "--help"]).to_string();
            let example = format!("Examples:\n  {spelled} --cups 2\n");
            assert!(help.starts_with(&format!("Brew tea\n\n{example}")), "{help}");
            assert!(help.ends_with(&format!("Usage:\n  {spelled} [OPTIONS] --cups <CUPS>\n")), "{help}");
        }
    }

    #[test]
    fn a_usage_error_is_exit_code_2() {
        let error = refusal(&["kubectl-olm-brew", "--mugs"]);
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("Usage: kubectl olm brew [OPTIONS] --cups <CUPS>"), "{error}");
    }
}
