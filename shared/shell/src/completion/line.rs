//! Parses the words before the cursor as the command would: its subcommand, its arguments, and what may follow.

use std::path::PathBuf;

use clap::builder::Str;
use clap::{Arg, ArgAction, Command};

use super::Candidate;

/// What the last word can be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Open<'c> {
    /// The value of this flag.
    Value(&'c Arg),
    /// The value of this flag, or any other word.
    ValueOrWord(&'c Arg),
    /// A subcommand, a flag or an operand.
    Word,
    /// An operand, after `--`.
    Operand,
}

/// A command line up to the cursor.
#[derive(Debug)]
pub(super) struct Line<'c> {
    /// The subcommands.
    pub(super) path: Vec<&'c str>,
    command: &'c Command,
    /// Flags by id, with their values.
    flags: Vec<(&'c str, String)>,
    operands: Vec<String>,
    pub(super) open: Open<'c>,
    /// The part of the last word that is not replaced: `--flag=`, `a,`.
    pub(super) kept: String,
    /// The rest of the last word.
    pub(super) typed: String,
}

/// The flags and operands before the cursor.
#[derive(Clone, Debug, Default)]
pub(super) struct ParsedLine {
    flags: Vec<(String, String)>,
    pub(super) operands: Vec<String>,
}

impl ParsedLine {
    /// Returns the last value of a flag.
    pub(super) fn value<'g>(&'g self, id: &'g str) -> Option<&'g str> {
        self.values(id).last()
    }

    /// Returns the values of a flag.
    pub(super) fn values<'g>(&'g self, id: &'g str) -> impl Iterator<Item = &'g str> {
        self.flags.iter().filter(move |(known, _)| known == id).map(|(_, value)| value.as_str())
    }

    /// Returns all flags with their values.
    pub(super) fn flags(&self) -> &[(String, String)] {
        &self.flags
    }

    /// Returns the paths given by a flag.
    pub(super) fn paths(&self, id: &str) -> Vec<PathBuf> {
        self.values(id).map(PathBuf::from).collect()
    }
}

impl<'c> Line<'c> {
    /// Parses words; the last is the one to complete.
    pub(super) fn read(command: &'c Command, words: &[String]) -> Self {
        let mut line = Self {
            path: Vec::new(),
            command,
            flags: Vec::new(),
            operands: Vec::new(),
            open: Open::Word,
            kept: String::new(),
            typed: String::new(),
        };
        let Some((last, before)) = words.split_last() else { return line };
        for word in before {
            line.take(word);
        }
        line.finish(last);
        line
    }

    /// Returns the flags and operands.
    pub(super) fn given(&self) -> ParsedLine {
        ParsedLine {
            flags: self.flags.iter().map(|(id, value)| ((*id).to_owned(), value.clone())).collect(),
            operands: self.operands.clone(),
        }
    }

    /// Parses a complete word.
    fn take(&mut self, word: &str) {
        match self.open {
            Open::Operand => return self.operands.push(word.to_owned()),
            Open::Value(argument) => {
                self.flags.push((argument.get_id().as_str(), word.to_owned()));
                self.open = if takes_more(argument) { Open::ValueOrWord(argument) } else { Open::Word };
                return;
            }
            Open::ValueOrWord(argument) if !word.starts_with('-') => {
                self.flags.push((argument.get_id().as_str(), word.to_owned()));
                self.open = if takes_more(argument) { self.open } else { Open::Word };
                return;
            }
            Open::ValueOrWord(_) | Open::Word => self.open = Open::Word,
        }
        if word == "--" {
            self.open = Open::Operand;
        } else if let Some(flag) = word.strip_prefix("--") {
            match flag.split_once('=') {
                Some((name, value)) => {
                    let known = self.long(name).map(|argument| (argument.get_id().as_str(), value.to_owned()));
                    self.flags.extend(known);
                }
                None => self.begin(self.long(flag)),
            }
        } else if let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            match self.short(cluster) {
                (Some(argument), Some(at)) => {
                    let value = cluster[at..].trim_start_matches('=').to_owned();
                    self.flags.push((argument.get_id().as_str(), value));
                }
                (argument, _) => self.begin(argument),
            }
        } else if let Some(command) = self.sub_command(word) {
            self.path.push(command.get_name());
            self.command = command;
        } else {
            self.operands.push(word.to_owned());
        }
    }

    /// Parses a flag without an inline value.
    fn begin(&mut self, argument: Option<&'c Arg>) {
        let Some(argument) = argument else { return };
        let least = argument.get_num_args().map_or(1, |n| n.min_values());
        if !takes_value(argument) || argument.is_require_equals_set() {
            self.flags.push((argument.get_id().as_str(), String::new()));
        } else if least == 0 {
            self.open = Open::ValueOrWord(argument);
        } else {
            self.open = Open::Value(argument);
        }
    }

    /// Parses the word at the cursor.
    fn finish(&mut self, word: &str) {
        word.clone_into(&mut self.typed);
        if let (Open::Word | Open::ValueOrWord(_), Some(flag)) = (self.open, word.strip_prefix("--")) {
            if let Some((name, value)) = flag.split_once('=')
                && let Some(argument) = self.long(name).filter(|argument| takes_value(argument))
            {
                word[..word.len() - value.len()].clone_into(&mut self.kept);
                self.typed = value.to_owned();
                self.open = Open::Value(argument);
            }
        } else if let (Open::Word | Open::ValueOrWord(_), Some(cluster)) = (self.open, word.strip_prefix('-'))
            && let (Some(argument), Some(at)) = self.short(cluster)
        {
            let value = cluster[at..].trim_start_matches('=').to_owned();
            word[..word.len() - value.len()].clone_into(&mut self.kept);
            self.typed = value;
            self.open = Open::Value(argument);
        }
        let delimiter = match self.open {
            Open::Value(argument) | Open::ValueOrWord(argument) => argument.get_value_delimiter(),
            Open::Word | Open::Operand => None,
        };
        if let Some(at) = delimiter.and_then(|delimiter| self.typed.rfind(delimiter)) {
            let rest = self.typed.split_off(at + 1);
            self.kept += &std::mem::replace(&mut self.typed, rest);
        }
    }

    fn long(&self, name: &str) -> Option<&'c Arg> {
        let is_called = |argument: &&Arg| {
            argument.get_long() == Some(name)
                || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        self.command.get_arguments().find(is_called)
    }

    /// Returns the last flag of a cluster such as `-Aw`, and the start of its inline value, if any. Records the flags before it.
    fn short(&mut self, cluster: &str) -> (Option<&'c Arg>, Option<usize>) {
        let mut last = None;
        for (at, c) in cluster.char_indices() {
            let known = self.command.get_arguments().find(|argument| argument.get_short() == Some(c));
            let Some(argument) = known else { return (None, None) };
            let next = at + c.len_utf8();
            if takes_value(argument) {
                return (Some(argument), (next < cluster.len()).then_some(next));
            }
            if let Some(before) = last.replace(argument) {
                self.flags.push((before.get_id().as_str(), String::new()));
            }
        }
        (last, None)
    }

    fn sub_command(&self, word: &str) -> Option<&'c Command> {
        if !self.operands.is_empty() {
            return None;
        }
        self.command
            .get_subcommands()
            .find(|command| command.get_name() == word || command.get_all_aliases().any(|alias| alias == word))
    }

    /// Returns the subcommands that may follow.
    pub(super) fn commands(&self) -> Vec<Candidate> {
        if !self.operands.is_empty() {
            return Vec::new();
        }
        let shown = self.command.get_subcommands().filter(|command| !command.is_hide_set());
        shown
            .map(|command| {
                Candidate::new(command.get_name(), command.get_about().map(ToString::to_string).unwrap_or_default())
            })
            .collect()
    }

    /// Returns the flags that may follow, without repeated ones and conflicts.
    pub(super) fn flags(&self) -> Vec<Candidate> {
        let is_given = |argument: &Arg| self.flags.iter().any(|(id, _)| argument.get_id() == id);
        let given: Vec<&Arg> = self.command.get_arguments().filter(|argument| is_given(argument)).collect();
        let mut flags = Vec::new();
        for argument in self.command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let again = matches!(argument.get_action(), ArgAction::Append | ArgAction::Count);
            let refused = given.iter().any(|other| {
                self.conflicts(argument).contains(&other.get_id()) || self.conflicts(other).contains(&argument.get_id())
            });
            if is_given(argument) && !again || refused {
                continue;
            }
            let about = argument.get_help().map(ToString::to_string).unwrap_or_default();
            if let Some(long) = argument.get_long() {
                let equals = if argument.is_require_equals_set() { "=" } else { "" };
                flags.push(Candidate::new(format!("--{long}{equals}"), about.clone()));
            }
            if let Some(short) = argument.get_short().filter(|_| self.typed == "-") {
                flags.push(Candidate::new(format!("-{short}"), about));
            }
        }
        flags
    }

    fn conflicts(&self, argument: &Arg) -> Vec<&'c clap::Id> {
        // clap looks up a global argument in every subcommand, where it may be missing.
        if argument.is_global_set() {
            return Vec::new();
        }
        self.command.get_arg_conflicts_with(argument).into_iter().map(Arg::get_id).collect()
    }

    /// Returns the definition of the operand that the last word is.
    pub(super) fn operand(&self) -> Option<&'c Arg> {
        let operands: Vec<&Arg> = self.command.get_positionals().collect();
        let last = operands.last().copied().filter(|argument| takes_more(argument));
        operands.get(self.operands.len()).copied().or(last)
    }
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

fn takes_more(argument: &Arg) -> bool {
    let many = argument.get_num_args().is_some_and(|n| n.max_values() > 1);
    many || argument.is_positional() && matches!(argument.get_action(), ArgAction::Append)
}

/// Returns the value name of an argument, as in help.
pub(super) fn value_name(argument: &Arg) -> &str {
    argument.get_value_names().and_then(|names| names.first()).map_or("", Str::as_str)
}
