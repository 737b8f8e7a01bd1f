//! Edits of the objects that serve a catalog.

use super::*;

type Objects = std::collections::BTreeMap<String, Value>;

/// Returns what is written when the objects were changed, without the status: `verb Kind`, and the plan.
fn after(change: impl Fn(&mut Objects)) -> (Vec<String>, Plan) {
    let settings = Settings { catalog_pods: Some(CatalogPods::default()), ..Settings::default() };
    let (mut objects, mut world) = (with_pods(pictures(), Some(unreachable())), World::new());
    // The owner of all of them.
    if let Some(source) = objects.get_mut("CatalogSource/pictures") {
        source["metadata"]["uid"] = "u".into();
    }
    change(&mut objects);
    for object in objects.into_values() {
        drop(world.apply(object));
    }
    world.learn(FactKey::Catalog("olm".to_owned(), "pictures".to_owned()), Some(Fact::Catalog(unreachable())));
    let key = Key::new(Controller::CatalogSource, "olm", "pictures");
    let plan = super::super::plan(&settings, &Reader::new(&world), &key, now());
    let writes = plan.actions.iter().filter(|a| a.writes() && a.verb().as_str() != "update status");
    (writes.map(|a| format!("{} {}", a.verb().as_str(), a.target().gvk.kind)).collect(), plan)
}

fn edit(id: &str, pointer: &str, value: Value) -> Vec<String> {
    let edited = after(|objects| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let object = objects.get_mut(id).unwrap_or_else(|| panic!("no {id}"));
        let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent} in {id}"));
        if value.is_null() {
            parent.as_object_mut().unwrap().remove(key);
        } else {
            parent[key] = value.clone();
        }
    });
    edited.0
}

#[test]
fn relevant_edits_are_reverted() {
    let recreated = |kind: &str| [format!("delete {kind}"), format!("create {kind}")];
    assert_eq!(after(|_| {}).0, [""; 0]);
    // Rules that allow more than the generated ones.
    let policy = "NetworkPolicy/pictures-grpc-server";
    let rule = json!([{ "ports": [{ "port": "foobar", "protocol": "TCP" }] }]);
    assert_eq!(edit(policy, "/spec/egress", rule.clone()), recreated("NetworkPolicy"));
    assert_eq!(edit(policy, "/spec/ingress/0/from", json!([{ "podSelector": {} }])), recreated("NetworkPolicy"));
    assert_eq!(edit(policy, "/metadata/labels/olm.catalogSource", Value::Null), recreated("NetworkPolicy"));
    assert_eq!(edit("NetworkPolicy/pictures-unpack-bundles", "/spec/egress", rule), recreated("NetworkPolicy"));
    assert_eq!(edit(policy, "/metadata/annotations", json!({ "mine": "1" })), [""; 0]);

    let service = "Service/pictures";
    assert_eq!(edit(service, "/spec/selector/app", "mine".into()), recreated("Service"));
    assert_eq!(edit(service, "/spec/ports/0/targetPort", 1.into()), recreated("Service"));
    assert_eq!(edit(service, "/metadata/labels/olm.service-spec-hash", Value::Null), recreated("Service"));
    assert_eq!(edit(service, "/spec/ports/0/protocol", "TCP".into()), [""; 0], "a default");
    assert_eq!(edit(service, "/spec/clusterIP", "10.0.0.1".into()), [""; 0], "set by the API server");

    let pod = "Pod/pictures-x";
    assert_eq!(edit(pod, "/spec/containers/0/image", "mine:1".into()), ["create Pod", "delete Pod"]);
    assert_eq!(edit(pod, "/metadata/labels/olm.pod-spec-hash", "mine".into()), ["create Pod", "delete Pod"]);
    assert_eq!(edit(pod, "/metadata/annotations/mine", "1".into()), [""; 0]);

    let account = "ServiceAccount/pictures";
    assert_eq!(edit(account, "/metadata/labels/olm.managed", Value::Null), ["patch ServiceAccount"]);
    // Pull secrets may be added by others; the pod gets them.
    let secrets = json!([{ "name": "mine" }]);
    assert_eq!(edit(account, "/imagePullSecrets", secrets), ["create Pod", "delete Pod"]);
    // An account that existed before the catalog is not changed.
    let theirs = after(|objects| {
        let metadata = objects.get_mut(account).unwrap()["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| key.starts_with("name"));
    });
    assert_eq!(theirs.0, [""; 0]);
    for (id, done) in [
        (policy, "create NetworkPolicy"),
        (service, "create Service"),
        (pod, "create Pod"),
        (account, "create ServiceAccount"),
    ] {
        assert_eq!(after(|objects| drop(objects.remove(id))).0, [done]);
    }
}

#[test]
fn content_is_extracted_as_in_olms_pod() {
    let pod = |cache: &str, image: &str| {
        let mut source = pictures();
        source["spec"]["image"] = image.into();
        source["spec"]["grpcPodConfig"] = json!({ "extractContent": { "catalogDir": "/configs", "cacheDir": cache }, "securityContextConfig": "restricted" });
        with_pods(source, Some(unreachable()))["Pod/pictures-x"]["spec"].clone()
    };
    let spec = pod("", "registry.example.com/catalog@sha256:00");
    let server = &spec["containers"][0];
    assert_eq!(
        (&server["image"], &server["imagePullPolicy"]),
        (&"quay.io/operator-framework/opm:latest".into(), &"Always".into()),
        "the policy depends on the image of the container"
    );
    assert_eq!(spec["initContainers"][1]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(
        spec["initContainers"][1]["args"],
        json!(["--catalog.from=/configs", "--catalog.to=/extracted-catalog/catalog"])
    );
    assert_eq!(server["args"], json!(["serve", "/extracted-catalog/catalog"]));
    // The order is part of the hash.
    assert_eq!(
        server["volumeMounts"],
        json!([{ "name": "tmpdir", "mountPath": "/tmp/" }, { "name": "catalog-content", "mountPath": "/extracted-catalog" }])
    );
    let names: Vec<&str> = object::list(&spec, &["volumes"]).iter().map(|v| object::text(v, &["name"])).collect();
    assert_eq!(names, ["utilities", "catalog-content", "tmpdir"]);
    let cached = pod("/tmp/cache", "registry.example.com/catalog:1");
    assert_eq!(
        cached["containers"][0]["args"],
        json!(["serve", "/extracted-catalog/catalog", "--cache-dir=/extracted-catalog/cache"])
    );
    assert_eq!(cached["containers"][0]["volumeMounts"].as_array().unwrap().len(), 1);
}

#[test]
fn content_is_read_from_the_specified_folder() {
    let mut source = source(json!({ "sourceType": "grpc", "image": "registry.example.com/catalog:1" }));
    let folder = |source: &Value| match asked(&plan(Some(source), None)) {
        Some(Target::Image { catalog_dir, .. }) => catalog_dir.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(folder(&source), None);
    source["spec"]["grpcPodConfig"] = json!({ "extractContent": { "catalogDir": "/configs/garden" } });
    assert_eq!(folder(&source).as_deref(), Some("/configs/garden"));
    source["spec"]["grpcPodConfig"] = json!({ "extractContent": { "cacheDir": "/tmp/cache" } });
    assert_eq!(folder(&source), None, "the label of the image is used");
}
