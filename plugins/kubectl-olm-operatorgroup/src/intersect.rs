//! `kubectl olm operatorgroup intersect`.

use olm_shell::cli::{CliError, Outcome, Printer};

/// Say which OperatorGroups intersect, where, and on which APIs.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: Arguments, _printer: &mut Printer) -> Result<Outcome, CliError> {
    Err(CliError::usage("not built yet"))
}
