//! Settings of the HTTPS server: listeners, TLS, authentication and authorization.

use std::path::PathBuf;

use ::flags::{NamedCertKey, Values};
use delegated_auth::{DelegationOptions, RequestHeaders};
use serving::{CertificateSource, ClientCertificates, ListenerOptions, NamedCertificate};

use crate::build;
use crate::flags::table::serving as flags;
use crate::flags::table::serving::{
    ADDITIONAL_BIND_ADDRESSES, BIND_ADDRESS, CERT_DIR, DISABLE_HTTP2_SERVING,
    HTTP2_MAX_STREAMS_PER_CONNECTION, PERMIT_PORT_SHARING, SECURE_PORT, TLS_CERT_FILE,
    TLS_PRIVATE_KEY_FILE, TLS_SNI_CERT_KEY,
};
use crate::flags::tls_choice;

/// Settings of the HTTPS server.
pub struct ServingSettings {
    /// The sockets and their TLS.
    pub listener: ListenerOptions,
    /// Authentication and authorization of requests.
    pub delegation: DelegationOptions,
    /// `--authentication-kubeconfig`.
    pub authentication_kubeconfig: Option<PathBuf>,
    /// `--authorization-kubeconfig`.
    pub authorization_kubeconfig: Option<PathBuf>,
}

impl ServingSettings {
    /// `None` with `--secure-port=0`.
    pub(super) fn new(values: &Values) -> Option<Self> {
        Some(Self {
            listener: listener(values)?,
            delegation: delegation(values),
            authentication_kubeconfig: path(values, &flags::AUTHENTICATION_KUBECONFIG),
            authorization_kubeconfig: path(values, &flags::AUTHORIZATION_KUBECONFIG),
        })
    }
}

fn listener(values: &Values) -> Option<ListenerOptions> {
    let port = u16::try_from(values.get(&SECURE_PORT)).ok().filter(|port| *port != 0)?;
    Some(ListenerOptions {
        name: "secure",
        port_flag: "--secure-port",
        bind_address: values.get(&BIND_ADDRESS),
        // That each is one was checked before.
        further_addresses: values
            .get(&ADDITIONAL_BIND_ADDRESSES)
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect(),
        port,
        certificate: certificate(values),
        named_certificates: values.get(&TLS_SNI_CERT_KEY).into_iter().map(named).collect(),
        client_certificates: ClientCertificates::Asked,
        tls: tls_choice(values).options,
        disable_http2: values.get(&DISABLE_HTTP2_SERVING),
        http2_max_streams: u32::try_from(values.get(&HTTP2_MAX_STREAMS_PER_CONNECTION))
            .unwrap_or_default(),
        permit_port_sharing: values.get(&PERMIT_PORT_SHARING),
    })
}

fn named(NamedCertKey { cert, key, names }: NamedCertKey) -> NamedCertificate {
    NamedCertificate { certificate: cert.into(), key: key.into(), names }
}

/// Files win over the directory; that both files are given is checked before.
fn certificate(values: &Values) -> CertificateSource {
    let path = |flag| path(values, flag);
    match (path(&TLS_CERT_FILE), path(&TLS_PRIVATE_KEY_FILE), path(&CERT_DIR)) {
        (Some(certificate), Some(key), _) => CertificateSource::Files { certificate, key },
        (_, _, Some(folder)) => CertificateSource::Directory { folder, name: build::PRODUCT },
        _ => CertificateSource::Memory,
    }
}

fn delegation(values: &Values) -> DelegationOptions {
    DelegationOptions {
        client_ca_file: path(values, &flags::CLIENT_CA_FILE),
        proxy_ca_file: path(values, &flags::REQUESTHEADER_CLIENT_CA_FILE),
        proxy_headers: RequestHeaders {
            allowed_names: values.get(&flags::REQUESTHEADER_ALLOWED_NAMES),
            user: values.get(&flags::REQUESTHEADER_USERNAME_HEADERS),
            uid: values.get(&flags::REQUESTHEADER_UID_HEADERS),
            groups: values.get(&flags::REQUESTHEADER_GROUP_HEADERS),
            extra_prefixes: values.get(&flags::REQUESTHEADER_EXTRA_HEADERS_PREFIX),
        },
        skip_lookup: values.get(&flags::AUTHENTICATION_SKIP_LOOKUP),
        tolerate_lookup_failure: values.get(&flags::AUTHENTICATION_TOLERATE_LOOKUP_FAILURE),
        token_ttl: values.get(&flags::AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL).to_std(),
        allowed_ttl: values.get(&flags::AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL).to_std(),
        denied_ttl: values.get(&flags::AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL).to_std(),
        outage_grace: values.get(&flags::AUTHZ_OUTAGE_GRACE).to_std(),
        always_allow_paths: values.get(&flags::AUTHORIZATION_ALWAYS_ALLOW_PATHS),
        metrics_readers: values.get(&flags::METRICS_ALLOWED_USERS),
    }
}

fn path(values: &Values, flag: &::flags::Flag<String>) -> Option<PathBuf> {
    given(values, flag).map(Into::into)
}

/// The value of a text flag; `None` if it is empty.
pub(super) fn given(values: &Values, flag: &::flags::Flag<String>) -> Option<String> {
    Some(values.get(flag)).filter(|text| !text.is_empty())
}
