//! The registry's protocol: messages, client and server stubs, generated from `api.proto` without `protoc`.

#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
mod client;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
mod messages;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
mod server;

pub use client::registry_client;
pub use messages::*;
pub use server::registry_server;
