//! [`Store`]: the Nodes as the API server has them, and the PATCHes that it can still apply.

use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use http::StatusCode;
use kube_api::Node;
use serde_json::json;

use crate::ledger::Uid;
use crate::patch::{self, Class};

/// How long the server may apply a PATCH after it was sent.
pub(super) const PATCH_LIMIT: Duration = Duration::from_secs(5);
/// Reads of a Node that a store answers while a PATCH is on its way to its disk: one that comes with the
/// PATCH, and one that is answered by what was there before.
const READS_BEFORE_COMMIT: u8 = 2;

/// One object: a name that was used before belongs to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) name: usize,
    pub(super) life: u8,
}

impl Id {
    pub(super) fn uid(self) -> Uid {
        format!("{}{}", NAMES[self.name], self.life).into()
    }

    pub(super) fn name(self) -> Arc<str> {
        NAMES[self.name].into()
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// The pod CIDRs of a Node: one of each family.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Block([Option<IpNet>; 2]);

impl Block {
    /// None of no CIDR.
    pub(super) fn of(cidrs: &[IpNet]) -> Option<Self> {
        cidrs.first().map(|first| Self([Some(*first), cidrs.get(1).copied()]))
    }

    pub(super) fn cidrs(self) -> Vec<IpNet> {
        self.0.into_iter().flatten().collect()
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        let pairs = self
            .0
            .iter()
            .flatten()
            .flat_map(|it| other.0.iter().flatten().map(move |theirs| (it, theirs)));
        pairs.into_iter().any(|(ours, theirs)| ours == theirs)
    }
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cidrs: Vec<String> = self.cidrs().iter().map(ToString::to_string).collect();
        f.write_str(&cidrs.join(", "))
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// A Node as a read or an event shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    pub(super) id: Id,
    pub(super) block: Option<Block>,
    pub(super) deleting: bool,
}

impl Shown {
    pub(super) fn node(self) -> Node {
        Node {
            name: self.id.name(),
            uid: self.id.uid(),
            resource_version: 1,
            deleting: self.deleting,
            is_selected: true,
            pod_cidrs: self
                .block
                .iter()
                .flat_map(|it| it.cidrs())
                .map(|it| cidr::canonical(&it))
                .collect(),
        }
    }
}

/// A change, as the watch tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    Seen(Shown),
    Gone(Id),
}

/// Where a PATCH is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// On its way to the server.
    Wire,
    /// Accepted in time, and not written yet; with the reads since the end of its time.
    Accepted(u8),
    /// Written, or refused with this code.
    Answered(u16),
}

/// A PATCH.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) block: Block,
    /// When the server can no longer accept it, from now on.
    pub(super) left: Duration,
    pub(super) place: Place,
    /// Whether the process that sent it waits for the answer.
    pub(super) is_awaited: bool,
}

impl Request {
    /// Whether the server may write it.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.place, Place::Answered(_))
    }

    /// What the answer says, as the product reads it.
    pub(super) fn class(&self, code: u16) -> Class {
        let uid = self.id.uid();
        let taken = "node updates may not change podCIDR except from \"\" to valid";
        let body = match code {
            200 => json!({"metadata": {"uid": &*uid}}),
            409 => json!({"message": "the UID in the precondition differs"}),
            422 => json!({"details": {"causes": [{"field": "spec.podCIDRs", "message": taken}]}}),
            _ => json!({}),
        };
        let code = StatusCode::from_u16(code).unwrap();
        patch::classify(code, None, body.to_string().as_bytes(), &uid)
    }
}

/// Everything that outlives a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) nodes: [Option<Shown>; 3],
    /// The Nodes before the last change.
    pub(super) past: Option<[Option<Shown>; 3]>,
    pub(super) requests: Vec<Request>,
    /// The next life of each name.
    lives: [u8; 3],
    /// Which ClusterCIDRs drain.
    pub(super) draining: [bool; 2],
    /// Nodes whose blocks another allocator set.
    pub(super) foreign: Vec<Id>,
}

impl Store {
    pub(super) fn join(&mut self, name: usize) -> Event {
        let id = Id { name, life: self.lives[name] };
        self.lives[name] += 1;
        self.set(Shown { id, block: None, deleting: false })
    }

    pub(super) fn set(&mut self, shown: Shown) -> Event {
        self.past = Some(self.nodes);
        self.nodes[shown.id.name] = Some(shown);
        Event::Seen(shown)
    }

    pub(super) fn remove(&mut self, name: usize) -> Option<Event> {
        self.past = Some(self.nodes);
        self.nodes[name].take().map(|shown| Event::Gone(shown.id))
    }

    /// The server takes a PATCH before its time is over, or is done with it: what changed.
    pub(super) fn apply(&mut self, request: usize) -> Option<Event> {
        let Request { id, block, .. } = self.requests[request];
        let (code, event) = match self.nodes[id.name] {
            None => (404, None),
            Some(shown) if shown.id != id => (409, None),
            Some(Shown { block: Some(there), .. }) if there != block => (422, None),
            Some(Shown { block: Some(_), .. }) => (200, None),
            Some(shown) => (200, Some(self.set(Shown { block: Some(block), ..shown }))),
        };
        self.requests[request].place = Place::Answered(code);
        event
    }

    /// What a consistent read of a name shows. A PATCH that was accepted gets nearer to the disk by it.
    pub(super) fn read(&mut self, name: usize) -> Option<Shown> {
        for request in self.requests.iter_mut().filter(|it| it.id.name == name) {
            if let Place::Accepted(reads) = &mut request.place
                && request.left.is_zero()
            {
                *reads += 1;
            }
        }
        self.nodes[name]
    }

    /// Whether the store answers another read of a name before it writes what it has accepted.
    pub(super) fn can_read(&self, name: usize) -> bool {
        let mut of_name = self.requests.iter().filter(|it| it.id.name == name);
        of_name
            .all(|it| !matches!(it.place, Place::Accepted(reads) if reads >= READS_BEFORE_COMMIT))
    }

    /// The last change is undone, and nothing is written any more that was under way.
    pub(super) fn restore(&mut self) {
        self.nodes = self.past.take().unwrap_or(self.nodes);
        self.requests.clear();
    }

    /// Forgets what nothing follows from.
    pub(super) fn forget(&mut self) {
        self.requests.retain(|it| it.is_open() || it.is_awaited);
    }

    /// What each Node has or may get from a PATCH under way.
    pub(super) fn held(&self) -> Vec<(Id, Block)> {
        let live: Vec<&Shown> = self.nodes.iter().flatten().collect();
        let mut held: Vec<(Id, Block)> =
            live.iter().filter_map(|it| Some((it.id, it.block?))).collect();
        let open = self.requests.iter().filter(|it| it.is_open());
        held.extend(open.filter_map(|request| {
            // The block of a Node that has one does not change.
            let can_get = live.iter().any(|it| it.id == request.id && it.block.is_none());
            can_get.then_some((request.id, request.block))
        }));
        held
    }
}
