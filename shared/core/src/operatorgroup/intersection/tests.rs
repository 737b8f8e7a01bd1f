use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ApiConflict, Holder, Intersections, Pair};
use crate::membership::{Group, Provision, provision};
use crate::testing;
use crate::world::{Reader, World};

fn world(objects: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::new();
    for object in objects {
        world.apply(object);
    }
    world
}

fn group(namespace: &str, spec: &Value, apis: &str, created: &str) -> Value {
    let created = if created.is_empty() { Value::Null } else { created.into() };
    testing::with_metadata(
        testing::operator_group(namespace, "og", spec),
        &json!({"creationTimestamp": created, "annotations": {"olm.providedAPIs": apis}}),
    )
}

fn targeting(namespaces: &[&str]) -> Value {
    json!({ "targetNamespaces": namespaces })
}

fn csv(namespace: &str, kinds: &[&str]) -> Value {
    let owned: Vec<Value> = kinds.iter().map(|kind| testing::owned_crd(kind)).collect();
    let modes = testing::install_modes(&testing::ALL_MODES);
    testing::csv(namespace, "op.v1", &json!({"customresourcedefinitions": {"owned": owned}, "installModes": modes}))
}

/// Returns the shared namespaces of pairs, identified by their groups' namespaces.
fn summaries(intersections: &Intersections<'_>) -> Vec<(String, Option<Vec<String>>)> {
    let name = |at: usize| intersections.scopes()[at].group.namespace();
    let pair = |pair: Pair| {
        let shared = intersections.shared(pair);
        let shared = shared.map(|names| names.into_iter().map(str::to_owned).collect());
        (format!("{}-{}", name(pair.a), name(pair.b)), shared)
    };
    intersections.pairs().into_iter().map(pair).collect()
}

#[test]
fn targets_and_the_own_namespace_are_compared() {
    let labels = testing::labelled_namespace("x", &json!({"team": "roses"}));
    let selector = json!({"selector": {"matchLabels": {"team": "roses"}}});
    let mut of_the_past = group("e", &selector, "", "");
    of_the_past["status"] = json!({ "namespaces": ["unknown"] });
    let world = world([
        labels,
        group("a", &targeting(&["x", "y"]), "", ""),
        group("b", &targeting(&["y", "x", "z"]), "", ""),
        group("c", &targeting(&["a"]), "", ""),
        group("d", &json!({}), "", ""),
        of_the_past,
    ]);
    let reader = Reader::new(&world);
    let some = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let expected = [
        ("a-b", some(&["x", "y"])),
        ("a-c", some(&["a"])),
        ("a-d", some(&["a", "x", "y"])),
        ("a-e", some(&["x"])),
        ("b-d", some(&["b", "x", "y", "z"])),
        ("b-e", some(&["x"])),
        ("c-d", some(&["a", "c"])),
        ("d-e", some(&["e", "unknown", "x"])),
    ];
    let expected: Vec<_> = expected.into_iter().map(|(pair, shared)| (pair.to_owned(), shared)).collect();
    assert_eq!(summaries(&Intersections::from_world(&reader)), expected);
}

#[test]
fn two_global_groups_share_everything() {
    let world = world([group("a", &json!({}), "", ""), group("b", &json!({"selector": {}}), "", "")]);
    assert_eq!(summaries(&Intersections::from_world(&Reader::new(&world))), [("a-b".to_owned(), None)]);
}

#[test]
fn apis_are_claimed_by_annotations_and_by_members() {
    let world = world([
        group("a", &targeting(&["x"]), "Rose.v1.x.io,Tulip.v1.x.io", "2026-01-01T00:00:00Z"),
        group("b", &targeting(&["x"]), "Tulip.v1.x.io", "2026-01-02T00:00:00Z"),
        csv("b", &["Rose", "Lily"]),
        group("c", &targeting(&["x"]), "", ""),
        csv("c", &["Lily"]),
        group("d", &targeting(&["elsewhere"]), "Rose.v1.x.io", "2026-01-01T00:00:00Z"),
    ]);
    let reader = Reader::new(&world);
    let intersections = Intersections::from_world(&reader);
    let (ab, bc) = (Pair { a: 0, b: 1 }, Pair { a: 1, b: 2 });
    let clashes: Vec<_> = intersections.clashes().into_iter().map(|c| (c.pair, c.apis.join(" "))).collect();
    assert_eq!(clashes, [(ab, "Rose.v1.x.io Tulip.v1.x.io".to_owned()), (bc, "Lily.v1.x.io".to_owned())]);
    assert_eq!(intersections.contested(ab).join(" "), "Rose.v1.x.io Tulip.v1.x.io");
    assert_eq!(intersections.holder(ab, "Rose.v1.x.io"), Holder::One(0));
    assert_eq!(intersections.holder(ab, "Tulip.v1.x.io"), Holder::Both);
    assert_eq!(intersections.holder(bc, "Lily.v1.x.io"), Holder::None);
    assert_eq!((intersections.first(ab), intersections.first(bc)), (Some(0), Some(1)));
    assert_eq!(intersections.first(Pair::new(3, 0)), None, "created at the same time");
    assert_eq!((intersections.find("c", "og"), intersections.find("c", "other")), (Some(2), None));
}

#[test]
fn every_row_of_the_table() {
    let rose = "Rose.v1.x.io";
    for (own, is_static, rival, expected) in [
        (rose, false, "", ApiConflict::Continue),
        (rose, true, "", ApiConflict::Continue),
        ("", false, "", ApiConflict::Add),
        ("", true, "", ApiConflict::StaticLacks),
        ("", false, rose, ApiConflict::Conflict),
        ("", true, rose, ApiConflict::Conflict),
        (rose, false, rose, ApiConflict::Remove),
        (rose, true, rose, ApiConflict::StaticContested),
    ] {
        let mut spec = targeting(&["x"]);
        spec["staticProvidedAPIs"] = is_static.into();
        let world = world([
            group("a", &spec, own, ""),
            csv("a", &["Rose"]),
            group("b", &targeting(&["x"]), rival, ""),
            group("c", &targeting(&["c"]), rose, ""),
        ]);
        let reader = Reader::new(&world);
        let effects = Intersections::from_world(&reader).member_effects(0);
        let [effect] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(effect.row, expected, "{own:?} {is_static} {rival:?}");
        let others = if rival.is_empty() { BTreeSet::new() } else { BTreeSet::from([1]) };
        assert_eq!(effect.others, others);
    }
}

#[test]
fn members_are_csvs_that_support_the_targets() {
    let other_name = |mut group: Value| {
        group["metadata"]["name"] = "second".into();
        group
    };
    let mut unfit = csv("b", &["Rose"]);
    unfit["spec"]["installModes"] = testing::install_modes(&["OwnNamespace"]);
    let mut leaving = csv("c", &["Rose"]);
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let world = world([
        group("a", &targeting(&["x"]), "", ""),
        other_name(group("a", &targeting(&["x"]), "", "")),
        csv("a", &["Rose"]),
        group("b", &targeting(&["x"]), "", ""),
        unfit,
        group("c", &targeting(&["x"]), "", ""),
        leaving,
        group("d", &json!({"selector": {"matchLabels": {"a": "b"}}}), "", ""),
        csv("d", &["Rose"]),
    ]);
    let reader = Reader::new(&world);
    let intersections = Intersections::from_world(&reader);
    assert!(intersections.scopes().iter().all(|scope| scope.members.is_empty()));
    assert_eq!(intersections.clashes(), []);
}

/// Groups: the targets of the spec, the APIs in the annotation, the APIs that its member provides, and whether it is
/// static.
type Groups = Vec<(Option<BTreeSet<u8>>, BTreeSet<u8>, BTreeSet<u8>, bool)>;

fn any_groups() -> impl Strategy<Value = Groups> {
    let few = |n: u8| prop::collection::btree_set(0..n, 0..3);
    let targets = prop::option::weighted(0.9, prop::collection::btree_set(0..90_u8, 1..8));
    prop::collection::vec((targets, few(4), few(4), any::<bool>()), 0..14)
}

/// The groups are in namespaces `n0`, `n1`, …, and target namespaces such as `n80`.
fn objects(groups: &Groups) -> Vec<Value> {
    let kinds = ["Rose", "Tulip", "Lily", "Iris"];
    let mut objects = Vec::new();
    for (at, (targets, annotated, provided, is_static)) in groups.iter().enumerate() {
        let names: Vec<String> = targets.iter().flatten().map(|target| format!("n{target}")).collect();
        let apis: Vec<String> = annotated.iter().map(|api| format!("{}.v1.x.io", kinds[usize::from(*api)])).collect();
        let spec = json!({ "targetNamespaces": names, "staticProvidedAPIs": is_static });
        let mut group = group(&format!("n{at}"), &spec, &apis.join(","), "");
        group["status"] = json!({ "namespaces": if names.is_empty() { vec![String::new()] } else { names } });
        objects.push(group);
        let provided: Vec<&str> = provided.iter().map(|api| kinds[usize::from(*api)]).collect();
        objects.push(csv(&format!("n{at}"), &provided));
    }
    objects
}

proptest! {
    #[test]
    fn it_is_symmetric_and_agrees_with_the_controllers(groups in any_groups()) {
        let objects = objects(&groups);
        let world = world(objects.clone());
        let reader = Reader::new(&world);
        let all = Intersections::from_world(&reader);
        let n = all.scopes().len();
        let mut expected = Vec::new();
        for a in 0..n {
            for b in 0..n {
                prop_assert_eq!(all.intersect(a, b), all.intersect(b, a));
                let [one, other] = [a, b].map(|at| all.scopes()[at].group);
                prop_assert_eq!(all.intersect(a, b), one.intersects(other));
                if a < b && one.intersects(other) {
                    expected.push(Pair { a, b });
                }
                prop_assert_eq!(all.contested(Pair::new(a, b)), all.contested(Pair::new(b, a)));
            }
        }
        prop_assert_eq!(&all.pairs(), &expected);
        let clashes = all.clashes();
        let with_apis = expected.iter().filter(|pair| !all.contested(**pair).is_empty());
        prop_assert!(with_apis.eq(clashes.iter().map(|clash| &clash.pair)));
        prop_assert!(clashes.iter().all(|clash| clash.apis == all.contested(clash.pair)));
        for at in 0..n {
            for effect in all.member_effects(at) {
                let row = match provision(&reader, Group::new(all.scopes()[at].group.json), effect.csv) {
                    // Here the older group keeps the APIs where in OLM the order of processing decides.
                    Provision::Settled => vec![ApiConflict::Continue, ApiConflict::Remove],
                    Provision::Annotate(_) => vec![ApiConflict::Add, ApiConflict::Remove],
                    Provision::Conflict => vec![ApiConflict::Conflict],
                    Provision::Static => vec![ApiConflict::StaticLacks, ApiConflict::StaticContested],
                };
                prop_assert!(row.contains(&effect.row), "{:?}", effect.row);
            }
        }
        // The order of observation does not matter either.
        let backwards = self::world(objects.into_iter().rev());
        prop_assert_eq!(Intersections::from_world(&Reader::new(&backwards)).clashes(), clashes);
    }
}

#[test]
fn groups_that_share_many_namespaces_are_compared_as_a_whole() {
    let names: Vec<String> = (0..300).map(|n| format!("n{n:03}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = world(all.iter().map(|name| group(name, &targeting(&all), "Rose.v1.x.io", "")));
    let reader = Reader::new(&world);
    let intersections = Intersections::from_world(&reader);
    assert_eq!(intersections.pairs().len(), 300 * 299 / 2);
    assert_eq!(intersections.clashes().len(), 300 * 299 / 2);
}
