//! InstallPlans: what a resolution installs, step by step (reference/catalog-operator.md §5).

pub mod steps;
#[cfg(test)]
mod tests;
