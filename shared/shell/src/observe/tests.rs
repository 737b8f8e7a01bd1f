//! Tests of reading files and clusters.

use olm_core::api::object;
use olm_core::world::{Reader, World, kind};
use serde_json::{Value, json};

use super::*;
use crate::blocking::block_on;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::streams::Buffer;
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::request_error::RequestError;
use crate::cluster::rounds::rounds;

fn seen(files: &[(&str, &str)], on_top: Option<&str>, flags: &[&str]) -> Result<(ClusterState, String), CliError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let source = SourceFlags {
        from: vec![folder.path().to_owned()],
        catalogs: flags.iter().map(|f| f.replace("DIR", folder.path().to_str().unwrap()).parse().unwrap()).collect(),
        ..SourceFlags::default()
    };
    let top = on_top.map(|text| {
        let path = folder.path().join("top");
        std::fs::write(&path, text).unwrap();
        path
    });
    let err = Buffer::default();
    let mut printer = Printer::to(Buffer::default(), err.clone());
    let namespaces = NamespaceFlags { namespace: Some("garden".to_owned()), all_namespaces: false };
    let on_top: Vec<_> = top.into_iter().collect();
    let seen = block_on(source.read(&namespaces, &on_top, ReadScope::Planning, &mut printer))?;
    Ok((seen, err.text()))
}

const GROUP: &str = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: all, namespace: garden, resourceVersion: '7'}\n";

#[test]
fn overlaid_objects_are_applied_and_get_the_default_namespace() {
    let top = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: all}\nspec: {upgradeStrategy: Default}\n";
    let (seen, _) = seen(&[("og.yaml", GROUP), ("x.json", "[]")], Some(top), &[]).unwrap();
    let world = Reader::new(&seen.world);
    let groups: Vec<_> = world.in_namespace(&kind::OPERATOR_GROUP, "garden").collect();
    assert_eq!(groups.len(), 1);
    assert_eq!(object::text(groups[0].json(), &["spec", "upgradeStrategy"]), "Default");
}

#[test]
fn unreadable_files_are_reported_and_ignored() {
    let (seen, warnings) = seen(&[("og.yaml", GROUP), ("x.json", "[]"), ("y.yaml", "a: [")], None, &[]).unwrap();
    assert_eq!(seen.world.objects().count(), 1);
    assert!(warnings.contains("2 files contain documents that are not Kubernetes objects"), "{warnings}");
}

#[test]
fn directories_replace_catalogs_of_the_global_namespace() {
    let source = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: a, namespace: openshift-marketplace}\n";
    let catalog = "schema: olm.package\nname: rose\ndefaultChannel: c\n---\nschema: olm.channel\npackage: rose\nname: c\nentries: [{name: rose.v1}]\n---\nschema: olm.bundle\npackage: rose\nname: rose.v1\nimage: example.com/rose:1\nproperties: [{type: olm.package, value: {packageName: rose, version: 1.0.0}}]\n";
    let files = [("cs.yaml", source), ("catalogs/tea/catalog.yaml", catalog)];
    let (seen, said) = seen(&files, None, &["mine.garden=DIR/catalogs/tea"]).unwrap();
    assert_eq!(said, "");
    let world = Reader::new(&seen.world);
    assert!(world.catalog("openshift-marketplace", "tea").is_some());
    assert!(world.catalog("garden", "mine").is_some());
}

#[test]
fn files_and_a_cluster_are_mutually_exclusive() {
    let mut source = SourceFlags { from: vec!["/nowhere".into()], ..SourceFlags::default() };
    source.cluster.context = Some("mine".to_owned());
    let mut printer = Printer::to(Buffer::default(), Buffer::default());
    let looked = block_on(source.read(&NamespaceFlags::default(), &[], ReadScope::Planning, &mut printer));
    assert_eq!(looked.err().unwrap().kind, ErrorKind::Usage);
}

/// Lists a cluster in which only one namespace may be read, except for ClusterServiceVersions, of which there is a copy.
async fn narrow() -> (Result<Vec<ReadFailure>, RequestError>, World) {
    let service = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
        let uri = request.uri().to_string();
        let list = |items: Value| (200, json!({ "metadata": { "resourceVersion": "9" }, "items": items }));
        let copy = json!([{ "metadata": {
            "name": "rose.v1", "namespace": "park", "labels": { "olm.copiedFrom": "garden", "team": "roses" },
            "annotations": { "olm.operatorGroup": "all", "alm-examples": "[]" },
        } }]);
        let (status, answer) = match uri.split(['?', '/']).filter(|part| *part == "garden").count() {
            1 if uri.contains("/operatorgroups") => {
                list(json!([{ "metadata": { "name": "all", "namespace": "garden" } }]))
            }
            1 => list(json!([])),
            _ if uri.contains("/clusterserviceversions") && uri.contains("labelSelector=olm.copiedFrom") => list(copy),
            _ if uri.contains("/clusterserviceversions") => list(json!([])),
            _ => (403, json!({ "kind": "Status", "code": 403, "reason": "Forbidden", "message": "no" })),
        };
        http::Response::builder().status(status).body(kube::client::Body::from(answer.to_string().into_bytes()))
    });
    let api = Api::new(kube::Client::new(service, "default"));
    let mut world = World::new();
    let listed = list(&api, "garden", ReadScope::Tenancy, &mut world).await;
    (listed, world)
}

#[tokio::test]
async fn tenancy_is_listed_in_all_namespaces_or_in_the_readable_one() {
    let (listed, world) = narrow().await;
    let failures: Vec<String> = listed.unwrap().iter().map(ToString::to_string).collect();
    let kinds = ["subscriptions.operators.coreos.com", "operatorgroups.operators.coreos.com", "namespaces"];
    let kinds = kinds.into_iter().chain(["serviceaccounts"]);
    let rbac = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
    let rbac = rbac.map(|plural| format!("{plural}.rbac.authorization.k8s.io"));
    let expected: Vec<String> =
        kinds.map(str::to_owned).chain(rbac).map(|kind| format!("not allowed to list {kind}")).collect();
    assert_eq!(failures, expected);
    let objects: Vec<Value> = world.objects().map(|o| o.json().clone()).collect();
    let [copy, group] = &objects[..] else { panic!("{objects:?}") };
    assert_eq!(object::name(group), "all");
    let kept = json!({ "name": "rose.v1", "namespace": "park", "labels": { "olm.copiedFrom": "garden" }, "annotations": { "olm.operatorGroup": "all" } });
    assert_eq!((&copy["kind"], &copy["metadata"]), (&json!("ClusterServiceVersion"), &kept));
}

/// Returns the last parts of the paths of the requests that read a scope, if they are concurrent.
async fn requests(namespace: Option<&str>, scope: ReadScope) -> Vec<String> {
    let read = async |api: Api| {
        let namespace = namespace.map(str::to_owned);
        read_cluster(api, namespace, scope, &Overlay::default(), &mut |_| {}).await.map(|_| ())
    };
    let (read, rounds) = rounds(|_| None, read).await;
    read.unwrap();
    let [round] = &rounds[..] else { panic!("{rounds:?}") };
    round.iter().map(|path| path.split("/v1").last().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_scope_is_read_by_concurrent_requests() {
    let olm = ["catalogsources", "clusterserviceversions", "installplans", "operatorgroups", "subscriptions"];
    let mut everywhere = requests(None, ReadScope::Operators).await;
    for path in &mut everywhere {
        *path = path.rsplit('/').next().unwrap_or_default().to_owned();
    }
    everywhere.sort();
    assert_eq!(everywhere, olm);
    let in_one = requests(Some("garden"), ReadScope::Operators).await;
    let catalogs: Vec<&String> = in_one.iter().filter(|path| path.ends_with("/catalogsources")).collect();
    assert_eq!((in_one.len(), catalogs.len()), (7, 3), "also those of the global namespaces: {in_one:?}");
    // Nine kinds, and the copies of ClusterServiceVersions.
    assert_eq!(requests(None, ReadScope::Tenancy).await.len(), 10);
}
