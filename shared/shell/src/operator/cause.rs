//! Reasons in the context of one operator, whose name and namespace are known.

use olm_core::plan::Reason;

/// Returns a reason without the names that are in other columns.
pub(super) fn cause(reason: &Reason) -> String {
    match reason {
        Reason::ApprovalNeeded { name, .. } => format!("InstallPlan {name} waits for approval"),
        Reason::Unsatisfiable { message, .. }
        | Reason::NotHealthy { message, .. }
        | Reason::StatusWaits { message, .. } => message.clone(),
        Reason::CsvFailed { failure_reason, message, .. } => format!("{failure_reason}: {message}"),
        Reason::RequirementsNotMet { missing, .. } => format!("requirements are not met: {}", missing.join("; ")),
        Reason::InstallPlanFailed { name, message, .. } => format!("InstallPlan {name} failed: {message}"),
        Reason::InstallPlanWaits { name, message, .. } => format!("InstallPlan {name} waits: {message}"),
        other => other.cause(),
    }
}
