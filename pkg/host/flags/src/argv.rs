//! One pass over argv that turns every spelling pflag knows into `--name=value`, so that a strict
//! parser behind it sees one form only.
//!
//! Rules that need the declarations are settled here: which flags stand without a value, which
//! take the next argument, and what a bundle of short letters means. Undeclared names go
//! through as they are; the parser behind knows the near matches.

use std::iter::Peekable;

use thiserror::Error;

use crate::Kind;

/// The flags with a one-letter form, and their long names.
pub const SHORTHANDS: [(char, &str); 2] = [('h', "help"), ('v', "v")];

/// Argv after normalisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argv {
    /// `--name=value` in the order given; `--name` alone for an undeclared flag without value.
    pub flags: Vec<String>,
    /// Arguments that belong to no flag; empty ones are dropped.
    pub positionals: Vec<String>,
}

/// Why argv cannot be split into flags.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArgvError {
    /// `--=x`, `---x`.
    #[error("bad flag syntax: {0}")]
    Syntax(String),
    /// A flag that requires a value stands last.
    #[error("flag needs an argument: {0}")]
    NeedsValue(String),
    /// An undeclared short letter.
    #[error("unknown shorthand flag: {letter:?} in {argument}{hint}")]
    UnknownShorthand {
        /// The letter.
        letter: char,
        /// The argument it stands in.
        argument: String,
        /// Empty, or a proposal in brackets.
        hint: String,
    },
}

/// Normalises `args` (without the program's name); `kind_of` looks up a declared flag.
pub fn normalise(
    args: impl IntoIterator<Item = String>,
    kind_of: impl Fn(&str) -> Option<Kind>,
) -> Result<Argv, ArgvError> {
    let mut read = Argv::default();
    let mut args = args.into_iter().peekable();
    while let Some(argument) = args.next() {
        if argument == "--" {
            read.positionals.extend(args.filter(|rest| !rest.is_empty()));
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            read.flags.push(long_flag(long, &argument, &mut args, &kind_of)?);
        } else if argument.len() > 1 && argument.starts_with('-') {
            short_flags(&argument, &mut args, &kind_of, &mut read.flags)?;
        } else if !argument.is_empty() {
            read.positionals.push(argument);
        }
    }
    Ok(read)
}

/// A flag name as declared: `_` and `-` are the same.
pub fn canonical_name(name: &str) -> String {
    name.replace('_', "-")
}

fn long_flag<I: Iterator<Item = String>>(
    long: &str,
    argument: &str,
    args: &mut Peekable<I>,
    kind_of: &impl Fn(&str) -> Option<Kind>,
) -> Result<String, ArgvError> {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    if name.is_empty() || name.starts_with('-') {
        return Err(ArgvError::Syntax(argument.to_owned()));
    }
    let name = canonical_name(name);
    match (value, kind_of(&name)) {
        (Some(value), _) => Ok(format!("--{name}={value}")),
        (None, None) => Ok(format!("--{name}")),
        (None, Some(kind)) => {
            let value = value_after(kind, args, || format!("--{name}"))?;
            Ok(format!("--{name}={value}"))
        }
    }
}

/// The value of a flag that has none attached. The next argument is taken whatever it looks like.
fn value_after<I: Iterator<Item = String>>(
    kind: Kind,
    args: &mut Peekable<I>,
    shown: impl Fn() -> String,
) -> Result<String, ArgvError> {
    match kind.bare_value() {
        Some(bare) => Ok(bare.to_owned()),
        None => args.next().ok_or_else(|| ArgvError::NeedsValue(shown())),
    }
}

/// `-v2`, `-v=2`, `-v 2`, `-h`, and bundles of letters whose last one may take a value.
fn short_flags<I: Iterator<Item = String>>(
    argument: &str,
    args: &mut Peekable<I>,
    kind_of: &impl Fn(&str) -> Option<Kind>,
    flags: &mut Vec<String>,
) -> Result<(), ArgvError> {
    let mut letters = argument[1..].chars();
    while let Some(letter) = letters.next() {
        let name = SHORTHANDS.iter().find(|(short, _)| *short == letter).map(|(_, name)| *name);
        let Some((name, kind)) = name.and_then(|name| Some((name, kind_of(name)?))) else {
            return Err(unknown_shorthand(letter, argument, kind_of));
        };
        let rest = letters.as_str();
        let attached = rest.strip_prefix('=').filter(|value| !value.is_empty());
        let value = match (attached, kind.bare_value()) {
            (Some(value), _) => value.to_owned(),
            (None, Some(bare)) => {
                flags.push(format!("--{name}={bare}"));
                continue;
            }
            (None, None) if rest.is_empty() => value_after(kind, args, || format!("-{letter}"))?,
            (None, None) => rest.to_owned(),
        };
        flags.push(format!("--{name}={value}"));
        return Ok(());
    }
    Ok(())
}

/// The commonest slip is one dash in front of a long name.
fn unknown_shorthand(
    letter: char,
    argument: &str,
    kind_of: &impl Fn(&str) -> Option<Kind>,
) -> ArgvError {
    let name = argument[1..].split('=').next().unwrap_or_default();
    let name = canonical_name(name);
    let hint = match kind_of(&name) {
        Some(_) => format!(" (did you mean --{name}?)"),
        None => String::new(),
    };
    ArgvError::UnknownShorthand { letter, argument: argument.to_owned(), hint }
}

#[cfg(test)]
mod tests;
