//! `infra-controller-manager check`: says whether the program may be started with these flags, beside
//! or instead of kube-controller-manager, before it is. It asks the API server and writes nothing.
//! Exit code 0 when nothing speaks against it, which a warning does not, else 1.
//!
//! | file | holds |
//! |---|---|
//! | `arguments.rs` | its command line: the flags of the program, and a few of its own |
//! | `report.rs` | what is found, for people and for programs |
//! | `host.rs` | what the flags name on this host: files, and the port |
//! | `cluster.rs` | what is asked of the API server |
//! | `rights.rs` | what the program must be allowed to do |
//! | `leases.rs` | who holds its lease, and that of kube-controller-manager |
//! | `stock.rs` | whether kube-controller-manager still gives out pod CIDRs |
//! | `nodes.rs` | what the Nodes tell of it |

mod arguments;
mod cluster;
mod host;
mod leases;
mod nodes;
mod report;
mod rights;
mod stock;

use std::ffi::OsString;
use std::process::ExitCode;

use ::flags::Values;
use ::flags::controllers::Known;
use client::{Clients, Profile, RequestMetrics};
use jiff::Timestamp;
use manager::command::told;
use prometheus::Registry;

use crate::build;
use crate::controllers::Controllers;
use crate::flags::{self, Parsed};
use crate::settings::{self, ProcessSettings};
use arguments::{Arguments, Wanted};
use cluster::Cluster;
use report::{Check, Report};

/// The word after the program's name.
pub const NAME: &str = "check";

/// Runs it with the arguments after [`NAME`].
pub fn start(args: impl IntoIterator<Item = OsString>, hosted: Controllers) -> ExitCode {
    let arguments = match Arguments::parse(args) {
        Ok(Wanted::Run(arguments)) => arguments,
        Ok(Wanted::Help) => return told(arguments::HELP, false),
        Err(message) => return told(&format!("error: {message}\n"), true),
    };
    match run(&arguments, hosted) {
        Ok(report) => {
            told(&if arguments.json { report.json() } else { report.text() }, false);
            if report.is_safe() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => told(&format!("error: {message}\n"), true),
    }
}

fn run(arguments: &Arguments, hosted: Controllers) -> Result<Report, String> {
    let known = settings::known(hosted).map_err(|error| error.to_string())?;
    let own = [OsString::from(build::PRODUCT)].into_iter().chain(arguments.flags.iter().cloned());
    let parsed = flags::parse(own, &settings::controller_flags(hosted), &known, &build::INFO);
    let values = match parsed.map_err(|error| error.message().to_owned())? {
        Parsed::Run(values) => values,
        Parsed::Print(text) => return Err(format!("these flags run nothing: they print {text:?}")),
    };
    let mut report = Report::default();
    match ProcessSettings::new(&values, &known, hosted) {
        Err(problems) => {
            for problem in problems {
                report.error(Check::Flags, problem, "correct the command line");
            }
            report.note(Check::Flags, "nothing else was checked");
        }
        Ok(settings) => {
            let _set = rustls::crypto::ring::default_provider().install_default();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            let subject = Subject { values: &values, known: &known, settings: &settings };
            runtime.block_on(look(arguments, &subject, &mut report));
            // A name that nobody answers for must not hold up the end.
            runtime.shutdown_background();
        }
    }
    Ok(report)
}

/// What is to be started.
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
        report.note(Check::Flags, format!("{name} has nothing to do: {reason}"));
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
    host::check_certificate(end, Timestamp::now(), report);
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
    let now = Timestamp::now();
    rights::check(&cluster, settings, report).await;
    let stock_leads = leases::check(&cluster, settings.election.as_ref(), now, report).await;
    if settings.controllers.iter().any(|planned| planned.name == stock::NODE_IPAM) {
        let has_pods = stock::check_pods(&cluster, subject.values, subject.known, report).await;
        if stock_leads && !stock_told && !has_pods {
            stock::warn_of_silence(report);
        }
        let seen = nodes::check(&cluster, subject.values, now, report).await;
        nodes::count(&cluster, seen, arguments.claims, report).await;
    }
}

async fn load(settings: &ProcessSettings) -> Result<(Clients, RequestMetrics), String> {
    let requests = RequestMetrics::new(&Registry::new()).map_err(|error| error.to_string())?;
    let clients = Clients::load(&settings.client, &requests).await;
    Ok((clients.map_err(|error| error.to_string())?, requests))
}

#[cfg(test)]
mod tests {
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

    pub(super) fn settings(args: &[&str]) -> ProcessSettings {
        let judged = ProcessSettings::new(&values(args), &known(), ALL);
        judged.unwrap_or_else(|problems| panic!("{args:?}: {problems:?}"))
    }

    #[test]
    fn flags_that_would_not_start_are_told_and_nothing_is_asked() {
        let flags = ["--cluster-cidr=no", "--allocate-node-cidrs", "--kubeconfig=/nonexistent"];
        let flags = flags.iter().chain(&["--kube-api-qps=0"]).map(OsString::from).collect();
        let arguments =
            Arguments { flags, stock_healthz: String::new(), claims: false, json: false };
        let report = run(&arguments, ALL).unwrap();
        let text = report.text();
        assert!(!report.is_safe() && text.contains("--cluster-cidr"), "{text}");
        assert!(text.contains("--kube-api-qps") && text.contains("nothing else"), "{text}");
    }

    #[test]
    fn a_flag_that_is_none_is_one_line() {
        let flags = vec!["--cluster-cidrs=10.0.0.0/8".into()];
        let arguments =
            Arguments { flags, stock_healthz: String::new(), claims: false, json: false };
        assert!(run(&arguments, ALL).unwrap_err().starts_with("unknown flag: --cluster-cidrs"));
    }
}
