//! Images of bundles, built and pushed to a real registry, and read back: by this project, by a simulated installation, and by skopeo.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use olm_core::settings::Settings;
use olm_core::sim::{ApiServer, Simulation};
use olm_shell::bundle::{build, push, unpack};
use olm_shell::cli::flags::{ClusterFlags, CredentialFlags, RegistryFlags};
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, ErrorKind, Outcome, Printer};
use olm_shell::image::{Credentials, Location, MediaTypes, Options, Requested, pull_blocking};
use olm_tests::images::{Compression, Image, Layer};
use olm_tests::registry::{PASSWORD, Registry, Setup, USER, skipped};
use olm_tests::sim_api::SimApi;
use serde_json::json;

use super::bundles::{ROSE, simulated};
use super::registry::secret;
use super::{expected, files};

/// The metadata of a bundle directory, in which more is required than in an image.
const ANNOTATIONS: &str = "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  \
    operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
    operators.operatorframework.io.bundle.metadata.v1: metadata/\n  \
    operators.operatorframework.io.bundle.package.v1: rose\n  \
    operators.operatorframework.io.bundle.channels.v1: stable\n";
const BUNDLE: [(&str, &str); 3] = [ROSE[0], ROSE[1], ("metadata/annotations.yaml", ANNOTATIONS)];

/// Returns a folder with the bundle `bundle`.
pub(super) fn bundle() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in BUNDLE {
        let path = folder.path().join("bundle").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Returns the output of a command, and what it printed to stderr.
pub(super) fn run_captured(run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> Result<String, CliError> {
    let out = Buffer::default();
    let outcome = run(&mut Printer::to(out.clone(), Buffer::default()))?;
    assert_eq!(outcome, Outcome::Done);
    Ok(out.text().trim_end().to_owned())
}

pub(super) fn build_options(folder: &Path, tag: &str, destination: build::Destination) -> build::Options {
    build::Options {
        directory: folder.join("bundle"),
        tag: Some(tag.to_owned()),
        destination,
        platform: build::Platform::default(),
        media_types: MediaTypes::Oci,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        format: None,
    }
}

fn push_options(source: &Path, target: &str, registries: &RegistryFlags) -> push::Options {
    push::Options {
        source: source.display().to_string(),
        target: target.to_owned(),
        registries: registries.clone(),
        format: None,
    }
}

pub(super) fn plain(registry: &Registry) -> RegistryFlags {
    RegistryFlags { plain_http: vec![registry.host().to_owned()], ..RegistryFlags::default() }
}

#[track_caller]
fn is_refused(result: Result<String, CliError>, words: &[&str]) -> CliError {
    let error = result.unwrap_err();
    let told = error.render();
    for word in words {
        assert!(told.contains(word), "no {word:?} in: {told}");
    }
    error
}

/// Returns flags with a login for the registry, in a file of the folder.
fn login(registry: &Registry, password: &str, folder: &Path) -> RegistryFlags {
    let (authfile, authority) = (folder.join(format!("{password}.json")), folder.join("ca.pem"));
    let auth = STANDARD.encode(format!("{USER}:{password}"));
    fs::write(&authfile, json!({ "auths": { registry.host(): { "auth": auth } } }).to_string()).unwrap();
    fs::write(&authority, registry.authority()).unwrap();
    RegistryFlags { credentials: in_file(authfile), registry_ca: Some(authority), ..RegistryFlags::default() }
}

fn in_file(authfile: PathBuf) -> CredentialFlags {
    CredentialFlags { authfile: Some(authfile), pull_secrets: Vec::new() }
}

#[test]
fn a_bundle_is_pushed_with_a_login_and_read_back() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup { tls: true, login: true }).unwrap();
    let folder = bundle();
    let at = folder.path();
    let flags = login(&registry, PASSWORD, at);
    let host = registry.host();
    let built = |tag: &str, media_types, flags: &RegistryFlags| {
        let destination = build::Destination::Registry(Box::new(flags.clone()));
        run_captured(|printer| {
            build::run(&build::Options { media_types, ..build_options(at, tag, destination) }, printer)
        })
    };
    for (n, media_types) in [MediaTypes::Oci, MediaTypes::Docker].into_iter().enumerate() {
        let tag = format!("{host}/garden/rose:{n}");
        let digest = built(&tag, media_types, &flags).unwrap();
        let options = Options {
            credentials: Credentials::of_file(flags.credentials.authfile.clone().unwrap()),
            certificate_authorities: registry.authority(),
            ..Options::default()
        };
        for name in [&tag, &format!("{host}/garden/rose@{digest}")] {
            let location: Location = name.parse().unwrap();
            let content = pull_blocking(&location, Requested::Any, &options).unwrap();
            assert_eq!(files(&content.root), expected(&BUNDLE));
            assert_eq!((content.digest.as_str(), content.labels.len()), (digest.as_str(), 5));
        }
        let output_dir = at.join(n.to_string());
        let unpacked = unpack::Options { source: tag, output_dir: output_dir.clone(), registries: flags.clone() };
        assert_eq!(run_captured(|printer| unpack::run(&unpacked, printer)).unwrap(), digest);
        assert_eq!(files(&output_dir), expected(&BUNDLE));
    }
    // A push to a digest requires this digest.
    let by_digest = |digest: &str| built(&format!("{host}/garden/rose@{digest}"), MediaTypes::Oci, &flags);
    let digest = built(&format!("{host}/garden/rose:0"), MediaTypes::Oci, &flags).unwrap();
    assert_eq!(by_digest(&digest).unwrap(), digest);
    is_refused(by_digest(&format!("sha256:{}", "0".repeat(64))), &["has the digest", &digest, "hint"]);
    // Logins and certificates.
    let tag = format!("{host}/garden/rose:2");
    let wrong = RegistryFlags { registry_ca: flags.registry_ca.clone(), ..login(&registry, "wrong", at) };
    let denied = is_refused(built(&tag, MediaTypes::Oci, &wrong), &["denies push access", "do not permit pushing"]);
    assert_eq!(denied.kind, ErrorKind::Input);
    let nothing = at.join("none.json");
    fs::write(&nothing, "{}").unwrap();
    let none = RegistryFlags { credentials: in_file(nothing), ..flags.clone() };
    is_refused(built(&tag, MediaTypes::Oci, &none), &["denies push access", "log in first", "--authfile"]);
    let missing = RegistryFlags { credentials: in_file(at.join("missing.json")), ..flags.clone() };
    is_refused(built(&tag, MediaTypes::Oci, &missing), &["missing.json"]);
    let unknown = RegistryFlags { registry_ca: None, ..flags.clone() };
    is_refused(built(&tag, MediaTypes::Oci, &unknown), &["cannot be reached", "--registry-ca"]);
}

#[test]
fn pull_secrets_of_the_cluster_are_credentials() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup { login: true, ..Setup::default() }).unwrap();
    let mut pull_secret = secret(&registry, PASSWORD);
    pull_secret["apiVersion"] = "v1".into();
    pull_secret["metadata"]["namespace"] = "default".into();
    let began = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut simulation = Simulation::new(ApiServer::with_stock_objects(1, began), Settings::default(), began);
    simulation.apply(pull_secret).unwrap();
    let api = SimApi::start(simulation).unwrap();
    let folder = bundle();
    let authfile = folder.path().join("none.json");
    fs::write(&authfile, "{}").unwrap();
    let pushed = |pull_secrets: &[&str]| {
        let flags = RegistryFlags {
            credentials: CredentialFlags {
                authfile: Some(authfile.clone()),
                pull_secrets: pull_secrets.iter().map(|&name| name.to_owned()).collect(),
            },
            namespace: Some("default".to_owned()),
            cluster: ClusterFlags { kubeconfig: Some(api.kubeconfig()), ..ClusterFlags::default() },
            ..plain(&registry)
        };
        let tag = format!("{}/garden/rose:1", registry.host());
        let destination = build::Destination::Registry(Box::new(flags));
        run_captured(|printer| build::run(&build_options(folder.path(), &tag, destination), printer))
    };
    is_refused(pushed(&[]), &["denies push access"]);
    let digest = pushed(&["pull"]).unwrap();
    assert_eq!(pushed(&["default/pull"]).unwrap(), digest);
    is_refused(pushed(&["garden/pull"]), &["there is no Secret \"pull\" in namespace garden", "hint"]);
}

#[test]
fn images_of_layouts_and_archives_are_pushed() {
    if skipped() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let folder = bundle();
    let at = folder.path();
    let (layout, archive) = (at.join("layout"), at.join("rose.tar"));
    let written =
        |destination| run_captured(|printer| build::run(&build_options(at, "rose:1", destination), printer)).unwrap();
    let digest = written(build::Destination::Layout(layout.clone()));
    assert_eq!(written(build::Destination::Archive(archive.clone())), digest);
    let pushed = |source: &Path, name: &str| {
        let target = format!("{}/garden/{name}", registry.host());
        run_captured(|printer| push::run(&push_options(source, &target, &plain(&registry)), printer))
    };
    for (n, source) in [&layout, &archive].into_iter().enumerate() {
        assert_eq!(pushed(source, &format!("rose:{n}")).unwrap(), digest);
        assert!(registry.blob(&digest).is_file());
    }
    // A simulated installation from the layout.
    let (answer, told) = simulated(Some(&layout));
    assert_eq!(answer, Ok(Outcome::Done), "{told}");
    assert!(told.contains("clusterserviceversion/rose.v1.0.0") && told.contains("Succeeded"), "{told}");
    // An index, with all its images.
    let image = Image::bundle("rose", &BUNDLE);
    let other = Image::bundle("rose", &BUNDLE[1..]);
    let index = Image::index(&[("linux/amd64", &image), ("linux/arm64", &other)]);
    index.write_layout(&at.join("index")).unwrap();
    assert_eq!(pushed(&at.join("index"), "index:1").unwrap(), index.digest());
    for digest in [index.digest(), image.digest(), other.digest()] {
        assert!(registry.blob(&digest).is_file(), "{digest}");
    }
    // An index that contains an image both directly and in another index.
    let nested = Image::index(&[("linux/arm64", &Image::index(&[("linux/amd64", &image)])), ("linux/amd64", &image)]);
    nested.write_layout(&at.join("nested")).unwrap();
    assert_eq!(pushed(&at.join("nested"), "nested:1").unwrap(), nested.digest());
    // What is refused.
    let catalog = Image::catalog(&[("catalog.yaml", "c")]);
    catalog.write_layout(&at.join("catalog")).unwrap();
    is_refused(pushed(&at.join("catalog"), "catalog:1"), &["no bundle", "it is a catalog"]);
    let layer = image.manifest["layers"][0]["digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    image.write_layout(&at.join("damaged")).unwrap();
    let path = at.join("damaged/blobs/sha256").join(layer);
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    is_refused(pushed(&at.join("damaged"), "damaged:1"), &["has the digest"]);
    fs::write(&path, &bytes[..20]).unwrap();
    is_refused(pushed(&at.join("damaged"), "damaged:1"), &["broke off after 20"]);
    fs::remove_file(&path).unwrap();
    is_refused(pushed(&at.join("damaged"), "damaged:1"), &["has no blobs/"]);
    assert!(!registry.blob(&catalog.digest()).exists(), "nothing of it was pushed");
    is_refused(pushed(&at.join("bundle"), "rose:1"), &["not an OCI layout", "kubectl olm bundle build"]);
}

/// Returns whether `skopeo` is missing. Reports so on standard error.
fn without_skopeo() -> bool {
    let is_missing = Command::new("skopeo").arg("--version").output().is_err();
    if is_missing {
        // Not captured by the test harness, unlike the output of `eprintln!`. A test may have no standard error.
        drop(writeln!(io::stderr(), "skipped: needs skopeo"));
    }
    is_missing
}

fn skopeo(arguments: &[&str]) -> String {
    let output = Command::new("skopeo").arg("--insecure-policy").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn skopeo_inspects_and_copies_images() {
    if skipped() || without_skopeo() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let folder = bundle();
    let at = folder.path();
    let (layout, archive) = (at.join("layout"), at.join("rose.tar"));
    let host = registry.host();
    let name = format!("{host}/garden/rose:1");
    let built = |tag: &str, media_types, destination| {
        let options = build::Options { media_types, ..build_options(at, tag, destination) };
        run_captured(|printer| build::run(&options, printer)).unwrap()
    };
    let digest = built(&name, MediaTypes::Oci, build::Destination::Layout(layout.clone()));
    built("other", MediaTypes::Oci, build::Destination::Layout(layout.clone()));
    built(&name, MediaTypes::Oci, build::Destination::Archive(archive.clone()));
    let pushed = |n: &str, media_types| {
        built(&format!("{host}/garden/rose:{n}"), media_types, build::Destination::Registry(Box::new(plain(&registry))))
    };
    assert_eq!(pushed("oci", MediaTypes::Oci), digest);
    let docker = pushed("docker", MediaTypes::Docker);
    for (source, digest) in [
        (format!("oci:{}:{name}", layout.display()), &digest),
        (format!("oci-archive:{}", archive.display()), &digest),
        (format!("docker://{host}/garden/rose:oci"), &digest),
        (format!("docker://{host}/garden/rose:docker"), &docker),
    ] {
        let shown: serde_json::Value =
            serde_json::from_str(&skopeo(&["inspect", "--tls-verify=false", &source])).unwrap();
        assert_eq!(shown["Digest"], digest.as_str(), "{source}");
        assert_eq!(shown["Labels"]["operators.operatorframework.io.bundle.package.v1"], "rose", "{source}");
        // skopeo verifies the digests of all blobs.
        let copied = at.join("copy");
        skopeo(&["copy", "--src-tls-verify=false", &source, &format!("oci:{}:x", copied.display())]);
        fs::remove_dir_all(copied).unwrap();
    }
    let source = format!("oci-archive:{}", archive.display());
    skopeo(&["copy", "--dest-tls-verify=false", &source, &format!("docker://{host}/garden/copied:1")]);
    let options = unpack::Options {
        source: format!("{host}/garden/copied:1"),
        output_dir: at.join("unpacked"),
        registries: plain(&registry),
    };
    assert_eq!(run_captured(|printer| unpack::run(&options, printer)).unwrap(), digest);
    assert_eq!(files(&at.join("unpacked")), expected(&BUNDLE));
}

#[test]
fn hostile_images_are_not_unpacked() {
    use tar::EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};
    let labels = [
        ("operators.operatorframework.io.bundle.package.v1", "rose"),
        ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
        ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
        ("operators.operatorframework.io.test.config.v1", "tests/scorecard/"),
    ];
    let good = || Layer::default().file("manifests/a.yaml", "a").file("metadata/annotations.yaml", ANNOTATIONS);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let unpacked = |labels: &[(&str, &str)], layers: Vec<Layer>| {
        let _ = fs::remove_dir_all(at.join("image"));
        let layers = layers.into_iter().map(|layer| layer.finish(Compression::Gzip)).collect();
        Image::new(labels, layers).write_layout(&at.join("image")).unwrap();
        let source = at.join("image").display().to_string();
        let options = unpack::Options { source, output_dir: at.join("out"), registries: RegistryFlags::default() };
        let unpacked = run_captured(|printer| unpack::run(&options, printer));
        let left: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let is_done = unpacked.is_ok();
        assert_eq!(left.len(), if is_done { 2 } else { 1 }, "{left:?}");
        let _ = fs::remove_dir_all(at.join("out"));
        unpacked
    };
    // Layers replace files of lower ones, and what is not part of the bundle is ignored. The tests may be missing.
    let upper = Layer::default().folder("manifests/").file("manifests/a.yaml", "b").link("usr/bin/a", "/etc/passwd");
    unpacked(&labels, vec![good(), upper]).unwrap();
    for (path, kind, target, words) in [
        ("manifests/l", Symlink, "a.yaml", "a symbolic link"),
        ("manifests/l", Symlink, "/etc/passwd", "a symbolic link"),
        ("metadata", Symlink, "/tmp", "a symbolic link"),
        ("tests/scorecard/l", Symlink, "../../..", "a symbolic link"),
        ("manifests/h", Link, "manifests/a.yaml", "a hard link"),
        ("manifests/d", Block, "", "a device or a pipe"),
        ("manifests/d", Char, "", "a device or a pipe"),
        ("manifests/d", Fifo, "", "a device or a pipe"),
        ("manifests/a.yaml", Regular, "", "several entries of one path"),
        ("./manifests//a.yaml", Regular, "", "several entries of one path"),
        ("manifests/a.yaml", Directory, "", "several entries of one path"),
        ("manifests", Regular, "", "several entries of one path"),
        ("manifests/a.yaml/b", Regular, "", "a path below a file"),
        ("/manifests/b.yaml", Regular, "", "an absolute path"),
        ("/etc/passwd", Regular, "", "an absolute path"),
        ("manifests/../metadata/b.yaml", Regular, "", "a path with"),
        ("manifests/../../b.yaml", Regular, "", "leads out of the image"),
        ("../b.yaml", Regular, "", "leads out of the image"),
        ("manifests/a\\b", Regular, "", "control characters or backslashes"),
        ("manifests/a\u{1b}[2J", Regular, "", "control characters or backslashes"),
    ] {
        let error = is_refused(unpacked(&labels, vec![good().member(path, kind, target, b"")]), &[words]);
        assert_eq!(error.kind, ErrorKind::Input, "{path}");
    }
    let file = Layer::default().member("manifests", Regular, "", b"");
    is_refused(unpacked(&labels, vec![good(), file]), &["/manifests, which does not exist"]);
    // Labels that lead out, files that are too many or too large, and a bomb.
    for (n, path) in [(1, "../"), (1, "manifests/../../x"), (3, "/../..")] {
        let mut hostile = labels;
        hostile[n].1 = path;
        is_refused(unpacked(&hostile, vec![good()]), &["outside of it"]);
    }
    let many = (0..20_001).fold(good(), |layer, n| layer.file(&format!("manifests/{n}"), ""));
    is_refused(unpacked(&labels, vec![many]), &["more than 20000 files"]);
    let zeros = vec![0; (64 << 20) + 1];
    is_refused(unpacked(&labels, vec![good().file("manifests/big", &zeros)]), &["more than the 67108864"]);
}
