//! Commands of the program, such as `probe`: what the binary is told of them, and what they share.
//!
//! | file | holds |
//! |---|---|
//! | `arguments.rs` | [`Parsed`], and the options that several commands have |
//! | `streams.rs` | what a command prints |
//! | `manifests.rs` | files with objects, for `-f` |
//! | `foreign_clients.rs` | clients of servers that no flag of the process names |

mod arguments;
pub mod foreign_clients;
pub mod manifests;
mod streams;

use std::ffi::OsString;
use std::process::ExitCode;

pub use arguments::{Parsed, option, output, wants_json};
pub use streams::{to_stderr, to_stdout, told};

/// A command that a controller group brings along: it does its work and ends.
pub struct Command {
    /// The word after the program's name.
    pub name: &'static str,
    /// For `--help`, in one line.
    pub about: &'static str,
    /// Runs it with the arguments after its name.
    pub start: fn(Program, Vec<OsString>) -> ExitCode,
}

/// The program, as servers know it by its user agent.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Name of the binary.
    pub product: &'static str,
    /// Version of the build.
    pub version: &'static str,
    /// Commit of the build.
    pub commit: &'static str,
}
