//! Every claimed CIDR with its owners, ordered so that overlaps are found without a scan of all.
//! Crate-private; the ledger owns it and derives the pools from it.
//!
//! Two CIDRs are nested or disjoint. What overlaps a CIDR is therefore either around it, found by
//! one look-up per prefix length in use, or inside it, which is one contiguous range of the map.

use std::collections::BTreeMap;

use ipnet::IpNet;
use smallvec::SmallVec;

use crate::Family;
use crate::prefix::Prefix;

/// A claimed CIDR. Usually one owner; several after duplicates.
#[derive(Clone, Debug)]
pub(crate) struct Claimed<O> {
    pub(crate) net: IpNet,
    pub(crate) owners: SmallVec<[O; 1]>,
}

/// A prefix in the same order, in less than half of its room: the address by its bytes, highest
/// first, as a number would be aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    family: Family,
    network: [u8; 16],
    length: u8,
}

impl Key {
    fn of(prefix: Prefix) -> Self {
        let Prefix { family, network, length } = prefix;
        Self { family, network: network.to_be_bytes(), length }
    }
}

/// The index of claimed CIDRs. Invariant: no entry without owners, no owner twice in an entry.
#[derive(Clone, Debug)]
pub(crate) struct Claims<O> {
    by_prefix: BTreeMap<Key, Claimed<O>>,
    /// Entries per prefix length, so that only lengths in use are looked up.
    lengths: BTreeMap<(Family, u8), usize>,
}

impl<O: Clone + PartialEq> Claims<O> {
    pub(crate) fn new() -> Self {
        Self { by_prefix: BTreeMap::new(), lengths: BTreeMap::new() }
    }

    /// Adds one owner to a CIDR without host bits.
    pub(crate) fn insert(&mut self, net: IpNet, owner: &O) {
        let prefix = Prefix::of(&net);
        let lengths = &mut self.lengths;
        let claimed = self.by_prefix.entry(Key::of(prefix)).or_insert_with(|| {
            *lengths.entry((prefix.family, prefix.length)).or_default() += 1;
            Claimed { net, owners: SmallVec::new() }
        });
        if !claimed.owners.contains(owner) {
            claimed.owners.push(owner.clone());
        }
    }

    /// Takes one owner away from a CIDR.
    pub(crate) fn remove(&mut self, net: &IpNet, owner: &O) {
        let prefix = Prefix::of(net);
        let Some(claimed) = self.by_prefix.get_mut(&Key::of(prefix)) else { return };
        claimed.owners.retain(|other| other != owner);
        if !claimed.owners.is_empty() {
            return;
        }
        self.by_prefix.remove(&Key::of(prefix));
        let length = (prefix.family, prefix.length);
        if let Some(entries) = self.lengths.get_mut(&length) {
            *entries -= 1;
            if *entries == 0 {
                self.lengths.remove(&length);
            }
        }
    }

    /// Claims around a CIDR, widest first, not counting the CIDR itself.
    pub(crate) fn around(&self, prefix: Prefix) -> impl Iterator<Item = &Claimed<O>> {
        let shorter = (prefix.family, 0)..(prefix.family, prefix.length);
        self.lengths.range(shorter).filter_map(move |(&(_, length), _)| {
            self.by_prefix.get(&Key::of(prefix.widened(length)))
        })
    }

    /// The claim of a CIDR itself and the claims inside it, in address order.
    pub(crate) fn within(&self, prefix: Prefix) -> impl Iterator<Item = &Claimed<O>> {
        let end = Prefix { network: prefix.last(), length: u8::MAX, ..prefix };
        self.by_prefix.range(Key::of(prefix)..=Key::of(end)).map(|(_, claimed)| claimed)
    }
}

#[cfg(test)]
mod tests;
