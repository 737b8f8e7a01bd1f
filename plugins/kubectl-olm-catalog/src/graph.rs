//! `kubectl olm catalog graph`.

use std::path::PathBuf;

use olm_shell::catalog::graph::{self, Format, Options};
use olm_shell::catalog::render::Range;
use olm_shell::cli::flags::ImageFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::{self, OnCluster, Words};

/// Print the upgrade graph of a package, and the versions that have no upgrade path.
///
/// A version is updated to the one above it: up in its own column, or from the top of a column to the one on its left.
/// Of several updates OLM chooses the one nearest to the channel head, and so does the graph. Dependencies of bundles
/// are not considered; use resolve for that. In text, ● is a version in the channel, ○ one that is not in the channel,
/// and ├ joins the top of a column to the column on its left.
///
/// With --installed-from, or a cluster selected by --context, --kubeconfig or a similar flag, installed versions are marked.
///
/// With --from and --to, print the sequence of updates; the exit code is 1 if there is none.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Package [default: one line for each channel of every package], and catalogs to read
    #[arg(value_name = "PACKAGE|REF", required = true)]
    words: Vec<String>,
    /// Only this channel (may be repeated) [with --from, default: the default channel]
    #[arg(long = "channel", value_name = "NAME")]
    channels: Vec<String>,
    /// Only versions in this range, such as '>=1.2.0 <2.0.0'
    #[arg(long = "version", value_name = "RANGE", value_parser = words::range, conflicts_with = "from")]
    versions: Option<Range>,
    /// Print the updates from this version on: a bundle name or a version
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,
    /// Last version of the updates [default: the channel head]
    #[arg(long, value_name = "VERSION", requires = "from")]
    to: Option<String>,
    /// File or folder with the installed Subscriptions and ClusterServiceVersions, to mark their versions (may be repeated)
    #[arg(long, value_name = "FILE|DIR")]
    installed_from: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    on: OnCluster,
}

const EXAMPLES: &str = "Examples:
  # Print the updates of etcd, and the versions without an upgrade path
  {cmd} graph etcd ./catalog

  # Print the updates between two versions
  {cmd} graph etcd ./catalog --channel stable --from 1.2.0 --to 2.0.0

  # Write the graph as an image
  {cmd} graph etcd ./catalog -o svg > etcd.svg

  # Write a page that also states what is installed on a cluster, and why versions have no upgrade path
  {cmd} graph etcd ./catalog --context production -o html > etcd.html
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { words, channels, versions, from, to, installed_from, output, images, on } = arguments;
    let Words { mut packages, refs } = Words::read(words)?;
    let package = packages.pop();
    if let Some(other) = packages.pop() {
        return Err(CliError::usage(format!(
            "more than one package is named: {} and {other}",
            package.unwrap_or_default()
        ))
        .hint("name one package, or none for all packages"));
    }
    let installed_from = on.installed_from(installed_from)?;
    let (images, refs) = (images.options()?, on.refs(refs));
    graph::run(
        &Options { refs, package, channels, versions, from, to, installed_from, images, format: output },
        printer,
    )
}
