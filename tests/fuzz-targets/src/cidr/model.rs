//! The naive model of a ledger: it remembers what every owner holds, and asks of every block
//! whether any of it lies in the block. Shares no code with the crate but `IpNet`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cidr::IpNet;

pub(crate) type Owner = u8;

/// One bit per block: set when it is used.
pub(crate) type Bits = u64;

/// The first and last address of a CIDR, and whether it is IPv6.
pub(crate) fn bounds(net: &IpNet) -> (bool, u128, u128) {
    let number = |address| match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    };
    (matches!(net, IpNet::V6(_)), number(net.network()), number(net.broadcast()))
}

pub(crate) fn overlap(a: &IpNet, b: &IpNet) -> bool {
    let ((a_v6, a_first, a_last), (b_v6, b_first, b_last)) = (bounds(a), bounds(b));
    a_v6 == b_v6 && a_first <= b_last && b_first <= a_last
}

/// A pool of at most 64 blocks.
pub(crate) struct ModelPool {
    pub(crate) blocks: Vec<IpNet>,
    pub(crate) cursor: usize,
}

impl ModelPool {
    pub(crate) fn bits(&self, held: &IpNet) -> Bits {
        let bit = |(index, block)| Bits::from(overlap(block, held)) << index;
        self.blocks.iter().enumerate().map(bit).sum()
    }
}

/// The claim of one owner, with the blocks that it uses in every pool.
pub(crate) struct Held {
    pub(crate) cidrs: Vec<IpNet>,
    pub(crate) bits: Vec<Bits>,
}

pub(crate) struct Model {
    pub(crate) pools: Vec<ModelPool>,
    pub(crate) held: BTreeMap<Owner, Held>,
}

impl Model {
    /// The used blocks of a pool.
    pub(crate) fn used(&self, pool: usize) -> Bits {
        self.held.values().fold(0, |used, held| used | held.bits[pool])
    }

    pub(crate) fn hold(&mut self, owner: Owner, cidrs: &[IpNet]) {
        self.held.remove(&owner);
        if cidrs.is_empty() {
            return;
        }
        let taken = |pool: &ModelPool| cidrs.iter().fold(0, |bits, cidr| bits | pool.bits(cidr));
        let bits = self.pools.iter().map(taken).collect();
        self.held.insert(owner, Held { cidrs: cidrs.to_vec(), bits });
    }

    /// The next free block of a pool with `taken` in addition to the claims: its index, and how many used
    /// blocks are passed on the way.
    pub(crate) fn next(&self, pool: usize, taken: &[IpNet]) -> Option<(usize, u128)> {
        let ModelPool { blocks, cursor } = &self.pools[pool];
        let taken = taken.iter().fold(0, |bits, cidr| bits | self.pools[pool].bits(cidr));
        let used = self.used(pool) | taken;
        let free = (0..blocks.len()).find(|step| {
            let index = (cursor + step) % blocks.len();
            used & (1 << index) == 0
        })?;
        Some(((cursor + free) % blocks.len(), free as u128))
    }

    /// One block of every pool with its skips, or nothing at all.
    pub(crate) fn allocate(&mut self, owner: Owner) -> Option<(Vec<IpNet>, Vec<u128>)> {
        if let Some(held) = self.held.get(&owner) {
            return Some((held.cidrs.clone(), Vec::new()));
        }
        let (mut cidrs, mut skips, mut cursors) = (Vec::new(), Vec::new(), Vec::new());
        for pool in 0..self.pools.len() {
            let (index, skipped) = self.next(pool, &cidrs)?;
            cidrs.push(self.pools[pool].blocks[index]);
            skips.push(skipped);
            cursors.push((index + 1) % self.pools[pool].blocks.len());
        }
        for (pool, cursor) in self.pools.iter_mut().zip(cursors) {
            pool.cursor = cursor;
        }
        self.hold(owner, &cidrs);
        Some((cidrs, skips))
    }
}
