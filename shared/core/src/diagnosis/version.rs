//! The stages of the namespace's OperatorGroup and of the ClusterServiceVersions.

use super::{StageName, State, Walk, code, deleting, some};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::kinds;
use crate::api::object::ObjectRef;
use crate::api::subscription::Subscription;
use crate::health;
use crate::membership::{self, Group};
use crate::plan::{Reason, Severity};
use crate::world::kind;

impl Walk<'_, '_> {
    /// Walks through the OperatorGroup.
    pub(super) fn group(&mut self) {
        const STAGE: StageName = StageName::OperatorGroup;
        let namespace = self.namespace().to_owned();
        let groups = membership::groups(self.world, &namespace);
        match (&groups[..], self.scope.known.why_unknown(&kind::OPERATOR_GROUP, &namespace)) {
            ([], Some(why)) => {
                let why = why.to_owned();
                self.unknown(STAGE, None, &why);
            }
            ([], None) => {
                let reason = Reason::NoOperatorGroup { namespace: namespace.clone() };
                self.stage(STAGE, None, State::Failed, reason.to_string());
                self.reason(STAGE, kinds::NAMESPACE.object("", &namespace), &reason);
            }
            ([group], _) => self.single_group(*group),
            (several, _) => {
                let names = several.iter().map(|group| group.name().to_owned()).collect();
                let reason = Reason::TooManyOperatorGroups { namespace: namespace.clone(), names };
                self.stage(STAGE, None, State::Failed, reason.to_string());
                self.reason(STAGE, kinds::NAMESPACE.object("", &namespace), &reason);
            }
        }
    }

    fn single_group(&mut self, group: Group<'_>) {
        const STAGE: StageName = StageName::OperatorGroup;
        let object = ObjectRef::from_object(group.json);
        if let Err(why) = membership::wanted_targets(self.world, group) {
            self.stage(STAGE, Some(object.clone()), State::Failed, why.clone());
            self.problem(&code::GROUP_INVALID, STAGE, object, why);
            return;
        }
        if let Err(account) = group.account() {
            let found = self.find(&kind::SERVICE_ACCOUNT, group.namespace(), account);
            match found {
                Ok(None) => {
                    let message = format!("ServiceAccount {account} does not exist");
                    self.stage(STAGE, Some(object.clone()), State::Failed, message.clone());
                    self.problem(&code::ACCOUNT_MISSING, STAGE, object, message);
                }
                Ok(Some(_)) => {
                    let message = format!("ServiceAccount {account} is not in its status yet");
                    self.stage(STAGE, Some(object), State::Waiting, message);
                }
                Err(why) => self.unknown(STAGE, Some(object), &format!("ServiceAccount {account}: {why}")),
            }
            return;
        }
        let targets: Vec<&str> = group.targets().into_iter().collect();
        let (state, message) = match &targets[..] {
            [] => (State::Waiting, "it has no target namespaces in its status".to_owned()),
            [""] => (State::Ok, "it targets all namespaces".to_owned()),
            targets => {
                let names = crate::listing::shortened(targets);
                (
                    State::Ok,
                    format!("it targets {} {names}", if targets.len() == 1 { "namespace" } else { "namespaces" }),
                )
            }
        };
        self.stage(STAGE, Some(object), state, message);
    }

    /// Walks through the new and the installed ClusterServiceVersion.
    pub(super) fn versions(&mut self) {
        const STAGE: StageName = StageName::ClusterServiceVersion;
        let namespace = self.namespace().to_owned();
        for csv in self.csvs.clone() {
            self.version(csv);
        }
        let Some(subscription) = self.subscription else { return };
        let (current, installed) = (subscription.current_csv(), subscription.installed_csv());
        if current.is_empty() && installed.is_empty() {
            self.stage(STAGE, None, State::Waiting, "it follows the InstallPlan");
            return;
        }
        let mut names = vec![current, installed];
        names.dedup();
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            if self.csvs.iter().any(|csv| csv.name() == name) {
                continue;
            }
            let object = kinds::CLUSTER_SERVICE_VERSION.object(&namespace, name);
            match self.find(&kind::CLUSTER_SERVICE_VERSION, &namespace, name) {
                Err(why) => self.unknown(STAGE, Some(object), &why),
                Ok(_) if name == installed => self.deleted(subscription, object),
                Ok(_) => self.stage(STAGE, Some(object), State::Waiting, "it does not exist yet"),
            }
        }
    }

    fn deleted(&mut self, subscription: Subscription<'_>, object: ObjectRef) {
        const STAGE: StageName = StageName::ClusterServiceVersion;
        self.stage(STAGE, Some(object.clone()), State::Failed, "it was deleted, and is not installed again");
        let reason = Reason::Missing {
            object: format!("Subscription {}/{}", subscription.namespace(), subscription.name()),
            needs: format!("ClusterServiceVersion {}", object.name),
        };
        self.reason(STAGE, object, &reason);
    }

    fn version(&mut self, csv: Csv<'_>) {
        const STAGE: StageName = StageName::ClusterServiceVersion;
        let object = ObjectRef::from_object(csv.json);
        if let Some(message) = deleting(csv.json) {
            self.stage(STAGE, Some(object), State::Waiting, message);
            return;
        }
        let Some(reason) = health::reason_of_csv(csv) else {
            return self.stage(STAGE, some(csv.json), State::Ok, csv.phase_text());
        };
        let is_new = csv.phase() == Phase::None;
        if is_new && self.scope.controllers == Some(false) {
            let message = "no controllers of OLM are running";
            self.stage(STAGE, Some(object.clone()), State::Failed, message);
            return self.problem(&code::NO_CONTROLLERS, STAGE, object, message);
        }
        let phase = if is_new { "new" } else { csv.phase_text() };
        let why = match &reason {
            Reason::CsvFailed { failure_reason, message, .. } => format!("{failure_reason}: {message}"),
            Reason::RequirementsNotMet { missing, .. } => missing.join("; "),
            Reason::NotHealthy { message, .. } => message.clone(),
            other => other.to_string(),
        };
        let is_blocked = reason.severity() == Severity::Blocked;
        let state = if is_blocked { State::Failed } else { State::Waiting };
        self.stage(STAGE, Some(object.clone()), state, format!("{phase}: {why}"));
        let codes = super::classify(&reason);
        if is_blocked || codes.iter().any(|(code, _)| **code != code::PROGRESSING) {
            self.reason(STAGE, object.clone(), &reason);
        }
        // The requirements of a ClusterServiceVersion that has failed are in its status, too.
        if csv.reason() == crate::api::cluster_service_version::reason::REQUIREMENTS_NOT_MET
            && csv.phase() == Phase::Failed
        {
            let (namespace, name) = (csv.namespace().to_owned(), csv.name().to_owned());
            let missing = health::unmet_requirements(csv);
            self.reason(STAGE, object, &Reason::RequirementsNotMet { namespace, name, missing });
        }
    }
}
