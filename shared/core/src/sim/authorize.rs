//! Authorization of a ServiceAccount in the simulated cluster, with the API server's messages for refused requests.

use serde_json::{Value, json};

use super::ApiServer;
use crate::api::object;
use crate::api::status::Status;
use crate::plan::{Account, Action, Verb};
use crate::rbac::{self, Granted};
use crate::world::{Reader, World, kind};

/// Refuses requests that RBAC does not permit to the ServiceAccount, and grants of permissions that the account does not hold.
pub(super) fn authorize(api: &ApiServer, world: &World, account: &Account, action: &Action) -> Result<(), Status> {
    let (target, verb) = (
        action.target(),
        match action.verb() {
            Verb::Create => "create",
            Verb::Update | Verb::UpdateStatus => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::Emit | Verb::Ask => return Ok(()),
        },
    );
    // A request for a kind that is not served fails for that reason.
    let Some(kind) = api.kind(&target.gvk.group, &target.gvk.kind) else { return Ok(()) };
    let (name, namespace) = (if verb == "create" { "" } else { &target.name }, target.namespace.as_str());
    let mut rule = json!({ "verbs": [verb], "apiGroups": [kind.group], "resources": [kind.plural] });
    if !name.is_empty() {
        rule["resourceNames"] = json!([name]);
    }
    let reader = Reader::new(world);
    let granted = Granted::to(&reader, (&account.namespace, &account.name), kind.namespaced.then_some(namespace));
    if granted.allows(&rule).is_ok_and(|allowed| allowed) {
        return may_grant(api, &reader, account, action);
    }
    let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
    let place =
        if kind.namespaced { format!("in the namespace {namespace:?}") } else { "at the cluster scope".to_owned() };
    let message = format!(
        "{}{named} is forbidden: User {:?} cannot {verb} resource {:?} in API group {:?} {place}",
        kind.resource(),
        account.user(),
        kind.plural,
        kind.group,
    );
    Err(Status::new(403, "Forbidden", message))
}

fn may_grant(api: &ApiServer, reader: &Reader<'_>, account: &Account, action: &Action) -> Result<(), Status> {
    let (Action::Create(object) | Action::Update(object)) = action else { return Ok(()) };
    let rules_of = |role: &str, name: &str| {
        let kind = if role == "Role" { &kind::ROLE } else { &kind::CLUSTER_ROLE };
        let namespace = if role == "Role" { object::namespace(object) } else { "" };
        let found = reader.json(kind, namespace, name).map(|role| object::list(role, &["rules"]).to_vec());
        found.unwrap_or_default()
    };
    let lacking = rbac::escalation(reader, (&account.namespace, &account.name), object, rules_of);
    if lacking.is_empty() {
        return Ok(());
    }
    let rules: Vec<String> = lacking.iter().map(go_rule).collect();
    let message = format!(
        "{} {:?} is forbidden: user {:?} (groups=[\"system:serviceaccounts\" \"system:serviceaccounts:{}\" \
         \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{}",
        api.kind("rbac.authorization.k8s.io", object::kind(object))
            .map_or_else(String::new, super::kinds::ResourceKind::resource),
        object::name(object),
        account.user(),
        account.namespace,
        rules.join("\n"),
    );
    Err(Status::new(403, "Forbidden", message))
}

/// Formats a rule as the API server does in its error messages.
fn go_rule(rule: &Value) -> String {
    let fields = [
        ("NonResourceURLs", "nonResourceURLs"),
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    ];
    let said = fields.into_iter().filter(|(_, field)| !object::list(rule, &[field]).is_empty()).map(|(name, field)| {
        let items: Vec<String> = object::list(rule, &[field]).iter().map(Value::to_string).collect();
        format!("{name}:[{}]", items.join(" "))
    });
    format!("{{{}}}", said.collect::<Vec<_>>().join(", "))
}
