//! [`OneOrMore`]: a list that is nearly always of one thing, which then needs no memory of its own.
//! Crate-private; claims and owners are kept in it.

use std::mem;
use std::ops::Deref;

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
mod tests {
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
