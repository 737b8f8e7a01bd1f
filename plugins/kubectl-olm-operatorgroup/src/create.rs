//! `kubectl olm operatorgroup create`.

use std::path::PathBuf;

use olm_shell::cli::flags::{DryRunFlag, ImageFlags, OutputFlags, SourceFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::create::{self, Given, Options};

use crate::wish::Wish;

/// Create an OperatorGroup where it can be.
///
/// It is compiled, as kubectl olm operatorgroup compile would, or read from a manifest. A namespace has one group only: what is in it
/// already decides what is done.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, after_help = TABLE)]
pub(crate) struct Arguments {
    #[command(flatten)]
    wish: Wish,
    /// Manifest of the OperatorGroup (- reads standard input): it is created as it is, and users look after it
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Namespace for it when another group is in its way; it is created if it is not there [default: one that follows from the
    /// group, for which you are asked]
    #[arg(long, value_name = "NAMESPACE")]
    other_namespace: Option<String>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    source: SourceFlags,
    #[command(flatten)]
    images: ImageFlags,
}

const EXAMPLES: &str = "Examples:
  # For an operator that looks after its own namespace
  {cmd} create -n apps

  # For all namespaces, if this package's operator supports that
  {cmd} create -n operators --install-mode AllNamespaces --package etcd

  # In another namespace if apps has a group with other targets
  {cmd} create -n apps --target-namespaces east --other-namespace apps-east

  # What would be done with my manifest?
  {cmd} create -f group.yaml --dry-run=server
";

const TABLE: &str = "What is done, by what the namespace has already:
  nothing                       it is created there, labelled kubectl-olm/compiled-by: kubectl-olm
                                when it was compiled, user when it was written (-f)
  a group without that label,   nothing: users look after it, and settle what is in the way (exit
  or with user in it            code 1)
  one of ours, same targets     nothing: it is there
  one of ours, other targets    it is created in another namespace, whether they have none, some, or
                                all of one in common: in --other-namespace, or in one that follows
                                from the group, when you agree or say --yes
  several of ours, or one       nothing (exit code 1)
  that is being deleted
";

/// Creates.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { wish, manifest, other_namespace, dry_run, yes, output, source, images } = arguments;
    let namespace = wish.namespace.clone();
    let given = match manifest {
        Some(_) if !wish.is_empty() => {
            return Err(CliError::usage("a group is either read from a manifest (-f) or compiled")
                .hint("leave out -f, or what it is to be compiled from"));
        }
        Some(file) => Given::Manifest(file),
        None => Given::Wish(wish.wanted()),
    };
    let options = Options {
        given,
        namespace,
        other_namespace,
        yes: yes.yes,
        dry_run: dry_run.dry_run,
        output: output.output,
        source,
        images: images.options()?,
    };
    create::run(&options, printer)
}
