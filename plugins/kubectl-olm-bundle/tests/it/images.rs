//! Images of bundles: built reproducibly, written to layouts and archives, and unpacked.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::{input, outcome};

/// The digest of the image of [`bundle`]. It changes only on purpose: users compare digests of builds by different versions.
const DIGEST: &str = "sha256:7447a6f2899a077a52274587e1edc3fb9f38e7ea2ae729480d9c036d66370ca0";

/// The files of a bundle, sorted.
const FILES: [(&str, &str); 4] = [
    (
        "manifests/rose.clusterserviceversion.yaml",
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: rose.v1.0.0}\nspec: {version: 1.0.0}\n",
    ),
    ("manifests/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"),
    (
        "metadata/annotations.yaml",
        "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  \
         operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
         operators.operatorframework.io.bundle.metadata.v1: metadata/\n  \
         operators.operatorframework.io.bundle.package.v1: rose\n  \
         operators.operatorframework.io.bundle.channels.v1: stable\n  \
         operators.operatorframework.io.test.config.v1: tests/scorecard/\n",
    ),
    ("tests/scorecard/config.yaml", "kind: Configuration\n"),
];

fn write<'a>(root: &Path, files: impl IntoIterator<Item = &'a (&'a str, &'a str)>) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Returns a folder with the bundle `bundle`.
fn bundle() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("bundle"), &FILES);
    folder
}

fn done(folder: &Path, arguments: &[&str]) -> (String, String) {
    let (code, out, err) = outcome(folder, arguments, "");
    assert_eq!(code, 0, "{arguments:?}: {err}");
    (out, err)
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let (code, out, err) = outcome(folder, arguments, "");
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    for word in words {
        assert!(err.contains(word), "no {word:?} in: {err}");
    }
}

#[test]
fn the_digest_does_not_depend_on_the_directory_the_user_the_umask_or_the_time() {
    let first = bundle();
    let (digest, note) = done(first.path(), &["build", "bundle"]);
    assert_eq!(digest, format!("{DIGEST}\n"));
    assert!(note.contains("the image was not written"), "{note}");

    // The same files, created in the opposite order, with other modes, times and owners, beside files that do not belong to it.
    let second = tempfile::tempdir().unwrap();
    let root = second.path().join("elsewhere/with another name");
    write(&root, FILES.iter().rev());
    write(&root, &[("README.md", "a"), ("bundle.Dockerfile", "FROM scratch"), ("tests/other", "b")]);
    for (n, (path, _)) in FILES.iter().enumerate() {
        let path = root.join(path);
        let old = SystemTime::UNIX_EPOCH + Duration::from_hours(1_000 * n as u64);
        File::options().append(true).open(&path).unwrap().set_modified(old).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt as _, chown};
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640 + n as u32)).unwrap();
            // Only root may do this.
            let _ = chown(&path, Some(1234), Some(5678));
        }
    }
    let script = "umask 077; TZ=Asia/Tokyo LC_ALL=C exec \"$0\" build . -t rose:1 --archive ../rose.tar";
    let built = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_kubectl-olm-bundle")])
        .current_dir(&root)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&built.stdout), digest, "{}", String::from_utf8_lossy(&built.stderr));
    done(first.path(), &["build", "bundle", "-t", "rose:1", "--archive", "rose.tar"]);
    let archives = [first.path().join("rose.tar"), second.path().join("elsewhere/rose.tar")];
    let [a, b] = archives.map(|path| fs::read(path).unwrap());
    assert!(a == b, "the archives differ");
    #[cfg(target_os = "linux")]
    if let Some(of_other_user) = built_as_another_user() {
        assert_eq!(of_other_user, digest);
    }

    // A changed file, platform or label changes it.
    for more in
        [["--platform", "linux/arm64"], ["--label", "a=b"], ["--annotation", "a=b"], ["--media-types", "docker"]]
    {
        assert_ne!(done(first.path(), &["build", "bundle", more[0], more[1]]).0, digest, "{more:?}");
    }
    fs::write(first.path().join("bundle/tests/scorecard/config.yaml"), "kind: Other\n").unwrap();
    assert_ne!(done(first.path(), &["build", "bundle"]).0, digest);
}

/// Returns the digest of the same bundle, built by a user other than root. `None` unless root runs the tests.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "tests report that they are skipped")]
fn built_as_another_user() -> Option<String> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let folder = bundle();
    if folder.path().metadata().unwrap().uid() != 0 {
        eprintln!("skipped: only root can start programs as another user");
        return None;
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut command = Command::new("setpriv");
    command.args(user).args([env!("CARGO_BIN_EXE_kubectl-olm-bundle"), "build", "bundle"]).current_dir(folder.path());
    let Ok(built) = command.env("HOME", "/nonexistent").output() else {
        eprintln!("skipped: there is no program setpriv");
        return None;
    };
    let error = String::from_utf8_lossy(&built.stderr).into_owned();
    if !built.status.success() && error.contains("setpriv:") {
        eprintln!("skipped: {error}");
        return None;
    }
    assert!(built.status.success(), "{error}");
    Some(String::from_utf8_lossy(&built.stdout).into_owned())
}

#[test]
fn an_image_is_described() {
    let folder = bundle();
    let (out, err) = done(folder.path(), &["build", "bundle", "-t", "rose:1", "--archive", "rose.tar", "-o", "yaml"]);
    insta::assert_snapshot!("the_image", format!("{out}---\n{err}"));
}

#[test]
fn an_image_is_unpacked_as_it_was_built() {
    let folder = bundle();
    let at = folder.path();
    let digest = done(at, &["build", "bundle", "-t", "registry.example.com:5000/rose:1", "--oci-layout", "images"]).0;
    done(at, &["build", "bundle", "-t", "other", "--label", "a=b", "--oci-layout", "images"]);
    done(at, &["build", "bundle", "--archive", "rose.tar"]);
    let sources = ["oci:images:registry.example.com:5000/rose:1", "rose.tar", "oci-archive:rose.tar"];
    for (n, source) in sources.iter().enumerate() {
        let to = format!("{n}/deep/rose");
        let (out, err) = done(at, &["unpack", source, "--output-dir", &to]);
        assert_eq!((&out, err), (&digest, format!("4 files written to {to}\n")));
        for (path, text) in FILES {
            assert_eq!(fs::read_to_string(at.join(&to).join(path)).unwrap(), text);
        }
        assert_eq!(done(at, &["build", &to]).0, digest);
    }
    refused(at, &["unpack", "images"], &["has 2 images", "hint:"]);
    // The same files are accepted, others are not changed.
    let again = done(at, &["unpack", "rose.tar", "--output-dir", "0/deep/rose"]).1;
    assert!(again.contains("has the files of the image already"), "{again}");
    fs::write(at.join("0/deep/rose/more"), "").unwrap();
    refused(at, &["unpack", "rose.tar", "--output-dir", "0/deep/rose"], &["has other files", "--output-dir"]);
    fs::create_dir(at.join("empty")).unwrap();
    done(at, &["unpack", "rose.tar", "--output-dir", "empty"]);
    assert!(at.join("empty/metadata/annotations.yaml").is_file());
    let left = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with('.')).count(), 0, "nothing temporary is left");
}

#[test]
fn bundles_of_plain_manifests_are_built_as_well() {
    let folder = input();
    let synthesize = ["synthesize", "deploy", "--metadata", "olm.yaml", "--package", "rose", "--output-dir"];
    for (target, directory) in [("k8s+v1", "plain"), ("registry+v1", "registry")] {
        done(folder.path(), &[&synthesize[..], &[directory, "--to", target]].concat());
        let digest = done(folder.path(), &["build", directory, "--oci-layout", &format!("{directory}-image")]).0;
        let out =
            done(folder.path(), &["unpack", &format!("{directory}-image"), "--output-dir", &format!("{directory}-2")])
                .0;
        assert_eq!(out, digest);
        assert_eq!(done(folder.path(), &["build", &format!("{directory}-2")]).0, digest);
    }
    assert!(folder.path().join("plain-2/metadata/olm.yaml").is_file());
    // The media type must be that of the files.
    let annotations = folder.path().join("plain/metadata/annotations.yaml");
    let text = fs::read_to_string(&annotations).unwrap();
    fs::write(&annotations, text.replace("k8s+v1", "registry+v1")).unwrap();
    refused(folder.path(), &["build", "plain"], &["no csv in bundle"]);
    fs::write(&annotations, text.replace("k8s+v1", "helm+v3")).unwrap();
    refused(folder.path(), &["build", "plain"], &["\"helm+v3\" is not supported", "registry+v1 or k8s+v1"]);
    let annotations = folder.path().join("registry/metadata/annotations.yaml");
    let text = fs::read_to_string(&annotations).unwrap();
    fs::write(&annotations, text.replace("registry+v1", "k8s+v1")).unwrap();
    refused(folder.path(), &["build", "registry"], &["has no ClusterServiceVersion", "clusterserviceversion.yaml"]);
}

#[test]
fn incomplete_and_hostile_directories_are_refused() {
    let annotations = FILES[2].1;
    let without =
        |line: &str| annotations.lines().filter(|l| !l.contains(line)).map(|l| format!("{l}\n")).collect::<String>();
    let folder = bundle();
    let root = folder.path().join("bundle");
    let is_refused = |words: &[&str]| refused(folder.path(), &["build", "bundle", "--oci-layout", "images"], words);
    for (text, words) in [
        (without("mediatype"), ["mediatype.v1 is missing", "annotations.yaml"]),
        (without("manifests.v1"), ["manifests.v1 is missing", "hint"]),
        (without("package"), ["package.v1 is missing", "hint"]),
        (String::new(), ["the bundle has no annotations", "hint"]),
        ("annotations: [a]".to_owned(), ["annotations is not a map", "annotations.yaml"]),
        ("annotations: {a: 4.10}".to_owned(), ["a is not a string", "in quotes"]),
        ("{".to_owned(), ["annotations.yaml:1", "error"]),
        (annotations.replace("v1: manifests/", "v1: ../manifests/"), ["not a directory of the bundle", "hint"]),
        (annotations.replace("v1: manifests/", "v1: /"), ["not a directory of the bundle", "hint"]),
        (annotations.replace("v1: manifests/", "v1: deploy/"), ["has no directory deploy", "hint"]),
        (annotations.replace("v1: manifests/", "v1: metadata/x"), ["different directories", "hint"]),
        (annotations.replace("v1: metadata/", "v1: meta/"), ["another directory than metadata/", "hint"]),
        (annotations.replace("tests/scorecard/", "manifests/"), ["directory of their own", "hint"]),
    ] {
        fs::write(root.join(FILES[2].0), text).unwrap();
        is_refused(&words);
    }
    fs::write(root.join(FILES[2].0), annotations).unwrap();
    let csv = fs::read(root.join(FILES[0].0)).unwrap();
    fs::write(root.join("manifests/second.yaml"), &csv).unwrap();
    is_refused(&["several ClusterServiceVersions", "second.yaml"]);
    fs::remove_file(root.join("manifests/second.yaml")).unwrap();
    fs::create_dir(root.join("manifests/below")).unwrap();
    is_refused(&["OLM does not read", "manifests/below"]);
    fs::remove_dir(root.join("manifests/below")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("/etc/hostname", root.join("manifests/link.yaml")).unwrap();
        is_refused(&["manifests/link.yaml", "symbolic link"]);
        fs::remove_file(root.join("manifests/link.yaml")).unwrap();
        fs::rename(root.join("manifests"), root.join("real")).unwrap();
        symlink("real", root.join("manifests")).unwrap();
        is_refused(&["bundle/manifests", "symbolic link"]);
        fs::remove_file(root.join("manifests")).unwrap();
        fs::rename(root.join("real"), root.join("manifests")).unwrap();
    }
    fs::write(root.join("manifests/big.yaml"), vec![b'#'; (64 << 20) + 1]).unwrap();
    is_refused(&["larger than 64 MiB"]);
    fs::remove_file(root.join("manifests/big.yaml")).unwrap();
    assert!(!folder.path().join("images").exists());
    // Hidden files are reported and left out.
    fs::write(root.join("manifests/.DS_Store"), "x").unwrap();
    let (digest, said) = done(folder.path(), &["build", "bundle"]);
    assert!(digest.trim() == DIGEST && said.contains("warning: bundle/manifests/.DS_Store: hidden"), "{digest}{said}");
    for (arguments, words) in [
        (["--label", "operators.operatorframework.io.bundle.package.v1=tulip"], "another value"),
        (["--label", "a"], "expected KEY=VALUE"),
        (["--platform", "linux"], "expected OS/ARCHITECTURE"),
    ] {
        refused(folder.path(), &["build", "bundle", arguments[0], arguments[1]], &[words]);
    }
    let docker = ["build", "bundle", "--media-types", "docker", "--archive", "rose.tar"];
    refused(folder.path(), &docker, &["no images with docker's media types", "hint"]);
    refused(folder.path(), &["build", "nowhere"], &["nowhere"]);
    refused(folder.path(), &["build", "bundle/manifests"], &["has no directory metadata"]);
}

#[cfg(unix)]
#[test]
fn an_archive_replaces_regular_files_only() {
    use std::os::unix::fs::symlink;
    let folder = bundle();
    let at = folder.path();
    let _listener = std::os::unix::net::UnixListener::bind(at.join("socket")).unwrap();
    for (to, link) in [("missing", "dangling"), ("/dev/null", "device"), ("rose.tar", "link")] {
        symlink(to, at.join(link)).unwrap();
    }
    for file in ["socket", "dangling", "device", "bundle"] {
        refused(at, &["build", "bundle", "--archive", file], &[file, "hint: name a regular file"]);
    }
    assert!(at.join("dangling").is_symlink() && at.join("device").is_symlink() && at.join("socket").exists());
    fs::write(at.join("rose.tar"), "old").unwrap();
    done(at, &["build", "bundle", "--archive", "link"]);
    assert!(at.join("link").is_symlink());
    assert!(fs::metadata(at.join("rose.tar")).unwrap().len() > 1024);
}

#[test]
fn an_image_is_unpacked_to_the_current_directory_if_it_is_empty() {
    let folder = bundle();
    done(folder.path(), &["build", "bundle", "--archive", "rose.tar"]);
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    done(&empty, &["unpack", "../rose.tar", "--output-dir", "."]);
    for (path, text) in FILES {
        assert_eq!(fs::read_to_string(empty.join(path)).unwrap(), text);
    }
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 3);
    refused(folder.path(), &["unpack", "rose.tar", "--output-dir", "."], &["has other files", "hint:"]);
}

#[test]
fn names_that_differ_in_case_only_are_refused() {
    let folder = bundle();
    write(&folder.path().join("bundle"), &[("manifests/Settings.yaml", FILES[1].1)]);
    if fs::read_dir(folder.path().join("bundle/manifests")).unwrap().count() == 3 {
        refused(folder.path(), &["build", "bundle"], &["upper and lower case", "hint: rename"]);
    }
}
