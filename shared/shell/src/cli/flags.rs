//! Command line flags with kubectl's names, as clap arguments that plugins include with `#[command(flatten)]`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use serde_json::{Value, json};

use super::output::{Output, PageOutput};
use super::selector::LabelQuery;
use super::{CliError, Printer};
use crate::image;
use crate::registry::local::CatalogDirectory;

const CLUSTER: &str = "Cluster options";

/// The API server to connect to, and the identity to use.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = CLUSTER)]
pub struct ClusterFlags {
    /// Kubeconfig file to read [default: the files named in KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Kubeconfig context to use
    #[arg(long, value_name = "NAME", global = true)]
    pub context: Option<String>,
    /// Kubeconfig cluster to use
    #[arg(long, value_name = "NAME", global = true)]
    pub cluster: Option<String>,
    /// Kubeconfig user to use
    #[arg(long, value_name = "NAME", global = true)]
    pub user: Option<String>,
    /// Address and port of the API server
    #[arg(short = 's', long, value_name = "URL", global = true)]
    pub server: Option<String>,
    /// Bearer token to present to the API server
    #[arg(long, global = true, hide_env_values = true)]
    pub token: Option<String>,
    /// File with the certificate authority that signed the server's certificate
    #[arg(long, value_name = "FILE", global = true)]
    pub certificate_authority: Option<PathBuf>,
    /// File with the client certificate to present
    #[arg(long, value_name = "FILE", global = true)]
    pub client_certificate: Option<PathBuf>,
    /// File with the key of the client certificate
    #[arg(long, value_name = "FILE", global = true)]
    pub client_key: Option<PathBuf>,
    /// Name to expect in the server's certificate, when it is not the host name
    #[arg(long, value_name = "NAME", global = true)]
    pub tls_server_name: Option<String>,
    /// Do not check the server's certificate; this makes the connection insecure
    #[arg(long, global = true)]
    pub insecure_skip_tls_verify: bool,
    /// User to impersonate, or `system:serviceaccount:NAMESPACE:NAME`
    #[arg(long = "as", value_name = "USER", global = true)]
    pub impersonate: Option<String>,
    /// Group to impersonate (may be repeated)
    #[arg(long = "as-group", value_name = "GROUP", global = true)]
    pub impersonate_groups: Vec<String>,
    /// UID to impersonate
    #[arg(long = "as-uid", value_name = "UID", global = true)]
    pub impersonate_uid: Option<String>,
    /// How long to wait for a response of the server (1s, 2m, 3h); 0 is no limit [default: 10s to connect, then 1m]
    #[arg(long, value_name = "DURATION", global = true, value_parser = duration)]
    pub request_timeout: Option<Duration>,
}

impl ClusterFlags {
    /// Returns whether a flag selects a cluster or an identity. Commands that do not need a cluster then use one.
    pub fn is_given(&self) -> bool {
        Self { request_timeout: None, ..self.clone() } != Self::default()
    }
}

/// How images are pulled from registries.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Registry options")]
pub struct ImageFlags {
    /// File with certificate authorities to trust for registries, in addition to those of the system
    #[arg(long, value_name = "FILE")]
    pub registry_ca: Option<PathBuf>,
    /// Registry to connect to without TLS; this makes the connection insecure (may be repeated)
    #[arg(long, value_name = "HOST[:PORT]")]
    pub plain_http: Vec<String>,
    /// Use your own docker or podman login also for images that objects of a cluster or catalogs refer to. By default
    /// only the pull secrets of CatalogSources are used for them, because any user who can create a CatalogSource could
    /// otherwise read every image that you can. Images that you name on the command line are always pulled with your
    /// login
    #[arg(long)]
    pub local_credentials: bool,
}

impl ImageFlags {
    /// Returns the options for pulling as the user, with the user's cache.
    ///
    /// # Errors
    /// The file of certificate authorities cannot be read.
    pub fn options(&self) -> Result<image::Options, CliError> {
        let certificate_authorities = match &self.registry_ca {
            Some(file) => std::fs::read(file).map_err(|e| CliError::from(e).at(file.display()))?,
            None => Vec::new(),
        };
        let plain_http = self.plain_http.clone();
        let lends = self.local_credentials;
        Ok(image::Options { lends, certificate_authorities, plain_http, ..image::Options::of_user() })
    }
}

/// The credentials for registries.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Registry options")]
pub struct CredentialFlags {
    /// File with credentials for registries, as docker and podman write it [default: REGISTRY_AUTH_FILE, else the files of docker and podman]
    #[arg(long, value_name = "FILE")]
    pub authfile: Option<PathBuf>,
    /// Pull secret of the cluster with credentials to try first (may be repeated)
    #[arg(long = "pull-secret", value_name = "[NAMESPACE/]NAME")]
    pub pull_secrets: Vec<String>,
}

/// How a command accesses registries as the user.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Registry options")]
pub struct RegistryFlags {
    /// The credentials.
    #[command(flatten)]
    pub credentials: CredentialFlags,
    /// File with certificate authorities to trust for registries, in addition to those of the system
    #[arg(long, value_name = "FILE")]
    pub registry_ca: Option<PathBuf>,
    /// Registry to connect to without TLS; this makes the connection insecure (may be repeated)
    #[arg(long, value_name = "HOST[:PORT]")]
    pub plain_http: Vec<String>,
    /// Namespace of the pull secrets [default: the context's namespace]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// The cluster with the pull secrets.
    #[command(flatten)]
    pub cluster: ClusterFlags,
}

/// The namespaces that a command reads.
#[derive(Args, Clone, Debug, Default)]
pub struct NamespaceFlags {
    /// Namespace to work in [default: the context's namespace]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Use all namespaces; --namespace is then ignored
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

/// The source of objects: a cluster, or files instead of it.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceFlags {
    /// Read objects from these files and folders instead of a cluster: a must-gather, or the output of kubectl get -o
    /// yaml (may be repeated). Subdirectories catalogs/NAME/ replace CatalogSources
    #[arg(long, value_name = "DIR|FILE")]
    pub from: Vec<PathBuf>,
    /// File-based catalog in a directory to use as a CatalogSource (may be repeated); without NAMESPACE it is global
    #[arg(long = "catalog", value_name = "NAME[.NAMESPACE]=DIR")]
    pub catalogs: Vec<CatalogDirectory>,
    /// Namespace whose catalogs are global [default: olm, or openshift-marketplace if that has catalogs]
    #[arg(long, value_name = "NAMESPACE")]
    pub catalog_namespace: Option<String>,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterFlags,
}

/// The labels of the objects that a command selects.
#[derive(Args, Clone, Debug, Default)]
pub struct SelectorFlags {
    /// Label query: '=', '==', '!=', 'in', 'notin' and bare keys, all of which must hold (-l a=b,c!=d)
    #[arg(short = 'l', long, value_name = "QUERY")]
    pub selector: Option<LabelQuery>,
}

/// How objects are printed.
#[derive(Args, Clone, Debug, Default)]
#[allow(rustdoc::broken_intra_doc_links, reason = "the comments of arguments are help, not Markdown")]
pub struct OutputFlags {
    /// Output format: json, yaml, name, wide, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,… [default: a table]
    ///
    /// A template is text with expressions in braces, as in kubectl: fields (.a.b), indices ([0], [-1], [1:3], [*]),
    /// recursion (..name), filters ([?(@.type=="Ready")]), "text" and {range LIST}…{end}. Dots within a key are escaped
    /// as \. and missing fields are empty. Go templates are not supported.
    #[arg(short, long, value_name = "FORMAT", default_value = "", hide_default_value = true)]
    pub output: Output,
}

/// How objects are printed by a command that can also write a page.
#[derive(Args, Clone, Debug, Default)]
#[allow(rustdoc::broken_intra_doc_links, reason = "the comments of arguments are help, not Markdown")]
pub struct PageFlags {
    /// Output format: html, json, yaml, name, wide, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,… [default: a table]
    ///
    /// html is a page in one file, without scripts and references to other files. A template is text with expressions in
    /// braces, as in kubectl: fields (.a.b), indices ([0], [-1], [1:3], [*]), recursion (..name), filters
    /// ([?(@.type=="Ready")]), "text" and {range LIST}…{end}. Dots within a key are escaped as \. and missing fields are
    /// empty. Go templates are not supported.
    #[arg(short, long, value_name = "FORMAT", default_value = "", hide_default_value = true)]
    pub output: PageOutput,
}

/// The output formats of commands without a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DataFormat {
    /// JSON, indented.
    Json,
    /// A YAML document.
    Yaml,
}

impl DataFormat {
    /// Writes a value in this format.
    pub fn print(self, printer: &mut Printer, value: &Value) -> Result<(), CliError> {
        match self {
            Self::Json => printer.json(value),
            Self::Yaml => printer.yaml(value),
        }
    }

    /// Writes objects as a List in this format, one at a time, since together they may not fit into memory.
    pub fn list<'a>(
        self,
        printer: &mut Printer,
        objects: impl Iterator<Item = Cow<'a, Value>>,
    ) -> Result<(), CliError> {
        let mut objects = objects.peekable();
        if objects.peek().is_none() {
            return self.print(printer, &list(&[]));
        }
        match self {
            Self::Json => {
                printer.data("{\n    \"apiVersion\": \"v1\",\n    \"items\": [")?;
                let mut separator = "";
                for object in objects {
                    let text = super::data::json(&object)?.replace('\n', "\n        ");
                    printer.data(format_args!("{separator}\n        {text}"))?;
                    separator = ",";
                }
                printer.data(
                    "\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n",
                )
            }
            Self::Yaml => {
                printer.data("apiVersion: v1\nitems:\n")?;
                objects.try_for_each(|object| printer.yaml(&[object]))?;
                printer.yaml(&json!({ "kind": "List", "metadata": { "resourceVersion": "" } }))
            }
        }
    }
}

/// Returns a List as kubectl prints it.
fn list(objects: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "items": objects, "kind": "List", "metadata": { "resourceVersion": "" } })
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object per line.
    Json,
}

/// The amount and format of logging.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Common options")]
pub struct LogFlags {
    /// Verbosity of the log: 0 warnings and errors, 2 events, 4 details, 6 and higher every request [default: 0, or 2
    /// for commands that run until they are stopped]
    #[arg(short = 'v', long = "v", value_name = "LEVEL", global = true)]
    pub verbosity: Option<u8>,
    /// Format of log lines [default: text]
    #[arg(long, value_enum, value_name = "FORMAT", global = true)]
    pub log_format: Option<LogFormat>,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Also in pipes and files.
    Always,
    /// Nowhere.
    Never,
}

/// How commands write to stderr: flags of every command of every plugin.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Common options")]
pub struct TalkFlags {
    /// Print only errors and prompts on stderr
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When to use colours: auto (on a terminal, unless NO_COLOR is set), always or never [default: auto]
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", global = true)]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub color: Color,
    /// Log.
    #[command(flatten)]
    pub log: LogFlags,
}

/// The log verbosity from which errors are printed with their causes.
const CAUSES: u8 = 4;

impl TalkFlags {
    /// Returns a printer to the streams of this process, as the flags state.
    pub fn printer(&self) -> Printer {
        let color = match self.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        // The log follows this setting.
        color.write_global();
        let shows_causes = self.log.verbosity.is_some_and(|level| level >= CAUSES);
        Printer::stdio().with(self.quiet, shows_causes)
    }
}

/// Whether to prompt for confirmation.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct YesFlag {
    /// Do not prompt for confirmation
    #[arg(short = 'y', long, action = ArgAction::SetTrue)]
    pub yes: bool,
}

/// Whether a change is only a dry run.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DryRunFlag {
    /// Print what would be done; change nothing: client sends no request, server submits a dry run request. Without a
    /// value: client
    #[arg(long, value_enum, default_value_t, value_name = "HOW", num_args = 0..=1, default_missing_value = "client", require_equals = true)]
    pub dry_run: DryRun,
}

/// The kind of dry run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// No dry run: the change is made.
    #[default]
    None,
    /// Everything is checked, and no write is sent.
    Client,
    /// The API server checks the change as a dry run.
    Server,
}

impl DryRun {
    /// Returns the suffix for messages about a change.
    pub fn note(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}

/// Parses a duration in kubectl's form: a number with units (`1m30s`), or a bare number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let signed: jiff::SignedDuration =
        text.parse().map_err(|_| "expected a number with a unit, as in 30s, 2m or 1h")?;
    Duration::try_from(signed).map_err(|_| "a duration cannot be negative".to_owned())
}

/// Parses a number of bytes in Kubernetes' form: `512Mi`, `2Gi`, or a bare number.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return Err("expected a number of bytes, as in 512Mi or 2Gi".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number of bytes, as in 512Mi or 2Gi")?;
    number.checked_mul(unit).filter(|bytes| *bytes > 0).ok_or_else(|| "the size is out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::streams::Buffer;

    #[test]
    fn sizes_are_read_as_kubernetes_writes_them() {
        for (text, wanted) in [
            ("1", Some(1)),
            ("2Gi", Some(2 << 30)),
            ("5M", Some(5_000_000)),
            ("0", None),
            ("1.5Gi", None),
            ("2 Gi", None),
            ("Gi", None),
            ("99999999999Gi", None),
        ] {
            assert_eq!(bytes(text).ok(), wanted, "{text}");
        }
    }

    #[test]
    fn durations_are_kubectls() {
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("300ms"), Ok(Duration::from_millis(300)));
        assert!(duration("-1s").is_err());
        assert!(duration("soon").is_err());
    }

    #[test]
    fn a_list_is_printed_as_if_it_were_one_value() {
        let objects = [
            json!({ "kind": "Pod", "metadata": { "name": "pot", "labels": {} }, "on": "yes", "text": "a\nb\n", "list": [[1], []] }),
            json!({ "kind": "Pod", "metadata": null }),
        ];
        for format in [DataFormat::Json, DataFormat::Yaml] {
            for objects in [&objects[..], &objects[..1], &[]] {
                let printed = |print: &dyn Fn(&mut Printer) -> Result<(), CliError>| {
                    let out = Buffer::default();
                    print(&mut Printer::to(out.clone(), Buffer::default())).unwrap();
                    out.text()
                };
                let one_by_one = printed(&|printer| format.list(printer, objects.iter().map(Cow::Borrowed)));
                assert_eq!(one_by_one, printed(&|printer| format.print(printer, &list(objects))));
            }
        }
    }
}
