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
pub mod syntax;
mod value;

use std::fmt;

pub use flag::{Flag, FlagValue, Values};
pub use kube_api::go::GoDuration;
pub use syntax::SyntaxError;
pub use syntax::composite::{GateSetting, NamedCertKey, VersionRequest};
pub use value::Value;

/// The syntax of a flag's value; [`crate::Value::read`] gives it meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `--f`, `--f=true`, `--f=false`. Takes no separate argument.
    Bool,
    /// 64-bit whole number, Go notation (`0x10`, `0b1`, `1_000`).
    Int,
    /// 32-bit whole number, same notation.
    Int32,
    /// Decimal number.
    Float,
    /// Decimal number that a 32-bit float can hold.
    Float32,
    /// Any text.
    String,
    /// One text of comma-separated CIDRs; unlike a list, a repetition replaces it.
    CidrList,
    /// Go duration, `1h30m`.
    Duration,
    /// IP address; blank stands for all addresses.
    Ip,
    /// CSV list; the first occurrence replaces the default, later ones append.
    Strings,
    /// Comma-separated 32-bit numbers, repeatable like [`Kind::Strings`].
    Int32Slice,
    /// `key=value,…` with CSV quoting, repeatable like [`Kind::Strings`].
    StringMap,
    /// `[component:]Gate=bool,…`, repeatable; later settings of a gate win.
    FeatureGates,
    /// `cert,key[:pattern,…]`, one pair per occurrence.
    NamedCertKeys,
    /// List of `[kube=]MAJOR.MINOR`.
    ComponentVersions,
    /// Byte count such as `64Ki`.
    Quantity,
    /// Log level: a whole number from 0.
    Verbosity,
    /// `pattern=N,…`.
    VModule,
    /// `--version`, `--version=raw`, `--version=vX.Y.Z…`. Takes no separate argument.
    Version,
}

impl Kind {
    /// The type as help shows it; empty for switches.
    pub const fn type_name(self) -> &'static str {
        match self {
            Kind::Bool => "",
            Kind::Int => "int",
            Kind::Int32 => "int32",
            Kind::Float => "float",
            Kind::Float32 => "float32",
            Kind::String | Kind::CidrList => "string",
            Kind::Duration => "duration",
            Kind::Ip => "ip",
            Kind::Strings | Kind::ComponentVersions => "strings",
            Kind::Int32Slice => "int32Slice",
            Kind::StringMap => "stringToString",
            Kind::FeatureGates => "[component:]gate=bool,...",
            Kind::NamedCertKeys => "namedCertKey",
            Kind::Quantity => "quantity",
            Kind::Verbosity => "level",
            Kind::VModule => "pattern=N,...",
            Kind::Version => "version[=true]",
        }
    }

    /// The value of a flag given without one; `None` when the value is required and the next
    /// argument supplies it.
    pub const fn bare_value(self) -> Option<&'static str> {
        match self {
            Kind::Bool | Kind::Version => Some("true"),
            _ => None,
        }
    }
}

/// The effect of a flag on the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagSupport {
    /// Implemented.
    Honoured,
    /// Belongs to a controller or platform that is not hosted here: read, type-checked, and named
    /// in the start-up warning when it was set explicitly.
    Accepted,
    /// Accepted and on its way out upstream: hidden from help, warned about with this text.
    Deprecated(&'static str),
}

/// One flag. All parts are plain text so that tables of them are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Name without dashes in front, words joined by `-`.
    pub name: &'static str,
    /// Help section, lower case; the heading is `<Group> flags:`.
    pub group: &'static str,
    /// Syntax of the value.
    pub kind: Kind,
    /// Default in the syntax of `kind`.
    pub default: &'static str,
    /// Help text: full sentences, no default in it.
    pub help: &'static str,
    /// The effect of setting the flag.
    pub support: FlagSupport,
}

impl Spec {
    /// An implemented flag.
    pub const fn honoured(
        group: &'static str,
        name: &'static str,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, group, kind, default, help, support: FlagSupport::Honoured }
    }

    /// This flag with another support.
    #[must_use]
    pub const fn with_support(self, support: FlagSupport) -> Self {
        Self { support, ..self }
    }
}

/// One broken rule of the command line, to be shown together with all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the flag, without dashes.
    pub flag: String,
    /// The cause and the way out, lower case, no final dot.
    pub message: String,
}

impl Problem {
    /// A problem of `flag` (name without dashes).
    pub fn new(flag: impl Into<String>, message: impl Into<String>) -> Self {
        Self { flag: flag.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}: {}", self.flag, self.message)
    }
}
