//! `kubectl olm install-plan explain`.

use std::path::PathBuf;

use olm_shell::cli::flags::{ImageFlags, NamespaceFlags, SourceFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::explain::{self, Asked, DryRun, Form, Options};
use olm_shell::run::FeatureGates;

/// Say what an InstallPlan will do, before it does it; also one that does not exist yet.
///
/// The controllers' own code is let loose on a copy of what is there: it approves the plan, and waits for what comes of it. Told are
/// the operators that come, and why; every object that is made, changed or deleted; rights that are gained and lost; custom
/// resources that would break; kinds that the cluster does not serve; and what does not come back. Nothing is written to the
/// cluster, and only rights to read are needed: what may not be read is told. Where you may write, the API server is asked whether it
/// would take the objects (a dry run), so that webhooks, quotas and its own validation have their say.
///
/// Without an argument the plans of the namespace are explained that wait for approval, or are approved and not executed yet.
///
/// Exit codes: 0 all goes well, 1 it would fail, or somebody should decide whether it may, 2 nobody can tell.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// InstallPlans
    #[arg(value_name = "PLAN")]
    plans: Vec<String>,
    /// Explain what this Subscription gets next, whether there is a plan for it or not
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plans", "bundle", "package"])]
    subscription: Option<String>,
    /// Explain what a bundle would do: a directory, an image, an OCI layout (oci:PATH)
    #[arg(long, value_name = "REF", conflicts_with_all = ["plans", "package"])]
    bundle: Option<String>,
    /// Explain what subscribing to a package would do; with a range such as '>=1.2.0 <2.0.0' or a version, to these
    #[arg(long, value_name = "PACKAGE[@RANGE]", conflicts_with = "plans")]
    package: Option<String>,
    /// Try whether this holds (may be repeated), as approve --if asks it: CEL over the fields of -o json; the exit code is then 0
    /// where somebody should decide, and the policies hold
    #[arg(long = "if", value_name = "EXPR")]
    policies: Vec<String>,
    /// Show every object, and what changes in it line by line
    #[arg(long)]
    details: bool,
    /// File or folder of objects that count as if they had been applied, - for standard input (may be repeated)
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    on_top: Vec<PathBuf>,
    /// Feature gates of the controllers, such as OptionalManifests=true
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "")]
    feature_gates: FeatureGates,
    /// Ask the API server whether it would take the objects (server: as far as your rights go; nothing is kept), or send nothing but
    /// reads (none)
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    dry_run: DryRun,
    /// Output format: json, yaml, markdown or jsonpath=TEMPLATE
    #[arg(short, long, default_value = "", hide_default_value = true)]
    output: Form,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    source: SourceFlags,
    #[command(flatten)]
    images: ImageFlags,
}

const EXAMPLES: &str = "Examples:
  # What will happen when the plan that waits here is approved?
  {cmd} explain -n apps

  # The same with all objects, line by line, for a review
  {cmd} explain install-abcde -n apps --details -o markdown

  # What will the next upgrade of this operator bring?
  {cmd} explain --subscription etcd -n apps

  # What would installing version 1 of a package do to a cluster that I only have a must-gather of?
  {cmd} explain --package 'etcd@>=1.0.0 <2.0.0' -n apps --from ./must-gather --catalog community.olm=./catalog

  # Would the nightly job's policy approve the plans that wait here? If not, which part of it does not hold?
  {cmd} explain -n apps --if 'verdict.result == \"safe\" && !rbac.escalates'

  # Would my bundle work here?
  {cmd} explain --bundle ./bundle -n apps
";

/// Explains.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments {
        plans,
        subscription,
        bundle,
        package,
        policies,
        details,
        on_top,
        feature_gates,
        dry_run,
        output,
        ..
    } = arguments;
    let asked = match (subscription, bundle, package) {
        (Some(name), ..) => Asked::Subscription(name),
        (_, Some(reference), _) => Asked::Bundle(reference),
        (.., Some(package)) => Asked::Package(package),
        (None, None, None) => Asked::Plans(plans),
    };
    let options = Options {
        asked,
        source: arguments.source,
        namespaces: arguments.namespaces,
        on_top,
        images: arguments.images.options()?,
        optional_manifests: feature_gates.optional_manifests(),
        dry_run,
        policies,
        details,
        form: output,
    };
    explain::run(&options, printer)
}
