//! The two replicas: the leader is killed or asked to stop at moments that the seed alone
//! decides, so that all contenders meet the same ends, and whatever ends is started again, as the
//! kubelet does it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use rustix::process::Signal;
use tokio::time::sleep;

use super::faults::{Dice, Faults};
use super::report::Term;
use super::scene::{Contender, Scene};
use crate::control_plane::MANAGER_USER;
use crate::fault_proxy::NodePatch;
use crate::metrics::Metrics;
use crate::{ControlPlane, FaultProxy, Match, PATIENCE, Process, Vms, Wire};

const TICK: Duration = Duration::from_millis(50);
/// Between two ends: long enough for a lease to expire and for another term of some seconds.
const BETWEEN_ENDS: [Duration; 2] = [Duration::from_secs(6), Duration::from_secs(9)];
/// A process that was asked to stop must be gone by then.
const STOP: Duration = Duration::from_secs(60);
/// Text that both programs log when they acquire the lease.
const LEADS: &str = "uccessfully acquired lease";
/// The product says this when it ends without having been asked to.
const LOST: &str = "leaderelection lost";

// How a process ended.
const KILLED: &str = "killed";
const STOPPED: &str = "stopped";
const BY_ITSELF: &str = "by itself";
const AT_THE_END: &str = "at the end";

pub(super) struct Pair<'a> {
    plane: &'a ControlPlane,
    contender: &'a Contender,
    pool: &'a str,
    vms: Option<Vms>,
    scene: &'a Scene,
    /// Draws when and how leaders end, and nothing else.
    dice: Dice,
    next_end: Option<Instant>,
    started: u64,
    running: Vec<Replica>,
    ended: Vec<Arc<FaultProxy>>,
    terms: Vec<Term>,
    bad_ends: Vec<String>,
}

struct Replica {
    manager: Process,
    proxy: Arc<FaultProxy>,
    faults: Option<Faults>,
    asked_to_stop: Option<Instant>,
    end: &'static str,
}

impl<'a> Pair<'a> {
    pub(super) async fn start(
        plane: &'a ControlPlane,
        contender: &'a Contender,
        (pool, vms): (&'a str, Option<Vms>),
        scene: &'a Scene,
    ) -> Self {
        let dice = Dice::new(scene.seed);
        let (running, ended, terms) = (Vec::new(), Vec::new(), Vec::new());
        let (started, next_end) = (0, None);
        let mut pair = Self {
            plane,
            contender,
            pool,
            vms,
            scene,
            dice,
            next_end,
            started,
            running,
            ended,
            terms,
            bad_ends: Vec::new(),
        };
        for _ in 0..2 {
            let replica = pair.replica().await;
            pair.running.push(replica);
        }
        pair
    }

    /// Waits until one of them leads.
    pub(super) async fn first_leader(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.running.iter().any(|replica| replica.manager.has_said(LEADS)) {
            assert!(Instant::now() < deadline, "no replica leads after {PATIENCE:?}");
            sleep(TICK).await;
            self.replace_ended().await;
        }
    }

    /// Keeps both running and ends leaders until the time is over.
    pub(super) async fn endure(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(TICK).await;
            self.end_leaders();
            self.replace_ended().await;
        }
    }

    /// Number of processes that were started.
    pub(super) fn started(&self) -> u64 {
        self.started
    }

    /// Ends the faults and the stops of replicas.
    pub(super) fn calm(&mut self) {
        for replica in &mut self.running {
            replica.faults = None;
        }
    }

    /// Blocks in use beyond the share that is always in use, once that does not change any more;
    /// none when the contender does not let us read its metrics, or has no pool.
    pub(super) async fn leaked(&mut self, baseline: f64, blocks: f64) -> Option<f64> {
        let (Contender::Product, None) = (self.contender, &self.vms) else { return None };
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.replace_ended().await;
            let leader = self.running.iter().find(|replica| replica.manager.has_said(LEADS));
            let used = match leader {
                Some(leader) => self.usage(&leader.manager).await,
                None => None,
            };
            let leaked = used.map(|share| ((share - baseline) * blocks).round());
            if leaked == Some(0.0) || Instant::now() > deadline {
                return Some(leaked.unwrap_or(f64::NAN));
            }
            sleep(TICK).await;
        }
    }

    /// The share of the pool that is in use, as a leader that has come to rest sees it.
    async fn usage(&self, manager: &Process) -> Option<f64> {
        let (_, page) = manager.get("/metrics").await.ok()?;
        Metrics::parse(&page).value(&self.scene.allocator.metric("usage_cidrs"), &[])
    }

    /// Every PATCH, every term of leadership, and the processes that ended badly.
    pub(super) async fn end(mut self) -> (Vec<NodePatch>, Vec<Term>, Vec<String>) {
        for mut replica in std::mem::take(&mut self.running) {
            replica.end = AT_THE_END;
            replica.manager.kill();
            self.put_away(replica).await;
        }
        let patches = self.ended.iter().flat_map(|proxy| proxy.node_patches()).collect();
        (patches, self.terms, self.bad_ends)
    }

    /// Ends the leader when its time is over; does nothing while no replica leads.
    fn end_leaders(&mut self) {
        let now = Instant::now();
        let due = self.next_end.is_some_and(|end| end <= now);
        if due || self.next_end.is_none() {
            self.next_end = Some(now + self.dice.between(BETWEEN_ENDS[0], BETWEEN_ENDS[1]));
        }
        if due {
            let end = self.dice.one_of(&[KILLED, STOPPED]);
            let leader = self.running.iter_mut().find(|replica| replica.leads());
            if let Some(leader) = leader {
                leader.asked_to_stop = Some(now);
                leader.end = end;
                match end {
                    KILLED => leader.manager.kill(),
                    _ => leader.manager.terminate(),
                }
            }
        }
        for replica in &self.running {
            let overdue = replica.asked_to_stop.is_some_and(|at| at.elapsed() > STOP);
            assert!(!overdue || !replica.manager.is_running(), "not gone {STOP:?} after SIGTERM");
        }
    }

    async fn replace_ended(&mut self) {
        for place in 0..self.running.len() {
            if !self.running[place].manager.is_running() {
                let mut next = self.replica().await;
                if self.running[place].faults.is_none() {
                    next.faults = None; // it is calm
                }
                let old = std::mem::replace(&mut self.running[place], next);
                self.put_away(old).await;
            }
        }
    }

    async fn put_away(&mut self, replica: Replica) {
        let status = replica.manager.exit(STOP).await;
        if matches!(self.contender, Contender::Product) {
            self.bad_ends.extend(bad_end(&replica, status));
        }
        self.terms.extend(term(&replica));
        if let Some(folder) = &self.scene.logs {
            let name = format!("{}-{}.log", self.scene.seed, replica.manager.pid());
            let lines = replica.manager.lines().join("\n");
            std::fs::write(folder.join(name), lines).expect("the folder of logs can be written to");
        }
        self.ended.push(replica.proxy);
    }

    /// The next process, with faults of its own.
    async fn replica(&mut self) -> Replica {
        let dice = Dice::new(self.scene.seed.wrapping_mul(1_000).wrapping_add(self.started));
        self.started += 1;
        let wire = dice.one_of(&Wire::ALL);
        let proxy = Arc::new(FaultProxy::start_with(wire, self.plane, MANAGER_USER, &[]).await);
        let faults = Some(Faults::install(&proxy, &dice));
        let mut launch = Process::with_kubeconfig(proxy.kubeconfig())
            .args(["--allocate-node-cidrs=true", "--use-service-account-credentials=true"])
            .args(["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s"])
            .args(["--leader-elect-retry-period=500ms"])
            .args(["--kube-api-qps=500", "--kube-api-burst=1000"])
            .args(["--controllers=node-ipam-controller", "--v=2"])
            .args(self.pool.split_whitespace());
        launch = match self.contender {
            Contender::Product => launch.args([self.scene.allocator.flag()]),
            Contender::Stock(path) => launch.program(path),
        };
        if let Some(vms) = &self.vms {
            launch = vms.equip(launch, self.pool);
        }
        let manager = launch.start();
        Replica { manager, proxy, faults, asked_to_stop: None, end: BY_ITSELF }
    }
}

impl Replica {
    /// Leads, and was not asked to stop.
    fn leads(&self) -> bool {
        self.asked_to_stop.is_none() && self.manager.is_running() && self.manager.has_said(LEADS)
    }
}

/// What is wrong with the end of a process of the product, in words: it may end when it is asked to, and by itself
/// only when its lease is lost, which it says.
fn bad_end(replica: &Replica, status: ExitStatus) -> Option<String> {
    let Replica { manager, end, .. } = replica;
    let lines = manager.lines();
    if let Some(line) = lines.iter().find(|line| line.contains("panicked")) {
        return Some(format!("process {}, {end}, panicked: {line}", manager.pid()));
    }
    let has_lost = status.code() == Some(1) && lines.iter().any(|line| line.contains(LOST));
    let is_explained = match *end {
        KILLED | AT_THE_END => status.signal() == Some(Signal::KILL.as_raw()) || has_lost,
        STOPPED => status.success() || has_lost,
        _ => has_lost,
    };
    let last = lines.last().map_or("", String::as_str);
    (!is_explained)
        .then(|| format!("process {}, {end}, has ended with {status}: {last}", manager.pid()))
}

/// The term of a process, which has one at most: who loses its lease ends.
fn term(replica: &Replica) -> Option<Term> {
    let writes =
        Match::leases().and(|request| [Method::POST, Method::PUT].contains(&request.method));
    // A standby only reads, so that the first write that was done got the lease.
    let lease = replica
        .proxy
        .requests_like(&writes)
        .into_iter()
        .find(|seen| seen.upstream_status.is_some_and(|code| code < 300))?
        .settled?;
    let first = replica.proxy.node_patches().into_iter().find(|patch| patch.arrived >= lease);
    Some(Term { to_first_patch: first.map(|patch| patch.arrived - lease), end: replica.end })
}
