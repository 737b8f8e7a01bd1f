//! Servers that accept connections and never respond, and Ctrl-C.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::lists::{help, sub_commands};
use crate::{Home, PROGRAMS, captured, kubeconfig};

/// A command line of each command that connects to an API server. `DIR` is a catalog.
pub(crate) const COMMANDS: [(&str, &str); 38] = [
    ("kubectl-olm-bundle", "synthesize DIR --insecure-skip-tls-verify"),
    ("kubectl-olm-bundle", "unpack example.com/tea:1 --pull-secret tea"),
    ("kubectl-olm", "install --crds-only"),
    ("kubectl-olm", "status"),
    ("kubectl-olm", "uninstall --yes"),
    ("kubectl-olm", "take-over --image example.com/run:1 --yes"),
    ("kubectl-olm", "hand-back --yes"),
    ("kubectl-olm", "upgrade --image example.com/tea"),
    ("kubectl-olm", "version"),
    ("kubectl-olm-catalog", "describe tea catalogsource/a/b"),
    ("kubectl-olm-catalog", "diff catalogsource/a/b DIR"),
    ("kubectl-olm-catalog", "graph tea catalogsource/a/b"),
    ("kubectl-olm-catalog", "list"),
    ("kubectl-olm-catalog", "list catalogsource/a/b"),
    ("kubectl-olm-catalog", "render catalogsource/a/b"),
    ("kubectl-olm-catalog", "resolve tea --context c --catalog a/b=DIR"),
    ("kubectl-olm-catalog", "serve catalogsource/a/b --port 0 --address 127.0.0.1"),
    ("kubectl-olm-catalog", "validate catalogsource/a/b"),
    ("kubectl-olm-install_plan", "approve plan --yes"),
    ("kubectl-olm-install_plan", "explain"),
    ("kubectl-olm-install_plan", "list"),
    ("kubectl-olm-install_plan", "wait plan --timeout 0"),
    ("kubectl-olm-operator", "cleanup tea --yes"),
    ("kubectl-olm-operator", "describe"),
    ("kubectl-olm-operator", "doctor"),
    ("kubectl-olm-operator", "install tea --yes"),
    ("kubectl-olm-operator", "list"),
    ("kubectl-olm-operator", "outdated"),
    ("kubectl-olm-operator", "rollback tea --yes"),
    ("kubectl-olm-operator", "uninstall tea --yes"),
    ("kubectl-olm-operator", "upgrade tea --yes"),
    ("kubectl-olm-operator", "wait tea"),
    ("kubectl-olm-operatorgroup", "compile --package tea"),
    ("kubectl-olm-operatorgroup", "create --yes"),
    ("kubectl-olm-operatorgroup", "delete --yes"),
    ("kubectl-olm-operatorgroup", "intersect"),
    ("kubectl-olm-operatorgroup", "lint"),
    ("kubectl-olm-run", "--once"),
];

/// Commands that connect only for pull secrets, after they have read a bundle or an image.
const LATE: [(&str, &str); 6] = [
    ("kubectl-olm-bundle", "build"),
    ("kubectl-olm-bundle", "push"),
    ("kubectl-olm-bundle", "validate"),
    ("kubectl-olm-catalog", "add"),
    ("kubectl-olm-catalog", "build"),
    ("kubectl-olm-operator", "run"),
];

/// Command lines without a subcommand.
pub(crate) const OTHERS: [(&str, &str); 2] =
    [("kubectl-olm-run", "--audit --once"), ("kubectl-olm-run", "--install-crds")];

pub(crate) fn command(home: &Home, config: &Path, program: &str, line: &str) -> Command {
    let mut command = home.command(program);
    let catalog = home.path("catalog");
    let words = line.split(' ').map(|word| word.replace("DIR", &catalog.display().to_string()));
    command.args(words).env("KUBECONFIG", config).stdin(Stdio::null());
    command
}

pub(crate) fn home() -> Home {
    let home = Home::new();
    fs::create_dir(home.path("catalog")).unwrap();
    let package = r#"{"schema": "olm.package", "name": "tea", "defaultChannel": "a"}
        {"schema": "olm.channel", "package": "tea", "name": "a", "entries": [{"name": "tea.v1"}]}
        {"schema": "olm.bundle", "package": "tea", "name": "tea.v1", "image": "example.com/tea",
         "properties": [{"type": "olm.package", "value": {"packageName": "tea", "version": "1.0.0"}}]}"#;
    fs::write(home.path("catalog").join("tea.json"), package).unwrap();
    home
}

/// The time that a command may take. One that does not end is killed, and reported by its exit code.
const LIMIT: Duration = Duration::from_mins(1);

/// Kills processes that still run after a time, unless the sender is dropped before.
fn kill_after(limit: Duration, processes: Vec<Arc<Mutex<Child>>>) -> mpsc::Sender<()> {
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || {
        if ended.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            for process in processes {
                process.lock().unwrap().kill().unwrap();
            }
        }
    });
    sender
}

#[test]
fn every_command_that_connects_to_a_server_is_tested_here() {
    let home = Home::new();
    let mut missing = Vec::new();
    for program in PROGRAMS {
        let page = help(&home, program, &[]);
        let mut commands = sub_commands(&page);
        if program == "kubectl-olm" {
            // The others are plugins.
            commands
                .retain(|command| !PROGRAMS.contains(&format!("kubectl-olm-{}", command.replace('-', "_")).as_str()));
        }
        for command in commands {
            let mut lines = COMMANDS.iter().chain(&LATE);
            let known = lines.any(|(of, line)| *of == program && line.split(' ').next() == Some(&command));
            if !known && help(&home, program, &[&command]).contains("--kubeconfig") {
                missing.push(format!("{program} {command}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn a_server_that_never_responds_is_reported() {
    let home = home();
    // Connections are never accepted, which looks the same to a client.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let commands: Vec<_> = COMMANDS.iter().chain(&OTHERS).collect();
    for scheme in ["http", "https"] {
        let config = home.path(scheme);
        fs::write(&config, kubeconfig(&format!("{scheme}://{address}"))).unwrap();
        let began = Instant::now();
        let started: Vec<_> = commands
            .iter()
            .map(|(program, line)| {
                let mut command = command(&home, &config, program, line);
                command.arg("--request-timeout=1s").stdout(Stdio::piped()).stderr(Stdio::piped());
                (format!("{program} {line}"), Arc::new(Mutex::new(command.spawn().unwrap())))
            })
            .collect();
        let _running = kill_after(LIMIT, started.iter().map(|(_, child)| child.clone()).collect());
        let mut wrong = Vec::new();
        for (line, child) in started {
            // The process is not locked while its output is read, so that it can be killed.
            let (out, talk) = {
                let mut child = child.lock().unwrap();
                (child.stdout.take().unwrap(), child.stderr.take().unwrap())
            };
            let (out, talk) = (io::read_to_string(out).unwrap(), io::read_to_string(talk).unwrap());
            let code = child.lock().unwrap().wait().unwrap().code();
            if code != Some(2) || !out.is_empty() && !line.ends_with("version") || !talk.contains("within 1 s") {
                wrong.push(format!("{scheme}: {line}: {code:?} {:?}\n{out}{talk}", began.elapsed()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn without_arguments_a_server_that_never_responds_is_no_error() {
    let home = home();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = home.path("silent");
    fs::write(&config, kubeconfig(&format!("http://{}", silent.local_addr().unwrap()))).unwrap();
    let (code, out, talk) = captured(&home.command("kubectl-olm").env("KUBECONFIG", &config).output().unwrap());
    assert_eq!((code, talk.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("The cluster cannot be read: ") && out.contains("within 3 s.\n"), "{out}");
}

#[test]
fn ctrl_c_exits_with_130_for_every_command() {
    let home = home();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = home.path("config");
    fs::write(&config, kubeconfig(&format!("http://{}", silent.local_addr().unwrap()))).unwrap();
    // Each command has connected when it is running.
    let (sender, connections) = mpsc::channel();
    std::thread::spawn(move || silent.incoming().try_for_each(|connection| sender.send(connection)));
    for (program, line) in COMMANDS.iter().chain(&OTHERS) {
        let mut command = command(&home, &config, program, line);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let connected = connections.recv_timeout(Duration::from_mins(1));
        assert!(connected.is_ok(), "{program} {line} asks no server");
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        crate::interrupted(child.wait().unwrap());
        // Further connections of commands that send parallel requests.
        while connections.try_recv().is_ok() {}
    }
}

#[test]
fn serving_a_catalog_ends_gracefully_and_with_130() {
    let home = home();
    for (signal, code) in [("-INT", 130), ("-TERM", 0)] {
        let mut command =
            command(&home, &home.path("none"), "kubectl-olm-catalog", "serve DIR --port 0 --address 127.0.0.1");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let talk = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(talk.map_while(Result::ok).any(|line| line.starts_with("serving ")));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
}

#[test]
fn common_flags_are_accepted_before_the_name_of_a_plugin() {
    let home = home();
    let mut command = home.command("kubectl-olm");
    command.args(["-q", "--color=never", "catalog", "list", "DIR"]);
    let (code, _, talk) = captured(&command.output().unwrap());
    assert_eq!(code, 2, "{talk}");
    let known: BTreeSet<&str> = talk.split_whitespace().collect();
    assert!(!known.contains("unexpected"), "{talk}");
}

#[test]
fn colours_are_printed_on_request() {
    let home = home();
    let broken = home.path("catalog").join("pot.json");
    fs::write(broken, r#"{"schema": "olm.package", "name": "pot", "defaultChannel": "none"}"#).unwrap();
    let red = "\u{1b}[31";
    for (words, terminal, wanted) in [
        ("validate DIR", &[][..], false),
        ("validate DIR --color always", &[], true),
        ("validate DIR --color never", &[("CLICOLOR_FORCE", "1")], false),
        ("validate DIR", &[("CLICOLOR_FORCE", "1")], true),
        ("validate DIR", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
    ] {
        let mut command = command(&home, &home.path("none"), "kubectl-olm-catalog", words);
        let (_, out, _) = captured(&command.envs(terminal.iter().copied()).output().unwrap());
        assert!(out.contains("error"), "{out}");
        assert_eq!(out.contains(red), wanted, "{words} {terminal:?}: {out:?}");
    }
}
