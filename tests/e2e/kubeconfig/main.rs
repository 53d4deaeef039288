//! Every form of a kubeconfig, against a real API server: the product runs on it, leads, and serves
//! a Node.
//!
//! | file | holds |
//! |---|---|
//! | `forms.rs` | how a user and a server can be named |
//! | `plugins.rs` | exec plugins |
//! | `proxies.rs` | `proxy-url` |
//! | `rotation.rs` | what is replaced under a running process, and what becomes of one that is refused |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod forms;
mod forward;
mod plugins;
mod proxies;
mod rotation;
mod scene;
