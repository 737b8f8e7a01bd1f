//! `kubectl olm operator rollback`.

use std::path::PathBuf;
use std::time::Duration;

use olm_shell::cli::flags::{self, ClusterFlags, DryRunFlag, ImageFlags, OutputFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::rollback::{self, Options};
use olm_shell::operator::upgrade::{self, CatalogDirectory};

use crate::terms::TermsFlags;

/// Return an operator to an older version.
///
/// OLM has no downgrade. This deletes the Subscription and the ClusterServiceVersion, retains definitions and custom
/// resources, and installs the old version from the catalog: startingCSV, and manual approval, so that it is not upgraded
/// again. The operator does not run meanwhile. Before anything is deleted, the installation is tried on a copy of the
/// cluster. It is refused if the catalog does not have the old version, if a definition of it lacks a version in which
/// objects are stored, or if existing custom resources do not fit its schema.
///
/// Prints what is not undone: data that the operator has migrated, deleted objects, storage versions. An upgrade that is
/// not approved has changed nothing. Run again, the command continues where it ended.
///
/// Exit codes: 0 the old version runs, 1 there is nothing to undo or the prompt was declined, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The operator, by the name of its Subscription, its package or its ClusterServiceVersion
    name: String,
    /// Version or range of versions to return to [default: the version that the installed one replaces]
    #[arg(long, value_name = "RANGE", value_parser = upgrade::range)]
    to: Option<upgrade::Range>,
    /// Directory for a backup of all custom resources; kubectl apply -R -f DIR restores them. It must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    backup: Option<PathBuf>,
    /// File-based catalog in a directory to use as a CatalogSource (may be repeated); without NAMESPACE it is global
    #[arg(long = "catalog", value_name = "NAME[.NAMESPACE]=DIR")]
    catalogs: Vec<CatalogDirectory>,
    #[command(flatten)]
    terms: TermsFlags,
    /// How long to wait for the old version (30s, 5m, 1h) [default: as long as it can still succeed]
    #[arg(long, value_name = "DURATION", value_parser = flags::duration)]
    timeout: Option<Duration>,
    /// The namespace of the operator
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Show what a rollback would do, and what it does not undo
  {cmd} rollback etcd -n apps --dry-run

  # Return to the previous version
  {cmd} rollback etcd -n apps --backup ./etcd-backup

  # Return to an older one
  {cmd} rollback etcd -n apps --to 0.9.4 --yes
";

/// Rolls the operator back.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { name, to, backup, catalogs, terms, timeout, namespace, images, cluster, .. } = arguments;
    let options = Options {
        cluster,
        catalogs,
        namespace,
        name,
        to,
        backup,
        terms: terms.terms(),
        timeout,
        yes: arguments.yes.yes,
        dry_run: arguments.dry_run.dry_run,
        output: arguments.output.output,
        images: images.options()?,
    };
    rollback::run(&options, printer)
}
