//! Command-line flags as data: what a flag is, how its text is read, and which controllers a
//! `--controllers` list turns on.
//!
//! Every crate that owns flags declares each as a [`Flag`] of its type and all of them as
//! `pub const FLAGS: &[Spec]`; the command joins the tables, feeds argv through [`argv::normalise`]
//! and its parser, and hands everyone one [`Values`], which [`Values::get`] reads by those
//! constants.
//!
//! Pure: no I/O, no environment, no argument parser.

pub mod argv;
pub mod controllers;
mod flag;
mod spec;
pub mod syntax;
mod value;

pub use flag::{Flag, FlagValue, Values};
pub use kube_api::go::GoDuration;
pub use spec::{Kind, Problem, Spec, Verdict};
pub use syntax::SyntaxError;
pub use syntax::composite::{Gate, NamedCertKey, VersionRequest};
pub use value::Value;
