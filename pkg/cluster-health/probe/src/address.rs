//! [`Address`]: where an API server answers, as objects of either flavour write it.

use std::fmt;
use std::net::Ipv6Addr;

use health::Code;
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use transport::TlsError;

/// The address of one API server: scheme, host, port and what comes before the paths of the API.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    scheme: Scheme,
    authority: Authority,
    /// Empty, or begins with a slash and ends with none.
    base: Box<str>,
}

impl Address {
    /// Reads a host, a host with a port, or an http or https URL, which alone may have a path.
    /// Without a scheme it is https.
    ///
    /// # Errors
    /// Another form, or a user name, a query or a fragment.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (parse_scheme(scheme)?, rest),
            None => (Scheme::HTTPS, text),
        };
        let (host, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if !text.contains("://") && !path.is_empty() {
            return Err(refused("has a path and no scheme; write https:// before it"));
        }
        Self::assemble(scheme, host, path)
    }

    /// The https server at `host` and `port`, with what comes before the paths of the API.
    ///
    /// # Errors
    /// One of them cannot be part of an address.
    pub fn of_parts(host: &str, port: u16, base: &str) -> Result<Self, Problem> {
        let host = host.trim();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let host = match bare.parse::<Ipv6Addr>() {
            Ok(_) => format!("[{bare}]:{port}"),
            Err(_) if host.contains(':') => return Err(refused("has a host with a colon in it")),
            Err(_) if host.is_empty() => return Err(refused("has no host")),
            Err(_) => format!("{host}:{port}"),
        };
        if port == 0 {
            return Err(refused("has port 0"));
        }
        Self::assemble(Scheme::HTTPS, &host, base)
    }

    fn assemble(scheme: Scheme, host: &str, base: &str) -> Result<Self, Problem> {
        if host.is_empty() {
            return Err(refused("has no host"));
        }
        if host.contains('@') {
            return Err(refused("holds a user name; credentials belong into the Secret"));
        }
        if base.contains(['?', '#']) {
            return Err(refused("has a query or a fragment"));
        }
        // A bare IPv6 address is meant as one, though a URL wants it in brackets.
        let host = match host.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => host.to_owned(),
        };
        let authority: Authority =
            host.parse().map_err(|_| refused("is not a host, a host and port, or a URL"))?;
        let authority = with_port(&authority, &scheme)?;
        let base = base.trim_end_matches('/');
        if !base.is_empty() && base.parse::<PathAndQuery>().is_err() {
            return Err(refused("has a path that cannot be sent"));
        }
        Ok(Self { scheme, authority, base: base.into() })
    }

    /// Whether what is sent can be read on the way.
    pub fn is_plaintext(&self) -> bool {
        self.scheme == Scheme::HTTP
    }

    /// Host and port, as the `Host` header has it and as messages tell it.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The server, for the transport.
    pub(crate) fn server(&self) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
        Uri::from_parts(parts).unwrap_or_default()
    }

    /// Request target for `path` of the API at this server.
    pub(crate) fn request_target(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.base)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn parse_scheme(scheme: &str) -> Result<Scheme, Problem> {
    match scheme.to_ascii_lowercase().as_str() {
        "https" => Ok(Scheme::HTTPS),
        "http" => Ok(Scheme::HTTP),
        _ => Err(refused("has a scheme that is neither http nor https")),
    }
}

fn with_port(authority: &Authority, scheme: &Scheme) -> Result<Authority, Problem> {
    let host = authority.host();
    if host.is_empty() {
        return Err(refused("has no host"));
    }
    let port = match authority.as_str().strip_prefix(host) {
        Some("") => None,
        Some(port) => {
            let port = port.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
            Some(
                port.filter(|&port| port > 0)
                    .ok_or_else(|| refused("has a port that is not between 1 and 65535"))?,
            )
        }
        None => return Err(refused("is not a host, a host and port, or a URL")),
    };
    let default = if *scheme == Scheme::HTTP { 80 } else { 443 };
    let whole = format!("{host}:{}", port.unwrap_or(default));
    whole.parse().map_err(|_| refused("is not a host, a host and port, or a URL"))
}

fn refused(why: &str) -> Problem {
    Problem::new(Code::BadEndpoint, format!("cannot use the address of the API server: it {why}"))
}

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

#[cfg(test)]
mod tests;
