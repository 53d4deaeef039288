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
//! A page is a path, an access rule and an async handler:
//! ```
//! use serving::{Access, Page, Pages, reply};
//!
//! let pages = Pages::new();
//! pages.add(Page::new("/debug/controllers/sample", Access::Authorized, |_request| async {
//!     reply::text(http::StatusCode::OK, "nothing waits\n")
//! }));
//! ```

mod acceptor;
mod certificate;
mod client_ca;
mod clients;
mod connection;
mod dispatch;
mod error;
mod guard;
mod health;
mod options;
mod page;
mod pages;
mod process_metrics;
mod process_usage;
mod reloader;
pub mod reply;
mod server;
mod sources;
mod tls;

pub use certificate::SuppliedCertificate;
pub use client_ca::{ClientRoots, ShownChain};
pub use connection::ServingMetrics;
pub use dispatch::answer;
pub use error::ServeError;
pub use guard::{Access, Everyone, Guard, Judgement, Peer, PeerCertificate, Visit};
pub use health::{Endpoints, Health};
pub use options::{CertificateSource, ClientCertificates, ListenerOptions, NamedCertificate};
pub use page::{Page, PageRequest};
pub use pages::{Exposition, Pages};
pub use process_metrics::{BuildInfo, register_process_metrics};
pub use reply::Reply;
pub use server::Server;
pub use tls::{TlsChoice, TlsFinding, TlsOptions};

#[cfg(test)]
mod tests;
