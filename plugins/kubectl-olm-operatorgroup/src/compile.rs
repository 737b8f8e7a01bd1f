//! `kubectl olm operatorgroup compile`.

use olm_shell::cli::{CliError, Outcome, Printer};

/// Write the OperatorGroup that an operator needs.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: Arguments, _printer: &mut Printer) -> Result<Outcome, CliError> {
    Err(CliError::usage("not built yet"))
}
