//! The HTTPS listeners of the process: health, metrics, version, and what controllers add.
//!
//! `cmd` binds a [`Server`] before it touches the network, so that a taken port ends the start-up
//! at once, and serves a set of [`Pages`] until everything else has stopped. Pages and checks of
//! the [`Health`] registry come while the server runs. A second [`Server`], with a port,
//! certificate and pages of its own, serves admission webhooks.
//!
//! Who may ask for a page is decided by the [`Guard`] of the listener, which delegates it
//! elsewhere.
//!
//! | file | holds |
//! |---|---|
//! | `server.rs`, `options.rs` | a listener that accepts connections; its options. [`ServeError`] is below |
//! | `connection.rs`, `sources.rs` | connections: TLS, limits of time and size, how many of one source |
//! | `tls.rs`, `certificate.rs`, `reloader.rs` | the certificate that is shown, its ciphers, and how files are read again |
//! | `guard.rs`, `client_ca.rs` | the interface of the guard, which decides about a request; certificates of clients |
//! | `page.rs`, `pages.rs`, `reply.rs` | from a request to its page and answer |
//! | `health.rs`, `process_metrics.rs` | health checks; metrics of the process |
//!
//! A page is a path, an access rule and an async handler:
//! ```
//! use serving::{Access, Page, Pages, reply};
//!
//! let pages = Pages::new();
//! pages.add(Page::new("/debug/controllers/sample", Access::Authorized, |_request| async {
//!     reply::text(http::StatusCode::OK, "nothing waits\n")
//! }));
//! ```
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod certificate;
mod client_ca;
mod connection;
mod guard;
mod health;
mod options;
mod page;
mod pages;
mod process_metrics;
mod reloader;
pub mod reply;
mod server;
mod sources;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use certificate::SuppliedCertificate;
pub use client_ca::{ClientRoots, ShownChain};
pub use connection::ServingMetrics;
pub use guard::{Access, Everyone, Guard, Judgement, Peer, PeerCertificate, Visit};
pub use health::{Endpoints, Health};
pub use options::{CertificateSource, ClientCertificates, ListenerOptions, NamedCertificate};
pub use page::{Page, PageRequest};
pub use pages::{Exposition, Pages, answer};
pub use process_metrics::{BuildInfo, register_process_metrics};
pub use reply::Reply;
pub use server::Server;
pub use tls::{TlsChoice, TlsFinding, TlsOptions};

/// The port of kube-controller-manager, which may own it on a shared host network.
pub(crate) const STOCK_PORT: u16 = 10257;

/// Why a listener cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port is in use by another process.
    #[error("cannot listen on {address}: port {} is in use{}", address.port(), port_advice(address.port(), port_flag))]
    AddressInUse {
        /// The requested address.
        address: SocketAddr,
        /// The flag to change.
        port_flag: &'static str,
    },
    /// The socket cannot be made, for any other reason.
    #[error("cannot listen on {address}: {why}; check the address and {port_flag}")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The flag to check.
        port_flag: &'static str,
        /// The error of the system.
        why: std::io::Error,
    },
    /// A certificate or key file cannot be read.
    #[error("cannot read certificate or key file {path:?}: {why}")]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: std::io::Error,
    },
    /// The self-signed pair cannot be kept.
    #[error(
        "cannot write certificate file {path:?}: {why}; make --cert-dir writable or remove the flag"
    )]
    WritePair {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        why: std::io::Error,
    },
    /// Certificate and key were read, but do not make a pair.
    #[error("cannot use certificate {name}: {reason}")]
    BadPair {
        /// Path of the certificate, or `self-signed`.
        name: String,
        /// The fault; never key material.
        reason: String,
    },
    /// The file of client CAs was read, but cannot be used.
    #[error("cannot use client ca file {path:?}: {reason}; give PEM certificates")]
    BadClientCa {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The self-signed chain cannot be made.
    #[error("cannot generate self-signed certificate: {0}")]
    Generate(#[from] rcgen::Error),
    /// The TLS library refuses our settings.
    #[error("cannot set up tls: {0}")]
    Tls(#[from] rustls::Error),
}

fn port_advice(port: u16, flag: &str) -> String {
    if port == STOCK_PORT {
        format!(
            ", likely by the stock kube-controller-manager, which owns {STOCK_PORT} on the host \
             network; to run both, set {flag}=10267"
        )
    } else {
        format!("; choose a free one with {flag}")
    }
}

#[cfg(test)]
mod tests;
