//! [`ShardClaim`]: what the lease of a replica says to the other replicas. Written and read by
//! `shard_coordinator.rs`.

use std::collections::BTreeSet;
use std::fmt;

use election::ReplicaLease;
use health::{Claim, View};

/// The prefix of the claim of a replica that may not know all other replicas yet.
const NEW: &str = "new:";

/// The names of the flavours whose kind is served to a replica.
pub(crate) type Kinds = BTreeSet<String>;

/// What stands in the lease of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShardClaim {
    /// It knows all replicas that may be probing.
    pub(crate) settled: bool,
    /// The replicas that share the clusters by its view; empty when it takes no share.
    pub(crate) view: View,
    pub(crate) kinds: Kinds,
}

impl fmt::Display for ShardClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(String::as_str).collect();
        let new = if self.settled { "" } else { NEW };
        write!(f, "{new}{};{}", self.view.join(","), kinds.join(","))
    }
}

impl ShardClaim {
    fn parse(text: &str) -> Self {
        let (text, settled) = text.strip_prefix(NEW).map_or((text, true), |rest| (rest, false));
        let (view, kinds) = text.split_once(';').unwrap_or((text, ""));
        let names = |list: &str| -> Vec<String> {
            list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let view = names(view).into_iter().map(Into::into).collect();
        Self { settled, view, kinds: names(kinds).into_iter().collect() }
    }
}

/// The claim of a lease, and the kinds that are served to its replica. A released lease has only
/// the name of its replica.
pub(crate) fn read(lease: &ReplicaLease) -> (Claim, Kinds) {
    let (replica, says) = match lease.identity.as_str() {
        "" => (lease.says.as_str(), ""),
        holder => (holder, lease.says.as_str()),
    };
    let ShardClaim { settled, view, kinds } = ShardClaim::parse(says);
    (Claim { replica: replica.into(), renewal: lease.renewal, view, settled }, kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_again() {
        let kinds = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let word = |settled, view: &[&str], names: &[&str]| {
            let view = view.iter().map(|&name| name.into()).collect();
            ShardClaim { settled, view, kinds: kinds(names) }
        };
        let rows = [
            (word(true, &["a", "b"], &["kubefed", "tke"]), "a,b;kubefed,tke"),
            (word(false, &["a"], &["tke"]), "new:a;tke"),
            (word(true, &[], &[]), ";"),
        ];
        for (word, text) in rows {
            assert_eq!(word.to_string(), text);
            assert_eq!(ShardClaim::parse(text), word);
        }
        assert_eq!(ShardClaim::parse("a"), word(true, &["a"], &[]));
    }
}
