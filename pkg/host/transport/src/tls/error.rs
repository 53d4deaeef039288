//! [`TlsError`]: what cannot be used, and why.

use crate::pem_problem::PemProblem;

/// Certificates or keys that cannot be used. Never quotes a key.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TlsError {
    /// Neither a certificate nor anything else in PEM.
    #[error("it holds no certificate in PEM")]
    NoCertificate,
    /// A certificate or key that cannot be read.
    #[error("it is not PEM: {0}")]
    Pem(PemProblem),
    /// None of the CA certificates can be used.
    #[error("none of its certificates can be used as a CA: {0}")]
    Authority(#[source] webpki::Error),
    /// No private key where one belongs.
    #[error("it holds no private key in PEM (PKCS#8, PKCS#1 or SEC1)")]
    NoKey,
    /// Certificate and key are not a pair, or of a kind that is not supported.
    #[error("the client certificate and its key cannot be used together: {0}")]
    Pair(#[source] rustls::Error),
    /// The system has no CA certificates, and no bundle was given.
    #[error("the system has no CA certificates; give a CA bundle ({0})")]
    NoSystemTrust(&'static str),
    /// The cryptography offers no TLS version. Cannot happen with the one that is built in.
    #[error("cannot set up TLS: {0}")]
    Setup(#[source] rustls::Error),
}
