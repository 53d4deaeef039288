//! Hosts controllers: names them, starts them on shared informers with a client of their own
//! each, restarts one that failed, and stops them all before leadership is given back.
//!
//! A controller group implements [`Controller`] and [`Runner`] in its own crate and is added to the
//! one list in the binary; nothing here knows any of them.
//!
//! | file | holds |
//! |---|---|
//! | `controller.rs` | [`Controller`], [`Runner`]: the interface of a controller; [`HostOptions`] |
//! | `command.rs` | [`command`]: commands of the program, and what they share |
//! | `context.rs`, `informers.rs` | [`Context`] of a running controller; [`Failure`], and [`retry`] after a failed write |
//! | `run.rs` | [`Run`]: caches that feed a queue, workers, start, audit and stop |
//! | `host.rs` | [`Host`]: starts and stops all controllers |
//! | `supervisor.rs`, `work.rs` | keeps a controller running, reports its health, and shows its page |
//! | `own_threads.rs` | [`OwnThreads`]: threads of a controller with much work |
//! | `permissions.rs` | [`Permission`]: which rights are missing |
//! | `dormancy.rs` | [`dormancy`]: kinds without which a controller has nothing to do |
//! | `reachability.rs` | whether the API server answers |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![doc = ""]
#![doc = include_str!("../EXAMPLE.md")]

pub mod command;
mod context;
mod controller;
pub mod dormancy;
mod host;
mod informers;
mod own_threads;
mod permissions;
mod reachability;
mod run;
mod supervisor;
#[cfg(test)]
mod testing;
mod work;

pub use context::{ClientError, ClientSource, Context, Failure, Settings, StartError, retry};
pub use controller::{
    Activity, Configured, Controller, CrdLabel, HostOptions, Hosted, Placement, Runner, Stopped,
};
pub use host::{Ended, Host};
pub use informers::{Informers, InformersOptions};
pub use own_threads::OwnThreads;
pub use permissions::{Permission, is_allowed};
pub use reachability::watch_api_server;
pub use run::Run;
pub use run::feed;
pub use supervisor::reserve_pages;
