//! Allocators of all sources among answers that are lost, PATCHes that are applied late, other writers
//! and a cloud that refuses: what may leave is compared with all that the cluster may have.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::CloudSource;
use super::cluster_cidrs::{empty, everybody, serve};
use super::*;

/// How long the server can apply a PATCH.
const LIMIT: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    Flags,
    ClusterCidrs,
    Exact,
    Routed,
}

pub(super) fn sources() -> impl Strategy<Value = Source> {
    prop::sample::select(vec![Source::Flags, Source::ClusterCidrs, Source::Exact, Source::Routed])
}

impl Source {
    /// An allocator whose one pool has blocks of so many addresses, a power of two.
    pub(super) fn allocator(self, range: &str, block: u32) -> Allocator {
        let mask = u8::try_from(32 - block.ilog2()).unwrap();
        let pool = || Pool::new(cidr::parse(range).unwrap(), mask, 16).unwrap();
        match self {
            Self::Flags => Allocator::new(vec![pool()], &[]),
            Self::Exact => Allocator::of_cloud(CloudSource::Exact, Some(pool()), &[]),
            Self::Routed => Allocator::of_cloud(CloudSource::Routed, Some(pool()), &[]),
            Self::ClusterCidrs => {
                let mut allocator = empty();
                let spec = everybody(range, i64::from(block.ilog2()));
                drop(serve(&mut allocator, "one", &spec));
                allocator
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Done,
    Refused,
    Lost,
}

#[derive(Clone, Debug)]
enum Step {
    Join,
    Leave,
    /// Another writer gives the Node a CIDR.
    Foreign(IpNet),
    /// A worker handles the Node, for which the cloud names a CIDR or routes one if it will.
    Pass(IpNet, bool, Answer),
    /// The server applies a PATCH whose answer was lost.
    Apply,
    Read,
    /// The labels of the Node change, and with them whether it is selected.
    Select(bool),
    /// Half of the time passes in which the server can apply a PATCH.
    Wait,
}

/// One or two blocks of the pool, or a range outside of it.
fn cidr() -> impl Strategy<Value = IpNet> {
    let texts = ["10.0.0.0/28", "10.0.0.16/28", "10.0.0.32/28", "10.0.0.48/28", "10.0.0.0/27"];
    let outside = ["192.168.0.0/28", "192.168.0.16/28"];
    let all = texts.into_iter().chain(outside).map(|text| text.parse().unwrap());
    prop::sample::select(all.collect::<Vec<IpNet>>())
}

/// Each with the Node that it is about.
fn steps() -> impl Strategy<Value = Vec<(u8, Step)>> {
    let answer = prop::sample::select(vec![Answer::Done, Answer::Refused, Answer::Lost]);
    let step = prop_oneof![
        4 => Just(Step::Join),
        1 => Just(Step::Leave),
        1 => cidr().prop_map(Step::Foreign),
        8 => (cidr(), any::<bool>(), answer).prop_map(|(cidr, routes, answer)| {
            Step::Pass(cidr, routes, answer)
        }),
        2 => Just(Step::Apply),
        3 => Just(Step::Read),
        2 => any::<bool>().prop_map(Step::Select),
        3 => Just(Step::Wait),
    ];
    prop::collection::vec((0..6_u8, step), 1..80)
}

/// A live Node as the cluster and the cloud have it.
#[derive(Debug, Default)]
struct Live {
    is_unselected: bool,
    shows: Option<IpNet>,
    /// PATCHes that the server can apply until then.
    lost: Vec<(IpNet, Instant)>,
    routed: Option<IpNet>,
}

struct World {
    source: Source,
    allocator: Allocator,
    nodes: BTreeMap<u8, Live>,
    now: Instant,
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

impl World {
    fn uid(number: u8) -> Uid {
        number.to_string().into()
    }

    /// The server stores a CIDR, and the watch tells at once.
    fn show(&mut self, number: u8, cidr: IpNet) {
        let Some(live) = self.nodes.get_mut(&number) else { return };
        live.shows = Some(cidr);
        self.tell(number);
    }

    /// The watch shows a Node as it is.
    fn tell(&mut self, number: u8) {
        let Some(live) = self.nodes.get(&number) else { return };
        let (name, shows) = (number.to_string(), live.shows.map(|cidr| cidr.to_string()));
        let cidrs: Vec<&str> = shows.as_deref().into_iter().collect();
        let node = Node { is_selected: !live.is_unselected, ..node(&name, &name).cidrs(&cidrs) };
        drop(self.allocator.observe(&node, self.now));
    }

    /// Nothing leaves for a Node that is not selected, but the second half of what the cloud may have
    /// begun (`rule:unselected-nodes-get-nothing`).
    fn check_selected(&self, number: u8) -> Result<(), TestCaseError> {
        let is_begun = self.allocator.routed_block(&Self::uid(number)).is_some();
        let is_selected = self.nodes.get(&number).is_some_and(|live| !live.is_unselected);
        prop_assert!(is_selected || is_begun, "{number} is not selected");
        Ok(())
    }

    /// No other Node may have what is about to leave for this one (`rule:block-has-one-holder`).
    fn check_alone(&self, number: u8, cidr: &IpNet) -> Result<(), TestCaseError> {
        for (other, live) in self.nodes.iter().filter(|(other, _)| **other != number) {
            let may_come = live.lost.iter().filter(|(_, until)| *until > self.now);
            let lost = may_come.map(|(cidr, _)| cidr).filter(|_| live.shows.is_none());
            let mut all = lost.chain(&live.shows).chain(&live.routed);
            let taken = all.find(|theirs| overlap(cidr, theirs));
            prop_assert!(taken.is_none(), "{cidr} for {number}, of {other}: {taken:?}");
        }
        Ok(())
    }

    /// A consistent read of a Node that shows nothing; whether its claim may be sent.
    fn read(&mut self, number: u8) -> bool {
        let is_empty = self.nodes.get(&number).is_some_and(|live| live.shows.is_none());
        let uid = Self::uid(number);
        is_empty && self.allocator.read_empty(&uid, self.now, self.now).0 == AfterRead::Send
    }

    fn pass(
        &mut self,
        number: u8,
        (named, routes, answer): (IpNet, bool, Answer),
    ) -> Result<(), TestCaseError> {
        let uid = Self::uid(number);
        if self.source == Source::Exact && self.allocator.claim(&uid) != [named] {
            // The worker settles what was sent before.
            let _may_send = self.read(number);
        }
        let assignment = match self.source {
            Source::Exact => self.allocator.assign_exact(&uid, &[named]).0,
            _ => self.allocator.assign(&uid).0,
        };
        let Assignment::Send { cidrs, unresolved, .. } = assignment else { return Ok(()) };
        if unresolved && !self.read(number) {
            return Ok(());
        }
        if self.source == Source::Routed && !self.route(number, cidrs[0], routes)? {
            return Ok(());
        }
        let until = self.now + LIMIT;
        if self.allocator.begin_send(&uid, &cidrs, self.now, until).is_none() {
            return Ok(());
        }
        self.check_selected(number)?;
        self.check_alone(number, &cidrs[0])?;
        match answer {
            Answer::Done => {
                prop_assert!(self.allocator.bound(&uid, self.now).is_some());
                self.show(number, cidrs[0]);
            }
            Answer::Refused => self.allocator.refused(&uid),
            Answer::Lost => {
                self.allocator.lost(&uid, None);
                self.nodes.entry(number).or_default().lost.push((cidrs[0], until));
            }
        }
        Ok(())
    }

    /// Whether the cloud routes the block of a Node.
    fn route(&mut self, number: u8, block: IpNet, routes: bool) -> Result<bool, TestCaseError> {
        let uid = Self::uid(number);
        let live = self.nodes.entry(number).or_default();
        if live.routed == Some(block) {
            return Ok(true);
        }
        prop_assert_eq!(live.routed, None, "a block that may be routed is kept");
        if self.allocator.is_route_refused(&uid) {
            // The worker has just read that the VM is without it.
            if self.allocator.open_until(&uid).is_none() {
                drop(self.allocator.change_block(&uid, self.now));
            }
            return Ok(false);
        }
        if !self.allocator.begin_route(&uid, &block, self.now) {
            return Ok(false);
        }
        self.check_alone(number, &block)?;
        if routes {
            self.nodes.entry(number).or_default().routed = Some(block);
        } else {
            self.allocator.route_refused(&uid);
        }
        Ok(routes)
    }

    /// Once the outcomes of Nodes that are not selected are settled, none of them holds what it does
    /// not show.
    fn check_unselected(&mut self) -> Result<(), TestCaseError> {
        self.now += Duration::from_secs(3600);
        for number in 0..6 {
            self.step(number, &Step::Select(false))?;
            for _ in 0..4 {
                let _may_send = self.read(number);
                self.now += LIMIT;
            }
            let uid = Self::uid(number);
            drop(self.allocator.end_unselected(&uid));
            if self.allocator.routed_block(&uid).is_none() {
                let shown = self.nodes.get(&number).and_then(|live| live.shows);
                prop_assert_eq!(self.allocator.claim(&uid), shown.as_slice());
            }
        }
        Ok(())
    }

    fn step(&mut self, number: u8, step: &Step) -> Result<(), TestCaseError> {
        let name = number.to_string();
        match step {
            Step::Join if !self.nodes.contains_key(&number) => {
                self.nodes.insert(number, Live::default());
                drop(self.allocator.observe(&node(&name, &name), self.now));
            }
            Step::Join => {}
            Step::Leave => {
                self.nodes.remove(&number);
                drop(self.allocator.gone(&name, self.now));
            }
            Step::Foreign(cidr) => {
                if self.nodes.get(&number).is_some_and(|live| live.shows.is_none()) {
                    self.show(number, *cidr);
                    // The worker reads an alias of the VM that the Node does not have.
                    let routed = self.nodes[&number].routed;
                    drop(self.allocator.keep_aliases(&Self::uid(number), routed.as_slice()));
                }
            }
            Step::Pass(cidr, routes, answer) => self.pass(number, (*cidr, *routes, *answer))?,
            Step::Apply => {
                let now = self.now;
                let late = self.nodes.get_mut(&number).filter(|live| live.shows.is_none());
                let late = late.and_then(|live| live.lost.pop());
                if let Some((cidr, _)) = late.filter(|(_, until)| *until > now) {
                    self.show(number, cidr);
                }
            }
            Step::Read => {
                let _may_send = self.read(number);
            }
            Step::Select(is_selected) => {
                if let Some(live) = self.nodes.get_mut(&number) {
                    live.is_unselected = !is_selected;
                    self.tell(number);
                }
            }
            Step::Wait => self.now += LIMIT / 2,
        }
        Ok(())
    }
}

proptest! {
    /// `rule:block-has-one-holder`, `rule:no-block-is-lost`
    #[test]
    fn nothing_leaves_that_another_node_may_have_and_in_the_end_all_is_free(
        source in sources(),
        steps in steps(),
    ) {
        let allocator = source.allocator("10.0.0.0/26", 16);
        let mut world = World { source, allocator, nodes: BTreeMap::new(), now: now() };
        for (number, step) in &steps {
            world.step(*number, step)?;
        }
        world.check_unselected()?;
        for number in 0..6 {
            world.step(number, &Step::Leave)?;
        }
        drop(world.allocator.end_rests(world.now + Duration::from_secs(3600)));
        let state = world.allocator.snapshot();
        prop_assert_eq!(state.pools[0].used, 0);
        let left = (state.pending, state.starved, state.reserved, state.conflicts, state.external);
        prop_assert_eq!(left, (0, 0, 0, 0, 0));
    }
}
