//! Any sequence of operations: a ledger and the naive model do the same operations and must report and
//! hold the same after each.

use cidr::{Change, IpNet, Ledger, Pool};

use super::model::{Bits, Model, ModelPool, Owner, overlap};
use super::script::{self, Operation};

/// Reads the bytes as pools and operations. Panics where the ledger and the model part.
pub fn matches_the_model(data: &[u8]) {
    let [layout, one, two, script @ ..] = data else { return };
    let pools = script::pools(*layout, [*one, *two]);
    let mut pair = Pair::new(&pools);
    for (operation, bytes) in script::operations(&pools, script).zip(script.chunks(6)) {
        pair.perform(operation);
        pair.agree(&script::cidr(&pools, bytes));
    }
    pair.agree_on_every_block(&pair.ledger);
    pair.agree_on_every_block(&pair.with_late_pools());
}

struct Pair {
    ledger: Ledger<Owner>,
    model: Model,
    trace: Vec<Operation>,
}

impl Pair {
    fn new(pools: &[Pool]) -> Self {
        let naive = |pool: &Pool| ModelPool {
            blocks: pool.cidr().subnets(pool.mask()).unwrap().collect(),
            cursor: 0,
        };
        let model = Model {
            pools: pools.iter().map(naive).collect(),
            held: std::collections::BTreeMap::new(),
        };
        Self { ledger: Ledger::new(pools.to_vec()), model, trace: Vec::new() }
    }

    fn used(&self) -> Vec<Bits> {
        (0..self.model.pools.len()).map(|pool| self.model.used(pool)).collect()
    }

    /// Does one operation on both and compares what they answer.
    fn perform(&mut self, operation: Operation) {
        let before = self.used();
        self.trace.push(operation);
        let change = match &self.trace[self.trace.len() - 1] {
            Operation::Allocate(owner) => {
                let expected = self.model.allocate(*owner);
                let given = self.ledger.allocate(owner);
                assert_eq!(given.is_ok(), expected.is_some(), "{given:?}");
                let Ok(given) = given else { return };
                assert_eq!(Some((given.cidrs, given.skipped)), expected);
                given.change
            }
            Operation::Occupy(owner, cidrs) => {
                let occupied = self.ledger.occupy(owner, cidrs);
                let cidrs: Vec<IpNet> = cidrs.iter().map(IpNet::trunc).collect();
                self.model.hold(*owner, &cidrs);
                let conflicts = occupied.conflicts.iter().map(|c| (c.mine, c.other, c.theirs));
                assert_eq!(sorted(conflicts), sorted(self.conflicts(*owner, &cidrs)));
                assert_eq!(occupied.external, self.externals(&cidrs));
                occupied.change
            }
            Operation::Release(owner) => {
                self.model.hold(*owner, &[]);
                self.ledger.release(owner)
            }
        };
        assert_eq!(change, difference(&before, &self.used()));
    }

    fn conflicts(&self, owner: Owner, cidrs: &[IpNet]) -> Vec<(IpNet, Owner, IpNet)> {
        let others = |mine: &IpNet| {
            let mine = *mine;
            let found = self.overlapping(&mine).into_iter();
            found.filter(move |(o, _)| *o != owner).map(move |(o, theirs)| (mine, o, theirs))
        };
        cidrs.iter().flat_map(others).collect()
    }

    fn overlapping(&self, cidr: &IpNet) -> Vec<(Owner, IpNet)> {
        let mut found = Vec::new();
        for (owner, held) in &self.model.held {
            let overlapping = held.cidrs.iter().filter(|theirs| overlap(theirs, cidr));
            found.extend(overlapping.map(|theirs| (*owner, *theirs)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn externals(&self, cidrs: &[IpNet]) -> Vec<IpNet> {
        let inside = |cidr: &IpNet| self.model.pools.iter().any(|pool| pool.bits(cidr) != 0);
        cidrs.iter().filter(|cidr| !inside(cidr)).copied().collect()
    }

    /// Compares ledger and model: all claims, and the claims of one CIDR.
    fn agree(&self, cidr: &IpNet) {
        for (index, pool) in self.ledger.pools().iter().enumerate() {
            assert_eq!(pool.used(), u128::from(self.model.used(index).count_ones()));
            assert_eq!(pool.free() + pool.used(), self.model.pools[index].blocks.len() as u128);
            let next = pool.peek().map(|found| (found.index, found.skipped));
            let expected = self.model.next(index, &[]);
            assert_eq!(next, expected.map(|(index, skipped)| (index as u128, skipped)));
        }
        assert_eq!(sorted(self.ledger.overlapping(cidr)), self.overlapping(cidr));
        assert_eq!(self.ledger.len(), self.model.held.len());
        for (owner, held) in &self.model.held {
            assert_eq!(self.ledger.claim(owner), Some(&*held.cidrs));
        }
    }

    /// Rebuilds a ledger by adding the pools after the claims (`rule:claims-outlive-pools`).
    fn with_late_pools(&self) -> Ledger<Owner> {
        let mut ledger = self.ledger.clone();
        let pools = ledger.pools().to_vec();
        ledger.remove_pools(0..pools.len());
        ledger.add_pools(pools);
        ledger
    }

    /// Asks every block of every pool whether it was used, by using it in a copy.
    fn agree_on_every_block(&self, ledger: &Ledger<Owner>) {
        for (index, pool) in ledger.pools().iter().enumerate() {
            let mut probe = pool.clone();
            let used = self.model.used(index);
            for (bit, block) in self.model.pools[index].blocks.iter().enumerate() {
                assert_eq!(probe.occupy(block) == 0, used & (1 << bit) != 0, "{block}");
            }
        }
    }
}

/// A divergence is of little use without the way to it.
impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("pools: {:?}", self.ledger.pools());
            self.trace.iter().for_each(|operation| eprintln!("{operation:?}"));
        }
    }
}

fn difference(before: &[Bits], after: &[Bits]) -> Change {
    let count = |from: &[Bits], to: &[Bits]| {
        from.iter().zip(to).map(|(from, to)| u128::from((to & !from).count_ones())).collect()
    };
    Change { occupied: count(before, after), freed: count(after, before) }
}

fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_unstable();
    items
}
