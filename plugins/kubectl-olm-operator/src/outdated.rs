//! `kubectl olm operator outdated`.

use olm_shell::cli::flags::{ImageFlags, NamespaceFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::outdated::{self, Options};

use super::terms::TermsFlags;

/// List operators that can be upgraded, from which version to which, and whether the next InstallPlan is safe.
///
/// NEXT is the version after the next InstallPlan, and LATEST that after all HOPS of the path. SAFE is about the next
/// InstallPlan: yes, no (it would fail, or an expression of --if is false), review (its effects need a decision, such as
/// escalated permissions) or unknown.
///
/// Exit codes: 0 success, 1 the path of an operator is unknown, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    terms: TermsFlags,
    #[command(flatten)]
    list: ListFlags,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    source: SourceFlags,
}

const EXAMPLES: &str = "Examples:
  # List what can be upgraded on the cluster
  {cmd} outdated -A

  # Mark upgrades as safe that escalate no permissions
  {cmd} outdated -A --if 'rbac.escalates == false'

  # Upgrade what is safe, in a script
  {cmd} outdated -o jsonpath='{.items[?(@.safe==\"yes\")].metadata.name}' | xargs -n 1 {cmd} upgrade --yes
";

/// Lists the operators.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { terms, list, namespaces, images, source } = arguments;
    let options = Options { source, namespaces, terms: terms.terms(), list, images: images.options()? };
    outdated::run(&options, printer)
}
