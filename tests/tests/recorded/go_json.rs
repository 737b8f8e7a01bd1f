//! Compares the Go encoding with recordings of the real OLM: hash labels, names with hashes, published manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result};
use olm_core::api::go_json::GoType;
use olm_core::api::kinds::OLM_GROUP;
use olm_core::api::{hash, object};
use olm_tests::data;
use olm_tests::scenario::format::Scenario;
use olm_tests::scenario::normalise::Normaliser;
use olm_tests::scenario::{all, catalog};
use serde_json::{Value, json};

/// A recorded object at a step at which it was created or changed.
struct Recorded<'a> {
    /// Scenario and object, for messages.
    title: String,
    object: &'a Value,
    /// All objects of that step.
    world: &'a BTreeMap<String, Value>,
    /// The bundles of the scenario's catalogs.
    bundles: &'a BTreeMap<String, Bundle>,
}

/// A published ClusterServiceVersion.
struct Bundle {
    csv: Value,
    /// The bundles that it replaces in its channels.
    replaces: BTreeSet<String>,
}

/// Calls `see` with every object of every recording.
fn recorded(mut see: impl FnMut(&Recorded) -> Result<()>) -> Result<()> {
    for (name, scenario) in all()? {
        if scenario.needs_data() && data::data().is_none() {
            continue;
        }
        let bundles = bundles(&scenario)?;
        let mut before = BTreeMap::new();
        for step in scenario.golden()?.steps {
            for (id, object) in step.objects.iter().filter(|(id, object)| before.get(*id) != Some(*object)) {
                see(&Recorded { title: format!("{name}, {id}"), object, world: &step.objects, bundles: &bundles })?;
            }
            before = step.objects;
        }
    }
    Ok(())
}

fn bundles(scenario: &Scenario) -> Result<BTreeMap<String, Bundle>> {
    let served = scenario.script.steps.iter().flat_map(|step| step.serve.iter().map(|s| &s.directory));
    let directories: BTreeSet<_> = scenario.script.catalogs.iter().map(|c| &c.directory).chain(served).collect();
    let mut documents = Vec::new();
    for directory in directories {
        let folder = catalog::assemble(&scenario.folder.join(directory), data::data().as_deref())?;
        for file in data::files(folder.path()) {
            if file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
                documents.extend(data::documents(&file)?);
            }
        }
    }
    let channels = documents.iter().filter(|document| document["schema"] == "olm.channel");
    let entries: Vec<_> = channels.flat_map(|channel| object::list(channel, &["entries"])).collect();
    let csvs = documents.iter().filter(|document| document["kind"] == "ClusterServiceVersion");
    let bundle = |csv: &Value| {
        let named = entries.iter().filter(|entry| entry["name"] == object::name(csv));
        let replaces = named.map(|entry| object::text(entry, &["replaces"]).to_owned()).collect();
        (object::name(csv).to_owned(), Bundle { csv: csv.clone(), replaces })
    };
    Ok(csvs.map(bundle).collect())
}

#[test]
fn deployments_carry_the_hash_of_their_spec() -> Result<()> {
    let crds = olm_core::api::crd::all();
    let csv_crd = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == "ClusterServiceVersion");
    let schema = &csv_crd.context("no CRD")?["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut equal = 0;
    recorded(|Recorded { title, object: deployment, world, bundles }| {
        let Some(expected) = object::label(deployment, "olm.deployment-spec-hash").filter(|h| !h.starts_with('<'))
        else {
            return Ok(());
        };
        let owner = object::label(deployment, "olm.owner").unwrap_or_default();
        let live = world.get(&format!("ClusterServiceVersion/{}/{owner}", object::namespace(deployment)));
        // The configuration of Subscriptions is covered by the controller's own tests.
        let Some(live) = live.filter(|_| !title.starts_with("subscription-config")) else { return Ok(()) };
        let mut csv = live.clone();
        if let Some(published) = bundles.get(owner).map(|bundle| &bundle.csv) {
            // The recording masks times and truncates long values.
            csv["spec"] = published["spec"].clone();
            default(schema, &mut csv);
            for (key, value) in object::entries(published, &["metadata", "annotations"]) {
                object::set_annotation(&mut csv, key, value);
            }
        }
        let spec = build(&csv, object::name(deployment)).with_context(|| title.clone())?;
        let found = hash::deep_hash(GoType::DEPLOYMENT_SPEC, &spec);
        assert_eq!(found, expected, "{title}: {}", GoType::DEPLOYMENT_SPEC.encode(&spec));
        equal += 1;
        Ok(())
    })?;
    assert!(equal > 60, "only {equal} hashes compared");
    Ok(())
}

/// Returns the spec of a Deployment as OLM builds it (olm-behaviour/csv.md#deployments), without a Subscription's config and
/// certificates.
fn build(csv: &Value, name: &str) -> Option<Value> {
    let deployments = object::list(csv, &["spec", "install", "spec", "deployments"]);
    let mut spec = deployments.iter().find(|d| d["name"] == name)?["spec"].clone();
    let annotations = object::map_mut(&mut spec, &["template", "metadata", "annotations"]);
    for (key, value) in object::entries(csv, &["metadata", "annotations"]) {
        annotations.insert(key.to_owned(), value.into());
    }
    for container in spec["template"]["spec"]["containers"].as_array_mut()? {
        let env = container.as_object_mut()?.entry("env").or_insert_with(|| json!([]));
        env.as_array_mut()?.push(json!({"name": "OPERATOR_CONDITION_NAME", "value": object::name(csv)}));
    }
    spec["revisionHistoryLimit"] = json!(1);
    Some(spec)
}

/// Sets the defaults of a schema, as the API server does.
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
fn roles_carry_their_hashes() -> Result<()> {
    let mut equal = 0;
    recorded(|Recorded { title, object: role, bundles, .. }| {
        let Some(expected) = object::label(role, "olm.permissions.hash") else { return Ok(()) };
        // A copied Role has the hash of its original.
        if object::label(role, "olm.copiedFrom").is_some() {
            return Ok(());
        }
        let owner = object::label(role, "olm.owner").context("no owner")?;
        let namespace = object::label(role, "olm.owner.namespace").context("no owner")?;
        let csv = &bundles.get(owner).with_context(|| format!("{title}: no bundle"))?.csv;
        let permissions = object::list(csv, &["spec", "install", "spec", "permissions"]).iter().map(|permission| {
            let base = format!("{owner}-{}", object::text(permission, &["serviceAccountName"]));
            let hashed = json!({"name": owner, "permission": permission});
            (hash::generate_name(&base, &hash::deep_hash(GoType::ROLE_NAME, &hashed)), permission)
        });
        let cluster = object::list(csv, &["spec", "install", "spec", "clusterPermissions"]).iter().map(|permission| {
            let hashed = json!({"name": owner, "namespace": namespace, "permission": permission});
            (hash::generate_name(owner, &hash::deep_hash(GoType::CLUSTER_ROLE_NAME, &hashed)), permission)
        });
        let named: BTreeMap<_, _> = permissions.chain(cluster).collect();
        let permission = named.get(object::name(role)).with_context(|| format!("{title}: not among {named:?}"))?;
        let found = if role["roleRef"].is_null() {
            hash::plain_hash(GoType::POLICY_RULES, &permission["rules"])
        } else {
            // A ClusterRoleBinding promoted from a RoleBinding has the hash of that.
            let hashes = ["Role", "ClusterRole"].map(|kind| {
                let reference =
                    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": object::name(role)});
                hash::plain_hash(GoType::BINDING_HASH, &json!({"RoleRef": reference, "Subjects": role["subjects"]}))
            });
            hashes.into_iter().find(|hash| hash == expected).unwrap_or_default()
        };
        assert_eq!(found, expected, "{title}");
        equal += 1;
        Ok(())
    })?;
    assert!(equal > 20, "only {equal} hashes compared");
    Ok(())
}

const PROPERTIES: &str = "operatorframework.io/properties";

#[test]
fn published_manifests_are_encoded_as_in_go() -> Result<()> {
    let normaliser = Normaliser::new(&BTreeMap::new(), &BTreeMap::new(), &BTreeMap::new())?;
    let mut equal = 0;
    recorded(|Recorded { title, object: plan, world, bundles }| {
        for step in object::list(plan, &["status", "plan"]) {
            let recorded = &step["resource"]["manifest"];
            let name = object::text(step, &["resource", "name"]);
            let bundle = bundles.get(name).filter(|_| step["resource"]["kind"] == "ClusterServiceVersion");
            let Some(bundle) = bundle else { continue };
            let namespace = object::namespace(plan);
            // The catalog sets this annotation. If the manifest is truncated, the object has it, too.
            let live = world.get(&format!("ClusterServiceVersion/{namespace}/{name}"));
            let Some(properties) =
                [Some(recorded), live].into_iter().flatten().find_map(|o| object::annotation(o, PROPERTIES))
            else {
                continue;
            };
            // The resolver sets what a bundle replaces by its skipRange.
            let resolved = object::text(recorded, &["spec", "replaces"]).to_owned();
            let published = bundle.replaces.iter().chain([&resolved]).map(|replaces| {
                let mut csv = bundle.csv.clone();
                csv["metadata"]["namespace"] = namespace.into();
                csv["spec"]["replaces"] = replaces.as_str().into();
                object::set_annotation(&mut csv, PROPERTIES, properties);
                let manifest = GoType::CLUSTER_SERVICE_VERSION.encode(&csv);
                normaliser.walk(&json!({"manifest": manifest}))["manifest"].clone()
            });
            let published: Vec<_> = published.collect();
            assert!(published.contains(recorded), "{title}: {name}\nrecorded {recorded}\nfound {published:?}");
            equal += 1;
        }
        Ok(())
    })?;
    assert!(equal > 60, "only {equal} manifests compared");
    Ok(())
}

#[test]
fn text_written_by_olm_is_reproduced() -> Result<()> {
    let mut equal = BTreeMap::<String, usize>::new();
    recorded(|Recorded { title, object, .. }| {
        let kind = object::text(object, &["kind"]);
        let parts = ["ClusterServiceVersionSpec".to_owned(), format!("{kind}Status")];
        for name in parts.into_iter().filter(|name| name.starts_with(kind)) {
            let part = &object[if name.ends_with("Spec") { "spec" } else { "status" }];
            // A masked entry lacks fields that OLM always writes.
            let whole = part.is_object() && !part.to_string().contains("<unstable>");
            let go_type = GoType::named(&name).filter(|_| whole && object::gvk(object).group == OLM_GROUP);
            let Some(go_type) = go_type else { continue };
            assert_eq!(go_type.normalise(part), *part, "{title}");
            *equal.entry(name).or_default() += 1;
        }
        Ok(())
    })?;
    assert!(equal.len() >= 7, "{equal:?}");
    Ok(())
}

/// The generated files are the current output of the Go programs. Needs Go and the modules, and is skipped otherwise.
#[test]
fn generated_files_are_fresh() -> Result<()> {
    let go = |args: &[&str]| {
        let folder = data::repository().join("tests/go-types");
        Command::new("go").args(args).env("GOPROXY", "off").current_dir(folder).output()
    };
    if !go(&["list", "-deps", "./..."]).is_ok_and(|list| list.status.success()) {
        eprintln!("skipped: needs Go, and the modules of tests/go-types (go mod download)");
        return Ok(());
    }
    for (program, file) in [
        ("./encoding", "shared/core/src/api/go_json/kubernetes.txt"),
        ("./schemas", "shared/core/src/api/crd/kubernetes.json"),
    ] {
        let run = go(&["run", program])?;
        assert!(run.status.success(), "{program}: {}", String::from_utf8_lossy(&run.stderr));
        assert!(
            run.stdout == std::fs::read(data::repository().join(file))?,
            "{file} is stale; in tests/go-types: go run {program} > ../../{file}"
        );
    }
    Ok(())
}
