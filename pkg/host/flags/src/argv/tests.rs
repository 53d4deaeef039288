use super::*;
use proptest::prelude::*;

fn kind_of(name: &str) -> Option<Kind> {
    match name {
        "help" | "on" | "two-words" => Some(Kind::Bool),
        "v" => Some(Kind::Verbosity),
        "name" | "concurrent-rc-syncs" => Some(Kind::String),
        "version" => Some(Kind::Version),
        _ => None,
    }
}

fn normalised(args: &[&str]) -> Result<Argv, String> {
    normalise(args.iter().map(ToString::to_string), kind_of).map_err(|error| error.to_string())
}

fn flags(args: &[&str]) -> Vec<String> {
    normalised(args).unwrap().flags
}

fn error(args: &[&str]) -> String {
    normalised(args).unwrap_err()
}

#[test]
fn a_value_is_attached_or_the_next_argument() {
    assert_eq!(flags(&["--name=a"]), ["--name=a"]);
    assert_eq!(flags(&["--name", "a"]), ["--name=a"]);
    assert_eq!(flags(&["--name="]), ["--name="]);
    assert_eq!(flags(&["--name", ""]), ["--name="]);
    assert_eq!(flags(&["--name=a=b"]), ["--name=a=b"]);
}

#[test]
fn the_next_argument_is_the_value_even_when_it_looks_like_a_flag() {
    assert_eq!(flags(&["--name", "--on"]), ["--name=--on"]);
    assert_eq!(flags(&["--name", "--"]), ["--name=--"]);
    assert_eq!(flags(&["--name", "-1"]), ["--name=-1"]);
}

#[test]
fn a_switch_alone_is_true_and_takes_no_argument() {
    assert_eq!(flags(&["--on", "--on=false"]), ["--on=true", "--on=false"]);
    let read = normalised(&["--on", "false"]).unwrap();
    assert_eq!(read.flags, ["--on=true"]);
    assert_eq!(read.positionals, ["false"]);
}

#[test]
fn version_stands_alone_or_has_its_value_attached() {
    assert_eq!(flags(&["--version"]), ["--version=true"]);
    assert_eq!(flags(&["--version=raw"]), ["--version=raw"]);
    assert_eq!(normalised(&["--version", "raw"]).unwrap().positionals, ["raw"]);
}

#[test]
fn underscores_in_names_are_dashes_and_values_are_left_alone() {
    assert_eq!(flags(&["--concurrent_rc_syncs=a_b"]), ["--concurrent-rc-syncs=a_b"]);
    assert_eq!(flags(&["--concurrent_rc-syncs", "a_b"]), ["--concurrent-rc-syncs=a_b"]);
    assert_eq!(flags(&["--two_words"]), ["--two-words=true"]);
    assert_eq!(flags(&["--un_known=a_b"]), ["--un-known=a_b"]);
}

#[test]
fn the_verbosity_has_every_short_form() {
    for form in [&["-v", "2"][..], &["-v=2"], &["-v2"], &["--v=2"], &["--v", "2"]] {
        assert_eq!(flags(form), ["--v=2"], "{form:?}");
    }
}

#[test]
fn short_letters_may_be_bundled() {
    assert_eq!(flags(&["-h"]), ["--help=true"]);
    assert_eq!(flags(&["-h=false"]), ["--help=false"]);
    assert_eq!(flags(&["-hv2"]), ["--help=true", "--v=2"]);
    assert_eq!(flags(&["-hv", "2"]), ["--help=true", "--v=2"]);
    assert_eq!(flags(&["-vh"]), ["--v=h"], "a letter with a value takes the rest");
    assert_eq!(flags(&["-v="]), ["--v=="], "as pflag reads it; the value is refused later");
}

#[test]
fn two_dashes_end_the_flags() {
    let read = normalised(&["--on", "--", "--name", "", "x"]).unwrap();
    assert_eq!(read.flags, ["--on=true"]);
    assert_eq!(read.positionals, ["--name", "x"]);
}

#[test]
fn positionals_are_kept_and_empty_ones_dropped() {
    let read = normalised(&["a", "", "--on", "-", "b"]).unwrap();
    assert_eq!(read.positionals, ["a", "-", "b"]);
}

#[test]
fn undeclared_flags_pass_in_their_place() {
    assert_eq!(flags(&["--none", "--on", "--none=1"]), ["--none", "--on=true", "--none=1"]);
}

#[test]
fn arguments_that_are_no_flags_are_named() {
    assert_eq!(error(&["--=x"]), "bad flag syntax: --=x");
    assert_eq!(error(&["---name"]), "bad flag syntax: ---name");
    assert_eq!(error(&["--name"]), "flag needs an argument: --name");
    assert_eq!(error(&["-v"]), "flag needs an argument: -v");
    assert_eq!(error(&["-x"]), "unknown shorthand flag: 'x' in -x");
}

#[test]
fn one_dash_before_a_long_name_gets_a_hint() {
    let hint = "unknown shorthand flag: 'n' in -name=a (did you mean --name?)";
    assert_eq!(error(&["-name=a"]), hint);
}

proptest! {
    #[test]
    fn whatever_is_accepted_is_in_the_one_form(args in proptest::collection::vec(
        prop_oneof!["\\PC{0,8}", "-{0,3}(v|h|x|on|name|version)?[=_-]?[a-z0-9=]{0,3}"], 0..6)
    ) {
        if let Ok(read) = normalise(args, kind_of) {
            for flag in read.flags {
                let name = flag.strip_prefix("--").unwrap().split('=').next().unwrap();
                prop_assert!(!name.is_empty() && !name.contains('_'));
                prop_assert!(kind_of(name).is_none() || flag.contains('='));
            }
            prop_assert!(read.positionals.iter().all(|argument| !argument.is_empty()));
        }
    }
}
