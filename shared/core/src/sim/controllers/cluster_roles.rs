//! Aggregated ClusterRoles: the rules of all selected roles, in the order of their names.

use jiff::Timestamp;
use serde_json::Value;

use super::super::api_server::ApiServer;
use super::super::selector;
use crate::api::kinds::RBAC_GROUP;
use crate::api::object::{at, is_deleting, list, map_mut, name};

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    let aggregates = |role: &Value| !at(role, &["aggregationRule"]).is_null() && !is_deleting(role);
    for role in server.pick(RBAC_GROUP, "ClusterRole", aggregates) {
        let selectors = list(&role, &["aggregationRule", "clusterRoleSelectors"]);
        let mut rules: Vec<Value> = Vec::new();
        for selector in selectors {
            for other in server.list(RBAC_GROUP, "ClusterRole", None) {
                if name(other) == name(&role) || !selector::matches(selector, at(other, &["metadata", "labels"])) {
                    continue;
                }
                for rule in list(other, &["rules"]) {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
        }
        if rules != list(&role, &["rules"]) {
            let mut aggregated = role.clone();
            let rules = if rules.is_empty() { Value::Null } else { rules.into() };
            map_mut(&mut aggregated, &[]).insert("rules".into(), rules);
            server.write_back(aggregated, None, now);
        }
    }
}
