//! The binaries of the control plane: those in the folder that `KUBEBUILDER_ASSETS` names, or those built from the Go modules
//! under `tests/control-plane`, once into `target/control-plane/bin` and again when a module changes. The registry of the tests
//! and krew are built in the same way, from `tests/registry` into `target/registry/bin` and from `tests/krew` into
//! `target/krew-tools/bin`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// kwok's stages, for every source of the kwok binary.
pub(super) const KWOK_STAGES: &str = include_str!("../../control-plane/kwok-stages.yaml");

/// Every binary that [`Binaries::locate`] can find.
pub(super) const ALL: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"];

/// Binaries that are built together, into `target/<name>/bin`.
struct Set {
    name: &'static str,
    /// The folder of its modules, relative to this crate.
    source: &'static str,
    modules: &'static [Module],
    /// The binaries that its modules produce.
    binaries: &'static [&'static str],
    /// Further files of the same folder, with their contents.
    files: &'static [(&'static str, &'static str)],
    /// Duration of the build.
    takes: &'static str,
    /// The alternative to a build with Go.
    otherwise: &'static str,
}

const CONTROL_PLANE: Set = Set {
    name: "control-plane",
    source: "control-plane",
    modules: &MODULES,
    binaries: &ALL,
    // So that other tools can use the folder as their KUBEBUILDER_ASSETS.
    files: &[("kwok-stages.yaml", KWOK_STAGES)],
    takes: "six minutes for all on two cores",
    otherwise: "set KUBEBUILDER_ASSETS to a folder that holds all of its binaries, or OLM_TEST_CONTROL_PLANE=skip to skip these tests",
};

const REGISTRY: Set = Set {
    name: "registry",
    source: "",
    modules: &[Module {
        name: "registry",
        path: "github.com/distribution/distribution/v3",
        go_mod: include_str!("../../registry/go.mod"),
        output: "",
        version_variables: &[],
    }],
    binaries: &["registry"],
    files: &[],
    takes: "two minutes on two cores",
    otherwise: "set OLM_TEST_REGISTRY=skip to skip these tests",
};

const KREW: Set = Set {
    // `target/krew` is for releases.
    name: "krew-tools",
    source: "",
    modules: &[Module {
        name: "krew",
        path: "sigs.k8s.io/krew",
        go_mod: include_str!("../../krew/go.mod"),
        output: "",
        version_variables: &[],
    }],
    binaries: &["krew", "validate-krew-manifest"],
    files: &[],
    takes: "half a minute on two cores",
    otherwise: "set OLM_TEST_KREW=skip to skip these tests",
};

/// Returns the path of a binary of krew, and builds it if necessary.
pub(crate) fn krew(name: &str) -> Result<PathBuf> {
    Ok(build(&KREW, "go")?.join(name))
}

/// Returns the path of the registry's binary, and builds it if necessary.
pub(crate) fn registry() -> Result<PathBuf> {
    Ok(build(&REGISTRY, "go")?.join("registry"))
}

/// A Go module with required tools.
struct Module {
    /// Its folder.
    name: &'static str,
    /// The Go module whose version it pins.
    path: &'static str,
    /// Its `go.mod`.
    go_mod: &'static str,
    /// The output of `go build -o`, relative to the folder of binaries: that folder for tools with the name of their package.
    output: &'static str,
    /// The linker variables for the version of its tools, if they need one.
    version_variables: &'static [&'static str],
}

const MODULES: [Module; 3] = [
    Module {
        name: "kubernetes",
        path: "k8s.io/kubernetes",
        go_mod: include_str!("../../control-plane/kubernetes/go.mod"),
        output: "",
        version_variables: &[
            "k8s.io/component-base/version.gitVersion={version}",
            "k8s.io/component-base/version.gitMajor={major}",
            "k8s.io/component-base/version.gitMinor={minor}",
        ],
    },
    Module {
        name: "etcd",
        path: "go.etcd.io/etcd/server/v3",
        go_mod: include_str!("../../control-plane/etcd/go.mod"),
        output: "etcd",
        version_variables: &[],
    },
    Module {
        name: "kwok",
        path: "sigs.k8s.io/kwok",
        go_mod: include_str!("../../control-plane/kwok/go.mod"),
        output: "",
        version_variables: &["sigs.k8s.io/kwok/pkg/consts.Version={version}"],
    },
];

/// A folder that contains the required binaries.
#[derive(Debug)]
pub(super) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Returns the folder of `KUBEBUILDER_ASSETS`, which must contain all `wanted`, or the folder of built binaries, which are
    /// built first if they are missing or older than their modules. Concurrent processes build them once.
    ///
    /// # Errors
    /// Binaries are missing, or cannot be built.
    pub(super) fn locate(wanted: &[&str]) -> Result<Self> {
        let folder = match std::env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty()) {
            Some(folder) => given(PathBuf::from(folder), wanted)?,
            None => build(&CONTROL_PLANE, "go")?,
        };
        Ok(Self { folder })
    }

    /// Returns the path of the binary `name`.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Returns `folder` if it contains all `wanted`.
fn given(folder: PathBuf, wanted: &[&str]) -> Result<PathBuf> {
    let missing: Vec<_> = wanted.iter().copied().filter(|name| !folder.join(name).is_file()).collect();
    ensure!(
        missing.is_empty(),
        "KUBEBUILDER_ASSETS={} has no {}\nhint: add them, or unset KUBEBUILDER_ASSETS to build all of them with Go",
        folder.display(),
        missing.join(", ")
    );
    // Components are started in another folder, in which a relative path would be wrong.
    fs::canonicalize(&folder).with_context(|| format!("KUBEBUILDER_ASSETS={}", folder.display()))
}

/// Returns the folder of built binaries. Builds them with the Go command `go` if their stamp is not that of the current
/// modules.
fn build(set: &Set, go: &str) -> Result<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join(set.source);
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target").join(set.name);
    let folder = target.join("bin");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let folder = fs::canonicalize(folder)?;

    // Held until this function returns.
    let lock = File::create(target.join("lock"))?;
    if lock.try_lock().is_err() {
        say(set, "waiting for another test that is building it")?;
        lock.lock().with_context(|| format!("cannot lock target/{}/lock", set.name))?;
    }
    let stamp = target.join("stamp");
    let wanted = stamp_text(set)?;
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted)
        && set.binaries.iter().all(|n| folder.join(n).is_file())
    {
        return Ok(folder);
    }
    for module in set.modules {
        say(set, &format!("building {} {} (once; {})", module.name, module.version()?, set.takes))?;
        module.build(set, go, &modules, &folder)?;
    }
    for (name, content) in set.files {
        fs::write(folder.join(name), content)?;
    }
    fs::write(stamp, wanted)?;
    Ok(folder)
}

/// Returns the inputs of a build: the versions for readers, then all files that it depends on.
fn stamp_text(set: &Set) -> Result<String> {
    let mut parts = Vec::new();
    for module in set.modules {
        parts.push(format!("{} {} {:?}", module.name, module.version()?, module.version_variables));
    }
    parts.extend(set.modules.iter().map(|module| module.go_mod.to_owned()));
    parts.extend(set.files.iter().map(|(_, content)| (*content).to_owned()));
    Ok(parts.join("\n"))
}

impl Module {
    /// Returns the version of its components, for example `v1.36.3`.
    fn version(&self) -> Result<&'static str> {
        let mut requirements = self.go_mod.lines().map(|line| line.trim_start().trim_start_matches("require "));
        requirements
            .find_map(|line| {
                line.strip_prefix(self.path)?.split_whitespace().next().filter(|word| word.starts_with('v'))
            })
            .with_context(|| format!("go.mod of {} does not require {}", self.name, self.path))
    }

    /// Builds its tools into `folder` with the Go command `go`. `modules` is the folder of all modules.
    fn build(&self, set: &Set, go: &str, modules: &Path, folder: &Path) -> Result<()> {
        let version = self.version()?;
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        // Without debug symbols, which are not used and take a large part of the size.
        let mut ldflags = vec!["-s -w".to_owned()];
        ldflags.extend(self.version_variables.iter().map(|variable| {
            let value = variable.replace("{version}", version).replace("{major}", major).replace("{minor}", minor);
            format!("-X {value}")
        }));
        let status = Command::new(go)
            .current_dir(modules.join(self.name))
            // Flags from the user's environment apply to the user's own modules.
            .envs([("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOFLAGS", "")])
            .args(["build", "-buildvcs=false", "-ldflags", &ldflags.join(" "), "-o"])
            // Joining with the empty name adds a slash, which marks a folder for Go.
            .arg(folder.join(self.output))
            .arg("tool")
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                bail!("go build of {} failed ({status}): its messages are above", self.name)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
                "the {} for tests is built with Go, and there is no command `{go}`\n\
                 hint: install Go 1.26 or newer (https://go.dev), or {}",
                set.name,
                set.otherwise
            ),
            Err(error) => Err(error).context("cannot start go"),
        }
    }
}

/// Reports the reason of a long wait to the user. Not captured by the test harness, unlike the output of `eprintln!`.
fn say(set: &Set, what: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{} for tests: {what}", set.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_modules() {
        for module in MODULES.iter().chain(REGISTRY.modules).chain(KREW.modules) {
            let version = module.version().unwrap();
            assert_eq!(version.split('.').count(), 3, "{}: {version}", module.name);
        }
    }

    #[test]
    fn kubernetes_and_its_staging_modules_have_one_version() {
        let kubernetes = &MODULES[0];
        let staging = kubernetes.version().unwrap().replace("v1.", "v0.");
        let replaced: Vec<_> = kubernetes.go_mod.lines().filter(|line| line.contains("=>")).collect();
        assert!(replaced.len() > 30, "{replaced:?}");
        for line in replaced {
            assert!(line.ends_with(&staging), "{line}: not {staging}");
        }
    }

    #[test]
    fn missing_assets_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("etcd"), "").unwrap();
        let error = given(folder.path().to_owned(), &["etcd", "kwok", "kube-scheduler"]).unwrap_err().to_string();
        assert!(error.contains(" has no kwok, kube-scheduler\nhint: "), "{error}");
        given(folder.path().to_owned(), &["etcd"]).unwrap();
    }

    #[test]
    fn missing_go_is_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("control-plane");
        let error = MODULES[1].build(&CONTROL_PLANE, "go-of-nowhere", &modules, folder.path()).unwrap_err().to_string();
        assert!(error.contains("hint: install Go"), "{error}");
    }
}
