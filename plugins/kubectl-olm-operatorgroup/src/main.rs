//! `kubectl olm operatorgroup`: arguments in, [`olm_shell::operatorgroup`] does the work.

mod compile;
mod create;
mod delete;
mod intersect;
mod lint;
mod wish;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// Find clashes of OperatorGroups before they happen; compile, create and delete groups.
///
/// It works on clusters that OLM looks after, on those of kubectl olm run, and on files instead of a cluster or on top of one. To
/// look, rights to read are enough; what may not be read is told.
///
/// Exit codes: 0 done and nothing found, 1 the answer is no (with reasons), 2 could not answer.
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
