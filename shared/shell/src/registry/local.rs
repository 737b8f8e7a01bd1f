//! Local directories that replace CatalogSources.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use olm_core::finding::Finding;

/// `--catalog NAME[.NAMESPACE]=DIR`: a file-based catalog in a local directory, under the name of a CatalogSource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogDirectory {
    /// Name of the CatalogSource.
    pub name: String,
    /// Its namespace; by default the global catalog namespace.
    pub namespace: Option<String>,
    /// The directory.
    pub directory: PathBuf,
}

impl FromStr for CatalogDirectory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (catalog, directory) = text.split_once('=').ok_or("expected NAME[.NAMESPACE]=DIR")?;
        // The name of a CatalogSource may contain dots, the name of a namespace may not.
        let (name, namespace) = match catalog.rsplit_once('.') {
            Some((name, namespace)) => (name, Some(namespace)),
            None => (catalog, None),
        };
        if name.is_empty() || namespace == Some("") || directory.is_empty() {
            return Err("expected NAME[.NAMESPACE]=DIR".to_owned());
        }
        Ok(Self { name: name.to_owned(), namespace: namespace.map(str::to_owned), directory: directory.into() })
    }
}

/// Most findings that are printed by a command whose purpose is not validation.
const FIRST_FINDINGS: usize = 3;

/// Returns the first findings of a catalog in a directory, and a line with the command that prints all of them.
pub(crate) fn first_findings<'a>(directory: &'a Path, findings: &'a [Finding]) -> impl Iterator<Item = String> + 'a {
    let more = findings.len().saturating_sub(FIRST_FINDINGS);
    let rest = (more > 0).then(|| {
        let directory = directory.display();
        format!("{more} more findings in {directory}: kubectl olm catalog validate {directory} prints all of them")
    });
    findings.iter().take(FIRST_FINDINGS).map(Finding::one_line).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_has_a_name_an_optional_namespace_and_a_directory() {
        let catalog = |text: &str| text.parse::<CatalogDirectory>().map(|c| (c.name, c.namespace));
        assert_eq!(catalog("tea=dir"), Ok(("tea".to_owned(), None)));
        assert_eq!(catalog("tea.house.shop=a=b"), Ok(("tea.house".to_owned(), Some("shop".to_owned()))));
        for wrong in ["tea", "=dir", "tea=", "tea.=dir", ".ns=dir"] {
            assert!(catalog(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_first_findings_and_the_command_for_the_rest_are_printed() {
        let five = ["a", "b", "c", "d", "e"].map(|message| Finding::new("lost", message));
        let lines = |n: usize| first_findings(Path::new("tea"), &five[..n]).collect::<Vec<_>>();
        assert_eq!(lines(3), ["a", "b", "c"]);
        let rest = "2 more findings in tea: kubectl olm catalog validate tea prints all of them";
        assert_eq!(lines(5), ["a", "b", "c", rest]);
    }
}
