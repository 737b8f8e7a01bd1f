//! `kubectl olm bundle`: parses the arguments and calls [`olm_shell::bundle`].

mod synthesize;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// Create bundles of operators from plain manifests.
///
/// Exit codes: 0 success, 1 negative result (with reasons), 2 error.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm-bundle", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Synthesize(synthesize::Arguments),
}

fn main() -> ExitCode {
    program::main(|arguments: Arguments, printer| match arguments.command {
        Command::Synthesize(arguments) => synthesize::run(arguments, printer),
    })
}
