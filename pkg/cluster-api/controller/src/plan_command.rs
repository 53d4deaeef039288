//! `infra-controller-manager plan`: prints what would be created on AWS for the AWSClusters of
//! manifests, if nothing of them existed yet. Exit code 0 when all of it can be created, else 1. It
//! calls neither AWS nor an API server; `--plan-only` does the same for AWSClusters in a cluster.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use aws_network::NatMode;
use clap::Parser;
use clap::builder::PossibleValuesParser;
use manager::command::{
    Command, Output, Parsed, Program, objects_of_file, print_output, to_stdout,
};
use serde_json::{Value, json};

use crate::aws_plan::{Given, Planned, of_manifests};

pub(crate) const COMMAND: Command = Command {
    name: "plan",
    about: "Shows what would be created on AWS for the AWSClusters in manifests",
    start,
};

/// Runs it with the arguments after its name.
fn start(_: Program, args: Vec<OsString>) -> ExitCode {
    let arguments = match Parsed::from(Arguments::try_parse_from(args)) {
        Parsed::Run(arguments) => arguments,
        Parsed::Print { text, is_error } => return print_output(&text, is_error),
    };
    match run(&arguments) {
        Ok(planned) => {
            let print = if arguments.output.is_json() { json } else { text };
            let text = print(&planned);
            to_stdout(&text);
            let is_complete = planned.iter().all(is_complete);
            if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => print_output(&format!("error: {error:#}\n"), true),
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<Vec<Planned>> {
    let mut objects = Vec::new();
    for file in &arguments.filename {
        objects.extend(objects_of_file(file)?);
    }
    let planned = of_manifests(&objects, &arguments.given());
    if planned.is_empty() {
        bail!("cannot plan: the manifests of -f contain no AWSCluster");
    }
    Ok(planned)
}

const ABOUT: &str = "Shows what the controller would create on AWS for new AWSClusters: all writes, in a possible order. It \
    calls neither AWS nor an API server. Exit code 1 if a cluster cannot be created, else 0.";
const HELP: &str = "For existing AWSClusters, run the manager with --plan-only: it writes the plan to status.plan. AWS chooses the ids of
resources, so the plan shows their logical names instead, and example addresses of 192.0.2.0/24.

Examples:
  # A Cluster and its AWSCluster.
  infra-controller-manager plan -f config/samples/cluster-api.yaml
  # An AWSCluster without spec.network.subnets.
  infra-controller-manager plan -f cluster.yaml --zones us-east-2a,us-east-2b,us-east-2c -o json";

#[derive(Debug, Parser)]
#[command(name = "infra-controller-manager plan", no_binary_name = true, about = ABOUT, after_help = HELP)]
struct Arguments {
    /// Manifests with AWSClusters and the Clusters that refer to them, in YAML or JSON; - for standard input.
    #[arg(short, long, value_name = "FILE", num_args = 1.., required = true)]
    filename: Vec<PathBuf>,
    /// Zones of the region, for AWSClusters without spec.network.subnets.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    zones: Vec<String>,
    /// NAT gateways of AWSClusters without natGateways.mode, like the flag of the manager.
    #[arg(long, value_name = "MODE", default_value = "PerAZ")]
    #[arg(value_parser = PossibleValuesParser::new(NatMode::DEFAULTS))]
    default_nat_mode: String,
    #[command(flatten)]
    output: Output,
}

impl Arguments {
    fn given(&self) -> Given {
        let default_nat_mode = NatMode::from_word(&self.default_nat_mode).unwrap_or_default();
        Given { zones: self.zones.clone(), default_nat_mode }
    }
}

/// Whether all of it can be made.
fn is_complete(planned: &Planned) -> bool {
    planned.outcome.as_ref().is_ok_and(|forecast| forecast.is_reached)
}

/// One paragraph for each AWSCluster.
fn text(all: &[Planned]) -> String {
    let paragraphs: Vec<_> = all.iter().map(paragraph).collect();
    paragraphs.join("\n")
}

fn paragraph(planned: &Planned) -> String {
    let Planned { namespace, name, region, identity, outcome } = planned;
    let mut text = format!("AWSCluster {namespace}/{name}");
    match outcome {
        Err(errors) => {
            text.push_str(" cannot be planned\n");
            for error in errors {
                let _infallible = writeln!(text, "  error: {error}");
            }
        }
        Ok(said) => {
            let number = said.writes.len();
            let writes = if number == 1 { "write" } else { "writes" };
            let identity = identity.as_ref().map_or_else(String::new, |it| format!(" as {it}"));
            let _infallible = writeln!(text, " in {region}{identity}: {number} {writes}");
            for planned in &said.writes {
                let _infallible = writeln!(text, "  {}", planned.action.in_full());
            }
            for problem in &said.problems {
                let _infallible =
                    writeln!(text, "  {}: {}", problem.reason.as_str(), problem.message);
            }
        }
    }
    text
}

/// A list with all that is known of each.
fn json(all: &[Planned]) -> String {
    let all: Vec<Value> = all.iter().map(object).collect();
    format!("{:#}\n", Value::Array(all))
}

fn object(planned: &Planned) -> Value {
    let Planned { namespace, name, region, identity, outcome } = planned;
    let mut object = json!({"namespace": namespace, "name": name, "region": region});
    if let Some(identity) = identity {
        object["identity"] = json!(identity);
    }
    match outcome {
        Err(errors) => {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            object["errors"] = json!(errors);
        }
        Ok(said) => {
            let writes: Vec<_> = said.writes.iter().map(|it| it.action.in_full()).collect();
            let problem = |it: &aws_network::Problem| json!({"reason": it.reason.as_str(), "message": it.message});
            object["writes"] = json!(writes);
            object["problems"] = said.problems.iter().map(problem).collect();
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Parsed<Arguments> {
        Arguments::try_parse_from(args.iter().map(OsString::from)).into()
    }

    #[test]
    fn arguments_are_read() {
        let args = ["-f", "a", "b", "--zones=x,y", "--default-nat-mode=Single", "-ojson"];
        let Parsed::Run(arguments) = parse(&args) else { panic!("they are refused") };
        assert_eq!(arguments.filename, ["a", "b"].map(PathBuf::from));
        let Given { zones, default_nat_mode } = arguments.given();
        assert_eq!((zones, default_nat_mode), (vec!["x".into(), "y".into()], NatMode::Single));
        assert!(arguments.output.is_json());
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

#[cfg(test)]
mod printed_tests {
    use crate::aws_plan::{Given, of_manifests};
    use aws_network::NatMode;

    use super::*;

    const SAMPLE: &str = include_str!("../../../../config/samples/cluster-api.yaml");

    fn planned() -> Vec<Planned> {
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(SAMPLE).unwrap();
        let wrong = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "AWSCluster", "metadata": {"name": "wrong"}, "spec": {"region": 7}});
        objects.push(wrong);
        of_manifests(&objects, &Given { zones: Vec::new(), default_nat_mode: NatMode::Single })
    }

    #[test]
    fn people_read_each_write() {
        let text = text(&planned());
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("AWSCluster default/testnetwork3 in us-east-2: "), "{text}");
        assert_eq!(lines[1], "  CreateVpc");
        for line in [
            "  CreateSubnet for 10.66.0.160/27",
            "  NatSingleZone: all private subnets depend on the zone of one NAT gateway",
            "  CreateRoute of route-table/10.66.0.0/27: + 0.0.0.0/0 to internet-gateway",
            "AWSCluster default/wrong cannot be planned",
        ] {
            assert!(lines.contains(&line), "{line} is not in {text}");
        }
        assert!(planned().iter().map(is_complete).eq([true, false]));
        let mut other = planned();
        other[0].identity = Some("AWSClusterRoleIdentity other".to_owned());
        let line = "AWSCluster default/testnetwork3 in us-east-2 as AWSClusterRoleIdentity other: ";
        assert!(super::text(&other).starts_with(line));
    }

    #[test]
    fn programs_read_the_same() {
        let all: Value = serde_json::from_str(&json(&planned())).unwrap();
        assert_eq!(all[0]["writes"][0], "CreateVpc");
        assert_eq!(all[0]["problems"][0]["reason"], "NatSingleZone");
        assert!(all[1]["errors"][0].as_str().unwrap().starts_with("cannot use spec: "), "{all}");
    }
}
