//! A replica: the real program, from its command line to its end, on a machine of the simulation.

use std::cell::Cell;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use election::Place;
use infra_controller_manager::flags::{Parsed, parse};
use infra_controller_manager::process::{Machine, run_on};
use infra_controller_manager::settings::{ProcessSettings, controller_flags, known};
use infra_controller_manager::{build, controllers};
use rand::RngExt as _;
use resilience::{BootInstant, ClockReading};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::aws_cluster;
use crate::clusters;
use crate::members;
use crate::plan::{LIFE, Number, Plan};
use crate::wire::wire_of;
use crate::world::{Process, World};

/// Number of replicas.
pub(crate) const REPLICAS: usize = 2;

/// Flags of each replica. The cluster CIDR has [`BLOCKS`] pod CIDRs.
const FLAGS: [&str; 10] = [
    "--master=http://api",
    "--secure-port=0",
    "--kube-api-content-type=application/json",
    "--allocate-node-cidrs=true",
    "--kube-api-burst=2",
    "--cluster-cidr=10.0.0.0/25",
    "--node-cidr-mask-size=28",
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=2s",
];

/// Number of pod CIDRs in the cluster CIDR of the replicas.
pub(crate) const BLOCKS: u64 = 8;

thread_local! {
    /// Start of the run.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// How far the wall clock of each machine was set forward.
    static JUMPS: Cell<[Duration; REPLICAS]> = const { Cell::new([Duration::ZERO; REPLICAS]) };
}

/// Sets the clocks of all machines to their start.
pub(crate) fn start_clocks() {
    BEGAN.set(Some(Instant::now()));
    JUMPS.set(Default::default());
}

/// Sets the wall clock of a machine forward.
pub(crate) fn jump(slot: usize, by: Duration) {
    let mut jumps = JUMPS.get();
    jumps[slot] += by;
    JUMPS.set(jumps);
}

fn clocks<const SLOT: usize>() -> ClockReading {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let ran = BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed());
    let boot = ran + Duration::from_secs(3_600);
    let wall = ran + JUMPS.get()[SLOT] + Duration::from_secs(1_700_000_000);
    ClockReading { boot: BootInstant::from_nanos(nanos(boot)), wall: nanos(wall) }
}

fn settings(identity: &str, plan: &Plan) -> Result<ProcessSettings> {
    let known = known(controllers::ALL)?;
    let rate = format!("--kube-api-qps={}", plan.qps);
    let allocator =
        if plan.has_cluster_cidrs { "MultiCIDRRangeAllocator" } else { "RangeAllocator" };
    let allocator = format!("--cidr-allocator-type={allocator}");
    let more = [rate, allocator].map(OsString::from);
    let args = ["infra-controller-manager"].into_iter().chain(FLAGS);
    let controllers: &[&str] =
        if plan.has_members { &members::FLAGS } else { &["--controllers=node-ipam-controller"] };
    let clusters = plan.has_clusters().then_some(clusters::FLAG);
    let aws: &[&str] = if plan.has_aws() { &aws_cluster::FLAGS } else { &[] };
    let args = args.chain(controllers.iter().copied()).chain(clusters).chain(aws.iter().copied());
    let args = args.map(OsString::from).chain(more);
    let Parsed::Run(values) =
        parse(args, &controller_flags(controllers::ALL), &known, &build::INFO)?
    else {
        bail!("the flags of the simulation print something")
    };
    let settings = ProcessSettings::new(&values, &known, controllers::ALL);
    let mut settings = settings.map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    if let Some(election) = &mut settings.election {
        identity.clone_into(&mut election.identity);
    }
    Ok(settings)
}

/// Runs one process after the other in this place.
pub(crate) async fn keep_running(world: World, slot: usize) {
    for life in 0.. {
        let number = Number(LIFE, 1_000_000 + life * 10 + slot as u64);
        let pause = world.with(|state| {
            let most = if state.is_busy { 6_000 } else { 500 };
            Duration::from_millis(state.plan.rng(number).random_range(1..most))
        });
        sleep(pause).await;
        let died = start(&world, slot);
        died.cancelled().await;
    }
}

/// Starts a process; the token is cancelled when it is dead.
fn start(world: &World, slot: usize) -> CancellationToken {
    let clocks = if slot == 0 { clocks::<0> } else { clocks::<1> };
    let (id, fence, shutdown, died, halt, plan) = world.with(|state| {
        let id = state.processes.len();
        let process = Process::new(format!("process-{id}"), slot, clocks);
        let (shutdown, died) = (process.shutdown.clone(), process.died.clone());
        let (fence, halt) = (process.fence.clone(), process.halt.clone());
        state.note(|| format!("p{id} starts in place {slot}"));
        state.processes.push(process);
        (id, fence, shutdown, died, halt, state.plan.clone())
    });
    let ending = world.clone();
    let machine = Machine {
        shutdown,
        wire: Some(wire_of(world, id)),
        fence,
        place: Place::Tasks(Arc::new(move |code| kill(&ending, id, &format!("exits with {code}")))),
        set_verbosity: Box::new(|_| true),
    };
    let ending = world.clone();
    let running = tokio::spawn(halt.task(async move {
        let ended = match settings(&format!("process-{id}"), &plan) {
            Ok(settings) => run_on(machine, settings).await,
            Err(error) => Err(error),
        };
        let says = ended.map_or_else(|error| format!("fails: {error:#}"), |()| "ends".to_owned());
        kill(&ending, id, &says);
    }));
    world.with(|state| state.processes[id].task = Some(running.abort_handle()));
    died
}

/// Ends a process between two of its steps. What it has sent stays on the wire.
pub(crate) fn kill(world: &World, id: usize, says: &str) {
    world.with(|state| {
        if !state.processes[id].is_alive {
            return;
        }
        state.note(|| format!("p{id} {says}"));
        let process = &mut state.processes[id];
        process.is_alive = false;
        process.halt.stop();
        process.died.cancel();
        if let Some(task) = process.task.take() {
            task.abort();
        }
    });
}
