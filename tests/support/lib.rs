//! Support for the end-to-end tests: a real control plane, the product as a child process, nodes
//! and their history, and a proxy that breaks things between the product and the API server.
//!
//! Nothing here imitates Kubernetes. A test reads as a story:
//! ```no_run
//! # async fn story() {
//! use tests::{Process, Observer, cluster, mk_node};
//!
//! let cluster = cluster().await;                       // exclusive, clean
//! let client = cluster.client().await;
//! let nodes = Observer::start(&client).await;          // sees every change from here on
//! let manager = Process::with_kubeconfig(&cluster.manager_kubeconfig())
//!     .args(["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"])
//!     .start();
//! mk_node("a").create(&client).await;
//! nodes.until("node a has a CIDR", |now| now.cidrs("a").len() == 1).await;
//! drop(manager);
//! tests::assert_never_shared(&nodes.history(), &[]);
//! # }
//! ```
//!
//! | module | part |
//! |---|---|
//! | [`control_plane`] | etcd and kube-apiserver with their certificates and kubeconfigs |
//! | [`cluster`](mod@cluster) | hands the at most two control planes of a test process to one test at a time |
//! | [`kubectl`], [`dynamic`] | a control plane with our CRDs, kubectl, and the API of objects of whatever kind |
//! | [`member`] | member clusters, and accounts at them |
//! | [`cluster_api_core`], [`clusterctl`] | Cluster API's own core and command |
//! | [`planted`] | secrets that no program may show, the product included |
//! | [`pool`] | what is lent from one test to the next |
//! | [`allocator`], [`vms`] | where the product takes pod CIDRs from, and the VMs of a cloud that has them |
//! | [`process`] | the product: start, await log lines and exit, signals, metrics |
//! | [`nodes`], [`observer`], [`history`], [`node_events`] | make nodes, watch them, check what was seen |
//! | [`fault_proxy`] | records requests; loses, delays, holds, falsifies answers |
//! | [`mod@poll`] | waiting for what nothing announces |
//! | [`threads`] | stops single threads of a child process |
//! | [`stored_before`] | objects older than the rules of their schemas |
//! | [`stalls`] | what a busy machine adds to a time that is promised |
//! | [`usage`] | what a process costs |
//! | [`seed`] | seeds of what a test draws |
//! | [`prometheus_server`] | a real Prometheus, and what the dashboards ask it |
//! | [`churn`], [`soak`] | Nodes that come and go; two replicas under all faults at once |
//! | [`moto`], [`aws_proxy`] | an emulation of AWS, and what makes it as strict and as unreliable as AWS |
//! | [`aws_totals`] | how much there is of everything in a region |
//! | [`child`], [`watchdog`] | child processes that never outlive us, not even after SIGKILL |
//!
//! Failing is done by panicking with a message that says what was awaited and what was there
//! instead: the callers are tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]

pub mod allocator;
pub mod aws_proxy;
pub mod aws_totals;
pub mod churn;
pub mod cluster;
pub mod cluster_api_core;
pub mod clusterctl;
pub mod dynamic;
pub mod fault_proxy;
pub mod history;
pub mod kubectl;
mod log_lines;
pub mod member;
pub mod metrics;
pub mod moto;
pub mod node_events;
pub mod nodes;
pub mod observer;
pub mod planted;
pub mod pool;
pub mod process;
pub mod programs;
pub mod prometheus_server;
pub mod seed;
pub mod soak;
pub mod stored_before;
pub mod threads;
pub mod usage;
pub mod vms;

pub use allocator::Allocator;
pub use cluster::{Cluster, cluster};
pub use control_plane::{ControlPlane, Options as ControlPlaneOptions};
pub use fault_proxy::{Cut, Fault, FaultProxy, Match, Wire};
pub use history::{assert_never_shared, assert_patches_end, assert_patches_never_share};
pub use local_control_plane::{
    PATIENCE, child, control_plane, pki, poll, ports, stalls, temp_dir, watchdog,
};
pub use nodes::{create_nodes, delete_nodes, mk_node};
pub use observer::Observer;
pub use poll::eventually;
pub use process::Process;
pub use stalls::Stopwatch;
pub use vms::Vms;
