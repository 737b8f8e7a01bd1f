//! `kubectl olm catalog`: parses the arguments and calls [`olm_shell::catalog`].

mod add;
mod build;
mod describe;
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

/// List, describe, validate, compare, serve and edit operator catalogs.
///
/// A REF is one of: a directory of catalog files or of one bundle, a file of catalog blobs, a template, an archive
/// (.tar, .tar.gz, .tar.zst) of a directory, an image, an OCI layout, - for standard input, a CatalogSource of the
/// cluster (catalogsource/NAME, catalogsource/NAMESPACE/NAME), or a catalog server (grpc://HOST:PORT). Several REFs are
/// merged into one catalog.
///
/// Exit codes: 0 success, 1 negative result (with reasons), 2 error.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm-catalog", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(Box<add::Arguments>),
    Build(Box<build::Arguments>),
    Describe(describe::Arguments),
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
        Command::Build(arguments) => build::run(*arguments, printer),
        Command::Describe(arguments) => describe::run(arguments, printer),
        Command::Diff(arguments) => diff::run(*arguments, printer),
        Command::Graph(arguments) => graph::run(arguments, printer),
        Command::List(arguments) => list::run(arguments, printer),
        Command::Render(arguments) => render::run(arguments, printer),
        Command::Resolve(arguments) => resolve::run(*arguments, printer),
        Command::Serve(arguments) => serve::run(arguments, printer),
        Command::Validate(arguments) => validate::run(arguments, printer),
    })
}
