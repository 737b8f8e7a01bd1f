//! `kubectl olm operatorgroup intersect`.

use std::path::PathBuf;

use olm_shell::cli::flags::{ImageFlags, NamespaceFlags, SourceFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::intersect::{self, Format, Options};

/// Report which OperatorGroups intersect, in which namespaces, and on which APIs.
///
/// Groups intersect if they have a namespace in common, among their targets and the namespaces that they are in.
/// Intersecting groups conflict if they also provide the same API, through the annotation olm.providedAPIs or a member.
/// The report contains the namespaces and APIs; which group was created first and which one has the API in its
/// annotation, which decides for OLM; what OLM does with the members; and how to resolve the conflict.
///
/// Without names, compare the groups of the namespace, or with -f those affected by the files, with all others. One
/// named group is compared with all others; several named groups are compared with each other. Subscriptions given with
/// -f are resolved from their catalogs, and the operators that they would install are included.
///
/// Exit codes: 0 no conflicts, 1 conflicts, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, after_help = TABLE)]
pub(crate) struct Arguments {
    /// OperatorGroups to compare
    #[arg(value_name = "NAME|NAMESPACE/NAME")]
    groups: Vec<String>,
    /// File or folder of objects to treat as applied, - for standard input (may be repeated)
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    on_top: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    source: SourceFlags,
    #[command(flatten)]
    images: ImageFlags,
}

const EXAMPLES: &str = "Examples:
  # Report all conflicts on the cluster
  {cmd} intersect -A

  # Check a group before it is applied
  {cmd} intersect -f new-group.yaml

  # Check Subscriptions and their groups before they are applied
  {cmd} intersect -f tenants.yaml --catalog community.olm=./catalog

  # Find the cause of InterOperatorGroupOwnerConflict in namespace apps
  {cmd} intersect apps/apps operators/global-operators

  # Draw the groups of a must-gather
  {cmd} intersect -A --from ./must-gather -o dot | dot -Tsvg > groups.svg
";

const TABLE: &str = "What OLM does with a member, depending on whether other intersecting groups provide its APIs, and
whether olm.providedAPIs of its own group lists them all:
  others no,  own yes   the member proceeds
  others no,  own no    the APIs are added to the annotation; in a static group the member fails
                        with CannotModifyStaticOperatorGroupProvidedAPIs
  others yes, own no    the member fails with InterOperatorGroupOwnerConflict
  others yes, own yes   the APIs are removed from the annotation, then the member fails with
                        InterOperatorGroupOwnerConflict unless the others no longer provide them;
                        in a static group it fails with CannotModifyStaticOperatorGroupProvidedAPIs
";

/// Compares the groups.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { groups, on_top, output, namespaces, source, images } = arguments;
    let images = images.options()?;
    intersect::run(&Options { groups, source, namespaces, on_top, images, format: output }, printer)
}
