//! The registry's protocol: messages, client and server stubs, generated from `api.proto` without `protoc`.

#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
mod client;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
mod experimental;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
mod messages;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
mod server;

pub use client::registry_client;
pub use experimental::ExperimentalListPackageCustomSchemasRequest;
pub use experimental::{experimental_registry_client, experimental_registry_server};
pub use messages::*;
pub use server::registry_server;

/// The file descriptors of the protocol, for reflection.
pub(super) const DESCRIPTORS: &[u8] = include_bytes!("api.bin");
