//! `kubectl olm operator`: parses the arguments and calls [`olm_shell::operator`].

mod list;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// Show operators, their versions and their health.
///
/// An operator is a Subscription with its ClusterServiceVersion, or a ClusterServiceVersion that was created without a
/// Subscription. Works on clusters managed by OLM and on those managed by kubectl olm run. Read permissions are
/// sufficient; a report names what it could not read, and leaves it out where possible.
///
/// Exit codes: 0 success, 1 negative result (with reasons), 2 error.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm-operator", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(Box<list::Arguments>),
}

fn main() -> ExitCode {
    program::main(|arguments: Arguments, printer| match arguments.command {
        Command::List(arguments) => list::run(*arguments, printer),
    })
}
