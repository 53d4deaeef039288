//! [`Failure`]: why an attempt brought no answer; [`Problem`]: an input that cannot be used. Each is a code and a sentence.

use std::error::Error;
use std::io;

use health::Code;
use transport::{DialError, ProxyFault, TlsError};
use validation::AddressError;

/// An attempt without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) detail: String,
}

impl From<DialError> for Failure {
    fn from(error: DialError) -> Self {
        let code = match &error {
            DialError::NoHost => Code::BadEndpoint,
            DialError::Resolve(_) => Code::Dns,
            DialError::Denied => Code::AddressDenied,
            DialError::Connect(cause) => of_io(cause.kind()).unwrap_or(Code::ConnectFailed),
            DialError::OwnLimit(_) => Code::OwnLimit,
            DialError::Proxy(fault) => of_proxy(fault),
            DialError::Certificate(_) => Code::TlsVerify,
            DialError::Handshake(_) => Code::TlsHandshake,
        };
        Self { code, detail: error.to_string() }
    }
}

impl Failure {
    /// Failure to connect to the server at `authority`, named in the text where only that server is meant.
    pub(crate) fn of_dial(error: DialError, authority: &str) -> Self {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let named = match &error {
            DialError::Connect(cause) => Some(format!("cannot connect to {authority}: {cause}")),
            DialError::Resolve(cause) => {
                Some(format!("cannot find the address of {host}: {cause}"))
            }
            DialError::Denied => Some(format!(
                "cannot connect to {authority}: its address, or that of its proxy, is link-local, of a metadata service or in --dial-deny-cidrs; use another one, or allow it by --dial-allow-cidrs"
            )),
            _ => None,
        };
        let failure = Self::from(error);
        Self { detail: named.unwrap_or(failure.detail), ..failure }
    }

    /// Failure after the connection was open.
    pub(crate) fn of_http(error: &hyper::Error) -> Self {
        if let Some(error) = DialError::of_tls(error) {
            return error.into();
        }
        if error.is_parse() || error.is_parse_too_large() || error.is_parse_status() {
            let detail = "the answer is not HTTP, or its headers are too large".to_owned();
            return Self { code: Code::Protocol, detail };
        }
        let kind = io_kind(error);
        let code = kind.and_then(of_io).unwrap_or(Code::Reset);
        let why = kind.map_or_else(|| "before the answer".to_owned(), |kind| kind.to_string());
        Self { code, detail: format!("the connection was closed: {why}") }
    }
}

fn of_io(kind: io::ErrorKind) -> Option<Code> {
    match kind {
        io::ErrorKind::ConnectionRefused => Some(Code::ConnectRefused),
        io::ErrorKind::TimedOut => Some(Code::ConnectTimeout),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some(Code::Reset),
        _ => None,
    }
}

fn of_proxy(fault: &ProxyFault) -> Code {
    match fault {
        ProxyFault::NoHost => Code::BadProxy,
        ProxyFault::Resolve(_)
        | ProxyFault::Connect(_)
        | ProxyFault::Tls(_)
        | ProxyFault::Refused(_) => Code::Proxy,
    }
}

fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

/// An input that cannot be used. Its text quotes no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Problem {
    code: Code,
    text: String,
}

impl Problem {
    /// A problem with this code and text: what is wrong and what the user can do.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The code for messages, metrics and alert rules.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The problem with the trust or the client certificate.
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

    /// The problem with the client certificate.
    pub(crate) fn of_pair(error: &TlsError) -> Self {
        Self::new(Code::ClientCertificate, format!("cannot use the client certificate: {error}"))
    }
}

impl From<AddressError> for Problem {
    fn from(error: AddressError) -> Self {
        Self::new(Code::BadEndpoint, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_server_that_lets_nobody_connect_is_named() {
        let cause = |words: &str| io::Error::new(io::ErrorKind::ConnectionRefused, words);
        let rows = [
            (
                DialError::Connect(cause("connection refused")),
                "cannot connect to api.example:6443: connection refused",
            ),
            (
                DialError::Resolve(Arc::new(cause("no such host"))),
                "cannot find the address of api.example: no such host",
            ),
            (DialError::NoHost, "the address names no host"),
        ];
        for (error, told) in rows {
            assert_eq!(Failure::of_dial(error, "api.example:6443").detail, told);
        }
    }
}
