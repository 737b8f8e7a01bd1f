//! Builds the container image of the controllers, `kubectl olm run`, from the executables that `krew/build` writes. `krew/image` starts
//! it, and `krew/README.md` describes the image.
//!
//! *Guarantee.* The digest depends on the executables and on the files of this repository only: on its version, LICENSE, and the
//! certificate authorities of the crate webpki-root-certs in the version of Cargo.lock.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_shell::image::{
    Assembled as _, Built, BuiltIndex, MediaTypes, Options, Platform, Process, Pushable, Recipe, Watch, build,
    build_index, write_archive, write_layout,
};
use olm_shell::tls::install_crypto_provider;

/// The executable, and the name of the archive and the layout.
const PROGRAM: &str = "kubectl-olm-run";
/// The folder of the executable, which is in PATH.
const BIN: &str = "usr/local/bin";
/// Where rustls-native-certs searches certificate authorities on every distribution.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";
/// A user without rights and without an entry in /etc/passwd, as other images without a distribution have it.
const USER: &str = "65532:65532";
/// What an executable contains at most, in bytes: one with debugging information has 500 MB.
const LARGEST: u64 = 1 << 30;

const USAGE: &str = "\
usage: controllers-image [--push IMAGE] [--plain-http] [--allow-dynamic] BUILT OUT

Reads BUILT/RUST-TARGET/kubectl-olm-run of every target for Linux, and writes an OCI layout and an archive of it to OUT.

  --push IMAGE       also push the image, with the credentials of docker's or podman's configuration
  --plain-http       push without TLS
  --allow-dynamic    accept executables that need libraries, which the image does not have: for tests
";

struct Arguments {
    built: PathBuf,
    out: PathBuf,
    push: Option<String>,
    plain_http: bool,
    allow_dynamic: bool,
}

impl Arguments {
    fn parse(given: impl IntoIterator<Item = String>) -> Result<Self> {
        let (mut push, mut plain_http, mut allow_dynamic, mut folders) = (None, false, false, Vec::new());
        let mut given = given.into_iter();
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--push" => push = Some(given.next().context(USAGE)?),
                "--plain-http" => plain_http = true,
                "--allow-dynamic" => allow_dynamic = true,
                flag if flag.starts_with('-') => bail!("unknown flag {flag}\n{USAGE}"),
                _ => folders.push(PathBuf::from(argument)),
            }
        }
        let [built, out] = <[PathBuf; 2]>::try_from(folders).map_err(|_| anyhow::Error::msg(USAGE))?;
        Ok(Self { built, out, push, plain_http, allow_dynamic })
    }
}

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Builds, writes and pushes the image, and prints its digest.
fn run(arguments: &Arguments) -> Result<()> {
    let image = image(&arguments.built, arguments.allow_dynamic)?;
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(&arguments.out).with_context(|| arguments.out.display().to_string())?;
    let name = format!("{PROGRAM}_{version}_image");
    let layout = arguments.out.join(&name);
    // Of an earlier build. A link is removed, and not what it leads to.
    if let Ok(existing) = layout.symlink_metadata() {
        let at = || layout.display().to_string();
        if existing.is_dir() {
            ensure!(layout.join("oci-layout").is_file(), "{} exists, and is not an OCI layout: move it away", at());
            std::fs::remove_dir_all(&layout).with_context(at)?;
        } else {
            std::fs::remove_file(&layout).with_context(at)?;
        }
    }
    write_layout(&image, &layout, Some(version))?;
    write_archive(&image, &arguments.out.join(format!("{name}.tar")), Some(version))?;
    let digest = image.root().digest.clone();
    if let Some(target) = &arguments.push {
        push(image.into(), target, arguments.plain_http)?;
    }
    writeln!(std::io::stdout(), "{digest}")?;
    Ok(())
}

fn push(image: Pushable, target: &str, plain_http: bool) -> Result<()> {
    install_crypto_provider();
    let target: olm_shell::image::Reference = target.parse().with_context(|| format!("--push {target}"))?;
    ensure!(target.digest().is_none(), "--push {target}: a tag is required, not a digest");
    let plain_http = plain_http.then(|| target.registry().to_owned()).into_iter().collect();
    let options = Options { plain_http, ..Options::of_user() };
    let watch: Watch = std::sync::Arc::new(|_| {});
    tokio::runtime::Runtime::new()?.block_on(image.push(&target, &options, &watch))?;
    Ok(())
}

/// Builds the image of every target for Linux in a folder, and an index of them. Other targets are ignored.
fn image(built: &Path, allow_dynamic: bool) -> Result<BuiltIndex> {
    let at = || built.display().to_string();
    let mut executables = BTreeMap::new();
    for entry in std::fs::read_dir(built).with_context(at)? {
        let target = entry.with_context(at)?.file_name().to_string_lossy().into_owned();
        let Some((architecture, _)) = target.split_once('-').filter(|(_, system)| system.contains("-linux-")) else {
            continue;
        };
        let architecture = match architecture {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => bail!("{target}: images for {other} are not supported"),
        };
        let path = built.join(&target).join(PROGRAM);
        let bytes = executable(&path, architecture, allow_dynamic).with_context(|| path.display().to_string())?;
        ensure!(executables.insert(architecture, bytes).is_none(), "{} has two targets for {architecture}", at());
    }
    ensure!(!executables.is_empty(), "{} has no target for Linux: run krew/build first", at());
    let metadata = metadata();
    let images = executables.into_iter().map(|(architecture, bytes)| of_platform(architecture, bytes, &metadata));
    Ok(build_index(images.collect::<Result<_>>()?, &metadata)?)
}

/// Reads an executable, and checks that a container of this architecture can start it.
fn executable(path: &Path, architecture: &str, allow_dynamic: bool) -> Result<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    ensure!(std::fs::metadata(path)?.is_file(), "is not a regular file");
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= LARGEST, "is larger than 1 GiB");
    let elf = Elf::read(&bytes).context("is not an executable of Linux with 64 bits")?;
    let expected = if architecture == "arm64" { 183 } else { 62 };
    ensure!(elf.machine == expected, "is for another machine than {architecture}: {} in its header", elf.machine);
    ensure!(
        allow_dynamic || !elf.is_dynamic,
        "needs libraries, which the image does not have: build a static executable by krew/build"
    );
    Ok(bytes)
}

/// The part of an ELF header that decides where an executable starts.
#[derive(Debug, PartialEq)]
struct Elf {
    machine: u16,
    /// Whether an interpreter loads libraries.
    is_dynamic: bool,
}

impl Elf {
    fn read(bytes: &[u8]) -> Option<Self> {
        // 64 bits, little-endian.
        if bytes.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?));
        // ET_EXEC and ET_DYN: not an object file or a core dump.
        if ![2, 3].contains(&u16_at(16)?) {
            return None;
        }
        let headers = u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?);
        let (headers, size, count) = (usize::try_from(headers).ok()?, u16_at(54)?, u16_at(56)?);
        let mut is_dynamic = false;
        for n in 0..usize::from(count) {
            let start = headers.checked_add(n.checked_mul(usize::from(size))?)?;
            let kind = u32::from_le_bytes(bytes.get(start..start.checked_add(4)?)?.try_into().ok()?);
            // PT_INTERP
            is_dynamic |= kind == 3;
        }
        Some(Self { machine: u16_at(18)?, is_dynamic })
    }
}

/// Returns the annotations, which are also labels.
fn metadata() -> BTreeMap<String, String> {
    let of = [
        ("title", PROGRAM),
        ("description", "The controllers of the Operator Lifecycle Manager, as kubectl-olm implements them"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("source", env!("CARGO_PKG_REPOSITORY")),
        ("licenses", env!("CARGO_PKG_LICENSE")),
    ];
    of.into_iter().map(|(key, value)| (format!("org.opencontainers.image.{key}"), value.to_owned())).collect()
}

fn of_platform(architecture: &str, executable: Vec<u8>, metadata: &BTreeMap<String, String>) -> Result<Built> {
    let program = format!("{BIN}/{PROGRAM}");
    let license = include_bytes!("../../../LICENSE").to_vec();
    let recipe = Recipe {
        files: BTreeMap::from([
            (program.clone(), executable),
            (AUTHORITIES.to_owned(), authorities().into_bytes()),
            ("licenses/LICENSE".to_owned(), license),
        ]),
        modes: BTreeMap::from([(program, 0o755), ("tmp/".to_owned(), 0o1777)]),
        process: Some(Process {
            user: USER.to_owned(),
            env: vec![format!("PATH=/{BIN}"), "HOME=/tmp".to_owned()],
            entrypoint: vec![PROGRAM.to_owned()],
            working_dir: "/".to_owned(),
        }),
        labels: metadata.clone(),
        annotations: metadata.clone(),
        platform: format!("linux/{architecture}").parse::<Platform>().map_err(anyhow::Error::msg)?,
        media_types: MediaTypes::Oci,
        created_by: Some("krew/image"),
    };
    Ok(build(&recipe)?)
}

/// Returns the certificate authorities that Mozilla trusts for servers, as PEM. Public registries of catalogs need them.
fn authorities() -> String {
    let mut pem = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        pem += "-----BEGIN CERTIFICATE-----\n";
        for line in STANDARD.encode(certificate).as_bytes().chunks(64) {
            pem += &String::from_utf8_lossy(line);
            pem.push('\n');
        }
        pem += "-----END CERTIFICATE-----\n";
    }
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF file with program headers of these kinds.
    fn elf(machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[16..18].copy_from_slice(&2_u16.to_le_bytes());
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&u16::try_from(kinds.len()).unwrap().to_le_bytes());
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    fn refusal(files: &[(&str, &[u8])]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (target, bytes) in files {
            std::fs::create_dir_all(folder.path().join(target)).unwrap();
            std::fs::write(folder.path().join(target).join(PROGRAM), bytes).unwrap();
        }
        format!("{:#}", image(folder.path(), false).unwrap_err())
    }

    #[test]
    fn executables_that_a_container_cannot_start_are_refused() {
        let (amd, arm) = ("x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl");
        let good = elf(62, &[1, 2]);
        let of_type = |of_type: u8| {
            let mut file = good.clone();
            file[16] = of_type;
            file
        };
        assert!(Elf::read(&of_type(3)).is_some(), "a position-independent executable");
        for (files, expected) in [
            (vec![(amd, of_type(1))], "not an executable of Linux"),
            (vec![(amd, of_type(4))], "not an executable of Linux"),
            (vec![(amd, elf(62, &[1, 3]))], "needs libraries"),
            (vec![(arm, good.clone())], "another machine than arm64"),
            (vec![(amd, b"#!/bin/sh\n".to_vec())], "not an executable of Linux"),
            (vec![(amd, good[..100].to_vec())], "not an executable of Linux"),
            (vec![(amd, Vec::new())], "not an executable of Linux"),
            (vec![(amd, good.clone()), ("x86_64-unknown-linux-gnu", good.clone())], "two targets for amd64"),
            (vec![("riscv64gc-unknown-linux-gnu", good.clone())], "images for riscv64gc are not supported"),
            (vec![("x86_64-apple-darwin", good.clone())], "no target for Linux"),
        ] {
            let files: Vec<(&str, &[u8])> = files.iter().map(|(target, bytes)| (*target, bytes.as_slice())).collect();
            let refused = refusal(&files);
            assert!(refused.contains(expected), "{expected}: {refused}");
        }
        let mut endless = good;
        endless[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Elf::read(&endless), None);
    }

    #[test]
    fn arguments_are_checked() {
        let parse = |text: &str| Arguments::parse(text.split_whitespace().map(str::to_owned));
        let parsed = parse("--push registry.example.com/a:v1 in --plain-http out").unwrap();
        assert_eq!((parsed.built, parsed.out), ("in".into(), "out".into()));
        assert!(parsed.plain_http && !parsed.allow_dynamic && parsed.push.is_some());
        for invalid in ["", "in", "in out more", "--pull in out", "in out --push"] {
            assert!(parse(invalid).is_err_and(|error| error.to_string().contains("usage: ")), "{invalid}");
        }
    }

    #[test]
    fn the_authorities_are_pem() {
        let pem = authorities();
        assert!(pem.matches("BEGIN CERTIFICATE").count() > 100 && pem.lines().all(|line| line.len() < 65), "{pem}");
    }
}
