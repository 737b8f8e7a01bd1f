use std::io::Write;
use std::process::{Command, Stdio};

use olm_core::metrics::{CatalogState, CsvState};
use olm_core::plan::Plan;
use serde_json::json;

use super::*;

fn csv(name: &str, phase: &str, reason: &str) -> CsvState {
    let [namespace, name, version, phase, reason] = ["garden", name, "1.0.0", phase, reason].map(str::to_owned);
    CsvState { namespace, name, version, phase, reason }
}

fn subscription(namespace: &str, channel: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": "rose", "namespace": namespace, "uid": namespace },
        "spec": { "name": "rose", "channel": channel, "installPlanApproval": "Manual" },
    })
}

fn catalog(name: &str, ready: bool) -> CatalogState {
    CatalogState { namespace: "olm".to_owned(), name: name.to_owned(), ready }
}

/// Resolves the Subscriptions of a namespace in that World, as the planner does.
fn plan(metrics: &Metrics, world: &World, namespace: &str, resolved: Option<bool>) {
    let (reader, key) = (Reader::new(world), Key::new(Controller::Resolution, "", namespace));
    let planned = metrics.around()(&reader, &key, &mut || {
        if let Some(succeeded) = resolved {
            reader.note_resolution(succeeded);
        }
        Plan::nothing()
    });
    assert_eq!(planned, Plan::nothing());
}

/// Returns the lines of one metric.
fn lines(text: &str, name: &str) -> Vec<String> {
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ', '_']));
    text.lines().filter(of_name).map(str::to_owned).collect()
}

/// Returns metrics in which every name has a series.
fn all() -> Metrics {
    let (metrics, mut world) = (Metrics::default(), World::new());
    world.apply(subscription("garden", "stable"));
    plan(&metrics, &world, "garden", Some(true));
    plan(&metrics, &world, "garden", Some(false));
    metrics.ready();
    metrics.unsettled(1);
    metrics.blocked(&Key::new(Controller::Resolution, "", "garden"), 2);
    metrics.worked(&[Action::Create(json!({})), Action::UpdateStatus(json!({}))], 3);
    metrics.warned();
    metrics.snapshots("olm", "main", 2);
    metrics.snapshots("olm", "gone", 2);
    let objects = Objects {
        csvs: vec![
            csv("rose.v1", "Succeeded", "InstallSucceeded"),
            csv("tulip.v1", "Failed", "with \"quotes\", a \\ and\na line"),
        ],
        install_plans: 3,
        subscriptions: vec![SubscriptionState::from_object(&subscription("garden", "stable"))],
        catalog_sources: vec![catalog("down", false), catalog("main", true)],
    };
    metrics.counts().register(objects);
    metrics
}

#[tokio::test]
async fn metrics_have_olms_names_labels_and_types() {
    let text = all().text().await;
    for (name, kind, wanted) in [
        ("csv_count", "gauge", vec!["csv_count 2"]),
        (
            "csv_succeeded",
            "gauge",
            vec![
                r#"csv_succeeded{namespace="garden",name="rose.v1",version="1.0.0"} 1"#,
                r#"csv_succeeded{namespace="garden",name="tulip.v1",version="1.0.0"} 0"#,
            ],
        ),
        (
            "csv_abnormal",
            "gauge",
            vec![
                r#"csv_abnormal{namespace="garden",name="tulip.v1",version="1.0.0",phase="Failed",reason="with \"quotes\", a \\ and\na line"} 1"#,
            ],
        ),
        ("csv_upgrade_count", "counter", vec!["csv_upgrade_count 0"]),
        ("install_plan_count", "gauge", vec!["install_plan_count 3"]),
        ("subscription_count", "gauge", vec!["subscription_count 1"]),
        ("catalog_source_count", "gauge", vec!["catalog_source_count 2"]),
        (
            "catalogsource_ready",
            "gauge",
            vec![
                r#"catalogsource_ready{namespace="olm",name="down"} 0"#,
                r#"catalogsource_ready{namespace="olm",name="main"} 1"#,
            ],
        ),
        (
            "catalog_source_snapshots_total",
            "counter",
            vec![
                r#"catalog_source_snapshots_total{namespace="olm",name="down"} 0"#,
                r#"catalog_source_snapshots_total{namespace="olm",name="main"} 2"#,
            ],
        ),
        (
            "subscription_sync_total",
            "counter",
            vec![
                r#"subscription_sync_total{name="rose",installed="",channel="stable",package="rose",approval="Manual"} 2"#,
            ],
        ),
        ("installplan_warnings_total", "counter", vec!["installplan_warnings_total 1"]),
        (
            "kubectl_olm_actions_total",
            "counter",
            vec![
                r#"kubectl_olm_actions_total{verb="create"} 1"#,
                r#"kubectl_olm_actions_total{verb="updatestatus"} 1"#,
            ],
        ),
        ("kubectl_olm_refused_total", "counter", vec!["kubectl_olm_refused_total 3"]),
        ("kubectl_olm_unsettled", "gauge", vec!["kubectl_olm_unsettled 1"]),
        ("kubectl_olm_blocked", "gauge", vec!["kubectl_olm_blocked 1"]),
    ] {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name}: {text}");
        assert_eq!(lines(&text, name), wanted, "{name}");
    }
    assert!(text.contains("# TYPE olm_resolution_duration_seconds summary\n"), "{text}");
    let resolutions = lines(&text, "olm_resolution_duration_seconds");
    let without_values: Vec<&str> = resolutions.iter().filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
    let of = |outcome: &str| {
        let quantiles = ["0.9", "0.95", "0.99"]
            .map(|q| format!("olm_resolution_duration_seconds{{outcome=\"{outcome}\",quantile=\"{q}\"}}"));
        let ends =
            ["sum", "count"].map(|end| format!("olm_resolution_duration_seconds_{end}{{outcome=\"{outcome}\"}}"));
        quantiles.into_iter().chain(ends).collect::<Vec<_>>()
    };
    assert_eq!(without_values, [of("failed"), of("succeeded")].concat());
    assert!(resolutions.contains(&"olm_resolution_duration_seconds_count{outcome=\"failed\"} 1".to_owned()));
}

#[tokio::test]
async fn series_are_removed_with_their_objects_and_labels() {
    let metrics = all();
    metrics.counts().register(Objects { catalog_sources: vec![catalog("down", true)], ..Objects::default() });
    let text = metrics.text().await;
    for name in ["csv_succeeded", "csv_abnormal", "subscription_sync_total"] {
        assert_eq!(lines(&text, name), [""; 0], "{text}");
    }
    assert_eq!(lines(&text, "catalogsource_ready"), [r#"catalogsource_ready{namespace="olm",name="down"} 1"#]);
    assert_eq!(lines(&text, "catalog_source_snapshots_total").len(), 1, "{text}");
    assert_eq!(lines(&text, "csv_count"), ["csv_count 0"]);

    // Another channel is another series; two namespaces share one, because the namespace is not a label.
    let (metrics, mut world) = (Metrics::default(), World::new());
    world.apply(subscription("garden", "stable"));
    plan(&metrics, &world, "garden", None);
    world.apply(subscription("garden", "beta"));
    world.apply(subscription("field", "beta"));
    for namespace in ["garden", "field", "garden"] {
        plan(&metrics, &world, namespace, None);
    }
    metrics.counts().register(olm_core::metrics::objects(&Reader::new(&world)));
    let text = metrics.text().await;
    let beta = r#"subscription_sync_total{name="rose",installed="",channel="beta",package="rose",approval="Manual"} 3"#;
    assert_eq!(lines(&text, "subscription_sync_total"), [beta]);
    assert_eq!(lines(&text, "olm_resolution_duration_seconds"), [""; 0], "nothing was resolved");
}

#[tokio::test]
async fn an_upgrade_is_counted_on_its_event_and_scrapes_query_the_loop() {
    let (metrics, mut world) = (Metrics::default(), World::new());
    let csv = |phase: &str| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": "rose.v1", "namespace": "garden", "uid": "u" }, "status": { "phase": phase },
        })
    };
    for phase in ["Succeeded", "Replacing", "Replacing", "Deleting"] {
        metrics.observe(&world, &Event::Applied(csv(phase)));
        world.apply(csv(phase));
    }
    let mut scrapes = metrics.scrapes();
    let answer = async {
        let scrape = scrapes.recv().await.unwrap();
        scrape.send(olm_core::metrics::objects(&Reader::new(&world))).unwrap();
    };
    let (text, ()) = tokio::join!(metrics.text(), answer);
    assert_eq!(lines(&text, "csv_upgrade_count"), ["csv_upgrade_count 1"]);
    assert_eq!(lines(&text, "csv_abnormal").len(), 1);
    // The loop has ended: its last objects stay.
    drop(scrapes);
    assert_eq!(lines(&metrics.text().await, "csv_abnormal").len(), 1);
}

#[test]
fn quantiles_are_computed_from_observations() {
    let mut summary = Summary::default();
    assert!(summary.quantiles([0.9])[0].is_nan());
    (1..=100).rev().for_each(|n| summary.observe(Duration::from_secs(n)));
    assert_eq!(format!("{:?}", summary.quantiles([0.9, 0.95, 0.99])), "[90.0, 95.0, 99.0]");
    assert_eq!((summary.count, summary.sum), (100, 5050.0));
    let mut one = Summary::default();
    one.observe(Duration::from_secs(7));
    assert_eq!(format!("{:?}", one.quantiles([0.9, 0.99])), "[7.0, 7.0]");
}

/// OLM's names that promtool reports, and that must not change.
const OLMS_NAMES: [&str; 5] =
    ["csv_count", "csv_upgrade_count", "install_plan_count", "subscription_count", "catalog_source_count"];

#[tokio::test]
async fn promtool_accepts_the_text() {
    let started = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = started else {
        crate::testing::report_skipped("needs promtool, which is in Debian's package prometheus");
        return;
    };
    let text = all().text().await;
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let report = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    let mut of: Vec<&str> = report.lines().filter_map(|line| line.split(' ').next()).collect();
    of.dedup();
    of.sort_unstable();
    of.dedup();
    let mut olms = OLMS_NAMES.to_vec();
    olms.sort_unstable();
    // It reports that gauges must not end in _count, and that counters must end in _total. A syntax error has another message.
    assert_eq!(of, olms, "{report}\n{text}");
    assert_eq!(output.status.code(), Some(3), "only the names are reported: {report}");
}
