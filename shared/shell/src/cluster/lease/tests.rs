//! When a process may hold the Lease, with simulated clocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use jiff::SignedDuration;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_795_000_000 + seconds).unwrap()
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_holder_that_does_not_respond_loses_the_lease() {
    let held = Record::held(None, "them", at(0));
    // The clock of the holder may be wrong: what counts is when the record was first observed.
    assert_eq!(held.next("me", false, None, secs(5000)), Next::Ask);
    assert_eq!(held.next("them", false, None, secs(5000)), Next::Keep);
    let asked = Record { requested_by: "me".to_owned(), ..held };
    assert_eq!(asked.next("me", false, Some(secs(1000)), secs(1059)), Next::Wait);
    assert_eq!(asked.next("me", false, Some(secs(1000)), secs(1060)), Next::Take);
    assert_eq!(asked.next("third", false, None, secs(5000)), Next::Wait);
    assert_eq!(asked.next("them", false, None, secs(5000)), Next::Take);
    let hurried = Record { duration: Duration::ZERO, ..asked.clone() };
    assert_eq!(
        hurried.next("me", false, Some(secs(1000)), secs(1059)),
        Next::Wait,
        "the minimum duration holds regardless of the Lease"
    );
    let answered = Record::held(Some(&asked), "them", at(20));
    assert_eq!(answered.next("me", false, Some(secs(1000)), secs(1059)), Next::Wait);
    assert_eq!(answered.next("me", false, Some(secs(1000)), secs(1060)), Next::Ask);
    assert_eq!(asked.released(at(5)).next("me", false, None, secs(5)), Next::Take);
    // A restored Lease may name a holder before the last one.
    let restored = Record { renewed: None, ..asked };
    assert_eq!(restored.next("them", false, Some(secs(1000)), secs(1059)), Next::Wait);
    assert_eq!(restored.next("them", true, Some(secs(1000)), secs(1001)), Next::Take);
    assert_eq!(restored.next("third", false, Some(secs(1000)), secs(1060)), Next::Take);
}

#[test]
fn renewal_keeps_the_acquire_time_and_a_new_holder_counts_as_a_transition() {
    let first = Record::held(None, "them", at(0));
    let renewed = Record::held(Some(&first), "them", at(20));
    assert_eq!((renewed.acquired, renewed.renewed, renewed.transitions), (Some(at(0)), Some(at(20)), 0));
    let taken = Record::held(Some(&renewed.released(at(30))), "me", at(40));
    assert_eq!((taken.acquired, taken.renewed, taken.transitions), (Some(at(40)), Some(at(40)), 1));
}

#[test]
fn a_record_round_trips_through_a_lease() {
    let record = Record::held(None, "me", at(0));
    for record in [Record { requested_by: "them".to_owned(), ..record.clone() }, record] {
        let mut lease = json!({ "metadata": { "name": NAME, "annotations": { REQUESTED_BY: "another" } } });
        record.write(&mut lease);
        assert_eq!(lease["spec"]["renewTime"], "2026-11-18T11:06:40.000000Z");
        assert_eq!(Record::from_lease(&lease), record);
    }
    assert_eq!(Record::from_lease(&json!({})).holder, "");
    assert_eq!(Record::from_lease(&json!({ "spec": { "leaseDurationSeconds": -1 } })).duration, Duration::ZERO);
}

#[test]
fn a_process_stops_writing_before_others_may_start() {
    assert!(LOOK + REQUEST_TIMEOUT + RETRY < VALID, "one failed read must not end the permit");
    assert!(VALID < DURATION);
}

#[test]
fn identities_are_unique() {
    assert_ne!(identity(), identity());
}

/// A cluster with one Lease and a simulated clock.
#[derive(Clone, Default)]
struct Cluster {
    lease: Arc<Mutex<(Option<Value>, u64)>>,
    steady: Arc<Mutex<Duration>>,
}

/// A process that wants to write.
struct Process {
    lease: Lease,
    permit: Permit,
    /// The offset of its wall clock.
    offset: Arc<Mutex<SignedDuration>>,
    is_cut_off: Arc<AtomicBool>,
}

impl Cluster {
    fn pass(&self, time: Duration) {
        *self.steady.lock().unwrap() += time;
    }

    /// Responds as an API server does, with optimistic locking.
    fn answer(&self, method: &http::Method, body: &[u8]) -> (u16, Value) {
        let mut lease = self.lease.lock().unwrap();
        let status = |code: u16, reason: &str| {
            let message = reason.to_lowercase();
            (code, json!({ "kind": "Status", "code": code, "reason": reason, "message": message }))
        };
        let sent = || serde_json::from_slice::<Value>(body).unwrap();
        let known = lease.0.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        let mut new = match (method.as_str(), known) {
            ("GET", Some(_)) => return (200, lease.0.clone().unwrap()),
            ("GET" | "PUT", None) => return status(404, "NotFound"),
            ("POST", Some(_)) => return status(409, "AlreadyExists"),
            ("POST", None) => sent(),
            ("PUT", Some(known)) => {
                let new = sent();
                if new["metadata"]["resourceVersion"] != known {
                    return status(409, "Conflict");
                }
                new
            }
            other => panic!("{other:?}"),
        };
        lease.1 += 1;
        new["metadata"]["resourceVersion"] = lease.1.to_string().into();
        lease.0 = Some(new.clone());
        (200, new)
    }

    async fn process(&self) -> Process {
        let (offset, is_cut_off) = (Arc::new(Mutex::new(SignedDuration::ZERO)), Arc::new(AtomicBool::new(false)));
        let (cluster, cut) = (self.clone(), is_cut_off.clone());
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (cluster, cut) = (cluster.clone(), cut.clone());
            async move {
                let method = request.method().clone();
                let body = request.into_body().collect_bytes().await.unwrap();
                let cut_off = || (500, json!({ "kind": "Status", "code": 500, "message": "cut off" }));
                let (code, answer) =
                    if cut.load(Ordering::Relaxed) { cut_off() } else { cluster.answer(&method, &body) };
                http::Response::builder().status(code).body(kube::client::Body::from(answer.to_string().into_bytes()))
            }
        });
        let (steady, wall) = (self.steady.clone(), offset.clone());
        let clock = Clock::new(move || {
            let steady = *steady.lock().unwrap();
            let since = SignedDuration::try_from(steady).unwrap();
            Moment { steady, wall: at(0).checked_add(since + *wall.lock().unwrap()).unwrap() }
        });
        let lease = Lease::with(Api::new(kube::Client::new(service, "default")), clock).await;
        let permit = lease.permit();
        Process { lease, permit, offset, is_cut_off }
    }

    fn delete(&self) {
        self.lease.lock().unwrap().0 = None;
    }
}

impl Process {
    async fn claims(&mut self) -> bool {
        self.lease.claim().await.is_ok()
    }
}

#[tokio::test]
async fn a_clock_that_jumps_does_not_transfer_the_lease() {
    let cluster = Cluster::default();
    let (mut holder, mut standby) = (cluster.process().await, cluster.process().await);
    assert!(holder.claims().await && !standby.claims().await, "a request is pending");
    *standby.offset.lock().unwrap() = SignedDuration::from_hours(24);
    cluster.pass(secs(30));
    assert!(!standby.claims().await && holder.permit.is_given());
    // The holder's own clock jumps: forward, it stops until it has read the Lease; backward, its permit is not extended.
    *holder.offset.lock().unwrap() = SignedDuration::from_secs(61);
    assert!(!holder.permit.is_given());
    assert!(holder.claims().await && holder.permit.is_given());
    *holder.offset.lock().unwrap() = SignedDuration::from_hours(-24);
    cluster.pass(VALID);
    assert!(!holder.permit.is_given());
}

#[tokio::test]
async fn a_disconnected_holder_stops_before_another_process_starts() {
    let cluster = Cluster::default();
    let (mut holder, mut standby) = (cluster.process().await, cluster.process().await);
    assert!(holder.claims().await && !standby.claims().await);
    holder.is_cut_off.store(true, Ordering::Relaxed);
    for _ in 0..60 {
        cluster.pass(secs(1));
        assert!(!holder.claims().await || !standby.permit.is_given());
        assert!(!standby.claims().await);
    }
    assert!(!holder.permit.is_given());
    cluster.pass(secs(1));
    assert!(standby.claims().await && standby.permit.is_given());
    holder.is_cut_off.store(false, Ordering::Relaxed);
    assert!(!holder.claims().await && !holder.permit.is_given());
}

#[tokio::test]
async fn a_deleted_lease_stays_with_its_holder_for_its_duration() {
    let cluster = Cluster::default();
    let (mut holder, mut standby) = (cluster.process().await, cluster.process().await);
    assert!(holder.claims().await && !standby.claims().await);
    let acquired = |cluster: &Cluster| cluster.lease.lock().unwrap().0.clone().unwrap()["spec"]["acquireTime"].clone();
    let since = acquired(&cluster);
    cluster.delete();
    cluster.pass(secs(5));
    assert!(!standby.claims().await, "its holder may not have observed the deletion yet");
    assert_eq!(acquired(&cluster), since, "the record is restored");
    assert!(holder.claims().await && holder.permit.is_given(), "it creates it again");
    assert_eq!(acquired(&cluster), since, "with the same identity");
    assert!(!standby.claims().await && holder.permit.is_given());

    // The holder has ended.
    cluster.delete();
    for _ in 0..60 {
        assert!(!standby.claims().await);
        cluster.pass(secs(1));
    }
    assert!(!holder.permit.is_given() && standby.claims().await);

    // A new process creates the Lease first: the former holder stops as soon as it reads the Lease.
    cluster.delete();
    let mut new = cluster.process().await;
    assert!(new.claims().await);
    assert!(!standby.claims().await && !standby.permit.is_given());
}

#[tokio::test]
async fn a_release_with_a_pending_write_delays_the_next_holder() {
    let cluster = Cluster::default();
    let (mut holder, mut standby) = (cluster.process().await, cluster.process().await);
    assert!(holder.claims().await && !standby.claims().await);
    // A write without a response may still take effect.
    drop(holder.permit.begin());
    holder.lease.release().await;
    assert!(!holder.permit.is_given());
    for _ in 0..60 {
        assert!(!standby.claims().await);
        cluster.pass(secs(1));
    }
    assert!(standby.claims().await);

    standby.permit.begin().unwrap().answered();
    standby.lease.release().await;
    assert!(holder.claims().await, "the lost write is long ago");
    holder.lease.release().await;
    assert!(standby.claims().await);
    assert!(standby.claims().await && standby.lease.last.as_ref().is_some_and(|last| last.holder == standby.lease.me));
    let terms = |process: &Process| process.permit.term();
    assert_eq!((terms(&holder), terms(&standby)), (2, 2), "renewal starts no new term");
}

#[tokio::test]
async fn there_are_never_two_writers() {
    for seed in 0..200_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        let cluster = Cluster::default();
        let mut processes = Vec::new();
        for _ in 0..3 {
            processes.push(cluster.process().await);
        }
        for process in &mut processes {
            process.claims().await;
        }
        let mut writes = [0; 3];
        for step in 0..300 {
            let which = usize::try_from(below(3)).unwrap();
            match below(10) {
                0 => cluster.delete(),
                1 => {
                    let is_cut_off = &processes[which].is_cut_off;
                    is_cut_off.store(below(2) == 0, Ordering::Relaxed);
                }
                2 => {
                    let offset = SignedDuration::from_secs(i64::try_from(below(400)).unwrap() - 200);
                    *processes[which].offset.lock().unwrap() = offset;
                }
                3 if below(3) == 0 => processes[which].lease.release().await,
                // The other processes are suspended meanwhile.
                4..=7 => drop(processes[which].claims().await),
                _ => cluster.pass(secs(below(15))),
            }
            let writers: Vec<usize> = (0..3).filter(|n| processes[*n].permit.is_given()).collect();
            assert!(writers.len() <= 1, "seed {seed}, step {step}: {writers:?}");
            for n in &writers {
                writes[*n] += 1;
            }
        }
        assert!(writes.iter().sum::<u32>() > 0, "seed {seed}: no process writes");
    }
}

#[tokio::test]
async fn every_write_checks_the_permit_and_ends_with_it() {
    // The server is busy and requests a retry; meanwhile the Lease is lost.
    let sent = Arc::new(Mutex::new(Vec::new()));
    let (until, clock) = (watch::Sender::new(None), Clock::system());
    let until = Arc::new(until);
    let permit = Permit::until(until.subscribe(), clock.clone(), Arc::default());
    let (log, losing) = (sent.clone(), until.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (log, losing) = (log.clone(), losing.clone());
        async move {
            let is_slow = request.uri().path().contains("slow");
            log.lock().unwrap().push(request.method().to_string());
            if is_slow {
                std::future::pending::<()>().await;
            }
            losing.send_replace(None);
            let busy =
                json!({ "kind": "Status", "code": 429, "message": "busy", "details": { "retryAfterSeconds": 1 } });
            http::Response::builder().status(429).body(kube::client::Body::from(busy.to_string().into_bytes()))
        }
    });
    let api = Api::new(kube::Client::new(service, "default")).with_permit(&permit);
    api.register(Resource::from(&kinds::CONFIG_MAP)).await;
    let of = |namespace: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "rose", "namespace": namespace } });

    until.send_replace(Some(clock.now().after(DURATION)));
    let refusal = api.create(&of("garden")).await.unwrap_err();
    assert_eq!((refusal.reason.as_str(), sent.lock().unwrap().len()), ("NotTheWriter", 1), "{refusal}");
    let refusal = api.update(&of("garden"), None).await.unwrap_err();
    assert_eq!((refusal.reason.as_str(), sent.lock().unwrap().len()), ("NotTheWriter", 1), "{refusal}");

    until.send_replace(Some(clock.now().after(Duration::from_millis(50))));
    let refusal = api.create(&of("slow")).await.unwrap_err();
    assert_eq!((refusal.reason.as_str(), sent.lock().unwrap().len()), ("NoAnswer", 2), "{refusal}");
    assert!(!permit.is_given());
    assert!(Permit::always().is_given());
}
