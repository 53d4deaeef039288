//! [`Problem`]: why no client can be made of what an object says.

use health::Code;
use transport::TlsError;

/// An input that cannot be used. Its text quotes no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Problem {
    code: Code,
    text: String,
}

impl Problem {
    /// A problem with `code`, told in `text`: what is wrong and what the user can do.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// For messages, metrics and alert rules.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What is wrong with trust or client certificate.
    pub(crate) fn of_tls(error: &TlsError) -> Self {
        match error {
            TlsError::Pair(_) | TlsError::NoKey => Self::of_pair(error),
            TlsError::NoCertificate
            | TlsError::Pem(_)
            | TlsError::Authority(_)
            | TlsError::NoSystemTrust(_)
            | TlsError::Setup(_) => {
                Self::new(Code::CaParse, format!("cannot use the CA bundle: {error}"))
            }
        }
    }

    /// What is wrong with the client certificate.
    pub(crate) fn of_pair(error: &TlsError) -> Self {
        Self::new(Code::ClientCertificate, format!("cannot use the client certificate: {error}"))
    }
}
