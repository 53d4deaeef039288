//! What the proxies saw, put in the order of the store: resource versions of Leases and objects are
//! one sequence, so for every write it is certain who led when it was carried out.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use tests::fault_proxy::Recorded;
use tests::{FaultProxy, Match};

use crate::replicas::writes;

/// A write that made a version.
struct Made<'a> {
    version: u64,
    /// Process that sent the write.
    sender: usize,
    recorded: &'a Recorded,
}

/// Everything that the processes wrote, in order.
pub(crate) struct Audit {
    records: Vec<Vec<Recorded>>,
}

impl Audit {
    pub(crate) fn of(proxies: &[&FaultProxy]) -> Self {
        Self { records: proxies.iter().map(|proxy| proxy.requests()).collect() }
    }

    /// Asserts that each write came from the holder of the lease at that time; returns the number of writes.
    pub(crate) fn assert_written_by_leaders(&self) -> usize {
        let leases = Match::any().path_prefix("/apis/coordination.k8s.io/");
        let leases = self.made(&leases.and(|request| !request.method.is_safe()));
        let objects = self.made(&writes());
        for write in objects.values() {
            let (_, lease) =
                leases.range(..write.version).next_back().expect("a leader before the write");
            let holder = &lease.recorded.request.json()["spec"]["holderIdentity"];
            assert!(
                lease.sender == write.sender && holder.as_str().is_some_and(|it| !it.is_empty()),
                "version {}: {} {} came from process {}, while the lease was that of process {} \
                 ({holder})",
                write.version,
                write.recorded.request.method,
                write.recorded.request.path,
                write.sender,
                lease.sender,
            );
        }
        objects.len()
    }

    /// Number of status writes of each object of this collection, by its name.
    pub(crate) fn status_writes(&self, collection: &str) -> BTreeMap<String, u64> {
        let statuses = Match::method(Method::PATCH).path_prefix(collection);
        let mut counts = BTreeMap::new();
        for write in self.made(&statuses).into_values() {
            let path = &write.recorded.request.path;
            let name = path.strip_prefix(collection).and_then(|rest| rest.strip_prefix('/'));
            if let Some(name) = name.and_then(|name| name.strip_suffix("/status")) {
                *counts.entry(name.to_owned()).or_default() += 1;
            }
        }
        counts
    }

    /// The writes that made a version, by it. One that changed nothing is answered with the version
    /// that another one made before.
    fn made(&self, wanted: &Match) -> BTreeMap<u64, Made<'_>> {
        let mut made: BTreeMap<u64, Made<'_>> = BTreeMap::new();
        for (sender, records) in self.records.iter().enumerate() {
            for recorded in records.iter().filter(|recorded| wanted.fits(&recorded.request)) {
                let (Some(200 | 201), Some(version)) =
                    (recorded.upstream_status, recorded.resource_version)
                else {
                    continue;
                };
                let one = Made { version, sender, recorded };
                match made.get(&version) {
                    Some(other) if other.recorded.arrived <= recorded.arrived => {}
                    _ => drop(made.insert(version, one)),
                }
            }
        }
        made
    }

    /// No write of an object was without its UID, but those that make one.
    pub(crate) fn assert_guarded(&self) {
        let naked: BTreeSet<_> = self
            .records
            .iter()
            .flatten()
            .filter(|recorded| writes().fits(&recorded.request))
            .filter(|recorded| recorded.request.method != Method::POST)
            .filter(|recorded| !recorded.request.json()["metadata"]["uid"].is_string())
            .map(|recorded| recorded.request.path.clone())
            .collect();
        assert!(naked.is_empty(), "written without a UID: {naked:?}");
    }
}
