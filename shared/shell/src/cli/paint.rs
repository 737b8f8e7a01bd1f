//! Colours for text output: verdicts, diffs and risks. No information is conveyed by colour alone.

use olm_core::finding::Severity;
use owo_colors::{OwoColorize, Style};

/// Colours, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    is_on: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// No colour.
    #[default]
    Plain,
    /// Success.
    Good,
    /// Needs review.
    Doubtful,
    /// Failure or risk.
    Bad,
}

impl Paint {
    /// Returns enabled or disabled colours.
    pub(super) fn when(is_on: bool) -> Self {
        Self { is_on }
    }

    /// Returns whether colours are enabled.
    pub(super) fn is_on(self) -> bool {
        self.is_on
    }

    fn styled(self, text: &str, style: Style) -> String {
        if self.is_on && !text.is_empty() { text.style(style).to_string() } else { text.to_owned() }
    }

    /// Returns a text in the colour of its tone.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => Style::new().green().bold(),
            Tone::Doubtful => Style::new().yellow().bold(),
            Tone::Bad => Style::new().red().bold(),
        };
        self.styled(text, style)
    }

    /// Returns a severity in its colour.
    pub fn severity(self, severity: Severity) -> String {
        let tone = match severity {
            Severity::Error => Tone::Bad,
            Severity::Warning => Tone::Doubtful,
            Severity::Info => Tone::Plain,
        };
        self.tone(tone, &severity.to_string())
    }

    /// Returns a unified diff in colours.
    pub fn diff(self, diff: &str) -> String {
        if !self.is_on {
            return diff.to_owned();
        }
        diff.split_inclusive('\n').map(|line| self.diff_line(line)).collect()
    }

    fn diff_line(self, line: &str) -> String {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        let style = match text {
            _ if text.starts_with("+++") || text.starts_with("---") => Style::new().bold(),
            _ if text.starts_with('+') => Style::new().green(),
            _ if text.starts_with('-') => Style::new().red(),
            _ if text.starts_with("@@") => Style::new().cyan(),
            _ => return line.to_owned(),
        };
        self.styled(text, style) + end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_optional_and_do_not_change_the_text() {
        let diff = "--- a\n+++ b\n@@ -1 +1 @@\n same\n-old\n+new\n";
        assert_eq!(Paint::when(false).diff(diff), diff);
        let painted = Paint::when(true).diff(diff);
        assert!(painted.contains("\u{1b}[31m-old") && painted.contains("\u{1b}[32m+new"), "{painted:?}");
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), diff);
        assert_eq!(Paint::when(false).tone(Tone::Bad, "no"), "no");
        assert_eq!(anstream::adapter::strip_str(&Paint::when(true).severity(Severity::Error)).to_string(), "error");
    }
}
