//! Releases packed from executables that already exist, and a machine with only krew, kubectl and git.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use olm_tests::data::repository;
use olm_tests::house::manifests;
use olm_tests::{control_plane, krew, plugin};
use tempfile::TempDir;

/// The targets of a release.
pub(crate) const TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-gnu",
];

/// Returns the packages of the plugins.
pub(crate) fn packages() -> Vec<String> {
    let plugins = manifests::members().unwrap().into_iter().filter(|member| member.file.starts_with("plugins"));
    plugins.map(|member| member.name).collect()
}

/// Returns krew's name of a package: `kubectl-olm-install_plan` is `olm-install-plan`.
pub(crate) fn krews_name(package: &str) -> String {
    package.trim_start_matches("kubectl-").replace('_', "-")
}

/// Returns a folder on the same file system as the build.
pub(crate) fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Writes an executable for each plugin, as `krew/build` does for these targets. Its content is its name.
pub(crate) fn imitate(built: &Path, targets: &[&str]) {
    for target in targets {
        let folder = built.join(target);
        fs::create_dir_all(&folder).unwrap();
        let suffix = if target.contains("windows") { ".exe" } else { "" };
        for package in packages() {
            fs::write(folder.join(format!("{package}{suffix}")), format!("{package} {target}")).unwrap();
        }
    }
}

/// Writes the executables of the tests for this machine, without debugging information, as `krew/build` does.
pub(crate) fn real(built: &Path) {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = built.join(target);
    fs::create_dir_all(&folder).unwrap();
    for package in packages() {
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(folder.join(&package)).arg(plugin::binary(&package).unwrap());
        assert!(strip.status().unwrap().success(), "{package}");
    }
}

/// Runs `krew/package`.
pub(crate) fn pack(flags: &[&str], built: &Path, out: &Path) -> Output {
    let mut command = Command::new(repository().join("krew/package"));
    // The level does not matter here, and the executables are large.
    command.env("GZIP_LEVEL", "1").args(flags).arg(built).arg(out).output().unwrap()
}

/// Returns stdout of a command that must succeed.
#[track_caller]
pub(crate) fn succeeds(output: &Output) -> String {
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{talk}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A machine with krew as its only source of plugins.
pub(crate) struct Machine {
    home: TempDir,
    /// An empty folder for `git`, `kubectl` and `kubectl-krew`, the programs that krew needs.
    tools: PathBuf,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let home = folder();
        let tools = home.path().join("tools");
        fs::create_dir(&tools).unwrap();
        let git = on_path("git");
        for (name, program) in [
            ("git", git),
            ("kubectl", control_plane::tool("kubectl").unwrap()),
            ("kubectl-krew", krew::tool("krew").unwrap()),
        ] {
            std::os::unix::fs::symlink(program, tools.join(name)).unwrap();
        }
        Self { home, tools }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.home.path().join(file)
    }

    /// Returns the folder of krew's links.
    pub(crate) fn bin(&self) -> PathBuf {
        self.path("krew/bin")
    }

    /// Returns a program of this machine, which reads nothing from the real one.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.tools.join(program));
        command.env_clear().current_dir(self.home.path()).stdin(std::process::Stdio::null());
        command.env("PATH", std::env::join_paths([&self.tools, &self.bin()]).unwrap());
        command.env("HOME", self.home.path()).env("KREW_ROOT", self.path("krew")).env("KREW_NO_UPGRADE_CHECK", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
        }
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// Runs kubectl, which must succeed, and returns stdout.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        succeeds(&self.command("kubectl").args(arguments).output().unwrap())
    }

    /// Runs git in a folder.
    #[track_caller]
    pub(crate) fn git(&self, folder: &Path, arguments: &[&str]) {
        succeeds(&self.command("git").arg("-C").arg(folder).args(arguments).output().unwrap());
    }
}

fn on_path(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()).unwrap()
}

/// Serves the files of a folder on loopback until the end of the process, as GitHub serves the files of a release: by their
/// names, regardless of the rest of the path. Returns the address.
pub(crate) fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let path = request.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
            let file = path.rsplit('/').next().unwrap_or_default();
            let (status, body) = match fs::read(folder.join(file)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            // A client that closed the connection needs no response.
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).ok();
        }
    });
    format!("http://{address}")
}

/// Returns the names and modes of the files of an archive, and checks that the rest of each header is neutral.
pub(crate) fn members(archive: &Path) -> Vec<(String, u32)> {
    let file = flate2::read::GzDecoder::new(fs::File::open(archive).unwrap());
    let mut archive = tar::Archive::new(file);
    let members = archive.entries().unwrap().map(|entry| {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
        (entry.path().unwrap().display().to_string(), header.mode().unwrap())
    });
    members.collect()
}

/// Changes everything of the files of a folder that must not affect a release: modes, and times.
pub(crate) fn disturb(built: &Path) {
    for file in olm_tests::data::files(built) {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let earlier = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        fs::File::options().append(true).open(&file).unwrap().set_modified(earlier).unwrap();
    }
}
