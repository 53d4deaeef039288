//! Why a listener cannot start. All of it is fatal at start-up; what goes wrong later is logged and
//! survived. What the system said is part of the message and therefore no source, which would
//! be printed once more.

use std::net::SocketAddr;
use std::path::PathBuf;

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
