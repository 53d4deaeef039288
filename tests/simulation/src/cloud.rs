//! [`Aws`]: AWS behind the executor of the program. Calls travel like requests to the API servers: what has left goes
//! on when its process dies, and the plan says which call meets a fault (C5, C9).

use std::sync::Arc;
use std::time::Duration;

use aws::{AwsError, Simulated, Simulating, simulate};
use aws_network::{
    Action, Answer, DEFAULT_OWNER_TAG, FoundZone, Identity, Query, Refused, Reply, Tags, Zone,
    ZoneType,
};
use cloud_double::{Called, Cloud, Nature, inventory};
use futures::FutureExt as _;
use rand::RngExt as _;
use resilience::Fence;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::plan::Number;
use crate::replica::kill;
use crate::world::{State, World, digest};

/// Calls of AWS.
const CALLS: char = 'a';
/// Name of the Cluster.
pub(crate) const CLUSTER: &str = "on-aws";
pub(crate) const REGION: &str = "us-east-2";
const ACCOUNT: &str = "123456789012";
const OTHERS: &str = "others";
/// AWS shows a new resource after this time at the latest. Another process leads earlier, and an intent is honoured for
/// longer.
const UNSEEN: Duration = Duration::from_secs(18);
/// Greatest age of the intent of a create that leaves: ten seconds, and one because the status holds whole seconds.
const SENT_WITHIN: Duration = Duration::from_secs(11);

/// AWS, and what is known of the cluster there.
pub(crate) struct Aws {
    cloud: Cloud,
    /// What others have there.
    pub(crate) foreign: Vec<String>,
    /// UID of the AWSCluster that was there last.
    pub(crate) owner: String,
    /// Writes that left.
    pub(crate) writes: u64,
}

impl Aws {
    /// AWS with delays of this seed, and a VPC of others.
    pub(crate) fn new(seed: u64) -> Self {
        let mut cloud = Cloud::new(Nature::PROMPT, seed, CLUSTER);
        let tags = Tags::from([
            ("Name".to_owned(), OTHERS.to_owned()),
            (DEFAULT_OWNER_TAG.to_owned(), OTHERS.to_owned()),
        ]);
        if let Ok(of_vpc) = cidr::parse("10.66.0.0/24") {
            drop(cloud.call(&Action::CreateVpc { cidr: of_vpc, ipv6: false, tags }));
        }
        let (slow, drain, lag) = (cloud.draw(12), cloud.draw(10), cloud.draw(8));
        let failing_nats = u32::try_from(cloud.draw(2)).unwrap_or_default();
        cloud.nature = Nature { slow, drain, lag, failing_nats };
        let foreign = inventory(&cloud);
        assert!(!foreign.is_empty(), "others have a VPC");
        Self { cloud, foreign, owner: String::new(), writes: 0 }
    }

    /// What there is, without ids and with one word in place of the owner id.
    pub(crate) fn inventory(&self) -> Vec<String> {
        let mut lines = inventory(&self.cloud);
        if !self.owner.is_empty() {
            lines = lines.iter().map(|line| line.replace(&*self.owner, "OWNER")).collect();
        }
        lines.sort();
        lines
    }

    /// Lets AWS do what it does by itself.
    fn advance(&mut self, elapsed: Duration) {
        let now = 1_000_000 + elapsed.as_secs();
        self.cloud.advance(now.saturating_sub(self.cloud.now));
    }

    fn read(&mut self, query: &Query) -> Result<Reply, &'static str> {
        let cloud = &mut self.cloud;
        match query {
            Query::VpcAttributes(id) if cloud.vpcs.get(id).is_none() => {
                Err("InvalidVpcID.NotFound")
            }
            query => Ok(cloud.read(query)),
        }
    }

    /// What an action changes that is not of the cluster.
    fn touched_of_others(&self, action: &Action) -> Option<String> {
        let identity = Identity {
            cluster: CLUSTER.to_owned(),
            owner_id: self.owner.clone(),
            owner_tag: DEFAULT_OWNER_TAG.to_owned(),
            adopt: false,
        };
        self.cloud.touched_of_others(&identity, action)
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It never arrives, and no answer comes.
    Lost,
    /// AWS carries it out, and no answer comes.
    AnswerLost,
    /// No answer comes, and AWS carries it out later.
    Delayed,
    /// AWS refuses it as one too many.
    Throttled,
    /// Reads do not show at once what it has made.
    Late,
    /// The process ends before the call leaves.
    CrashBefore,
    /// The process ends before the answer comes.
    CrashAfter,
    /// The process ends before the answer comes, and the next leader does not see the new resource.
    CrashUnseen,
}

impl Fault {
    const OF_READS: [Self; 2] = [Self::Lost, Self::Throttled];
    /// Of creates only, in addition to those of all writes.
    const OF_CREATES: [Self; 3] = [Self::Late, Self::Late, Self::CrashUnseen];
    /// Each crash keeps other faults of the same pass from happening, so crashes are rarer.
    const OF_WRITES: [Self; 9] = [
        Self::Lost,
        Self::Lost,
        Self::AnswerLost,
        Self::AnswerLost,
        Self::Delayed,
        Self::Delayed,
        Self::Throttled,
        Self::CrashBefore,
        Self::CrashAfter,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Lost => "AWS call lost",
            Self::AnswerLost => "AWS answer lost",
            Self::Delayed => "AWS call delayed without an answer",
            Self::Throttled => "AWS call throttled",
            Self::Late => "AWS shows a resource late",
            Self::CrashBefore => "crash before an AWS call",
            Self::CrashAfter => "crash after an AWS call",
            Self::CrashUnseen => "crash after an AWS call, with an effect that is shown late",
        }
    }
}

/// The times and the fault of a call.
#[derive(Clone, Copy, Debug)]
struct Fate {
    travel: Duration,
    back: Duration,
    /// Until an answer that never comes is not awaited any more, or a delayed call arrives.
    late: Duration,
    fault: Option<Fault>,
}

/// Calls of this thread lead into this world from now on.
pub(crate) fn connect(world: Option<&World>) {
    let world = world.filter(|it| it.with(|state| state.aws.is_some()));
    simulate(world.map(|world| Arc::new(Wire(world.clone())) as _));
}

/// The way to AWS.
struct Wire(World);

/// A call that leaves.
struct Sent {
    /// Calls of one kind are numbered.
    kind: String,
    /// For the trace.
    what: String,
    /// The process that sends a write.
    writer: Option<usize>,
    creates: bool,
}

impl Sent {
    fn read(what: String) -> Self {
        let kind = what.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        Self { kind: kind.to_owned(), what, writer: None, creates: false }
    }
}

impl Simulated for Wire {
    fn caller(&self) -> Simulating<'_, String> {
        carry(&self.0, Sent::read("Caller".to_owned()), |_, _| Ok(ACCOUNT.to_owned()))
    }

    fn zones(&self) -> Simulating<'_, Vec<FoundZone>> {
        let zone = |letter: &str| FoundZone {
            zone: Zone {
                name: format!("{REGION}{letter}"),
                zone_type: ZoneType::AvailabilityZone,
                parent: None,
            },
            group: REGION.to_owned(),
            is_opted_in: true,
            is_available: true,
        };
        let zones = move |_: &mut State, _| Ok(["a", "b", "c"].map(zone).to_vec());
        carry(&self.0, Sent::read("Zones".to_owned()), zones)
    }

    fn read<'a>(&'a self, _: &'a str, query: &'a Query) -> Simulating<'a, Reply> {
        let (sent, query) = (Sent::read(format!("{query:?}")), query.clone());
        carry(&self.0, sent, move |state, _| {
            state.aws.as_mut().map_or(Err("InternalError"), |aws| aws.read(&query))
        })
    }

    fn write<'a>(&'a self, fence: &'a Fence, action: &'a Action) -> Simulating<'a, Answer> {
        let sent = Sent {
            kind: format!("{} {:?}", action.operation(), action.creates()),
            what: format!("{action:?}"),
            writer: self.0.with(|state| state.leaves(fence, action)),
            creates: action.creates().is_some(),
        };
        let action = action.clone();
        carry(&self.0, sent, move |state, hides_for| state.write_to_aws(&action, hides_for))
    }
}

/// Takes a call to AWS and its answer back. `work` is told for how many seconds AWS hides what it makes.
fn carry<T: Send + 'static>(
    world: &World,
    sent: Sent,
    work: impl FnOnce(&mut State, u64) -> Result<T, &'static str> + Send + 'static,
) -> Simulating<'static, T> {
    let (answer, answered) = oneshot::channel();
    let (number, fate) = world.with(|state| state.fate_on_aws(&sent));
    let (world, waiting) = (world.clone(), world.clone());
    tokio::spawn(async move {
        let done = travel(&world, number, fate, &sent, work).await;
        drop(answer.send(done));
    });
    async move {
        if fate.fault == Some(Fault::Delayed) {
            sleep(fate.back).await;
            return Err(lost());
        }
        match answered.await {
            Ok(done) => done,
            Err(_) => {
                waiting.with(|state| state.violate("a call of AWS panics".to_owned()));
                std::future::pending().await
            }
        }
    }
    .boxed()
}

fn lost() -> AwsError {
    AwsError::Unanswered { reason: "connection reset".to_owned() }
}

async fn travel<T>(
    world: &World,
    number: Number,
    fate: Fate,
    sent: &Sent,
    work: impl FnOnce(&mut State, u64) -> Result<T, &'static str>,
) -> Result<T, AwsError> {
    let Sent { what, writer, .. } = sent;
    if let Some(fault) = fate.fault {
        world.with(|state| state.count(number, fault.name()));
    }
    if let (Some(Fault::CrashBefore), Some(writer)) = (fate.fault, writer) {
        kill(world, *writer, "crashes before a call of AWS");
        return Err(lost());
    }
    sleep(fate.travel).await;
    match fate.fault {
        Some(Fault::Lost) => {
            sleep(fate.late).await;
            return Err(lost());
        }
        Some(Fault::Throttled) => {
            sleep(fate.back).await;
            return Err(AwsError::Refused(Refused::with_code("RequestLimitExceeded")));
        }
        Some(Fault::Delayed) => sleep(fate.late).await,
        _ => {}
    }
    let done = world.with(|state| {
        let elapsed = state.elapsed();
        if let Some(aws) = &mut state.aws {
            aws.advance(elapsed);
        }
        let hides_for = match fate.fault {
            Some(Fault::Late) => fate.late.as_secs() + 1,
            Some(Fault::CrashUnseen) => UNSEEN.as_secs(),
            _ => 0,
        };
        let done = work(state, hides_for);
        let code = done.as_ref().err().copied().unwrap_or("OK");
        state.note(|| {
            let fault = fate.fault.map_or("", Fault::name);
            format!("{number} AWS {what:.60} {:x} {code} {fault}", digest(what.as_bytes()))
        });
        done
    });
    if let (Some(Fault::CrashAfter | Fault::CrashUnseen), Some(writer)) = (fate.fault, writer) {
        kill(world, *writer, "crashes after a call of AWS");
    }
    sleep(fate.back).await;
    match fate.fault {
        Some(Fault::AnswerLost) => {
            sleep(fate.late).await;
            Err(lost())
        }
        _ => done.map_err(|code| AwsError::Refused(Refused::with_code(code))),
    }
}

impl State {
    fn fate_on_aws(&mut self, sent: &Sent) -> (Number, Fate) {
        let number = Number(CALLS, self.next_of(format!("AWS {}", sent.kind)));
        let mut rng = self.plan.rng(number);
        let mut millis = |most: u64| Duration::from_millis(rng.random_range(1..=most));
        let (travel, back, late) = (millis(40), millis(40), millis(6_000));
        let (percent, kinds) = match sent.writer {
            None => (4, Fault::OF_READS.to_vec()),
            Some(_) if sent.creates => (20, [&Fault::OF_CREATES[..], &Fault::OF_WRITES].concat()),
            Some(_) => (20, Fault::OF_WRITES.to_vec()),
        };
        let is_drawn = rng.random_range(0..100) < percent;
        let fault = kinds[rng.random_range(0..kinds.len())];
        let happens = is_drawn && self.is_busy && self.plan.permits(number);
        let fault = happens.then_some(fault);
        (number, Fate { travel, back, late, fault })
    }

    /// A write leaves for AWS. Its process is the one whose fence is open.
    fn leaves(&mut self, fence: &Fence, action: &Action) -> Option<usize> {
        let open = |it: &crate::world::Process| it.is_alive && !it.fence.remaining().is_zero();
        let writer = self.processes.iter().position(open);
        if fence.remaining().is_zero() || writer.is_none() {
            self.violate(format!("C5: {action:?} leaves for AWS with a closed fence"));
        }
        if let Some((made, _)) = action.creates()
            && !made.is_protected()
            && self.age_of_intent(&made.to_string()).is_none_or(|age| age > SENT_WITHIN)
        {
            self.violate(format!("C9: no intent to make {made} was stored within {SENT_WITHIN:?}"));
        }
        self.writes += 1;
        let aws = self.aws.as_mut()?;
        aws.writes += 1;
        if let Some(touched) = aws.touched_of_others(action) {
            self.violate(format!("C9: {touched}"));
        }
        writer
    }

    /// AWS carries out a write.
    fn write_to_aws(&mut self, action: &Action, hides_for: u64) -> Called {
        let aws = self.aws.as_mut().ok_or("InternalError")?;
        let called = aws.cloud.call(action);
        if let Ok(Answer { id, .. }) = &called
            && hides_for > 0
            && !id.is_empty()
        {
            aws.cloud.make_late(id, hides_for, u32::MAX);
        }
        called
    }
}
