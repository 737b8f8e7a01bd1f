//! `kubectl olm run`: parses the arguments and calls [`olm_shell::run`].

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
