//! Why the server cannot start. All of it is fatal at start-up (host.md 9.2, exit code 1); what
//! goes wrong later is logged and survived.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::options::STOCK_PORT;

/// Why the process cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another process listens there already.
    #[error("cannot listen on {address}: port {} is in use{}", address.port(), port_advice(*address))]
    AddressInUse {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The socket cannot be made, for any other reason.
    #[error("cannot listen on {address}: {source}; check --bind-address and --secure-port")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// One of the two TLS files is given without the other.
    #[error("cannot use {given} without {missing}: give both, or neither for a self-signed pair")]
    HalfPair {
        /// The flag that was given.
        given: &'static str,
        /// The flag that belongs to it.
        missing: &'static str,
    },
    /// A certificate or key file cannot be read.
    #[error("cannot read certificate or key file {path:?}: {source}")]
    ReadPair {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The self-signed pair cannot be kept.
    #[error(
        "cannot write certificate file {path:?}: {source}; make --cert-dir writable or drop it"
    )]
    WritePair {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Certificate and key were read, but do not make a pair.
    #[error("cannot use certificate {name}: {reason}")]
    BadPair {
        /// Path of the certificate, or `self-signed`.
        name: String,
        /// What is wrong; never key material.
        reason: String,
    },
    /// The self-signed chain cannot be made.
    #[error("cannot generate self-signed certificate: {0}")]
    Generate(#[from] rcgen::Error),
    /// The TLS library refuses our settings.
    #[error("cannot set up tls: {0}")]
    Tls(#[from] rustls::Error),
    /// The server's own metrics are registered already: one server per registry.
    #[error("cannot register serving metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

fn port_advice(address: SocketAddr) -> &'static str {
    if address.port() == STOCK_PORT {
        ", likely by the stock kube-controller-manager, which owns 10257 on the host network; \
         run beside it with --secure-port=10267"
    } else {
        "; choose a free one with --secure-port"
    }
}
