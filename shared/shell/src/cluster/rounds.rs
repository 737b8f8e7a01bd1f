//! Determines which requests a command sends at the same time, for tests: the number of its rounds is how often it waits for the API server.

use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::api::Api;

/// How often a command may continue without sending a request before it counts as waiting. Nothing else runs on its thread.
const STEPS: usize = 200;

/// The requests without a response: the path of each, and how to release the response.
type Pending = Arc<Mutex<Vec<(String, oneshot::Sender<()>)>>>;

/// Runs a command against an API server that responds when the command waits for all its requests. Returns its result, and the sorted
/// paths of the requests of each round. `answer` returns the object at a path; none is a list without objects, or an object that does not exist.
pub(crate) async fn rounds<T>(
    answer: fn(&str) -> Option<Value>,
    command: impl AsyncFnOnce(Api) -> T,
) -> (T, Vec<Vec<String>>) {
    let pending = Pending::default();
    let asked = pending.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (release, released) = oneshot::channel();
        let path = request.uri().path().to_owned();
        asked.lock().unwrap_or_else(PoisonError::into_inner).push((path.clone(), release));
        let is_list = request.uri().query().is_some_and(|query| query.contains("limit="));
        async move {
            released.await.ok();
            let (code, object) = match answer(&path) {
                Some(object) => (StatusCode::OK, object),
                None if is_list => (StatusCode::OK, json!({ "metadata": { "resourceVersion": "1" }, "items": [] })),
                None => {
                    let refusal = json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404 });
                    (StatusCode::NOT_FOUND, refusal)
                }
            };
            let response = Response::builder().status(code).body(axum::body::Body::from(object.to_string()));
            response.map_err(tower::BoxError::from)
        }
    });
    let mut command = Box::pin(command(Api::new(kube::Client::new(service, "default"))));
    let mut rounds = Vec::new();
    loop {
        for _ in 0..STEPS {
            tokio::select! {
                biased;
                result = &mut command => return (result, rounds),
                () = tokio::task::yield_now() => {}
            }
        }
        let waiting = std::mem::take(&mut *pending.lock().unwrap_or_else(PoisonError::into_inner));
        let mut paths = Vec::new();
        for (path, release) in waiting {
            paths.push(path);
            release.send(()).ok();
        }
        paths.sort();
        if !paths.is_empty() {
            rounds.push(paths);
        }
    }
}
