//! Conditions that a step waits for: an object exists, is deleted, or has a value at a path.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use olm_core::api::object::{label, name, namespace, text};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::store::Store;

/// A condition on the objects of a kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Their kind.
    pub kind: String,
    /// Their namespace; any if absent.
    pub namespace: Option<String>,
    /// Their name; any if absent or `any`.
    pub name: Option<String>,
    /// Labels that they have.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The path of the value, like `status.conditions[type=Ready].status`; a dot within a key is written `\.`. If absent, the
    /// existence of the object is checked.
    pub path: Option<String>,
    /// The value that one of them must have at the path.
    pub equals: Option<Value>,
    /// A text that the value of one of them must contain.
    pub contains: Option<String>,
    /// None of them may have a value at the path.
    #[serde(default)]
    pub absent: bool,
}

impl Condition {
    /// Returns whether the condition holds.
    pub fn holds(&self, store: &Store) -> bool {
        let mut values = store.objects().values().filter(|o| self.is_about(o)).filter_map(|o| match &self.path {
            Some(path) => dig(o, path),
            None => Some(o.as_ref()),
        });
        match (&self.contains, &self.equals) {
            _ if self.absent => values.next().is_none(),
            (Some(part), _) => values.any(|v| as_text(v).contains(part.as_str())),
            (None, Some(expected)) => values.any(|v| v == expected),
            (None, None) => values.next().is_some(),
        }
    }

    fn is_about(&self, object: &Value) -> bool {
        text(object, &["kind"]) == self.kind
            && self.namespace.as_deref().is_none_or(|wanted| wanted == namespace(object))
            && self.name.as_deref().is_none_or(|wanted| wanted == "any" || wanted == name(object))
            && self.labels.iter().all(|(key, value)| label(object, key) == Some(value))
    }
}

impl fmt::Display for Condition {
    /// `Kind/namespace/name .path = value`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        for part in [&self.namespace, &self.name].into_iter().flatten() {
            write!(f, "/{part}")?;
        }
        for (key, value) in &self.labels {
            write!(f, " {key}={value}")?;
        }
        if let Some(path) = &self.path {
            write!(f, " .{path}")?;
        }
        match (&self.contains, &self.equals) {
            _ if self.absent => f.write_str(" absent"),
            (Some(part), _) => write!(f, " contains {part:?}"),
            (None, Some(value)) => write!(f, " = {}", as_text(value)),
            (None, None) => f.write_str(" exists"),
        }
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A key with the selected entry of its list: `conditions[type=Ready]`, `containers[0]`, `[0]`.
#[expect(clippy::expect_used, reason = "the pattern is a constant")]
static PART: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"((?:[^.\[\]\\]|\\.)+)?(?:\[([^\]]*)\])?").expect("constant pattern"));

/// Returns the value at a path.
fn dig<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = object;
    for part in PART.captures_iter(path) {
        if let Some(key) = part.get(1) {
            at = at.get(key.as_str().replace("\\.", "."))?;
        }
        if let Some(select) = part.get(2) {
            let list = at.as_array()?;
            at = match select.as_str().split_once('=') {
                Some((key, value)) => list.iter().find(|x| x.get(key).is_some_and(|v| as_text(v) == value))?,
                None => list.get(select.as_str().parse::<usize>().ok()?)?,
            };
        }
    }
    Some(at).filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::store::Change;
    use super::*;

    fn holds(condition: &str, objects: &[Value]) -> bool {
        let mut store = Store::default();
        for object in objects {
            store.take(Change::Applied(object.clone().into()), Duration::ZERO);
        }
        serde_yaml::from_str::<Condition>(condition).unwrap().holds(&store)
    }

    #[test]
    fn values_are_found_by_key_index_and_field() {
        let object = json!({"metadata": {"annotations": {"olm.providedAPIs": "Rose"}}, "status": {"list": [{"type": "A"}, {"type": "B", "on": true}]}});
        assert_eq!(dig(&object, r"metadata.annotations.olm\.providedAPIs"), Some(&json!("Rose")));
        assert_eq!(dig(&object, "status.list[type=B].on"), Some(&json!(true)));
        assert_eq!(dig(&object, "status.list[0].type"), Some(&json!("A")));
        for nowhere in
            ["status.list[type=C].on", "status.list[2].type", "status.none.at.all", "metadata.annotations.olm.x"]
        {
            assert_eq!(dig(&object, nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn conditions_check_existence_value_substring_and_absence() {
        let rose = json!({"kind": "Rose", "metadata": {"name": "red", "namespace": "garden"}, "status": {"phase": "Blooming"}});
        let objects = [rose];
        let rose = "{kind: Rose, namespace: garden, name: any";
        assert!(holds(&format!("{rose}}}"), &objects));
        assert!(holds(&format!("{rose}, path: status.phase, equals: Blooming}}"), &objects));
        assert!(holds(&format!("{rose}, path: status.phase, contains: loom}}"), &objects));
        assert!(holds(&format!("{rose}, path: status.reason, absent: true}}"), &objects));
        assert!(!holds(&format!("{rose}, path: status.phase, equals: Withered}}"), &objects));
        assert!(!holds(&format!("{rose}, path: status.reason}}"), &objects));
        assert!(!holds(&format!("{rose}, absent: true}}"), &objects));
        assert!(holds("{kind: Rose, namespace: field, absent: true}", &objects));
        assert!(holds("{kind: Rose, name: blue, absent: true}", &objects));
    }
}
