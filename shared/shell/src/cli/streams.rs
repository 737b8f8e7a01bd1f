//! The two streams of a command: data on stdout, talk on stderr.
//!
//! All output goes through a [`Printer`], so that a test can look at it and a reader that left (`| head`) is noticed: a
//! failed write of data is an error, which [`CliError`] turns into a quiet end. Talk that cannot be
//! written is dropped: there is nobody left to tell.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use owo_colors::OwoColorize;
use serde::Serialize;

use super::CliError;
use super::paint::Paint;
use super::progress::Progress;
use crate::visible;

/// Where a command writes.
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

/// Answers questions in the place of a person.
type Answers = Box<dyn FnMut(&str) -> bool + Send>;

impl Printer {
    /// The streams of this process. Colours reach stderr only when it is a terminal and `NO_COLOR` is not set.
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

    /// The same, which says nothing but errors and questions if it is quiet, and shows the causes of errors if it is to.
    #[must_use]
    pub(super) fn with(self, is_quiet: bool, shows_causes: bool) -> Self {
        Self { is_quiet, shows_causes, ..self }
    }

    /// Streams of the caller's choice, never taken for a terminal.
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

    /// The same, which says nothing but errors and questions.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// The colours for data that people read.
    pub fn paint(&self) -> Paint {
        self.paint
    }

    /// The same with somebody who answers questions.
    #[must_use]
    pub fn answered_by(self, answers: impl FnMut(&str) -> bool + Send + 'static) -> Self {
        Self { answers: Some(Box::new(answers)), ..self }
    }

    /// The answer to a question, if there is somebody who answers without a terminal.
    pub(super) fn answer(&mut self, question: &str) -> Option<bool> {
        self.answers.as_mut().map(|answers| answers(question))
    }

    /// Is somebody there to answer a question?
    pub fn is_interactive(&self) -> bool {
        self.talks_to_a_person
    }

    /// Does stdout go to a terminal?
    pub fn is_read_on_a_terminal(&self) -> bool {
        self.is_read_on_a_terminal
    }

    /// Writes data as it is, but for what would steer a terminal: that is made visible.
    pub fn data(&mut self, data: impl Display) -> Result<(), CliError> {
        let data = data.to_string();
        let shown = if self.paint.is_on() { visible::painted(&data) } else { visible::lines(&data) };
        self.out.write_all(shown.as_bytes())?;
        Ok(())
    }

    /// Writes one line of data: line breaks in it are made visible.
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

    /// Says something to the person, on stderr.
    pub fn talk(&mut self, words: impl Display) {
        if self.is_quiet {
            return;
        }
        writeln!(self.err, "{}", said(&words)).ok();
    }

    /// Says why the answer is negative: also to those who want to read nothing but errors.
    pub fn reason(&mut self, words: impl Display) {
        writeln!(self.err, "{}", said(&words)).ok();
    }

    /// Are errors all that is to be read?
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Puts a question to the person, on stderr, and leaves the rest of the line for the answer.
    pub(super) fn ask(&mut self, question: impl Display) -> Result<(), CliError> {
        write!(self.err, "{}", said(&question))?;
        self.flush()
    }

    /// Says something that the person should look at: `warning: …`.
    pub fn warn(&mut self, words: impl Display) {
        self.talk(format_args!("{} {words}", "warning:".yellow().bold()));
    }

    /// Says why a command ends: `error: …`, its causes if they are asked for, and `hint: …`; nothing when the reader has gone.
    pub fn error(&mut self, error: &CliError) {
        if error.kind != super::ErrorKind::Closed {
            let text = if self.shows_causes { error.render_with_causes() } else { error.render() };
            write!(self.err, "{text}").ok();
        }
    }

    /// Shows that work goes on, from the second second and on a terminal only.
    pub fn progress(&self, doing: impl Into<String>) -> Progress {
        Progress::start(doing.into(), self.talks_to_a_person && !self.is_quiet)
    }

    /// Hands everything to the operating system.
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush()?;
        self.err.flush().ok();
        Ok(())
    }
}

/// Words for a person: what belongs to them hangs below the first line. The stream takes colours away where they are not wanted.
fn said(words: &impl Display) -> String {
    visible::painted(&visible::hanging(&words.to_string())).into_owned()
}

/// A growing text that can be read back: the streams of a test.
#[derive(Clone, Default)]
pub struct Buffer(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Buffer {
    /// What was written so far.
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
    fn data_and_talk_go_their_own_ways_without_colour() {
        let (out, err) = (Buffer::default(), Buffer::default());
        let mut printer = Printer::to(out.clone(), err.clone());
        printer.line("NAME").unwrap();
        printer.warn("look");
        printer.error(&CliError::usage("no").hint("yes"));
        assert_eq!(out.text(), "NAME\n");
        assert_eq!(err.text(), "warning: look\nerror: no\nhint: yes\n");
    }

    #[test]
    fn words_of_others_steer_no_terminal_and_make_no_message() {
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
    fn who_is_quiet_says_errors_only() {
        let (out, err) = (Buffer::default(), Buffer::default());
        let mut printer = Printer::to(out.clone(), err.clone()).quiet();
        printer.line("NAME").unwrap();
        printer.talk("note");
        printer.warn("look");
        printer.error(&CliError::usage("no"));
        assert_eq!((out.text().as_str(), err.text().as_str()), ("NAME\n", "error: no\n"));
    }
}
