//! TLS of a listener: versions, cipher suites, key exchange groups, and the flags that choose them.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::server::ResolvesServerCert;
use rustls::{ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::ServeError;
use crate::client_ca::AnyClient;

/// The TLS of a listener; by default everything that the library can do. [`TlsChoice`] makes one
/// from flags.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    versions: Vec<&'static SupportedProtocolVersion>,
    suites: Vec<SupportedCipherSuite>,
    /// Best first.
    groups: Vec<&'static dyn SupportedKxGroup>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        let CryptoProvider { cipher_suites, kx_groups, .. } = ring::default_provider();
        let versions = vec![&version::TLS13, &version::TLS12];
        Self { versions, suites: cipher_suites, groups: kx_groups }
    }
}

impl TlsOptions {
    /// The configuration of a listener that shows the pair of `certificates`, and may ask clients
    /// for theirs.
    pub(crate) fn server_config(
        &self,
        certificates: Arc<dyn ResolvesServerCert>,
        ask_clients: bool,
        http2: bool,
    ) -> Result<ServerConfig, ServeError> {
        let provider = CryptoProvider {
            cipher_suites: self.suites.clone(),
            kx_groups: self.groups.clone(),
            ..ring::default_provider()
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&self.versions)?;
        let builder = if ask_clients {
            builder.with_client_cert_verifier(Arc::new(AnyClient::default()))
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if http2 {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(config)
    }
}

const VERSION: &str = "tls-min-version";
const SUITES: &str = "tls-cipher-suites";
const GROUPS: &str = "tls-curve-preferences";

/// The judged values of the TLS flags.
#[derive(Debug)]
pub struct TlsChoice {
    /// The options, as far as the library supports them.
    pub options: TlsOptions,
    /// Values that the program must not start with.
    pub refused: Vec<TlsFinding>,
    /// Values that are not served as asked; the program starts nevertheless.
    pub warned: Vec<TlsFinding>,
}

/// Something to say about the value of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFinding {
    /// The flag, without dashes.
    pub flag: &'static str,
    /// The cause and the way out, lower case, no final dot.
    pub message: String,
}

impl TlsChoice {
    /// Judges `--tls-min-version` (Go's name, empty for the default), `--tls-cipher-suites` (IANA
    /// names, none for the default) and `--tls-curve-preferences` (IANA numbers, best first, none
    /// for the default).
    pub fn new(oldest: &str, suites: &[String], groups: &[i64]) -> Self {
        let options = TlsOptions::default();
        let mut choice = Self { options, refused: Vec::new(), warned: Vec::new() };
        choice.set_oldest(oldest);
        choice.set_suites(suites);
        choice.set_groups(groups);
        choice
    }

    fn set_oldest(&mut self, name: &str) {
        match name {
            "" | "VersionTLS12" => {}
            "VersionTLS13" => self.options.versions.retain(|known| **known == version::TLS13),
            "VersionTLS10" | "VersionTLS11" => {
                self.warn(VERSION, format!("{name} is not served; the oldest version is TLS 1.2"));
            }
            _ => {
                let rule = "is not a TLS version; use VersionTLS12 or VersionTLS13";
                self.refuse(VERSION, format!("{name:?} {rule}"));
            }
        }
    }

    /// The suites of TLS 1.3 are always on, as in Go: naming only such suites leaves TLS 1.2 out.
    fn set_suites(&mut self, names: &[String]) {
        if names.is_empty() {
            return;
        }
        let mut wanted = Vec::new();
        for name in names {
            let iana = RENAMED_SUITES.iter().find(|(old, _)| old == name);
            let iana = iana.map_or(name.as_str(), |(_, new)| new);
            if self.options.suites.iter().any(|suite| iana_name(*suite) == iana) {
                wanted.push(iana.to_owned());
            } else if KNOWN_SUITES.contains(&iana) {
                self.warn(SUITES, format!("{name} is not supported and ignored"));
            } else {
                self.refuse(SUITES, format!("{name:?} is not a cipher suite"));
            }
        }
        if wanted.is_empty() {
            let rule = "none of these cipher suites is supported; remove the flag or use one of";
            let offered: Vec<_> = self.options.suites.iter().copied().map(iana_name).collect();
            self.refuse(SUITES, format!("{rule} {}", offered.join(", ")));
        }
        self.options
            .suites
            .retain(|suite| suite.tls13().is_some() || wanted.contains(&iana_name(*suite)));
        if self.options.suites.iter().all(|suite| suite.tls13().is_some()) {
            self.options.versions.retain(|known| **known == version::TLS13);
        }
    }

    fn set_groups(&mut self, numbers: &[i64]) {
        if numbers.is_empty() {
            return;
        }
        let mut chosen: Vec<&'static dyn SupportedKxGroup> = Vec::new();
        for number in numbers {
            let supported =
                self.options.groups.iter().find(|group| iana_number(**group) == *number);
            if let Some(group) = supported {
                chosen.push(*group);
            } else if let Some((_, name)) = KNOWN_GROUPS.iter().find(|(known, _)| known == number) {
                self.warn(GROUPS, format!("{number} ({name}) is not supported and ignored"));
            } else {
                self.refuse(GROUPS, format!("{number} is not a key exchange group"));
            }
        }
        if chosen.is_empty() {
            let rule = "none of these groups is supported; remove the flag or use one of";
            self.refuse(GROUPS, format!("{rule} 23 (P-256), 24 (P-384), 29 (X25519)"));
        }
        self.options.groups = chosen;
    }

    fn warn(&mut self, flag: &'static str, message: String) {
        self.warned.push(TlsFinding { flag, message });
    }

    fn refuse(&mut self, flag: &'static str, message: String) {
        self.refused.push(TlsFinding { flag, message });
    }
}

/// The library calls the suites of TLS 1.3 by names of its own.
fn iana_name(suite: SupportedCipherSuite) -> String {
    suite.suite().as_str().unwrap_or_default().replacen("TLS13_", "TLS_", 1)
}

fn iana_number(group: &dyn SupportedKxGroup) -> i64 {
    u16::from(group.name()).into()
}

/// Cipher suites that Go's TLS library knows and ours lacks, by IANA name.
const KNOWN_SUITES: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// Go's older names of suites, and the IANA names.
const RENAMED_SUITES: [(&str, &str); 2] = [
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
];

/// Key exchange groups that Go's TLS library knows and ours lacks, by IANA number.
const KNOWN_GROUPS: [(i64, &str); 2] = [(25, "P-521"), (4588, "X25519MLKEM768")];

#[cfg(test)]
mod tests;
