//! [`Verdict`]: the result of a probe. [`Code`]: why it failed. Both are short words for messages, metrics and
//! alert rules.

use std::fmt;

/// The conclusion of one probe. An HTTP response of any kind proves that the cluster can be reached
/// (`rule:an-answer-proves-reachability`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The server answered that it is ready.
    Ok,
    /// The server responded over HTTP, but did not say that it is ready.
    Unhealthy,
    /// The server sent no HTTP response.
    Unreachable,
    /// The probe could not make a request: the object, or an object that it refers to, cannot be used.
    Config,
}

impl Verdict {
    /// The label of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unhealthy => "unhealthy",
            Self::Unreachable => "unreachable",
            Self::Config => "config",
        }
    }

    /// True for [`Verdict::Ok`] alone.
    pub(crate) const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason of a failure. The words are an interface: they do not change between releases: alert
/// rules and searches use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The host has no address, or DNS gave no answer.
    Dns,
    /// The port is closed.
    ConnectRefused,
    /// The SYN was not answered within the attempt.
    ConnectTimeout,
    /// The connection failed for another reason: no route, no free port.
    ConnectFailed,
    /// The server's certificate was refused: name, dates, authority.
    TlsVerify,
    /// The handshake broke for another reason.
    TlsHandshake,
    /// The proxy could not be reached or refused to connect.
    Proxy,
    /// An established connection was closed before the response.
    Reset,
    /// A connection was there, and no response came in time.
    Timeout,
    /// This process has no file or memory left for a connection, or could not read yet how to reach
    /// the cluster: nothing is known of it (`rule:what-we-could-not-ask-changes-nothing`).
    OwnLimit,
    /// The response was not HTTP.
    Protocol,
    /// A response with this status that no other code stands for.
    Http(u16),
    /// Status 200, and the body was not `ok`.
    Body,
    /// Status 401.
    Unauthorized,
    /// Status 403.
    Forbidden,
    /// The server is ready and the nodes of the cluster are not, where that is asked for.
    NodesNotReady,
    /// The Node of a machine is not ready.
    NodeNotReady,
    /// The machine is not a Node of its cluster.
    NodeMissing,
    /// No probe reaches the cluster, and its Lease says that it is not well.
    Beat,
    /// The server is ready, and a check that decides about readiness fails or has no result yet.
    Check,
    /// The Secret or credential object is missing, or lacks the key that is needed.
    SecretMissing,
    /// The credential is there, and its owner does not let it be sent to this cluster.
    CredentialRefused,
    /// The token or the certificate is there and empty.
    TokenEmpty,
    /// The exec plugin that prints the credential gives none, or may not be run.
    PluginFailed,
    /// The address is missing or cannot be parsed, or plain HTTP is not allowed.
    BadEndpoint,
    /// The impersonated user, a group or a key cannot stand in a header.
    BadImpersonation,
    /// The address, or that of the proxy, may not be dialled by this process.
    AddressDenied,
    /// The address of the proxy cannot be used.
    BadProxy,
    /// The CA bundle holds no certificate that can be parsed.
    CaParse,
    /// The client certificate and its key cannot be parsed or do not belong together.
    ClientCertificate,
}

impl Code {
    /// The verdict of a probe that failed with this code and learned nothing else.
    pub(crate) const fn verdict(self) -> Verdict {
        match self {
            Self::Http(_)
            | Self::Body
            | Self::Unauthorized
            | Self::Forbidden
            | Self::NodesNotReady
            | Self::NodeNotReady
            | Self::NodeMissing
            | Self::Beat
            | Self::Check => Verdict::Unhealthy,
            Self::SecretMissing
            | Self::CredentialRefused
            | Self::TokenEmpty
            | Self::PluginFailed
            | Self::BadEndpoint
            | Self::BadImpersonation
            | Self::AddressDenied
            | Self::BadProxy
            | Self::CaParse
            | Self::ClientCertificate => Verdict::Config,
            Self::Dns
            | Self::ConnectRefused
            | Self::ConnectTimeout
            | Self::ConnectFailed
            | Self::TlsVerify
            | Self::TlsHandshake
            | Self::Proxy
            | Self::Reset
            | Self::Timeout
            | Self::OwnLimit
            | Self::Protocol => Verdict::Unreachable,
        }
    }

    /// The label of metrics: a closed set, so that no server can make series by inventing statuses
    pub const fn label(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::ConnectRefused => "connect-refused",
            Self::ConnectTimeout => "connect-timeout",
            Self::ConnectFailed => "connect-failed",
            Self::TlsVerify => "tls-verify",
            Self::TlsHandshake => "tls-handshake",
            Self::Proxy => "proxy",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::OwnLimit => "own-limit",
            Self::Protocol => "protocol",
            Self::Http(status) => http_label(status),
            Self::Body => "body",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NodesNotReady => "nodes-not-ready",
            Self::NodeNotReady => "node-not-ready",
            Self::NodeMissing => "node-missing",
            Self::Beat => "beat",
            Self::Check => "check",
            Self::SecretMissing => "secret-missing",
            Self::CredentialRefused => "credential-refused",
            Self::TokenEmpty => "token-empty",
            Self::PluginFailed => "plugin-failed",
            Self::BadEndpoint => "bad-endpoint",
            Self::BadImpersonation => "bad-impersonation",
            Self::AddressDenied => "address-denied",
            Self::BadProxy => "bad-proxy",
            Self::CaParse => "ca-parse",
            Self::ClientCertificate => "client-certificate",
        }
    }
}

/// Statuses that API servers and load balancers are known for; the others by their class.
const fn http_label(status: u16) -> &'static str {
    match status {
        404 => "http-404",
        429 => "http-429",
        500 => "http-500",
        502 => "http-502",
        503 => "http-503",
        504 => "http-504",
        other => match other / 100 {
            2 => "http-2xx",
            3 => "http-3xx",
            4 => "http-4xx",
            5 => "http-5xx",
            _ => "http-other",
        },
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(status) => write!(f, "http-{status}"),
            other => f.write_str(other.label()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// (code, its word, what it concludes)
    const WORDS: [(Code, &str, Verdict); 30] = [
        (Code::Dns, "dns", Verdict::Unreachable),
        (Code::ConnectRefused, "connect-refused", Verdict::Unreachable),
        (Code::ConnectTimeout, "connect-timeout", Verdict::Unreachable),
        (Code::ConnectFailed, "connect-failed", Verdict::Unreachable),
        (Code::TlsVerify, "tls-verify", Verdict::Unreachable),
        (Code::TlsHandshake, "tls-handshake", Verdict::Unreachable),
        (Code::Proxy, "proxy", Verdict::Unreachable),
        (Code::Reset, "reset", Verdict::Unreachable),
        (Code::Timeout, "timeout", Verdict::Unreachable),
        (Code::OwnLimit, "own-limit", Verdict::Unreachable),
        (Code::Protocol, "protocol", Verdict::Unreachable),
        (Code::Http(418), "http-418", Verdict::Unhealthy),
        (Code::Body, "body", Verdict::Unhealthy),
        (Code::Unauthorized, "unauthorized", Verdict::Unhealthy),
        (Code::Forbidden, "forbidden", Verdict::Unhealthy),
        (Code::NodesNotReady, "nodes-not-ready", Verdict::Unhealthy),
        (Code::NodeNotReady, "node-not-ready", Verdict::Unhealthy),
        (Code::NodeMissing, "node-missing", Verdict::Unhealthy),
        (Code::Beat, "beat", Verdict::Unhealthy),
        (Code::Check, "check", Verdict::Unhealthy),
        (Code::SecretMissing, "secret-missing", Verdict::Config),
        (Code::CredentialRefused, "credential-refused", Verdict::Config),
        (Code::TokenEmpty, "token-empty", Verdict::Config),
        (Code::PluginFailed, "plugin-failed", Verdict::Config),
        (Code::BadEndpoint, "bad-endpoint", Verdict::Config),
        (Code::BadImpersonation, "bad-impersonation", Verdict::Config),
        (Code::AddressDenied, "address-denied", Verdict::Config),
        (Code::BadProxy, "bad-proxy", Verdict::Config),
        (Code::CaParse, "ca-parse", Verdict::Config),
        (Code::ClientCertificate, "client-certificate", Verdict::Config),
    ];

    #[test]
    fn every_code_has_its_word_and_its_verdict() {
        for (code, word, verdict) in WORDS {
            assert_eq!((code.to_string().as_str(), code.verdict()), (word, verdict));
        }
    }

    #[test]
    fn a_server_that_invents_statuses_makes_few_series() {
        let labels: HashSet<_> = (0..=u16::MAX).map(|status| Code::Http(status).label()).collect();
        assert_eq!(labels.len(), 11);
        assert_eq!(Code::Http(503).label(), "http-503");
        assert_eq!(Code::Http(999).label(), "http-other");
    }
}
