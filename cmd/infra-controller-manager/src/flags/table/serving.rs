//! The HTTPS listener.

use std::net::IpAddr;

use flags::{Flag, NamedCertKey, Spec};

const GROUP: &str = "secure serving";

pub(crate) const BIND_ADDRESS: Flag<IpAddr> = Flag::ip(
    GROUP,
    "bind-address",
    "0.0.0.0",
    "Address to listen on; blank, 0.0.0.0 or :: listens on all addresses of both families.",
);

pub(crate) const SECURE_PORT: Flag<i64> =
    Flag::int(GROUP, "secure-port", "10257", "Port for HTTPS; 0 serves nothing.");

pub(crate) const CERT_DIR: Flag<String> = Flag::string(
    GROUP,
    "cert-dir",
    "",
    "Directory for the serving certificate when --tls-cert-file is not set; without it a certificate is made in memory.",
);

pub(crate) const TLS_CERT_FILE: Flag<String> = Flag::string(
    GROUP,
    "tls-cert-file",
    "",
    "File with the serving certificate and its chain, PEM; needs --tls-private-key-file.",
);

pub(crate) const TLS_PRIVATE_KEY_FILE: Flag<String> =
    Flag::string(GROUP, "tls-private-key-file", "", "File with the key of --tls-cert-file, PEM.");

pub(crate) const DISABLE_HTTP2_SERVING: Flag<bool> =
    Flag::bool(GROUP, "disable-http2-serving", "false", "Serve HTTP/1.1 only.");

pub(crate) const HTTP2_MAX_STREAMS_PER_CONNECTION: Flag<i64> = Flag::int(
    GROUP,
    "http2-max-streams-per-connection",
    "0",
    "Most concurrent HTTP/2 streams of one client; 0 leaves it to the server.",
);

pub(crate) const TLS_CIPHER_SUITES: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "tls-cipher-suites",
    "",
    "Cipher suites for TLS 1.2, by IANA name; those of TLS 1.3 are always on.",
);

pub(crate) const TLS_CURVE_PREFERENCES: Flag<Vec<i64>> = Flag::int32_slice(
    GROUP,
    "tls-curve-preferences",
    "",
    "Key exchange groups, by IANA number, best first: 23 (P-256), 24 (P-384) or 29 (X25519).",
);

pub(crate) const TLS_MIN_VERSION: Flag<String> = Flag::string(
    GROUP,
    "tls-min-version",
    "",
    "Oldest TLS version served: VersionTLS12 or VersionTLS13.",
);

pub(crate) const TLS_SNI_CERT_KEY: Flag<Vec<NamedCertKey>> = Flag::cert_keys(
    GROUP,
    "tls-sni-cert-key",
    "",
    "A further certificate and key, PEM files, with the names that they are for, as cert,key:name,*.domain; without names those in the certificate. May be repeated.",
);

/// Nothing reads it: without it kube-controller-manager binds so, too, since Go always does.
const PERMIT_ADDRESS_SHARING: Flag<bool> = Flag::bool(
    GROUP,
    "permit-address-sharing",
    "false",
    "Bind with SO_REUSEADDR, so that a restart waits for no old connections: done without it, too, as by kube-controller-manager.",
);

pub(crate) const PERMIT_PORT_SHARING: Flag<bool> = Flag::bool(
    GROUP,
    "permit-port-sharing",
    "false",
    "Bind with SO_REUSEPORT, so that several processes may share the port.",
);

pub(crate) const ADDITIONAL_BIND_ADDRESSES: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "additional-bind-addresses",
    "",
    "Further addresses to listen on at --secure-port, such as that of the host for scrapers beside a --bind-address of 127.0.0.1.",
);

pub(super) const FLAGS: &[Spec] = &[
    BIND_ADDRESS.spec(),
    ADDITIONAL_BIND_ADDRESSES.spec(),
    SECURE_PORT.spec(),
    CERT_DIR.spec(),
    TLS_CERT_FILE.spec(),
    TLS_PRIVATE_KEY_FILE.spec(),
    DISABLE_HTTP2_SERVING.spec(),
    HTTP2_MAX_STREAMS_PER_CONNECTION.spec(),
    TLS_CIPHER_SUITES.spec(),
    TLS_CURVE_PREFERENCES.spec(),
    TLS_MIN_VERSION.spec(),
    TLS_SNI_CERT_KEY.spec(),
    PERMIT_ADDRESS_SHARING.spec(),
    PERMIT_PORT_SHARING.spec(),
];
