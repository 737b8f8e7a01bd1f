//! Where the control plane's binaries come from: the folder that `KUBEBUILDER_ASSETS` names, or the Go modules under
//! `tests/control-plane`, built once into `target/control-plane/bin` and again when a module changes. The registry of the tests
//! is built in the same way, from `tests/registry` into `target/registry/bin`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// kwok's stages, for every way of coming by kwok.
pub(super) const KWOK_STAGES: &str = include_str!("../../control-plane/kwok-stages.yaml");

/// Every binary that [`Binaries::locate`] can find.
pub(super) const ALL: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"];

/// What is built together, into `target/<name>/bin`.
struct Set {
    name: &'static str,
    /// The folder of its modules, in that of this crate.
    source: &'static str,
    modules: &'static [Module],
    /// The binaries that its modules make.
    binaries: &'static [&'static str],
    /// Files that lie beside them, and their contents.
    files: &'static [(&'static str, &'static str)],
    /// How long building it takes.
    takes: &'static str,
    /// How to do without Go.
    otherwise: &'static str,
}

const CONTROL_PLANE: Set = Set {
    name: "control-plane",
    source: "control-plane",
    modules: &MODULES,
    binaries: &ALL,
    // So that the folder can be given to other tools as their KUBEBUILDER_ASSETS.
    files: &[("kwok-stages.yaml", KWOK_STAGES)],
    takes: "six minutes for all on two cores",
    otherwise: "set KUBEBUILDER_ASSETS to a folder that holds all of its binaries, or OLM_TEST_CONTROL_PLANE=skip to do without",
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
    otherwise: "set OLM_TEST_REGISTRY=skip to do without",
};

/// The path of the registry's binary, which is built when it has to be.
pub(crate) fn registry() -> Result<PathBuf> {
    Ok(build(&REGISTRY, "go")?.join("registry"))
}

/// A Go module whose tools are wanted.
struct Module {
    /// Its folder.
    name: &'static str,
    /// The Go module whose version it pins.
    path: &'static str,
    /// Its `go.mod`.
    go_mod: &'static str,
    /// Where `go build -o` writes, in the folder of binaries: itself for tools that are named as their packages are.
    output: &'static str,
    /// The variables that tell its tools their own version, where they do not know it.
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

/// A folder that holds the wanted binaries.
#[derive(Debug)]
pub(super) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The folder of `KUBEBUILDER_ASSETS`, which must hold all `wanted`, or else the built ones, which are built first
    /// when they are missing or older than their modules. Processes that need them at the same time build them once.
    ///
    /// # Errors
    /// Names the binaries that are missing, or what keeps them from being built.
    pub(super) fn locate(wanted: &[&str]) -> Result<Self> {
        let folder = match std::env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty()) {
            Some(folder) => given(PathBuf::from(folder), wanted)?,
            None => build(&CONTROL_PLANE, "go")?,
        };
        Ok(Self { folder })
    }

    /// The path of the binary `name`.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// `folder`, if it holds all `wanted`.
fn given(folder: PathBuf, wanted: &[&str]) -> Result<PathBuf> {
    let missing: Vec<_> = wanted.iter().copied().filter(|name| !folder.join(name).is_file()).collect();
    ensure!(
        missing.is_empty(),
        "KUBEBUILDER_ASSETS={} has no {}\nhint: put them there, or unset KUBEBUILDER_ASSETS to have all of them built by Go",
        folder.display(),
        missing.join(", ")
    );
    // Components are started in a folder of their own, where a relative path would not be found.
    fs::canonicalize(&folder).with_context(|| format!("KUBEBUILDER_ASSETS={}", folder.display()))
}

/// The folder of built binaries, after building them with the Go command `go` where their stamp is not of today's modules.
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

/// What the built binaries are made from: versions first, for people, then all that a build depends on.
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
    /// The version of its components, as `v1.36.3`.
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
        // Without symbols for debuggers: nobody debugs them, and they are a third of the size.
        let mut ldflags = vec!["-s -w".to_owned()];
        ldflags.extend(self.version_variables.iter().map(|variable| {
            let value = variable.replace("{version}", version).replace("{major}", major).replace("{minor}", minor);
            format!("-X {value}")
        }));
        let status = Command::new(go)
            .current_dir(modules.join(self.name))
            // Flags from the user's environment are for the user's own modules.
            .envs([("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOFLAGS", "")])
            .args(["build", "-buildvcs=false", "-ldflags", &ldflags.join(" "), "-o"])
            // Joined with the empty name the path ends in a slash: a folder, to Go.
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

/// Tells the person who waits what takes so long. Unlike `eprintln!`, it is not captured by the test harness.
fn say(set: &Set, what: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{} for tests: {what}", set.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_modules() {
        for module in MODULES.iter().chain(REGISTRY.modules) {
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
