//! `infra-controller-manager check`: reports before a start whether the program may run with these
//! flags, next to kube-controller-manager or instead of it. It reads from the API server and writes
//! nothing. Exit code 0 without an error, though there may be warnings, else 1.
//!
//! | file | holds |
//! |---|---|
//! | `report.rs` | findings, as text and as JSON |
//! | `host.rs` | files and the port on this host |
//! | `cluster.rs` | requests to the API server; CRDs of other programs under our names |
//! | `rights.rs` | the rights that the program needs |
//! | `leases.rs` | the holders of its lease and of kube-controller-manager's |
//! | `stock.rs` | whether kube-controller-manager still assigns pod CIDRs |
//! | `allocators.rs` | other programs that assign pod CIDRs |
//! | `nodes.rs` | pod CIDRs of the Nodes |
//! | `pool.rs`, `recorded.rs` | one pool, with `--pool`; what the leader recorded about it |

mod allocators;
pub(crate) mod cluster;
mod host;
pub(crate) mod leases;
mod nodes;
mod pool;
mod recorded;
mod report;
mod rights;
mod stock;

use std::ffi::OsString;
use std::process::ExitCode;

use ::flags::Values;
use ::flags::controllers::Known;
use client::{Clients, Profile, RequestMetrics};
use cluster::Cluster;
use jiff::Timestamp;
use manager::command::print_output;
use prometheus::Registry;
use report::{Check, Report};
use resilience::wall_now;

use super::controllers::Controllers;
use super::flags::Parsed;
use super::settings::ProcessSettings;
use super::{build, flags, settings};

/// The word after the program's name.
pub const NAME: &str = "check";

/// Runs it with the arguments after [`NAME`].
pub fn start(args: impl IntoIterator<Item = OsString>, hosted: Controllers) -> ExitCode {
    let arguments = match Arguments::parse(args) {
        Ok(Wanted::Run(arguments)) => arguments,
        Ok(Wanted::Help) => return print_output(HELP, false),
        Err(message) => return print_output(&format!("error: {message}\n"), true),
    };
    if let Some(pool) = &arguments.pool {
        return match show_pool(&arguments, pool, hosted) {
            Ok(text) => print_output(&text, false),
            Err(message) => print_output(&format!("error: {message}\n"), true),
        };
    }
    match run(&arguments, hosted) {
        Ok(report) => {
            print_output(&if arguments.json { report.json() } else { report.text() }, false);
            if report.is_safe() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => print_output(&format!("error: {message}\n"), true),
    }
}

/// Reads the flags of the program.
fn parse(arguments: &Arguments, hosted: Controllers) -> Result<(Known, Values), String> {
    let known = settings::known(hosted).map_err(|error| error.to_string())?;
    let own = [OsString::from(build::PRODUCT)].into_iter().chain(arguments.flags.iter().cloned());
    let parsed = flags::parse(own, &settings::controller_flags(hosted), &known, &build::INFO);
    match parsed.map_err(|error| error.message().to_owned())? {
        Parsed::Run(values) => Ok((known, values)),
        Parsed::Print(text) => {
            Err(format!("these flags do not start the program: they print {text:?}"))
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let _set = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())
}

fn show_pool(arguments: &Arguments, pool: &str, hosted: Controllers) -> Result<String, String> {
    let (known, values) = parse(arguments, hosted)?;
    let settings = ProcessSettings::new(&values, &known, hosted).map_err(|problems| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    })?;
    let runtime = runtime()?;
    let shown = runtime.block_on(async {
        let (clients, _) = load(&settings).await?;
        let client = clients.build(Profile::root(NAME)).map_err(|error| error.to_string())?;
        let form = pool::Form { claims: arguments.claims, json: arguments.json };
        pool::show(&Cluster::new(client), &values, &settings, (pool, form)).await
    });
    runtime.shutdown_background();
    shown
}

fn run(arguments: &Arguments, hosted: Controllers) -> Result<Report, String> {
    let (known, values) = parse(arguments, hosted)?;
    let mut report = Report::default();
    match ProcessSettings::new(&values, &known, hosted) {
        Err(problems) => {
            for problem in problems {
                report.error(Check::Flags, problem, "correct the command line");
            }
            report.note(Check::Flags, "nothing else was checked");
        }
        Ok(settings) => {
            let runtime = runtime()?;
            let subject = Subject { values: &values, known: &known, settings: &settings };
            runtime.block_on(look(arguments, &subject, &mut report));
            // A DNS query without an answer must not delay the exit.
            runtime.shutdown_background();
        }
    }
    Ok(report)
}

/// The command line that is checked.
struct Subject<'a> {
    values: &'a Values,
    known: &'a Known,
    settings: &'a ProcessSettings,
}

async fn look(arguments: &Arguments, subject: &Subject<'_>, report: &mut Report) {
    let settings = subject.settings;
    for warning in &settings.warnings {
        report.warn(Check::Flags, warning, "");
    }
    for (name, reason) in &settings.idle {
        report.note(Check::Flags, format!("{name} is not started: {reason}"));
    }
    let stock_told = stock::ask_health(&arguments.stock_healthz, report).await;
    host::check(settings, report).await;
    let (clients, requests) = match load(settings).await {
        Ok(loaded) => loaded,
        Err(message) => {
            report.error(Check::ApiServer, message, "nothing else could be checked");
            return;
        }
    };
    host::check_guard(settings, &clients, &requests, report).await;
    let end = clients.certificate_end().and_then(|end| i64::try_from(end).ok());
    let end = end.and_then(|end| Timestamp::from_second(end).ok());
    host::check_certificate(end, wall_now(), report);
    let cluster = match clients.build(Profile::root(NAME)) {
        Ok(client) => Cluster::new(client),
        Err(error) => {
            report.error(Check::ApiServer, error, "nothing else could be checked");
            return;
        }
    };
    if let Err(error) = cluster.is_there().await {
        report.error(Check::ApiServer, error, "nothing else could be checked");
        return;
    }
    report.note(Check::ApiServer, "the API server answers");
    let now = wall_now();
    rights::check(&cluster, settings, report).await;
    cluster::check_crds(&cluster, settings, report).await;
    let stock_leads = leases::check(&cluster, settings.election.as_ref(), now, report).await;
    if settings.controllers.iter().any(|planned| planned.name == stock::NODE_IPAM) {
        let has_pods = stock::check_pods(&cluster, subject.values, subject.known, report).await;
        if stock_leads && !stock_told && !has_pods {
            stock::warn_of_silence(report);
        }
        allocators::check(&cluster, subject.values, now, report).await;
        let seen = nodes::check(&cluster, subject.values, now, report).await;
        nodes::count(&cluster, seen, arguments.claims, report).await;
    }
}

async fn load(settings: &ProcessSettings) -> Result<(Clients, RequestMetrics), String> {
    let requests = RequestMetrics::new(&Registry::new()).map_err(|error| error.to_string())?;
    let clients = Clients::load(&settings.client, &requests).await;
    Ok((clients.map_err(|error| error.to_string())?, requests))
}

const HELP: &str =
    "Checks whether infra-controller-manager can start with these flags. It reads from the API server \
and writes nothing.
Exit code 0 if there is no error (warnings are allowed), else 1.

Usage:
  infra-controller-manager check [flags of infra-controller-manager] [flags]

It reports:
  - invalid flags and files, and a port in use
  - missing permissions
  - CRDs of other programs that config/crd or --install-crds would overwrite
  - CRDs whose objects may be stored in older versions
  - a lease that another program holds
  - a kube-controller-manager that still assigns pod CIDRs, found by its pods and its /healthz on this host
  - pod CIDRs of Nodes that overlap, are invalid, or lie outside the pools or inside a service range
  - another program that assigns pod CIDRs: a cloud controller manager, node-ipam-controller, Gardener, kops,
    Antrea, Cilium
  - a kube-controller-manager whose --controllers disables more than its node-ipam-controller
  - the number of free blocks in each pool

Flags:
      --claims                 List the pod CIDRs of every Node
      --pool string            Show only the pools of this range or ClusterCIDR: state, blocks, Nodes (20 without
                               --claims). Exit code 1 if no pool has that name
  -o, --output string          Output format: text or json (default text)
      --stock-healthz string   Health URL of kube-controller-manager on this host; empty skips this check
                               (default https://127.0.0.1:10257/healthz)
  -h, --help                   Print this text and exit

Example, on a kubeadm cluster before any change:
  infra-controller-manager check --kubeconfig=/etc/kubernetes/controller-manager.conf \\
    --use-service-account-credentials --secure-port=10267 --allocate-node-cidrs \\
    --cluster-cidr=10.244.0.0/16 --service-cluster-ip-range=10.96.0.0/12
";

/// Arguments of `check`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    /// Flags of the program.
    flags: Vec<OsString>,
    /// `--stock-healthz`; empty to skip it.
    stock_healthz: String,
    claims: bool,
    /// `--pool`: the range or the ClusterCIDR to show instead of the report.
    pool: Option<String>,
    json: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Run(Arguments),
    Help,
}

impl Arguments {
    /// # Errors
    /// A flag of its own that cannot be read. Those of the program are not looked at.
    fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Wanted, String> {
        let stock_healthz = "https://127.0.0.1:10257/healthz".to_owned();
        let mut parsed = Self { stock_healthz, ..Self::default() };
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
                "--pool" => parsed.pool = Some(value()?),
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
pub(crate) mod tests {
    use super::*;
    use crate::controllers::ALL;

    pub(super) fn known() -> Known {
        settings::known(ALL).unwrap()
    }

    pub(super) fn values(args: &[&str]) -> Values {
        let line = [build::PRODUCT].iter().chain(args).map(OsString::from);
        match flags::parse(line, &settings::controller_flags(ALL), &known(), &build::INFO) {
            Ok(Parsed::Run(values)) => values,
            _ => panic!("{args:?} runs nothing"),
        }
    }

    pub(crate) fn settings(args: &[&str]) -> ProcessSettings {
        let judged = ProcessSettings::new(&values(args), &known(), ALL);
        judged.unwrap_or_else(|problems| panic!("{args:?}: {problems:?}"))
    }

    #[test]
    fn events_of_controllers_name_the_lease_of_a_dry_run_and_one_without_election() {
        let lease = |args: &[&str]| settings(args).lease.name;
        assert_eq!(lease(&["--dry-run"]), "infra-controller-manager-dry-run");
        assert_eq!(lease(&["--leader-elect=false"]), "infra-controller-manager");
    }

    #[test]
    fn flags_that_would_not_start_are_reported_without_a_request() {
        let flags = ["--cluster-cidr=no", "--allocate-node-cidrs", "--kubeconfig=/nonexistent"];
        let flags = flags.iter().chain(&["--kube-api-qps=0"]).map(OsString::from).collect();
        let arguments = Arguments { flags, ..Arguments::default() };
        let report = run(&arguments, ALL).unwrap();
        let text = report.text();
        assert!(!report.is_safe() && text.contains("--cluster-cidr"), "{text}");
        assert!(text.contains("--kube-api-qps") && text.contains("nothing else"), "{text}");
    }

    #[test]
    fn a_flag_that_is_none_is_one_line() {
        let flags = vec!["--cluster-cidrs=10.0.0.0/8".into()];
        let arguments = Arguments { flags, ..Arguments::default() };
        assert!(run(&arguments, ALL).unwrap_err().starts_with("unknown flag: --cluster-cidrs"));
    }
}

#[cfg(test)]
mod arguments_tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Wanted, String> {
        Arguments::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn its_own_flags_are_taken_out_of_those_of_the_program() {
        for form in [&["--output=json"][..], &["--output", "json"], &["-o", "json"], &["-ojson"]] {
            let own = ["--stock-healthz=", "--claims", "--pool=p", "--secure-port", "7"];
            let args = [&["--v=2"], form, &own].concat();
            let Ok(Wanted::Run(arguments)) = parse(&args) else { panic!("{args:?} is refused") };
            assert_eq!(arguments.flags, ["--v=2", "--secure-port", "7"]);
            assert!(arguments.json && arguments.claims && arguments.stock_healthz.is_empty());
            assert_eq!(arguments.pool.as_deref(), Some("p"));
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
            (&["--pool"], "--pool needs a value"),
            (&["-oyaml"], "--output=\"yaml\" is neither text nor json"),
        ] {
            assert_eq!(parse(args), Err(told.to_owned()));
        }
        for args in [&["-h"][..], &["--v=2", "--help"]] {
            assert_eq!(parse(args), Ok(Wanted::Help));
        }
    }
}
