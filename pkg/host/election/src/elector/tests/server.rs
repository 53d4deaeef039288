//! A Lease server in memory, with faults. What a caller gives up still happens on the server, as
//! it does on a real one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use crate::record::LeaseRecord;
use crate::store::{LeaseStore, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Create,
    Replace,
}

/// The fate of one call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fault {
    /// Until the server acts.
    pub(super) before: Duration,
    /// From there until the answer arrives.
    pub(super) after: Duration,
    /// The server never sees the call.
    pub(super) request_lost: bool,
    /// The caller never sees the answer: the connection breaks instead.
    pub(super) answer_lost: bool,
}

type Plan = Box<dyn FnMut(Verb) -> Fault + Send>;

#[derive(Default)]
struct State {
    lease: Option<Lease>,
    version: u64,
    frozen_until: Option<Instant>,
    calls: Vec<(Instant, Verb)>,
}

/// The one server of a test.
#[derive(Clone, Default)]
pub(super) struct Server(Arc<Mutex<State>>);

impl Server {
    pub(super) fn holding(record: LeaseRecord) -> Self {
        let server = Self::default();
        server.edit(|lease| *lease = record.into_lease(lease.clone()));
        server
    }

    /// A store whose calls fail as `plan` says.
    pub(super) fn store(&self, plan: impl FnMut(Verb) -> Fault + Send + 'static) -> Store {
        Store { server: self.clone(), plan: Mutex::new(Box::new(plan)) }
    }

    pub(super) fn record(&self) -> LeaseRecord {
        self.lease().as_ref().map(LeaseRecord::of).unwrap_or_default()
    }

    pub(super) fn lease(&self) -> Option<Lease> {
        self.0.lock().unwrap().lease.clone()
    }

    /// Changes the Lease behind everybody's back.
    pub(super) fn edit(&self, change: impl FnOnce(&mut Lease)) {
        let mut state = self.0.lock().unwrap();
        let mut lease = state.lease.take().unwrap_or_default();
        change(&mut lease);
        state.stamp(lease);
    }

    pub(super) fn delete(&self) {
        self.0.lock().unwrap().lease = None;
    }

    /// Brings the Lease back to this version.
    pub(super) fn restore(&self, version: u64) {
        let mut state = self.0.lock().unwrap();
        state.version = version - 1;
        let lease = state.lease.take().unwrap();
        state.stamp(lease);
    }

    /// Holds all calls for `d`.
    pub(super) fn freeze(&self, d: Duration) {
        self.0.lock().unwrap().frozen_until = Some(Instant::now() + d);
    }

    pub(super) fn calls(&self) -> Vec<(Instant, Verb)> {
        self.0.lock().unwrap().calls.clone()
    }

    pub(super) fn forget_calls(&self) {
        self.0.lock().unwrap().calls.clear();
    }

    pub(super) fn act(
        &self,
        verb: Verb,
        wanted: Option<Lease>,
    ) -> Result<Option<Lease>, StoreError> {
        let mut state = self.0.lock().unwrap();
        let current = state.lease.as_ref().and_then(|l| l.metadata.resource_version.clone());
        let Some(lease) = wanted else { return Ok(state.lease.clone()) };
        if verb == Verb::Create && state.lease.is_some() {
            return Err(StoreError::Conflict);
        }
        if verb == Verb::Replace && state.lease.is_none() {
            return Err(StoreError::Failed("leases not found: NotFound".into()));
        }
        if verb == Verb::Replace && lease.metadata.resource_version != current {
            return Err(StoreError::Conflict);
        }
        Ok(Some(state.stamp(lease)))
    }
}

impl State {
    fn stamp(&mut self, mut lease: Lease) -> Lease {
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        lease.metadata.uid.get_or_insert_with(|| format!("uid-{}", self.version));
        self.lease = Some(lease.clone());
        lease
    }
}

/// One candidate's way to the server.
pub(super) struct Store {
    server: Server,
    plan: Mutex<Plan>,
}

impl Store {
    async fn call(&self, verb: Verb, lease: Option<Lease>) -> Result<Option<Lease>, StoreError> {
        let fault = (self.plan.lock().unwrap())(verb);
        self.server.0.lock().unwrap().calls.push((Instant::now(), verb));
        let (reply, answer) = oneshot::channel();
        let server = self.server.clone();
        tokio::spawn(async move {
            sleep(fault.before).await;
            let thaw = server.0.lock().unwrap().frozen_until;
            if let Some(thaw) = thaw {
                sleep_until(thaw).await;
            }
            let result = if fault.request_lost {
                Err(StoreError::Failed("connection reset".into()))
            } else {
                server.act(verb, lease)
            };
            sleep(fault.after).await;
            drop(reply.send(result));
        });
        let result = answer.await.unwrap();
        if fault.answer_lost {
            return Err(StoreError::Failed("connection reset".into()));
        }
        result
    }
}

impl LeaseStore for Store {
    async fn get(&self) -> Result<Option<Lease>, StoreError> {
        self.call(Verb::Get, None).await
    }

    async fn create(&self, lease: Lease) -> Result<Lease, StoreError> {
        self.call(Verb::Create, Some(lease)).await.map(Option::unwrap)
    }

    async fn replace(&self, lease: Lease) -> Result<Lease, StoreError> {
        self.call(Verb::Replace, Some(lease)).await.map(Option::unwrap)
    }
}
