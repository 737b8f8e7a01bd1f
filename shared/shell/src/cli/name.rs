//! The name by which the user called this program, for usage text and examples that can be copied.

use std::ffi::OsStr;
use std::path::Path;

use super::CliError;

/// Returns the command that starts this program, from `argv[0]`, by kubectl's rules for plugins: `-` in the file name
/// separates words and `_` stands for a `-` within a word. `kubectl-olm-run` is `kubectl olm run`,
/// `kubectl-olm-install_plan` is `kubectl olm install-plan`, and krew's link `kubectl-olm_run` is `kubectl olm-run`.
/// Any other file name is returned unchanged.
pub fn spelled(argv0: &OsStr) -> String {
    let file = Path::new(argv0).file_name().unwrap_or(argv0).to_string_lossy();
    let file = file.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(&file);
    match file.strip_prefix("kubectl-") {
        Some(words) => format!("kubectl {}", words.replace('-', " ").replace('_', "-")),
        None => file.to_owned(),
    }
}

/// Returns the file names of the plugin of `kubectl olm WORD`, in order of precedence: kubectl's own spelling, the
/// plain one, and the link that krew creates for a plugin named `olm-WORD`.
pub fn plugin_files(word: &str) -> Vec<String> {
    let suffix = std::env::consts::EXE_SUFFIX;
    let underscored = word.replace('-', "_");
    let mut files = vec![format!("kubectl-olm-{underscored}{suffix}")];
    if underscored != word {
        files.push(format!("kubectl-olm-{word}{suffix}"));
    }
    files.push(format!("kubectl-olm_{underscored}{suffix}"));
    files
}

/// Returns the command of a plugin file, the reverse of [`plugin_files`], or `None` if the file is not a plugin. Files
/// with a dot in their names are not: a build folder has `kubectl-olm-run.d` beside `kubectl-olm-run`.
pub fn plugin_word(file: &str) -> Option<String> {
    let file = file.strip_suffix(std::env::consts::EXE_SUFFIX)?;
    let word = file.strip_prefix("kubectl-olm-").or_else(|| file.strip_prefix("kubectl-olm_"))?;
    (!word.is_empty() && !word.contains('.')).then(|| word.replace('_', "-"))
}

/// Returns the name in a reference to an object of a kind (in lower case), in the forms of kubectl: `NAME`,
/// `installplan/NAME`, `installplans/NAME`, `installplan.operators.coreos.com/NAME`.
///
/// # Errors
/// The reference is to another kind.
pub fn bare<'t>(text: &'t str, kind: &str) -> Result<&'t str, CliError> {
    let Some((resource, name)) = text.split_once('/') else { return Ok(text) };
    let word = resource.split('.').next().unwrap_or_default().to_lowercase();
    let is_of_kind = word == kind || word.strip_suffix('s') == Some(kind);
    if is_of_kind && !name.is_empty() && !name.contains('/') {
        Ok(name)
    } else {
        Err(CliError::usage(format!("{text:?} does not name a {kind}")).hint(format!("write NAME or {kind}/NAME")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_spelled_as_typed() {
        for (file, words) in [
            ("/usr/local/bin/kubectl-olm", "kubectl olm"),
            ("kubectl-olm-run", "kubectl olm run"),
            ("./kubectl-olm-install_plan", "kubectl olm install-plan"),
            ("/opt/krew/bin/kubectl-olm_run", "kubectl olm-run"),
            ("olm-run", "olm-run"),
        ] {
            assert_eq!(spelled(OsStr::new(file)), words);
        }
    }

    #[test]
    fn names_are_taken_as_kubectl_prints_them() {
        for text in ["a", "installplan/a", "installplans/a", "installplan.operators.coreos.com/a", "InstallPlan/a"] {
            assert_eq!(bare(text, "installplan"), Ok("a"));
        }
        for text in ["package/a", "installplan/", "installplan/x/a", "/a"] {
            assert!(bare(text, "installplan").is_err(), "{text}");
        }
    }

    #[test]
    fn words_and_files_go_both_ways() {
        let files = plugin_files("install-plan");
        assert_eq!(files, ["kubectl-olm-install_plan", "kubectl-olm-install-plan", "kubectl-olm_install_plan"]);
        for file in files {
            assert_eq!(plugin_word(&file).as_deref(), Some("install-plan"));
        }
        assert_eq!(plugin_word("kubectl-olm"), None);
        assert_eq!(plugin_word("kubectl-krew"), None);
        assert_eq!(plugin_word("kubectl-olm-run.d"), None);
    }
}
