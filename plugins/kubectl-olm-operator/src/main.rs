//! `kubectl olm operator`: parses the arguments and calls [`olm_shell::operator`].

mod cleanup;
mod describe;
mod doctor;
mod install;
mod list;
mod outdated;
mod rollback;
mod run;
mod terms;
mod uninstall;
mod upgrade;
mod wait;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// Install, upgrade, uninstall and show operators.
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
    Cleanup(Box<cleanup::Arguments>),
    Describe(Box<describe::Arguments>),
    Doctor(Box<doctor::Arguments>),
    Install(Box<install::Arguments>),
    List(Box<list::Arguments>),
    Outdated(Box<outdated::Arguments>),
    Rollback(Box<rollback::Arguments>),
    Run(Box<run::Arguments>),
    Uninstall(Box<uninstall::Arguments>),
    Upgrade(Box<upgrade::Arguments>),
    Wait(Box<wait::Arguments>),
}

fn main() -> ExitCode {
    program::main(|arguments: Arguments, printer| match arguments.command {
        Command::Cleanup(arguments) => cleanup::run(*arguments, printer),
        Command::Describe(arguments) => describe::run(*arguments, printer),
        Command::Doctor(arguments) => doctor::run(*arguments, printer),
        Command::Install(arguments) => install::run(*arguments, printer),
        Command::List(arguments) => list::run(*arguments, printer),
        Command::Outdated(arguments) => outdated::run(*arguments, printer),
        Command::Rollback(arguments) => rollback::run(*arguments, printer),
        Command::Run(arguments) => run::run(*arguments, printer),
        Command::Uninstall(arguments) => uninstall::run(*arguments, printer),
        Command::Upgrade(arguments) => upgrade::run(*arguments, printer),
        Command::Wait(arguments) => wait::run(*arguments, printer),
    })
}
