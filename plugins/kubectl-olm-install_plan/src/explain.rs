//! `kubectl olm install-plan explain`.

use std::path::PathBuf;

use olm_shell::cli::flags::{ImageFlags, NamespaceFlags, SourceFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::explain::{self, DryRun, Form, Options, Request};
use olm_shell::run::FeatureGates;

/// Print what an InstallPlan will do before it is executed, or what a plan that does not exist yet would do.
///
/// The controllers' own code runs on a copy of the cluster's objects in memory: it approves the plan and works until
/// nothing is left to do. The report lists the operators that are installed, and why; every object that is created,
/// changed or deleted; permissions that are granted and revoked; custom resources that would become invalid; APIs that
/// the cluster does not serve; and what cannot be undone. Nothing is written to the cluster, and read permissions are
/// sufficient: the report names what it could not read. Where you have write permissions, the objects are also sent to
/// the API server as a dry run, which checks webhooks, quotas and validation.
///
/// Without an argument, explain the plans of the namespace that wait for approval, or are approved and not executed
/// yet.
///
/// Exit codes: 0 success, 1 the plan would fail or needs a decision, 2 the result is unknown, or an error occurred.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// InstallPlans to explain
    #[arg(value_name = "PLAN")]
    plans: Vec<String>,
    /// Explain the next upgrade of this Subscription, whether a plan for it exists or not
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plans", "bundle", "package"])]
    subscription: Option<String>,
    /// Explain what installing a bundle would do: a directory, an image, or an OCI layout (oci:PATH)
    #[arg(long, value_name = "REF", conflicts_with_all = ["plans", "package"])]
    bundle: Option<String>,
    /// Explain what subscribing to a package would do, optionally in a range such as '>=1.2.0 <2.0.0' or one version
    #[arg(long, value_name = "PACKAGE[@RANGE]", conflicts_with = "plans")]
    package: Option<String>,
    /// Check this expression as approve --if does (may be repeated): CEL over the fields of -o json. If the policies
    /// hold, the exit code is 0 also for plans that need a decision
    #[arg(long = "if", value_name = "EXPR")]
    policies: Vec<String>,
    /// Print every object, and its changes line by line
    #[arg(long)]
    details: bool,
    /// File or folder of objects to treat as applied, - for standard input (may be repeated)
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    on_top: Vec<PathBuf>,
    /// Feature gates of the controllers, such as OptionalManifests=true
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "")]
    feature_gates: FeatureGates,
    /// Send the objects to the API server as a dry run (server: as far as your permissions allow; nothing is stored),
    /// or send only read requests (none)
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    dry_run: DryRun,
    /// Output format: html (a page in one file, without scripts), json, yaml, markdown or jsonpath=TEMPLATE
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
  # Explain the plans of a namespace that wait for approval
  {cmd} explain -n apps

  # Print all objects and their changes, for a review
  {cmd} explain install-abcde -n apps --details -o markdown

  # Write a page for a review, with all differences to unfold
  {cmd} explain install-abcde -n apps -o html > plan.html

  # Explain the next upgrade of an operator
  {cmd} explain --subscription etcd -n apps

  # Explain the installation of version 1 of a package on the cluster of a must-gather
  {cmd} explain --package 'etcd@>=1.0.0 <2.0.0' -n apps --from ./must-gather --catalog community.olm=./catalog

  # Check a policy of approve --if against the plans that wait for approval
  {cmd} explain -n apps --if 'verdict.result == \"safe\" && !rbac.escalates'

  # Explain the installation of a bundle directory
  {cmd} explain --bundle ./bundle -n apps
";

/// Explains the plans.
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
        (Some(name), ..) => Request::Subscription(name),
        (_, Some(reference), _) => Request::Bundle(reference),
        (.., Some(package)) => Request::Package(package),
        (None, None, None) => Request::Plans(plans),
    };
    let options = Options {
        asked,
        source: arguments.source,
        namespaces: arguments.namespaces,
        on_top,
        images: arguments.images.options()?,
        optional_manifests: feature_gates.optional_manifests(),
        plain_bundles: feature_gates.plain_bundles(),
        dry_run,
        policies,
        details,
        form: output,
    };
    explain::run(&options, printer)
}
