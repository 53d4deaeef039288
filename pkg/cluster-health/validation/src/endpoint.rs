//! [`Endpoint`]: the address of an API server as KubeFed's objects write it, and proxies.

use std::net::Ipv6Addr;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

/// An address that probes can use. Two that are equal lead to the same server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The connection is not encrypted.
    pub is_plaintext: bool,
    authority: String,
    base: String,
}

/// Why an address cannot be used. Holds nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// The scheme is neither http nor https.
    Scheme,
    /// Something else, in words.
    Other(&'static str),
}

const NONE: EndpointError =
    EndpointError::Other("must be a host, a host and port, or an http or https URL");

impl Endpoint {
    /// Reads a host, a host with a port, or an http or https URL, which alone may have a path.
    /// Without a scheme it is https.
    ///
    /// # Errors
    /// Another form, or a user name, a query or a fragment.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
        let is_plaintext = match scheme.to_ascii_lowercase().as_str() {
            "http" => true,
            "https" => false,
            _ => return Err(EndpointError::Scheme),
        };
        let (host, base) = match rest.find('/').and_then(|at| rest.split_at_checked(at)) {
            Some((host, base)) if text.contains("://") => (host, base),
            Some(_) => return Err(EndpointError::Other("a path needs https:// before the host")),
            None => (rest, ""),
        };
        if host.contains('@') {
            let why = "must not hold a user name; credentials belong into the Secret";
            return Err(EndpointError::Other(why));
        }
        if base.contains(['?', '#']) {
            return Err(EndpointError::Other("must not have a query or a fragment"));
        }
        let authority = authority(host, if is_plaintext { 80 } else { 443 })?;
        let base = base.trim_end_matches('/');
        if !base.is_empty() && base.parse::<PathAndQuery>().is_err() {
            return Err(EndpointError::Other("has a path that cannot be sent"));
        }
        Ok(Self { is_plaintext, authority, base: base.to_owned() })
    }
}

/// Host and port, in lower case.
fn authority(host: &str, default: u16) -> Result<String, EndpointError> {
    // A bare IPv6 address is meant as one, though a URL wants it in brackets.
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host.to_owned(),
    };
    let authority: Authority = host.parse().map_err(|_| NONE)?;
    let name = authority.host();
    if name.is_empty() {
        return Err(NONE);
    }
    let port = match authority.as_str().strip_prefix(name).ok_or(NONE)? {
        "" => default,
        port => {
            let port = port.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
            let why = EndpointError::Other("has a port that is not between 1 and 65535");
            port.filter(|&port| port > 0).ok_or(why)?
        }
    };
    let whole: Authority = format!("{name}:{port}").parse().map_err(|_| NONE)?;
    Ok(whole.as_str().to_ascii_lowercase())
}

/// Whether a proxy can be used: an absolute http, https or socks5 URL with a host. It may have a
/// user name.
pub(crate) fn is_proxy(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_known = ["http", "https", "socks5"].iter().any(|it| it.eq_ignore_ascii_case(scheme));
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    // The default port does not matter.
    is_known && text.parse::<Uri>().is_ok() && authority(host, 443).is_ok()
}

#[cfg(test)]
mod tests;
