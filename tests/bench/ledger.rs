//! What the clock saw: when each Node appeared, when it got its CIDR, and whether two live Nodes
//! ever held one CIDR. Pure; the clock feeds it and the report reads it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Instant;

use anyhow::Context as _;
use ipnet::Ipv4Net;
use serde::Deserialize;

use crate::blocks::{MASK_SIZE, pool};

/// One line of the watch, with nothing but what the ledger needs.
#[derive(Deserialize)]
pub(crate) struct Change<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Spec<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
}

impl Change<'_> {
    /// Resource version from which a watch continues after this event.
    pub(crate) fn resource_version(&self) -> &str {
        &self.object.metadata.resource_version
    }
}

#[derive(Deserialize, Default)]
struct Spec<'a> {
    #[serde(borrow, default, rename = "podCIDR")]
    pod_cidr: Cow<'a, str>,
}

/// One Node as the clock saw it.
pub(crate) struct Seen {
    /// Name of the Node.
    pub(crate) name: String,
    /// Time of the ADDED event.
    pub(crate) added: Instant,
    /// Time of the first event that showed a CIDR.
    pub(crate) assigned: Option<Instant>,
    /// The CIDR that this event showed.
    pub(crate) block: Option<Ipv4Net>,
}

/// How far the Nodes are, counted over the ledger's whole life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Nodes that appeared.
    pub(crate) added: usize,
    /// Nodes that were seen with a CIDR.
    pub(crate) assigned: usize,
}

/// Everything seen so far.
#[derive(Default)]
pub(crate) struct Ledger {
    nodes: HashMap<String, Seen>,
    owners: HashMap<Ipv4Net, String>,
    counts: Counts,
    duplicates: usize,
}

impl Ledger {
    /// Takes one event in. An error means that the measurement is worthless: the server ended the
    /// watch, or a CIDR is not one block of the pool.
    pub(crate) fn observe(&mut self, change: &Change<'_>, at: Instant) -> anyhow::Result<()> {
        let Metadata { name, uid, .. } = &change.object.metadata;
        match change.kind.as_ref() {
            "ADDED" | "MODIFIED" => {
                if !self.nodes.contains_key(uid.as_ref()) {
                    self.counts.added += 1;
                    let seen =
                        Seen { name: name.to_string(), added: at, assigned: None, block: None };
                    self.nodes.insert(uid.to_string(), seen);
                }
                let cidr = &change.object.spec.pod_cidr;
                if !cidr.is_empty() {
                    self.assign(uid, block(cidr).with_context(|| format!("node {name:?}"))?, at);
                }
            }
            "DELETED" => self.release(uid),
            other => anyhow::bail!("the watch of the clock ended with {other}"),
        }
        Ok(())
    }

    fn assign(&mut self, uid: &str, block: Ipv4Net, at: Instant) {
        let Some(seen) = self.nodes.get_mut(uid) else { return };
        if seen.assigned.is_some() {
            return;
        }
        seen.assigned = Some(at);
        seen.block = Some(block);
        self.counts.assigned += 1;
        if self.owners.insert(block, uid.to_owned()).is_some() {
            self.duplicates += 1;
        }
    }

    fn release(&mut self, uid: &str) {
        let Some(block) = self.nodes.get(uid).and_then(|seen| seen.block) else { return };
        if self.owners.get(&block).is_some_and(|owner| owner == uid) {
            self.owners.remove(&block);
        }
    }

    /// How far the Nodes are.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// How often a Node got a block that a live Node held.
    pub(crate) fn duplicates(&self) -> usize {
        self.duplicates
    }

    /// Every Node ever seen, with its uid, in no order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&str, &Seen)> {
        self.nodes.iter().map(|(uid, seen)| (uid.as_str(), seen))
    }
}

/// The block a CIDR text names. All blocks have one size, so two of them overlap only when equal.
fn block(text: &str) -> anyhow::Result<Ipv4Net> {
    let net: Ipv4Net = text.parse().with_context(|| format!("cannot parse pod CIDR {text:?}"))?;
    anyhow::ensure!(
        net.prefix_len() == MASK_SIZE && net.trunc() == net && pool().contains(&net),
        "pod CIDR {text} is not a /{MASK_SIZE} of {}",
        pool(),
    );
    Ok(net)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observe(ledger: &mut Ledger, kind: &str, uid: &str, cidr: &str) -> anyhow::Result<()> {
        let text = format!(
            r#"{{"type":"{kind}","object":{{"metadata":{{"name":"n-{uid}","uid":"{uid}"}},
               "spec":{{"podCIDR":"{cidr}"}}}}}}"#
        );
        ledger.observe(&serde_json::from_str(&text).unwrap(), Instant::now())
    }

    #[test]
    fn a_node_is_assigned_once_however_many_events_show_its_cidr() {
        let mut ledger = Ledger::default();
        observe(&mut ledger, "ADDED", "a", "").unwrap();
        observe(&mut ledger, "MODIFIED", "a", "10.0.0.0/26").unwrap();
        observe(&mut ledger, "MODIFIED", "a", "10.0.0.0/26").unwrap();
        assert_eq!(ledger.counts(), Counts { added: 1, assigned: 1 });
        assert_eq!(ledger.duplicates(), 0);
    }

    #[test]
    fn two_live_nodes_with_one_cidr_are_a_duplicate() {
        let mut ledger = Ledger::default();
        observe(&mut ledger, "ADDED", "a", "10.0.7.0/26").unwrap();
        observe(&mut ledger, "ADDED", "b", "10.0.7.0/26").unwrap();
        assert_eq!(ledger.duplicates(), 1);
    }

    #[test]
    fn the_cidr_of_a_deleted_node_may_be_given_again() {
        let mut ledger = Ledger::default();
        observe(&mut ledger, "ADDED", "a", "10.0.7.0/26").unwrap();
        observe(&mut ledger, "DELETED", "a", "10.0.7.0/26").unwrap();
        observe(&mut ledger, "ADDED", "b", "10.0.7.0/26").unwrap();
        assert_eq!(ledger.duplicates(), 0);
    }

    #[test]
    fn a_cidr_that_is_no_block_of_the_pool_spoils_the_run() {
        for cidr in ["10.0.0.0/16", "10.0.0.1/26", "192.168.0.0/26", "fd00::/64", "x"] {
            assert!(observe(&mut Ledger::default(), "ADDED", "a", cidr).is_err(), "{cidr}");
        }
    }

    #[test]
    fn an_error_event_spoils_the_run() {
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410}}"#;
        let change = serde_json::from_str(gone).unwrap();
        assert!(Ledger::default().observe(&change, Instant::now()).is_err());
    }
}
