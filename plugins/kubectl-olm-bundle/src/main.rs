//! `kubectl olm bundle`: parses the arguments and calls [`olm_shell::bundle`].

mod build;
mod push;
mod synthesize;
mod unpack;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// Create bundles of operators from plain manifests, check them, and build their images.
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
    Build(Box<build::Arguments>),
    Push(Box<push::Arguments>),
    Synthesize(Box<synthesize::Arguments>),
    Unpack(Box<unpack::Arguments>),
    Validate(Box<validate::Arguments>),
}

fn main() -> ExitCode {
    program::main(|arguments: Arguments, printer| match arguments.command {
        Command::Build(arguments) => build::run(*arguments, printer),
        Command::Push(arguments) => push::run(*arguments, printer),
        Command::Synthesize(arguments) => synthesize::run(*arguments, printer),
        Command::Unpack(arguments) => unpack::run(*arguments, printer),
        Command::Validate(arguments) => validate::run(*arguments, printer),
    })
}
