//! `kubectl olm catalog graph`.

use olm_shell::catalog::graph::{self, Format, Options};
use olm_shell::catalog::render::Range;
use olm_shell::cli::flags::ImageFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::{self, OnCluster, Words};

/// Show where OLM takes each version of a package, and which versions it takes nowhere.
///
/// A version is updated to what is above it: up in its own column, or from the top of a column to the one on its left. Of
/// several updates OLM takes the one nearest to the head, as is drawn here. What a bundle requires of others is not looked at;
/// resolve does that.
///
/// With --from and --to the answer is the updates that follow each other, and no (exit code 1) when they do not lead there.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The package [default: a line for each channel of all], and catalogs to find it in
    #[arg(value_name = "PACKAGE|REF", required = true)]
    words: Vec<String>,
    /// Only this channel (may be repeated); with --from the default channel when none is named
    #[arg(long = "channel", value_name = "NAME")]
    channels: Vec<String>,
    /// Only versions in this range, such as '>=1.2.0 <2.0.0'
    #[arg(long = "version", value_name = "RANGE", value_parser = words::range, conflicts_with = "from")]
    versions: Option<Range>,
    /// The updates from this version on: a bundle's name, or a version
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,
    /// As far as this version [default: the head of the channel]
    #[arg(long, value_name = "VERSION", requires = "from")]
    to: Option<String>,
    /// Form of the graph
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    on: OnCluster,
}

const EXAMPLES: &str = "Examples:
  # Which way do updates of etcd lead, and which versions are stranded?
  {cmd} graph etcd ./catalog

  # Which versions come between?
  {cmd} graph etcd ./catalog --channel stable --from 1.2.0 --to 2.0.0

  # As a picture
  {cmd} graph etcd ./catalog -o svg > etcd.svg
";

/// Shows the graph.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { words, channels, versions, from, to, output, images, on } = arguments;
    let Words { mut packages, refs } = Words::read(words)?;
    let package = packages.pop();
    if let Some(other) = packages.pop() {
        return Err(CliError::usage(format!("{other} and {} are two packages", package.unwrap_or_default()))
            .hint("a graph is of one package, or of all when none is named"));
    }
    let (images, refs) = (images.options()?, on.refs(refs));
    graph::run(&Options { refs, package, channels, versions, from, to, images, format: output }, printer)
}
