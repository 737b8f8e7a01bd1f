//! `kubectl olm install-plan`: arguments in, [`olm_shell::installplan`] does the work.

mod explain;
mod list;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::cli;

/// Look into InstallPlans: what stands between a resolution and the objects on the cluster.
///
/// It works on clusters that OLM looks after, and on those of kubectl olm run. Only rights to read are needed; what may not be
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
    Explain(Box<explain::Arguments>),
    List(Box<list::Arguments>),
}

fn main() -> ExitCode {
    cli::main(|arguments: Arguments, printer| match arguments.command {
        Command::Explain(arguments) => explain::run(*arguments, printer),
        Command::List(arguments) => list::run(*arguments, printer),
    })
}
