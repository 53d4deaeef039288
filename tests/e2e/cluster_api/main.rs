//! Cluster API's kinds and the controllers of them, on a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells on stdout what it has counted"
)]

mod accounts;
mod aws_account_steps;
mod aws_accounts;
mod aws_balancers;
mod aws_clusterctl;
mod aws_contracts;
mod aws_crashes;
mod aws_crowd;
mod aws_every_call;
mod aws_identities;
mod aws_leaks;
mod aws_life;
mod aws_moved;
mod aws_obstacles;
mod aws_ownership;
mod aws_ownership_cases;
mod aws_pace;
mod aws_plan_only;
mod aws_provider_mode;
mod aws_recording;
mod aws_replicas;
mod aws_stage;
mod aws_sweeps;
mod aws_upstream;
mod birth;
mod both_groups;
mod core_clusterctl;
mod core_contract;
mod core_crds;
mod core_older;
mod core_rights;
mod core_stage;
mod core_topology;
mod core_upstream;
mod death;
mod dialects;
mod printing;
mod prometheus;
mod refusals;
mod restarts;
mod scene;
mod troubles;
