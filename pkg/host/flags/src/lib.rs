//! Command-line flags as data: what a flag is, how its text is read, and which controllers a
//! `--controllers` list turns on (rule:flags-as-pflag).
//!
//! Every crate that owns flags declares each as a [`Flag`] of its type and all of them as
//! `pub const FLAGS: &[Spec]`; the command joins the tables, feeds argv through [`argv::normalise`]
//! and its parser, and hands everyone one [`Values`], which [`Values::get`] reads by those
//! constants.
//!
//! Pure: no I/O, no environment, no argument parser.

pub mod argv;
pub mod controllers;
pub mod syntax;

mod flag;
mod spec;
mod value;
mod values;

pub use flag::{Flag, FlagValue};
pub use kube_api::go::GoDuration;
pub use spec::{Kind, Problem, Spec, Verdict};
pub use syntax::SyntaxError;
pub use syntax::gates::Gate;
pub use syntax::pairs::NamedCertKey;
pub use syntax::version::VersionRequest;
pub use value::Value;
pub use values::Values;
