//! Credentials for registries: from docker's configuration and its credential helpers, podman's configuration, and Kubernetes' pull
//! secrets.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_spec::distribution::Reference;
use olm_core::api::object;
use serde_json::{Map, Value, json};

use super::Error;

/// The names of Docker Hub.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// The authentication at one registry.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Login {
    /// Without credentials.
    Anonymous,
    /// With a user name and a password.
    Basic(String, String),
}

impl std::fmt::Debug for Login {
    /// Formats the value without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Basic(user, _) => write!(f, "Basic({user:?})"),
        }
    }
}

/// Credentials for registries, from pull secrets and from the user's configuration files. The credential helpers in the user's
/// configuration are run when needed; those in a pull secret are ignored.
#[derive(Clone, Default)]
pub struct Credentials {
    secrets: Vec<BTreeMap<String, Value>>,
    files: Vec<PathBuf>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({} secrets, {:?})", self.secrets.len(), self.files)
    }
}

impl Credentials {
    /// Returns the user's credentials: from `REGISTRY_AUTH_FILE`, or otherwise from docker's `config.json` in `DOCKER_CONFIG` or
    /// `~/.docker` and podman's `auth.json`, as in opm.
    pub fn of_user() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let files = match set("REGISTRY_AUTH_FILE") {
            Some(file) => vec![file],
            None => {
                let docker = set("DOCKER_CONFIG").or_else(|| set("HOME").map(|home| home.join(".docker")));
                let podman = set("XDG_RUNTIME_DIR").map(|runtime| runtime.join("containers/auth.json"));
                let home = set("HOME").map(|home| home.join(".config/containers/auth.json"));
                docker.map(|folder| folder.join("config.json")).into_iter().chain(podman).chain(home).collect()
            }
        };
        Self { secrets: Vec::new(), files }
    }

    /// Returns the credentials of a configuration file.
    pub fn of_file(file: PathBuf) -> Self {
        Self { secrets: Vec::new(), files: vec![file] }
    }

    /// Returns the credentials of Secrets of type `kubernetes.io/dockerconfigjson` or `kubernetes.io/dockercfg`, and a message for
    /// each invalid Secret.
    pub fn of_secrets<'a>(secrets: impl IntoIterator<Item = &'a Value>) -> (Self, Vec<String>) {
        let mut credentials = Self::default();
        let mut problems = Vec::new();
        for secret in secrets {
            match auths_of(secret) {
                Ok(auths) => credentials.secrets.push(auths),
                Err(problem) => {
                    let (namespace, name) = (object::namespace(secret), object::name(secret));
                    problems.push(format!("pull secret {namespace}/{name}: {problem}"));
                }
            }
        }
        (credentials, problems)
    }

    /// Returns these credentials followed by others, in the order in which they are tried.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.secrets.extend(others.secrets);
        self.files.extend(others.files);
        self
    }

    /// Returns the logins to try for an image, the best first; none if there are no credentials for its registry. Blocks while a
    /// credential helper runs.
    pub(super) fn for_image(&self, image: &Reference) -> Result<Vec<Login>, Error> {
        let mut found: Vec<Login> = Vec::new();
        let mut add = |auth: Option<Login>| {
            if let Some(auth) = auth
                && !found.contains(&auth)
            {
                found.push(auth);
            }
        };
        for auths in &self.secrets {
            for entry in matching(auths, image) {
                add(credential(&json!({ "auths": { image.registry(): entry } }), image.registry(), None)?);
            }
        }
        for file in &self.files {
            let Ok(bytes) = fs::read(file) else { continue };
            let config: Map<String, Value> = serde_json::from_slice(&bytes)
                .map_err(|source| Error::DockerConfiguration { file: file.clone(), source })?;
            let auths = config.get("auths").and_then(Value::as_object).into_iter().flatten();
            let auths = auths.map(|(key, value)| (key.clone(), value.clone())).collect();
            let mut narrowed = Map::new();
            for (key, value) in &config {
                if key == "credsStore" || key == "credHelpers" {
                    narrowed.insert(key.clone(), value.clone());
                }
            }
            let host = helper_name(image);
            if let Some(entry) = matching(&auths, image).into_iter().next() {
                narrowed.insert("auths".to_owned(), json!({ host: entry }));
            }
            add(credential(&Value::Object(narrowed), host, Some(file))?);
        }
        Ok(found)
    }
}

/// Returns the name of a registry for credential helpers.
fn helper_name(image: &Reference) -> &str {
    if DOCKER_HUB.contains(&image.registry()) { "https://index.docker.io/v1/" } else { image.registry() }
}

/// An error of a pull secret.
#[derive(Debug, thiserror::Error)]
enum SecretError {
    #[error("it has neither .dockerconfigjson nor .dockercfg")]
    NoKey,
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    /// Without the parser's error, which would contain parts of the Secret.
    #[error("its content is not JSON")]
    NotJson,
    #[error("it has no auths")]
    NoAuths,
}

fn auths_of(secret: &Value) -> Result<BTreeMap<String, Value>, SecretError> {
    use base64::Engine;
    let data = |key: &str| secret.get("data").and_then(|d| d.get(key)).and_then(Value::as_str);
    let (text, nested) = match (data(".dockerconfigjson"), data(".dockercfg")) {
        (Some(text), _) => (text, true),
        (None, Some(text)) => (text, false),
        (None, None) => return Err(SecretError::NoKey),
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text)?;
    let config: Value = serde_json::from_slice(&bytes).map_err(|_| SecretError::NotJson)?;
    let auths = if nested { config.get("auths") } else { Some(&config) };
    let auths = auths.and_then(Value::as_object).ok_or(SecretError::NoAuths)?;
    Ok(auths.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Returns the entries for an image by the kubelet's rules: host labels may contain `*`, ports must be equal, and paths are
/// prefixes. The entry with the longest key comes first.
fn matching<'a>(auths: &'a BTreeMap<String, Value>, image: &Reference) -> Vec<&'a Value> {
    let mut found: Vec<(&String, &Value)> = auths.iter().filter(|(key, _)| matches(key, image)).collect();
    found.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    found.into_iter().map(|(_, entry)| entry).collect()
}

fn matches(key: &str, image: &Reference) -> bool {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    // `/v1/` and `/v2/` are API versions, not paths of images.
    let path = match path.trim_end_matches('/') {
        "v1" | "v2" => "",
        path => path,
    };
    let registry = image.registry();
    let is_hub = DOCKER_HUB.contains(&registry) && DOCKER_HUB.contains(&host);
    let is_below = path.is_empty()
        || image.repository().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    (is_hub || host_matches(host, registry)) && is_below
}

fn host_matches(pattern: &str, host: &str) -> bool {
    let split = |text: &str| -> (Vec<String>, String) {
        let (name, port) = text.rsplit_once(':').unwrap_or((text, ""));
        (name.split('.').map(str::to_owned).collect(), port.to_owned())
    };
    let ((pattern, pattern_port), (host, port)) = (split(pattern), split(host));
    pattern_port == port
        && pattern.len() == host.len()
        && pattern.iter().zip(&host).all(|(pattern, label)| label_matches(pattern, label))
}

fn label_matches(pattern: &str, label: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == label,
        Some((start, rest)) => label
            .strip_prefix(start)
            .is_some_and(|end| (0..=end.len()).any(|n| end.is_char_boundary(n) && label_matches(rest, &end[n..]))),
    }
}

/// Returns the login for a registry in a docker configuration, which was read from `file`.
fn credential(config: &Value, registry: &str, file: Option<&PathBuf>) -> Result<Option<Login>, Error> {
    let text = config.to_string();
    let (named, file) = (registry.to_owned(), file.cloned());
    match docker_credential::get_credential_from_reader(text.as_bytes(), registry) {
        Ok(DockerCredential::UsernamePassword(user, password)) => Ok(Some(Login::Basic(user, password))),
        Ok(DockerCredential::IdentityToken(_)) => Err(Error::IdentityToken { registry: named, file }),
        Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(None),
        // Docker's credential helpers print this for an unknown registry.
        Err(CredentialRetrievalError::HelperFailure { stdout, .. }) if stdout.contains("credentials not found") => {
            Ok(None)
        }
        Err(source) => Err(Error::Credentials { registry: named, file, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(text: &str) -> Reference {
        text.parse().unwrap()
    }

    #[test]
    fn keys_match_as_in_the_kubelet() {
        for (key, reference, expected) in [
            ("registry.example.com", "registry.example.com/a/b:1", true),
            ("https://registry.example.com/v1/", "registry.example.com/a/b:1", true),
            ("registry.example.com/a", "registry.example.com/a/b:1", true),
            ("registry.example.com/a", "registry.example.com/ab:1", false),
            ("registry.example.com:5000", "registry.example.com/a:1", false),
            ("registry.example.com:5000", "registry.example.com:5000/a:1", true),
            ("*.example.com", "registry.example.com/a:1", true),
            ("*.example.com", "a.registry.example.com/a:1", false),
            ("reg*y.example.com", "registry.example.com/a:1", true),
            ("https://index.docker.io/v1/", "busybox", true),
            ("docker.io", "docker.io/library/busybox:1", true),
            ("quay.io", "busybox", false),
        ] {
            assert_eq!(matches(key, &image(reference)), expected, "{key} {reference}");
        }
    }

    #[test]
    fn secrets_of_both_types_are_read_and_the_longest_key_comes_first() {
        use base64::Engine;
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let auth = |pair: &str| json!({ "auth": encode(pair) });
        let config = json!({ "auths": {
            "registry.example.com": auth("short:1"), "registry.example.com/team": auth("long:2"), "quay.io": auth("other:3"),
        }, "credsStore": "must-not-run" });
        let new = json!({ "metadata": { "name": "new", "namespace": "n" }, "data": { ".dockerconfigjson": encode(&config.to_string()) } });
        let old = json!({ "metadata": { "name": "old" }, "data": { ".dockercfg":
            encode(&json!({ "registry.example.com": { "username": "old", "password": "4" } }).to_string()) } });
        let odd = json!({ "metadata": { "name": "odd", "namespace": "n" }, "data": { "password": "" } });
        let (credentials, problems) = Credentials::of_secrets([&new, &old, &odd]);
        assert_eq!(problems, ["pull secret n/odd: it has neither .dockerconfigjson nor .dockercfg"]);
        let basic = |user: &str, password: &str| Login::Basic(user.to_owned(), password.to_owned());
        let found = credentials.for_image(&image("registry.example.com/team/catalog:1")).unwrap();
        assert_eq!(found, [basic("long", "2"), basic("short", "1"), basic("old", "4")]);
        assert_eq!(credentials.for_image(&image("elsewhere.example.com/a:1")).unwrap(), []);
        assert!(!format!("{credentials:?}").contains("long"));
    }

    #[test]
    fn a_missing_configuration_file_is_not_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        let credentials = Credentials::of_file(file.clone());
        let busybox = image("busybox");
        assert_eq!(credentials.for_image(&busybox).unwrap(), []);
        fs::write(&file, r#"{"auths":{"https://index.docker.io/v1/":{"auth":"dXNlcjpwYXNz"}}}"#).unwrap();
        assert_eq!(credentials.for_image(&busybox).unwrap(), [Login::Basic("user".to_owned(), "pass".to_owned())]);
        fs::write(&file, r#"{"credHelpers":{"quay.io":"of-nowhere"}}"#).unwrap();
        let error = credentials.for_image(&image("quay.io/a/b:1")).unwrap_err();
        assert!(matches!(&error, Error::Credentials { file: Some(named), .. } if *named == file), "{error:?}");
        fs::write(&file, "{").unwrap();
        let error = credentials.for_image(&busybox).unwrap_err();
        assert!(matches!(error, Error::DockerConfiguration { .. }), "{error:?}");
    }
}
