//! The command line of `validate`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};
use manager::command::{Parsed, option, output, wants_json};

/// The objects to judge, and the format of the output.
#[derive(Debug)]
pub(super) struct Arguments {
    /// At least one.
    pub(super) files: Vec<PathBuf>,
    /// The stored objects.
    pub(super) old: Vec<PathBuf>,
    /// `None` leaves it to what is stored.
    pub(super) operation: Option<Wanted>,
    pub(super) environment: Option<PathBuf>,
    /// The network is not asked.
    pub(super) offline: bool,
    pub(super) json: bool,
}

/// The operation on all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Create,
    Update,
}

impl Arguments {
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Parsed<Self> {
        let mut command = command();
        let parsed = command.try_get_matches_from_mut(args).and_then(|matches| {
            let arguments = Self::read(&matches);
            let stdin = Path::new("-");
            let files = arguments.files.iter().chain(&arguments.old).chain(&arguments.environment);
            if files.filter(|file| *file == stdin).count() > 1 {
                let why = "standard input can be read only once\n";
                return Err(command.error(ErrorKind::ArgumentConflict, why));
            }
            Ok(arguments)
        });
        parsed.into()
    }

    fn read(matches: &ArgMatches) -> Self {
        let texts = |name: &str| matches.get_many::<String>(name).into_iter().flatten();
        let text = |name: &str| matches.get_one::<String>(name);
        Self {
            files: texts("filename").map(PathBuf::from).collect(),
            old: texts("old").map(PathBuf::from).collect(),
            operation: text("operation").map(|operation| match operation.as_str() {
                "create" => Wanted::Create,
                _ => Wanted::Update,
            }),
            environment: text("environment").map(PathBuf::from),
            offline: matches.get_flag("offline"),
            json: wants_json(matches),
        }
    }
}

const ABOUT: &str = "Validates objects before you apply them: Cluster, ClusterCredential and Machine of \
    platform.tkestack.io, KubeFedCluster and KubeFedConfig of core.kubefed.io, ClusterCIDR of \
    networking.x-k8s.io, and AWSCluster of infrastructure.cluster.x-k8s.io. Prints one line for each error. \
    Exit code 0 if there is no error, else 1. It connects to the machines and API servers that new \
    objects name, with credentials from these files only, and lists the checks that were not possible.";
const HELP: &str = "The environment is a YAML file with stored objects and settings that the rules depend on, and with results of network
checks. With this file no host is dialled. All keys are optional:
  clusters, machines, clusterCredentials, kubeFedClusters
                     lists of stored objects; an empty list means that no object exists, a missing list that
                     the objects are unknown
  licence            maxClusters, maxNodes, maxCPUs; 0 means no limit
  clusterTypes, machineTypes
                     allowed values of spec.type
  supportedVersions  allowed versions of new Clusters of type Baremetal
  networkChecks      results, each ok or a code such as connect-refused:
                     ssh and tcp by host:port, credentials by the name of the ClusterCredential,
                     imports by the name of the Cluster; and kubeSystemUIDs by namespace/name
config/samples/validate/environment.yaml is an example.

Examples:
  # New objects.
  infra-controller-manager validate -f config/samples/tke.yaml
  # A change of a stored object.
  kubectl get cls cls-1 -o yaml > old.yaml
  infra-controller-manager validate -f new.yaml --old old.yaml
  # With the stored objects of the management cluster, and without network checks.
  infra-controller-manager validate -f new.yaml --environment environment.yaml -o json";

fn command() -> Command {
    let files = |name, help| option(name, "FILE", help).num_args(1..).action(ArgAction::Append);
    Command::new("infra-controller-manager validate")
        .no_binary_name(true)
        .about(ABOUT)
        .after_help(HELP)
        .args([
            files(
                "filename",
                "Manifests with the objects, in YAML or JSON; - for standard \
                input. The rules for each object treat the objects before it as stored",
            )
            .short('f')
            .required(true),
            files("old", "Manifests with the stored versions of the objects"),
            option(
                "operation",
                "NAME",
                "Operation to check for all objects. Default: update for \
                objects in --old, create for the others",
            )
            .value_parser(PossibleValuesParser::new(["create", "update"]))
            .requires_if("update", "old"),
            option(
                "environment",
                "FILE",
                "File with other objects and results of network \
                checks; no host is dialled",
            ),
            Arg::new("offline").long("offline").action(ArgAction::SetTrue).help(
                "Skip the \
                network checks",
            ),
            output("Output format"),
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
        let args = [
            "-f",
            "a",
            "b",
            "-fc",
            "--old=d",
            "--operation=update",
            "-ojson",
            "--environment",
            "-",
            "--offline",
        ];
        let Parsed::Run(arguments) = parse(&args) else { panic!("they are refused") };
        assert_eq!(arguments.files, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(arguments.old, [PathBuf::from("d")]);
        assert_eq!(arguments.operation, Some(Wanted::Update));
        assert_eq!(arguments.environment, Some(PathBuf::from("-")));
        assert!(arguments.json && arguments.offline);
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused() {
        let rows: [&[&str]; 7] = [
            &[],
            &["stray"],
            &["-f"],
            &["-f", "a", "--operation=update"],
            &["-f", "a", "--operation=delete"],
            &["-f", "-", "--old=-"],
            &["-f", "a", "-oyaml"],
        ];
        for args in rows {
            assert!(matches!(parse(args), Parsed::Print { is_error: true, .. }), "{args:?}");
        }
    }

    #[test]
    fn help_is_no_error_and_shows_what_the_environment_is() {
        let Parsed::Print { text, is_error: false } = parse(&["--help"]) else {
            panic!("an error")
        };
        for word in ["kubeFedClusters", "maxCPUs", "networkChecks", "kubeSystemUIDs"] {
            assert!(text.contains(word), "{word}");
        }
    }
}
