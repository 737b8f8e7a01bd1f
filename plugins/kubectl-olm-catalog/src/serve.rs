//! `kubectl olm catalog serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use olm_shell::catalog::Ref;
use olm_shell::catalog::serve::{self, Options, SCAN};
use olm_shell::cli::flags::{ImageFlags, LogFlags, duration};
use olm_shell::cli::logging::{self, Usually};
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::OnCluster;

/// Serve a catalog over gRPC, as opm serve does.
///
/// Several REFs are served as one catalog. Files are reloaded when they change, and images when their tag changes;
/// CatalogSources are read once. The old content is served until the new content is loaded. An invalid package is left
/// out with a warning. Ctrl-C lets running requests finish, and exits.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Catalogs to serve
    #[arg(value_name = "REF", required = true)]
    refs: Vec<Ref>,
    /// Port to listen on; 0 selects a free port
    #[arg(short, long, default_value_t = 50051)]
    port: u16,
    /// IP address to listen on; 0.0.0.0, as opm serve uses, accepts connections from other machines
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// File with the server's certificate chain, in PEM; OLM itself connects without TLS
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file", alias = "tls-cert")]
    tls_cert_file: Option<PathBuf>,
    /// File with the private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file", alias = "tls-key")]
    tls_private_key_file: Option<PathBuf>,
    /// Serve Prometheus metrics on this address [default: disabled]
    #[arg(long, value_name = "IP:PORT")]
    metrics: Option<SocketAddr>,
    /// How often to check whether the tag of an image has changed; 0 never checks
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration)]
    poll: Duration,

    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    on: OnCluster,
}

const EXAMPLES: &str = "Examples:
  # Serve the catalog in a directory, and reload it on changes
  {cmd} serve ./catalog

  # Serve an image and a directory as one catalog, with metrics
  {cmd} serve registry.example.com/catalog:latest ./more -p 50052 --metrics 127.0.0.1:8080
";

/// How long running requests may take to finish on shutdown.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    logging::start(arguments.log, Usually::Events);
    let options = Options {
        refs: arguments.on.refs(arguments.refs),
        address: SocketAddr::new(arguments.address, arguments.port),
        tls: arguments.tls_cert_file.zip(arguments.tls_private_key_file),
        metrics: arguments.metrics,
        poll: arguments.poll,
        scan: SCAN,
        grace: GRACE,
        images: arguments.images.options()?,
    };
    serve::serve(&options, printer)
}
