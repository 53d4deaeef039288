//! [`play`]: a store with six changes, two API servers in front of it, and a real informer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::super::{Fixture, start};
use crate::testing::{Call, Wire, node_with_uid};
use crate::{Delta, Session};

/// A change of an object, by its name and its UID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Added(&'static str, &'static str),
    Modified(&'static str, &'static str),
    Deleted(&'static str, &'static str),
}

use Change::{Added, Deleted, Modified};

/// The history of the store: the change of each version from 1 on.
const HISTORY: [Change; 8] = [
    Added("a", "a1"),
    Added("b", "b1"),
    Modified("b", "b1"),
    Deleted("b", "b1"),
    Added("b", "b2"),
    Added("c", "c1"),
    Modified("a", "a1"),
    Deleted("c", "c1"),
];
/// The version of the first list. The changes after it are watched.
pub(super) const LISTED: u64 = 2;
pub(super) const NEWEST: u64 = 8;
/// Versions that the second API server is behind.
const LAG: u64 = 2;
/// Time between two changes.
const APART: Duration = Duration::from_secs(1);
/// When the cache is right again after a failure that the informer notices.
const NOTICED: Duration = Duration::from_secs(60);
/// When it has compared the number of objects, and all of them.
const COUNTED: Duration = Duration::from_secs(610);
const COMPARED: Duration = Duration::from_secs(3610);
/// Old lists in a row that prove another history.
const AGREEING: u32 = 3;

fn change(version: u64) -> Change {
    HISTORY[usize::try_from(version).unwrap() - 1]
}

/// How the watch breaks its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Breach {
    Skipped,
    Doubled,
    /// The next event comes first.
    Reordered,
    /// A bookmark comes before the event of its version.
    MarkAhead,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum End {
    Closed,
    Broken,
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Choice {
    Breach(Breach),
    /// The watch ends, and the API server of this number serves from then on.
    End(End, usize),
}

/// What happens at the change of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Action {
    pub(super) version: u64,
    pub(super) choice: Choice,
}

/// A watch, and the version up to which its events were sent.
struct Watch {
    wire: Wire,
    sent: u64,
    ends: Instant,
}

/// What a subscriber was given: the version of each UID, and what was wrong.
#[derive(Default)]
struct Given {
    versions: BTreeMap<String, u64>,
    deleted: Vec<String>,
    wrong: Option<String>,
}

struct World {
    run: Fixture,
    /// Versions of the API servers.
    servers: [u64; 2],
    /// The one that answers.
    chosen: usize,
    watch: Option<Watch>,
    /// Event that the next one overtakes.
    held: Option<u64>,
    old_lists: u32,
    /// As many old lists in a row as prove another history were served.
    was_restored: bool,
}

/// Plays a schedule, with the API server as it should be after the last change.
///
/// # Errors
/// The claim that is violated.
pub(super) async fn play(schedule: &[Action]) -> Result<(), String> {
    let run = start();
    let (given, newest) =
        (Arc::new(Mutex::new(Given::default())), Arc::new(AtomicU64::new(LISTED)));
    let session = Session::new();
    let (noted, at, same) = (Arc::clone(&given), Arc::clone(&newest), session.clone());
    let _user = run.informer.in_session(session.clone()).subscribe(move |delta| {
        if !same.has_ended() {
            noted.lock().unwrap().note(&delta, at.load(Ordering::Relaxed));
        }
    });
    let mut world = World {
        run,
        servers: [LISTED; 2],
        chosen: 0,
        watch: None,
        held: None,
        old_lists: 0,
        was_restored: false,
    };
    world.serve(APART).await;
    for version in LISTED + 1..=NEWEST {
        newest.store(version, Ordering::Relaxed);
        world.servers = [version, LISTED.max(version - LAG)];
        let chosen = || schedule.iter().filter(move |it| it.version == version);
        let breach = chosen().find_map(|it| match it.choice {
            Choice::Breach(breach) => Some(breach),
            Choice::End(..) => None,
        });
        world.deliver(breach).await;
        if let Some(Choice::End(end, server)) = chosen().map(|it| it.choice).max() {
            world.end(end);
            world.chosen = server;
        }
        world.serve(APART).await;
    }
    (world.servers, world.chosen) = ([NEWEST; 2], 0);
    world.deliver(None).await;
    world.serve(limit(schedule)).await;
    // A list that shows what the watch had skipped looks like another history.
    let is_excused = |it: &Action| match it.choice {
        Choice::Breach(breach) => breach != Breach::Doubled,
        Choice::End(..) => false,
    };
    if session.has_ended() && !world.was_restored && !schedule.iter().any(is_excused) {
        return Err("a session ends, and no lists agree on another history".to_owned());
    }
    if let Some(wrong) = given.lock().unwrap().wrong.take() {
        return Err(wrong);
    }
    let (store, truth) = (world.run.store(), at_version(NEWEST));
    let truth: Vec<String> = truth.values().map(|(name, _, at)| format!("{name}@{at}")).collect();
    if store == truth {
        Ok(())
    } else {
        Err(format!("the cache shows {store:?}, and there are {truth:?}"))
    }
}

/// When the cache has to be right again.
fn limit(schedule: &[Action]) -> Duration {
    let lost = |action: &&Action| match action.choice {
        Choice::Breach(Breach::Skipped | Breach::MarkAhead) => true,
        Choice::Breach(_) | Choice::End(..) => false,
    };
    let mut lost = schedule.iter().filter(lost).map(|action| change(action.version));
    match (lost.next(), lost.next()) {
        (None, _) => NOTICED,
        (Some(Added(..) | Deleted(..)), None) => COUNTED,
        _ => COMPARED,
    }
}

/// Name, UID and version of each object at a version, by name.
fn at_version(version: u64) -> BTreeMap<&'static str, (&'static str, &'static str, u64)> {
    let mut objects = BTreeMap::new();
    for version in 1..=version {
        match change(version) {
            Added(name, uid) | Modified(name, uid) => {
                objects.insert(name, (name, uid, version));
            }
            Deleted(name, _) => {
                objects.remove(name);
            }
        }
    }
    objects
}

fn objects(version: u64) -> Vec<Value> {
    at_version(version).values().map(|(name, uid, at)| node_with_uid(name, uid, *at)).collect()
}

impl Given {
    /// C7 (a): no version falls, and what is told as deleted is deleted and stays so.
    fn note(&mut self, delta: &Delta<kube_api::Node>, newest: u64) {
        match delta {
            Delta::Added(node) | Delta::Updated { new: node, .. } => {
                let (uid, version) = (node.uid.to_string(), node.resource_version);
                let before = self.versions.insert(uid.clone(), version).unwrap_or(0);
                if version <= before || self.deleted.contains(&uid) {
                    self.wrong = Some(format!("{uid} has version {version} after {before}"));
                }
            }
            Delta::Deleted(node) => {
                let uid = node.uid.to_string();
                if at_version(newest).values().any(|(_, there, _)| **there == *uid) {
                    self.wrong = Some(format!("{uid} is told as deleted at version {newest}"));
                }
                self.deleted.push(uid);
            }
            Delta::ListStarts | Delta::ListEnds => {}
        }
    }
}

impl World {
    /// Answers requests for so long.
    async fn serve(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let ends = self.watch.as_ref().map_or(until, |watch| watch.ends);
            tokio::select! {
                call = self.run.server.any_call() => {
                    self.answer(call);
                    self.deliver(None).await;
                }
                () = sleep_until(ends.min(until)) => {
                    if ends > until || self.watch.is_none() {
                        return;
                    }
                    self.end(End::Closed);
                }
            }
        }
    }

    fn answer(&mut self, call: Call) {
        let version = self.servers[self.chosen];
        let asked: Option<u64> = call.get("resourceVersion").and_then(|it| it.parse().ok());
        let limit = call.get("limit").map(str::to_owned);
        let timeout = call.get("timeoutSeconds").and_then(|it| it.parse().ok()).unwrap_or(600);
        let ends = Instant::now() + Duration::from_secs(timeout);
        if call.get("sendInitialEvents").is_some() {
            self.note_list(version);
            let wire = call.stream();
            for object in objects(version) {
                wire.event("ADDED", &object);
            }
            wire.end_of_list(version);
            self.watch = Some(Watch { wire, sent: version, ends });
        } else if call.get("watch").is_some() {
            self.watch = Some(Watch { wire: call.stream(), sent: asked.unwrap_or(version), ends });
        } else if let Some(exact) = asked.filter(|_| call.get("resourceVersionMatch").is_some()) {
            if exact > version {
                return call.refuse(504, "Timeout");
            }
            let all = objects(exact);
            let shown = if limit.as_deref() == Some("1") { all.len().min(1) } else { all.len() };
            let (next, left) =
                if shown < all.len() { ("more", all.len() - shown) } else { ("", 0) };
            let metadata = json!({"resourceVersion": exact.to_string(), "continue": next,
                "remainingItemCount": left});
            call.json(200, &json!({"metadata": metadata, "items": &all[..shown]}));
        } else {
            if limit.as_deref() != Some("1") {
                self.note_list(version);
            }
            call.page(version, "", &objects(version));
        }
    }

    /// A list that shows less than the informer knows.
    fn note_list(&mut self, version: u64) {
        let is_old = version < self.run.informer.cache.shared.version();
        self.old_lists = if is_old { self.old_lists + 1 } else { 0 };
        self.was_restored |= self.old_lists >= AGREEING;
    }

    /// Sends the events that the API server has, and the watch lacks.
    async fn deliver(&mut self, breach: Option<Breach>) {
        let version = self.servers[self.chosen];
        while let Some(watch) = self.watch.as_mut().filter(|watch| watch.sent < version) {
            watch.sent += 1;
            let (next, is_last) = (watch.sent, watch.sent == version);
            let breach = breach.filter(|_| is_last);
            if breach == Some(Breach::MarkAhead) && !watch.wire.is_abandoned() {
                watch.wire.bookmark(next);
                sleep(Duration::from_millis(1)).await;
            }
            if breach == Some(Breach::Reordered) {
                if let Some(held) = self.held.replace(next) {
                    self.send(held).await;
                }
                continue;
            }
            if breach != Some(Breach::Skipped) {
                self.send(next).await;
            }
            if breach == Some(Breach::Doubled) {
                self.send(next).await;
            }
            if let Some(held) = self.held.take() {
                self.send(held).await;
            }
        }
    }

    async fn send(&mut self, version: u64) {
        let (kind, name, uid) = match change(version) {
            Added(name, uid) => ("ADDED", name, uid),
            Modified(name, uid) => ("MODIFIED", name, uid),
            Deleted(name, uid) => ("DELETED", name, uid),
        };
        if let Some(watch) = self.watch.take_if(|watch| watch.wire.is_abandoned()) {
            drop(watch);
        }
        if let Some(watch) = &self.watch {
            watch.wire.event(kind, &node_with_uid(name, uid, version));
        }
        sleep(Duration::from_millis(1)).await;
    }

    fn end(&mut self, end: End) {
        self.held = None;
        let Some(Watch { wire, .. }) = self.watch.take().filter(|it| !it.wire.is_abandoned())
        else {
            return;
        };
        match end {
            End::Closed => drop(wire),
            End::Broken => wire.break_off(),
            End::Expired => wire.error(410, "Expired"),
        }
    }
}
