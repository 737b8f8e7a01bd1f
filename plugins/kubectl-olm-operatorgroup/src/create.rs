//! `kubectl olm operatorgroup create`.

use std::path::PathBuf;

use olm_shell::cli::flags::{DryRunFlag, ImageFlags, OutputFlags, SourceFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::create::{self, GroupInput, Options};

use crate::group_request::GroupRequestArguments;

/// Create an OperatorGroup, unless it conflicts with an existing one.
///
/// The group is generated, as by kubectl olm operatorgroup compile, or read from a manifest. A namespace can have only
/// one group, so the result depends on the groups that the namespace already has.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, after_help = TABLE)]
pub(crate) struct Arguments {
    #[command(flatten)]
    request: GroupRequestArguments,
    /// Manifest of the OperatorGroup, - for standard input; it is created unchanged and is managed by users
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Namespace to create the group in if another group is in the way; created if missing [default: a name derived
    /// from the group, after a prompt]
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
  # For an operator that watches its own namespace
  {cmd} create -n apps

  # For all namespaces, if the operator of the package supports it
  {cmd} create -n operators --install-mode AllNamespaces --package etcd

  # In another namespace if apps has a group with other targets
  {cmd} create -n apps --target-namespaces east --other-namespace apps-east

  # Check what would be done with a manifest
  {cmd} create -f group.yaml --dry-run=server
";

const TABLE: &str = "What is done, depending on the groups of the namespace:
  none                          create the group, with the label kubectl-olm/compiled-by:
                                kubectl-olm if generated, user if read from a manifest (-f)
  a group without that label,   nothing: users manage it and resolve the conflict (exit code 1)
  or with the value user
  a generated group, same       nothing: the group exists
  targets
  a generated group, other      create the group in another namespace: that of --other-namespace, or
  targets                       one whose name is derived from the group, after a prompt or with
                                --yes
  several generated groups, or  nothing (exit code 1)
  one that is being deleted
";

/// Creates the group.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { request, manifest, other_namespace, dry_run, yes, output, source, images } = arguments;
    let namespace = request.namespace.clone();
    let given = match manifest {
        Some(_) if !request.is_empty() => {
            return Err(CliError::usage("a group is either read from a manifest (-f) or generated")
                .hint("leave out -f, or the flags that describe the group to generate"));
        }
        Some(file) => GroupInput::Manifest(file),
        None => GroupInput::Request(request.into_request()),
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
