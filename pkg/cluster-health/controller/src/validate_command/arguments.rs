//! The command line of `validate`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, ValueEnum};
use manager::command::{Output, Parsed};

/// The operation on all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Wanted {
    Create,
    Update,
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

/// The objects to judge, and the format of the output.
#[derive(Debug, Parser)]
#[command(name = "infra-controller-manager validate", no_binary_name = true, about = ABOUT, after_help = HELP)]
pub(super) struct Arguments {
    /// Manifests with the objects, in YAML or JSON; - for standard input. The rules for each object treat the objects
    /// before it as stored.
    #[arg(short, long, value_name = "FILE", num_args = 1.., required = true)]
    pub(super) filename: Vec<PathBuf>,
    /// Manifests with the stored versions of the objects.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(super) old: Vec<PathBuf>,
    /// Operation to check for all objects. Default: update for objects in --old, create for the others.
    #[arg(long, value_name = "NAME", requires_if("update", "old"))]
    pub(super) operation: Option<Wanted>,
    /// File with other objects and results of network checks; no host is dialled.
    #[arg(long, value_name = "FILE")]
    pub(super) environment: Option<PathBuf>,
    /// Skip the network checks.
    #[arg(long)]
    pub(super) offline: bool,
    #[command(flatten)]
    pub(super) output: Output,
}

impl Arguments {
    pub(super) fn read(args: impl IntoIterator<Item = OsString>) -> Parsed<Self> {
        let parsed = Self::try_parse_from(args).and_then(|arguments| {
            let stdin = Path::new("-");
            let Self { filename, old, environment, .. } = &arguments;
            let files = filename.iter().chain(old).chain(environment);
            if files.filter(|file| *file == stdin).count() > 1 {
                let why = "standard input can be read only once\n";
                return Err(Self::command().error(ErrorKind::ArgumentConflict, why));
            }
            Ok(arguments)
        });
        parsed.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Parsed<Arguments> {
        Arguments::read(args.iter().map(OsString::from))
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
        assert_eq!(arguments.filename, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(arguments.old, [PathBuf::from("d")]);
        assert_eq!(arguments.operation, Some(Wanted::Update));
        assert_eq!(arguments.environment, Some(PathBuf::from("-")));
        assert!(arguments.output.is_json() && arguments.offline);
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
