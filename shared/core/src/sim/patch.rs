//! Merge, JSON and strategic merge patches.

use serde_json::{Map, Value};

use super::kinds::ResourceKind;
use super::lists::{Merge, merge_of, same_entry};
use crate::api::object::gvk;
use crate::api::status::Status;

/// The body of a PATCH.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// `application/merge-patch+json`
    Merge(Value),
    /// `application/json-patch+json`
    Json(Value),
    /// `application/strategic-merge-patch+json`, for Kubernetes' own kinds.
    Strategic(Value),
    /// `application/apply-patch+yaml`: server-side apply. Ownership is tracked for fields that managers applied to this server,
    /// not for fields written by PUT or other patches.
    Apply {
        /// The requested fields.
        object: Value,
        /// The field manager.
        manager: String,
        /// Take ownership of fields from other managers.
        force: bool,
    },
}

/// Returns the stored object with the patch applied.
pub(super) fn patched(kind: &ResourceKind, stored: &Value, patch: Patch) -> Result<Value, Status> {
    let mut object = stored.clone();
    match patch {
        Patch::Merge(patch) => {
            if !patch.is_object() {
                return Err(bad_request("cannot apply a merge patch that is not an object"));
            }
            json_patch::merge(&mut object, &patch);
        }
        Patch::Json(patch) => {
            let patch: json_patch::Patch =
                serde_json::from_value(patch).map_err(|why| bad_request(&format!("error decoding patch: {why}")))?;
            json_patch::patch(&mut object, &patch).map_err(|_| {
                Status::new(422, "Invalid", "the server rejected our request due to an error in our request")
            })?;
        }
        Patch::Strategic(patch) => {
            let version = gvk(stored).version;
            object =
                Strategic { kind, version: &version }.merge(&mut Vec::new(), Some(object), patch)?.unwrap_or_default();
        }
        Patch::Apply { object: applied, .. } => object = applied,
    }
    Ok(object)
}

fn bad_request(message: &str) -> Status {
    Status::new(400, "BadRequest", message)
}

/// Returns whether a key of a strategic patch is a directive and not a field.
fn is_directive(key: &str) -> bool {
    key.starts_with('$')
}

struct Strategic<'a> {
    kind: &'a ResourceKind,
    version: &'a str,
}

impl Strategic<'_> {
    /// Returns the patched value, or `None` if the patch removes it.
    fn merge(&self, path: &mut Vec<String>, value: Option<Value>, patch: Value) -> Result<Option<Value>, Status> {
        match patch {
            Value::Null => Ok(None),
            Value::Object(patch) => self.merge_map(path, value, patch).map(Some),
            Value::Array(patch) => self.merge_list(path, value, patch).map(Some),
            other => Ok(Some(other)),
        }
    }

    fn merge_map(
        &self,
        path: &mut Vec<String>,
        value: Option<Value>,
        patch: Map<String, Value>,
    ) -> Result<Value, Status> {
        let mut map = match value {
            Some(Value::Object(map)) if patch.get("$patch").is_none_or(|how| how != "replace") => map,
            _ => Map::new(),
        };
        if let Some(Value::Array(kept)) = patch.get("$retainKeys") {
            map.retain(|key, _| kept.iter().any(|k| k == key));
        }
        for (key, patch) in patch {
            if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/")
                && let (Some(Value::Array(items)), Value::Array(gone)) = (map.get_mut(list), &patch)
            {
                items.retain(|item| !gone.contains(item));
            }
            if is_directive(&key) {
                continue;
            }
            path.push(key.clone());
            let merged = self.merge(path, map.remove(&key), patch);
            path.pop();
            if let Some(merged) = merged? {
                map.insert(key, merged);
            }
        }
        Ok(Value::Object(map))
    }

    fn merge_list(&self, path: &mut Vec<String>, value: Option<Value>, patch: Vec<Value>) -> Result<Value, Status> {
        let merge = merge_of(self.kind, self.version, path);
        let replaces = patch.iter().any(|entry| entry["$patch"] == "replace");
        let mut items = match value {
            Some(Value::Array(items)) if merge != Merge::Atomic && !replaces => items,
            _ => Vec::new(),
        };
        let Merge::Map(keys) = merge else {
            items.extend(patch.into_iter().filter(|entry| entry.get("$patch").is_none()));
            let mut seen = Vec::new();
            items.retain(|item| {
                merge == Merge::Atomic
                    || (!seen.contains(item) && {
                        seen.push(item.clone());
                        true
                    })
            });
            return Ok(Value::Array(items));
        };
        let key = &keys[..1];
        for entry in patch {
            if entry["$patch"] == "replace" {
                continue;
            }
            if entry.get(&key[0]).is_none() {
                let message = format!("map: {} does not contain declared merge key: {}", go_text(&entry), key[0]);
                return Err(Status::new(500, "", message));
            }
            let found = items.iter().position(|item| same_entry(key, item, &entry));
            match (found, entry["$patch"] == "delete") {
                (Some(n), true) => {
                    items.remove(n);
                }
                (None, true) => {}
                (Some(n), false) => items[n] = self.merge(path, Some(items[n].take()), entry)?.unwrap_or_default(),
                (None, false) => items.extend(self.merge(path, None, entry)?),
            }
        }
        Ok(Value::Array(items))
    }
}

/// Formats the value as Go prints it: `map[a:1 b:[x]]`.
fn go_text(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(" ");
    match value {
        Value::Object(map) => {
            format!("map[{}]", joined(map.iter().map(|(key, value)| format!("{key}:{}", go_text(value))).collect()))
        }
        Value::Array(items) => format!("[{}]", joined(items.iter().map(go_text).collect())),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::ApiServer;
    use serde_json::json;

    fn deployment(patch: Patch) -> Result<Value, Status> {
        let stored = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {
            "containers": [{"name": "a", "image": "i:1", "env": [{"name": "E", "value": "1"}]}, {"name": "b", "image": "j:1"}],
            "tolerations": [{"key": "x"}],
        }}}});
        let server = ApiServer::new(0);
        let kind = server.kind("apps", "Deployment").expect("built in");
        patched(kind, &stored, patch)
    }

    #[test]
    fn a_strategic_patch_merges_lists_by_their_keys() {
        let patch = json!({"spec": {"template": {"spec": {
            "containers": [{"name": "a", "image": "i:2", "env": [{"name": "F", "value": "2"}]}, {"name": "b", "$patch": "delete"}],
            "tolerations": [{"key": "y"}],
        }}}});
        let patched = deployment(Patch::Strategic(patch)).expect("fits");
        assert_eq!(
            patched["spec"]["template"]["spec"],
            json!({
                "containers": [{"name": "a", "image": "i:2", "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}]}],
                "tolerations": [{"key": "y"}],
            })
        );
    }

    #[test]
    fn a_merge_patch_replaces_lists_and_removes_nulls() {
        let patch = json!({"spec": {"template": {"spec": {"containers": [], "tolerations": null}}}});
        assert_eq!(
            deployment(Patch::Merge(patch)).expect("fits")["spec"]["template"]["spec"],
            json!({"containers": []})
        );
    }

    #[test]
    fn a_json_patch_that_does_not_fit_is_refused() {
        let good = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "i:3"}]);
        let patched = deployment(Patch::Json(good)).expect("fits");
        assert_eq!(patched["spec"]["template"]["spec"]["containers"][0]["image"], "i:3");
        let test = json!([{"op": "test", "path": "/kind", "value": "Pod"}]);
        let refused = deployment(Patch::Json(test)).expect_err("the test fails");
        assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
        let refused = deployment(Patch::Json(json!([{"op": "no"}]))).expect_err("no patch");
        assert_eq!(refused.code, 400);
    }

    #[test]
    fn strategic_lists_need_their_key() {
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}});
        assert_eq!(deployment(Patch::Strategic(patch)).expect_err("no name").code, 500);
    }
}
