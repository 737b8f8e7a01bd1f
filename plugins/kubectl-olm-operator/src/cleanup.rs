//! `kubectl olm operator cleanup`.

use std::time::Duration;

use clap::ArgGroup;
use olm_shell::cli::flags::{self, ClusterFlags, DryRunFlag, OutputFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::cleanup::{self, Options};

/// Remove what run has created.
///
/// Uninstalls the operator as uninstall does, and deletes the CatalogSource with its ConfigMaps and its registry, and an
/// OperatorGroup that run has created, if it has no members. Objects that run did not create, and namespaces, are retained, as
/// are CustomResourceDefinitions that the operator only requires, or that other operators need. Also removes what a failed or
/// interrupted run has left. Run again, the command continues where it ended.
///
/// Exit codes: 0 nothing is left, 1 the prompt was declined or something is left, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, group = ArgGroup::new("which").required(true).multiple(false))]
pub(crate) struct Arguments {
    /// The operators, by the names of their packages, Subscriptions or CatalogSources
    #[arg(value_name = "NAME", group = "which")]
    names: Vec<String>,
    /// Remove everything that run has created in the namespace
    #[arg(long, group = "which")]
    all: bool,
    /// Delete the CustomResourceDefinitions that the operators own, with all custom resources, in all namespaces
    #[arg(long)]
    delete_crds: bool,
    /// Delete their custom resources in the namespaces that they watch
    #[arg(long)]
    delete_operands: bool,
    /// Remove them even if other operators require them
    #[arg(long)]
    force: bool,
    /// How long to wait for custom resources and for definitions (30s, 5m) [default: for custom resources as long as the
    /// operator runs, otherwise one minute; for definitions five minutes]
    #[arg(long, value_name = "DURATION", value_parser = flags::duration)]
    timeout: Option<Duration>,
    /// The namespace of the operators
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Show what would be deleted
  {cmd} cleanup etcd -n test --dry-run

  # Remove an operator and its definitions
  {cmd} cleanup etcd -n test --delete-crds --yes

  # Remove everything that run has created in a namespace
  {cmd} cleanup --all -n test
";

/// Removes what was created.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { names, all: _, delete_crds, delete_operands, force, timeout, namespace, .. } = arguments;
    let options = Options {
        cluster: arguments.cluster,
        namespace,
        names,
        delete_crds,
        delete_operands: delete_operands || delete_crds,
        force,
        timeout,
        yes: arguments.yes.yes,
        dry_run: arguments.dry_run.dry_run,
        output: arguments.output.output,
    };
    cleanup::run(&options, printer)
}
