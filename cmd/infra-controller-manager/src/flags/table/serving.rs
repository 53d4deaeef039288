//! Flags of the HTTPS listener: where it listens, and how it authenticates and authorizes clients.

use std::net::IpAddr;

use flags::{Flag, GoDuration, NamedCertKey, Spec};

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
    "Further addresses to listen on at --secure-port, such as the address of the host for scrapers, with a --bind-address of 127.0.0.1.",
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

const AUTHENTICATION_GROUP: &str = "authentication";
const AUTHORIZATION_GROUP: &str = "authorization";

pub(crate) const AUTHENTICATION_KUBECONFIG: Flag<String> = Flag::string(
    AUTHENTICATION_GROUP,
    "authentication-kubeconfig",
    "",
    "Kubeconfig of the API server that reviews bearer tokens and publishes the CAs of clients; its identity needs the ClusterRole system:auth-delegator. Without it the service account of the pod is used, and outside of a pod bearer tokens are refused.",
);

pub(crate) const AUTHENTICATION_SKIP_LOOKUP: Flag<bool> = Flag::bool(
    AUTHENTICATION_GROUP,
    "authentication-skip-lookup",
    "false",
    "Do not read missing authentication settings from the cluster.",
);

pub(crate) const AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL: Flag<GoDuration> = Flag::duration(
    AUTHENTICATION_GROUP,
    "authentication-token-webhook-cache-ttl",
    "10s",
    "How long the answer about a token is reused.",
);

pub(crate) const AUTHENTICATION_TOLERATE_LOOKUP_FAILURE: Flag<bool> = Flag::bool(
    AUTHENTICATION_GROUP,
    "authentication-tolerate-lookup-failure",
    "false",
    "Go on without client certificates when the API server refuses to show its authentication settings. An API server that does not answer is waited for in any case.",
);

pub(crate) const CLIENT_CA_FILE: Flag<String> = Flag::string(
    AUTHENTICATION_GROUP,
    "client-ca-file",
    "",
    "CA bundle that client certificates are checked against; the common name becomes the user, organizations become groups. Without it the CAs that the cluster publishes are used.",
);

pub(crate) const REQUESTHEADER_CLIENT_CA_FILE: Flag<String> = Flag::string(
    AUTHENTICATION_GROUP,
    "requestheader-client-ca-file",
    "",
    "CA bundle that an authenticating proxy's certificate is checked against. Without it the CAs and headers that the cluster publishes are used.",
);

pub(crate) const REQUESTHEADER_ALLOWED_NAMES: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-allowed-names",
    "",
    "Common names an authenticating proxy may have; empty allows any.",
);

pub(crate) const REQUESTHEADER_USERNAME_HEADERS: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-username-headers",
    "x-remote-user",
    "Headers in which an authenticating proxy names the user.",
);

pub(crate) const REQUESTHEADER_UID_HEADERS: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-uid-headers",
    "",
    "Headers in which an authenticating proxy gives the user's UID.",
);

pub(crate) const REQUESTHEADER_GROUP_HEADERS: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-group-headers",
    "x-remote-group",
    "Headers in which an authenticating proxy gives the user's groups.",
);

pub(crate) const REQUESTHEADER_EXTRA_HEADERS_PREFIX: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-extra-headers-prefix",
    "x-remote-extra-",
    "Prefixes of headers with further facts about the user.",
);

pub(super) const AUTHENTICATION: &[Spec] = &[
    AUTHENTICATION_KUBECONFIG.spec(),
    AUTHENTICATION_SKIP_LOOKUP.spec(),
    AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL.spec(),
    AUTHENTICATION_TOLERATE_LOOKUP_FAILURE.spec(),
    CLIENT_CA_FILE.spec(),
    REQUESTHEADER_CLIENT_CA_FILE.spec(),
    REQUESTHEADER_ALLOWED_NAMES.spec(),
    REQUESTHEADER_USERNAME_HEADERS.spec(),
    REQUESTHEADER_UID_HEADERS.spec(),
    REQUESTHEADER_GROUP_HEADERS.spec(),
    REQUESTHEADER_EXTRA_HEADERS_PREFIX.spec(),
];

pub(crate) const AUTHORIZATION_KUBECONFIG: Flag<String> = Flag::string(
    AUTHORIZATION_GROUP,
    "authorization-kubeconfig",
    "",
    "Kubeconfig of the API server that reviews access; its identity needs the ClusterRole system:auth-delegator. Without it the service account of the pod is used, and outside of a pod everything that needs a review is refused.",
);

pub(crate) const AUTHORIZATION_ALWAYS_ALLOW_PATHS: Flag<Vec<String>> = Flag::strings(
    AUTHORIZATION_GROUP,
    "authorization-always-allow-paths",
    "/healthz,/readyz,/livez",
    "Paths served without a review of access; a final * matches the rest.",
);

pub(crate) const AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL: Flag<GoDuration> = Flag::duration(
    AUTHORIZATION_GROUP,
    "authorization-webhook-cache-authorized-ttl",
    "10s",
    "How long an allowing review is reused.",
);

pub(crate) const AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL: Flag<GoDuration> = Flag::duration(
    AUTHORIZATION_GROUP,
    "authorization-webhook-cache-unauthorized-ttl",
    "10s",
    "How long a denying review is reused.",
);

pub(crate) const AUTHZ_OUTAGE_GRACE: Flag<GoDuration> = Flag::duration(
    AUTHORIZATION_GROUP,
    "authz-outage-grace",
    "5m0s",
    "How long a reader of /metrics that was allowed is served on while the API server cannot be reached; 0 ends that.",
);

pub(crate) const METRICS_ALLOWED_USERS: Flag<Vec<String>> = Flag::strings(
    AUTHORIZATION_GROUP,
    "metrics-allowed-users",
    "",
    "Users, and groups as group:NAME, that may read /metrics without a review of access.",
);

pub(super) const AUTHORIZATION: &[Spec] = &[
    AUTHORIZATION_KUBECONFIG.spec(),
    AUTHORIZATION_ALWAYS_ALLOW_PATHS.spec(),
    AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL.spec(),
    AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL.spec(),
    AUTHZ_OUTAGE_GRACE.spec(),
    METRICS_ALLOWED_USERS.spec(),
];
