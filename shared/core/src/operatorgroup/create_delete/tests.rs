use serde_json::json;

use super::*;
use crate::testing;
use crate::world::World;

fn world(objects: &[&Value]) -> World {
    let mut world = World::new();
    for object in objects {
        world.apply((*object).clone());
    }
    world
}

fn group(name: &str, targets: &[&str], origin: Origin) -> Value {
    let mut group = testing::operator_group("garden", name, &json!({"targetNamespaces": targets}));
    origin.mark(&mut group);
    group
}

fn csv(name: &str, modes: &[&str]) -> Value {
    testing::csv("garden", name, &json!({"installModes": testing::install_modes(modes)}))
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_relation_of_targets() {
    for (new, old, expected) in [
        (&["a", "b"][..], &["b", "a"][..], Relation::Same),
        (&[""], &[""], Relation::Same),
        (&["a"], &["b"], Relation::Apart),
        (&[], &["b"], Relation::Apart),
        (&["a"], &["a", "b"], Relation::Within),
        (&["a"], &[""], Relation::Within),
        (&["a", "b"], &["a"], Relation::Around),
        (&[""], &["a"], Relation::Around),
        (&["a", "b"], &["b", "c"], Relation::Partly),
    ] {
        assert_eq!(Relation::between(&set(new), &set(old)), expected, "{new:?} {old:?}");
    }
}

#[test]
fn a_group_is_created_where_none_exists() {
    let world = world(&[]);
    assert_eq!(creation(&Reader::new(&world), "garden", &group("og", &["garden"], Origin::Ours)), Creation::Here);
}

#[test]
fn groups_of_users_are_not_changed() {
    let mut unlabelled = group("theirs", &["garden"], Origin::User);
    unlabelled["metadata"]["labels"] = json!({});
    let ours = group("ours", &["garden"], Origin::Ours);
    for there in [&[&group("theirs", &["garden"], Origin::User)][..], &[&unlabelled], &[&unlabelled, &ours]] {
        let world = world(there);
        let decided = creation(&Reader::new(&world), "garden", &ours);
        assert!(
            matches!(decided, Creation::UserManaged(groups) if groups.iter().all(|group| group.name() == "theirs"))
        );
    }
}

#[test]
fn one_of_ours_suffices_or_another_namespace_is_needed() {
    let old = group("ours", &["a", "b"], Origin::Ours);
    let (member, other) = (csv("rose.v1", &["MultiNamespace"]), csv("tulip.v1", &["OwnNamespace"]));
    let world = world(&[&old, &member, &other]);
    let reader = Reader::new(&world);
    let there = membership::groups(&reader, "garden")[0];
    let decided = |targets: &[&str]| creation(&reader, "garden", &group("new", targets, Origin::Ours));
    assert_eq!(decided(&["b", "a"]), Creation::Same(there));
    for (targets, relation) in [
        (&["c"][..], Relation::Apart),
        (&["a"], Relation::Within),
        (&["a", "b", "c"], Relation::Around),
        (&["b", "c"], Relation::Partly),
    ] {
        let Creation::Elsewhere { group, members, relation: found } = decided(targets) else { panic!("{targets:?}") };
        assert_eq!((group, found), (there, relation));
        assert_eq!(members.iter().map(|csv| object::name(csv)).collect::<Vec<_>>(), ["rose.v1"]);
    }
}

#[test]
fn several_groups_and_terminating_ones_are_refused() {
    let (one, two) = (group("one", &["a"], Origin::Ours), group("two", &["a"], Origin::Ours));
    let both = world(&[&one, &two]);
    assert!(matches!(creation(&Reader::new(&both), "garden", &one), Creation::Several(groups) if groups.len() == 2));
    let mut leaving = one.clone();
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let mut users = leaving.clone();
    Origin::User.mark(&mut users);
    for leaving in [leaving, users] {
        let world = world(&[&leaving]);
        assert!(matches!(creation(&Reader::new(&world), "garden", &one), Creation::Leaving(_)));
    }
}

#[test]
fn an_existing_group_may_differ_in_more_than_its_targets() {
    let there = group("ours", &["a"], Origin::Ours);
    let mut requested = group("requested", &["b"], Origin::Ours);
    assert!(differing(&there, &requested).is_empty());
    requested["spec"]["upgradeStrategy"] = "Default".into();
    requested["spec"]["staticProvidedAPIs"] = false.into();
    assert!(differing(&there, &requested).is_empty(), "these are the defaults");
    requested["spec"]["serviceAccountName"] = "installer".into();
    requested["spec"]["staticProvidedAPIs"] = true.into();
    assert_eq!(differing(&there, &requested), ["serviceAccountName", "staticProvidedAPIs"]);
}

#[test]
fn another_namespace_follows_from_the_group() {
    let targets = set(&["a", "b"]);
    let of = |namespace: &str, name: &str| {
        let mut group = group(name, &["a", "b"], Origin::Ours);
        group["metadata"]["namespace"] = namespace.into();
        other_namespace(namespace, &group, &targets)
    };
    assert_eq!(of("garden", "roses"), "garden-roses");
    let hashed = of("garden", "garden");
    assert!(hashed.starts_with("garden-") && hashed.len() == "garden-".len() + 6, "{hashed}");
    assert_eq!(hashed, of("garden", "garden"));
    assert_ne!(hashed, other_namespace("garden", &group("garden", &["c"], Origin::Ours), &set(&["c"])));
    let long = "n".repeat(63);
    assert_eq!(of(&long, "roses").len(), 63);
    assert!(of("garden", "a.b").starts_with("garden-") && !of("garden", "a.b").contains('.'));
}

#[test]
fn only_unused_groups_of_ours_are_deleted() {
    let ours = group("ours", &["garden"], Origin::Ours);
    let theirs = group("theirs", &["garden"], Origin::User);
    let subscription = testing::subscription("garden", "rose", &Value::Null);
    let decided = |objects: &[&Value], name: Option<&str>| {
        let world = world(objects);
        let reader = Reader::new(&world);
        match deletion(&reader, "garden", name) {
            Deletion::Absent => "absent".to_owned(),
            Deletion::Several(groups) => format!("{} groups", groups.len()),
            Deletion::UserManaged(group) => format!("{} is a user's", group.name()),
            Deletion::Leaving(group) => format!("{} is leaving", group.name()),
            Deletion::InUse { group, members } => {
                format!(
                    "{} has {}",
                    group.name(),
                    members.iter().map(|csv| object::name(csv)).collect::<Vec<_>>().join(" ")
                )
            }
            Deletion::Free { group, subscriptions } => format!("{} deleted, {}", group.name(), subscriptions.len()),
        }
    };
    let (fits, unfit) = (csv("rose.v1", &["OwnNamespace"]), csv("tulip.v1", &["AllNamespaces"]));
    let mut named = unfit.clone();
    object::set_annotation(&mut named, labels::OPERATOR_GROUP, "ours");
    let mut copy = fits.clone();
    object::set_label(&mut copy, "olm.copiedFrom", "elsewhere");
    assert_eq!(decided(&[], None), "absent");
    assert_eq!(decided(&[&ours], Some("other")), "absent");
    assert_eq!(decided(&[&theirs], None), "theirs is a user's");
    let mut leaving = ours.clone();
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(decided(&[&leaving, &fits], None), "ours is leaving");
    assert_eq!(decided(&[&ours, &theirs], None), "2 groups");
    assert_eq!(
        decided(&[&ours, &theirs, &fits], Some("ours")),
        "ours deleted, 0",
        "with two groups it is not a member"
    );
    assert_eq!(decided(&[&ours, &theirs, &named], Some("ours")), "ours has tulip.v1");
    assert_eq!(decided(&[&ours, &fits], None), "ours has rose.v1");
    assert_eq!(decided(&[&ours, &named], None), "ours has tulip.v1");
    assert_eq!(decided(&[&ours, &unfit, &copy, &subscription], None), "ours deleted, 1");
}
