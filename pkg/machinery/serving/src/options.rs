//! What the secure-serving flags say (host.md 1.3, group "secure serving").

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use crate::ServeError;

/// Stock's port, and ours unless both share a host network (README decision 4).
pub(crate) const STOCK_PORT: u16 = 10257;

/// How to listen, and which certificate to show.
#[derive(Clone, Debug)]
pub struct ServingOptions {
    /// `--bind-address`. An unspecified address of either family listens on both.
    pub bind_address: IpAddr,
    /// `--secure-port`. The flag's 0 means "serve nothing" and is the caller's to honour: here 0
    /// takes any free port.
    pub port: u16,
    /// `--cert-dir`: keep the self-signed pair there instead of in memory.
    pub cert_dir: Option<PathBuf>,
    /// `--tls-cert-file`: PEM chain, leaf first. Wins over `cert_dir`.
    pub tls_cert_file: Option<PathBuf>,
    /// `--tls-private-key-file`: PEM key of the leaf.
    pub tls_private_key_file: Option<PathBuf>,
    /// `--disable-http2-serving`.
    pub disable_http2: bool,
    /// `--http2-max-streams-per-connection`; 0 means 100.
    pub http2_max_streams: u32,
    /// `--permit-port-sharing`: `SO_REUSEPORT`.
    pub permit_port_sharing: bool,
}

impl Default for ServingOptions {
    fn default() -> Self {
        Self {
            bind_address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: STOCK_PORT,
            cert_dir: None,
            tls_cert_file: None,
            tls_private_key_file: None,
            disable_http2: false,
            http2_max_streams: 0,
            permit_port_sharing: false,
        }
    }
}

impl ServingOptions {
    /// Everything wrong with the options that can be known without opening a file or a socket, so
    /// that start-up reports it together with the other flags' problems (host.md 3.1, step 4).
    pub fn validate(&self) -> Vec<String> {
        self.certificate_files().err().map(|error| error.to_string()).into_iter().collect()
    }

    /// The two TLS files, when they are given.
    pub(crate) fn certificate_files(&self) -> Result<Option<(PathBuf, PathBuf)>, ServeError> {
        match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(cert), Some(key)) => Ok(Some((cert.clone(), key.clone()))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(ServeError::HalfPair {
                given: "--tls-cert-file",
                missing: "--tls-private-key-file",
            }),
            (None, Some(_)) => Err(ServeError::HalfPair {
                given: "--tls-private-key-file",
                missing: "--tls-cert-file",
            }),
        }
    }
}
