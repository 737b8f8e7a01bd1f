//! The registry's side: manifests and blobs over the OCI distribution protocol, and its refusals in sentences.

use std::io::{self, Read};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::{
    IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE,
    OciDescriptor,
};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference, RegistryOperation};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Options;
use super::manifest::{Descriptor, check_digest, digest_like, verify, wrong_digest};
use crate::cli::connect::install_crypto_provider;
use crate::cli::{CliError, ErrorKind};

/// What images are described by.
const MANIFESTS: [&str; 4] =
    [OCI_IMAGE_MEDIA_TYPE, OCI_IMAGE_INDEX_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, IMAGE_MANIFEST_LIST_MEDIA_TYPE];
/// What is wrong with a token that no header can hold.
const UNSENDABLE: &str = "the registry's token has characters that no header can have";
/// Chunks of a layer that wait for being unpacked.
const CHUNKS: usize = 8;

/// An image in a registry.
pub(super) struct Registry {
    client: Client,
    image: Reference,
    limit: u64,
    stall: Duration,
}

impl Registry {
    /// Asks for the image with each of the credentials until one will do. Returns the manifest and its digest as well.
    pub(super) async fn open(image: &Reference, options: &Options) -> Result<(Self, Vec<u8>, String), CliError> {
        if let Some(digest) = image.digest() {
            check_digest(digest)?;
        }
        install_crypto_provider();
        let credentials = options.credentials.clone();
        let asked = image.clone();
        // Helpers are programs that may take their time.
        let found = tokio::task::spawn_blocking(move || credentials.for_image(&asked)).await;
        let mut candidates = found.map_err(|e| CliError::new(ErrorKind::Internal, e.to_string()))??;
        if candidates.is_empty() {
            candidates.push(RegistryAuth::Anonymous);
        }
        let mut refused = None;
        for auth in candidates {
            let anonymous = auth == RegistryAuth::Anonymous;
            let registry = Self {
                client: client(options)?,
                image: image.clone(),
                limit: options.limits.document,
                stall: options.limits.stall,
            };
            match registry.first(&auth).await {
                Ok((manifest, digest)) => return Ok((registry, manifest, digest)),
                Err(e) => {
                    let told = registry.told(e, anonymous);
                    if !told.1 {
                        return Err(told.0);
                    }
                    refused.get_or_insert(told.0);
                }
            }
        }
        Err(refused.unwrap_or_else(|| CliError::input("no credentials")))
    }

    async fn first(&self, auth: &RegistryAuth) -> Result<(Vec<u8>, String), OciDistributionError> {
        let token = self.client.auth(&self.image, auth, RegistryOperation::Pull).await?;
        // The client takes it for granted that a token fits into a header, and ends with a panic where it does not.
        if token.is_some_and(|token| http::HeaderValue::from_str(&token).is_err()) {
            return Err(OciDistributionError::AuthenticationFailure(UNSENDABLE.to_owned()));
        }
        let (manifest, _) = self.client.pull_manifest_raw(&self.image, auth, &MANIFESTS).await?;
        let digest = digest_like(self.image.digest().unwrap_or("sha256:"), &manifest);
        Ok((manifest.to_vec(), digest))
    }

    /// A manifest of an index.
    pub(super) async fn manifest(&self, descriptor: &Descriptor) -> Result<Vec<u8>, CliError> {
        let image = self.image.clone_with_digest(descriptor.digest.clone());
        // The credentials are those that the client remembers.
        let pulled = self.client.pull_manifest_raw(&image, &RegistryAuth::Anonymous, &MANIFESTS).await;
        let (manifest, _) = pulled.map_err(|e| self.told(e, false).0)?;
        verify(&manifest, &descriptor.digest)?;
        Ok(manifest.to_vec())
    }

    /// A small blob, whole.
    pub(super) async fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, CliError> {
        let too_long = || CliError::input(format!("{} is longer than {} bytes", descriptor.digest, self.limit));
        let mut blob = self.blob(descriptor).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = blob.chunks.recv().await {
            bytes.extend_from_slice(&chunk?);
            if bytes.len() as u64 > self.limit {
                return Err(too_long());
            }
        }
        verify(&bytes, &descriptor.digest)?;
        Ok(bytes)
    }

    /// A blob as it arrives.
    pub(super) async fn blob(&self, descriptor: &Descriptor) -> Result<Download, CliError> {
        let wanted = OciDescriptor { digest: descriptor.digest.clone(), ..OciDescriptor::default() };
        let blob = self.client.pull_blob_stream(&self.image, &wanted).await;
        let mut stream = blob.map_err(|e| self.told(e, false).0)?.stream;
        let (sender, chunks) = mpsc::channel(CHUNKS);
        let (registry, digest, stall) = (self.image.registry().to_owned(), descriptor.digest.clone(), self.stall);
        let task = tokio::spawn(async move {
            loop {
                let chunk = match tokio::time::timeout(stall, stream.next()).await {
                    Ok(None) => return,
                    Ok(Some(Ok(bytes))) => Ok(bytes),
                    Ok(Some(Err(e))) => Err(broken(&e, &registry, &digest)),
                    Err(_) => Err(stalled(&registry)),
                };
                let last = chunk.is_err();
                if sender.send(chunk).await.is_err() || last {
                    return;
                }
            }
        });
        Ok(Download { chunks, current: Bytes::new(), task: task.abort_handle() })
    }

    /// A refusal as a sentence; and may other credentials help?
    fn told(&self, error: OciDistributionError, anonymous: bool) -> (CliError, bool) {
        use OciDistributionError as E;
        let registry = self.image.registry();
        let hint = |what: &str| {
            if anonymous {
                format!("log in first ({what}), or name a pull secret: no credentials for {registry} were found")
            } else {
                format!(
                    "the credentials for {registry} may not pull this image ({what} again, or correct the pull secret)"
                )
            }
        };
        let login = format!("docker login {registry}");
        let denied = || CliError::input(format!("{registry} does not let us pull the image")).hint(hint(&login));
        match error {
            E::AuthenticationFailure(why) if why == UNSENDABLE => {
                (CliError::new(ErrorKind::Unreachable, format!("{registry}: {why}")), false)
            }
            E::UnauthorizedError { .. } | E::AuthenticationFailure(_) | E::ServerError { code: 403, .. } => {
                (denied(), true)
            }
            E::RegistryError { envelope, .. } => {
                let code = envelope.errors.first().map(|e| &e.code);
                match code {
                    Some(OciErrorCode::Unauthorized | OciErrorCode::Denied) => (denied(), true),
                    Some(OciErrorCode::ManifestUnknown | OciErrorCode::NameUnknown | OciErrorCode::NotFound) => {
                        let error = CliError::input(format!("{registry} has no such image"))
                            .hint("compare name and tag with what was pushed; some registries say the same of images that need a login");
                        (error, true)
                    }
                    Some(OciErrorCode::BlobUnknown) => {
                        let error =
                            CliError::input(format!("{registry} has the image's manifest, but not all of its layers"))
                                .hint("push the image again");
                        (error, false)
                    }
                    _ => (CliError::new(ErrorKind::Unreachable, format!("{registry} refused: {envelope}")), false),
                }
            }
            E::ServerError { code: 404, .. } => {
                let hint = "compare its name with what was pushed, and the host with that of a registry";
                (CliError::input(format!("{registry} has no such image")).hint(hint), true)
            }
            E::ServerError { code, .. } => {
                let error = CliError::new(ErrorKind::Unreachable, format!("{registry} failed with HTTP status {code}"));
                (error.hint("try again later"), false)
            }
            E::DigestError(oci_client::errors::DigestError::VerificationError { expected, actual }) => {
                (wrong_digest(&expected, &actual), false)
            }
            E::RequestError(e) if e.is_timeout() => (stalled(registry), false),
            E::RequestError(e) => (unreachable(&e, registry), false),
            other => (CliError::new(ErrorKind::Unreachable, format!("{registry}: {other}")), false),
        }
    }
}

/// A client whose waits are bounded.
fn client(options: &Options) -> Result<Client, CliError> {
    let mut authorities = Vec::new();
    for authority in pem_blocks(&options.certificate_authorities) {
        authorities.push(Certificate { encoding: CertificateEncoding::Pem, data: authority.into_bytes() });
    }
    let config = ClientConfig {
        protocol: ClientProtocol::HttpsExcept(options.plain_http.clone()),
        extra_root_certificates: authorities,
        connect_timeout: Some(options.limits.connect),
        read_timeout: Some(options.limits.stall),
        user_agent: concat!("kubectl-olm/", env!("CARGO_PKG_VERSION")),
        ..ClientConfig::default()
    };
    Client::try_from(config).map_err(|e| {
        CliError::input(format!("cannot use the certificate authorities: {e}")).hint("they are certificates in PEM")
    })
}

fn pem_blocks(pem: &[u8]) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = String::from_utf8_lossy(pem);
    text.split_inclusive(END).filter(|block| block.contains(END)).map(str::to_owned).collect()
}

fn stalled(registry: &str) -> CliError {
    CliError::new(ErrorKind::Unreachable, format!("{registry} accepted the request and then sent nothing"))
        .hint("try again later, or ask another registry")
}

fn unreachable(error: &dyn std::error::Error, registry: &str) -> CliError {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let cause = cause.to_string();
    let hint = if cause.contains("certificate") || cause.contains("UnknownIssuer") {
        "trust the registry's certificate authority (--registry-ca FILE)".to_owned()
    } else if cause.contains("InvalidContentType") || cause.contains("corrupt message") {
        format!("the registry seems to speak plain HTTP: if that is meant, say --plain-http {registry}")
    } else {
        "see whether name and port are right and the network leads there".to_owned()
    };
    CliError::new(ErrorKind::Unreachable, format!("{registry} cannot be reached: {cause}")).hint(hint)
}

fn broken(error: &io::Error, registry: &str, digest: &str) -> CliError {
    let inner = error.get_ref();
    if let Some(oci_client::errors::DigestError::VerificationError { actual, .. }) =
        inner.and_then(|e| e.downcast_ref())
    {
        return wrong_digest(digest, actual);
    }
    let mut cause = error.to_string();
    let mut source = inner.map(|e| e as &dyn std::error::Error);
    while let Some(e) = source {
        cause = e.to_string();
        source = e.source();
    }
    if cause.contains("timed out") {
        return stalled(registry);
    }
    CliError::new(ErrorKind::Unreachable, format!("layer {digest} from {registry} broke off: {cause}"))
        .hint("try again")
}

/// A blob on its way. Dropping it ends the request.
pub(super) struct Download {
    chunks: mpsc::Receiver<Result<Bytes, CliError>>,
    current: Bytes,
    task: AbortHandle,
}

impl Download {
    /// Ends the request from elsewhere: the reader then sees the end.
    pub(super) fn abort_handle(&self) -> AbortHandle {
        self.task.clone()
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Read for Download {
    /// Blocks until something has arrived: not for a thread of the runtime.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.blocking_recv() {
                Some(Ok(bytes)) => self.current = bytes,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
        let length = self.current.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.current.split_to(length));
        Ok(length)
    }
}
