//! Health of member clusters: TKEStack's `Cluster` and `Machine`, and KubeFed's `KubeFedCluster`.
//!
//! The rules that code and tests cite stand in `RULES.md`.

pub mod api;
pub mod engine;
