//! The HTTPS listener.

use pflag::{Kind, Spec};

use super::not_enforced;

const GROUP: &str = "secure serving";

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Spec {
    Spec::honoured(GROUP, name, kind, default, help)
}

const fn later(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Spec {
    not_enforced(GROUP, name, kind, default, help)
}

pub(super) const FLAGS: &[Spec] = &[
    flag(
        "bind-address",
        Kind::Ip,
        "0.0.0.0",
        "Address to listen on; blank, 0.0.0.0 or :: listens on all addresses of both families.",
    ),
    flag("secure-port", Kind::Int, "10257", "Port for HTTPS; 0 serves nothing."),
    flag(
        "cert-dir",
        Kind::String,
        "",
        "Directory for the serving certificate when --tls-cert-file is not set; without it a certificate is made in memory.",
    ),
    flag(
        "tls-cert-file",
        Kind::String,
        "",
        "File with the serving certificate and its chain, PEM; needs --tls-private-key-file.",
    ),
    flag("tls-private-key-file", Kind::String, "", "File with the key of --tls-cert-file, PEM."),
    flag("disable-http2-serving", Kind::Bool, "false", "Serve HTTP/1.1 only."),
    flag(
        "http2-max-streams-per-connection",
        Kind::Int,
        "0",
        "Most concurrent HTTP/2 streams of one client; 0 leaves it to the server.",
    ),
    flag(
        "tls-cipher-suites",
        Kind::Strings,
        "",
        "Cipher suites for TLS 1.2, by IANA name; those of TLS 1.3 are always on.",
    ),
    flag(
        "tls-curve-preferences",
        Kind::Int32Slice,
        "",
        "Key exchange groups, by IANA number, best first: 23 (P-256), 24 (P-384) or 29 (X25519).",
    ),
    flag(
        "tls-min-version",
        Kind::String,
        "",
        "Oldest TLS version served: VersionTLS12 or VersionTLS13.",
    ),
    later(
        "tls-sni-cert-key",
        Kind::NamedCertKeys,
        "",
        "A further certificate and key with the domain patterns they serve; may be repeated.",
    ),
    later(
        "permit-address-sharing",
        Kind::Bool,
        "false",
        "Bind with SO_REUSEADDR, so that a wildcard and a specific address may share the port.",
    ),
    flag(
        "permit-port-sharing",
        Kind::Bool,
        "false",
        "Bind with SO_REUSEPORT, so that several processes may share the port.",
    ),
];
