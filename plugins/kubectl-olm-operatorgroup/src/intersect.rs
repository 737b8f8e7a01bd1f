//! `kubectl olm operatorgroup intersect`.

use std::path::PathBuf;

use olm_shell::cli::flags::{ImageFlags, NamespaceFlags, SourceFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::intersect::{self, Format, Options};

/// Say which OperatorGroups intersect, where, and on which APIs.
///
/// Groups intersect when both target a namespace; the one that a group is in always counts. They clash when they claim the same APIs
/// as well: in their olm.providedAPIs, or because a member provides them. Told are the namespaces and APIs, who came first and who has
/// the APIs in its annotation, which is what OLM goes by, what OLM does about the members, and what would help.
///
/// Without names the groups of the namespace are compared with all others, and with -f the groups that the files are about. One that
/// is named is compared with all others, several with each other. Subscriptions given with -f are resolved from their catalogs, and
/// what they would install counts.
///
/// Exit codes: 0 no clashes, 1 clashes, 2 could not answer.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, after_help = TABLE)]
pub(crate) struct Arguments {
    /// OperatorGroups
    #[arg(value_name = "NAME|NAMESPACE/NAME")]
    groups: Vec<String>,
    /// File or folder of objects that count as if they had been applied, - for standard input (may be repeated)
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
  # Which groups of the whole cluster get into each other's way?
  {cmd} intersect -A

  # What would happen if I applied this group?
  {cmd} intersect -f new-group.yaml

  # What would happen if these Subscriptions, each with its group, were applied?
  {cmd} intersect -f tenants.yaml --catalog community.olm=./catalog

  # Why does the operator in this namespace fail with InterOperatorGroupOwnerConflict?
  {cmd} intersect apps/apps operators/global-operators

  # A picture of a must-gather
  {cmd} intersect -A --from ./must-gather -o dot | dot -Tsvg > groups.svg
";

const TABLE: &str = "What OLM does about a member, by whether other groups that intersect provide its APIs, and its own
group's olm.providedAPIs name them all:
  others no,  own yes   it goes on
  others no,  own no    they are added to the annotation; if the group is static it fails with
                        CannotModifyStaticOperatorGroupProvidedAPIs
  others yes, own no    it fails with InterOperatorGroupOwnerConflict
  others yes, own yes   they are taken out of the annotation, and then it fails with
                        InterOperatorGroupOwnerConflict unless the others gave way; if the group is
                        static it fails with CannotModifyStaticOperatorGroupProvidedAPIs
";

/// Compares.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { groups, on_top, output, namespaces, source, images } = arguments;
    let images = images.options()?;
    intersect::run(&Options { groups, source, namespaces, on_top, images, format: output }, printer)
}
