//! The events of a watch: existing objects if they are requested, changes, and bookmarks.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::form::{object, status_json, table};
use super::request::{Form, Query, bad};
use super::store::{Change, Item, Store};
use crate::api::status::Status;
use crate::packages::{KIND, api_version};

/// The annotation of the bookmark after the existing objects.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// A watch of a client.
#[derive(Debug)]
pub struct Watch {
    namespace: String,
    query: Query,
    form: Form,
    /// The revision up to which changes were sent.
    revision: u64,
    /// The existing objects that were not sent yet.
    initial: VecDeque<Arc<Item>>,
    /// Whether the end of the existing objects has to be reported.
    reports_end: bool,
    is_first: bool,
}

/// A part of the stream of a watch.
pub type Event = Vec<Arc<[u8]>>;

impl Watch {
    /// Begins a watch.
    ///
    /// # Errors
    /// The revision of the client is invalid or too old, or the catalogs were not read yet.
    pub(super) fn begin(store: &Store, namespace: &str, query: Query, form: Form) -> Result<Self, Status> {
        let existing = store.selected(namespace, &query)?;
        if query.initial_events == Some(true) && !query.bookmarks {
            return Err(bad("sendInitialEvents=true requires allowWatchBookmarks=true".to_owned()));
        }
        let stated = match query.resource_version.as_str() {
            "" | "0" => None,
            text => Some(Store::revision_of(text)?),
        };
        let with_existing = query.initial_events.unwrap_or_else(|| stated.is_none());
        if let Some(revision) = stated {
            drop(store.changes_after(revision)?);
        }
        let revision = stated.filter(|_| !with_existing).unwrap_or(store.revision);
        let initial = if with_existing { existing.into() } else { VecDeque::new() };
        let reports_end = query.initial_events == Some(true);
        Ok(Self { namespace: namespace.to_owned(), query, form, revision, initial, reports_end, is_first: true })
    }

    /// Returns how long it lasts, in seconds.
    pub fn seconds(&self) -> u64 {
        self.query.seconds
    }

    /// Returns the events up to the store's revision; empty: nothing has changed. A part of the existing objects at a time, so that a
    /// client that does not read costs little.
    ///
    /// # Errors
    /// The client was too slow: the event to send before the end of the watch.
    pub fn next(&mut self, store: &Store, now: Timestamp) -> Result<Event, Event> {
        if let Some(item) = self.initial.pop_front() {
            return Ok(self.event("ADDED", &item, now));
        }
        if std::mem::take(&mut self.reports_end) {
            return Ok(self.mark(true));
        }
        let mut changed = Vec::new();
        match store.changes_after(self.revision) {
            Err(status) => return Err(vec![line(&json!({ "type": "ERROR", "object": status_json(&status) }))]),
            Ok(changes) => {
                let is_selected = store.filter(&self.namespace, &self.query);
                for change in changes {
                    let Change { revision, before, after } = &**change;
                    let before = before.as_ref().filter(|item| is_selected(item));
                    let after = after.as_ref().filter(|item| is_selected(item));
                    changed.extend(match (before, after) {
                        (None, None) => None,
                        (None, Some(item)) => Some(("ADDED", item.clone())),
                        (Some(_), Some(item)) => Some(("MODIFIED", item.clone())),
                        // A client continues from the revision of the last event.
                        (Some(item), None) => Some(("DELETED", Arc::new(item.at(*revision)))),
                    });
                    self.revision = *revision;
                }
            }
        }
        Ok(changed.iter().flat_map(|(type_, item)| self.event(type_, item, now)).collect())
    }

    /// Returns the event that reports the revision, if the client requests it.
    pub fn bookmark(&mut self) -> Option<Event> {
        (self.query.bookmarks && self.initial.is_empty()).then(|| self.mark(false))
    }

    fn mark(&mut self, ends_initial: bool) -> Event {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if ends_initial {
            metadata["annotations"] = json!({ INITIAL_EVENTS_END: "true" });
        }
        let mut marked = match self.form {
            Form::Object => json!({ "kind": KIND, "apiVersion": api_version(), "spec": {}, "status": {} }),
            Form::Metadata => json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1" }),
            Form::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": null,
                "rows": [{ "cells": ["", "", ""], "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata.clone(),
                } }],
            }),
        };
        marked["metadata"] =
            if self.form == Form::Table { json!({ "resourceVersion": self.revision.to_string() }) } else { metadata };
        vec![line(&json!({ "type": "BOOKMARK", "object": marked }))]
    }

    fn event(&mut self, type_: &str, item: &Item, now: Timestamp) -> Event {
        let mut event: Event = vec![format!(r#"{{"type":"{type_}","object":"#).into_bytes().into()];
        match self.form {
            Form::Table => {
                let metadata = json!({ "resourceVersion": item.revision.to_string() });
                let first = std::mem::take(&mut self.is_first);
                table(&mut event, &[item], &self.namespace, self.query.included, &metadata, first, now);
            }
            form => object(&mut event, item, &self.namespace, form),
        }
        event.push(Arc::from(&b"}\n"[..]));
        event
    }
}

fn line(event: &Value) -> Arc<[u8]> {
    format!("{event}\n").into_bytes().into()
}
