//! The command line of `check`: that of the program, with a few flags of its own.

use std::ffi::OsString;

pub(super) const HELP: &str =
    "Says whether infra-controller-manager may be started with these flags, before it is. \
It asks the API server and writes nothing.
Exit code 0 when there is no error, though there may be warnings, else 1.

Usage:
  infra-controller-manager check [flags of infra-controller-manager] [flags]

It looks for: mistakes in the flags and in the files that they name; a port that is taken; rights that
are missing; a lease that another program holds; a kube-controller-manager that still gives out pod
CIDRs, by its pods and by its /healthz on this host; pod CIDRs of Nodes that overlap, are no CIDRs,
lie outside of the pools or in a service range; two allocators that take turns. It tells how many blocks
of each pool are left.

Flags:
      --claims                 Tell the pod CIDRs of every Node
  -o, --output string          text or json (default text)
      --stock-healthz string   Where kube-controller-manager of this host tells its health; empty to
                               leave it alone (default https://127.0.0.1:10257/healthz)
  -h, --help                   Print this text and exit

Example, on a kubeadm cluster and before anything is changed:
  infra-controller-manager check --kubeconfig=/etc/kubernetes/controller-manager.conf \\
    --use-service-account-credentials --secure-port=10267 --allocate-node-cidrs \\
    --cluster-cidr=10.244.0.0/16 --service-cluster-ip-range=10.96.0.0/12
";

/// What is to be checked, and how it is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    /// Those that the program would be started with.
    pub(super) flags: Vec<OsString>,
    /// Empty to ask nobody.
    pub(super) stock_healthz: String,
    /// Every claim is to be told.
    pub(super) claims: bool,
    pub(super) json: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Run(Arguments),
    Help,
}

impl Arguments {
    /// # Errors
    /// A flag of its own that cannot be read. Those of the program are not looked at.
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Wanted, String> {
        let stock_healthz = "https://127.0.0.1:10257/healthz".to_owned();
        let mut parsed = Self { flags: Vec::new(), stock_healthz, claims: false, json: false };
        let mut args = args.into_iter();
        while let Some(argument) = args.next() {
            let text = argument.to_string_lossy().into_owned();
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text.as_str(), None),
            };
            let mut value = || {
                let next = || args.next().map(|next| next.to_string_lossy().into_owned());
                value.clone().or_else(next).ok_or_else(|| format!("{name} needs a value"))
            };
            match name {
                "-h" | "--help" => return Ok(Wanted::Help),
                "-o" | "--output" => parsed.json = is_json(&value()?)?,
                "--claims" => parsed.claims = true,
                "--stock-healthz" => parsed.stock_healthz = value()?,
                short if short.starts_with("-o") => parsed.json = is_json(&short["-o".len()..])?,
                _ => parsed.flags.push(argument),
            }
        }
        Ok(Wanted::Run(parsed))
    }
}

fn is_json(format: &str) -> Result<bool, String> {
    match format {
        "text" => Ok(false),
        "json" => Ok(true),
        other => Err(format!("--output={other:?} is neither text nor json")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Wanted, String> {
        Arguments::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn its_own_flags_are_taken_out_of_those_of_the_program() {
        for form in [&["--output=json"][..], &["--output", "json"], &["-o", "json"], &["-ojson"]] {
            let own = ["--stock-healthz=", "--claims", "--secure-port", "7"];
            let args = [&["--v=2"], form, &own].concat();
            let Ok(Wanted::Run(arguments)) = parse(&args) else { panic!("{args:?} is refused") };
            assert_eq!(arguments.flags, ["--v=2", "--secure-port", "7"]);
            assert!(arguments.json && arguments.claims && arguments.stock_healthz.is_empty());
        }
        let Ok(Wanted::Run(arguments)) = parse(&[]) else { panic!("nothing is refused") };
        assert_eq!(arguments.stock_healthz, "https://127.0.0.1:10257/healthz");
        assert!(!arguments.json && !arguments.claims);
    }

    #[test]
    fn mistakes_are_named_and_help_is_none() {
        for (args, told) in [
            (&["-o"][..], "-o needs a value"),
            (&["--stock-healthz"], "--stock-healthz needs a value"),
            (&["-oyaml"], "--output=\"yaml\" is neither text nor json"),
        ] {
            assert_eq!(parse(args), Err(told.to_owned()));
        }
        for args in [&["-h"][..], &["--v=2", "--help"]] {
            assert_eq!(parse(args), Ok(Wanted::Help));
        }
    }
}
