//! A single writer at any time, regardless of what happens to the holder of the Lease: processes on a real API server, verified
//! by its audit log. Time only determines how long a test waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use kube::api::DeleteParams;
use olm_core::api::object::{self, ObjectRef};
use olm_tests::control_plane::audit::Entry;
use olm_tests::control_plane::skipped;
use olm_tests::faulty_api::{Call, Fault};
use serde_json::{Value, json};

use super::processes::Running;
use super::town::{TIMEOUT, Town, group, leases, namespace, resource, subscription};
use super::witness::{WRITER, judge};

/// Ten processes start at once, and each in turn is ended during its work. Then one takes over that has not yet observed the
/// previous writes.
fn ten_in_turn() {
    let town = Town::new();
    (0..3).for_each(|_| town.subscribe());
    let mut processes: Vec<Running> = (1..=10).map(|number| town.start(number)).collect();
    town.blooms();
    let mut holder = town.until_held(|holder| !holder.is_empty());
    while processes.len() > 1 {
        town.subscribe();
        town.plans();
        // HOST_PROCESS_RANDOM
        let at = processes.iter().position(|process| holder.contains(&format!("_{}_", process.id()))).unwrap();
        processes.remove(at).end();
        holder = town.until_held(|now| !now.is_empty() && now != holder);
    }
    town.blooms();
    town.judge("ten in turn", &[]);
    let (terms, _) = judge(&town.plane.audit().unwrap());
    assert_eq!(terms.len(), 10);
    assert!(terms[..9].iter().all(|term| term.writes > 0), "{terms:?}");

    // It has a Subscription that it does not observe for now, and for which there is nothing to do yet.
    let last = processes.remove(0);
    town.gardens.fetch_add(1, Ordering::Relaxed);
    town.create(&namespace("park"));
    town.create(&subscription("park"));
    let late = |call: &Call| {
        let is_late = ["Subscription", "InstallPlan", "ClusterServiceVersion"].iter().any(|kind| call.is_of(kind));
        (call.verb == "watch" && is_late).then_some(Fault::Late)
    };
    let (next, proxy) = town.start_behind(11, late);
    next.says("read the cluster");
    town.create(&group("park"));
    town.blooms();
    last.end();
    // All its work is done after this write.
    town.until_held(|now| !now.is_empty() && now != holder);
    town.create(&namespace("field"));
    town.create(&group("field"));
    let groups = resource("operators.coreos.com", "v1", "OperatorGroup", "operatorgroups");
    town.until(&groups, |groups| {
        let status = |group: &Value| !object::list(group, &["status", "namespaces"]).is_empty();
        groups.get(&("field".to_owned(), "field".to_owned())).is_some_and(status)
    });
    proxy.let_go();
    town.subscribe();
    town.blooms();
    next.end();
    town.judge("who has not seen it yet", &[]);
}

/// The holder is paused, and continues when it no longer holds the Lease.
fn stopped() {
    let town = Town::new();
    // If a process is paused between its check of the Lease and a write, the outcome is undefined. This one has nothing to
    // write.
    town.subscribe();
    let (code, said) = town.once(3);
    assert_eq!(code, Some(0), "{said}");
    let first = town.start(1);
    first.says("read the cluster");
    first.signal("STOP");
    let second = town.start(2);
    (0..3).for_each(|_| town.subscribe());
    second.says_within(TIMEOUT, "acquired the Lease");
    town.blooms();
    first.signal("CONT");
    first.says("holds the Lease");
    town.subscribe();
    back(&town, first, second, "stopped", &[3, 1, 2, 1]);
}

/// The previous holder acquires the Lease again, and continues.
fn back(town: &Town, first: Running, second: Running, name: &str, writers: &[usize]) {
    town.blooms();
    second.end();
    first.says("acquired the Lease");
    town.subscribe();
    town.blooms();
    first.end();
    town.judge(name, writers);
}

/// The holder's calls fail in these ways while work is added, until another process holds the Lease.
fn cut_off(name: &str, way: impl Fn(&Call, usize) -> Fault + Send + 'static) {
    let town = Town::new();
    let is_cut = Arc::new(AtomicBool::new(false));
    let (cut, mut calls) = (is_cut.clone(), 0);
    let (first, _proxy) = town.start_behind(1, move |call| {
        calls += 1;
        cut.load(Ordering::Relaxed).then(|| way(call, calls))
    });
    first.says("read the cluster");
    town.subscribe();
    town.blooms();
    is_cut.store(true, Ordering::Relaxed);
    let second = town.start(2);
    town.meanwhile(|| {
        second.says_within(TIMEOUT, "acquired the Lease");
        is_cut.store(false, Ordering::Relaxed);
        first.says("holds the Lease");
    });
    back(&town, first, second, name, &[1, 2, 1]);
}

/// Returns the fault of a call during a partition: some calls are executed and lose their response.
fn partition(call: &Call, number: usize) -> Fault {
    let reached = call.writes() && !call.is_of("Lease") && number.is_multiple_of(3);
    if number.is_multiple_of(2) { Fault::Silence { reached } } else { Fault::Drop { reached } }
}

/// A client deletes the Lease, and another writes invalid values into it, while its holder works and does not observe it.
fn deleted() {
    let town = Town::new();
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = is_cut.clone();
    let (first, _proxy) = town.start_behind(1, move |call| {
        (call.is_of("Lease") && cut.load(Ordering::Relaxed)).then_some(Fault::Silence { reached: false })
    });
    first.says("read the cluster");
    let second = town.start(2);
    second.says("holds the Lease");
    let holder = town.until_held(|holder| !holder.is_empty());
    town.meanwhile(|| {
        is_cut.store(true, Ordering::Relaxed);
        let gvk = leases().gvk;
        let lease = ObjectRef { gvk, namespace: "olm".to_owned(), name: "kubectl-olm-run".to_owned() };
        town.runtime.block_on(town.api.delete(&lease, &DeleteParams::default())).unwrap();
        assert_eq!(town.until_held(|_| true), holder, "it is put back as it was");
        // As written by clients with a wrong clock.
        for time in ["2000-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z", "2000-01-01T00:00:00.000000Z"] {
            let nonsense = json!({ "spec": { "renewTime": time, "acquireTime": time, "leaseDurationSeconds": 1 } });
            town.runtime.block_on(town.api.merge(&lease, &nonsense)).unwrap();
        }
        second.says_within(TIMEOUT, "acquired the Lease");
        is_cut.store(false, Ordering::Relaxed);
        first.says("holds the Lease");
    });
    let entries = town.plane.audit().unwrap();
    let deletion = entries.iter().position(|entry| entry.verb == "delete" && entry.resource == "leases").unwrap();
    let writes =
        |entry: &&Entry| entry.user == format!("{WRITER}1") && entry.resource != "leases" && entry.code.is_none();
    let after = entries[deletion..].iter().filter(writes).count();
    assert!(after > 0, "only the holder wrote");
    back(&town, first, second, "deleted", &[1, 2, 1]);
}

/// The holder is ended while a response is outstanding: its request may still be executed.
fn unanswered() {
    let town = Town::new();
    let (sender, held) = channel();
    let (first, proxy) = town.start_behind(1, move |call| {
        let is_held = call.verb == "create" && call.is_of("InstallPlan");
        // There is no receiver after the first.
        is_held.then(|| sender.send(()).ok()).map(|_| Fault::Held)
    });
    first.says("read the cluster");
    let second = town.start(2);
    second.says("holds the Lease");
    let holder = town.until_held(|holder| !holder.is_empty());
    town.subscribe();
    held.recv_timeout(TIMEOUT).unwrap();
    first.end();
    assert_eq!(town.until_held(|_| true), holder, "it is not let go");
    proxy.let_go();
    second.says_within(TIMEOUT, "acquired the Lease");
    town.blooms();
    second.end();
    town.judge("unanswered", &[1, 2]);
}

#[test]
fn two_processes_never_write_at_the_same_time() {
    if skipped() {
        return;
    }
    // Each mostly waits, for a minute.
    let scenarios: [(&str, fn()); 6] = [
        ("ten in turn", ten_in_turn),
        ("stopped", stopped),
        ("cut off", || cut_off("cut off", partition)),
        ("busy", || cut_off("busy", |_, _| Fault::Busy { seconds: 10 })),
        ("deleted", deleted),
        ("unanswered", unanswered),
    ];
    let asked = std::env::var("OLM_LEASE").unwrap_or_default();
    let chosen = scenarios.into_iter().filter(|(name, _)| name.contains(&asked));
    let running: Vec<_> = chosen.map(|(name, scenario)| (name, std::thread::spawn(scenario))).collect();
    let failed: Vec<&str> = running.into_iter().filter_map(|(name, run)| run.join().is_err().then_some(name)).collect();
    assert!(failed.is_empty(), "{failed:?}: see above");
}
