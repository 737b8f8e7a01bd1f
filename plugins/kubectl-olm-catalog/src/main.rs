//! `kubectl olm catalog`: arguments in, [`olm_shell::catalog`] does the work.

mod add;
mod diff;
mod graph;
mod list;
mod render;
mod resolve;
mod serve;
mod validate;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use olm_shell::program;

/// Look into the catalogs that operators are chosen from, and make them.
///
/// Where REF is asked for, name a directory of catalog files or of one bundle, a file of blobs, a template, an archive
/// (.tar, .tar.gz, .tar.zst) of a directory, an image, an OCI layout, - for standard input, a CatalogSource of the cluster
/// (catalogsource/NAME, catalogsource/NAMESPACE/NAME), or a registry that is served (grpc://HOST:PORT). Several are taken
/// together as one catalog.
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
    Add(Box<add::Arguments>),
    Diff(Box<diff::Arguments>),
    Graph(graph::Arguments),
    List(list::Arguments),
    Render(render::Arguments),
    Resolve(Box<resolve::Arguments>),
    Serve(serve::Arguments),
    Validate(validate::Arguments),
}

fn main() -> ExitCode {
    program::main(|arguments: Arguments, printer| match arguments.command {
        Command::Add(arguments) => add::run(*arguments, printer),
        Command::Diff(arguments) => diff::run(*arguments, printer),
        Command::Graph(arguments) => graph::run(arguments, printer),
        Command::List(arguments) => list::run(arguments, printer),
        Command::Render(arguments) => render::run(arguments, printer),
        Command::Resolve(arguments) => resolve::run(*arguments, printer),
        Command::Serve(arguments) => serve::run(arguments, printer),
        Command::Validate(arguments) => validate::run(arguments, printer),
    })
}
