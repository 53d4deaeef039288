//! Delegated authentication and authorization: read, and not enforced until they are built; until
//! then everything but health answers to loopback peers only.

use pflag::{Flag, GoDuration, Kind, Spec, Verdict};

use super::verdicts::not_enforced;

const fn authn(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Spec {
    not_enforced("authentication", name, kind, default, help)
}

const fn authz(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Spec {
    not_enforced("authorization", name, kind, default, help)
}

pub(crate) const AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL: Flag<GoDuration> = Flag::duration(
    "authentication",
    "authentication-token-webhook-cache-ttl",
    "10s",
    "How long the answer about a token is reused.",
)
.with_verdict(Verdict::NotEnforced);

pub(super) const AUTHENTICATION: &[Spec] = &[
    authn(
        "authentication-kubeconfig",
        Kind::String,
        "",
        "Kubeconfig of the API server that reviews bearer tokens.",
    ),
    authn(
        "authentication-skip-lookup",
        Kind::Bool,
        "false",
        "Do not read missing authentication settings from the cluster.",
    ),
    AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL.spec(),
    authn(
        "authentication-tolerate-lookup-failure",
        Kind::Bool,
        "false",
        "Start although authentication settings cannot be read from the cluster.",
    ),
    authn(
        "client-ca-file",
        Kind::String,
        "",
        "CA bundle that client certificates are checked against; the common name becomes the user.",
    ),
    authn(
        "requestheader-client-ca-file",
        Kind::String,
        "",
        "CA bundle that an authenticating proxy's certificate is checked against.",
    ),
    authn(
        "requestheader-allowed-names",
        Kind::Strings,
        "",
        "Common names an authenticating proxy may have; empty allows any.",
    ),
    authn(
        "requestheader-username-headers",
        Kind::Strings,
        "x-remote-user",
        "Headers in which an authenticating proxy names the user.",
    ),
    authn(
        "requestheader-uid-headers",
        Kind::Strings,
        "",
        "Headers in which an authenticating proxy gives the user's UID.",
    ),
    authn(
        "requestheader-group-headers",
        Kind::Strings,
        "x-remote-group",
        "Headers in which an authenticating proxy gives the user's groups.",
    ),
    authn(
        "requestheader-extra-headers-prefix",
        Kind::Strings,
        "x-remote-extra-",
        "Prefixes of headers with further facts about the user.",
    ),
];

pub(crate) const AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL: Flag<GoDuration> = Flag::duration(
    "authorization",
    "authorization-webhook-cache-authorized-ttl",
    "10s",
    "How long an allowing review is reused.",
)
.with_verdict(Verdict::NotEnforced);

pub(crate) const AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL: Flag<GoDuration> = Flag::duration(
    "authorization",
    "authorization-webhook-cache-unauthorized-ttl",
    "10s",
    "How long a denying review is reused.",
)
.with_verdict(Verdict::NotEnforced);

pub(super) const AUTHORIZATION: &[Spec] = &[
    authz(
        "authorization-kubeconfig",
        Kind::String,
        "",
        "Kubeconfig of the API server that reviews access.",
    ),
    authz(
        "authorization-always-allow-paths",
        Kind::Strings,
        "/healthz,/readyz,/livez",
        "Paths served without a review of access; a final * matches the rest.",
    ),
    AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL.spec(),
    AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL.spec(),
];
