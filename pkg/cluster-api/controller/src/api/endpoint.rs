//! [`Endpoint`]: where clients reach an API server.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A host and a port. Upstream writes an empty host for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: i32,
}

impl Endpoint {
    /// Whether it names something.
    pub fn is_set(&self) -> bool {
        !self.host.is_empty() && self.port > 0
    }
}

/// As in a URL: an IPv6 address stands in brackets.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_reads_as_in_a_url_and_one_without_host_or_port_is_none() {
        let endpoint = |host: &str, port| Endpoint { host: host.to_owned(), port };
        assert_eq!(endpoint("h.example.org", 6443).to_string(), "h.example.org:6443");
        assert_eq!(endpoint("fd00::1", 443).to_string(), "[fd00::1]:443");
        assert!(endpoint("h", 1).is_set());
        assert!(!endpoint("", 1).is_set() && !endpoint("h", 0).is_set());
    }
}
