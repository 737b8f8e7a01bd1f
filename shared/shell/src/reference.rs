//! The reference of a plugin, generated from the definition of its commands: a page in Markdown and a manual page.
//!
//! A plugin prints one of them if its first argument is [`MARKDOWN`] or [`MANUAL`]. Tests compare the pages in the repository with
//! them; releases contain the manual pages.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use roff::{Inline, Roff, bold, roman};

/// The first argument that requests Markdown.
pub const MARKDOWN: &str = "__markdown";
/// The first argument that requests a manual page.
pub const MANUAL: &str = "__manual";

/// The heading of options without a heading.
const OPTIONS: &str = "Options";
/// The heading of arguments without a flag.
const ARGUMENTS: &str = "Arguments";

/// Returns the requested page; `None` if the arguments of the process do not request one.
pub fn requested(arguments: &[OsString], command: impl FnOnce() -> Command) -> Option<String> {
    match arguments.get(1)?.to_str()? {
        MARKDOWN => Some(markdown(&sections(command()))),
        MANUAL => {
            let command = command();
            let name = command.get_name().to_owned();
            Some(manual(&name, &sections(command)))
        }
        _ => None,
    }
}

/// A command.
struct Section {
    /// The words of the command.
    title: String,
    about: String,
    usage: String,
    /// Examples, and what else precedes or follows the options in the help.
    notes: Vec<String>,
    options: Vec<Block>,
}

/// Options with a common heading.
#[derive(PartialEq)]
struct Block {
    heading: String,
    /// What to write, and its description.
    entries: Vec<(String, String)>,
    /// The command above with the same block, which is not repeated.
    same_as: Option<String>,
}

/// Returns the command and its subcommands, the latter with their whole definition.
fn sections(mut command: Command) -> Vec<Section> {
    command.build();
    let mut sections = Vec::new();
    add(&command, &mut sections);
    let mut seen: Vec<(Block, String)> = Vec::new();
    for section in &mut sections {
        for block in section.options.iter_mut().filter(|block| ![OPTIONS, ARGUMENTS].contains(&block.heading.as_str()))
        {
            match seen.iter().find(|(known, _)| known == block) {
                Some((_, title)) => block.same_as = Some(title.clone()),
                None => {
                    let Block { heading, entries, .. } = &*block;
                    let known = Block { heading: heading.clone(), entries: entries.clone(), same_as: None };
                    seen.push((known, section.title.clone()));
                }
            }
        }
    }
    sections
}

fn add(command: &Command, sections: &mut Vec<Section>) {
    let text = |text: Option<&StyledStr>| text.map(|text| text.to_string().trim().to_owned()).unwrap_or_default();
    let notes = [command.get_before_help(), command.get_after_help()].map(text);
    let usage = command.clone().render_usage().to_string();
    let title = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    sections.push(Section {
        title,
        about: text(command.get_long_about().or_else(|| command.get_about())),
        usage: usage.trim_start_matches("Usage:").trim().to_owned(),
        notes: notes.into_iter().filter(|note| !note.is_empty()).collect(),
        options: options(command),
    });
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).for_each(|sub| add(sub, sections));
}

fn options(command: &Command) -> Vec<Block> {
    let mut options: Vec<Block> = Vec::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let standard = if argument.is_positional() { ARGUMENTS } else { OPTIONS };
        let heading = argument.get_help_heading().unwrap_or(standard);
        let entry = (written(argument), described(argument));
        match options.iter_mut().find(|block| block.heading == heading) {
            Some(block) => block.entries.push(entry),
            None => options.push(Block { heading: heading.to_owned(), entries: vec![entry], same_as: None }),
        }
    }
    options
}

/// Returns what a user writes: `-n, --namespace <NAMESPACE>`.
fn written(argument: &Arg) -> String {
    let text = argument.to_string();
    match argument.get_short() {
        Some(short) if argument.get_long().is_some() => format!("-{short}, {text}"),
        _ => text,
    }
}

/// Returns the description of an argument with its values and its default.
fn described(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut text = help.map(|help| help.to_string().trim().to_owned()).unwrap_or_default();
    let takes_values = argument.get_num_args().is_some_and(|count| count.takes_values());
    let values = argument.get_possible_values();
    if takes_values && !values.is_empty() && !argument.is_hide_possible_values_set() {
        let values = values.iter().filter(|value| !value.is_hide_set());
        let value = |value: &clap::builder::PossibleValue| match value.get_help() {
            Some(help) => format!("{} ({help})", value.get_name()),
            None => value.get_name().to_owned(),
        };
        text += &format!("\n\nValues: {}", values.map(value).collect::<Vec<_>>().join(", "));
    }
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy());
    let defaults = defaults.collect::<Vec<_>>().join(",");
    if takes_values && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        text += &format!("\n\nDefault: {defaults}");
    }
    text
}

/// Returns a text whose lines are indented, so that Markdown shows it as it is.
fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { String::new() } else { format!("    {line}") };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Escapes what Markdown would interpret as HTML.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;")
}

fn markdown(sections: &[Section]) -> String {
    let mut page = String::new();
    for (n, Section { title, about, usage, notes, options }) in sections.iter().enumerate() {
        let heading = if n == 0 { "# " } else { "\n## " };
        page += &format!("{heading}{title}\n\n{}\n\n{}\n", escaped(about), indented(usage));
        for note in notes {
            page += &match note.split_once(":\n") {
                Some((heading, lines)) => format!("\n{heading}:\n\n{}\n", indented(&unindented(lines))),
                None => format!("\n{}\n", escaped(note)),
            };
        }
        for Block { heading, entries, same_as } in options {
            if let Some(title) = same_as {
                page += &format!("\n{heading}: those of `{title}`.\n");
                continue;
            }
            page += &format!("\n{heading}:\n\n");
            for (written, description) in entries {
                let description = escaped(description).replace("\n\n", "\n").replace('\n', "\n  ");
                page += &format!("- `{written}`: {description}\n");
            }
        }
        if n == 0 {
            page += "\nThis page is generated: `OLM_GENERATE=1 cargo test -p olm-tests generated`.\n";
        }
    }
    page
}

/// Removes the indentation of help texts.
fn unindented(text: &str) -> String {
    text.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Returns the manual page of a plugin, in the format of man.
fn manual(name: &str, sections: &[Section]) -> String {
    let mut page = Roff::new();
    let source = concat!("kubectl-olm ", env!("CARGO_PKG_VERSION"));
    // Without a date, so that the page depends only on the definition.
    page.control("TH", [name, "1", " ", source, "kubectl-olm"]);
    for (n, section) in sections.iter().enumerate() {
        let Section { title, about, usage, notes, options } = section;
        if n == 0 {
            let summary = about.lines().next().unwrap_or_default().trim_end_matches('.');
            page.control("SH", ["NAME"]).text([roman(format!("{name} - {summary}"))]);
            page.control("SH", ["SYNOPSIS"]);
        } else {
            page.control("SH", [title.to_uppercase().as_str()]);
        }
        verbatim(&mut page, usage);
        if n == 0 {
            page.control("SH", ["DESCRIPTION"]);
        }
        paragraphs(&mut page, about);
        for note in notes {
            match note.split_once(":\n") {
                Some((heading, lines)) => {
                    page.control("SS", [heading]);
                    verbatim(&mut page, &unindented(lines));
                }
                None => paragraphs(&mut page, note),
            }
        }
        for Block { heading, entries, same_as } in options {
            page.control("SS", [heading.as_str()]);
            if let Some(title) = same_as {
                page.text([roman("Those of "), bold(title), roman(".")]);
                continue;
            }
            for (written, description) in entries {
                page.control("TP", []).text([bold(written)]);
                let description = description.replace("\n\n", "\n");
                let lines: Vec<Inline> = description.lines().map(roman).collect();
                for (n, line) in lines.into_iter().enumerate() {
                    if n > 0 {
                        page.control("br", []);
                    }
                    page.text([line]);
                }
            }
        }
    }
    page.render()
}

fn paragraphs(page: &mut Roff, text: &str) {
    for paragraph in text.split("\n\n") {
        page.control("PP", []).text([roman(paragraph.replace('\n', " "))]);
    }
}

/// Adds lines that are shown as they are.
fn verbatim(page: &mut Roff, text: &str) {
    page.control("PP", []).control("nf", []);
    text.lines().for_each(|line| {
        page.text([roman(line)]);
    });
    page.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let cups = Arg::new("cups").short('c').long("cups").value_name("N").default_value("1").help("How many <cups>");
        let brew = Command::new("brew").about("Brew tea").before_help("Examples:\n  # A cup\n  kubectl olm tea brew\n");
        Command::new("kubectl-olm-tea").bin_name("kubectl olm tea").about("Make tea.").subcommand(brew.arg(cups))
    }

    fn page(format: &str) -> String {
        let arguments = ["kubectl-olm-tea", format].map(OsString::from);
        requested(&arguments, command).unwrap()
    }

    #[test]
    fn a_command_is_shown_with_usage_examples_and_options() {
        let page = page(MARKDOWN);
        assert!(page.starts_with("# kubectl olm tea\n\nMake tea.\n\n    kubectl olm tea"), "{page}");
        assert!(page.contains("## kubectl olm tea brew\n\nBrew tea\n\n    kubectl olm tea brew [OPTIONS]\n"), "{page}");
        assert!(page.contains("\nExamples:\n\n    # A cup\n    kubectl olm tea brew\n"), "{page}");
        assert!(page.contains("- `-c, --cups <N>`: How many &lt;cups>\n  Default: 1\n"), "{page}");
    }

    #[test]
    fn the_manual_page_escapes_what_man_interprets() {
        let page = page(MANUAL);
        assert!(page.contains(".SH NAME\nkubectl\\-olm\\-tea \\- Make tea\n"), "{page}");
        assert!(page.contains(".SH \"KUBECTL OLM TEA BREW\"\n"), "{page}");
        assert!(page.contains("\\fB\\-c, \\-\\-cups <N>\\fR\n"), "{page}");
    }

    #[test]
    fn other_arguments_request_nothing() {
        for words in [&["kubectl-olm-tea"][..], &["kubectl-olm-tea", "brew"], &["kubectl-olm-tea", "brew", MANUAL]] {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert!(requested(&arguments, command).is_none(), "{words:?}");
        }
    }
}
