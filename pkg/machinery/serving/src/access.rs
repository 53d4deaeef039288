//! Who may ask for what, until delegated authorization is built (README decision 12).

use std::net::IpAddr;

use http::{Method, StatusCode};
use serde_json::json;

use crate::reply::{self, Reply};

/// Whether the peer is on this host. IPv4 peers of a dual-stack socket come as mapped IPv6
/// addresses, and count as what they are.
pub(crate) fn is_local(peer: IpAddr) -> bool {
    peer.to_canonical().is_loopback()
}

/// The refusal for a peer that is not on this host.
pub(crate) fn refusal(peer: IpAddr, method: &Method, path: &str) -> Option<Reply> {
    (!is_local(peer)).then(|| forbidden(method, path))
}

/// A Kubernetes `Status`, so that clients show the message (host.md 5.3).
fn forbidden(method: &Method, path: &str) -> Reply {
    let verb = method.as_str().to_lowercase();
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!(
            "forbidden: User \"system:anonymous\" cannot {verb} path \"{path}\": delegated \
             authorization is not built yet, so this path answers to loopback peers only"
        ),
        "reason": "Forbidden",
        "details": {},
        "code": 403,
    });
    reply::json(StatusCode::FORBIDDEN, status.to_string())
}
