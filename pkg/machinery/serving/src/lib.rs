//! The HTTPS endpoint of the process: health, metrics and version (host.md 5 and 9.3).
//!
//! The manager binds the [`Server`] before it touches the network, so that a taken port ends the
//! start-up at once, and serves [`Routes`] until everything else has stopped. Health checks join
//! the [`Health`] registry while the server runs.
//!
//! Delegated authentication and authorization are not built yet: everything but the three health
//! paths answers to loopback peers only (README decision 12).

mod access;
mod build_info;
mod certificate;
mod connection;
mod door;
mod error;
mod health;
mod listener;
mod metrics;
mod options;
mod reply;
mod routes;
mod server;

pub use build_info::BuildInfo;
pub use error::ServeError;
pub use health::{Endpoints, Health};
pub use metrics::register_process_metrics;
pub use options::ServingOptions;
pub use routes::Routes;
pub use server::Server;

#[cfg(test)]
mod tests;
