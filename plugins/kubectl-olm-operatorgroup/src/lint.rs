//! `kubectl olm operatorgroup lint`.

use olm_shell::cli::{CliError, Outcome, Printer};

/// Find everything that is wrong with OperatorGroups.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: Arguments, _printer: &mut Printer) -> Result<Outcome, CliError> {
    Err(CliError::usage("not built yet"))
}
