//! [`ListenerOptions`]: the settings of one listener.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use crate::{STOCK_PORT, SuppliedCertificate, TlsOptions};

/// How to listen, and which certificate to show.
#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// Tells listeners apart in logs and metrics: `secure` or `webhook`.
    pub name: &'static str,
    /// The flag that decides [`ListenerOptions::port`], dashes included, for messages.
    pub port_flag: &'static str,
    /// An unspecified address of either family listens on both.
    pub bind_address: IpAddr,
    /// Listened on as well, at the same port.
    pub further_addresses: Vec<IpAddr>,
    /// 0 takes any free port. A flag's 0 that means "serve nothing" is the caller's to honour.
    pub port: u16,
    /// The certificate of the listener.
    pub certificate: CertificateSource,
    /// Certificates for clients that ask for certain names.
    pub named_certificates: Vec<NamedCertificate>,
    /// Whether clients are asked for theirs.
    pub client_certificates: ClientCertificates,
    /// Versions, suites and groups.
    pub tls: TlsOptions,
    /// Serve HTTP/1.1 only.
    pub disable_http2: bool,
    /// Concurrent HTTP/2 streams of one connection; 0 means 100.
    pub http2_max_streams: u32,
    /// `SO_REUSEPORT`.
    pub permit_port_sharing: bool,
}

/// An operator's pair for certain names: read, never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    /// PEM chain, leaf first.
    pub certificate: PathBuf,
    /// PEM key of the leaf.
    pub key: PathBuf,
    /// Names of hosts, and `*.domain` for all that have one label more; empty for those in the
    /// certificate.
    pub names: Vec<String>,
}

/// Whether a listener asks for clients' certificates. A client without one is served in any case.
#[derive(Clone, Debug, Default)]
pub enum ClientCertificates {
    /// Certificates are not asked for.
    #[default]
    Ignored,
    /// Asked for, and judged by whoever guards the listener.
    Asked,
    /// Asked for, and judged by the CAs in this PEM file.
    Of(PathBuf),
}

/// Where the certificate of a listener comes from.
#[derive(Clone, Debug, Default)]
pub enum CertificateSource {
    /// The operator's files: read, never written.
    Files {
        /// PEM chain, leaf first.
        certificate: PathBuf,
        /// PEM key of the leaf.
        key: PathBuf,
    },
    /// A self-signed pair kept as `<name>.crt` and `<name>.key`, unless the operator put one there.
    Directory {
        /// Made when it is not there.
        folder: PathBuf,
        /// Base name of the two files.
        name: &'static str,
    },
    /// A pair that its owner replaces.
    Supplied(SuppliedCertificate),
    /// A self-signed pair that lives as long as the process.
    #[default]
    Memory,
}

impl ListenerOptions {
    /// All addresses, the first one in front.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        [self.bind_address].into_iter().chain(self.further_addresses.iter().copied())
    }
}

impl Default for ListenerOptions {
    fn default() -> Self {
        Self {
            name: "secure",
            port_flag: "--secure-port",
            bind_address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            further_addresses: Vec::new(),
            port: STOCK_PORT,
            certificate: CertificateSource::default(),
            named_certificates: Vec::new(),
            client_certificates: ClientCertificates::default(),
            tls: TlsOptions::default(),
            disable_http2: false,
            http2_max_streams: 0,
            permit_port_sharing: false,
        }
    }
}
