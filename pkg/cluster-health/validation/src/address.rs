//! [`Address`]: the address of an API server, as objects of all kinds write it; and addresses of proxies.

use std::fmt;
use std::net::Ipv6Addr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// The address of an API server: scheme, host, port and a path before the paths of the API. Two that are equal lead to
/// the same server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    scheme: Scheme,
    authority: Authority,
    /// Empty, or begins with a slash and ends with none.
    base: Box<str>,
}

/// Why an address cannot be used. Quotes nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// The scheme is neither http nor https.
    Scheme,
    /// Another reason, in words.
    Other(&'static str),
}

const FORM: AddressError =
    AddressError::Other("must be a host, a host and port, or an http or https URL");
const PORT: AddressError = AddressError::Other("has a port that is not between 1 and 65535");

impl Address {
    /// Reads a host, a host with a port, or an http or https URL, which alone may have a path.
    /// Without a scheme it is https.
    ///
    /// # Errors
    /// Another form, or a user name, a query or a fragment.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
        let scheme = match &*scheme.to_ascii_lowercase() {
            "http" => Scheme::HTTP,
            "https" => Scheme::HTTPS,
            _ => return Err(AddressError::Scheme),
        };
        match rest.find('/').and_then(|at| rest.split_at_checked(at)) {
            None => Self::assemble(scheme, rest, ""),
            Some((host, base)) if text.contains("://") => Self::assemble(scheme, host, base),
            Some(_) => Err(AddressError::Other("a path needs https:// before the host")),
        }
    }

    /// The https server at `host` and `port`, with a path before the paths of the API.
    ///
    /// # Errors
    /// One of them cannot be part of an address.
    pub fn of_parts(host: &str, port: u16, base: &str) -> Result<Self, AddressError> {
        let host = host.trim();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let host = match bare.parse::<Ipv6Addr>() {
            Ok(_) => format!("[{bare}]:{port}"),
            Err(_) if host.contains(':') => {
                return Err(AddressError::Other("has a host with a colon in it"));
            }
            Err(_) => format!("{host}:{port}"),
        };
        Self::assemble(Scheme::HTTPS, &host, base)
    }

    fn assemble(scheme: Scheme, host: &str, base: &str) -> Result<Self, AddressError> {
        if host.contains('@') {
            let why = "must not hold a user name; credentials belong into the Secret";
            return Err(AddressError::Other(why));
        }
        if base.contains(['?', '#']) {
            return Err(AddressError::Other("must not have a query or a fragment"));
        }
        let authority = authority(host, if scheme == Scheme::HTTP { 80 } else { 443 })?;
        let base = base.trim_end_matches('/');
        if !base.is_empty() && base.parse::<PathAndQuery>().is_err() {
            return Err(AddressError::Other("has a path that cannot be sent"));
        }
        Ok(Self { scheme, authority, base: base.into() })
    }

    /// Whether the connection is not encrypted.
    pub fn is_plaintext(&self) -> bool {
        self.scheme == Scheme::HTTP
    }

    /// Host and port, as in the `Host` header and in messages.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Scheme, host and port, for a connection.
    pub fn server(&self) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
        Uri::from_parts(parts).unwrap_or_default()
    }

    /// Request target for `path` of the API at this server.
    pub fn request_target(&self, path: &str) -> String {
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

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::Scheme => "must have the scheme http or https",
            Self::Other(why) => why,
        };
        write!(f, "cannot use the address of the API server: {why}")
    }
}

impl std::error::Error for AddressError {}

/// Host and port.
fn authority(host: &str, default: u16) -> Result<Authority, AddressError> {
    // A bare IPv6 address is meant as one, though a URL wants it in brackets.
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host.to_owned(),
    };
    let authority: Authority = host.parse().map_err(|_| FORM)?;
    let name = authority.host();
    if name.is_empty() {
        return Err(FORM);
    }
    let port = match authority.as_str().strip_prefix(name).ok_or(FORM)? {
        "" => default,
        port => {
            let port = port.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
            port.filter(|&port| port > 0).ok_or(PORT)?
        }
    };
    format!("{name}:{port}").parse().map_err(|_| FORM)
}

/// Whether a proxy can be used: an absolute http, https or socks5 URL with a host. It may have a
/// user name.
pub(crate) fn is_proxy(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_known = ["http", "https", "socks5"].iter().any(|it| it.eq_ignore_ascii_case(scheme));
    let authority_part = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority_part.rsplit_once('@').map_or(authority_part, |(_, host)| host);
    // The default port does not matter.
    is_known && text.parse::<Uri>().is_ok() && authority(host, 443).is_ok()
}

#[cfg(test)]
mod tests;
