//! Two processes of the sample, each behind a proxy of its own, so that every write has a sender.

use std::path::Path;
use std::time::Duration;

use futures::future::select_all;
use http::Method;
use tests::control_plane::{ADMIN_GROUP, ControlPlane};
use tests::{Cut, Fault, FaultProxy, Match, Process};

const ARGS: &str = "--controllers=sample-controller --v=2 --leader-elect-lease-duration=6s \
     --leader-elect-renew-deadline=5s --leader-elect-retry-period=500ms";
/// Answers to writes that each process never gets.
const LOST_ANSWERS: usize = 20;
/// A process that was asked to end, or has lost its lease.
const AT_ONCE: Duration = tests::PATIENCE;

/// The way in which a leader ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// SIGKILL: its lease has to expire.
    Kill,
    /// SIGTERM: it gives the lease back.
    Terminate,
    /// SIGSTOP until another one leads, then SIGCONT: it wakes up as an ex-leader with work in
    /// hand.
    Suspend,
}

/// The running ones and what is left of those that ended.
pub(crate) struct Replicas<'a> {
    plane: &'a ControlPlane,
    running: Vec<Replica>,
    ended: Vec<FaultProxy>,
}

struct Replica {
    manager: Process,
    proxy: FaultProxy,
}

impl<'a> Replicas<'a> {
    pub(crate) async fn start(plane: &'a ControlPlane) -> Self {
        let mut replicas = Self { plane, running: Vec::new(), ended: Vec::new() };
        for _ in 0..2 {
            replicas.running.push(Replica::start(plane).await);
        }
        replicas
    }

    /// Waits until one of them leads, and says which. One that has ended by itself is replaced
    /// before.
    pub(crate) async fn leader(&mut self) -> usize {
        while let Some(ended) = self.running.iter().position(Replica::has_ended_by_itself) {
            self.replace(ended).await;
        }
        self.leader_among(|_| true).await
    }

    /// The process at this place.
    pub(crate) fn manager(&self, place: usize) -> &Process {
        &self.running[place].manager
    }

    /// The processes that run.
    pub(crate) fn managers(&self) -> impl Iterator<Item = &Process> {
        self.running.iter().map(|replica| &replica.manager).filter(|manager| manager.is_running())
    }

    /// Waits until this leader has had so many writes of objects answered, or has ended by itself.
    pub(crate) async fn until_written(&self, leader: usize, count: usize) {
        let Replica { manager, proxy } = &self.running[leader];
        let what = format!("the leader has written {count} times");
        let written = || proxy.requests_like(&writes()).len() >= count || !manager.is_running();
        tests::poll::eventually(&what, written).await;
    }

    /// Ends a leader and starts a new process in its place. False when it has ended by itself, by
    /// losing its lease to a busy machine: then another one has to be ended so.
    #[must_use]
    pub(crate) async fn end(&mut self, leader: usize, how: End) -> bool {
        if self.running[leader].has_ended_by_itself() {
            self.replace(leader).await;
            return false;
        }
        let Replica { manager, proxy } = &self.running[leader];
        let sent = || proxy.requests_like(&writes()).len();
        let mut last = usize::MAX;
        match how {
            End::Kill => manager.kill(),
            End::Terminate => manager.terminate(),
            End::Suspend => {
                manager.pause();
                self.leader_among(|place| place != leader).await;
                last = sent();
                manager.resume();
            }
        }
        let status = manager.exit(AT_ONCE).await;
        let clean = matches!(how, End::Terminate);
        assert_eq!(status.success(), clean, "{how:?} ends with {status}");
        assert!(sent() <= last, "an ex-leader sent {} writes", sent() - last);
        self.replace(leader).await;
        true
    }

    /// Starts a new process in the place of one that has ended.
    async fn replace(&mut self, place: usize) {
        let next = Replica::start(self.plane).await;
        let Replica { proxy, .. } = std::mem::replace(&mut self.running[place], next);
        self.ended.push(proxy);
    }

    /// The proxies of all processes there ever were.
    pub(crate) fn proxies(&self) -> Vec<&FaultProxy> {
        self.running.iter().map(|replica| &replica.proxy).chain(&self.ended).collect()
    }

    async fn leader_among(&self, eligible: impl Fn(usize) -> bool) -> usize {
        let places = (0..self.running.len()).filter(|place| eligible(*place));
        let leads = places.map(|place| {
            Box::pin(async move {
                self.running[place].manager.line("Successfully acquired lease").await;
                place
            })
        });
        select_all(leads).await.0
    }
}

impl Replica {
    async fn start(plane: &ControlPlane) -> Self {
        let proxy = FaultProxy::start(plane, "sample", &[ADMIN_GROUP]).await;
        proxy.on(writes()).times(LOST_ANSWERS).then(Fault::LoseAnswer(Cut::Stream));
        let manager = Process::with_kubeconfig(proxy.kubeconfig())
            .program(Path::new(env!("CARGO_BIN_EXE_sample-controller")))
            .args(ARGS.split_whitespace())
            .start();
        Self { manager, proxy }
    }

    /// Fails when it has any other reason for that than a lease that it lost to a busy machine.
    fn has_ended_by_itself(&self) -> bool {
        let Self { manager, proxy } = self;
        let has_ended = !manager.is_running();
        let lost = manager.has_said("leaderelection lost") && proxy.lease_was_late();
        assert!(lost || !has_ended, "a replica has ended by itself: {:?}", manager.lines().last());
        has_ended
    }
}

/// Writes of the sample's objects.
pub(crate) fn writes() -> Match {
    let ours = Match::any().path_prefix("/apis/sample.example.org/");
    ours.and(|request| [Method::POST, Method::PUT, Method::PATCH].contains(&request.method))
}
