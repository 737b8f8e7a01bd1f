//! An explanation for people.

use std::fmt;

use super::{Bundle, Edit, Excluded, Explained, Explanation, Repair, Said};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolved { bundles, warnings } => {
                if bundles.is_empty() {
                    writeln!(f, "Nothing to install: what is wanted is there.")?;
                }
                for bundle in bundles {
                    chosen(f, bundle)?;
                }
                section(f, "But", warnings)
            }
            Self::Failed { because, excluded, repairs, .. } => {
                writeln!(f, "There is no resolution.")?;
                section(f, "These cannot hold together", because)?;
                left_out(f, "Left out", excluded)?;
                if !repairs.is_empty() {
                    writeln!(f, "Any of these would help (each was tried):")?;
                }
                repairs.iter().try_for_each(|r| writeln!(f, "  - {r}"))
            }
        }
    }
}

fn chosen(f: &mut fmt::Formatter<'_>, explained: &Explained) -> fmt::Result {
    let Explained { bundle, replaces, because, passed_over } = explained;
    let over = if replaces.is_empty() { String::new() } else { format!(", in place of {replaces}") };
    writeln!(f, "{bundle}{over}")?;
    for said in because {
        writeln!(f, "  because {}", said.text)?;
    }
    for Excluded { bundle, because } in passed_over {
        writeln!(f, "  not {bundle}: {}", because.text)?;
    }
    Ok(())
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, said: &[Said]) -> fmt::Result {
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
    excluded.iter().try_for_each(|e| writeln!(f, "  - {}: {}", e.bundle, e.because.text))
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
            f.write_str("; nothing is installed then")
        } else {
            write!(f, "; installed then: {}", self.then.join(", "))
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package { subscription, package } => {
                write!(f, "let Subscription {subscription} name package {package}")
            }
            Self::Channel { subscription, channel } => {
                write!(f, "let Subscription {subscription} follow channel {channel}")
            }
            Self::Source { subscription, source, source_namespace } => {
                write!(f, "let Subscription {subscription} take from catalog {source_namespace}/{source}")
            }
            Self::NoStartingCsv { subscription } => write!(f, "remove startingCSV from Subscription {subscription}"),
            Self::DeleteCatalog { name, namespace } => write!(f, "repair or delete CatalogSource {namespace}/{name}"),
            Self::DeleteCsv { name } => write!(f, "delete ClusterServiceVersion {name}"),
            Self::DeleteSubscription { name } => write!(f, "delete Subscription {name}"),
        }
    }
}
