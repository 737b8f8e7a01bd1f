use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::plan::Controller;
use crate::world::kind;

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn subscription(name: &str, rv: u64) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": name, "namespace": "tea", "uid": name, "resourceVersion": rv.to_string() },
    })
}

fn key(name: &str) -> Key {
    Key::new(Controller::Adoption, "tea", name)
}

fn role(name: &str) -> Value {
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": name, "namespace": "tea" } })
}

/// A controller that creates a Role with the name of each Subscription.
fn wants_role(reader: &Reader<'_>, key: &Key, _: Timestamp) -> Plan {
    if key.controller != Controller::Adoption || reader.json(&kind::SUBSCRIPTION, "tea", &key.name).is_none() {
        return Plan::nothing();
    }
    match reader.json(&kind::ROLE, "tea", &key.name) {
        Some(_) => Plan::nothing(),
        None => Plan::act(vec![Action::Create(role(&key.name))]),
    }
}

fn planner(plan: impl Fn(&Reader<'_>, &Key, Timestamp) -> Plan + Send + Sync + 'static) -> Planner {
    Planner::with(Arc::new(plan))
}

#[test]
fn a_key_is_planned_when_its_object_appears_and_when_what_it_read_changes() {
    let mut planner = planner(wants_role);
    planner.observe(Event::Applied(subscription("pot", 1)));
    let work = planner.next(now()).unwrap();
    assert_eq!((work.key.clone(), work.actions.len()), (key("pot"), 1));
    let mut made = role("pot");
    made["metadata"]["resourceVersion"] = "2".into();
    planner.observe(Event::Applied(made.clone()));
    planner.done(&work.key, &work.actions, vec![], now());
    assert_eq!(planner.next(now()), None, "the next plan is empty");
    assert!(planner.is_quiet());

    made["metadata"]["resourceVersion"] = "3".into();
    planner.observe(Event::Deleted(made));
    assert_eq!(planner.next(now()).unwrap().key, key("pot"));
}

#[test]
fn a_key_is_not_planned_while_it_runs() {
    let mut planner = planner(wants_role);
    planner.observe(Event::Applied(subscription("pot", 1)));
    let work = planner.next(now()).unwrap();
    planner.observe(Event::Applied(subscription("pot", 2)));
    assert_eq!(planner.next(now()), None);
    assert!(!planner.is_quiet());
    planner.done(&work.key, &[], vec![], now());
    assert_eq!(planner.next(now()).unwrap().key, key("pot"));
}

#[test]
fn a_refused_action_is_retried_with_growing_pauses_and_reported() {
    let mut planner = planner(wants_role);
    planner.observe(Event::Applied(subscription("pot", 1)));
    let mut at = now();
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let work = planner.next(at).unwrap();
        assert_eq!(planner.next(at), None, "no other key acts");
        assert_eq!(planner.unsettled(), 1, "it is retried");
        let status = Status::new(403, "Forbidden", "no");
        planner.done(&work.key, &[], vec![Failure { action: work.actions[0].clone(), status }], at);
        assert_eq!(planner.next(at), None);
        let wakeup = planner.wakeup().unwrap();
        pauses.push(wakeup.duration_since(at));
        assert_eq!(planner.unsettled(), usize::from(pauses.len() <= 5), "after {} refusals", pauses.len());
        at = wakeup;
    }
    assert!(pauses.windows(2).all(|p| p[0] < p[1] || p[1] > SignedDuration::from_secs(20)), "{pauses:?}");
    assert!(pauses.iter().all(|p| *p <= backoff::LONGEST));
    let (_, reasons) = planner.reasons().next().unwrap();
    assert!(matches!(reasons, [Reason::Refused { attempts: 12, .. }]), "{reasons:?}");
}

#[test]
fn a_refusal_due_to_a_stale_world_is_planned_again_at_once() {
    let mut planner = planner(wants_role);
    planner.observe(Event::Applied(subscription("pot", 1)));
    let work = planner.next(now()).unwrap();
    let status = Status::already_exists("roles", "pot");
    planner.done(&work.key, &[], vec![Failure { action: work.actions[0].clone(), status }], now());
    assert!(planner.next(now()).is_some());
}

#[test]
fn a_panic_is_contained_and_reported() {
    let mut planner = planner(|reader, key, now| {
        assert!(*key != self::key("bad"), "tried {}", key.name);
        wants_role(reader, key, now)
    });
    for name in ["bad", "good"] {
        planner.observe(Event::Applied(subscription(name, 1)));
    }
    assert_eq!(planner.next(now()).unwrap().key, key("good"));
    let reasons: Vec<_> = planner.reasons().collect();
    assert!(
        matches!(reasons[..], [(k, [Reason::Panicked { message }])] if *k == key("bad") && message == "tried bad"),
        "{reasons:?}"
    );
}

#[test]
fn a_key_that_never_settles_is_slowed_down() {
    let mut planner = planner(|_, key, _| match key.controller {
        Controller::Adoption => Plan::act(vec![Action::Create(role("again"))]),
        _ => Plan::nothing(),
    });
    planner.observe(Event::Applied(subscription("pot", 1)));
    let mut planned = 0;
    while let Some(work) = planner.next(now()) {
        planned += 1;
        assert!(planned < 1000, "it spins");
        planner.done(&work.key, &work.actions, vec![], now());
    }
    assert_eq!(planned, LONGEST_STREAK);
    assert!(planner.wakeup().unwrap() > now());
}

#[test]
fn the_order_of_plans_follows_from_the_order_of_events() {
    let run = |names: &[&str]| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let mut planner = planner(move |_, key, _| {
            log.lock().unwrap().push(key.to_string());
            Plan::nothing()
        });
        for name in names {
            planner.observe(Event::Applied(subscription(name, 1)));
        }
        assert_eq!(planner.next(now()), None);
        let seen = seen.lock().unwrap();
        seen.clone()
    };
    assert_eq!(run(&["b", "a"]), run(&["b", "a"]));
    assert_ne!(run(&["b", "a"]), run(&["a", "b"]));
}

#[test]
fn a_timer_plans_a_key_without_a_change() {
    let plans = Arc::new(AtomicU32::new(0));
    let count = plans.clone();
    let mut planner = planner(move |_, key, now| {
        if key.controller != Controller::Adoption {
            return Plan::nothing();
        }
        count.fetch_add(1, Ordering::Relaxed);
        Plan::nothing().again_at(now + SignedDuration::from_secs(5))
    });
    planner.observe(Event::Applied(subscription("pot", 1)));
    assert_eq!(planner.next(now()), None);
    let at = planner.wakeup().unwrap();
    assert_eq!(at, now() + SignedDuration::from_secs(5));
    assert_eq!(planner.next(at), None);
    assert_eq!(plans.load(Ordering::Relaxed), 2);
}

#[test]
fn pauses_of_keys_that_failed_together_differ() {
    let pauses: std::collections::BTreeSet<_> = (0..20).map(|n| backoff::pause(&key(&n.to_string()), 5)).collect();
    assert!(pauses.len() > 10, "{pauses:?}");
}

#[test]
fn a_batch_and_all_later_actions_wait_for_a_refused_action_of_the_batch() {
    let mut planner = planner(|reader, key, _| {
        if key.controller != Controller::Adoption || reader.json(&kind::SUBSCRIPTION, "tea", &key.name).is_none() {
            return Plan::nothing();
        }
        let create = |name| Action::Create(role(name));
        Plan::in_batches(vec![vec![create("a")], vec![create("b"), create("c")], vec![create("d")]])
    });
    planner.observe(Event::Applied(subscription("pot", 1)));
    let work = planner.next(now()).unwrap();
    assert_eq!(work.order.batches(4).len(), 3);
    let refused = Failure { action: work.actions[2].clone(), status: Status::new(500, "InternalError", "oh") };
    planner.done(&work.key, &work.actions[..2], vec![refused], now());
    let held = planner.next(now()).unwrap();
    assert_eq!(held.actions, work.actions[..1], "only the actions before the batch");
    let shown: Vec<&Reason> = planner.reasons().flat_map(|(_, reasons)| reasons).collect();
    assert!(matches!(shown[..], [Reason::Refused { attempts: 1, .. }]), "{shown:?}");
}

#[test]
fn only_keys_that_repeat_the_same_actions_are_paused() {
    let runs = |names: u32| {
        let count = AtomicU32::new(0);
        let mut planner = planner(move |_, key, _| {
            if key.controller != Controller::Adoption {
                return Plan::nothing();
            }
            Plan::act(vec![Action::Create(role(&(count.fetch_add(1, Ordering::Relaxed) % names).to_string()))])
        });
        planner.observe(Event::Applied(subscription("pot", 1)));
        let mut worked = 0;
        while worked < 200
            && let Some(work) = planner.next(now())
        {
            planner.done(&work.key, &work.actions, vec![], now());
            worked += 1;
        }
        worked
    };
    assert_eq!(runs(1), super::LONGEST_STREAK);
    assert_eq!(runs(1000), 200);
}

#[test]
fn nothing_is_created_in_a_namespace_that_is_being_deleted() {
    let namespace = |rv: u64, deleted: Value| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": "tea", "uid": "tea", "resourceVersion": rv.to_string(), "deletionTimestamp": deleted },
        })
    };
    let emit = |regarding: Value| {
        Action::Emit(crate::plan::Emit { regarding, warning: true, reason: "R".to_owned(), message: String::new() })
    };
    for (ordered, done) in [(true, 1), (false, 2)] {
        let mut planner = planner(move |reader: &Reader<'_>, key: &Key, now: Timestamp| {
            let wanted = wants_role(reader, key, now);
            if wanted.actions.is_empty() {
                return wanted;
            }
            let delete = |name| Action::delete(&role(name), crate::plan::Propagation::Background);
            let [create] = &wanted.actions[..] else { panic!("{wanted:?}") };
            let actions = vec![delete("a"), emit(role("a")), create.clone(), delete("b")];
            if ordered { Plan::act(actions) } else { Plan::unordered(actions) }
        });
        planner.observe(Event::Applied(namespace(1, "2026-11-21T11:00:00Z".into())));
        planner.observe(Event::Applied(subscription("pot", 2)));
        let work = planner.next(now()).unwrap();
        let verbs: Vec<Verb> = work.actions.iter().map(Action::verb).collect();
        assert_eq!(verbs, vec![Verb::Delete; done], "later actions wait, unless the order is any");
        let reasons: Vec<_> = planner.reasons().flat_map(|(_, reasons)| reasons.to_vec()).collect();
        assert_eq!(reasons, [Reason::NamespaceTerminating { namespace: "tea".to_owned() }]);
        planner.done(&work.key, &work.actions, vec![], now());
        // The namespace is created again.
        planner.observe(Event::Deleted(namespace(3, Value::Null)));
        planner.observe(Event::Applied(namespace(4, Value::Null)));
        assert_eq!(planner.next(now()).unwrap().actions.len(), 4);
    }
}

#[test]
fn discovery_results_are_stored_while_a_plan_reads_them() {
    let mut planner = planner(|reader: &Reader<'_>, key: &Key, _| {
        let is_there = reader.json(&kind::SUBSCRIPTION, "tea", &key.name).is_some();
        if is_there && reader.discovery("apps", "v1").is_none() {
            let (group, version) = ("apps".to_owned(), "v1".to_owned());
            return Plan::act(vec![Action::Ask(crate::plan::Question::Discover { group, version })]);
        }
        Plan::nothing()
    });
    let fact = FactKey::Discovery("apps".to_owned(), "v1".to_owned());
    let learned = || Event::Learned(fact.clone(), Some(Fact::Discovery(crate::world::Discovery::failed("away"))));
    assert!(!planner.observe(learned()), "a late result is not stored");
    planner.observe(Event::Applied(subscription("pot", 1)));
    let work = planner.next(now()).unwrap();
    assert!(planner.is_read(&fact) && planner.observe(learned()));
    planner.done(&work.key, &work.actions, vec![], now());
    assert_eq!(planner.next(now()), None);
    assert_eq!(planner.world().discovered().count(), 1);
    planner.observe(Event::Deleted(subscription("pot", 2)));
    assert_eq!(planner.next(now()), None);
    assert!(!planner.is_read(&fact));
    assert_eq!(planner.world().discovered().count(), 0);
}

/// Returns a ClusterServiceVersion with its finalizer, and a ClusterRole that belongs to it.
fn csv_with_role(name: &str, deleted: bool) -> [Value; 2] {
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {
            "name": name, "namespace": "tea", "uid": name, "resourceVersion": "1",
            "finalizers": ["example.com/mine", "operators.coreos.com/csv-cleanup"],
        },
    });
    if deleted {
        csv["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z".into();
    }
    let labels = json!({ "olm.owner": name, "olm.owner.namespace": "tea", "olm.owner.kind": "ClusterServiceVersion" });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": format!("{name}-role"), "uid": format!("{name}-role"), "resourceVersion": "1", "labels": labels },
    });
    [csv, role]
}

#[test]
fn releasing_waits_for_csvs_of_a_namespace_that_is_being_deleted_and_cleans_up_after_its_operator_groups() {
    let names = [("tea".to_owned(), "stays".to_owned())];
    let mut planner = Planner::releasing(crate::settings::Settings::default(), names.into());
    let [csv, _] = csv_with_role("stays", false);
    let key = Key::new(Controller::ClusterServiceVersion, "tea", "stays");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "tea", "uid": "tea", "resourceVersion": "1", "deletionTimestamp": "2026-11-21T12:00:00Z" },
    });
    let of_group = json!({
        "olm.owner": "pot", "olm.owner.namespace": "tea", "olm.owner.kind": "OperatorGroup", "olm.managed": "true",
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "olm.og.pot.admin-x", "uid": "r", "resourceVersion": "1", "labels": of_group },
    });
    for object in [namespace, csv, role] {
        planner.observe(Event::Applied(object));
    }
    let work = planner.next(now()).unwrap();
    assert_eq!(work.actions.iter().map(|a| a.target().name).collect::<Vec<_>>(), ["olm.og.pot.admin-x"]);
    assert_eq!(planner.next(now()), None);
    let reasons: Vec<_> = planner.reasons().filter(|(of, _)| **of == key).flat_map(|(_, reasons)| reasons).collect();
    assert!(matches!(reasons[..], [Reason::StatusWaits { .. }]), "{reasons:?}");
}

#[test]
fn releasing_affects_only_deleted_csvs() {
    let names = ["gone", "stays"].map(|name| ("tea".to_owned(), name.to_owned()));
    let mut planner = Planner::releasing(crate::settings::Settings::default(), names.into());
    let [gone, role] = csv_with_role("gone", true);
    let others = [csv_with_role("stays", false), csv_with_role("other", true)];
    for object in [gone.clone(), role.clone()].into_iter().chain(others.into_iter().flatten()) {
        planner.observe(Event::Applied(object));
    }
    let work = planner.next(now()).unwrap();
    let done: Vec<_> = work.actions.iter().map(|a| (a.verb(), a.target().name)).collect();
    assert_eq!(done, [(Verb::Delete, "gone-role".to_owned())], "the cleanup precedes the removal of the finalizer");
    assert_eq!(planner.next(now()), None);
    planner.observe(Event::Deleted(role));
    planner.done(&work.key, &work.actions, vec![], now());
    let work = planner.next(now()).unwrap();
    let [Action::Update(released)] = &work.actions[..] else { panic!("{:?}", work.actions) };
    assert_eq!(
        released["metadata"]["finalizers"],
        json!(["example.com/mine"]),
        "finalizers of other controllers are not removed"
    );
    let mut released = released.clone();
    released["metadata"]["resourceVersion"] = "2".into();
    planner.observe(Event::Applied(released));
    planner.done(&work.key, &work.actions, vec![], now());
    assert_eq!(planner.next(now()), None);
}
