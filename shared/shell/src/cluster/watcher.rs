//! The only implementation of list and watch: it lists, watches from there on, resumes where a watch ended, and lists again if that is no
//! longer possible. After each end there is a pause ([`Backoff`]).

use std::pin::Pin;

use futures::{Stream, StreamExt};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;

use super::api::{Api, Depth, ListQuery, Page, WatchEvent};
use super::backoff::Backoff;

/// A step of a watcher.
pub(crate) enum Step {
    /// A page of a list; the list is complete if there is no next page.
    Page(Page),
    /// The watch has started.
    Watching,
    /// An event of the watch. Bookmarks and errors are handled and not returned.
    Event(WatchEvent),
    /// A list or a watch failed. The next step retries it.
    Failed(Status),
}

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent, Status>> + Send>>;

enum State {
    /// The next page is requested; the first if the token is empty.
    List { token: String },
    /// A watch is to start at a resourceVersion.
    Start { version: String },
    /// A watch is running and has reached a resourceVersion.
    Watch { version: String, events: Events },
}

/// The objects that are watched.
enum Subject {
    Query(ListQuery),
    /// An object whose kind may have to be discovered.
    Object(ObjectRef),
}

/// Lists and watches objects. It makes progress only in [`Watcher::next`].
pub(crate) struct Watcher {
    api: Api,
    subject: Subject,
    state: State,
    backoff: Backoff,
    is_pause_due: bool,
    /// How much of each object is watched, if it differs from the list.
    watched_depth: Option<Depth>,
}

impl Watcher {
    /// Creates a watcher of the objects of a query.
    pub(crate) fn new(api: Api, query: ListQuery) -> Self {
        Self::at(api, Subject::Query(query), State::List { token: String::new() })
    }

    /// Creates a watcher of one object.
    pub(crate) fn of_object(api: Api, target: ObjectRef) -> Self {
        Self::at(api, Subject::Object(target), State::List { token: String::new() })
    }

    /// Sets how much of each object is watched.
    pub(crate) fn watching(self, depth: Depth) -> Self {
        Self { watched_depth: Some(depth), ..self }
    }

    /// Creates a watcher of objects that were already listed, from the resourceVersion of that list on.
    pub(crate) fn resume(api: Api, query: ListQuery, version: String) -> Self {
        Self::at(api, Subject::Query(query), State::Start { version })
    }

    fn at(api: Api, subject: Subject, state: State) -> Self {
        Self { api, subject, state, backoff: Backoff::new(), is_pause_due: false, watched_depth: None }
    }

    /// Lists again, after a pause.
    pub(crate) fn relist(&mut self) {
        self.relist_now();
        self.is_pause_due = true;
    }

    /// Lists again, without a pause.
    pub(crate) fn relist_now(&mut self) {
        self.state = State::List { token: String::new() };
        self.is_pause_due = false;
    }

    /// Returns the next step. The future is cancel-safe.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            if self.is_pause_due {
                self.backoff.pause().await;
                self.is_pause_due = false;
            }
            let query = match self.query().await {
                Ok(query) => query,
                Err(status) => {
                    self.is_pause_due = true;
                    return Step::Failed(status);
                }
            };
            let depth = self.watched_depth.unwrap_or(query.depth);
            match &mut self.state {
                State::List { token } => match self.api.page(&query, token).await {
                    Ok(page) if page.next.is_empty() => {
                        self.state = State::Start { version: page.resource_version.clone() };
                        return Step::Page(page);
                    }
                    Ok(page) => {
                        token.clone_from(&page.next);
                        return Step::Page(page);
                    }
                    Err(status) => {
                        self.relist();
                        return Step::Failed(status);
                    }
                },
                State::Start { version } => match self.api.watch(&query.clone().depth(depth), version).await {
                    Ok(events) => {
                        self.state = State::Watch { version: std::mem::take(version), events: events.boxed() };
                        return Step::Watching;
                    }
                    // There was no response; the resourceVersion may still be valid.
                    Err(status) if status.code == 0 => {
                        self.is_pause_due = true;
                        return Step::Failed(status);
                    }
                    Err(status) => {
                        self.relist();
                        if !is_too_old(&status) {
                            return Step::Failed(status);
                        }
                    }
                },
                State::Watch { version, events } => match events.next().await {
                    Some(Ok(WatchEvent::Bookmark(known))) => *version = known,
                    Some(Ok(WatchEvent::Error(_))) => self.relist(),
                    Some(Ok(event)) => {
                        if let Some(known) = resource_version(&event) {
                            known.clone_into(version);
                        }
                        self.backoff.reset();
                        return Step::Event(event);
                    }
                    ended => {
                        if let Some(Err(status)) = ended {
                            tracing::debug!(kind = query.resource.gvk.kind, "the watch broke: {status}");
                        }
                        // An API server ends each watch after some minutes.
                        self.state = State::Start { version: std::mem::take(version) };
                        self.is_pause_due = true;
                    }
                },
            }
        }
    }

    async fn query(&mut self) -> Result<ListQuery, Status> {
        let target = match &self.subject {
            Subject::Query(query) => return Ok(query.clone()),
            Subject::Object(target) => target,
        };
        let query = ListQuery::one(&self.api.resource(&target.gvk).await?, target);
        self.subject = Subject::Query(query.clone());
        Ok(query)
    }
}

/// Returns whether a resourceVersion is too old to watch from.
fn is_too_old(status: &Status) -> bool {
    status.code == 410
}

fn resource_version(event: &WatchEvent) -> Option<&str> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            Some(object::resource_version(object))
        }
        WatchEvent::Unreadable(object) => {
            Some(object::resource_version(&object.stub)).filter(|known| !known.is_empty())
        }
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use olm_core::api::kinds;
    use serde_json::json;

    use super::super::api::Resource;
    use super::*;

    /// A server that returns these responses in order, and the queries of the requests.
    fn server(answers: Vec<(u16, String)>) -> (Api, Arc<Mutex<Vec<String>>>) {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let answers = Arc::new(Mutex::new(answers.into_iter()));
        let log = asked.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let query = request.uri().query().unwrap_or_default();
            let option =
                |name: &str| query.split('&').find(|part| part.starts_with(name)).unwrap_or_default().to_owned();
            log.lock().unwrap().push(option("resourceVersion=") + &option("watch="));
            let (code, text) = answers.lock().unwrap().next().unwrap_or((500, String::new()));
            let answer = http::Response::builder().status(code).body(axum::body::Body::from(text)).unwrap();
            async move { Ok::<_, Infallible>(answer) }
        });
        (Api::new(kube::Client::new(service, "default")), asked)
    }

    fn text(step: &Step) -> String {
        match step {
            Step::Page(page) => format!("page of {}", page.objects.len()),
            Step::Watching => "watching".to_owned(),
            Step::Event(event) => format!("event at {}", resource_version(event).unwrap_or_default()),
            Step::Failed(status) => format!("failed with {}", status.code),
        }
    }

    #[tokio::test]
    async fn a_watch_resumes_where_it_ended_and_lists_again_when_that_is_too_old() {
        let list =
            |version: &str| (200, json!({ "metadata": { "resourceVersion": version }, "items": [] }).to_string());
        let refusal = |code: u16| (code, json!({ "kind": "Status", "code": code, "message": "no" }).to_string());
        let event = json!({ "type": "ADDED", "object": { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "resourceVersion": "6" } } });
        let answers =
            vec![refusal(503), list("5"), (200, event.to_string() + "\n"), refusal(410), list("9"), refusal(403)];
        let (api, asked) = server(answers);
        let resource = Resource::from(&kinds::CONFIG_MAP);
        let mut watcher = Watcher::new(api, ListQuery::all(&resource));
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.push(text(&watcher.next().await));
        }
        let expected = ["failed with 503", "page of 0", "watching", "event at 6", "page of 0", "failed with 403"];
        assert_eq!(seen, expected);
        let watch = |version: &str| format!("resourceVersion={version}watch=true");
        assert_eq!(
            *asked.lock().unwrap(),
            [String::new(), String::new(), watch("5"), watch("6"), String::new(), watch("9")]
        );
    }
}
