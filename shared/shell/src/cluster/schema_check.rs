//! Validates the custom resources of the cluster against schemas, page by page.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use olm_core::structural::{SchemaCheck, SchemaCheckResult, SchemaChecker};

use super::api::{Api, Depth, ListQuery, Resource, WatchEvent};
use super::decode;

/// The maximum number of attempts to list when the continue token expires.
const TRIES: usize = 3;

/// How long to wait for a change of a custom resource: after that the check is repeated anyway.
const WATCHED: Duration = Duration::from_secs(30);

/// The pause after a change, because a client that fixes one object may fix others shortly after.
const SETTLES: Duration = Duration::from_secs(1);

/// Reads every custom resource in every requested version. At most one page is in memory at a time. Returns the result and the
/// resourceVersion of the first list.
pub(crate) async fn check(api: &Api, question: &SchemaCheck) -> (SchemaCheckResult, String) {
    let mut tries = 0;
    loop {
        tries += 1;
        let (mut fitting, mut since) = (SchemaChecker::new(question), String::new());
        match read(api, question, &mut fitting, &mut since).await {
            Ok(()) => return (fitting.end(Timestamp::now(), None), since),
            // The result of the failed attempt is discarded, so that no object counts twice.
            Err(refusal) if refusal.code == 410 && tries < TRIES => {}
            Err(refusal) => return (fitting.end(Timestamp::now(), Some(refusal)), since),
        }
    }
}

/// Waits until a custom resource has changed since that resourceVersion. Returns `false` if no change was observed.
pub(super) async fn changes(api: &Api, question: &SchemaCheck, since: &str) -> bool {
    let Some((version, _)) = question.schemas.first() else { return false };
    let seen = async {
        let mut events = std::pin::pin!(
            api.watch(&ListQuery::all(&resource(question, version)).depth(Depth::Metadata), since).await.ok()?
        );
        while let Some(event) = events.next().await {
            match event.ok()? {
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => return None,
                _ => return Some(()),
            }
        }
        None
    };
    let seen = tokio::time::timeout(WATCHED, seen).await.ok().flatten().is_some();
    if seen {
        tokio::time::sleep(SETTLES).await;
    }
    seen
}

fn resource(question: &SchemaCheck, version: &str) -> Resource {
    Resource {
        gvk: Gvk::new(&question.group, version, &question.kind),
        plural: question.plural.clone(),
        namespaced: question.namespaced,
    }
}

async fn read(
    api: &Api,
    question: &SchemaCheck,
    fitting: &mut SchemaChecker<'_>,
    since: &mut String,
) -> Result<(), Status> {
    for (version, _) in &question.schemas {
        let resource = resource(question, version);
        let mut token = String::new();
        loop {
            let page = api.page(&ListQuery::all(&resource), &token).await?;
            if since.is_empty() {
                since.clone_from(&page.resource_version);
            }
            // An object that cannot be decoded may be invalid.
            if let Some(object) = page.unreadable.first() {
                return Err(decode::refusal(object));
            }
            page.objects.into_iter().for_each(|object| fitting.check(version, object));
            if page.next.is_empty() {
                break;
            }
            token = page.next;
        }
    }
    Ok(())
}
