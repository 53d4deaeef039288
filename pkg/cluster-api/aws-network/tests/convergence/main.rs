//! Whole clusters, made, changed and deleted on a naive model of AWS, `cloud_double::Cloud`, with every write as a
//! point of failure.
//!
//! | module | part |
//! |---|---|
//! | `driver` | carries out a reconciliation on it, with faults; no write names what is not ours |
//! | `ownership` | who a resource belongs to, and what is done to it |
//! | `budgets` | how many calls it takes, and what it leads to |
//! | `crash_points`, `scenes` | each write of a create and a delete, with each fault |
//! | `explored` | each two writes, with each two faults |
//! | `plans` | crashes with an old memory, specs there and back, deletions in a creation, at each write |
//! | `forecasts` | what would be written is what is written |
//! | `histories` | random specs, faults, stale reads and refusals |
//! | `states` | states that calls of others can lead to, with a second cluster of the same name |
//! | `mirrored` | specs with the ids of what was made |
//! | `listeners` | additional listeners of a network load balancer |
//! | `secondary` | the secondary load balancer |
//! | `dual_stack` | VPCs with IPv6 |
//! | `vpc_cidrs` | VPCs with several CIDRs |
//! | `edge` | subnets in local zones and wavelength zones |
//! | `regional` | regional NAT gateways: refusals, growth, exchange |
//! | `policies`, `drift`, `adoption`, `foreign`, `refused` | what else must hold |
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a table of results is shown with --nocapture")]

mod adoption;
mod budgets;
mod crash_points;
mod drift;
mod driver;
mod dual_stack;
mod edge;
mod explored;
mod forecasts;
mod foreign;
mod histories;
mod listeners;
mod mirrored;
mod ownership;
mod plans;
mod policies;
mod refused;
mod regional;
mod scenes;
mod secondary;
mod states;
mod vpc_cidrs;
