//! Renders an explanation as text.

use std::fmt;

use super::{Bundle, Edit, Excluded, Explained, Explanation, Repair, Statement};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolved { bundles, warnings } => {
                if bundles.is_empty() {
                    writeln!(f, "Nothing to install: all required bundles are installed.")?;
                }
                for bundle in bundles {
                    chosen(f, bundle)?;
                }
                section(f, "But", warnings)
            }
            Self::Failed { reasons, excluded, repairs, .. } => {
                writeln!(f, "There is no resolution.")?;
                section(f, "These contradict each other", reasons)?;
                left_out(f, "Excluded", excluded)?;
                if !repairs.is_empty() {
                    writeln!(f, "Each of these changes makes a resolution possible:")?;
                }
                repairs.iter().try_for_each(|r| writeln!(f, "  - {r}"))
            }
        }
    }
}

fn chosen(f: &mut fmt::Formatter<'_>, explained: &Explained) -> fmt::Result {
    let Explained { bundle, replaces, reasons, rejected } = explained;
    let over = if replaces.is_empty() { String::new() } else { format!(", replaces {replaces}") };
    writeln!(f, "{bundle}{over}")?;
    for said in reasons {
        writeln!(f, "  because {}", said.text)?;
    }
    for Excluded { bundle, reason } in rejected {
        writeln!(f, "  not {bundle}: {}", reason.text)?;
    }
    Ok(())
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, said: &[Statement]) -> fmt::Result {
    if said.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}:")?;
    said.iter().try_for_each(|s| writeln!(f, "  - {}", s.text))
}

fn left_out(f: &mut fmt::Formatter<'_>, title: &str, excluded: &[Excluded]) -> fmt::Result {
    if excluded.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}:")?;
    excluded.iter().try_for_each(|e| writeln!(f, "  - {}: {}", e.bundle, e.reason.text))
}

impl fmt::Display for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package: _, name, version: _, channel, catalog, catalog_namespace } = self;
        write!(f, "{name}")?;
        if !catalog.is_empty() {
            write!(f, " (channel {channel} of {catalog_namespace}/{catalog})")?;
        }
        Ok(())
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edits: Vec<String> = self.edits.iter().map(ToString::to_string).collect();
        f.write_str(&edits.join(", and "))?;
        if self.then.is_empty() {
            f.write_str("; then nothing is installed")
        } else {
            write!(f, "; then these are installed: {}", self.then.join(", "))
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package { subscription, package } => {
                write!(f, "set the package of Subscription {subscription} to {package}")
            }
            Self::Channel { subscription, channel } => {
                write!(f, "set the channel of Subscription {subscription} to {channel}")
            }
            Self::Source { subscription, source, source_namespace } => {
                write!(f, "set the catalog of Subscription {subscription} to {source_namespace}/{source}")
            }
            Self::NoStartingCsv { subscription } => write!(f, "remove startingCSV from Subscription {subscription}"),
            Self::DeleteCatalog { name, namespace } => write!(f, "fix or delete CatalogSource {namespace}/{name}"),
            Self::DeleteCsv { name } => write!(f, "delete ClusterServiceVersion {name}"),
            Self::DeleteSubscription { name } => write!(f, "delete Subscription {name}"),
        }
    }
}
