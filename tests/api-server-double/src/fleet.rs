//! [`Fleet`]: an API server with any number of Nodes, which are written when they are asked for and
//! never held. It serves lists, streamed and in pages, watches, reads, and the PATCHes that assign
//! pod CIDRs or annotate a Node; and it says when each Node got its CIDR. It has one Lease.

mod lease;
mod manifest;
mod protobuf;
mod state;
mod wire;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::Method;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

pub use manifest::{NodeSize, manifest};

use crate::asked::Asked;
use crate::reply::Reply;
use lease::Held;
use state::{State, Stored, name_of, place_of, uid_of};
use wire::{Encoding, Template};

/// What of the API a [`Fleet`] has, and how many Nodes at the beginning.
#[derive(Clone, Copy, Debug)]
pub struct FleetOptions {
    /// Nodes that exist at the beginning.
    pub nodes: usize,
    /// Size of each Node.
    pub size: NodeSize,
    /// Lists may be streamed.
    pub streams_lists: bool,
}

/// Counts of Nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetCounts {
    /// Changes so far; versions count them.
    pub changes: usize,
    /// Nodes that have a pod CIDR.
    pub assigned: usize,
    /// PATCHes that gave a Node the CIDR of another Node.
    pub duplicates: usize,
}

/// The server. Clones are the same one.
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    lease: Mutex<Held>,
    counts: watch::Sender<FleetCounts>,
    json: Template,
    protobuf: Template,
    streams_lists: bool,
}

/// Time at which a Node joined, and time at which it got its CIDR.
pub type NodeTimes = (Instant, Option<Instant>);

impl Fleet {
    /// A server with these Nodes.
    pub fn new(options: FleetOptions) -> Self {
        let fleet = Self(Arc::new(Inner {
            state: Mutex::default(),
            lease: Mutex::default(),
            counts: watch::Sender::default(),
            json: Template::new(Encoding::Json, options.size),
            protobuf: Template::new(Encoding::Protobuf, options.size),
            streams_lists: options.streams_lists,
        }));
        fleet.join(options.nodes);
        fleet
    }

    /// The first Nodes have these CIDRs from the beginning.
    pub fn assign_first(&self, nodes: usize, cidr: impl Fn(usize) -> String) {
        let mut state = self.0.state.lock();
        for place in 0..nodes {
            let cidr = cidr(place).into_boxed_str();
            state.cidrs.insert(cidr.clone());
            state.nodes[place].cidr = Some((cidr, Instant::now()));
        }
    }

    /// Another process holds the Lease of this name, for an hour.
    pub fn hold_lease(&self, name: &str) {
        self.0.lease.lock().hold(name);
    }

    /// The other process gives the Lease back.
    pub fn give_lease_back(&self) {
        self.0.lease.lock().give_back();
    }

    /// When a client took the Lease.
    pub fn lease_won(&self) -> Option<Instant> {
        self.0.lease.lock().won()
    }

    /// So many Nodes join.
    pub fn join(&self, nodes: usize) {
        let mut state = self.0.state.lock();
        for _ in 0..nodes {
            let place = state.nodes.len();
            state.log.push(place);
            let version = state.log.len() as u64;
            let joined = Instant::now();
            state.nodes.push(Stored { joined, created: version, version, cidr: None });
        }
        let changes = state.log.len();
        drop(state);
        self.0.counts.send_modify(|counts| counts.changes = counts.changes.max(changes));
    }

    /// Counts, whenever they change.
    pub fn counts(&self) -> watch::Receiver<FleetCounts> {
        self.0.counts.subscribe()
    }

    /// The times of each Node, in the order of joining.
    pub fn times(&self) -> Vec<NodeTimes> {
        let state = self.0.state.lock();
        let at = |node: &Stored| node.cidr.as_ref().map(|(_, at)| *at);
        state.nodes.iter().map(|node| (node.joined, at(node))).collect()
    }

    /// Answers a request.
    pub fn answer(&self, asked: &Asked) -> Reply {
        if let Some(reply) = self.0.lease.lock().answer(asked) {
            return reply;
        }
        let name = asked.path().strip_prefix("/api/v1/nodes");
        let place = name.and_then(|name| place_of(name.strip_prefix('/')?));
        match (asked.method(), name, place) {
            (&Method::GET, Some(""), _) => self.collection(asked),
            (&Method::GET, _, Some(place)) => self.read(asked, place),
            (&Method::PATCH, _, Some(place)) => self.patch(asked, place),
            (&Method::POST, ..) => other_post(asked),
            _ => Reply::failure(404, "NotFound"),
        }
    }

    fn collection(&self, asked: &Asked) -> Reply {
        let query: Vec<_> = form_urlencoded::parse(asked.query().as_bytes()).collect();
        let get = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, it)| &**it);
        let encoding = Encoding::wanted_by(asked.header("accept"));
        if get("watch").is_none() {
            let limit = get("limit").and_then(|it| it.parse().ok()).unwrap_or(usize::MAX);
            let from = get("continue").and_then(|it| it.parse().ok()).unwrap_or_default();
            return self.page(encoding, limit, from);
        }
        let events = match get("resourceVersion").and_then(|it| it.parse().ok()) {
            _ if get("sendInitialEvents").is_none() => None,
            Some(0) | None if self.0.streams_lists => Some(self.streamed_list(encoding)),
            _ => return Reply::failure(400, "BadRequest"),
        };
        let version = get("resourceVersion").and_then(|it| it.parse().ok()).unwrap_or_default();
        let events = events.unwrap_or_else(|| self.changes_after(encoding, version));
        Reply::Body(encoding.content_type(), events.map(Ok).boxed())
    }

    /// All Nodes, the end of the list, and every change after it.
    fn streamed_list(&self, encoding: Encoding) -> BoxStream<'static, Bytes> {
        let (nodes, changes) = {
            let state = self.0.state.lock();
            (state.nodes.len(), state.log.len())
        };
        let fleet = self.clone();
        let listed = move |place| {
            let state = fleet.0.state.lock();
            state.with(place, |facts| fleet.0.template(encoding).node(facts, Some("ADDED")))
        };
        let end = self.0.template(encoding).end_of_list(changes as u64);
        stream::iter((0..nodes).map(listed))
            .chain(stream::iter([end]))
            .chain(self.changes_after(encoding, changes))
            .boxed()
    }

    /// Each change after a version, as soon as it happens.
    fn changes_after(&self, encoding: Encoding, version: usize) -> BoxStream<'static, Bytes> {
        let start = (self.clone(), self.counts(), version);
        stream::unfold(start, move |(fleet, mut counts, mut seen)| async move {
            counts.wait_for(|counts| counts.changes > seen).await.ok()?;
            let mut events = Vec::new();
            {
                let state = fleet.0.state.lock();
                let to = state.log.len().min(seen + EVENTS_AT_ONCE);
                for change in seen..to {
                    events.push(state.event(change, fleet.0.template(encoding)));
                }
                seen = to;
            }
            Some((Bytes::from(events.concat()), (fleet, counts, seen)))
        })
        .boxed()
    }

    fn page(&self, encoding: Encoding, limit: usize, from: usize) -> Reply {
        let state = self.0.state.lock();
        let to = from.saturating_add(limit).min(state.nodes.len());
        let next = if to < state.nodes.len() { to.to_string() } else { String::new() };
        let names: Vec<_> = (from..to).map(|place| (name_of(place), uid_of(place))).collect();
        let facts: Vec<_> = names
            .iter()
            .zip(&state.nodes[from..to])
            .map(|((name, uid), node)| node.facts(name, uid))
            .collect();
        let page = self.0.template(encoding).page(&facts, state.log.len() as u64, &next);
        Reply::Body(encoding.content_type(), stream::iter([Ok(page)]).boxed())
    }

    fn read(&self, asked: &Asked, place: usize) -> Reply {
        let state = self.0.state.lock();
        if place >= state.nodes.len() {
            return Reply::failure(404, "NotFound");
        }
        let encoding = Encoding::wanted_by(asked.header("accept"));
        let node = state.with(place, |facts| self.0.template(encoding).node(facts, None));
        Reply::Body(encoding.content_type(), stream::iter([Ok(node)]).boxed())
    }

    fn patch(&self, asked: &Asked, place: usize) -> Reply {
        let body = asked.json();
        let mut state = self.0.state.lock();
        let Some(node) = state.nodes.get(place) else { return Reply::failure(404, "NotFound") };
        if body["metadata"]["uid"] != uid_of(place) {
            return Reply::failure(409, "Conflict");
        }
        match (body["spec"]["podCIDR"].as_str(), &node.cidr) {
            (None, _) if body["metadata"]["annotations"].is_object() => {
                state.touch(place);
                let changes = state.log.len();
                self.0.counts.send_modify(|counts| counts.changes = counts.changes.max(changes));
            }
            (None, _) => return Reply::failure(400, "BadRequest"),
            (Some(cidr), None) => {
                let is_new = state.assign(place, cidr);
                let changes = state.log.len();
                self.0.counts.send_modify(|counts| {
                    counts.changes = counts.changes.max(changes);
                    counts.assigned += 1;
                    counts.duplicates += usize::from(!is_new);
                });
            }
            (Some(cidr), Some((known, _))) if **known == *cidr => {}
            (Some(_), Some(_)) => return Reply::failure(422, "Invalid"),
        }
        let answer = state.with(place, |facts| self.0.json.metadata_only(facts));
        Reply::Body(Encoding::Json.content_type(), stream::iter([Ok(answer)]).boxed())
    }
}

/// Changes in one piece of the body of a watch.
const EVENTS_AT_ONCE: usize = 16;

impl Inner {
    fn template(&self, encoding: Encoding) -> &Template {
        match encoding {
            Encoding::Json => &self.json,
            Encoding::Protobuf => &self.protobuf,
        }
    }
}

/// Reviews are granted; anything else is taken.
fn other_post(asked: &Asked) -> Reply {
    let mut object = asked.json();
    if object["kind"].as_str().is_some_and(|kind| kind.ends_with("Review")) {
        object["status"] = json!({"allowed": true});
    }
    Reply::Json(201, object)
}

#[cfg(test)]
mod tests;
