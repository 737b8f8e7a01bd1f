//! The metrics of a server in the Prometheus format, and the layer that counts requests.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::time::Instant;

use olm_core::catalog::Snapshot;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tonic::Code;
use tonic::body::Body;
use tower::{Layer, Service};

/// The services with their own time series. Requests to other services share one, so that clients cannot create any number.
const SERVICES: [&str; 5] = [
    "api.Registry",
    "api.ExperimentalRegistry",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// The counters of a server. Cheap to clone; clones count together.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Request, Counter>,
    seconds: Histogram,
    connections: Gauge,
    refused: Counter,
    packages: Gauge,
    bundles: Gauge,
    set_aside: Gauge,
    loads: Family<Loaded, Counter>,
    loaded: Gauge<f64, AtomicU64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: String,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Loaded {
    result: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("olm_registry");
        let metrics = Self {
            registry: Arc::default(),
            requests: Family::default(),
            seconds: Histogram::new(exponential_buckets(0.0001, 4.0, 10)),
            connections: Gauge::default(),
            refused: Counter::default(),
            packages: Gauge::default(),
            bundles: Gauge::default(),
            set_aside: Gauge::default(),
            loads: Family::default(),
            loaded: Gauge::default(),
        };
        registry.register("requests", "Requests, by method and gRPC code", metrics.requests.clone());
        registry.register("answer_seconds", "Time until a response begins", metrics.seconds.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        registry.register(
            "connections_refused",
            "Connections closed because a limit was reached",
            metrics.refused.clone(),
        );
        registry.register("packages", "Served packages", metrics.packages.clone());
        registry.register(
            "bundles",
            "Served bundles, counted once for each of their channels",
            metrics.bundles.clone(),
        );
        registry.register(
            "packages_set_aside",
            "Packages that are not served because they are invalid",
            metrics.set_aside.clone(),
        );
        registry.register("loads", "Times the content was read, by result", metrics.loads.clone());
        registry.register("loaded_timestamp_seconds", "Time when the served content was read", metrics.loaded.clone());
        Self { registry: Arc::new(registry), ..metrics }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Returns the metrics in the Prometheus text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// Records that the content was read. `at` is the time in seconds since 1970.
    pub fn loaded(&self, snapshot: &Snapshot, set_aside: usize, at: f64) {
        self.loads.get_or_create(&Loaded { result: "success" }).inc();
        self.packages.set(count(snapshot.packages().len()));
        self.bundles.set(count(snapshot.entries().count()));
        self.set_aside.set(count(set_aside));
        self.loaded.set(at);
    }

    /// Records that the content could not be read.
    pub fn failed(&self) {
        self.loads.get_or_create(&Loaded { result: "failure" }).inc();
    }

    pub(super) fn connected(&self) {
        self.connections.inc();
    }

    pub(super) fn disconnected(&self) {
        self.connections.dec();
    }

    pub(super) fn refused(&self) {
        self.refused.inc();
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl<S> Layer<S> for Metrics {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Counted { inner, metrics: self.clone() }
    }
}

/// Counts requests. Adds the error message of Go's server for unknown services and methods.
#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    metrics: Metrics,
}

impl<S, B> Service<http::Request<B>> for Counted<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let (metrics, began) = (self.metrics.clone(), Instant::now());
        let call = self.inner.call(request);
        Box::pin(async move {
            let mut response = call.await?;
            let header = |name: &str| response.headers().get(name);
            // A response with a body has its status in the trailers, which are not read; it counts as successful.
            let code = header("grpc-status").map_or(Code::Ok, |status| Code::from_bytes(status.as_bytes()));
            let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((&path, ""));
            let unknown = code == Code::Unimplemented && header("grpc-message").is_none();
            if unknown {
                let what = if SERVICES.contains(&service) {
                    format!("unknown method {method} for service {service}")
                } else {
                    format!("unknown service {service}")
                };
                if let Ok(message) = http::HeaderValue::from_str(&what.replace(' ', "%20")) {
                    response.headers_mut().insert("grpc-message", message);
                }
            }
            let method = if unknown { "unknown".to_owned() } else { format!("{service}/{method}") };
            metrics.seconds.observe(began.elapsed().as_secs_f64());
            tracing::debug!(method, ?code, "responded");
            metrics.requests.get_or_create(&Request { method, code: format!("{code:?}") }).inc();
            Ok(response)
        })
    }
}
