//! `kubectl olm run`: arguments in, [`olm_shell::run`] does the work.

mod arguments;

use std::process::ExitCode;

use arguments::Arguments;
use olm_shell::program;

fn main() -> ExitCode {
    program::main(|arguments: Arguments, printer| {
        arguments.start_logging(printer);
        olm_shell::run::run(&arguments.into(), printer)
    })
}
