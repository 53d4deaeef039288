//! The command line of `probe`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use flags::GoDuration;
use manager::command::Output;
use probe::WaivedChecks;

use crate::{Asker, Lookup, Subject};

const ABOUT: &str = "Probes an API server once, as the cluster-health controller does, and prints the result with \
    the time of each step. Exit code 0 if the server is healthy, else 1.";
const EXAMPLES: &str = "Examples:
  # The API server of a kubeconfig.
  infra-controller-manager probe --kubeconfig=member.conf
  # A member cluster, by its object in the management cluster.
  infra-controller-manager probe kubefedcluster/one --kubeconfig=management.conf
  # A member cluster from a manifest with its object and Secret, before the manifest is applied.
  infra-controller-manager probe -f member.yaml -o json";

/// The API server to probe, and how the answer is printed.
#[derive(Debug, Parser)]
#[command(name = "infra-controller-manager probe", no_binary_name = true, about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// kubefedcluster/NAME, cluster/NAME, clusterprofile/NAMESPACE/NAME or capi/NAMESPACE/NAME: probe the member of this
    /// object, with its credential, both read from the management API.
    #[arg(value_name = "OBJECT", conflicts_with = "server")]
    pub(super) object: Option<Subject>,
    /// Manifest with the object and its credential; - for standard input. With --kubeconfig or --context, what is missing
    /// in it is read from the management API.
    #[arg(short, long, value_name = "FILE", conflicts_with = "server")]
    pub(super) filename: Option<PathBuf>,
    /// Namespace of a KubeFedCluster and of Secrets, like --cluster-health-kubefed-namespace of the controller; "" allows
    /// the Secret of a Cluster in any namespace.
    #[arg(short, long, value_name = "NAME", default_value = "kube-federation-system")]
    namespace: String,
    /// Namespaces whose Secrets a ClusterProfile may name, like --cluster-health-profile-secret-namespaces of the
    /// controller.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    profile_secret_namespaces: Vec<String>,
    /// Kubeconfig of the cluster to probe, or of the management API when OBJECT is given. Default: $KUBECONFIG.
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current one.
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// Address of the API server, instead of a kubeconfig.
    #[arg(long, value_name = "URL", conflicts_with_all = ["kubeconfig", "context"])]
    pub(super) server: Option<String>,
    /// CA certificates in PEM, with --server.
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(super) certificate_authority: Option<PathBuf>,
    /// File with the bearer token, with --server.
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(super) token_file: Option<PathBuf>,
    /// Client certificate in PEM, with --server.
    #[arg(long, value_name = "FILE", requires_all = ["server", "client_key"])]
    pub(super) client_certificate: Option<PathBuf>,
    /// Key of the client certificate, with --server.
    #[arg(long, value_name = "FILE", requires_all = ["server", "client_certificate"])]
    pub(super) client_key: Option<PathBuf>,
    /// http, https or socks5 proxy, with --server.
    #[arg(long, value_name = "URL", requires = "server")]
    pub(super) proxy_url: Option<String>,
    /// TLS checks to skip.
    #[arg(long = "disabled-tls-validations", value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = ["*", "SubjectName", "ValidityPeriod"])]
    waived: Vec<String>,
    /// Maximum duration of the probe.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = timeout)]
    pub(super) timeout: Duration,
    #[command(flatten)]
    pub(super) output: Output,
    /// Also read a namespace to verify the credential; always done for a Cluster.
    #[arg(long)]
    pub(super) authenticated_read: bool,
    /// Also send the credential over plain http.
    #[arg(long)]
    pub(super) allow_plaintext_endpoints: bool,
    /// Do not verify the server certificate of a Cluster without a CA, like the flag of the controller.
    #[arg(long, conflicts_with = "server")]
    tke_insecure_when_no_ca: bool,
}

impl Arguments {
    /// How the credential of the object is looked up.
    pub(super) fn lookup(&self) -> Lookup {
        Lookup {
            asker: Asker::Command,
            secret_namespace: Some(self.namespace.clone()).filter(|name| !name.is_empty()),
            profile_secret_namespaces: self.profile_secret_namespaces.clone(),
            insecure_without_ca: self.tke_insecure_when_no_ca,
        }
    }

    pub(super) fn waived(&self) -> WaivedChecks {
        WaivedChecks::from_names(self.waived.iter().map(String::as_str))
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    let value: GoDuration = text.parse().map_err(|error| format!("{error}"))?;
    let value = value.to_std();
    if value.is_zero() { Err("it is not greater than 0".to_owned()) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use manager::command::Parsed;

    use super::*;

    fn parse(args: &[&str]) -> Parsed<Arguments> {
        Arguments::try_parse_from(args.iter().map(OsString::from)).into()
    }

    #[test]
    fn arguments_are_read() {
        let args = [
            "--server=https://a",
            "--token-file",
            "t",
            "--disabled-tls-validations=SubjectName,ValidityPeriod",
            "--timeout=1m30s",
            "-ojson",
        ];
        let Parsed::Run(arguments) = parse(&args) else { panic!("they are refused") };
        assert_eq!(arguments.server.as_deref(), Some("https://a"));
        assert_eq!(arguments.timeout, Duration::from_secs(90));
        let waived = arguments.waived();
        assert!(arguments.output.is_json() && waived.subject_name && waived.validity_period);
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused() {
        let rows: [&[&str]; 11] = [
            &["--server=a", "--kubeconfig=b"],
            &["--token-file=t"],
            &["--server=a", "--client-certificate=c"],
            &["--timeout=0s"],
            &["--timeout=soon"],
            &["--output=yaml"],
            &["--disabled-tls-validations=All"],
            &["stray"],
            &["secret/a"],
            &["cluster/a", "--server=a"],
            &["-f", "x.yaml", "--server=a"],
        ];
        for args in rows {
            assert!(matches!(parse(args), Parsed::Print { is_error: true, .. }), "{args:?}");
        }
    }

    #[test]
    fn an_object_is_named_or_found_in_a_file() {
        let args = ["cluster/cls-1", "-n", "fed", "-f", "-"];
        let Parsed::Run(arguments) = parse(&args) else { panic!("they are refused") };
        assert_eq!(arguments.object.as_ref().unwrap().to_string(), "cluster/cls-1");
        assert_eq!(arguments.lookup().secret_namespace.as_deref(), Some("fed"));
        assert_eq!(arguments.filename, Some(PathBuf::from("-")));
    }

    #[test]
    fn help_is_no_error() {
        let Parsed::Print { text, is_error: false } = parse(&["--help"]) else { panic!("no help") };
        assert!(text.contains("--kubeconfig") && text.contains("[default: 5s]"), "{text}");
        assert!(text.contains("probe -f member.yaml") && text.contains("[OBJECT]"), "{text}");
    }
}
