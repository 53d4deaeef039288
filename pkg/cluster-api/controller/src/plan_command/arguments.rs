//! The command line of `plan`.

use std::ffi::OsString;
use std::path::PathBuf;

use aws_network::NatMode;
use clap::builder::PossibleValuesParser;
use clap::{ArgAction, ArgMatches, Command};
use manager::command::{Parsed, option, output, wants_json};

use crate::aws_plan::Given;

/// What is to be planned, and how the plan is printed.
#[derive(Debug)]
pub(super) struct Arguments {
    /// At least one.
    pub(super) files: Vec<PathBuf>,
    pub(super) given: Given,
    pub(super) json: bool,
}

impl Arguments {
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Parsed<Self> {
        command().try_get_matches_from(args).map(|matches| Self::read(&matches)).into()
    }

    fn read(matches: &ArgMatches) -> Self {
        let texts = |name: &str| matches.get_many::<String>(name).into_iter().flatten();
        let text = |name: &str| matches.get_one::<String>(name);
        let mode = text("default-nat-mode").and_then(|word| NatMode::from_word(word));
        Self {
            files: texts("filename").map(PathBuf::from).collect(),
            given: Given {
                zones: texts("zones").cloned().collect(),
                default_nat_mode: mode.unwrap_or_default(),
            },
            json: wants_json(matches),
        }
    }
}

const ABOUT: &str = "Tells what would be made on AWS for AWSClusters, if there were nothing of them yet: each write, in \
    an order in which it can be sent, and what of it is paid by the hour. It asks neither AWS nor an API server. Exits \
    with 1 when something is in the way.";
const HELP: &str = "What would be done to a cluster that exists is told in its status by a manager with --plan-only. Where only AWS
knows an id, its place stands for it, and for an address one of 192.0.2.0/24.

Examples:
  # A Cluster and its AWSCluster.
  infra-controller-manager plan -f config/samples/cluster-api.yaml
  # An AWSCluster that names no subnets.
  infra-controller-manager plan -f cluster.yaml --zones us-east-2a,us-east-2b,us-east-2c -o json";

fn command() -> Command {
    Command::new("infra-controller-manager plan")
        .no_binary_name(true)
        .about(ABOUT)
        .after_help(HELP)
        .args([
            option("filename", "FILE", "Manifests with AWSClusters and the Clusters that refer to them, in YAML or JSON; - for standard input")
                .short('f')
                .num_args(1..)
                .action(ArgAction::Append)
                .required(true),
            option("zones", "NAME,…", "The zones of the region, of which subnets are chosen where a spec names none")
                .value_delimiter(','),
            option("default-nat-mode", "MODE", "NAT gateways where a spec does not say, as the flag of the manager")
                .default_value("PerAZ")
                .value_parser(PossibleValuesParser::new(NatMode::WORDS)),
            output("How the plan is printed"),
        ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Parsed<Arguments> {
        Arguments::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn arguments_are_read() {
        let args = ["-f", "a", "b", "--zones=x,y", "--default-nat-mode=Single", "-ojson"];
        let Parsed::Run(arguments) = parse(&args) else { panic!("they are refused") };
        assert_eq!(arguments.files, ["a", "b"].map(PathBuf::from));
        assert_eq!(arguments.given.zones, ["x", "y"]);
        assert_eq!(arguments.given.default_nat_mode, NatMode::Single);
        assert!(arguments.json);
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused_and_help_is_no_error() {
        for args in [&[][..], &["stray"], &["-f"], &["-f", "a", "-oyaml"]] {
            assert!(matches!(parse(args), Parsed::Print { is_error: true, .. }), "{args:?}");
        }
        let many = ["-f", "a", "--default-nat-mode=Many"];
        assert!(matches!(parse(&many), Parsed::Print { is_error: true, .. }));
        let Parsed::Print { text, is_error: false } = parse(&["--help"]) else {
            panic!("an error")
        };
        assert!(text.contains("--zones") && text.contains("PerAZ, Single, None"), "{text}");
    }
}
