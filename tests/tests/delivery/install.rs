//! The plugins of a release, installed by krew from an index and executed by kubectl.

use std::fs;
use std::path::Path;

use olm_tests::data::repository;
use olm_tests::{control_plane, krew};

use crate::release::{Machine, folder, krews_name, pack, packages, real, serve, succeeds};

/// Writes an index of krew with the manifests of a release, whose archives are at `server`, as this version.
fn index(machine: &Machine, out: &Path, server: &str, version: &str) {
    let index = machine.path("index");
    if !index.exists() {
        fs::create_dir_all(index.join("plugins")).unwrap();
        machine.git(&index, &["init", "--quiet"]);
    }
    for package in packages() {
        let file = format!("{}.yaml", krews_name(&package));
        let manifest = fs::read_to_string(out.join(&file)).unwrap();
        let manifest = manifest.replace("https://github.com", server);
        let manifest =
            manifest.replace(concat!("  version: v", env!("CARGO_PKG_VERSION")), &format!("  version: {version}"));
        assert!(manifest.contains(version) && manifest.contains(server), "{manifest}");
        fs::write(index.join("plugins").join(file), manifest).unwrap();
    }
    machine.git(&index, &["add", "--all"]);
    machine.git(&index, &["commit", "--quiet", "--message", version]);
}

/// Checks that kubectl finds every plugin by both spellings, with the usage text of the spelling, and completes it.
fn every_plugin_works(machine: &Machine) {
    for package in packages().iter().filter(|package| *package != "kubectl-olm") {
        let name = krews_name(package);
        let (_, word) = name.split_once('-').unwrap();
        for words in [&[name.as_str()][..], &["olm", word]] {
            let spelled = format!("kubectl {}", words.join(" "));
            let help = machine.kubectl(&[words, &["--help"]].concat());
            let usage = help.rsplit("Usage:\n").next().unwrap();
            assert!(usage.starts_with(&format!("  {spelled} ")), "{spelled}: {usage}");
            let refused = machine.command("kubectl").args(words).arg("--no-such-flag").output().unwrap();
            let talk = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(2), "{talk}");
            assert!(talk.contains(&format!("Usage: {spelled}")), "{spelled}: {talk}");
            let completed = machine.kubectl(&[&["__complete"], words, &["--he"]].concat());
            assert!(completed.lines().any(|line| line.starts_with("--help")), "{spelled}: {completed}");
        }
    }
    let commands = machine.kubectl(&["__complete", "olm", ""]);
    for word in ["version", "install-plan", "run"] {
        assert!(commands.lines().any(|line| line.split('\t').next() == Some(word)), "{word}: {commands}");
    }
}

#[test]
fn krew_installs_upgrades_and_uninstalls_every_plugin() {
    if krew::skipped() || control_plane::skipped() {
        return;
    }
    let folder = folder();
    let (built, out) = (folder.path().join("built"), folder.path().join("out"));
    real(&built);
    succeeds(&pack(&[], &built, &out));
    let server = serve(out.clone());
    let machine = Machine::new();
    index(&machine, &out, &server, "v0.0.1");
    machine.kubectl(&["krew", "index", "add", "local", machine.path("index").to_str().unwrap()]);
    let names: Vec<String> = packages().iter().map(|package| krews_name(package)).collect();
    let qualified: Vec<String> = names.iter().map(|name| format!("local/{name}")).collect();
    let arguments = |command: &'static str, names: &[String]| -> Vec<String> {
        ["krew", command].into_iter().map(str::to_owned).chain(names.iter().cloned()).collect()
    };
    let run = |command, names: &[String]| {
        let output = machine.command("kubectl").args(arguments(command, names)).output().unwrap();
        succeeds(&output);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let talk = run("install", &qualified);
    assert!(talk.contains("kubectl olm completion kubectl"), "a caveat of the plugin olm: {talk}");

    // Completion is set up once, and remains when krew replaces the plugins.
    let links = machine.kubectl(&["olm", "completion", "kubectl"]);
    assert!(
        links.contains(&format!("{} created\n", machine.bin().join("kubectl_complete-olm_run").display())),
        "{links}"
    );
    every_plugin_works(&machine);
    index(&machine, &out, &server, "v0.0.2");
    run("upgrade", &[]);
    for name in &names {
        let stored = machine.path(&format!("krew/store/{name}"));
        assert!(stored.join("v0.0.2").is_dir() && !stored.join("v0.0.1").exists(), "{name}");
    }
    every_plugin_works(&machine);
    assert!(!machine.kubectl(&["olm", "completion", "kubectl"]).contains("created"));

    // Flags in every position. kubectl itself refuses them before the name of a plugin.
    let quickstart = repository().join("tests/quickstart");
    let quickstart = quickstart.to_str().unwrap();
    let after = machine.kubectl(&["olm", "run", "--simulate", quickstart, "--color", "never"]);
    assert!(after.contains("tea-house.v1.1.0"), "{after}");
    assert_eq!(machine.kubectl(&["olm-run", "--color", "never", "--simulate", quickstart]), after);
    assert_eq!(machine.kubectl(&["olm", "--color", "never", "run", "--simulate", quickstart]), after);
    for words in [&["olm", "run"][..], &["olm-run"]] {
        let before = machine.command("kubectl").args(["--context", "other"]).args(words).output().unwrap();
        let talk = String::from_utf8_lossy(&before.stderr).into_owned();
        assert!(!before.status.success() && talk.contains("flags cannot be placed before plugin name"), "{talk}");
    }

    // Without one plugin the others work, and kubectl olm reports what is missing.
    run("uninstall", &["olm-run".to_owned()]);
    let missing = machine.command("kubectl").args(["olm", "run"]).output().unwrap();
    let talk = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(2), "{talk}");
    assert!(talk.contains("the plugin \"run\" is not installed"), "{talk}");
    assert!(!machine.kubectl(&["__complete", "olm", ""]).lines().any(|line| line.starts_with("run")));
    let others: Vec<String> = names.iter().filter(|name| *name != "olm-run").cloned().collect();
    run("uninstall", &others);
    // Only the links of completion remain.
    for entry in fs::read_dir(machine.bin()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(name.starts_with("kubectl_complete-olm"), "{name}");
    }
    assert!(!machine.command("kubectl").args(["olm", "version"]).output().unwrap().status.success());
    an_archive_is_installed_before_the_release(&out);
}

/// Checks the commands of krew/README.md. The plugin works without kubectl olm.
fn an_archive_is_installed_before_the_release(out: &Path) {
    let machine = Machine::new();
    let sums = fs::read_to_string(out.join("sha256sums.txt")).unwrap();
    let archive = sums.split_whitespace().find(|word| word.starts_with("kubectl-olm-operatorgroup_")).unwrap();
    let manifest = out.join("olm-operatorgroup.yaml");
    let (manifest, archive) = (manifest.to_str().unwrap(), out.join(archive));
    machine.kubectl(&["krew", "install", "--manifest", manifest, "--archive", archive.to_str().unwrap()]);
    let help = machine.kubectl(&["olm-operatorgroup", "lint", "--help"]);
    assert!(help.contains("  kubectl olm-operatorgroup lint"), "{help}");
}
