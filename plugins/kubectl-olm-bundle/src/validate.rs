//! `kubectl olm bundle validate`.

use std::path::PathBuf;

use olm_shell::bundle::validate::{self, Options, Selection};
use olm_shell::catalog::Ref;
use olm_shell::cli::findings::{FailOn, Format};
use olm_shell::cli::flags::{ClusterFlags, CredentialFlags, ImageFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Check bundles for errors, as operator-sdk, OLM and the API server do.
///
/// Each finding has its file and line, object, severity and a stable code. By default the rules of operator-sdk bundle
/// validate and those by which OLM rejects a bundle are checked; other validators are optional. A directory without
/// manifests/ and metadata/ stands for all bundles below it. Bundles of plain manifests (k8s+v1) are checked as the
/// ClusterServiceVersion that they become.
///
/// Exit codes: 0 no findings at or above --fail-on, 1 findings, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Bundles to check: directories, images, OCI layouts or archives of them
    #[arg(value_name = "DIR|REF", required_unless_present = "list_optional")]
    refs: Vec<Ref>,
    /// Bundle, or catalog with the previous version, to compare with: install modes, CustomResourceDefinitions,
    /// permissions, and the upgrade graph
    #[arg(long, value_name = "REF|CATALOG")]
    against: Option<Ref>,
    /// Validators, suites or codes of rules to check instead of the default ones
    #[arg(long, value_name = "NAME|CODE", value_delimiter = ',')]
    select: Vec<String>,
    /// Validators or suites to check in addition: name=good-practices, suite=operatorframework, or only the name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    select_optional: Vec<String>,
    /// List the validators
    #[arg(long)]
    list_optional: bool,
    /// Kubernetes version on which the bundle must work; API versions that it does not serve are errors
    #[arg(long, value_name = "VERSION")]
    k8s_version: Option<String>,
    /// Dockerfile of the bundle, whose labels the validator community checks
    #[arg(long, value_name = "FILE")]
    index_path: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    /// Omit the findings that this file contains
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the findings to the file of --baseline, so that later runs omit them
    #[arg(long)]
    create_baseline: bool,
    /// Lowest severity of a finding for exit code 1
    #[arg(long, value_enum, value_name = "SEVERITY", default_value = "error")]
    fail_on: FailOn,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    credentials: CredentialFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Check the bundle in a directory
  {cmd} validate ./bundle

  # Check what OperatorHub.io requires as well, as annotations on a pull request
  {cmd} validate ./bundle --select-optional suite=operatorframework -o github

  # Check that an update from the version in a catalog is safe
  {cmd} validate ./bundle --against ./catalog

  # Check all bundles below a directory for removed API versions only
  {cmd} validate ./operators --select alpha-deprecated-apis --k8s-version 1.25
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { refs, against, select, select_optional, list_optional, k8s_version, index_path, .. } = arguments;
    let Arguments { output, baseline, create_baseline, fail_on, images, credentials, cluster, .. } = arguments;
    if list_optional {
        return validate::list(printer);
    }
    let mut selection = if select.is_empty() { Selection::default() } else { Selection::nothing() };
    for term in select.iter().chain(&select_optional) {
        selection.add(term).map_err(|message| CliError::usage(message).hint("--list-optional lists the validators"))?;
    }
    let options = Options {
        refs,
        against: against.map(|against| against.on(&cluster, None)),
        selection,
        kubernetes: k8s_version.as_deref().map(validate::kubernetes).transpose()?,
        index_path,
        baseline,
        create_baseline,
        fail_on,
        format: output,
        images: credentials.options(images.options()?, &cluster, None, printer)?,
    };
    validate::run(&options, printer)
}
