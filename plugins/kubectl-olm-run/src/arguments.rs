//! The arguments of `kubectl olm run`, and the options that they stand for.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Parser};
use olm_shell::cli::Printer;
use olm_shell::cli::flags::{ClusterFlags, DataFormat, ImageFlags, LogFlags, bytes, duration};
use olm_shell::cli::logging::{self, Usually};
use olm_shell::run::{
    BundleImage, CatalogDirectory, CatalogImage, FeatureGates, Mode, Options, PackagesAddress, Release, TakeOver,
};

/// Run the controllers of the Operator Lifecycle Manager (OLM).
///
/// On a cluster the controllers do the work of OLM's pods, wherever this command runs: they resolve Subscriptions,
/// execute InstallPlans and keep operators running. With --simulate they work on objects from files, in memory. With
/// --audit they print the writes that they would send to the cluster, and send none.
///
/// Exit codes: 0 success, 1 something is blocked (with reasons), 2 error.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm-run", version, before_help = EXAMPLES, group = ArgGroup::new("mode"), group = ArgGroup::new("ends").args(["once", "release_finalizers"]).multiple(true), group = ArgGroup::new("documents").args(["simulate", "audit"]), group = ArgGroup::new("prompts").args(["release_finalizers", "take_over"]), group = ArgGroup::new("changes").args(["install_crds", "take_over"]))]
#[command(mut_arg("local_credentials", |arg| arg.conflicts_with_all(["simulate", "install_crds"])))]
pub struct Arguments {
    /// Simulate: work on the objects in these YAML files and directories instead of a cluster, and print a timeline of
    /// what happens, with reasons, and the final state. Subdirectories catalogs/NAME/ are served as catalogs
    #[arg(long, value_name = "FILE|DIR", num_args = 1.., group = "mode")]
    simulate: Vec<PathBuf>,
    /// Print what would be done on the cluster; change nothing
    #[arg(long, group = "mode")]
    audit: bool,
    /// Install or update the CRDs of OLM's resources, create namespace olm for the Lease, and exit. Existing CRDs of an
    /// upstream OLM on the cluster are not changed
    #[arg(long, group = "mode", conflicts_with_all = ["catalog", "feature_gates"])]
    install_crds: bool,

    /// Finish the deletion of ClusterServiceVersions when no controllers are running. NAMESPACE limits it to these
    /// namespaces [default: all]
    #[arg(long, value_name = "NAMESPACE", num_args = 0.., value_delimiter = ',', group = "mode", conflicts_with_all = ["catalog", "feature_gates"])]
    release_finalizers: Option<Vec<String>>,
    /// With --release-finalizers: print what would be done; change nothing
    #[arg(long, requires = "release_finalizers", conflicts_with = "once")]
    dry_run: bool,
    /// With --release-finalizers or --take-over: do not prompt for confirmation
    #[arg(short, long, requires = "prompts")]
    yes: bool,

    /// Exit when nothing is left to do, with exit code 0, or 1 if something is blocked
    #[arg(long, conflicts_with_all = ["simulate", "install_crds", "release_finalizers"])]
    once: bool,
    /// With --once or --release-finalizers: give up after this time (30s, 10m), with exit code 1 [default: no limit]
    #[arg(long, value_name = "DURATION", requires = "ends", conflicts_with_all = ["simulate", "install_crds"], value_parser = duration)]
    timeout: Option<Duration>,
    /// Serve the file-based catalog in DIR as this CatalogSource (may be repeated); without NAMESPACE it is global
    #[arg(long, value_name = "NAME[.NAMESPACE]=DIR")]
    catalog: Vec<CatalogDirectory>,
    /// With --simulate: file-based catalog to use in place of a catalog image (may be repeated)
    #[arg(long, value_name = "IMAGE=DIR", requires = "simulate")]
    catalog_image: Vec<CatalogImage>,
    /// With --simulate: bundle directory, OCI layout or archive to use in place of a bundle image (may be repeated)
    #[arg(long, value_name = "IMAGE=PATH", requires = "simulate")]
    bundle_image: Vec<BundleImage>,
    /// Serve catalogs of images and ConfigMaps from pods, so that other clients can connect to them, and unpack bundles
    /// in Jobs, as OLM does [default: read both directly]
    #[arg(long, conflicts_with = "install_crds")]
    catalog_pods: bool,
    /// Namespace of OLM, whose catalogs are global: every namespace can use them. With --simulate, the namespace of
    /// objects without one [default: olm; with --simulate: default]
    #[arg(short, long)]
    namespace: Option<String>,
    /// With --simulate: namespace of OLM, whose catalogs are global
    #[arg(long, value_name = "NAMESPACE", default_value = OLM, requires = "simulate")]
    catalog_namespace: String,
    /// Enable or disable features. OptionalManifests (default false): an install may proceed without objects that its
    /// bundle declares optional. PlainBundles (default true): bundle images of type k8s+v1 are unpacked
    #[arg(long, value_name = "NAME=true|false,…", default_value = "", hide_default_value = true)]
    feature_gates: FeatureGates,
    /// With OptionalManifests: create skipped optional objects once the cluster serves their API
    #[arg(long, conflicts_with = "install_crds")]
    retry_optional: bool,
    /// Namespaces that get copies of the ClusterServiceVersions offered in all namespaces even if OLMConfig disables
    /// copies
    #[arg(
        long,
        value_name = "NAMESPACE,…",
        value_delimiter = ',',
        alias = "protectedCopiedCSVNamespaces",
        conflicts_with = "install_crds"
    )]
    protected_copied_csv_namespaces: Vec<String>,
    /// Stop an OLM that already runs on the cluster and take over from it, if --audit finds nothing to change. kubectl olm
    /// hand-back starts it again [default: refuse to run beside it]
    #[arg(long, conflicts_with = "mode")]
    take_over: bool,
    /// With --take-over: take over even if the controllers would change objects at once, after a prompt. With
    /// --install-crds: also update the CRDs of an upstream OLM
    #[arg(long, requires = "changes")]
    allow_changes: bool,
    /// Do not acquire the Lease in namespace olm, which prevents two instances from writing at the same time
    #[arg(long, conflicts_with = "mode")]
    no_lease: bool,
    /// Serve Prometheus metrics on this address, such as :8080 [default: disabled]
    #[arg(long, value_name = "[HOST]:PORT", conflicts_with_all = ["mode", "once"], value_parser = address)]
    metrics_address: Option<SocketAddr>,
    /// Serve /healthz and /readyz on this address [default: disabled]
    #[arg(long, value_name = "[HOST]:PORT", conflicts_with_all = ["mode", "once"], value_parser = address)]
    health_address: Option<SocketAddr>,
    /// Serve the packages of all catalogs as the API packages.operators.coreos.com, for kubectl get packagemanifests and consoles
    #[arg(long, conflicts_with_all = ["mode", "once"])]
    packages: bool,
    /// With --packages: the address at which the API server reaches this process; port 0 for any free port
    /// [default: the address of this machine on the route to the API server, with any free port]
    #[arg(long, value_name = "HOST:PORT", requires = "packages")]
    packages_address: Option<PackagesAddress>,
    /// With --simulate: print the final objects in this format instead of the timeline. With --audit: print in this
    /// format an AuditEvent for each write that would be sent and for each open problem
    #[arg(short, long, value_enum, value_name = "FORMAT", requires = "documents")]
    output: Option<DataFormat>,

    /// Size limit of a catalog image of the global namespace, unpacked, such as 4Gi [default: 2Gi]
    #[arg(long, value_name = "QUANTITY", value_parser = bytes, help_heading = "Registry options")]
    image_size_limit: Option<u64>,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    log: LogFlags,
}

/// The default namespace of OLM.
const OLM: &str = "olm";

const EXAMPLES: &str = "Examples:
  # Simulate applying these objects to a cluster with this catalog
  {cmd} --simulate ./my-objects --catalog community=./catalog

  # Install OLM's CRDs, then run the controllers until Ctrl-C
  {cmd} --install-crds
  {cmd}

  # Run until nothing is left to do, with a catalog from a directory
  {cmd} --once --catalog community=./catalog

  # A namespace stays terminating because no controllers run: print what would be done
  {cmd} --release-finalizers old-town --dry-run

  # Print what these controllers would do on a cluster that OLM manages
  {cmd} --audit --once
";

impl Arguments {
    /// Starts logging, at a lower level for modes that report by other means.
    pub fn start_logging(&self, printer: &Printer) {
        let ends = self.install_crds || !self.simulate.is_empty();
        let timeline = !self.audit && self.log.log_format.is_none() && printer.is_read_on_a_terminal();
        let usually = match (printer.is_quiet(), ends || timeline) {
            (true, _) => Usually::Errors,
            (false, true) => Usually::Warnings,
            (false, false) => Usually::Events,
        };
        logging::start(self.log, usually);
    }
}

impl From<Arguments> for Options {
    fn from(arguments: Arguments) -> Self {
        let is_simulated = !arguments.simulate.is_empty();
        let (namespace, objects_namespace) = match arguments.namespace {
            Some(namespace) if !is_simulated => (namespace, "default".to_owned()),
            named => (arguments.catalog_namespace, named.unwrap_or_else(|| "default".to_owned())),
        };
        let timeout = arguments.timeout.filter(|timeout| !timeout.is_zero());
        let mode = if arguments.install_crds {
            Mode::InstallCrds { allow_changes: arguments.allow_changes }
        } else if let Some(namespaces) = arguments.release_finalizers {
            Mode::ReleaseFinalizers(Release { namespaces, dry_run: arguments.dry_run, yes: arguments.yes, timeout })
        } else if arguments.audit {
            Mode::Audit { once: arguments.once, timeout }
        } else if arguments.simulate.is_empty() {
            Mode::Live {
                once: arguments.once,
                timeout,
                take_over: arguments
                    .take_over
                    .then_some(TakeOver { allow_changes: arguments.allow_changes, yes: arguments.yes }),
                lease: !arguments.no_lease,
                metrics: arguments.metrics_address,
                health: arguments.health_address,
                packages: arguments.packages.then(|| arguments.packages_address.unwrap_or_default()),
            }
        } else {
            Mode::Simulate(arguments.simulate)
        };
        Self {
            mode,
            cluster: arguments.cluster,
            namespace,
            objects_namespace,
            catalogs: arguments.catalog,
            catalog_images: arguments.catalog_image,
            bundle_images: arguments.bundle_image,
            catalog_pods: arguments.catalog_pods,
            images: arguments.images,
            image_size_limit: arguments.image_size_limit,
            feature_gates: arguments.feature_gates,
            retry_optional: arguments.retry_optional,
            protected_copied_csv_namespaces: arguments.protected_copied_csv_namespaces,
            output: arguments.output,
            log_lines: arguments.log.log_format.is_some(),
        }
    }
}

/// Parses an address as Go programs do: without a host it stands for all interfaces.
fn address(text: &str) -> Result<SocketAddr, String> {
    let with_host = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    with_host.parse().map_err(|_| "expected HOST:PORT or :PORT, with the host as an IP address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, clap::Error> {
        Arguments::try_parse_from(format!("kubectl-olm-run {line}").split_whitespace()).map(Options::from)
    }

    #[test]
    fn the_arguments_choose_one_mode() {
        let (once, take_over, timeout) = (false, None, None);
        let live = Mode::Live { once, timeout, take_over, lease: true, metrics: None, health: None, packages: None };
        for (line, mode) in [
            ("", live),
            ("--simulate a b", Mode::Simulate(vec!["a".into(), "b".into()])),
            ("--audit", Mode::Audit { once, timeout }),
            ("--audit --once", Mode::Audit { once: true, timeout }),
            ("--audit --once --timeout 90s", Mode::Audit { once: true, timeout: Some(Duration::from_secs(90)) }),
            ("--install-crds --context tea", Mode::InstallCrds { allow_changes: false }),
            ("--release-finalizers", Mode::ReleaseFinalizers(Release::default())),
            (
                "--release-finalizers a,b --dry-run",
                Mode::ReleaseFinalizers(Release {
                    namespaces: vec!["a".to_owned(), "b".to_owned()],
                    dry_run: true,
                    ..Release::default()
                }),
            ),
        ] {
            assert_eq!(options(line).unwrap().mode, mode, "{line}");
        }
    }

    #[test]
    fn a_simulation_takes_the_namespace_for_objects_as_kubectl_does() {
        let namespaces = |line: &str| {
            let options = options(line).unwrap();
            (options.namespace, options.objects_namespace)
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(namespaces(""), pair("olm", "default"));
        assert_eq!(namespaces("-n tea"), pair("tea", "default"));
        assert_eq!(namespaces("--simulate a"), pair("olm", "default"));
        assert_eq!(namespaces("--simulate a -n tea"), pair("olm", "tea"));
        assert_eq!(namespaces("--simulate a -n tea --catalog-namespace tools"), pair("tools", "tea"));
    }

    #[test]
    fn conflicting_arguments_are_refused() {
        for line in [
            "--simulate a --audit",
            "--simulate a --once",
            "--simulate a --local-credentials",
            "--install-crds --local-credentials",
            "--simulate",
            "--audit --take-over",
            "--allow-changes",
            "--audit --no-lease",
            "--audit --metrics-address :1",
            "--once --health-address :1",
            "--once --packages",
            "--packages-address 192.0.2.1:1",
            "--packages --packages-address 192.0.2.1",
            "--timeout 1m",
            "--audit --timeout 1m",
            "--simulate a --timeout 1m",
            "--install-crds --timeout 1m",
            "--release-finalizers --once",
            "--release-finalizers --take-over",
            "--yes",
            "--once --dry-run",
            "--install-crds --catalog a=b",
            "-o yaml",
            "--catalog tea",
            "--feature-gates Tea=true",
            "--metrics-address tea",
            "words",
        ] {
            assert_eq!(options(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn changes_are_allowed_where_they_are_refused_otherwise() {
        let take_over = |line: &str| match options(line).unwrap().mode {
            Mode::Live { take_over, .. } => take_over,
            _ => None,
        };
        assert_eq!(take_over("--take-over"), Some(TakeOver::default()));
        let both = TakeOver { allow_changes: true, yes: true };
        assert_eq!(take_over("--once --take-over --allow-changes --yes"), Some(both));
        let line = "--install-crds --allow-changes";
        assert_eq!(options(line).unwrap().mode, Mode::InstallCrds { allow_changes: true });
    }

    #[test]
    fn credentials_and_size_limits_are_passed_on() {
        let lends = |line: &str| options(line).unwrap().images.local_credentials;
        assert!(!lends("") && lends("--local-credentials") && lends("--audit --local-credentials"));
        assert_eq!(options("--image-size-limit 4Gi").unwrap().image_size_limit, Some(4 << 30));
    }

    #[test]
    fn protected_namespaces_are_named_as_for_olm_too() {
        for flag in ["--protected-copied-csv-namespaces", "--protectedCopiedCSVNamespaces"] {
            let options = options(&format!("{flag} a,b {flag}=c")).unwrap();
            assert_eq!(options.protected_copied_csv_namespaces, ["a", "b", "c"]);
        }
    }

    #[test]
    fn an_address_may_leave_the_host_out() {
        let options = options("--health-address :8081 --metrics-address 127.0.0.1:8080").unwrap();
        let Mode::Live { metrics, health, .. } = options.mode else { panic!("live") };
        assert_eq!(metrics.map(|a| a.to_string()).as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(health.map(|a| a.to_string()).as_deref(), Some("0.0.0.0:8081"));
        assert_eq!(options.namespace, "olm");
    }
}
