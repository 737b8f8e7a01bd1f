//! How the commands access registries: credentials of the user, of a file, and of pull secrets.

use olm_core::api::kinds;

use super::connect::connect_in;
use super::flags::{ClusterFlags, CredentialFlags, RegistryFlags};
use super::{CliError, ErrorKind, Printer};
use crate::blocking::block_on;
use crate::cluster::request_error::RequestError;
use crate::image::{Credentials, Options};

/// Returns the options that the flags describe. Reads pull secrets from the cluster.
///
/// # Errors
/// A file or a pull secret cannot be read, or has no credentials.
pub(crate) async fn options(flags: &RegistryFlags, printer: &mut Printer) -> Result<Options, CliError> {
    let read = |file: &std::path::Path| std::fs::read(file).map_err(|e| CliError::from(e).at(file.display()));
    let certificate_authorities = flags.registry_ca.as_deref().map(read).transpose()?.unwrap_or_default();
    let options = Options { certificate_authorities, plain_http: flags.plain_http.clone(), ..Options::of_user() };
    flags.credentials.add_to(options, &flags.cluster, flags.namespace.as_deref(), printer).await
}

impl CredentialFlags {
    /// Returns the options with the credentials of the flags. Reads pull secrets from the cluster.
    ///
    /// # Errors
    /// As `options`.
    pub(crate) async fn add_to(
        &self,
        mut options: Options,
        cluster: &ClusterFlags,
        namespace: Option<&str>,
        printer: &mut Printer,
    ) -> Result<Options, CliError> {
        if let Some(file) = &self.authfile {
            // Credentials of a file that cannot be read would be silently missing otherwise.
            std::fs::read(file).map_err(|e| CliError::from(e).at(file.display()))?;
            options.credentials = Credentials::of_file(file.clone());
        }
        let mut secrets = Vec::new();
        for secret in &self.pull_secrets {
            let (namespace, name) = match secret.split_once('/') {
                Some((namespace, name)) => (Some(namespace), name),
                None => (namespace, secret.as_str()),
            };
            let (api, namespace) = connect_in(cluster, namespace).await?;
            let found = api.get(&kinds::SECRET.object(&namespace, name)).await;
            let found = found.map_err(|status| RequestError::new("get", "secrets", &namespace, status))?;
            secrets.push(found.ok_or_else(|| {
                CliError::new(ErrorKind::Api, format!("there is no Secret {name:?} in namespace {namespace}"))
                    .hint("write a pull secret of another namespace as NAMESPACE/NAME")
            })?);
        }
        let (credentials, problems) = Credentials::of_secrets(&secrets);
        for problem in problems {
            printer.warn(problem);
        }
        options.credentials = credentials.and(options.credentials);
        Ok(options)
    }

    /// Does the same, for callers without a runtime.
    ///
    /// # Errors
    /// As `options`.
    pub fn options(
        &self,
        options: Options,
        cluster: &ClusterFlags,
        namespace: Option<&str>,
        printer: &mut Printer,
    ) -> Result<Options, CliError> {
        if self.authfile.is_none() && self.pull_secrets.is_empty() {
            return Ok(options);
        }
        block_on(self.add_to(options, cluster, namespace, printer))
    }
}
