//! `kubectl olm completion`: shell completion, and completion for kubectl.

mod answer;
mod links;

use std::path::PathBuf;

use clap::ValueEnum;
use olm_shell::cli::{CliError, Outcome, Printer};

pub(crate) use self::answer::answer;

/// Set up shell completion.
///
/// With the name of a shell, print a script that completes the command kubectl-olm in that shell. With kubectl, create
/// links to this program under the names that kubectl (1.26 and newer) runs to complete `kubectl olm`. The links are
/// created in the folder of kubectl-olm; krew does not create them. Completion of kubectl itself must be set up, see
/// kubectl completion --help.
///
/// Commands, flags and their values are completed, and names from the kubeconfig and the cluster: namespaces,
/// InstallPlans, Subscriptions, packages, channels, CatalogSources and OperatorGroups. Names that take longer than 0.3
/// s to look up are not offered.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Shell, or kubectl
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
    /// With kubectl: folder for the links, which must be on PATH [default: the folder of kubectl-olm]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  # Complete the plugin in every shell in which kubectl completes
  {cmd} completion kubectl

  # Complete kubectl-olm in the current bash session
  source <(kubectl-olm completion bash)

  # Complete kubectl-olm in every zsh session
  {cmd} completion zsh > \"${fpath[1]}/_kubectl-olm\"

  # Complete kubectl-olm in every fish session
  {cmd} completion fish > ~/.config/fish/completions/kubectl-olm.fish
";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Kubectl,
}

/// Prints the script, or creates the links.
pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let script = match arguments.shell {
        Shell::Bash => include_str!("kubectl-olm.bash"),
        Shell::Zsh => include_str!("_kubectl-olm"),
        Shell::Fish => include_str!("kubectl-olm.fish"),
        Shell::Powershell => include_str!("kubectl-olm.ps1"),
        Shell::Kubectl => return links::make(arguments.dir.clone(), printer),
    };
    if arguments.dir.is_some() {
        return Err(
            CliError::usage("--dir is only valid with kubectl").hint("redirect the script to a file with > FILE")
        );
    }
    printer.data(script)?;
    Ok(Outcome::Done)
}
