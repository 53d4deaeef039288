//! Hosts controllers: names them, starts them on shared informers with a client of their own
//! each, restarts one that failed, and stops them all before leadership is given back.
//!
//! A controller group implements [`Controller`] in its own crate and is added to the one list in
//! the binary; nothing here knows any of them.

mod context;
mod controller;
mod host;
mod informers;
mod permissions;
mod reachability;
mod supervisor;
#[cfg(test)]
mod testing;

pub use context::Context;
pub use controller::{Controller, Failure, Plan, Runner, Setup, Stopped};
pub use host::{Ended, Host, HostOptions, Planned};
pub use informers::Informers;
pub use permissions::Permission;
pub use reachability::watch_api_server;
