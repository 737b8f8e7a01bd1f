//! `kubectl olm completion`: scripts that complete words in a shell.

use clap::{CommandFactory, ValueEnum};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Print a script that completes the words of kubectl-olm in a shell.
///
/// The script completes the command under the name kubectl-olm. It knows the plugins that are installed when it is made.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "Examples:
  # In this shell, now
  source <({cmd} completion bash)

  # In every zsh
  {cmd} completion zsh > \"${fpath[1]}/_kubectl-olm\"

  # In every fish
  {cmd} completion fish > ~/.config/fish/completions/kubectl-olm.fish
";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    use clap_complete::{Shell as Known, generate};
    let shell = match arguments.shell {
        Shell::Bash => Known::Bash,
        Shell::Zsh => Known::Zsh,
        Shell::Fish => Known::Fish,
        Shell::Powershell => Known::PowerShell,
    };
    let mut command = crate::plugins::listed_in(crate::Arguments::command());
    let mut script = Vec::new();
    generate(shell, &mut command, "kubectl-olm", &mut script);
    printer.data(String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
