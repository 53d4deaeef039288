//! What a fleet keeps: of each Node the time at which it joined, its version and its CIDR.

use std::collections::HashSet;
use std::time::Instant;

use bytes::Bytes;

use super::manifest::Facts;
use super::wire::Template;

#[derive(Default)]
pub(super) struct State {
    pub(super) nodes: Vec<Stored>,
    /// The Node of each change, its creation or its PATCH. The version of a change is its place
    /// plus one.
    pub(super) log: Vec<usize>,
    pub(super) cidrs: HashSet<Box<str>>,
}

pub(super) struct Stored {
    pub(super) joined: Instant,
    pub(super) created: u64,
    pub(super) version: u64,
    /// The CIDR, and when it was assigned.
    pub(super) cidr: Option<(Box<str>, Instant)>,
}

impl State {
    /// Gives a Node its CIDR; false when another Node has it.
    pub(super) fn assign(&mut self, place: usize, cidr: &str) -> bool {
        self.touch(place);
        self.nodes[place].cidr = Some((cidr.into(), Instant::now()));
        self.cidrs.insert(cidr.into())
    }

    /// Changes a Node in something that is not kept.
    pub(super) fn touch(&mut self, place: usize) {
        self.log.push(place);
        self.nodes[place].version = self.log.len() as u64;
    }

    /// Reads a Node as it is now.
    pub(super) fn with<R>(&self, place: usize, read: impl FnOnce(&Facts<'_>) -> R) -> R {
        let (name, uid) = (name_of(place), uid_of(place));
        read(&self.nodes[place].facts(&name, &uid))
    }

    /// The event of a change.
    pub(super) fn event(&self, change: usize, template: &Template) -> Bytes {
        let (place, version) = (self.log[change], change as u64 + 1);
        self.with(place, |facts| {
            if self.nodes[place].created == version {
                template.node(&Facts { version, cidr: None, ..*facts }, Some("ADDED"))
            } else {
                template.node(&Facts { version, ..*facts }, Some("MODIFIED"))
            }
        })
    }
}

impl Stored {
    pub(super) fn facts<'a>(&'a self, name: &'a str, uid: &'a str) -> Facts<'a> {
        let cidr = self.cidr.as_ref().map(|(cidr, _)| &**cidr);
        Facts { name, uid, version: self.version, cidr }
    }
}

pub(super) fn name_of(place: usize) -> String {
    format!("worker-{place:07}")
}

pub(super) fn uid_of(place: usize) -> String {
    format!("7f0c1d5e-1a7b-4b0e-9a49-{place:012x}")
}

pub(super) fn place_of(name: &str) -> Option<usize> {
    name.strip_prefix("worker-")?.parse().ok()
}
