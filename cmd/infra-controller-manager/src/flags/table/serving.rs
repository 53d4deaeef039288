//! Flags of the HTTPS listener (where it listens, and how it authenticates and authorizes clients), of
//! metrics, logs and debugging.

use std::net::IpAddr;

use flags::{GoDuration, NamedCertKey};

flags::declare! {
    pub(crate) FLAGS in "secure serving";

    BIND_ADDRESS: IpAddr = ip("bind-address", "0.0.0.0")
        "Address to listen on; empty, 0.0.0.0 or :: means all addresses of both IP families.";
    ADDITIONAL_BIND_ADDRESSES: Vec<String> = strings("additional-bind-addresses", "")
        "More addresses to listen on at --secure-port, for example the address of the host for \
         scrapers when --bind-address is 127.0.0.1.";
    SECURE_PORT: i64 = int("secure-port", "10257") "Port for HTTPS; 0 disables serving.";
    CERT_DIR: String = string("cert-dir", "")
        "Directory of the serving certificate when --tls-cert-file is not set; if empty, the \
         program creates a certificate in memory.";
    TLS_CERT_FILE: String = string("tls-cert-file", "")
        "PEM file with the serving certificate and its chain; needs --tls-private-key-file.";
    TLS_PRIVATE_KEY_FILE: String = string("tls-private-key-file", "")
        "PEM file with the private key of --tls-cert-file.";
    DISABLE_HTTP2_SERVING: bool = bool("disable-http2-serving", "false") "Serve HTTP/1.1 only.";
    HTTP2_MAX_STREAMS_PER_CONNECTION: i64 = int("http2-max-streams-per-connection", "0")
        "Maximum of concurrent HTTP/2 streams per client; 0 means the default of the server.";
    TLS_CIPHER_SUITES: Vec<String> = strings("tls-cipher-suites", "")
        "Cipher suites for TLS 1.2, by IANA name; the cipher suites of TLS 1.3 are always \
         enabled.";
    TLS_CURVE_PREFERENCES: Vec<i64> = int32_slice("tls-curve-preferences", "")
        "Key exchange groups in order of preference, by IANA number: 23 (P-256), 24 (P-384) or 29 \
         (X25519).";
    TLS_MIN_VERSION: String = string("tls-min-version", "")
        "Minimum TLS version: VersionTLS12 or VersionTLS13.";
    TLS_SNI_CERT_KEY: Vec<NamedCertKey> = cert_keys("tls-sni-cert-key", "")
        "PEM files with an additional certificate and its key, and the host names for which they \
         are used, as cert,key:name,*.domain; without names, the names in the certificate are \
         used. May be repeated.";
    /// Nothing reads it: without it kube-controller-manager binds so, too, since Go always does.
    PERMIT_ADDRESS_SHARING: bool = bool("permit-address-sharing", "false")
        "No effect: the program always binds with SO_REUSEADDR, like kube-controller-manager, so \
         a restart does not wait for old connections.";
    PERMIT_PORT_SHARING: bool = bool("permit-port-sharing", "false")
        "Bind with SO_REUSEPORT, so that several processes can share the port.";
}

flags::declare! {
    pub(crate) AUTHENTICATION in "authentication";

    AUTHENTICATION_KUBECONFIG: String = string("authentication-kubeconfig", "")
        "Kubeconfig of the API server that reviews bearer tokens and publishes the CAs of \
         clients; its identity needs the ClusterRole system:auth-delegator. Default: the service \
         account of the pod; outside a pod bearer tokens are refused.";
    AUTHENTICATION_SKIP_LOOKUP: bool = bool("authentication-skip-lookup", "false")
        "Do not read missing authentication settings from the cluster.";
    AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL: GoDuration =
        duration("authentication-token-webhook-cache-ttl", "10s")
        "How long the result of a token review is cached.";
    AUTHENTICATION_TOLERATE_LOOKUP_FAILURE: bool =
        bool("authentication-tolerate-lookup-failure", "false")
        "Continue without client certificates when the API server refuses to return its \
         authentication settings. While the API server does not answer, the program waits in any \
         case.";
    CLIENT_CA_FILE: String = string("client-ca-file", "")
        "CA bundle that verifies client certificates; the common name becomes the user, \
         organizations become groups. Default: the CAs that the cluster publishes.";
    REQUESTHEADER_CLIENT_CA_FILE: String = string("requestheader-client-ca-file", "")
        "CA bundle that verifies the certificate of an authenticating proxy. Default: the CAs and \
         headers that the cluster publishes.";
    REQUESTHEADER_ALLOWED_NAMES: Vec<String> = strings("requestheader-allowed-names", "")
        "Common names that an authenticating proxy may have; empty allows all.";
    REQUESTHEADER_USERNAME_HEADERS: Vec<String> =
        strings("requestheader-username-headers", "x-remote-user")
        "Headers in which an authenticating proxy sends the user name.";
    REQUESTHEADER_UID_HEADERS: Vec<String> = strings("requestheader-uid-headers", "")
        "Headers in which an authenticating proxy sends the UID of the user.";
    REQUESTHEADER_GROUP_HEADERS: Vec<String> =
        strings("requestheader-group-headers", "x-remote-group")
        "Headers in which an authenticating proxy sends the groups of the user.";
    REQUESTHEADER_EXTRA_HEADERS_PREFIX: Vec<String> =
        strings("requestheader-extra-headers-prefix", "x-remote-extra-")
        "Prefixes of headers in which an authenticating proxy sends extra attributes of the user.";
}

flags::declare! {
    pub(crate) AUTHORIZATION in "authorization";

    AUTHORIZATION_KUBECONFIG: String = string("authorization-kubeconfig", "")
        "Kubeconfig of the API server that reviews access; its identity needs the ClusterRole \
         system:auth-delegator. Default: the service account of the pod; outside a pod every \
         request that needs a review is refused.";
    AUTHORIZATION_ALWAYS_ALLOW_PATHS: Vec<String> =
        strings("authorization-always-allow-paths", "/healthz,/readyz,/livez")
        "Paths that are served without authorization; a * at the end matches any rest of the \
         path.";
    AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL: GoDuration =
        duration("authorization-webhook-cache-authorized-ttl", "10s")
        "How long a review that allows access is cached.";
    AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL: GoDuration =
        duration("authorization-webhook-cache-unauthorized-ttl", "10s")
        "How long a review that denies access is cached.";
    AUTHZ_OUTAGE_GRACE: GoDuration = duration("authz-outage-grace", "5m0s")
        "How long readers that were authorized before can still read /metrics while the API \
         server is unreachable; 0 disables this.";
    METRICS_ALLOWED_USERS: Vec<String> = strings("metrics-allowed-users", "")
        "Users, and groups as group:NAME, that may read /metrics without authorization by the API \
         server.";
}

flags::declare! {
    pub(crate) METRICS in "metrics";

    DISABLED_METRICS: Vec<String> = strings("disabled-metrics", "")
        "Metrics that are not exposed, by full name.";
    ALLOW_METRIC_LABELS: Vec<(String, String)> = string_map("allow-metric-labels", "")
        "Values that a label of a metric may have, as metric,label=v1,v2. Other values are \
         replaced by 'unexpected' and counted in one series.";
    ALLOW_METRIC_LABELS_MANIFEST: String = string("allow-metric-labels-manifest", "")
        "YAML file with entries of the form metric,label: v1,v2; --allow-metric-labels takes \
         precedence.";
}

flags::declare! {
    pub(crate) LOGS in "logs";

    VERBOSITY: i64 = verbosity("v", "0")
        "Log level: 0 for what an operator needs, 2 is the usual choice, 6 and higher also log \
         API requests.";
    VMODULE: Vec<(String, u8)> = vmodule("vmodule", "")
        "Log levels of single source files, by file name pattern; only for the text format.";
    LOGGING_FORMAT: String = string("logging-format", "text") "Log format: text or json.";
    LOG_FLUSH_FREQUENCY: GoDuration = duration("log-flush-frequency", "5s")
        "Longest time that a line stays in a log buffer; without a buffer each line is written at \
         once.";
    LOG_TEXT_SPLIT_STREAM: bool = bool("log-text-split-stream", "false")
        "Write errors to standard error and the rest to standard output, in the text format. \
         Needs the feature gate LoggingAlphaOptions.";
    LOG_TEXT_INFO_BUFFER_SIZE: i64 = quantity("log-text-info-buffer-size", "0")
        "With --log-text-split-stream, size of the buffer of standard output, such as 64Ki. The \
         buffer is written when it is full, after --log-flush-frequency, and at exit. Needs the \
         feature gate LoggingAlphaOptions.";
    LOG_JSON_SPLIT_STREAM: bool = bool("log-json-split-stream", "false")
        "Write errors to standard error and the rest to standard output, in the JSON format. \
         Needs the feature gate LoggingAlphaOptions.";
    LOG_JSON_INFO_BUFFER_SIZE: i64 = quantity("log-json-info-buffer-size", "0")
        "With --log-json-split-stream, size of the buffer of standard output, such as 64Ki. The \
         buffer is written when it is full, after --log-flush-frequency, and at exit. Needs the \
         feature gate LoggingAlphaOptions.";
}

flags::declare! {
    pub(crate) DEBUGGING in "debugging";

    PROFILING: bool = bool("profiling", "true")
        "Serve /debug/flags/v; a PUT sets the log level. The program serves no profiles under \
         /debug/pprof/: use perf.";
}
