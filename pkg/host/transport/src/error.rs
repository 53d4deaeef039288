//! Errors as text without secrets: [`ErrorChain`] prints an error with its causes in one line,
//! [`PemProblem`] says what is wrong with a PEM text, [`DialError`] what broke while a connection was
//! opened.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use rustix::io::Errno;
use rustls::{CertificateError, Error as TlsFailure, OtherError};
use rustls_pki_types::pem;

/// The prefix that kube puts before every error of our own layers.
const KUBE_PREFIX: &str = "ServiceError: ";

/// Displays an error and, after colons, each of its causes that its own text does not contain.
pub struct ErrorChain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = self.0.to_string();
        f.write_str(told.strip_prefix(KUBE_PREFIX).unwrap_or(&told))?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let next = error.to_string();
            // Many libraries print their cause as well.
            if !told.ends_with(&next) {
                write!(f, ": {next}")?;
                told = next;
            }
            cause = error.source();
        }
        Ok(())
    }
}

/// Why a text is not PEM. Never holds any of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PemProblem {
    /// A section without its last line; what newlines that became spaces look like.
    #[error("a section has no END line; check that the line breaks are there")]
    Truncated,
    /// The first line of a section is not one.
    #[error("a BEGIN line is malformed; check that the line breaks are there")]
    BadHeader,
    /// Between the BEGIN and the END line stands something else.
    #[error("a section is not base64")]
    Base64,
    /// The longest certificate or key.
    #[error("a section is too large")]
    TooLarge,
    /// The text has no section of the expected kind.
    #[error("it has no such section")]
    Missing,
    /// Anything else.
    #[error("it cannot be parsed")]
    Unreadable,
}

impl From<pem::Error> for PemProblem {
    fn from(error: pem::Error) -> Self {
        match error {
            pem::Error::MissingSectionEnd { .. } => Self::Truncated,
            pem::Error::IllegalSectionStart { .. } => Self::BadHeader,
            pem::Error::Base64Decode(_) => Self::Base64,
            pem::Error::SectionTooLarge => Self::TooLarge,
            pem::Error::NoItemsFound => Self::Missing,
            _ => Self::Unreadable,
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The address names no host.
    #[error("the address names no host")]
    NoHost,
    /// The host has no address, or the lookup failed.
    #[error("cannot find the address of the host: {0}")]
    Resolve(#[source] Arc<io::Error>),
    /// All addresses of the host, or of the proxy, are denied.
    #[error("dialling the address is not allowed")]
    Denied,
    /// The TCP connection failed.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// This process can open no connection, to whomever.
    #[error("this process can open no more connections: {0}")]
    OwnLimit(#[source] io::Error),
    /// The proxy could not be reached or gave no tunnel.
    #[error("cannot connect through the proxy: {0}")]
    Proxy(#[source] ProxyFault),
    /// The certificate of the server was refused.
    #[error("{0}")]
    Certificate(String),
    /// TLS broke for another reason.
    #[error("cannot agree on TLS: {0}")]
    Handshake(String),
}

/// Why there is no way through the proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyFault {
    /// The address of the proxy names no host.
    #[error("its address names no host")]
    NoHost,
    /// The host of the proxy has no address, or the lookup failed.
    #[error("cannot find the address of its host: {0}")]
    Resolve(#[source] Arc<io::Error>),
    /// The TCP connection to the proxy failed.
    #[error("cannot connect to it: {0}")]
    Connect(#[source] io::Error),
    /// The TLS handshake with the proxy failed.
    #[error("it cannot be trusted or does not speak TLS: {0}")]
    Tls(String),
    /// The proxy refused the tunnel.
    #[error("it opened no tunnel: {0}")]
    Refused(String),
}

impl DialError {
    /// Like [`refused`], for the connection to the proxy.
    pub(super) fn of_proxy(self) -> Self {
        Self::Proxy(match self {
            Self::OwnLimit(_) | Self::Denied => return self,
            Self::NoHost => ProxyFault::NoHost,
            Self::Resolve(error) => ProxyFault::Resolve(error),
            Self::Connect(error) => ProxyFault::Connect(error),
            Self::Proxy(fault) => fault,
            Self::Certificate(words) | Self::Handshake(words) => ProxyFault::Tls(words),
        })
    }

    /// What `error`, or what led to it, says of TLS; none if it is about something else. A server
    /// may refuse our certificate as late as with its first answer.
    pub fn of_tls(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(failure) = error.downcast_ref::<TlsFailure>() {
                return Some(Self::from_failure(failure));
            }
            // An io::Error tells the causes of what it carries, and not itself.
            let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            cause = match carried {
                Some(carried) => Some(carried),
                None => error.source(),
            };
        }
        None
    }

    fn from_failure(failure: &TlsFailure) -> Self {
        match failure {
            TlsFailure::Other(OtherError(refusal)) => Self::Certificate(refusal.to_string()),
            TlsFailure::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
                Self::Certificate(format!("the server's certificate is not valid: {cause}"))
            }
            TlsFailure::InvalidCertificate(cause) => {
                Self::Certificate(format!("the server's certificate is not valid: {cause}"))
            }
            other => Self::Handshake(other.to_string()),
        }
    }
}

impl ProxyFault {
    pub(super) fn of_tls(error: DialError) -> Self {
        Self::Tls(match error {
            DialError::Certificate(words) | DialError::Handshake(words) => words,
            other => other.to_string(),
        })
    }

    pub(super) fn refused(error: &(dyn Error + 'static)) -> Self {
        Self::Refused(crate::ErrorChain(error).to_string())
    }
}

pub(super) fn broken_handshake(error: io::Error) -> DialError {
    let broke = |error: &io::Error| DialError::Handshake(error.to_string());
    DialError::of_tls(&error).unwrap_or_else(|| broke(&error))
}

/// The connector's error with the operating system's own at its end. `has_source` is whether this machine has an
/// address to dial from: without one, an address that is not available is no limit of this process.
pub(super) fn refused(error: &(dyn Error + 'static), has_source: bool) -> DialError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let told = io::Error::new(error.kind(), words(error));
            let is_foreign = !has_source && error.kind() == io::ErrorKind::AddrNotAvailable;
            return if is_own_limit(error) && !is_foreign {
                DialError::OwnLimit(told)
            } else {
                DialError::Connect(told)
            };
        }
        cause = error.source();
    }
    DialError::Connect(io::Error::other(error.to_string()))
}

/// The lookup failed. That is our own fault when no file can be opened: the resolver
/// says no more than that it found nothing.
pub(super) fn unresolved(error: Arc<io::Error>) -> DialError {
    match std::fs::File::open("/dev/null") {
        Err(own) if is_own_limit(&own) => {
            DialError::OwnLimit(io::Error::new(own.kind(), words(&own)))
        }
        Ok(_) | Err(_) => DialError::Resolve(error),
    }
}

/// This process or its machine has no file, no memory, no port or no network left. Never blamed on the server:
/// a limit that is too small here must not look like thousands of outages there.
fn is_own_limit(error: &io::Error) -> bool {
    let own = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOBUFS,
        Errno::ADDRNOTAVAIL,
        Errno::NETDOWN,
    ];
    Errno::from_io_error(error).is_some_and(|errno| own.contains(&errno))
}

/// The name that the operating system gives the error, without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::PrivateKeyDer;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    fn chain(texts: &[&'static str]) -> Option<Box<Layer>> {
        let (text, rest) = texts.split_first()?;
        Some(Box::new(Layer { text, source: chain(rest) }))
    }

    #[test]
    fn every_cause_is_reported_once_however_deep_it_lies() {
        // (texts from the outermost error inwards, the line)
        let rows: [(&[&str], &str); 5] = [
            (&["cannot connect"], "cannot connect"),
            (
                &["cannot connect", "client error", "refused"],
                "cannot connect: client error: refused",
            ),
            (
                &["service: client error", "client error", "refused"],
                "service: client error: refused",
            ),
            (&["a: b: c", "b: c", "c"], "a: b: c"),
            (&["ServiceError: no route", "no route"], "no route"),
        ];
        for (texts, line) in rows {
            assert_eq!(ErrorChain(&chain(texts).unwrap()).to_string(), line);
        }
    }

    #[test]
    fn an_unreadable_key_is_reported_without_its_content() {
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        for (text, problem) in [
            (format!("{begin}\nhunter2=\n"), PemProblem::Truncated),
            (format!("{begin} hunter2= {end}"), PemProblem::Truncated),
            ("-----BEGIN PRIVATE KEY\nhunter2=\n".to_owned(), PemProblem::BadHeader),
            (format!("{begin}\nhunter2!\n{end}\n"), PemProblem::Base64),
            ("hunter2\n".to_owned(), PemProblem::Missing),
        ] {
            let told =
                PemProblem::from(PrivateKeyDer::from_pem_slice(text.as_bytes()).unwrap_err());
            assert_eq!(told, problem, "{text}");
            assert!(!format!("{told} {told:?}").contains("hunter2"), "{told}");
        }
    }
}
