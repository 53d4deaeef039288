//! Records requests and their outcomes.

use std::time::{Duration, Instant};

use http::Method;
use parking_lot::Mutex;

use super::matching::Request;

/// One request and its fate.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The request as it arrived.
    pub request: Request,
    /// Time at which the whole request had arrived.
    pub arrived: Instant,
    /// Time after which the request can no longer take effect: the server has answered, or never
    /// got it. `None` while that is open.
    pub settled: Option<Instant>,
    /// The server's own answer, whatever the client got to see.
    pub upstream_status: Option<u16>,
    /// `metadata.resourceVersion` of the server's answer to a write.
    pub resource_version: Option<u64>,
    /// The outcome for the client.
    pub outcome: Outcome,
}

/// The outcome of a request for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No answer yet.
    Open,
    /// An answer with this status: the server's or a made-up one.
    Answered(u16),
    /// Nothing, ever: the connection or stream was cut.
    Cut,
}

/// The record of one proxy.
#[derive(Default)]
pub(super) struct Recorder(Mutex<Vec<Recorded>>);

/// A place in the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry(usize);

impl Recorder {
    pub(super) fn arrived(&self, request: Request) -> Entry {
        let mut all = self.0.lock();
        all.push(Recorded {
            request,
            arrived: Instant::now(),
            settled: None,
            upstream_status: None,
            resource_version: None,
            outcome: Outcome::Open,
        });
        Entry(all.len() - 1)
    }

    pub(super) fn settled(&self, entry: Entry, status: Option<u16>, version: Option<u64>) {
        let recorded = &mut self.0.lock()[entry.0];
        recorded.settled = Some(Instant::now());
        recorded.upstream_status = status;
        recorded.resource_version = version;
    }

    pub(super) fn ended(&self, entry: Entry, outcome: Outcome) {
        self.0.lock()[entry.0].outcome = outcome;
    }

    pub(super) fn all(&self) -> Vec<Recorded> {
        self.0.lock().clone()
    }

    /// The results of `read` for each request, without a copy of the others.
    pub(super) fn each<T>(&self, read: impl Fn(&Recorded) -> Option<T>) -> Vec<T> {
        self.0.lock().iter().filter_map(read).collect()
    }
}

/// A PATCH that gives a Node its pod CIDRs.
#[derive(Debug, Clone)]
pub struct NodePatch {
    /// The node's name, from the path.
    pub node: String,
    /// The uid it insists on; empty when it does not.
    pub uid: String,
    /// The CIDRs it carries, primary first.
    pub pod_cidrs: Vec<String>,
    /// See [`Recorded::arrived`].
    pub arrived: Instant,
    /// See [`Recorded::settled`].
    pub settled: Option<Instant>,
    /// See [`Recorded::upstream_status`].
    pub upstream_status: Option<u16>,
    /// See [`Recorded::resource_version`].
    pub resource_version: Option<u64>,
    /// Time limit of the server: the parameter `timeout`, in milliseconds.
    pub timeout: Option<Duration>,
}

impl NodePatch {
    /// Reads it from a recorded request; `None` when that is something else.
    pub fn read(recorded: &Recorded) -> Option<Self> {
        let request = &recorded.request;
        let node = request.path.strip_prefix("/api/v1/nodes/")?;
        if request.method != Method::PATCH || node.contains('/') {
            return None;
        }
        let body = request.json();
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let pod_cidrs: Vec<_> = match body["spec"]["podCIDRs"].as_array() {
            Some(cidrs) => cidrs.iter().filter_map(text).collect(),
            None => text(&body["spec"]["podCIDR"]).into_iter().collect(),
        };
        if pod_cidrs.is_empty() {
            return None;
        }
        Some(Self {
            node: node.to_owned(),
            uid: text(&body["metadata"]["uid"]).unwrap_or_default(),
            pod_cidrs,
            arrived: recorded.arrived,
            settled: recorded.settled,
            upstream_status: recorded.upstream_status,
            resource_version: recorded.resource_version,
            timeout: request.parameter("timeout").and_then(milliseconds),
        })
    }
}

fn milliseconds(text: &str) -> Option<Duration> {
    Some(Duration::from_millis(text.strip_suffix("ms")?.parse().ok()?))
}
