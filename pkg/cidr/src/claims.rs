//! Every claimed CIDR with its owners, ordered so that overlaps are found without a scan of all.
//! Crate-private; the ledger owns it and derives the pools from it.
//!
//! Two CIDRs are nested or disjoint. What overlaps a CIDR is therefore either around it, found by
//! one look-up per prefix length in use, or inside it, which is one contiguous range of the map.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Deref;

use ipnet::IpNet;

use super::Family;
use super::prefix::Prefix;

/// A claimed CIDR. Usually one owner; several after duplicates.
pub(crate) struct Claimed<'a, O> {
    pub(crate) net: IpNet,
    pub(crate) owners: &'a [O],
}

impl<'a, O> Claimed<'a, O> {
    /// Always some: the keys are of CIDRs.
    fn of((key, owners): (Key, &'a OneOrMore<O>)) -> Option<Self> {
        Some(Self { net: key.prefix().to_net()?, owners })
    }
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

    fn prefix(self) -> Prefix {
        let Self { family, network, length } = self;
        Prefix { family, network: u128::from_be_bytes(network), length }
    }
}

/// The index of claimed CIDRs. Invariant: no entry without owners, no owner twice in an entry.
#[derive(Clone, Debug)]
pub(crate) struct Claims<O> {
    owners: BTreeMap<Key, OneOrMore<O>>,
    /// Entries per prefix length, so that only lengths in use are looked up.
    lengths: BTreeMap<(Family, u8), usize>,
}

impl<O: Clone + PartialEq> Claims<O> {
    pub(crate) fn new() -> Self {
        Self { owners: BTreeMap::new(), lengths: BTreeMap::new() }
    }

    /// Adds one owner to a CIDR without host bits.
    pub(crate) fn insert(&mut self, net: IpNet, owner: &O) {
        let prefix = Prefix::of(&net);
        let owners = self.owners.entry(Key::of(prefix)).or_default();
        if owners.is_empty() {
            *self.lengths.entry((prefix.family, prefix.length)).or_default() += 1;
        }
        if !owners.contains(owner) {
            owners.push(owner.clone());
        }
    }

    /// Takes one owner away from a CIDR.
    pub(crate) fn remove(&mut self, net: &IpNet, owner: &O) {
        let prefix = Prefix::of(net);
        let Some(owners) = self.owners.get_mut(&Key::of(prefix)) else { return };
        let mut others = mem::take(owners).into_vec();
        others.retain(|other| other != owner);
        *owners = others.into();
        if !owners.is_empty() {
            return;
        }
        self.owners.remove(&Key::of(prefix));
        let length = (prefix.family, prefix.length);
        if let Some(entries) = self.lengths.get_mut(&length) {
            *entries -= 1;
            if *entries == 0 {
                self.lengths.remove(&length);
            }
        }
    }

    /// Claims around a CIDR, widest first, not counting the CIDR itself.
    pub(crate) fn around(&self, prefix: Prefix) -> impl Iterator<Item = Claimed<'_, O>> {
        let shorter = (prefix.family, 0)..(prefix.family, prefix.length);
        self.lengths.range(shorter).filter_map(move |(&(_, length), _)| {
            let key = Key::of(prefix.widened(length));
            Claimed::of((key, self.owners.get(&key)?))
        })
    }

    /// The claim of a CIDR itself and the claims inside it, in address order.
    pub(crate) fn within(&self, prefix: Prefix) -> impl Iterator<Item = Claimed<'_, O>> {
        let end = Prefix { network: prefix.last(), length: u8::MAX, ..prefix };
        let inside = self.owners.range(Key::of(prefix)..=Key::of(end));
        inside.filter_map(|(key, owners)| Claimed::of((*key, owners)))
    }
}

/// A list, in no more room than one thing of 18 bytes takes. An empty one is "more".
#[derive(Clone, Debug)]
pub(crate) enum OneOrMore<T> {
    One(T),
    More(Box<[T]>),
}

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self::More(Box::default())
    }
}

impl<T> From<Vec<T>> for OneOrMore<T> {
    fn from(list: Vec<T>) -> Self {
        match <[T; 1]>::try_from(list) {
            Ok([one]) => Self::One(one),
            Err(list) => Self::More(list.into()),
        }
    }
}

impl<T> Deref for OneOrMore<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::More(more) => more,
        }
    }
}

impl<T> OneOrMore<T> {
    pub(crate) fn push(&mut self, item: T) {
        *self = if self.is_empty() {
            Self::One(item)
        } else {
            let mut list = mem::take(self).into_vec();
            list.push(item);
            list.into()
        };
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more.into_vec(),
        }
    }
}

#[cfg(test)]
mod one_or_more_tests {
    use ipnet::IpNet;

    use super::*;

    #[test]
    fn a_list_comes_out_as_it_went_in() {
        for list in [vec![], vec!["a"], vec!["a", "b"]] {
            let kept = OneOrMore::from(list.clone());
            assert_eq!(*kept, *list);
            assert_eq!(kept.into_vec(), list);
        }
        let mut kept = OneOrMore::default();
        assert!(kept.is_empty());
        for (item, list) in [("a", vec!["a"]), ("b", vec!["a", "b"]), ("c", vec!["a", "b", "c"])] {
            kept.push(item);
            assert_eq!(*kept, *list);
        }
    }

    #[test]
    fn one_cidr_takes_no_more_room_than_its_tag_and_alignment_cost() {
        assert!(size_of::<OneOrMore<IpNet>>() <= 24, "{}", size_of::<OneOrMore<IpNet>>());
    }
}

#[cfg(test)]
mod tests;
