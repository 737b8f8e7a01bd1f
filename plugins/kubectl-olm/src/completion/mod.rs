//! `kubectl olm completion`: complete words in shells, and for kubectl.

mod answer;
mod links;

use std::path::PathBuf;

use clap::ValueEnum;
use olm_shell::cli::{CliError, Outcome, Printer};

pub(crate) use self::answer::answer;

/// Set up the completion of words.
///
/// With the name of a shell, print a script that completes the command kubectl-olm in it. With kubectl, make links to this program under
/// the names that kubectl (1.26 and newer) calls to complete the words behind `kubectl olm`. The links go into the folder of kubectl-olm;
/// krew makes none by itself. Completion of kubectl itself has to be set up: kubectl completion --help.
///
/// Commands, flags and their values are completed; and names from the kubeconfig and from the cluster: namespaces, InstallPlans,
/// Subscriptions, packages, channels, CatalogSources, OperatorGroups. Names that are not found in 0.3 s are not offered.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell, or kubectl
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
    /// With kubectl: folder for the links, on PATH [default: the folder of kubectl-olm]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  # kubectl olm <TAB>, wherever kubectl <TAB> works
  {cmd} completion kubectl

  # kubectl-olm <TAB>, in this bash
  source <(kubectl-olm completion bash)

  # kubectl-olm <TAB>, in every zsh
  {cmd} completion zsh > \"${fpath[1]}/_kubectl-olm\"

  # kubectl-olm <TAB>, in every fish
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

/// Prints the script, or makes the links.
pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let script = match arguments.shell {
        Shell::Bash => include_str!("kubectl-olm.bash"),
        Shell::Zsh => include_str!("_kubectl-olm"),
        Shell::Fish => include_str!("kubectl-olm.fish"),
        Shell::Powershell => include_str!("kubectl-olm.ps1"),
        Shell::Kubectl => return links::make(arguments.dir.clone(), printer),
    };
    if arguments.dir.is_some() {
        return Err(CliError::usage("--dir is for kubectl: the script of a shell is printed")
            .hint("write it to a file with > FILE"));
    }
    printer.data(script)?;
    Ok(Outcome::Done)
}
