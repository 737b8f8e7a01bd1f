//! Connects to an API server by kubectl's flags, with a time limit on every request.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::error::{CliError, ErrorKind};
use super::flags::ClusterFlags;
use crate::cluster::api::{Api, REQUEST_TIMEOUT};
use crate::cluster::client::client;
use crate::tls::install_crypto_provider;

/// How long connecting may take, TLS included. Go's HTTP client, and so kubectl, uses the same limit.
const CONNECTING: Duration = Duration::from_secs(10);

impl ClusterFlags {
    /// Returns the configuration that these flags and the kubeconfig files describe; that of a pod if there is no
    /// kubeconfig. Installs the TLS provider and disables kube's own retries, which would delay errors by minutes.
    pub async fn config(&self) -> Result<kube::Config, CliError> {
        install_crypto_provider();
        let mut config = self.base_config().await?;
        config.default_retry = false;
        if let Some(bare) = self.bare_config()? {
            config.cluster_url = bare.cluster_url;
        }
        if let Some(file) = &self.certificate_authority {
            config.root_cert = Some(certificates(file)?);
        }
        if let Some(name) = &self.tls_server_name {
            config.tls_server_name = Some(name.clone());
        }
        config.accept_invalid_certs |= self.insecure_skip_tls_verify;
        // No read timeout: callers limit their requests themselves, and an idle watch must not time out.
        config.connect_timeout = match self.request_timeout {
            None => Some(CONNECTING),
            Some(limit) => (limit != Duration::ZERO).then_some(limit),
        };
        self.identify(&mut config.auth_info);
        // kube panics on such an address.
        if !matches!(config.cluster_url.scheme_str(), Some("http" | "https")) || config.cluster_url.host().is_none() {
            let message = format!("{:?} is not the address of an API server", config.cluster_url.to_string());
            return Err(
                CliError::usage(message).hint("write it as https://HOST:PORT, after --server or in the kubeconfig")
            );
        }
        Ok(config)
    }

    async fn base_config(&self) -> Result<kube::Config, CliError> {
        let options =
            KubeConfigOptions { context: self.context.clone(), cluster: self.cluster.clone(), user: self.user.clone() };
        let kubeconfig = match &self.kubeconfig {
            Some(file) => Kubeconfig::read_from(file),
            None => Kubeconfig::read(),
        };
        if let Ok(kubeconfig) = &kubeconfig {
            self.require_names(kubeconfig)?;
        }
        match kubeconfig {
            Ok(kubeconfig) => kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(CliError::from),
            Err(missing) if self.kubeconfig.is_none() && is_absent(&missing) => match self.bare_config()? {
                Some(bare) => Ok(bare),
                None => kube::Config::incluster().map_err(|_| no_cluster()),
            },
            Err(error) => {
                let error = CliError::from(error);
                // kube does not report which of several files it was.
                Err(match &self.kubeconfig {
                    Some(file) if error.location.is_none() && error.kind == ErrorKind::Input => {
                        error.at(file.display())
                    }
                    _ => error,
                })
            }
        }
    }

    /// Checks that `--user` and `--cluster` name entries of the kubeconfig: kube treats an unknown user as anonymous.
    fn require_names(&self, kubeconfig: &Kubeconfig) -> Result<(), CliError> {
        let users: Vec<&str> = kubeconfig.auth_infos.iter().map(|user| user.name.as_str()).collect();
        let clusters: Vec<&str> = kubeconfig.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        for (what, asked, known) in [("user", &self.user, users), ("cluster", &self.cluster, clusters)] {
            if let Some(name) = asked.as_deref().filter(|name| !known.contains(name)) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(CliError::usage(format!("the kubeconfig has no {what} {name:?}"))
                    .hint(format!("known names: {known}; kubectl config view prints the kubeconfig")));
            }
        }
        Ok(())
    }

    /// Returns a configuration of only the address given by `--server`.
    fn bare_config(&self) -> Result<Option<kube::Config>, CliError> {
        let Some(server) = &self.server else { return Ok(None) };
        let url = server.parse().map_err(|e| CliError::usage(format!("--server {server:?} is not an address: {e}")))?;
        Ok(Some(kube::Config::new(url)))
    }

    fn identify(&self, auth: &mut kube::config::AuthInfo) {
        if let Some(token) = &self.token {
            auth.token = Some(token.clone().into());
            auth.token_file = None;
            auth.exec = None;
        }
        let path = |p: &Path| Some(p.to_string_lossy().into_owned());
        if let Some(file) = &self.client_certificate {
            auth.client_certificate = path(file);
            auth.client_certificate_data = None;
        }
        if let Some(file) = &self.client_key {
            auth.client_key = path(file);
            auth.client_key_data = None;
        }
        if let Some(user) = &self.impersonate {
            auth.impersonate = Some(user.clone());
        }
        if let Some(uid) = &self.impersonate_uid {
            auth.impersonate_uid = Some(uid.clone());
        }
        if !self.impersonate_groups.is_empty() {
            auth.impersonate_groups = Some(self.impersonate_groups.clone());
        }
    }
}

fn certificates(file: &Path) -> Result<Vec<Vec<u8>>, CliError> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let pem = fs::read(file).map_err(|e| CliError::from(e).at(file.display()))?;
    CertificateDer::pem_slice_iter(&pem)
        .map(|der| der.map(|der| der.to_vec()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| CliError::input(format!("not a PEM certificate: {e:?}")).at(file.display()))
}

fn is_absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(io, _) => io.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn no_cluster() -> CliError {
    CliError::new(ErrorKind::NoCluster, "no cluster is configured: there is no kubeconfig file, and this is not a pod")
        .hint("set KUBECONFIG or pass --kubeconfig FILE")
}

/// A connection, and settings of the kubeconfig.
pub struct Connection {
    /// The API server.
    pub api: Api,
    /// The namespace of the context.
    pub namespace: String,
    /// The server's address.
    pub server: String,
}

/// Connects as the flags state. Without `--request-timeout` a request may take as long as the API server allows by
/// default.
pub async fn connect(flags: &ClusterFlags) -> Result<Connection, CliError> {
    let config = flags.config().await?;
    let (namespace, server) = (config.default_namespace.clone(), config.cluster_url.to_string());
    let connecting = config.connect_timeout;
    let timeout = match flags.request_timeout {
        None => REQUEST_TIMEOUT,
        Some(Duration::ZERO) => Duration::MAX,
        Some(limit) => limit,
    };
    let api = Api::new(client(config)?).with_timeout(timeout);
    Ok(Connection { api: api.with_connecting(connecting), namespace, server })
}

/// Connects as [`connect`], and returns the namespace to work in: the given one, or that of the context.
pub async fn connect_in(flags: &ClusterFlags, namespace: Option<&str>) -> Result<(Api, String), CliError> {
    let Connection { api, namespace: of_context, .. } = connect(flags).await?;
    Ok((api, namespace.map_or(of_context, str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(flags: &ClusterFlags) -> CliError {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(flags.config()).unwrap_err()
    }

    #[test]
    fn an_invalid_address_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let of = |server: &str| {
            format!(
                "clusters: [{{name: tea, cluster: {{server: '{server}'}}}}]\ncontexts: [{{name: tea, context: {{cluster: tea, \
                 user: ''}}}}]\ncurrent-context: tea\nusers: []\n"
            )
        };
        fs::write(&kubeconfig, of("https://127.0.0.1:1")).unwrap();
        for server in ["nonsense", "127.0.0.1:6443", "ftp://127.0.0.1"] {
            let flags = ClusterFlags {
                kubeconfig: Some(kubeconfig.clone()),
                server: Some(server.to_owned()),
                ..ClusterFlags::default()
            };
            assert_eq!(refused(&flags).kind, ErrorKind::Usage, "{server}");
        }
        fs::write(&kubeconfig, of("nonsense")).unwrap();
        let flags = ClusterFlags { kubeconfig: Some(kubeconfig), ..ClusterFlags::default() };
        assert_eq!(refused(&flags).message, "\"nonsense\" is not the address of an API server");
    }

    #[test]
    fn a_user_that_the_kubeconfig_does_not_have_is_not_anonymous() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let text = "clusters: [{name: tea, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: tea, context: \
                    {cluster: tea, user: admin}}]\ncurrent-context: tea\nusers: [{name: admin, user: {token: t}}]\n";
        fs::write(&kubeconfig, text).unwrap();
        let of = ClusterFlags { kubeconfig: Some(kubeconfig), ..ClusterFlags::default() };
        let error = refused(&ClusterFlags { user: Some("nobody".to_owned()), ..of.clone() });
        assert_eq!(error.message, "the kubeconfig has no user \"nobody\"");
        assert!(error.hints.join("; ").starts_with("known names: admin;"));
        let error = refused(&ClusterFlags { cluster: Some("coffee".to_owned()), ..of });
        assert_eq!(error.message, "the kubeconfig has no cluster \"coffee\"");
    }

    #[test]
    fn an_invalid_kubeconfig_is_reported_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        fs::write(&kubeconfig, "a: [").unwrap();
        let error = refused(&ClusterFlags { kubeconfig: Some(kubeconfig.clone()), ..ClusterFlags::default() });
        assert_eq!(error.location, Some(kubeconfig.display().to_string()));
        assert!(error.message.contains("line 1") && !error.message.contains('\n'), "{error}");
    }
}
