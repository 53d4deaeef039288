//! A real control plane on this machine: etcd and kube-apiserver in a temporary directory, for
//! tests, benchmarks and the demo.
//!
//! A crate apart from `tests`, which depends on the whole product: the demo builds this one alone.
//!
//! | module | part |
//! |---|---|
//! | [`control_plane`] | etcd and kube-apiserver with their certificates and kubeconfigs |
//! | [`pki`] | certificate authorities, and certificates of servers and clients |
//! | [`programs`] | where the programs are |
//! | [`child`], [`watchdog`], [`temp_dir`] | nothing outlives this process, not even SIGKILL of it |
//! | [`ports`] | free loopback ports |
//! | [`mod@poll`], [`stalls`] | waiting, and what a busy machine adds to a wait |
//!
//! Failing is done by panicking with a message: the callers are tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]

pub mod child;
pub mod control_plane;
mod kubeconfig;
pub mod pki;
pub mod poll;
pub mod ports;
pub mod programs;
pub mod stalls;
pub mod temp_dir;
pub mod watchdog;

pub use poll::poll;

use std::time::Duration;

/// How long anything awaited may take before the test fails. Generous: it is only ever used up
/// by a defect, and the machine may be busy with other builds.
pub const PATIENCE: Duration = Duration::from_secs(300);
