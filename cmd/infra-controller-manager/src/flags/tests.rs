//! The whole command line, from argv to problems and warnings.

mod help;
mod kubeadm;
mod refused;
mod stock_flags;
mod syntax;
mod tables;
mod warned;

use super::*;
use crate::controllers::ALL;
use crate::flags::table::generic;
use crate::settings;

const VERSION: VersionInfo = VersionInfo {
    product: "infra-controller-manager",
    version: "v0.1.0",
    commit: "0123456789abcdef",
    rustc: "1.95.0",
};

fn parsed(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, UsageError> {
    let program = OsString::from("infra-controller-manager");
    let args = std::iter::once(program).chain(args);
    parse(args, &settings::controller_flags(ALL), &settings::known(ALL).unwrap(), &VERSION)
}

fn read(args: &[&str]) -> Result<Parsed, UsageError> {
    parsed(args.iter().map(OsString::from))
}

fn values(args: &[&str]) -> Values {
    match read(args) {
        Ok(Parsed::Run(values)) => values,
        Ok(Parsed::Print(text)) => panic!("{args:?} printed {text}"),
        Err(error) => panic!("{args:?} was refused: {}", error.message()),
    }
}

fn printed(args: &[&str]) -> String {
    match read(args) {
        Ok(Parsed::Print(text)) => text,
        Ok(Parsed::Run(_)) => panic!("{args:?} would run"),
        Err(error) => panic!("{args:?} was refused: {}", error.message()),
    }
}

fn error(args: &[&str]) -> String {
    match read(args) {
        Err(error) => error.message().to_owned(),
        Ok(_) => panic!("{args:?} was accepted"),
    }
}

/// Everything that is wrong with a command line, by the rules of the controllers too.
fn problems(args: &[&str]) -> Vec<String> {
    let known = settings::known(ALL).unwrap();
    let judged = settings::ProcessSettings::new(&values(args), &known, ALL);
    judged.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// The effective value of a flag whose type another crate knows.
fn shown(values: &Values, name: &str) -> String {
    values.effective().find(|(known, _)| *known == name).unwrap().1
}

fn specs() -> Vec<&'static Spec> {
    let controllers = settings::controller_flags(ALL);
    table::GROUPS.iter().chain(&controllers).flat_map(|group| group.iter()).collect()
}
