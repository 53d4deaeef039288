//! The strict parser after the normalising pass: clap with our flag specifications, and with the error
//! texts of kube-controller-manager.

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use flags::{Spec, Value};

/// One flag as it was given: name and text.
pub(super) type Occurrence = (&'static str, String);

/// Splits `--name=value` arguments into the occurrences of declared flags.
pub(super) fn occurrences(
    specs: &[&'static Spec],
    flags: Vec<String>,
) -> Result<Vec<Occurrence>, String> {
    let mut matches =
        command(specs).try_get_matches_from(flags).map_err(|error| in_our_words(&error))?;
    let mut given = Vec::new();
    for spec in specs {
        if let Some(texts) = matches.remove_many::<String>(spec.name) {
            given.extend(texts.map(|text| (spec.name, text)));
        }
    }
    Ok(given)
}

fn command(specs: &[&'static Spec]) -> Command {
    Command::new("flags")
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(specs.iter().map(|spec| argument(spec)))
}

fn argument(spec: &'static Spec) -> Arg {
    Arg::new(spec.name)
        .long(spec.name)
        .num_args(1)
        .require_equals(true)
        .action(ArgAction::Append)
        .value_parser(ValueParser::new(move |text: &str| checked(spec, text)))
}

/// Lets clap stop at the first bad value; the typed value is made later, from all occurrences.
fn checked(spec: &'static Spec, text: &str) -> Result<String, String> {
    match Value::read(spec.kind, text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => {
            Err(format!("invalid argument {text:?} for \"--{}\" flag: {error}", spec.name))
        }
    }
}

fn in_our_words(error: &clap::Error) -> String {
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(error),
        ErrorKind::ValueValidation => match std::error::Error::source(error) {
            Some(reason) => reason.to_string(),
            None => first_line(error),
        },
        _ => first_line(error),
    }
}

fn unknown(error: &clap::Error) -> String {
    let shown = text(error.get(ContextKind::InvalidArg)).unwrap_or_default();
    let shown = shown.split('=').next().unwrap_or_default();
    let name = shown.trim_start_matches('-');
    if let Some(reason) = reason_of_removal(name) {
        return format!("unknown flag: {shown} (kube-controller-manager removed it: {reason})");
    }
    let escaped = shown.escape_debug();
    match text(error.get(ContextKind::SuggestedArg)) {
        Some(near) => format!("unknown flag: {escaped} (did you mean {near}?)"),
        None => format!("unknown flag: {escaped}"),
    }
}

fn text(context: Option<&ContextValue>) -> Option<&str> {
    match context {
        Some(ContextValue::String(text)) => Some(text),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
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
pub(super) fn reason_of_removal(name: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(removed, _)| *removed == name).map(|(_, reason)| *reason)
}

#[cfg(test)]
pub(super) fn removed_names() -> impl Iterator<Item = &'static str> {
    REMOVED.iter().map(|(name, _)| *name)
}
