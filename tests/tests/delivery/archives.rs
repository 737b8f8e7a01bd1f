//! Archives and manifests, with executables that are imitations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use olm_tests::krew;

use crate::release::{Machine, TARGETS, disturb, folder, imitate, krews_name, members, pack, packages, succeeds};

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = olm_tests::data::files(folder).into_iter();
    files.map(|file| (file.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&file).unwrap())).collect()
}

#[test]
fn a_release_depends_only_on_the_executables() {
    let folder = folder();
    let (built, out, again) = (folder.path().join("built"), folder.path().join("out"), folder.path().join("again"));
    imitate(&built, &TARGETS);
    fs::write(built.join(TARGETS[0]).join("kubectl-olm-run.cdx.json"), "{}").unwrap();
    succeeds(&pack(&["--complete"], &built, &out));
    disturb(&built);
    succeeds(&pack(&["--complete"], &built, &again));
    let (first, second) = (contents(&out), contents(&again));
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert_eq!(bytes, &second[name], "{name}");
    }
    // The archives and manifests of all plugins, one bill of materials, and the checksums.
    assert_eq!(first.len(), packages().len() * (TARGETS.len() + 1) + 2, "{:?}", first.keys());

    let version = env!("CARGO_PKG_VERSION");
    let run = members(&out.join(format!("kubectl-olm-run_v{version}_linux_amd64.tar.gz")));
    let run: Vec<(&str, u32)> = run.iter().map(|(name, mode)| (name.as_str(), *mode)).collect();
    let expected = [
        ("LICENSE", 0o644),
        ("kubectl-olm-run", 0o755),
        ("man/", 0o755),
        ("man/kubectl-olm-run.1", 0o644),
        ("sbom.cdx.json", 0o644),
    ];
    assert_eq!(run, expected);
    let windows = members(&out.join(format!("kubectl-olm_v{version}_windows_amd64.tar.gz")));
    assert!(windows.contains(&("kubectl-olm.exe".to_owned(), 0o755)), "{windows:?}");
    assert!(windows.contains(&("completions/_kubectl-olm".to_owned(), 0o644)), "{windows:?}");
    let sums = String::from_utf8(first["sha256sums.txt"].clone()).unwrap();
    assert_eq!(sums.lines().count(), packages().len() * TARGETS.len() + 1, "{sums}");
}

#[test]
fn krew_accepts_the_manifests_of_a_release() {
    if krew::skipped() || olm_tests::control_plane::skipped() {
        return;
    }
    let folder = folder();
    let (built, out) = (folder.path().join("built"), folder.path().join("out"));
    imitate(&built, &TARGETS);
    succeeds(&pack(&["--complete"], &built, &out));
    let validate = krew::tool("validate-krew-manifest").unwrap();
    for package in packages() {
        let manifest = out.join(format!("{}.yaml", krews_name(&package)));
        let mut check = std::process::Command::new(&validate);
        succeeds(&check.arg("-skip-install").arg("-manifest").arg(manifest).output().unwrap());
    }
    // krew on another system installs the archive of that system.
    for (target, os, arch, file) in [
        (TARGETS[1], "linux", "arm64", "kubectl-olm-install_plan"),
        (TARGETS[3], "darwin", "arm64", "kubectl-olm-install_plan"),
        (TARGETS[4], "windows", "amd64", "kubectl-olm-install_plan.exe"),
    ] {
        let machine = Machine::new();
        let archive = format!("kubectl-olm-install_plan_v{}_{os}_{arch}.tar.gz", env!("CARGO_PKG_VERSION"));
        let mut install = machine.command("kubectl");
        install.env("KREW_OS", os).env("KREW_ARCH", arch).args(["krew", "install", "--manifest"]);
        install.arg(out.join("olm-install-plan.yaml")).arg("--archive").arg(out.join(archive));
        succeeds(&install.output().unwrap());
        let stored = machine.path(&format!("krew/store/olm-install-plan/v{}", env!("CARGO_PKG_VERSION")));
        assert!(stored.join("LICENSE").is_file());
        assert_eq!(fs::read_to_string(stored.join(file)).unwrap(), format!("kubectl-olm-install_plan {target}"));
    }
}

#[test]
fn platforms_without_an_archive_are_omitted_or_refused() {
    let folder = folder();
    let (built, out) = (folder.path().join("built"), folder.path().join("out"));
    imitate(&built, &TARGETS[..2]);
    let packed = pack(&[], &built, &out);
    succeeds(&packed);
    let omitted = String::from_utf8_lossy(&packed.stderr).into_owned();
    assert_eq!(omitted.lines().count(), packages().len() * 3, "{omitted}");
    let manifest = fs::read_to_string(out.join("olm-run.yaml")).unwrap();
    assert_eq!(manifest.matches("- selector:").count(), 2, "{manifest}");
    assert!(!manifest.contains("<sha256"), "{manifest}");

    let refused = pack(&["--complete"], &built, &out);
    let talk = String::from_utf8_lossy(&refused.stderr).into_owned();
    let expected =
        format!("error: kubectl-olm-bundle_v{}_darwin_amd64.tar.gz was not built", env!("CARGO_PKG_VERSION"));
    assert_eq!(refused.status.code(), Some(2), "{talk}");
    assert!(talk.lines().any(|line| line == expected), "{talk}");

    // Two executables for one platform, and a plugin without executable.
    imitate(&built, &["x86_64-unknown-linux-gnu"]);
    let twice = pack(&[], &built, &out);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("has two targets for linux/amd64"), "{twice:?}");
    fs::remove_file(built.join("aarch64-unknown-linux-musl/kubectl-olm-run")).unwrap();
    let without = pack(&[], &built, &out);
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("has no kubectl-olm-run\n"), "{without:?}");
}

#[test]
fn archives_that_are_too_large_are_refused_in_a_release() {
    let folder = folder();
    let (built, out) = (folder.path().join("built"), folder.path().join("out"));
    imitate(&built, &TARGETS);
    // Incompressible, and on Windows without a limit.
    let noise = |bytes: usize| -> Vec<u8> {
        let mut state = 88_172_645_463_325_252_u64;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        std::iter::repeat_with(next).take(bytes).collect()
    };
    for (target, package) in [
        (TARGETS[0], "kubectl-olm-operatorgroup"),
        (TARGETS[1], "kubectl-olm-run"),
        (TARGETS[4], "kubectl-olm-operatorgroup.exe"),
    ] {
        fs::write(built.join(target).join(package), noise(6_100_000)).unwrap();
    }
    // The archives of a single platform are for tests.
    succeeds(&pack(&[], &built, &out));
    let refused = pack(&["--complete"], &built, &out);
    let talk = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{talk}");
    let errors: Vec<&str> = talk.lines().filter(|line| line.starts_with("error: ")).collect();
    let expected = format!("error: kubectl-olm-operatorgroup_v{}_linux_amd64.tar.gz has ", env!("CARGO_PKG_VERSION"));
    assert!(matches!(errors[..], [only] if only.starts_with(&expected)), "{talk}");
}

#[test]
fn the_notes_of_a_release_are_the_section_of_its_version() {
    let folder = folder();
    let changelog = folder.path().join("CHANGELOG.md");
    let (version, tag) = (env!("CARGO_PKG_VERSION"), concat!("v", env!("CARGO_PKG_VERSION")));
    let notes = |tag: &str, text: &str| {
        fs::write(&changelog, text).unwrap();
        let script = olm_tests::data::repository().join("krew/notes");
        std::process::Command::new(script).arg(tag).arg(&changelog).output().unwrap()
    };
    let text = format!("# Changelog\n\n## {version} (2026-01-31)\n\n### run\n\n- A\n\n## 0.0.1 (2025-01-31)\n\n- B\n");
    let found = succeeds(&notes(tag, &text));
    assert_eq!(found.trim(), "### run\n\n- A");
    for (tag, text, expected) in [
        ("v99.0.0", text.clone(), "not v99.0.0"),
        (tag, text.replace("(2026-01-31)", "(unreleased)"), "has no date"),
        (tag, text.replace("## ", "## Unreleased "), "has no section"),
        (tag, text.replace("### run\n\n- A\n", ""), "is empty"),
    ] {
        let refused = notes(tag, &text);
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{expected}");
        let talk = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(talk.starts_with("error: ") && talk.contains(expected), "{expected}: {talk}");
    }
}
