//! The image of the controllers, from the executables of the tests: its content, its configuration, and its way through a registry.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_shell::image::{Credentials, Location, Options, Requested, platforms, pull_blocking};
use olm_tests::registry::{self, PASSWORD, Registry, Setup, USER};
use serde_json::{Value, json};

use crate::release::{disturb, folder, members, real, succeeds};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAM: &str = "kubectl-olm-run";

/// Builds the image as `krew/image` does. The executables of the tests need libraries.
fn controllers_image(flags: &[&str], built: &Path, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_controllers-image"));
    command.args(flags).arg(built).arg(out);
    command
}

fn digest(output: &Output) -> String {
    succeeds(output).trim_end().to_owned()
}

/// Writes the executable of this machine, and one that claims to be for the other architecture.
fn executables(built: &Path) -> Vec<u8> {
    real(built);
    let bytes = fs::read(built.join(format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).join(PROGRAM)).unwrap();
    let (other, machine) = if cfg!(target_arch = "x86_64") { ("aarch64", 183_u16) } else { ("x86_64", 62) };
    let mut foreign = bytes.clone();
    foreign[18..20].copy_from_slice(&machine.to_le_bytes());
    let target = built.join(format!("{other}-unknown-linux-musl"));
    fs::create_dir_all(&target).unwrap();
    fs::write(target.join(PROGRAM), foreign).unwrap();
    bytes
}

/// An OCI layout.
struct Layout(PathBuf);

impl Layout {
    fn blob(&self, digest: &Value) -> PathBuf {
        self.0.join("blobs").join(digest.as_str().unwrap().replace(':', "/"))
    }

    fn document(&self, descriptor: &Value) -> Value {
        serde_json::from_slice(&fs::read(self.blob(&descriptor["digest"])).unwrap()).unwrap()
    }
}

#[test]
fn the_image_depends_only_on_the_executables_and_starts_without_rights() {
    let folder = folder();
    let [built, out, again] = ["built", "out", "again"].map(|name| folder.path().join(name));
    let executable = executables(&built);
    // The image has no libraries.
    let refused = controllers_image(&[], &built, &out).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("needs libraries"), "{refused:?}");
    assert!(!out.exists());

    let name = format!("{PROGRAM}_v{VERSION}_image");
    let first = digest(&controllers_image(&["--allow-dynamic"], &built, &out).output().unwrap());
    disturb(&built);
    // Another user, with another environment.
    let mut second = controllers_image(&["--allow-dynamic"], &built, &again);
    second.env_clear().env("HOME", folder.path()).env("TZ", "Asia/Tokyo").env("SOURCE_DATE_EPOCH", "1");
    let second = second.output().unwrap();
    assert_eq!(digest(&second), first);
    let archive = format!("{name}.tar");
    assert!(fs::read(out.join(&archive)).unwrap() == fs::read(again.join(&archive)).unwrap());
    // A second build replaces the first one.
    assert_eq!(digest(&controllers_image(&["--allow-dynamic"], &built, &out).output().unwrap()), first);

    let layout = Layout(out.join(&name));
    let root: Value = serde_json::from_slice(&fs::read(layout.0.join("index.json")).unwrap()).unwrap();
    assert_eq!(root["manifests"].as_array().unwrap().len(), 1);
    assert_eq!(root["manifests"][0]["digest"], json!(first));
    assert_eq!(root["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], json!(format!("v{VERSION}")));
    let index = layout.document(&root["manifests"][0]);
    let images = index["manifests"].as_array().unwrap();
    let architectures: Vec<&Value> = images.iter().map(|image| &image["platform"]["architecture"]).collect();
    assert_eq!(architectures, [&json!("amd64"), &json!("arm64")]);
    for image in images {
        let manifest = layout.document(image);
        let config = layout.document(&manifest["config"]);
        assert_eq!(config["architecture"], image["platform"]["architecture"]);
        assert_eq!((&config["os"], &config["created"]), (&json!("linux"), &json!("1970-01-01T00:00:00Z")));
        let process = &config["config"];
        assert_eq!(process["User"], "65532:65532");
        assert_eq!(process["Entrypoint"], json!([PROGRAM]));
        assert_eq!(process["Env"], json!(["PATH=/usr/local/bin", "HOME=/tmp"]));
        for of in [&process["Labels"], &manifest["annotations"], &index["annotations"]] {
            let keys: BTreeSet<&str> = of.as_object().unwrap().keys().map(String::as_str).collect();
            let expected = ["title", "description", "version", "source", "licenses"];
            let expected: Vec<String> = expected.iter().map(|key| format!("org.opencontainers.image.{key}")).collect();
            assert_eq!(keys, expected.iter().map(String::as_str).collect());
            assert_eq!(of["org.opencontainers.image.version"], json!(VERSION));
        }
        let layer = layout.blob(&manifest["layers"][0]["digest"]);
        let found = members(&layer);
        let found: Vec<(&str, u32)> = found.iter().map(|(path, mode)| (path.as_str(), *mode)).collect();
        let expected = [
            ("etc/", 0o755),
            ("etc/ssl/", 0o755),
            ("etc/ssl/certs/", 0o755),
            ("etc/ssl/certs/ca-certificates.crt", 0o644),
            ("licenses/", 0o755),
            ("licenses/LICENSE", 0o644),
            ("tmp/", 0o1777),
            ("usr/", 0o755),
            ("usr/local/", 0o755),
            ("usr/local/bin/", 0o755),
            ("usr/local/bin/kubectl-olm-run", 0o755),
        ];
        assert_eq!(found, expected);
    }
    // The program of this machine, as it is in the image.
    let here = usize::from(cfg!(target_arch = "aarch64"));
    let layer = layout.blob(&layout.document(&images[here])["layers"][0]["digest"]);
    let unpacked = folder.path().join("unpacked");
    let layer = flate2::read::GzDecoder::new(fs::File::open(layer).unwrap());
    tar::Archive::new(layer).unpack(&unpacked).unwrap();
    let program = unpacked.join("usr/local/bin").join(PROGRAM);
    assert!(fs::read(&program).unwrap() == executable);
    assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
    let version = Command::new(PROGRAM).arg("--version").env_clear().env("PATH", program.parent().unwrap()).output();
    assert_eq!(succeeds(&version.unwrap()), format!("{PROGRAM} {VERSION}\n"));
    trusted(&unpacked.join("etc/ssl/certs/ca-certificates.crt"));
}

/// Checks that the client of registries accepts the file as certificate authorities.
fn trusted(authorities: &Path) {
    let pem = fs::read(authorities).unwrap();
    let options = Options { certificate_authorities: pem, ..Options::default() };
    let location: Location = "127.0.0.1:1/rose:1".parse().unwrap();
    let error = pull_blocking(&location, Requested::Any, &options).unwrap_err().to_string();
    assert!(!error.contains("certificate") && !error.contains("authorit"), "{error}");
}

#[test]
fn the_image_is_pushed_with_the_login_of_docker_and_pulled_again() {
    if registry::skipped() {
        return;
    }
    let folder = folder();
    let [built, out] = ["built", "out"].map(|name| folder.path().join(name));
    let executable = executables(&built);
    let registry = Registry::start(Setup { tls: false, login: true }).unwrap();
    let image = format!("{}/kubectl-olm:v{VERSION}", registry.host());
    let flags = ["--allow-dynamic", "--plain-http", "--push", &image];
    let mut push = controllers_image(&flags, &built, &out);
    push.env("DOCKER_CONFIG", folder.path()).env("HOME", folder.path());
    push.env_remove("REGISTRY_AUTH_FILE").env_remove("XDG_RUNTIME_DIR");
    let denied = push.output().unwrap();
    assert_eq!(denied.status.code(), Some(2), "{denied:?}");
    let login = json!({ "auths": { registry.host(): { "auth": STANDARD.encode(format!("{USER}:{PASSWORD}")) } } });
    let config = folder.path().join("config.json");
    fs::write(&config, login.to_string()).unwrap();
    let pushed = digest(&push.output().unwrap());

    let plain_http = vec![registry.host().to_owned()];
    let options = Options { credentials: Credentials::of_file(config), plain_http, ..Options::default() };
    let location: Location = image.parse().unwrap();
    let content = pull_blocking(&location, Requested::CatalogIn("usr/local/bin".to_owned()), &options).unwrap();
    assert_eq!(content.digest, pushed);
    assert!(fs::read(content.root.join(PROGRAM)).unwrap() == executable);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let of = |architecture: &str| ("linux".to_owned(), architecture.to_owned());
    let found = runtime.block_on(platforms(&location, &options)).unwrap();
    assert_eq!(found, BTreeSet::from([of("amd64"), of("arm64")]));
}
