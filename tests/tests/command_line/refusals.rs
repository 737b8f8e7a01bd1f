//! Every command reports the same refusal in the same words: missing permissions, a server that is down, an unknown context.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use olm_tests::scenario::sim::SimEngine;
use olm_tests::sim_api::SimApi;
use regex::Regex;

use crate::silence::{COMMANDS, OTHERS, command, home};
use crate::{Home, captured, kubeconfig};

/// Commands that need no permission: they read what the server serves, and print what they may read.
const UNPRIVILEGED: [&str; 3] = ["synthesize", "version", "resolve"];

/// Runs every command, and returns the line of each with its output.
fn run_all(home: &Home, config: &Path, context: &str) -> Vec<(String, (i32, String, String))> {
    let run = |(program, line): &(&str, &str)| {
        let line = line.replace(" --context c", "");
        let mut command = command(home, config, program, &line);
        let output = command.args(["--context", context]).output().unwrap();
        (format!("{program} {line}"), captured(&output))
    };
    COMMANDS.iter().chain(&OTHERS).map(run).collect()
}

/// Returns the commands whose output is not this error, with their output. Warnings before the error and further hints, which depend
/// on the command, are permitted.
fn different(
    results: &[(String, (i32, String, String))],
    expected: impl Fn(&str) -> Result<String, String>,
) -> Vec<String> {
    let is_same = |(line, (code, out, talk)): &&(String, (i32, String, String))| {
        // The version of the client does not depend on the server.
        let is_silent = out.is_empty() || line.ends_with(" version");
        let (warnings, error) = talk.split_at(talk.find("error: ").unwrap_or_default());
        let rest = expected(error).map(|expected| error.strip_prefix(&expected).map(str::to_owned));
        let only = |text: &str, start: &str| text.lines().all(|line| line.starts_with(start));
        let is_expected = matches!(rest, Ok(Some(rest)) if only(&rest, "hint: "));
        *code == 2 && is_silent && is_expected && only(warnings, "warning: ")
    };
    let different = results.iter().filter(|result| !is_same(result));
    different
        .map(|(line, (code, out, talk))| format!("{line}: {code}\n{out}{talk}expected: {:?}\n", expected(talk)))
        .collect()
}

/// Returns the error for the request that a message is about.
fn forbidden(error: &str) -> Result<String, String> {
    let request = r#"^error: not allowed to (\w+) ([\w.]+)(.*?): [\w.]+( ".*")? is forbidden: "#;
    let found = Regex::new(request).unwrap().captures(error).ok_or("a request that is not allowed")?;
    let (verb, resource, place) = (&found[1], &found[2], &found[3]);
    let name = found.get(4).map_or("", |name| name.as_str());
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (scope, option) = match place.strip_prefix(" in namespace ") {
        Some(namespace) => (format!("in the namespace {namespace:?}"), format!(" -n {namespace}")),
        None if place == " in all namespaces" => ("at the cluster scope".to_owned(), " -A".to_owned()),
        None => ("at the cluster scope".to_owned(), String::new()),
    };
    Ok(format!(
        "error: not allowed to {verb} {resource}{place}: {resource}{name} is forbidden: User \"sim\" cannot {verb} resource \
         {plural:?} in API group {group:?} {scope}\nhint: check your permissions: kubectl auth can-i {verb} {resource}{option}\n"
    ))
}

#[test]
fn missing_permissions_are_reported_in_the_same_words() {
    let home = home();
    let server = SimApi::start_without_permissions(SimEngine::start().unwrap().simulation().clone()).unwrap();
    let results = run_all(&home, &server.kubeconfig(), "sim");
    let is_privileged = |line: &str| !UNPRIVILEGED.iter().any(|name| line.split(' ').nth(1) == Some(name));
    let privileged: Vec<_> = results.into_iter().filter(|(line, _)| is_privileged(line)).collect();
    let different = different(&privileged, forbidden);
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn a_server_that_is_down_is_reported_in_the_same_words() {
    let home = home();
    let config = home.path("down");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fs::write(&config, kubeconfig(&format!("http://{closed}"))).unwrap();
    let refused = TcpStream::connect(closed).unwrap_err();
    let different = different(&run_all(&home, &config, "c"), |_| {
        Ok(format!(
            "error: no answer from the server: {refused}\nhint: check that the cluster is running and the context is correct: \
             kubectl config current-context\n"
        ))
    });
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn an_unknown_context_is_reported_in_the_same_words() {
    let home = home();
    let config = home.path("config");
    fs::write(&config, kubeconfig("http://127.0.0.1:1")).unwrap();
    let different = different(&run_all(&home, &config, "none"), |_| {
        let error =
            "error: the kubeconfig has no context \"none\"\nhint: kubectl config get-contexts lists its contexts\n";
        Ok(error.to_owned())
    });
    assert!(different.is_empty(), "{}", different.join("\n"));
}
