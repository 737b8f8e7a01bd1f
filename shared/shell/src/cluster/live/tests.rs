//! The loop against an API server with one OperatorGroup.

use std::convert::Infallible;
use std::sync::Mutex;

use olm_core::planner::Around;
use olm_core::settings::Settings;
use serde_json::json;

use super::*;

/// An observer that ignores all reports.
struct Silent;

impl Observer for Silent {
    fn started(&mut self, _: &World) {}
    fn worked(&mut self, _: &Key, _: &[Action], _: &[Status]) {}
    fn trouble(&mut self, _: &Gvk, _: &Status) {}
    fn recovered(&mut self, _: &Gvk) {}
    fn unreadable(&mut self, _: &Unreadable) {}
    fn unsettled(&mut self, _: usize) {}
    fn reasons(&mut self, _: &Key, _: &[Reason]) {}
}

fn api() -> Api {
    let service = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
        let uri = request.uri().to_string();
        let items = if uri.contains("/operatorgroups") {
            json!([{ "metadata": { "name": "all", "namespace": "garden", "uid": "g", "resourceVersion": "1" } }])
        } else {
            json!([])
        };
        let body = if uri.contains("watch=") {
            axum::body::Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, Infallible>>())
        } else {
            json!({ "metadata": { "resourceVersion": "9" }, "items": items }).to_string().into()
        };
        Ok::<_, Infallible>(http::Response::new(body))
    });
    Api::new(kube::Client::new(service, "default"))
}

#[tokio::test]
async fn a_slow_plan_delays_nothing_else() {
    let (begins, mut begun) = mpsc::unbounded_channel();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let around: Around = Arc::new(move |_, _, plan| {
        let _ = begins.send(());
        // Until the test ends.
        let _ = held.lock().map(|held| held.recv());
        plan()
    });
    let planner = Planner::measured(Settings::default(), around);
    let catalogs = Catalogs::read(&[], "olm", crate::image::Options::default(), |_| None).unwrap();
    // The test has one thread: the loop can be stopped while it plans.
    let stop = async move {
        begun.recv().await;
    };
    let end = run(api(), planner, catalogs, Permit::always(), &LoopOptions::default(), &mut Silent, stop).await;
    assert_eq!(end, End::Stopped(Vec::new()));
    drop(release);
}
