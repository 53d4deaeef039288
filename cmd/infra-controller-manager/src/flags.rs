//! The command line: all flags, how argv becomes [`Values`], and what is refused or warned about
//! before anything else happens. Manifests of kube-controller-manager start this program unchanged:
//! every flag of its 1.36 parses, in every spelling of pflag, with its default.
//!
//! [`argv`] normalises the spellings; [`Values`] reads what it leaves, with the error texts of
//! kube-controller-manager.
//!
//! `main` calls [`parse`], prints or runs, then [`validate()`] and [`warnings`]. Nothing here does
//! network or file I/O.

mod help;
mod rates;
pub mod table;
mod validate;

use std::ffi::OsString;
use std::fmt;

use flags::argv::{self, Argv};
use flags::controllers::Known;
use flags::{Spec, Value, Values, VersionRequest};

pub use super::build::{VersionInfo, reported_version};
pub use rates::{election_config, event_rate, label_values, own_rates, tls_choice, work_rate};
pub use rates::{features, has_alpha_logging, has_flagz, has_statusz, release_on_exit};
pub use validate::{validate, warnings};

use help::{Help, Stream};
use table::generic::{self, HELP};

/// A command line that was read.
pub enum Parsed {
    /// Run with these settings, once [`validate()`] finds nothing.
    Run(Values),
    /// Write this, final line break included, to standard output and exit 0.
    Print(String),
}

/// A command line that cannot be read. `Display` is the whole text for standard error: usage with
/// all flag groups, a blank line, one line with the error; of an argument that is no flag that line
/// alone, as kube-controller-manager does. Exit code 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    usage: String,
    message: String,
}

impl UsageError {
    /// The one error line, without the usage text.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.usage.is_empty() {
            return write!(f, "Error: {}; see --help", self.message);
        }
        write!(f, "{}\nError: {}", self.usage, self.message)
    }
}

impl std::error::Error for UsageError {}

/// Reads the arguments as [`std::env::args_os`] gives them, the program's name first.
///
/// `controller_flags` are the tables of the hosted controllers; together with [`table::GROUPS`]
/// they are all flags there are.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    controller_flags: &[&'static [Spec]],
    controllers: &Known,
    version: &VersionInfo,
) -> Result<Parsed, UsageError> {
    let specs: Vec<&'static Spec> =
        table::GROUPS.iter().chain(controller_flags).flat_map(|group| group.iter()).collect();
    let mut args: Vec<OsString> = args.into_iter().collect();
    let all = args.iter_mut().find(|argument| *argument == "--help=all");
    let all = all.map(|argument| *argument = "--help".into()).is_some();
    let help = Help { specs: &specs, controllers, product: version.product, all };
    read(args, &specs, &help, version).map_err(|bad| {
        let (usage, message) = match bad {
            Bad::Flag(message) => (help.usage(help::terminal_width(Stream::Stderr)), message),
            Bad::Stray(message) => (String::new(), message),
        };
        UsageError { usage, message: message.replace(['\n', '\r'], " ") }
    })
}

/// A command line that cannot be read.
enum Bad {
    /// With a flag: the usage tells those that there are.
    Flag(String),
    /// With something that is no flag.
    Stray(String),
}

impl From<String> for Bad {
    fn from(message: String) -> Self {
        Self::Flag(message)
    }
}

fn read(
    args: impl IntoIterator<Item = OsString>,
    specs: &[&'static Spec],
    help: &Help<'_>,
    version: &VersionInfo,
) -> Result<Parsed, Bad> {
    let args = args.into_iter().skip(1).map(text).collect::<Result<Vec<String>, String>>()?;
    let kind_of = |name: &str| specs.iter().find(|spec| spec.name == name).map(|spec| spec.kind);
    let Argv { flags, positionals } =
        argv::normalise(args, kind_of).map_err(|error| error.to_string())?;
    let given = occurrences(specs, &flags)?;
    let values =
        Values::from_given(specs.iter().copied(), given).map_err(|problem| problem.to_string())?;
    if values.get(&HELP) {
        return Ok(Parsed::Print(help.full(help::terminal_width(Stream::Stdout))));
    }
    if !positionals.is_empty() {
        let product = version.product;
        let message = format!("{product:?} does not take any arguments, got {positionals:?}");
        return Err(Bad::Stray(message));
    }
    match values.get(&generic::VERSION) {
        VersionRequest::No => Ok(Parsed::Run(values)),
        VersionRequest::Print => Ok(Parsed::Print(version.line())),
        VersionRequest::Raw => Ok(Parsed::Print(version.raw())),
        VersionRequest::Override(wanted) => match version.check_override(&wanted) {
            Ok(()) => Ok(Parsed::Run(values)),
            Err(message) => Err(Bad::Flag(message)),
        },
    }
}

fn text(argument: OsString) -> Result<String, String> {
    argument.into_string().map_err(|raw| format!("argument {} is not valid UTF-8", raw.display()))
}

/// One flag as it was given: name and text.
type Occurrence = (&'static str, String);

/// Splits `--name=value` arguments into the occurrences of declared flags. The first one that cannot be
/// read ends it; typed values are made later, from all occurrences.
fn occurrences(specs: &[&'static Spec], flags: &[String]) -> Result<Vec<Occurrence>, String> {
    let occurrence = |flag: &String| {
        let flag = flag.trim_start_matches('-');
        let (name, text) = flag.split_once('=').unwrap_or((flag, ""));
        let spec = specs.iter().find(|spec| spec.name == name);
        let spec = spec.ok_or_else(|| unknown(name, specs))?;
        Value::read(spec.kind, text)
            .map_err(|error| format!("invalid argument {text:?} for \"--{name}\" flag: {error}"))?;
        Ok((spec.name, text.to_owned()))
    };
    flags.iter().map(occurrence).collect()
}

/// How much alike two names are, at least, for one to be proposed instead of the other.
const NEAR: f64 = 0.7;

fn unknown(name: &str, specs: &[&'static Spec]) -> String {
    if let Some(reason) = reason_of_removal(name) {
        return format!("unknown flag: --{name} (kube-controller-manager removed it: {reason})");
    }
    let likeness = specs.iter().map(|spec| (strsim::jaro(name, spec.name), spec.name));
    let near = likeness.filter(|(likeness, _)| *likeness > NEAR);
    let near = near.max_by(|(one, _), (other, _)| one.total_cmp(other));
    let hint = near.map_or_else(String::new, |(_, near)| format!(" (did you mean --{near}?)"));
    format!("unknown flag: --{}{hint}", name.escape_debug())
}

const SERVING: &str = "the insecure port was removed; use --secure-port and --bind-address";
const LOGGING: &str = "logs go to standard error; redirect them there";
const TAINTS: &str = "evictions are by taint; set tolerationSeconds on pods";
const UNUSED: &str = "it had no effect; leave it out";

const REMOVED: [(&str, &str); 17] = [
    ("address", SERVING),
    ("port", SERVING),
    ("pod-eviction-timeout", TAINTS),
    ("enable-taint-manager", TAINTS),
    ("logtostderr", LOGGING),
    ("log-dir", LOGGING),
    ("log-file", LOGGING),
    ("alsologtostderr", LOGGING),
    ("stderrthreshold", LOGGING),
    ("skip-headers", LOGGING),
    ("one-output", LOGGING),
    ("add-dir-header", LOGGING),
    ("deleting-pods-qps", UNUSED),
    ("deleting-pods-burst", UNUSED),
    ("register-retry-count", UNUSED),
    ("experimental-cluster-signing-duration", "use --cluster-signing-duration"),
    ("deployment-controller-sync-period", UNUSED),
];

/// Advice about a flag that kube-controller-manager removed.
fn reason_of_removal(name: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(removed, _)| *removed == name).map(|(_, reason)| *reason)
}

#[cfg(test)]
fn removed_names() -> impl Iterator<Item = &'static str> {
    REMOVED.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests;
