//! The output streams of a command: data on stdout, messages on stderr.
//!
//! All output is written by a [`Printer`], so that tests can read it, and a closed pipe (`| head`) is noticed: a failed
//! write of data is an error, which [`CliError`] turns into a silent exit. Messages that cannot be written are dropped.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use owo_colors::OwoColorize;
use serde::Serialize;

use super::CliError;
use super::paint::Paint;
use super::progress::Progress;
use crate::visible;

/// The streams that a command writes to.
pub struct Printer {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    talks_to_a_person: bool,
    is_read_on_a_terminal: bool,
    answers: Option<Answers>,
    is_quiet: bool,
    shows_causes: bool,
    paint: Paint,
}

/// Answers prompts in tests.
type Answers = Box<dyn FnMut(&str) -> bool + Send>;

impl Printer {
    /// Returns a printer to the streams of this process. Colours are written to stderr only if it is a terminal and `NO_COLOR` is not set.
    pub fn stdio() -> Self {
        Self {
            out: Box::new(io::stdout()),
            err: Box::new(anstream::stderr()),
            talks_to_a_person: io::stdin().is_terminal() && io::stderr().is_terminal(),
            is_read_on_a_terminal: io::stdout().is_terminal(),
            answers: None,
            is_quiet: false,
            shows_causes: false,
            paint: Paint::when(anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never),
        }
    }

    /// Returns the printer with only errors and prompts if `is_quiet`, and with the causes of errors if `shows_causes`.
    #[must_use]
    pub(super) fn with(self, is_quiet: bool, shows_causes: bool) -> Self {
        Self { is_quiet, shows_causes, ..self }
    }

    /// Returns a printer to the given streams, which never count as a terminal.
    pub fn to(out: impl Write + Send + 'static, err: impl Write + Send + 'static) -> Self {
        Self {
            out: Box::new(out),
            err: Box::new(anstream::StripStream::new(Box::new(err) as Box<dyn Write + Send>)),
            talks_to_a_person: false,
            is_read_on_a_terminal: false,
            answers: None,
            is_quiet: false,
            shows_causes: false,
            paint: Paint::default(),
        }
    }

    /// Returns the printer with only errors and prompts.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// Returns the colours for data.
    pub fn paint(&self) -> Paint {
        self.paint
    }

    /// Returns the printer with a function that answers prompts.
    #[must_use]
    pub fn answered_by(self, answers: impl FnMut(&str) -> bool + Send + 'static) -> Self {
        Self { answers: Some(Box::new(answers)), ..self }
    }

    /// Returns the answer to a prompt from the function, if there is one.
    pub(super) fn answer(&mut self, question: &str) -> Option<bool> {
        self.answers.as_mut().map(|answers| answers(question))
    }

    /// Returns whether prompts can be answered on a terminal.
    pub fn is_interactive(&self) -> bool {
        self.talks_to_a_person
    }

    /// Returns whether stdout is a terminal.
    pub fn is_read_on_a_terminal(&self) -> bool {
        self.is_read_on_a_terminal
    }

    /// Writes data, with control characters made visible.
    pub fn data(&mut self, data: impl Display) -> Result<(), CliError> {
        let data = data.to_string();
        let shown = if self.paint.is_on() { visible::painted(&data) } else { visible::lines(&data) };
        self.out.write_all(shown.as_bytes())?;
        Ok(())
    }

    /// Writes one line of data, with line breaks in it made visible.
    pub fn line(&mut self, data: impl Display) -> Result<(), CliError> {
        self.data(format_args!("{}\n", data.to_string().replace('\n', r"\u{a}")))
    }

    /// Writes a value as JSON, indented by four as kubectl does.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        self.data(super::data::json(value)? + "\n")
    }

    /// Writes a value as a YAML document.
    pub fn yaml(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        self.data(super::data::yaml(value)?)
    }

    /// Writes a message to stderr.
    pub fn talk(&mut self, words: impl Display) {
        if self.is_quiet {
            return;
        }
        writeln!(self.err, "{}", as_line(&words)).ok();
    }

    /// Writes the reason of a negative outcome to stderr, also in quiet mode.
    pub fn reason(&mut self, words: impl Display) {
        writeln!(self.err, "{}", as_line(&words)).ok();
    }

    /// Returns whether only errors and prompts are written.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Writes a warning to stderr: `warning: …`.
    pub fn warn(&mut self, words: impl Display) {
        self.talk(format_args!("{} {words}", "warning:".yellow().bold()));
    }

    /// Writes an error to stderr: `error: …`, its causes if enabled, and `hint: …`; nothing for a closed pipe.
    pub fn error(&mut self, error: &CliError) {
        if error.kind != super::ErrorKind::Closed {
            let text = if self.shows_causes { error.render_with_causes() } else { error.render() };
            write!(self.err, "{text}").ok();
        }
    }

    /// Shows progress, after one second and only on a terminal.
    pub fn progress(&self, doing: impl Into<String>) -> Progress {
        Progress::start(doing.into(), self.talks_to_a_person && !self.is_quiet)
    }

    /// Flushes both streams.
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush()?;
        self.err.flush().ok();
        Ok(())
    }
}

/// Formats a message, with lines after the first indented. The stream removes colours where they are disabled.
fn as_line(words: &impl Display) -> String {
    visible::painted(&visible::hanging(&words.to_string())).into_owned()
}

/// A buffer that can be read back, for tests.
#[derive(Clone, Default)]
pub struct Buffer(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Buffer {
    /// Returns the text written so far.
    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_messages_are_separate_and_without_colour() {
        let (out, err) = (Buffer::default(), Buffer::default());
        let mut printer = Printer::to(out.clone(), err.clone());
        printer.line("NAME").unwrap();
        printer.warn("look");
        printer.error(&CliError::usage("no").hint("yes"));
        assert_eq!(out.text(), "NAME\n");
        assert_eq!(err.text(), "warning: look\nerror: no\nhint: yes\n");
    }

    #[test]
    fn control_characters_and_line_breaks_are_neutralized() {
        let (out, err) = (Buffer::default(), Buffer::default());
        let mut printer = Printer::to(out.clone(), err.clone());
        printer.line("a\u{1b}[2J\nSafe: b").unwrap();
        printer.data("a\n\u{202e}b\n").unwrap();
        printer.talk("a\nerror: b\u{7}");
        printer.warn("c\nd");
        printer.error(&CliError::usage("no\nhint: e").hint("f\u{1b}]0;g"));
        assert_eq!(out.text(), "a\\u{1b}[2J\\u{a}Safe: b\na\n\\u{202e}b\n");
        let said = "a\n  error: b\\u{7}\nwarning: c\n  d\nerror: no\n  hint: e\nhint: f\\u{1b}]0;g\n";
        assert_eq!(err.text(), said);
    }

    #[test]
    fn quiet_mode_prints_only_errors() {
        let (out, err) = (Buffer::default(), Buffer::default());
        let mut printer = Printer::to(out.clone(), err.clone()).quiet();
        printer.line("NAME").unwrap();
        printer.talk("note");
        printer.warn("look");
        printer.error(&CliError::usage("no"));
        assert_eq!((out.text().as_str(), err.text().as_str()), ("NAME\n", "error: no\n"));
    }
}
