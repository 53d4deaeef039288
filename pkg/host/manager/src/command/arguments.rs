//! What the command lines of `plan`, `probe` and `validate` have in common.

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches};

const OUTPUT: &str = "output";
const JSON: &str = "json";

/// What a command line asks for.
pub enum Parsed<Arguments> {
    /// To do the work.
    Run(Arguments),
    /// To print this and to end.
    Print {
        /// What is wrong with it, or help.
        text: String,
        /// It cannot be followed.
        is_error: bool,
    },
}

impl<Arguments> From<Result<Arguments, clap::Error>> for Parsed<Arguments> {
    fn from(parsed: Result<Arguments, clap::Error>) -> Self {
        match parsed {
            Ok(arguments) => Self::Run(arguments),
            Err(error) => {
                let is_error = error.kind() != ErrorKind::DisplayHelp;
                Self::Print { text: error.to_string(), is_error }
            }
        }
    }
}

/// `--name VALUE`.
pub fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// `-o`: how the result is printed, as [`wants_json`] reads it.
pub fn output(help: &'static str) -> Arg {
    option(OUTPUT, "FORMAT", help)
        .short('o')
        .default_value("text")
        .value_parser(PossibleValuesParser::new(["text", JSON]))
}

/// For programs, and not for people.
pub fn wants_json(matches: &ArgMatches) -> bool {
    matches.get_one::<String>(OUTPUT).is_some_and(|format| format == JSON)
}
