//! The Lease of the leader, for a contender that stands by until another holder gives it back.

use std::time::Instant;

use http::Method;
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::reply::Reply;

/// Where Leases are.
const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// One Lease, or none yet.
#[derive(Default)]
pub(super) struct Held {
    lease: Option<Value>,
    version: u64,
    won: Option<Instant>,
}

impl Held {
    /// Another process holds it, for an hour.
    pub(super) fn hold(&mut self, name: &str) {
        let time = "2026-01-01T00:00:00.000000Z";
        self.store(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-system", "uid": "lease"},
            "spec": {
                "holderIdentity": "another", "leaseDurationSeconds": 3600, "leaseTransitions": 1,
                "acquireTime": time, "renewTime": time,
            },
        }));
    }

    /// The other process gives it back, as at its stop.
    pub(super) fn give_back(&mut self) {
        if let Some(mut lease) = self.lease.take() {
            lease["spec"]["holderIdentity"] = "".into();
            lease["spec"]["leaseDurationSeconds"] = 1.into();
            self.store(lease);
        }
    }

    /// When a client took it.
    pub(super) fn won(&self) -> Option<Instant> {
        self.won
    }

    /// Answers a request for it; `None` for another request.
    pub(super) fn answer(&mut self, asked: &Asked) -> Option<Reply> {
        if !asked.path().starts_with(PATH) {
            return None;
        }
        let known = self.lease.as_ref().map(|lease| &lease["metadata"]["resourceVersion"]);
        let code = match *asked.method() {
            Method::POST if known.is_none() => 201,
            Method::PUT if known == Some(&asked.json()["metadata"]["resourceVersion"]) => 200,
            Method::POST | Method::PUT => return Some(Reply::failure(409, "Conflict")),
            _ => {
                let lease = self.lease.clone();
                let missing = || Reply::failure(404, "NotFound");
                return Some(lease.map_or_else(missing, |lease| Reply::Json(200, lease)));
            }
        };
        self.store(asked.json());
        self.won.get_or_insert_with(Instant::now);
        self.lease.clone().map(|lease| Reply::Json(code, lease))
    }

    fn store(&mut self, mut lease: Value) {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(lease);
    }
}
