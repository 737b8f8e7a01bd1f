use std::ffi::OsString;
use std::fs;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::*;
use crate::cli::flags::{ClusterFlags, DryRunFlag, NamespaceFlags, OutputFlags};

/// Brew.
#[derive(Debug, Parser)]
#[command(disable_help_subcommand = true)]
struct Brew {
    #[command(subcommand)]
    command: Brewing,
}

#[derive(Debug, Subcommand)]
enum Brewing {
    /// Pour tea.
    Pour(Box<Pour>),
    /// Boil water.
    Boil,
}

#[derive(Debug, Args)]
struct Pour {
    /// Pots
    pots: Vec<String>,
    /// Strength
    #[arg(long, value_enum)]
    strength: Option<Strength>,
    /// With milk
    #[arg(short, long, conflicts_with = "lemon")]
    milk: bool,
    /// With lemon
    #[arg(long)]
    lemon: bool,
    /// Sugar
    #[arg(long, action = ArgAction::Append)]
    sugar: Vec<u8>,
    /// Hidden
    #[arg(long, hide = true)]
    poison: bool,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Strength {
    Strong,
    /// As for children
    Weak,
}

fn completed(words: &[&str]) -> Reply {
    use clap::CommandFactory;
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    complete(Brew::command(), &words)
}

fn values(words: &[&str]) -> Vec<String> {
    completed(words).candidates.into_iter().map(|candidate| candidate.value).collect()
}

#[test]
fn requests_are_recognized_by_the_first_argument_or_the_file_name() {
    let question = |words: &[&str]| Question::from_arguments(&words.iter().map(OsString::from).collect::<Vec<_>>());
    assert_eq!(question(&["kubectl-olm", "list", "__complete"]), None);
    let asked = question(&["/bin/kubectl-olm", "__complete", "list", ""]).unwrap();
    assert_eq!((asked.words, asked.plugin), (vec!["list".to_owned(), String::new()], None));
    let asked = question(&["/bin/kubectl_complete-olm-run", "--"]).unwrap();
    assert_eq!((asked.words, asked.plugin.as_deref()), (vec!["--".to_owned()], Some("olm-run")));
}

#[test]
fn commands_and_flags() {
    assert_eq!(completed(&[""]).to_string(), "pour\tPour tea\nboil\tBoil water\n:4\n");
    assert_eq!(values(&["p"]), ["pour"]);
    assert_eq!(values(&["pour", "--su"]), ["--sugar"]);
    assert_eq!(values(&["pour", "--poi"]), Vec::<String>::new());
    // Given flags and conflicting ones are not offered, but repeatable ones are.
    assert_eq!(values(&["pour", "--milk", "--lem"]), Vec::<String>::new());
    assert_eq!(values(&["pour", "-m", "--mil"]), Vec::<String>::new());
    assert_eq!(values(&["pour", "--sugar", "1", "--su"]), ["--sugar"]);
    let both = values(&["pour", "-"]);
    assert!(both.contains(&"-m".to_owned()) && both.contains(&"--milk".to_owned()), "{both:?}");
    assert_eq!(values(&["pour", "--", "--su"]), Vec::<String>::new());
    // After an operand there are no subcommands.
    assert_eq!(values(&["pour", "green", "bo"]), Vec::<String>::new());
}

#[test]
fn values_of_flags_in_every_spelling() {
    assert_eq!(completed(&["pour", "--strength", ""]).to_string(), "strong\nweak\tAs for children\n:4\n");
    assert_eq!(values(&["pour", "--strength", "w"]), ["weak"]);
    assert_eq!(values(&["pour", "--strength=w"]), ["--strength=weak"]);
    assert_eq!(values(&["pour", "-oy"]), ["-oyaml"]);
    assert_eq!(values(&["pour", "-mo", "ya"]), ["yaml"]);
    assert_eq!(completed(&["pour", "-o", "jsonp"]).to_string(), "jsonpath=\n:6\n");
    assert_eq!(completed(&["pour", "--dry"]).to_string().lines().last(), Some(":6"));
    assert_eq!(values(&["pour", "--dry-run=s"]), ["--dry-run=server"]);
    // Its value must follow an equals sign.
    assert_eq!(values(&["pour", "--dry-run", "--su"]), ["--sugar"]);
    assert_eq!(completed(&["pour", "--certificate-authority", ""]).directive, Directive::Files);
}

#[test]
fn names_of_the_kubeconfig_that_are_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let context = |name: &str| format!("{{name: '{name}', context: {{cluster: c, user: u}}}}");
    let contexts = ["home", "work/x:1", "a b", "$(reboot)", "`x`", "x;y", "-rf", ""].map(context).join(", ");
    fs::write(
        &file,
        format!("contexts: [{contexts}]\nclusters: [{{name: c, cluster: {{server: 'https://x'}}}}]\nusers: []\n"),
    )
    .unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(values(&["pour", "--kubeconfig", file, "--context", ""]), ["home", "work/x:1"]);
    assert_eq!(values(&["pour", "--kubeconfig", file, "--context=w"]), ["--context=work/x:1"]);
    assert_eq!(values(&["pour", "--kubeconfig", file, "--cluster", ""]), ["c"]);
    // Errors of the file are ignored.
    fs::write(file, "a: [").unwrap();
    assert_eq!(completed(&["pour", "--kubeconfig", file, "-n", ""]), Reply::default());
}

#[test]
fn a_server_that_never_responds_does_not_delay_the_reply() {
    // The system queues connections, but there is no response.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let server = format!("http://{}", silent.local_addr().unwrap());
    let config = format!(
        "clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: ''}}}}]\n\
         current-context: c\nusers: []\n"
    );
    fs::write(&file, config).unwrap();
    let began = Instant::now();
    assert_eq!(completed(&["pour", "--kubeconfig", file.to_str().unwrap(), "-n", "x"]), Reply::default());
    assert!(began.elapsed() < DEADLINE * 2, "{:?}", began.elapsed());
}

#[test]
fn descriptions_are_one_short_line() {
    let reply = Reply {
        candidates: vec![Candidate::new("a", "\u{1b}[31mred\tand\nmore"), Candidate::new("b", "x".repeat(200))],
        directive: Directive::Words,
    };
    assert_eq!(reply.to_string(), format!("a\t[31mred and\nb\t{}…\n:4\n", "x".repeat(80)));
}
