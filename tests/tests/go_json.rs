//! The Go encoding, against what the real OLM was recorded to write: hash labels, names made of hashes, published manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use olm_core::api::go_json::GoType;
use olm_core::api::{hash, object};
use olm_tests::data;
use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Every object of every step of a recording, later versions over earlier ones.
fn recorded(scenario: &Path, mut see: impl FnMut(&str, &BTreeMap<String, Value>, &Value)) {
    let golden = read_yaml(&scenario.join("golden.yaml")).swap_remove(0);
    let mut world = BTreeMap::new();
    for step in object::list(&golden, &["steps"]) {
        let changed = object::at(step, &["changed"]).as_object().cloned().unwrap_or_default();
        world.extend(changed.clone());
        for (id, object) in &changed {
            see(id, &world, object);
        }
    }
}

fn read_yaml(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_yaml::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .collect()
}

fn scenarios(data: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(data.join("scenarios"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.join("golden.yaml").is_file())
        .collect();
    found.sort();
    assert!(found.len() > 50, "the recordings are incomplete");
    found
}

/// The ClusterServiceVersions of a scenario's catalogs by name, and what their channels say that they replace.
fn bundles(data: &Path, scenario: &Path) -> BTreeMap<String, (Value, BTreeSet<String>)> {
    let mut files = data::files(&scenario.join("catalogs"));
    for list in files.clone().iter().filter(|f| f.ends_with("bundles.txt")) {
        let text = std::fs::read_to_string(list).unwrap();
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
            files.extend(data::files(&data.join(line.trim())));
        }
    }
    let documents: Vec<Value> = files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "yaml" || e == "yml"))
        .flat_map(|f| read_yaml(f))
        .collect();
    let mut found = BTreeMap::new();
    for csv in documents.iter().filter(|d| d["kind"] == "ClusterServiceVersion") {
        let name = object::name(csv).to_owned();
        let replaces = documents
            .iter()
            .filter(|d| d["schema"] == "olm.channel")
            .flat_map(|channel| object::list(channel, &["entries"]))
            .filter(|entry| entry["name"] == *name)
            .map(|entry| object::text(entry, &["replaces"]).to_owned())
            .collect();
        found.insert(name, (csv.clone(), replaces));
    }
    found
}

#[test]
fn deployments_carry_the_hash_of_their_spec() {
    let Some(data) = data::folder("deployments_carry_the_hash_of_their_spec") else { return };
    let crd = read_yaml(&data.join("crds/0000_50_olm_00-clusterserviceversions.crd.yaml")).swap_remove(0);
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let (mut equal, mut wrong) = (0, Vec::new());
    for scenario in scenarios(&data) {
        let bundles = bundles(&data, &scenario);
        // Its Deployments carry what the Subscription injects: the controller's own test.
        if scenario.ends_with("subscription-config") {
            continue;
        }
        recorded(&scenario, |id, world, deployment| {
            let Some(expected) = object::label(deployment, "olm.deployment-spec-hash").filter(|h| !h.starts_with('<'))
            else {
                return;
            };
            let owner = object::label(deployment, "olm.owner").unwrap();
            let namespace = object::namespace(deployment);
            let Some(live) = world.get(&format!("ClusterServiceVersion/{namespace}/{owner}")) else { return };
            let mut csv = live.clone();
            if let Some((published, _)) = bundles.get(owner) {
                csv["spec"] = published["spec"].clone();
                default(schema, &mut csv);
                // The recording masks times and shortens what is long.
                for (key, value) in object::entries(published, &["metadata", "annotations"]) {
                    object::set_annotation(&mut csv, key, value);
                }
            }
            let spec = build(&csv, object::name(deployment));
            let found = hash::deep_hash(GoType::DEPLOYMENT_SPEC, &spec);
            if found == expected {
                equal += 1;
            } else {
                wrong.push(format!(
                    "{} {id}: {found}, recorded {expected}: {}",
                    scenario.display(),
                    GoType::DEPLOYMENT_SPEC.encode(&spec)
                ));
            }
        });
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), equal + wrong.len(), wrong.join("\n"));
    assert!(equal > 70, "only {equal} hashes compared");
}

/// The spec of a Deployment as olm-operator.md §2.2 builds it, without a Subscription's config and certificates.
fn build(csv: &Value, name: &str) -> Value {
    let deployments = object::list(csv, &["spec", "install", "spec", "deployments"]);
    let mut spec = deployments.iter().find(|d| d["name"] == name).map(|d| d["spec"].clone()).unwrap();
    let annotations = object::map_mut(&mut spec, &["template", "metadata", "annotations"]);
    for (key, value) in object::entries(csv, &["metadata", "annotations"]) {
        annotations.insert(key.to_owned(), value.into());
    }
    for container in spec["template"]["spec"]["containers"].as_array_mut().unwrap() {
        let env = container.as_object_mut().unwrap().entry("env").or_insert_with(|| json!([]));
        env.as_array_mut().unwrap().push(json!({"name": "OPERATOR_CONDITION_NAME", "value": object::name(csv)}));
    }
    spec["revisionHistoryLimit"] = json!(1);
    spec
}

/// The defaults of a schema, as the API server fills them in.
fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, property) in object::at(schema, &["properties"]).as_object().into_iter().flatten() {
                if !map.contains_key(name) && !property["default"].is_null() {
                    map.insert(name.clone(), property["default"].clone());
                }
                if let Some(value) = map.get_mut(name) {
                    default(property, value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| default(&schema["items"], item)),
        _ => {}
    }
}

#[test]
fn roles_carry_their_hashes() {
    let Some(data) = data::folder("roles_carry_their_hashes") else { return };
    let mut compared = 0;
    for scenario in scenarios(&data) {
        let bundles = bundles(&data, &scenario);
        recorded(&scenario, |id, _, role| {
            let Some(expected) = object::label(role, "olm.permissions.hash") else { return };
            let owner = object::label(role, "olm.owner").unwrap();
            // A copied or promoted Role keeps the hash of its original.
            if object::label(role, "olm.copiedFrom").is_some() {
                return;
            }
            let namespace = object::label(role, "olm.owner.namespace").unwrap();
            let csv = &bundles[owner].0;
            let names = |field: &str, base: &dyn Fn(&str) -> String, go_type: GoType| -> Vec<(String, Value)> {
                object::list(csv, &["spec", "install", "spec", field])
                    .iter()
                    .map(|permission| {
                        let account = object::text(permission, &["serviceAccountName"]);
                        let hashed = json!({"name": owner, "namespace": namespace, "permission": permission});
                        let hashed = if field == "permissions" {
                            json!({"name": owner, "permission": permission})
                        } else {
                            hashed
                        };
                        (hash::generate_name(&base(account), &hash::deep_hash(go_type, &hashed)), permission.clone())
                    })
                    .collect()
            };
            let mut known = names("permissions", &|account| format!("{owner}-{account}"), GoType::ROLE_NAME);
            known.extend(names("clusterPermissions", &|_| owner.to_owned(), GoType::CLUSTER_ROLE_NAME));
            let (_, permission) = known.iter().find(|(name, _)| name == object::name(role)).unwrap_or_else(|| {
                panic!("{} {id}: not among {:?}", scenario.display(), known.iter().map(|(n, _)| n).collect::<Vec<_>>())
            });
            let found = if role["roleRef"].is_null() {
                hash::plain_hash(GoType::POLICY_RULES, &permission["rules"])
            } else {
                // Bindings made by promotion refer to a ClusterRole, but keep the hash of the RoleBinding.
                let kinds = ["Role", "ClusterRole"].map(|kind| {
                    let reference =
                        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": object::name(role)});
                    hash::plain_hash(GoType::BINDING_HASH, &json!({"RoleRef": reference, "Subjects": role["subjects"]}))
                });
                kinds.into_iter().find(|h| h == expected).unwrap_or_default()
            };
            assert_eq!(found, expected, "{} {id}", scenario.display());
            compared += 1;
        });
    }
    assert!(compared > 60, "only {compared} hashes compared");
}

#[test]
fn published_manifests_are_what_go_writes() {
    let Some(data) = data::folder("published_manifests_are_what_go_writes") else { return };
    let recorder = Recorder::new();
    let (mut equal, mut wrong) = (0, Vec::new());
    for scenario in scenarios(&data) {
        let bundles = bundles(&data, &scenario);
        recorded(&scenario, |id, world, plan| {
            for step in object::list(plan, &["status", "plan"]) {
                let resource = &step["resource"];
                let manifest = &resource["manifest"];
                let name = object::text(resource, &["name"]);
                let Some((csv, replaces)) = bundles.get(name).filter(|_| resource["kind"] == "ClusterServiceVersion")
                else {
                    continue;
                };
                let namespace = object::namespace(plan);
                // The annotation is the catalog's affair; it is the same on the object.
                let properties = object::annotation(manifest, PROPERTIES).or_else(|| {
                    object::annotation(world.get(&format!("ClusterServiceVersion/{namespace}/{name}"))?, PROPERTIES)
                });
                let Some(properties) = properties else { continue };
                // What a skipRange makes it replace is the resolver's affair.
                let resolved = object::text(manifest, &["spec", "replaces"]).to_owned();
                let candidates: Vec<_> = replaces
                    .iter()
                    .chain([&resolved])
                    .map(|replaces| {
                        let mut csv = csv.clone();
                        csv["metadata"]["namespace"] = namespace.into();
                        csv["spec"]["replaces"] = replaces.as_str().into();
                        object::set_annotation(&mut csv, PROPERTIES, properties);
                        recorder.manifest(&GoType::CLUSTER_SERVICE_VERSION.normalise(&csv))
                    })
                    .collect();
                if candidates.contains(manifest) {
                    equal += 1;
                } else {
                    wrong
                        .push(format!("{} {id} {name}\nrecorded {manifest}\nfound {candidates:?}", scenario.display()));
                }
            }
        });
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), equal + wrong.len(), wrong.join("\n"));
    assert!(equal > 60, "only {equal} manifests compared");
}

const PROPERTIES: &str = "operatorframework.io/properties";

/// What the recordings do to a manifest: mask what is different every time, shorten what is long.
struct Recorder([(Regex, &'static str); 3]);

impl Recorder {
    fn new() -> Self {
        let masks = [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| ?[+-]\d\d:?\d\d( [A-Z]+)?)( m=[+-][\d.]+)?", "<time>"),
            (r"\b10\.\d+\.\d+\.\d+(:\d+)?\b", "<ip>"),
        ];
        Self(masks.map(|(pattern, mask)| (Regex::new(pattern).unwrap(), mask)))
    }

    fn manifest(&self, value: &Value) -> Value {
        let masked = self.mask(value);
        let text = ascii(&masked);
        if text.len() <= 4000 {
            return masked;
        }
        format!("<{} characters of JSON with sorted keys, sha256 {}>", text.len(), sha256(&text)).into()
    }

    fn mask(&self, value: &Value) -> Value {
        match value {
            Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), self.mask(v))).collect(),
            Value::Array(items) => items.iter().map(|v| self.mask(v)).collect(),
            Value::String(text) => {
                let text = self.0.iter().fold(text.clone(), |text, (pattern, mask)| {
                    pattern.replace_all(&text, |_: &Captures| (*mask).to_owned()).into_owned()
                });
                let length = text.chars().count();
                if length > 2000 {
                    format!("<text of {length} characters, sha256 {}>", sha256(&text)).into()
                } else {
                    text.into()
                }
            }
            other => other.clone(),
        }
    }
}

/// Compact JSON with all but ASCII escaped.
fn ascii(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out += &format!("\\u{unit:04x}");
            }
        }
    }
    out
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
}

/// The table of Kubernetes' types is what the Go program prints today. Needs Go and the modules, and is skipped without.
#[test]
fn the_table_of_types_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = std::process::Command::new("go").args(["run", "."]).current_dir(root.join("go-types")).output();
    let Some(run) = run.ok().filter(|run| run.status.success()) else {
        eprintln!("the_table_of_types_is_fresh: skipped, `go run .` in tests/go-types does not work here");
        return;
    };
    let table = std::fs::read_to_string(root.join("../shared/core/src/api/go_json/kubernetes.txt")).unwrap();
    assert!(
        String::from_utf8_lossy(&run.stdout) == table,
        "in tests/go-types: go run . > ../../shared/core/src/api/go_json/kubernetes.txt"
    );
}
