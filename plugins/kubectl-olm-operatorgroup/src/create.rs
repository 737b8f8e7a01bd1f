//! `kubectl olm operatorgroup create`.

use olm_shell::cli::{CliError, Outcome, Printer};

/// Create an OperatorGroup.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: Arguments, _printer: &mut Printer) -> Result<Outcome, CliError> {
    Err(CliError::usage("not built yet"))
}
