//! `kubectl olm`: runs its own commands, and executes the plugin that any other command names.

mod completion;
mod install;
mod plugins;
mod status;
mod transfer;
mod uninstall;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use olm_shell::cli::logging::{self, Usually};
use olm_shell::cli::{self, CliError, Outcome, Printer};
use olm_shell::completion::Question;
use olm_shell::olm::welcome;
use olm_shell::program::{self, Parsed};

/// The Operator Lifecycle Manager (OLM) as kubectl plugins.
///
/// The commands install, status, upgrade, uninstall, take-over, hand-back, version and completion are built in. Every other command is a
/// separate plugin, an executable beside this one or on PATH.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm", version, disable_help_subcommand = true, after_help = MORE)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const MORE: &str = "Use \"{cmd} COMMAND --help\" for more information about a command.";

#[derive(Debug, Subcommand)]
enum Command {
    Install(Box<install::Arguments>),
    Status(Box<status::Arguments>),
    Upgrade(Box<install::Upgrade>),
    Uninstall(Box<uninstall::Arguments>),
    TakeOver(Box<transfer::TakeOver>),
    HandBack(Box<transfer::HandBack>),
    // After the plugins.
    #[command(display_order = 900)]
    Version(Box<version::Arguments>),
    #[command(display_order = 901)]
    Completion(completion::Arguments),
    #[command(external_subcommand)]
    Plugin(Vec<OsString>),
}

fn main() -> ExitCode {
    let mut printer = Printer::stdio();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(question) = Question::from_arguments(&arguments) {
        return program::finish(printer.data(completion::answer(question)).map(|()| Outcome::Done), &mut printer);
    }
    if let Some(page) = program::reference::<Arguments>(&arguments) {
        return program::finish(printer.data(page).map(|()| Outcome::Done), &mut printer);
    }
    let arguments = help_goes_last(arguments);
    if arguments.len() == 1 {
        return program::finish(welcome::run(&mut printer), &mut printer);
    }
    if arguments.len() == 2 && is_help(&arguments[1]) {
        return program::finish(help(&arguments[0], &mut printer), &mut printer);
    }
    let words = arguments.get(1..).unwrap_or_default().to_vec();
    match program::parse::<Arguments>(arguments) {
        Ok(Parsed { arguments, talk, .. }) => {
            logging::start(talk.log, Usually::Warnings);
            let mut printer = talk.printer();
            let command = match arguments.command {
                Command::Plugin(plugin) => Command::Plugin(behind_the_word(plugin, words)),
                own => own,
            };
            program::finish(run(command, &mut printer), &mut printer)
        }
        Err(refusal) => program::refuse(&refusal),
    }
}

/// Returns the arguments of a plugin: its name, then the flags given before the name, which every command accepts, then
/// the rest.
fn behind_the_word(words: Vec<OsString>, all: Vec<OsString>) -> Vec<OsString> {
    let before = all.len().saturating_sub(words.len());
    let (first, rest) = words.split_at(words.len().min(1));
    [first, &all[..before], rest].concat()
}

fn run(command: Command, printer: &mut Printer) -> Result<ExitCode, CliError> {
    match command {
        Command::Install(arguments) => install::run(*arguments, printer).map(ExitCode::from),
        Command::HandBack(arguments) => transfer::hand_back(*arguments, printer).map(ExitCode::from),
        Command::TakeOver(arguments) => transfer::take_over(*arguments, printer).map(ExitCode::from),
        Command::Status(arguments) => status::run(*arguments, printer).map(ExitCode::from),
        Command::Uninstall(arguments) => uninstall::run(&arguments, printer).map(ExitCode::from),
        Command::Upgrade(arguments) => install::upgrade(*arguments, printer).map(ExitCode::from),
        Command::Version(arguments) => version::run(&arguments, printer).map(ExitCode::from),
        Command::Completion(arguments) => completion::run(&arguments, printer).map(ExitCode::from),
        Command::Plugin(words) => plugins::hand_over(&words),
    }
}

/// Rewrites `help WORD…` to `WORD… --help`, and `help` alone to `--help`.
fn help_goes_last(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|word| word == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}

fn is_help(word: &OsString) -> bool {
    word == "--help" || word == "-h"
}

/// Prints the help page, which lists every plugin.
fn help(argv0: &OsString, printer: &mut Printer) -> Result<Outcome, CliError> {
    let command = program::command::<Arguments>(&cli::name::spelled(argv0));
    printer.data(plugins::listed_in(command).render_long_help())?;
    Ok(Outcome::Done)
}

/// Returns the names of the built-in commands.
fn own_words() -> Vec<String> {
    Arguments::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}
