//! `kubectl olm operatorgroup`: parses the arguments and calls [`olm_shell::operatorgroup`].

mod compile;
mod create;
mod delete;
mod group_request;
mod intersect;
mod lint;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// Check, compare, generate, create and delete OperatorGroups.
///
/// Works on clusters managed by OLM, on those managed by kubectl olm run, and on files instead of a cluster or in
/// addition to one. Read permissions are sufficient for reports; a report names what it could not read.
///
/// Exit codes: 0 success and no findings, 1 negative result (with reasons), 2 error.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm-operatorgroup", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compile(Box<compile::Arguments>),
    Create(Box<create::Arguments>),
    Delete(Box<delete::Arguments>),
    Intersect(Box<intersect::Arguments>),
    Lint(Box<lint::Arguments>),
}

fn main() -> ExitCode {
    program::main(|arguments: Arguments, printer| match arguments.command {
        Command::Compile(arguments) => compile::run(*arguments, printer),
        Command::Create(arguments) => create::run(*arguments, printer),
        Command::Delete(arguments) => delete::run(*arguments, printer),
        Command::Intersect(arguments) => intersect::run(*arguments, printer),
        Command::Lint(arguments) => lint::run(*arguments, printer),
    })
}
