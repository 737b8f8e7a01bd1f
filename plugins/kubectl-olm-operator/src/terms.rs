//! The conditions that an InstallPlan must meet before it is approved.

use olm_shell::installplan::policy::Terms;

/// Flags for the conditions, as of `kubectl olm install-plan approve`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TermsFlags {
    /// Continue only if this expression is true (may be repeated): CEL over the fields of install-plan explain -o json
    #[arg(long = "if", value_name = "EXPR")]
    policies: Vec<String>,
    /// Allow InstallPlans that also install unrelated operators
    #[arg(long)]
    allow_bystanders: bool,
    /// Allow InstallPlans that would fail, and those whose result is unknown because OperatorGroups cannot be read
    #[arg(long)]
    allow_failing: bool,
}

impl TermsFlags {
    /// Returns the conditions.
    pub(crate) fn terms(self) -> Terms {
        let Self { policies, allow_bystanders, allow_failing } = self;
        Terms { explained: None, allow_bystanders, allow_failing, policies, only_csvs: Vec::new() }
    }
}
