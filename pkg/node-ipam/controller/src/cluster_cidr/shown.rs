//! [`Facts`]: what is known of a ClusterCIDR, and how its status says it.

use jiff::Timestamp;

use super::plan::SpecError;
use super::status::{ClusterCidrStatus, Condition, RangeStatus};
use crate::allocator::{Holding, RangeUse};

/// What is known of a ClusterCIDR.
#[derive(Debug)]
pub(super) struct Facts {
    /// What is wrong with it.
    pub(super) error: Option<SpecError>,
    /// Its deletion was asked for, and so many Nodes have addresses of it.
    pub(super) terminating: Option<Holding>,
    /// How full its ranges are; none when something is wrong with it.
    pub(super) ranges: Vec<RangeUse>,
    /// Of its spec.
    pub(super) generation: i64,
}

impl Facts {
    /// Says all of it, and takes nothing else away.
    pub(super) fn publish(&self, status: &mut ClusterCidrStatus, now: Timestamp) {
        for (kind, holds, reason, message) in
            [self.ready(), self.exhausted(), self.in_deletion(), self.invalid()]
        {
            let fact = Condition {
                kind: kind.to_owned(),
                status: if holds { "True" } else { "False" }.to_owned(),
                reason: reason.to_owned(),
                message,
                observed_generation: self.generation,
                ..Condition::default()
            };
            status.state(fact, now);
        }
        let number = |blocks: u128| i64::try_from(blocks).unwrap_or(i64::MAX);
        let ranges = self.ranges.iter().map(|range| RangeStatus {
            cidr: cidr::canonical(&range.cidr),
            total: number(range.blocks),
            used: number(range.used),
        });
        status.families = ranges.collect();
    }

    fn ready(&self) -> Fact {
        if self.terminating.is_some() {
            return ("Ready", false, "Terminating", "it gives out nothing more".to_owned());
        }
        match &self.error {
            Some(error) => ("Ready", false, "Invalid", error.to_string()),
            None => ("Ready", true, "Ready", String::new()),
        }
    }

    fn exhausted(&self) -> Fact {
        let full = self.ranges.iter().find(|range| range.used >= range.blocks);
        match full {
            Some(range) => {
                let message = format!("{} has no free block", cidr::canonical(&range.cidr));
                ("Exhausted", true, "NoFreeBlock", message)
            }
            None => ("Exhausted", false, "BlocksLeft", String::new()),
        }
    }

    fn in_deletion(&self) -> Fact {
        let message = match self.terminating {
            None => return ("Terminating", false, "NotDeleted", String::new()),
            Some(Holding::By(1)) => "1 Node has addresses of it; it goes with that Node".to_owned(),
            Some(Holding::By(nodes)) => {
                format!("{nodes} Nodes have addresses of it; it goes with the last of them")
            }
            Some(Holding::Nobody | Holding::Unknown) => String::new(),
        };
        ("Terminating", true, "Deleted", message)
    }

    fn invalid(&self) -> Fact {
        match &self.error {
            Some(error) => ("Invalid", true, "InvalidClusterCIDR", error.to_string()),
            None => ("Invalid", false, "Valid", String::new()),
        }
    }
}

/// Type, whether it holds, reason, message.
type Fact = (&'static str, bool, &'static str, String);

#[cfg(test)]
mod tests;
