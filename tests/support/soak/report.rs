//! The counts of one scene.

use std::time::Duration;

use serde_json::{Value, json};

/// The result of one contender in one scene.
#[derive(Debug)]
pub struct Report {
    /// The scene's.
    pub seed: u64,
    /// `product` or `stock`.
    pub contender: &'static str,
    /// Nodes whose life ended while there were faults. A part of them lives for an instant.
    pub nodes: usize,
    /// Number of Nodes that got a block.
    pub served: usize,
    /// Blocks that two living Nodes had at once, in words.
    pub doubled: Vec<String>,
    /// PATCHes that could have made that happen, in words.
    pub risky: Vec<String>,
    /// Nodes without a block long after the faults.
    pub forgotten: usize,
    /// Blocks still in use when all Nodes were gone; none when that cannot be read.
    pub leaked: Option<f64>,
    /// Processes of the product that panicked, or ended with another exit code than their end explains, in words.
    pub bad_ends: Vec<String>,
    /// All terms of leadership.
    pub terms: Vec<Term>,
}

/// One term of leadership.
#[derive(Debug)]
pub struct Term {
    /// Time from the lease to the first PATCH of a Node; `None` without a PATCH.
    pub to_first_patch: Option<Duration>,
    /// Kind of the end of the term.
    pub end: &'static str,
}

impl Report {
    /// Served of those that lived.
    pub fn share(&self) -> f64 {
        let as_number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        as_number(self.served) / as_number(self.nodes.max(1))
    }

    /// The violated promises, as text; empty when all are kept.
    pub fn faults(&self) -> Vec<String> {
        let mut faults =
            [self.doubled.as_slice(), self.risky.as_slice(), self.bad_ends.as_slice()].concat();
        if self.forgotten > 0 {
            faults.push(format!("{} Nodes were forgotten", self.forgotten));
        }
        if let Some(leaked) = self.leaked.filter(|leaked| *leaked != 0.0) {
            faults.push(format!("{leaked} blocks were leaked"));
        }
        faults
    }

    /// One line for machines.
    pub fn json(&self) -> Value {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let terms: Vec<_> = self
            .terms
            .iter()
            .map(|term| {
                json!({"first_patch_ms": term.to_first_patch.map(milliseconds), "end": term.end})
            })
            .collect();
        json!({
            "seed": self.seed, "contender": self.contender, "nodes": self.nodes,
            "served": self.served, "share": self.share(), "doubled": self.doubled.len(),
            "risky": self.risky.len(), "forgotten": self.forgotten, "leaked": self.leaked,
            "bad_ends": self.bad_ends.len(), "terms": terms,
        })
    }
}
