//! The bundle images of a live cluster, pulled at the request of a plan. Plans also decide when to retry.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use olm_core::bundle::{BundleImage, Unpacked, Unpacking};
use olm_core::planner::Event;
use olm_core::world::{Fact, FactKey};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::error::{Error, Hint};
use super::pull_secrets::PullSecrets;
use super::supervise::guarded;
use crate::registry;

/// The maximum number of concurrent pulls of bundle images per namespace. A slow registry delays only the namespace that uses it.
const AT_A_TIME: usize = 4;

/// The pulls of bundle images.
pub(super) struct Bundles {
    pull_secrets: PullSecrets,
    hint: Hint,
    events: mpsc::UnboundedSender<Event>,
    /// By namespace.
    slots: BTreeMap<String, Arc<Semaphore>>,
    tasks: BTreeMap<BundleImage, JoinHandle<()>>,
}

impl Bundles {
    pub(super) fn new(pull_secrets: PullSecrets, hint: Hint, events: mpsc::UnboundedSender<Event>) -> Self {
        Self { pull_secrets, hint, events, slots: BTreeMap::new(), tasks: BTreeMap::new() }
    }

    /// Starts an attempt and reports its start and its end to the planner.
    pub(super) fn unpack(&mut self, image: &BundleImage, begun: &Unpacking) {
        self.end(image);
        learn(&self.events, image, Some(begun.clone()));
        let slots = self.slots.entry(image.namespace.clone()).or_insert_with(|| Arc::new(Semaphore::new(AT_A_TIME)));
        let (pull_secrets, events, slots) = (self.pull_secrets.clone(), self.events.clone(), slots.clone());
        let (asked, begun, hint) = (image.clone(), begun.clone(), self.hint);
        let task = tokio::spawn(async move {
            // The semaphore is never closed.
            let _slot = slots.acquire().await;
            // A retry after a panic may succeed: plans decide when to retry.
            let unpacked = guarded(pull(&pull_secrets, &asked, &begun.secrets)).await.map_err(Error::from).flatten();
            let unpacked = unpacked.unwrap_or_else(|error| error.unpacked(hint));
            learn(&events, &asked, Some(begun.end(Timestamp::now(), unpacked)));
        });
        self.tasks.insert(image.clone(), task);
    }

    /// Cancels the attempt for an image.
    pub(super) fn forget(&mut self, image: &BundleImage) {
        self.end(image);
        learn(&self.events, image, None);
    }

    fn end(&mut self, image: &BundleImage) {
        if let Some(task) = self.tasks.remove(image) {
            task.abort();
        }
    }
}

impl Drop for Bundles {
    fn drop(&mut self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

fn learn(events: &mpsc::UnboundedSender<Event>, image: &BundleImage, unpacking: Option<Unpacking>) {
    // The receiver is dropped only when the process stops.
    let _ = events.send(Event::Learned(FactKey::Bundle(image.clone()), unpacking.map(Fact::Bundle)));
}

async fn pull(pull_secrets: &PullSecrets, image: &BundleImage, secrets: &[String]) -> Result<Unpacked, Error> {
    let location = PullSecrets::location(&image.image)?;
    let options = pull_secrets.options(&image.catalog_namespace, secrets).await?;
    Ok(registry::image::unpack(&location, &options).await?)
}

#[cfg(test)]
mod tests {
    use olm_core::bundle::Unpacked::{Later, Refused};

    use super::*;
    use crate::cluster::api::Api;
    use crate::image::Options;

    fn image(reference: &str) -> BundleImage {
        let [namespace, catalog_namespace, catalog] = ["garden", "olm", "main"].map(str::to_owned);
        BundleImage { namespace, catalog_namespace, catalog, image: reference.to_owned() }
    }

    /// Without pull secrets there are no requests to the API server.
    fn bundles() -> (Bundles, mpsc::UnboundedReceiver<Event>) {
        crate::tls::install_crypto_provider();
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let api = Api::new(kube::Client::try_from(nowhere).unwrap());
        let (events, seen) = mpsc::unbounded_channel();
        (Bundles::new(PullSecrets::new(api, &Options::default()), |_| None, events), seen)
    }

    async fn learned(seen: &mut mpsc::UnboundedReceiver<Event>) -> (BundleImage, Option<Unpacking>) {
        match seen.recv().await.unwrap() {
            Event::Learned(FactKey::Bundle(image), Some(Fact::Bundle(unpacking))) => (image, Some(unpacking)),
            Event::Learned(FactKey::Bundle(image), None) => (image, None),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_start_and_end_of_an_attempt_are_reported() {
        let (mut bundles, mut seen) = bundles();
        let begun =
            Unpacking { secrets: Vec::new(), since: Timestamp::UNIX_EPOCH, attempts: 3, running: true, ended: None };
        for (reference, words) in [
            ("127.0.0.1:1/garden/rose:1", "cannot be reached"),
            ("oci:/etc", "is not an image reference"),
            ("no image at all", "is not an image reference"),
        ] {
            bundles.unpack(&image(reference), &begun);
            assert_eq!(learned(&mut seen).await, (image(reference), Some(begun.clone())));
            let (of, ended) = learned(&mut seen).await;
            let ended = ended.unwrap();
            assert_eq!((of, ended.running, ended.attempts), (image(reference), false, 3));
            match ended.ended.unwrap().1 {
                Later(message) if reference.starts_with("127") => assert!(message.contains(words), "{message}"),
                Refused(message) => assert!(message.contains(words), "{message}"),
                other => panic!("{reference}: {other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_cancelled_attempt_is_not_reported() {
        let (mut bundles, mut seen) = bundles();
        let begun =
            Unpacking { secrets: Vec::new(), since: Timestamp::UNIX_EPOCH, attempts: 1, running: true, ended: None };
        let rose = image("127.0.0.1:1/garden/rose:1");
        bundles.unpack(&rose, &begun);
        bundles.forget(&rose);
        assert_eq!(learned(&mut seen).await, (rose.clone(), Some(begun)));
        assert_eq!(learned(&mut seen).await, (rose, None));
        drop(bundles);
        assert!(seen.recv().await.is_none());
    }

    /// A registry that requires a token and issues one that is not valid in a header.
    async fn registry_with_a_token_of_two_lines() -> String {
        use axum::http::{StatusCode, header};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let realm = format!("Bearer realm=\"http://{address}/token\",service=\"x\"");
        let asks = async move || (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, realm.clone())], "");
        let token = async || r#"{"token":"a\nb"}"#;
        let router = axum::Router::new().route("/token", axum::routing::get(token)).fallback(asks);
        tokio::spawn(async move { axum::serve(listener, router).await.ok() });
        address
    }

    #[tokio::test]
    async fn a_token_that_is_not_valid_in_a_header_is_reported() {
        let registry = registry_with_a_token_of_two_lines().await;
        let (mut bundles, mut seen) = bundles();
        bundles.pull_secrets = PullSecrets::new(
            Api::new(kube::Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()),
            &Options { plain_http: vec![registry.clone()], ..Options::default() },
        );
        let begun =
            Unpacking { secrets: Vec::new(), since: Timestamp::UNIX_EPOCH, attempts: 1, running: true, ended: None };
        bundles.unpack(&image(&format!("{registry}/garden/rose:1")), &begun);
        learned(&mut seen).await;
        let (_, ended) = learned(&mut seen).await;
        let Later(message) = ended.unwrap().ended.unwrap().1 else { panic!("a retry may succeed") };
        assert!(message.contains("characters that no header can have"), "{message}");
    }
}
