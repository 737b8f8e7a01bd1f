//! `kubectl olm catalog`: arguments in, [`olm_shell::catalog`] does the work.

mod add;
mod list;
mod render;
mod serve;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::cli;

/// Look into the catalogs that operators are chosen from, and make them.
///
/// Where REF is asked for, name a directory of catalog files or of one bundle, a file of blobs, a template, an archive
/// (.tar, .tar.gz) of a directory, an image, an OCI layout, or - for standard input. Several are taken together as one catalog.
///
/// Exit codes: 0 done, 1 the answer is no (with reasons), 2 could not answer.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm-catalog", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(add::Arguments),
    List(list::Arguments),
    Render(render::Arguments),
    Serve(serve::Arguments),
    Validate(validate::Arguments),
}

fn main() -> ExitCode {
    cli::main(|arguments: Arguments, printer| match arguments.command {
        Command::Add(arguments) => add::run(arguments, printer),
        Command::List(arguments) => list::run(arguments, printer),
        Command::Render(arguments) => render::run(arguments, printer),
        Command::Serve(arguments) => serve::run(arguments, printer),
        Command::Validate(arguments) => validate::run(arguments, printer),
    })
}
