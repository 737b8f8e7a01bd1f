//! `kubectl olm install-plan`: parses the arguments and calls [`olm_shell::installplan`].

mod approve;
mod explain;
mod list;
mod wait;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// List, explain, approve and wait for InstallPlans.
///
/// Works on clusters managed by OLM and on those managed by kubectl olm run. Read permissions are sufficient for
/// reports; a report names what it could not read, and leaves it out where possible.
///
/// Exit codes: 0 success, 1 negative result (with reasons), 2 error.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm-install_plan", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Approve(Box<approve::Arguments>),
    Explain(Box<explain::Arguments>),
    List(Box<list::Arguments>),
    Wait(Box<wait::Arguments>),
}

fn main() -> ExitCode {
    program::main(|arguments: Arguments, printer| match arguments.command {
        Command::Approve(arguments) => approve::run(*arguments, printer),
        Command::Explain(arguments) => explain::run(*arguments, printer),
        Command::List(arguments) => list::run(*arguments, printer),
        Command::Wait(arguments) => wait::run(*arguments, printer),
    })
}
