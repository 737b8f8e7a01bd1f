//! OperatorGroups: their status, the APIs that they provide, and the ClusterRoles that aggregate permissions on these APIs
//! (olm-behaviour/operatorgroup.md#sync-order).
//!
//! ```text
//!   OperatorGroup --status.namespaces--> membership --> ClusterServiceVersions, copies
//!        |        --olm.providedAPIs (only pruned here)
//!        +------- roles --> olm.og.NAME.{admin,edit,view}-HASH, filled by Kubernetes' aggregation
//!   namespace: the labels of the namespaces that groups target
//! ```
//!
//! Not used by controllers, but by commands:
//!
//! ```text
//!   intersection  which groups conflict  --> remedy   how to resolve it
//!   compile       an install mode and namespaces -> a group
//!   spec_errors   what the API server would reject in a group
//!   create_delete where a group is created, and which one may be deleted
//! ```

pub mod compile;
pub mod create_delete;
pub mod intersection;
mod namespace;
pub mod remedy;
mod roles;
pub mod spec_errors;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::namespace::plan as plan_namespace;
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::conditions::{self, Conditions};
use crate::api::operator_group::condition;
use crate::api::{labels, object};
use crate::membership::{self, Apis, Group};
use crate::plan::{Action, Key, Plan, Reason};
use crate::world::{Reader, kind};

/// Plans for one OperatorGroup.
pub fn plan(world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let Some(group) = world.json(&kind::OPERATOR_GROUP, &key.namespace, &key.name).map(Group::new) else {
        return Plan::act(roles::cleanup(world, key));
    };
    let mut reasons = Vec::new();
    let mut status = Status::new(group);
    let several = membership::groups(world, group.namespace()).len() > 1;
    status.condition(condition::MULTIPLE, several.then_some(MULTIPLE), now);
    let account = ServiceAccount::find(world, group);
    status.service_account(&account, now);
    let mut actions = Vec::new();
    match (account, membership::wanted_targets(world, group)) {
        (ServiceAccount::Missing(name), _) => reasons.push(Reason::Missing {
            object: format!("OperatorGroup {}/{}", group.namespace(), group.name()),
            needs: format!("ServiceAccount {}/{name}", group.namespace()),
        }),
        (_, Err(message)) => reasons
            .push(Reason::Invalid { object: format!("OperatorGroup {}/{}", group.namespace(), group.name()), message }),
        (account, Ok(targets)) => {
            status.targets(&targets);
            if let ServiceAccount::Found(json) = account
                && object::label(json, labels::MANAGED) != Some("true")
            {
                actions.push(Action::label(json, json!({ labels::MANAGED: "true" })));
            }
            let csvs: Vec<&Value> = membership::originals(world, group.namespace()).collect();
            let annotated = group.provided();
            let apis = csvs.iter().fold(annotated.clone(), |all, csv| all.union(&Apis::from_csv(csv)));
            actions.extend(roles::ensure(world, group, &apis));
            let members: Vec<&Value> = csvs.into_iter().filter(|csv| group.takes(csv)).collect();
            if !status.is_news(group) {
                actions.extend(prune(group, &annotated, &members));
            }
        }
    }
    actions.splice(0..0, status.write(group, now));
    Plan { actions, reasons, ..Plan::default() }
}

/// Reason and message of a condition that is True.
type Cause = (&'static str, &'static str);

const MULTIPLE: Cause = ("MultipleOperatorGroupsFound", "Multiple OperatorGroup found in the same namespace");

/// The ServiceAccount that installs the group's members, if it names one.
enum ServiceAccount<'a> {
    None,
    Missing(&'a str),
    Found(&'a Value),
}

impl<'a> ServiceAccount<'a> {
    fn find(world: &Reader<'a>, group: Group<'a>) -> Self {
        let name = group.service_account();
        if name.is_empty() {
            return Self::None;
        }
        world.json(&kind::SERVICE_ACCOUNT, group.namespace(), name).map_or(Self::Missing(name), Self::Found)
    }
}

/// The new status of an OperatorGroup while it is built.
struct Status {
    json: Value,
}

impl Status {
    fn new(group: Group<'_>) -> Self {
        Self { json: object::at(group.json, &["status"]).clone() }
    }

    /// Sets a condition, which is True as long as it exists, or removes it.
    fn condition(&mut self, type_: &str, because: Option<(&str, &str)>, now: Timestamp) {
        let mut conditions = Conditions::from_status(&self.json).json().to_vec();
        let Some((reason, message)) = because else {
            conditions::remove(&mut conditions, &[type_]);
            return self.set("conditions", conditions);
        };
        let fields = [("type", type_), ("status", conditions::TRUE), ("reason", reason), ("message", message)];
        let wanted = fields.into_iter().map(|(key, text)| (key.to_owned(), text.into())).collect();
        if conditions::set_changed(&mut conditions, wanted, Some(now)) {
            self.set("conditions", conditions);
        }
    }

    /// Records the ServiceAccount (olm-behaviour/operatorgroup.md#serviceaccount). Its resourceVersion is written as by
    /// OLM, but a new resourceVersion alone causes no write.
    fn service_account(&mut self, account: &ServiceAccount<'_>, now: Timestamp) {
        const TYPE: &str = condition::SERVICE_ACCOUNT;
        if let ServiceAccount::Missing(name) = account {
            let message = format!("ServiceAccount {name} not found");
            self.condition(TYPE, Some(("ServiceAccountNotFound", &message)), now);
        } else {
            self.condition(TYPE, None, now);
        }
        let ServiceAccount::Found(account) = account else {
            return self.set("serviceAccountRef", Value::Null);
        };
        let mut wanted = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "namespace": object::namespace(account), "name": object::name(account), "uid": object::uid(account),
        });
        if !object::covers(object::at(&self.json, &["serviceAccountRef"]), &wanted) {
            let version = object::resource_version(account);
            object::map_mut(&mut wanted, &[]).insert("resourceVersion".to_owned(), version.into());
            self.set("serviceAccountRef", wanted);
        }
    }

    fn targets(&mut self, targets: &BTreeSet<String>) {
        let recorded: BTreeSet<&str> =
            object::list(&self.json, &["namespaces"]).iter().filter_map(Value::as_str).collect();
        if recorded != targets.iter().map(String::as_str).collect() {
            self.set("namespaces", targets.iter().cloned().collect::<Vec<_>>());
        }
    }

    /// Sets a field, or removes it when the value is empty.
    fn set(&mut self, field: &str, value: impl Into<Value>) {
        let value = value.into();
        if value.is_null() || value.as_array().is_some_and(Vec::is_empty) {
            if let Some(map) = self.json.as_object_mut() {
                map.remove(field);
            }
        } else {
            object::map_mut(&mut self.json, &[]).insert(field.to_owned(), value);
        }
    }

    fn is_news(&self, group: Group<'_>) -> bool {
        self.json != *object::at(group.json, &["status"])
    }

    fn write(mut self, group: Group<'_>, now: Timestamp) -> Option<Action> {
        if !self.is_news(group) {
            return None;
        }
        self.set("lastUpdated", object::time(now));
        let mut new = group.json.clone();
        object::map_mut(&mut new, &[]).insert("status".to_owned(), self.json);
        Some(Action::UpdateStatus(new))
    }
}

/// Removes APIs from the annotation that no member provides (olm-behaviour/operatorgroup.md#provided-apis): OLM considers
/// every ClusterServiceVersion of the namespace, its design those whose install modes support the group. It waits for new
/// members with APIs of their own, because they may replace a deleted one.
fn prune(group: Group<'_>, annotated: &Apis, members: &[&Value]) -> Option<Action> {
    if group.is_static() {
        return None;
    }
    let arriving = |csv: &&Value| {
        matches!(Csv::new(csv).phase(), Phase::None | Phase::Pending)
            && !object::is_deleting(csv)
            && !Apis::from_csv(csv).0.is_subset(&annotated.0)
    };
    if members.iter().any(arriving) {
        return None;
    }
    let provided = members.iter().fold(Apis::default(), |all, csv| all.union(&Apis::from_csv(csv)));
    let kept = annotated.clone().intersection(&provided);
    (kept != *annotated).then(|| membership::annotate(group, &kept))
}
