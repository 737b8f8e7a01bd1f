//! The codes for a reason, refined by the messages of OLM and Kubernetes.

use super::code::{self, Code};
use crate::api::cluster_service_version::reason;
use crate::plan::Reason;

/// Returns the codes for a reason, each with its message: one, except for requirements of several kinds.
pub fn classify(reason: &Reason) -> Vec<(&'static Code, String)> {
    let code = match reason {
        Reason::RequirementsNotMet { missing, .. } => return requirements(missing),
        Reason::NoOperatorGroup { .. } => &code::NO_GROUP,
        Reason::TooManyOperatorGroups { .. } => &code::SEVERAL_GROUPS,
        Reason::CatalogNotReady { .. } | Reason::CatalogUnavailable { .. } => &code::CATALOG_NOT_READY,
        Reason::CatalogNotProvided { .. } => &code::CATALOG_MISSING,
        Reason::NamespaceTerminating { .. } => &code::NAMESPACE_TERMINATING,
        Reason::Unsatisfiable { message, .. } => resolution(message),
        Reason::BundleUnpackFailed { message, .. } => unpacking(message).unwrap_or(&code::UNPACK_FAILED),
        Reason::BundleNotProvided { .. } => &code::UNPACK_FAILED,
        Reason::BundleUnpacking { message, .. } | Reason::StatusWaits { message, .. } => {
            unpacking(message).unwrap_or(&code::PROGRESSING)
        }
        Reason::NotHealthy { message, .. } if message.contains("not upgradeable") => &code::NOT_UPGRADEABLE,
        Reason::InstallPlanWaits { .. } | Reason::NotHealthy { .. } | Reason::WaitsForCsv { .. } => &code::PROGRESSING,
        Reason::ApprovalNeeded { .. } => &code::APPROVAL_NEEDED,
        Reason::InstallPlanFailed { message, .. } => install_plan(message).unwrap_or(&code::PLAN_FAILED),
        Reason::InstallPlanRetries { message, .. } => install_plan(message).unwrap_or(&code::PLAN_RETRIES),
        Reason::OptionalNotCreated { .. } => &code::OPTIONAL_MISSING,
        Reason::ApisUnknown { .. } => &code::APIS_UNKNOWN,
        Reason::CsvFailed { failure_reason, .. } => cluster_service_version(failure_reason),
        Reason::Invalid { object, .. } if object.contains("OperatorGroup") => &code::GROUP_INVALID,
        Reason::Invalid { .. } | Reason::Ignored { .. } => &code::INVALID_OBJECT,
        Reason::Missing { needs, .. } if needs.starts_with("CatalogSource ") => &code::CATALOG_MISSING,
        Reason::Missing { .. } => &code::OBJECT_MISSING,
        Reason::Unreadable { .. } => &code::UNREADABLE,
        Reason::PermissionsMissing { .. } => &code::PERMISSIONS_MISSING,
        Reason::Refused { .. } => &code::REFUSED,
        Reason::Panicked { .. } => &code::INTERNAL,
    };
    vec![(code, reason.cause())]
}

/// Returns the code for a failed resolution (olm-behaviour/subscription.md#candidates).
fn resolution(message: &str) -> &'static Code {
    const MESSAGES: [(&str, &Code); 7] = [
        ("no operators found from catalog ", &code::CATALOG_MISSING),
        ("no operators found in package ", &code::PACKAGE_MISSING),
        ("no operators found in channel ", &code::CHANNEL_MISSING),
        ("no operators found with name ", &code::VERSION_MISSING),
        (" originate from package ", &code::CONFLICTING_OPERATORS),
        (" provide ", &code::CONFLICTING_OPERATORS),
        (" requires an operator ", &code::DEPENDENCY_MISSING),
    ];
    let found = MESSAGES.iter().find(|(part, _)| message.contains(part));
    found.map_or(&code::RESOLUTION_FAILED, |(_, code)| code)
}

/// Returns the code for a bundle that is not unpacked (olm-behaviour/subscription.md#unpack-jobs).
fn unpacking(message: &str) -> Option<&'static Code> {
    if message.contains("DeadlineExceeded") {
        return Some(&code::UNPACK_DEADLINE);
    }
    is_of_image(message).then_some(&code::BUNDLE_IMAGE)
}

/// Reports whether a message is about an image that cannot be pulled.
fn is_of_image(message: &str) -> bool {
    const PARTS: [&str; 6] = [
        "ImagePullBackOff",
        "ErrImagePull",
        "ErrImageNeverPull",
        "InvalidImageName",
        "manifest unknown",
        "unauthorized",
    ];
    PARTS.iter().any(|part| message.contains(part))
}

/// Returns the code for a failed step of an InstallPlan (olm-behaviour/installplan.md#phases).
fn install_plan(message: &str) -> Option<&'static Code> {
    if message.contains("exceeded quota") {
        return Some(&code::QUOTA_EXCEEDED);
    }
    if message.contains("is forbidden: User ") {
        return Some(&code::PERMISSIONS_MISSING);
    }
    const MESSAGES: [(&str, &Code); 3] = [
        ("risk of data loss", &code::STORED_VERSION),
        ("error validating existing CRs", &code::INVALID_RESOURCES),
        ("api-server resource not found", &code::API_NOT_SERVED),
    ];
    MESSAGES.iter().find(|(part, _)| message.contains(part)).map(|(_, code)| *code)
}

/// Returns the code for the reason of a failed ClusterServiceVersion (olm-behaviour/csv.md#preconditions).
fn cluster_service_version(failure_reason: &str) -> &'static Code {
    match failure_reason {
        reason::NO_OPERATOR_GROUP => &code::NO_GROUP,
        reason::TOO_MANY_OPERATOR_GROUPS => &code::SEVERAL_GROUPS,
        reason::NO_TARGET_NAMESPACES => &code::GROUP_INVALID,
        reason::UNSUPPORTED_OPERATOR_GROUP => &code::UNSUPPORTED_MODE,
        reason::CONFLICT | reason::STATIC_PROVIDED_APIS => &code::INTERSECTING_GROUPS,
        reason::OWNER_CONFLICT => &code::OWNER_CONFLICT,
        reason::NO_RETRY => &code::PERMISSIONS_MISSING,
        reason::REQUIREMENTS_NOT_MET => &code::REQUIREMENTS_NOT_MET,
        reason::INVALID_INSTALL_STRATEGY | reason::INVALID_WEBHOOK_DESCRIPTION | "InvalidInstallModes" => {
            &code::INVALID_OBJECT
        }
        _ => &code::CSV_FAILED,
    }
}

/// Returns the codes for requirements that are not met, each `Kind name: message`, with the requirements of each code.
fn requirements(missing: &[String]) -> Vec<(&'static Code, String)> {
    let mut found: Vec<(&'static Code, String)> = Vec::new();
    for requirement in missing {
        let code = requirement_code(requirement);
        match found.iter_mut().find(|(known, _)| *known == code) {
            Some((_, message)) => {
                message.push_str("; ");
                message.push_str(requirement);
            }
            None => found.push((code, requirement.clone())),
        }
    }
    found
}

/// Returns the code for a requirement (olm-behaviour/csv.md#requirements).
pub(super) fn requirement_code(requirement: &str) -> &'static Code {
    let is_of = |kind: &str| requirement.split(' ').next() == Some(kind);
    if is_of("ServiceAccount") && requirement.contains(" rule:") {
        &code::PERMISSIONS_MISSING
    } else if is_of("CustomResourceDefinition") || is_of("APIService") || requirement.contains("Native API") {
        &code::REQUIRED_API_MISSING
    } else {
        &code::REQUIREMENTS_NOT_MET
    }
}
