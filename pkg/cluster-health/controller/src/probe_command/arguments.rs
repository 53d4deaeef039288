//! The command line of `probe`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use flags::GoDuration;
use manager::command::{Parsed, option, output, wants_json};
use probe::WaivedChecks;

use crate::{Asker, Lookup, Subject};

/// The API server to probe, and how the answer is printed.
#[derive(Debug)]
pub(super) struct Arguments {
    /// A kubeconfig and one of its contexts; the file of the environment when there is no `server`.
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) context: Option<String>,
    /// A cluster by its object, which the kubeconfig leads to, or the file.
    pub(super) object: Option<Subject>,
    /// How its credential is looked up.
    pub(super) lookup: Lookup,
    pub(super) file: Option<PathBuf>,
    /// An address, instead of a kubeconfig.
    pub(super) server: Option<String>,
    pub(super) ca: Option<PathBuf>,
    pub(super) token: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) proxy: Option<String>,
    pub(super) tls: WaivedChecks,
    pub(super) allow_plaintext: bool,
    pub(super) authenticated_read: bool,
    pub(super) timeout: Duration,
    pub(super) json: bool,
}

impl Arguments {
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Parsed<Box<Self>> {
        let parsed = command().try_get_matches_from(args);
        parsed.map(|matches| Box::new(Self::read(&matches))).into()
    }

    fn read(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let path = |name: &str| text(name).map(PathBuf::from);
        let profile_secrets = matches.get_many::<String>("profile-secret-namespaces");
        let names = matches.get_many::<String>("disabled-tls-validations");
        Self {
            kubeconfig: path("kubeconfig"),
            context: text("context"),
            object: matches.get_one("object").cloned(),
            lookup: Lookup {
                asker: Asker::Command,
                secret_namespace: text("namespace").filter(|name| !name.is_empty()),
                profile_secret_namespaces: profile_secrets.into_iter().flatten().cloned().collect(),
                insecure_without_ca: matches.get_flag("tke-insecure-when-no-ca"),
            },
            file: path("filename"),
            server: text("server"),
            ca: path("certificate-authority"),
            token: path("token-file"),
            certificate: path("client-certificate"),
            key: path("client-key"),
            proxy: text("proxy-url"),
            tls: WaivedChecks::from_names(names.into_iter().flatten().map(String::as_str)),
            allow_plaintext: matches.get_flag("allow-plaintext-endpoints"),
            authenticated_read: matches.get_flag("authenticated-read"),
            timeout: matches.get_one("timeout").copied().unwrap_or_default(),
            json: wants_json(matches),
        }
    }
}

const ABOUT: &str = "Probes an API server once, as the cluster-health controller does, and prints the result with \
    the time of each step. Exit code 0 if the server is healthy, else 1.";
const EXAMPLES: &str = "Examples:
  # The API server of a kubeconfig.
  infra-controller-manager probe --kubeconfig=member.conf
  # A member cluster, by its object in the management cluster.
  infra-controller-manager probe kubefedcluster/one --kubeconfig=management.conf
  # A member cluster from a manifest with its object and Secret, before the manifest is applied.
  infra-controller-manager probe -f member.yaml -o json";

fn command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("infra-controller-manager probe")
        .no_binary_name(true)
        .about(ABOUT)
        .after_help(EXAMPLES)
        .args([
            Arg::new("object")
                .value_name("OBJECT")
                .help(
                    "kubefedcluster/NAME, cluster/NAME, clusterprofile/NAMESPACE/NAME or capi/NAMESPACE/NAME: probe the \
                    member of this object, with its credential, both read from the management API",
                )
                .value_parser(|text: &str| text.parse::<Subject>())
                .conflicts_with("server"),
            option(
                "filename",
                "FILE",
                "Manifest with the object and its credential; - for \
                standard input. With --kubeconfig or --context, what is missing in it is read \
                from the management API",
            )
            .short('f')
            .conflicts_with("server"),
            option(
                "namespace",
                "NAME",
                "Namespace of a KubeFedCluster and of Secrets, like \
                --cluster-health-kubefed-namespace of the controller; \"\" allows the Secret of \
                a Cluster in any namespace",
            )
            .short('n')
            .default_value("kube-federation-system"),
            option(
                "profile-secret-namespaces",
                "LIST",
                "Namespaces whose Secrets a ClusterProfile may name, like \
                --cluster-health-profile-secret-namespaces of the controller",
            )
            .value_delimiter(','),
            option(
                "kubeconfig",
                "FILE",
                "Kubeconfig of the cluster to probe, or of the \
                management API when OBJECT is given. Default: $KUBECONFIG",
            ),
            option("context", "NAME", "Context of the kubeconfig. Default: the current one"),
            option("server", "URL", "Address of the API server, instead of a kubeconfig")
                .conflicts_with_all(["kubeconfig", "context"]),
            option("certificate-authority", "FILE", "CA certificates in PEM, with --server")
                .requires("server"),
            option("token-file", "FILE", "File with the bearer token, with --server")
                .requires("server"),
            option("client-certificate", "FILE", "Client certificate in PEM, with --server")
                .requires_all(["server", "client-key"]),
            option("client-key", "FILE", "Key of the client certificate, with --server")
                .requires_all(["server", "client-certificate"]),
            option("proxy-url", "URL", "http, https or socks5 proxy, with --server")
                .requires("server"),
            option("disabled-tls-validations", "LIST", "TLS checks to skip")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(["*", "SubjectName", "ValidityPeriod"])),
            option("timeout", "DURATION", "Maximum duration of the probe")
                .default_value("5s")
                .value_parser(timeout),
            output("Output format"),
            switch(
                "authenticated-read",
                "Also read a namespace to verify the credential; always \
                done for a Cluster",
            ),
            switch("allow-plaintext-endpoints", "Also send the credential over plain http"),
            switch(
                "tke-insecure-when-no-ca",
                "Do not verify the server certificate of a Cluster \
                without a CA, like the flag of the controller",
            )
            .conflicts_with("server"),
        ])
}

fn timeout(text: &str) -> Result<Duration, String> {
    let value: GoDuration = text.parse().map_err(|error| format!("{error}"))?;
    let value = value.to_std();
    if value.is_zero() { Err("it is not greater than 0".to_owned()) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Parsed<Box<Arguments>> {
        Arguments::parse(args.iter().map(OsString::from))
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
        assert!(arguments.json && arguments.tls.subject_name && arguments.tls.validity_period);
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
        assert_eq!(arguments.object.unwrap().to_string(), "cluster/cls-1");
        let namespace = arguments.lookup.secret_namespace.as_deref();
        assert_eq!((namespace, arguments.file), (Some("fed"), Some(PathBuf::from("-"))));
    }

    #[test]
    fn help_is_no_error() {
        let Parsed::Print { text, is_error: false } = parse(&["--help"]) else { panic!("no help") };
        assert!(text.contains("--kubeconfig") && text.contains("[default: 5s]"), "{text}");
        assert!(text.contains("probe -f member.yaml") && text.contains("[OBJECT]"), "{text}");
    }
}
