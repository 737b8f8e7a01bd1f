//! `kubectl olm install-plan`: arguments in, [`olm_shell::installplan`] does the work.

mod approve;
mod explain;
mod list;
mod wait;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// Look into InstallPlans: what stands between a resolution and the objects on the cluster.
///
/// It works on clusters that OLM looks after, and on those of kubectl olm run. To look, rights to read are enough; what may not be
/// read is told, and the answer does without where it can.
///
/// Exit codes: 0 done, 1 the answer is no (with reasons), 2 could not answer.
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
