//! Flags of the HTTPS listener: where it listens, and how it authenticates and authorizes clients.

use std::net::IpAddr;

use flags::{Flag, GoDuration, NamedCertKey, Spec};

const GROUP: &str = "secure serving";

pub(crate) const BIND_ADDRESS: Flag<IpAddr> = Flag::ip(
    GROUP,
    "bind-address",
    "0.0.0.0",
    "Address to listen on; empty, 0.0.0.0 or :: means all addresses of both IP families.",
);

pub(crate) const SECURE_PORT: Flag<i64> =
    Flag::int(GROUP, "secure-port", "10257", "Port for HTTPS; 0 disables serving.");

pub(crate) const CERT_DIR: Flag<String> = Flag::string(
    GROUP,
    "cert-dir",
    "",
    "Directory of the serving certificate when --tls-cert-file is not set; if empty, the program creates a certificate in memory.",
);

pub(crate) const TLS_CERT_FILE: Flag<String> = Flag::string(
    GROUP,
    "tls-cert-file",
    "",
    "PEM file with the serving certificate and its chain; needs --tls-private-key-file.",
);

pub(crate) const TLS_PRIVATE_KEY_FILE: Flag<String> = Flag::string(
    GROUP,
    "tls-private-key-file",
    "",
    "PEM file with the private key of --tls-cert-file.",
);

pub(crate) const DISABLE_HTTP2_SERVING: Flag<bool> =
    Flag::bool(GROUP, "disable-http2-serving", "false", "Serve HTTP/1.1 only.");

pub(crate) const HTTP2_MAX_STREAMS_PER_CONNECTION: Flag<i64> = Flag::int(
    GROUP,
    "http2-max-streams-per-connection",
    "0",
    "Maximum of concurrent HTTP/2 streams per client; 0 means the default of the server.",
);

pub(crate) const TLS_CIPHER_SUITES: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "tls-cipher-suites",
    "",
    "Cipher suites for TLS 1.2, by IANA name; the cipher suites of TLS 1.3 are always enabled.",
);

pub(crate) const TLS_CURVE_PREFERENCES: Flag<Vec<i64>> = Flag::int32_slice(
    GROUP,
    "tls-curve-preferences",
    "",
    "Key exchange groups in order of preference, by IANA number: 23 (P-256), 24 (P-384) or 29 (X25519).",
);

pub(crate) const TLS_MIN_VERSION: Flag<String> = Flag::string(
    GROUP,
    "tls-min-version",
    "",
    "Minimum TLS version: VersionTLS12 or VersionTLS13.",
);

pub(crate) const TLS_SNI_CERT_KEY: Flag<Vec<NamedCertKey>> = Flag::cert_keys(
    GROUP,
    "tls-sni-cert-key",
    "",
    "PEM files with an additional certificate and its key, and the host names for which they are used, as cert,key:name,*.domain; without names, the names in the certificate are used. May be repeated.",
);

/// Nothing reads it: without it kube-controller-manager binds so, too, since Go always does.
const PERMIT_ADDRESS_SHARING: Flag<bool> = Flag::bool(
    GROUP,
    "permit-address-sharing",
    "false",
    "No effect: the program always binds with SO_REUSEADDR, like kube-controller-manager, so a restart does not wait for old connections.",
);

pub(crate) const PERMIT_PORT_SHARING: Flag<bool> = Flag::bool(
    GROUP,
    "permit-port-sharing",
    "false",
    "Bind with SO_REUSEPORT, so that several processes can share the port.",
);

pub(crate) const ADDITIONAL_BIND_ADDRESSES: Flag<Vec<String>> = Flag::strings(
    GROUP,
    "additional-bind-addresses",
    "",
    "More addresses to listen on at --secure-port, for example the address of the host for scrapers when --bind-address is 127.0.0.1.",
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
    "Kubeconfig of the API server that reviews bearer tokens and publishes the CAs of clients; its identity needs the ClusterRole system:auth-delegator. Default: the service account of the pod; outside a pod bearer tokens are refused.",
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
    "How long the result of a token review is cached.",
);

pub(crate) const AUTHENTICATION_TOLERATE_LOOKUP_FAILURE: Flag<bool> = Flag::bool(
    AUTHENTICATION_GROUP,
    "authentication-tolerate-lookup-failure",
    "false",
    "Continue without client certificates when the API server refuses to return its authentication settings. While the API server does not answer, the program waits in any case.",
);

pub(crate) const CLIENT_CA_FILE: Flag<String> = Flag::string(
    AUTHENTICATION_GROUP,
    "client-ca-file",
    "",
    "CA bundle that verifies client certificates; the common name becomes the user, organizations become groups. Default: the CAs that the cluster publishes.",
);

pub(crate) const REQUESTHEADER_CLIENT_CA_FILE: Flag<String> = Flag::string(
    AUTHENTICATION_GROUP,
    "requestheader-client-ca-file",
    "",
    "CA bundle that verifies the certificate of an authenticating proxy. Default: the CAs and headers that the cluster publishes.",
);

pub(crate) const REQUESTHEADER_ALLOWED_NAMES: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-allowed-names",
    "",
    "Common names that an authenticating proxy may have; empty allows all.",
);

pub(crate) const REQUESTHEADER_USERNAME_HEADERS: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-username-headers",
    "x-remote-user",
    "Headers in which an authenticating proxy sends the user name.",
);

pub(crate) const REQUESTHEADER_UID_HEADERS: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-uid-headers",
    "",
    "Headers in which an authenticating proxy sends the UID of the user.",
);

pub(crate) const REQUESTHEADER_GROUP_HEADERS: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-group-headers",
    "x-remote-group",
    "Headers in which an authenticating proxy sends the groups of the user.",
);

pub(crate) const REQUESTHEADER_EXTRA_HEADERS_PREFIX: Flag<Vec<String>> = Flag::strings(
    AUTHENTICATION_GROUP,
    "requestheader-extra-headers-prefix",
    "x-remote-extra-",
    "Prefixes of headers in which an authenticating proxy sends extra attributes of the user.",
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
    "Kubeconfig of the API server that reviews access; its identity needs the ClusterRole system:auth-delegator. Default: the service account of the pod; outside a pod every request that needs a review is refused.",
);

pub(crate) const AUTHORIZATION_ALWAYS_ALLOW_PATHS: Flag<Vec<String>> = Flag::strings(
    AUTHORIZATION_GROUP,
    "authorization-always-allow-paths",
    "/healthz,/readyz,/livez",
    "Paths that are served without authorization; a * at the end matches any rest of the path.",
);

pub(crate) const AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL: Flag<GoDuration> = Flag::duration(
    AUTHORIZATION_GROUP,
    "authorization-webhook-cache-authorized-ttl",
    "10s",
    "How long a review that allows access is cached.",
);

pub(crate) const AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL: Flag<GoDuration> = Flag::duration(
    AUTHORIZATION_GROUP,
    "authorization-webhook-cache-unauthorized-ttl",
    "10s",
    "How long a review that denies access is cached.",
);

pub(crate) const AUTHZ_OUTAGE_GRACE: Flag<GoDuration> = Flag::duration(
    AUTHORIZATION_GROUP,
    "authz-outage-grace",
    "5m0s",
    "How long readers that were authorized before can still read /metrics while the API server is unreachable; 0 disables this.",
);

pub(crate) const METRICS_ALLOWED_USERS: Flag<Vec<String>> = Flag::strings(
    AUTHORIZATION_GROUP,
    "metrics-allowed-users",
    "",
    "Users, and groups as group:NAME, that may read /metrics without authorization by the API server.",
);

pub(super) const AUTHORIZATION: &[Spec] = &[
    AUTHORIZATION_KUBECONFIG.spec(),
    AUTHORIZATION_ALWAYS_ALLOW_PATHS.spec(),
    AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL.spec(),
    AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL.spec(),
    AUTHZ_OUTAGE_GRACE.spec(),
    METRICS_ALLOWED_USERS.spec(),
];
