//! Fixes findings that can be fixed without losing an intended setting, with one request each, bound to the
//! resourceVersion that was read.

use kube::api::{DeleteParams, Preconditions};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::lint::{Change, Problem};
use olm_core::world::{GroupKind, Reader};
use serde_json::{Value, json};

use super::Options;
use crate::cli::findings::Format;
use crate::cli::problems::subject;
use crate::cli::prompt::confirm;
use crate::cli::{CliError, Printer};
use crate::cluster::api::Api;
use crate::observe::ClusterState;

/// A fixed finding.
pub(super) struct Fixed {
    pub(super) problem: Problem,
    pub(super) command: String,
}

/// Fixes problems, and removes the fixed ones from the list.
pub(super) async fn fix(
    api: &Api,
    state: &ClusterState,
    problems: &mut Vec<Problem>,
    options: &Options,
    printer: &mut Printer,
) -> Result<Vec<Fixed>, CliError> {
    let mut fixed = Vec::new();
    let mut left = Vec::new();
    for problem in std::mem::take(problems) {
        let safe = problem.fix.as_ref().filter(|fix| fix.is_safe);
        let Some((fix, change)) = safe.and_then(|fix| Some((fix, fix.change.as_ref()?))) else {
            left.push(problem);
            continue;
        };
        let Some(request) = Request::from_change(change, state) else {
            left.push(problem);
            continue;
        };
        let command = fix.command().unwrap_or_default();
        let object = subject(&problem.object);
        if let Err(refusal) = request.send(api, true).await {
            printer.warn(format_args!("{object} cannot be fixed: the server refuses the change: {}", refusal.message));
            left.push(problem);
            continue;
        }
        printer.talk(format_args!("{object}: {} [{}]", problem.message, problem.rule.code));
        printer.talk(format_args!("  {command}"));
        if !confirm(printer, "Apply this fix?", options.yes)? {
            left.push(problem);
            continue;
        }
        match request.send(api, false).await {
            Ok(()) => {
                if options.format == Format::Text {
                    printer.line(format_args!("fixed: {object} [{}]", problem.rule.code))?;
                }
                fixed.push(Fixed { problem, command });
            }
            Err(refusal) => {
                let why =
                    if refusal.is_conflict() { "it has changed in the meantime" } else { refusal.message.as_str() };
                printer.warn(format_args!("{object} was not fixed: {why}"));
                left.push(problem);
            }
        }
    }
    *problems = left;
    Ok(fixed)
}

/// A change of one object at the resourceVersion that was read.
struct Request<'a> {
    target: &'a ObjectRef,
    uid: String,
    resource_version: String,
    /// A merge patch; `None` deletes the object.
    patch: Option<&'a Value>,
}

impl<'a> Request<'a> {
    fn from_change(change: &'a Change, state: &ClusterState) -> Option<Self> {
        let (target, patch) = match change {
            Change::Patch(target, patch) => (target, Some(patch)),
            Change::Delete(targets) => match &targets[..] {
                [target] => (target, None),
                _ => return None,
            },
            Change::Apply(_) | Change::Command(_) => return None,
        };
        let gk = GroupKind::new(&target.gvk.group, &target.gvk.kind);
        let world = Reader::new(&state.world);
        let object = world.json(&gk, &target.namespace, &target.name)?;
        let (uid, resource_version) = (object::uid(object).to_owned(), object::resource_version(object).to_owned());
        Some(Self { target, uid, resource_version, patch })
    }

    async fn send(&self, api: &Api, dry_run: bool) -> Result<(), Status> {
        let Self { target, uid, resource_version, patch } = self;
        let Some(patch) = patch else {
            let preconditions =
                Preconditions { uid: Some(uid.clone()), resource_version: Some(resource_version.clone()) };
            let params = DeleteParams { dry_run, preconditions: Some(preconditions), ..DeleteParams::default() };
            return match api.delete(target, &params).await {
                // Another client deleted it first.
                Err(refusal) if refusal.is_not_found() => Ok(()),
                answer => answer.map(drop),
            };
        };
        let mut patch = (*patch).clone();
        let metadata = object::map_mut(&mut patch, &["metadata"]);
        metadata.insert("uid".to_owned(), json!(uid));
        metadata.insert("resourceVersion".to_owned(), json!(resource_version));
        let answer = if dry_run { api.dry_run_merge(target, &patch).await } else { api.merge(target, &patch).await };
        answer.map(drop)
    }
}
