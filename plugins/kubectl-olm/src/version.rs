//! `kubectl olm version`: the versions of the client and of the cluster.

use olm_shell::cli::flags::{ClusterFlags, DataFormat};
use olm_shell::cli::output::API_VERSION;
use olm_shell::cli::{CliError, ErrorKind, Outcome, Printer};
use olm_shell::version::{Client, Server, server};
use serde_json::{Value, json};

/// Print the version of kubectl-olm, and the versions of Kubernetes and OLM on the cluster.
///
/// The cluster is queried if one is configured, with a timeout of 3 seconds unless --request-timeout is given.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print the client version only; do not connect to a cluster
    #[arg(long)]
    client: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<DataFormat>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Print the versions of the client and of the current context's cluster
  {cmd} version

  # Print the client version as JSON
  {cmd} version --client -o json
";

/// Prints the versions. An unreachable server is an error, reported after the client version; a missing cluster
/// configuration is not.
pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let client = Client::this();
    let asked = (!arguments.client).then(|| server(&arguments.cluster));
    let answer = asked.as_ref().and_then(|asked| asked.as_ref().ok());
    match arguments.output {
        Some(format) => format.print(printer, &document(&client, answer))?,
        None => printer.data(text(&client, answer))?,
    }
    match asked {
        Some(Err(error)) if error.kind == ErrorKind::NoCluster => printer.talk(error),
        Some(Err(error)) => return Err(error),
        _ => {}
    }
    Ok(Outcome::Done)
}

fn document(client: &Client, server: Option<&Server>) -> Value {
    let mut document = json!({ "apiVersion": API_VERSION, "kind": "Version", "clientVersion": client });
    if let Some(server) = server {
        document["serverVersion"] = json!(server);
    }
    document
}

fn text(client: &Client, server: Option<&Server>) -> String {
    let mut lines =
        vec![format!("Client Version: {}", client.version), format!("Compatible With: OLM {}", client.olm_version)];
    if let Some(server) = server {
        let apis = match server.api_versions.as_slice() {
            [] => "none (CRDs not installed)".to_owned(),
            versions => versions.join(", "),
        };
        let deployments = |stopped| {
            let all = server.controllers.iter().flatten().filter(move |c| c.stopped == stopped);
            all.map(|c| format!("{}/{} ({})", c.namespace, c.name, c.image))
        };
        let leases = server.leases.iter().flatten();
        let ours = leases
            .map(|l| format!("kubectl olm run (Lease {}/{}, held by {})", l.namespace, l.name, l.holder_identity));
        let unknown = [(server.controllers.is_none(), "Deployments"), (server.leases.is_none(), "Leases")];
        let unknown: Vec<&str> = unknown.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
        let unknown =
            (!unknown.is_empty()).then(|| format!("unknown (listing {} is forbidden)", unknown.join(" and ")));
        let controllers: Vec<String> = ours.chain(deployments(false)).chain(unknown).collect();
        let controllers = if controllers.is_empty() { "none".to_owned() } else { controllers.join(", ") };
        lines.push(format!("Server Version: {}", server.kubernetes_version));
        lines.push(format!("OLM APIs: {apis}"));
        lines.push(format!("OLM Controllers: {controllers}"));
        let stopped: Vec<String> = deployments(true).collect();
        if !stopped.is_empty() {
            lines.push(format!("Stopped Controllers: {}", stopped.join(", ")));
        }
    }
    lines.join("\n") + "\n"
}
