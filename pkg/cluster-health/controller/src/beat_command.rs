//! `infra-controller-manager beat`: runs in a member cluster and renews the Lease of that cluster in the management
//! cluster, with what its own `/readyz` says, for `--cluster-health-beats-namespace` of the controller.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser;
use client::Answer;
use flags::GoDuration;
use http::{Request, StatusCode, header};
use jiff::Timestamp;
use kube::client::Body;
use manager::command::{Command, Parsed, Program, following_client, print_output, to_stderr};
use resilience::wall_now;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::api::{LEASES, READYZ, is_name};

/// The command for the table of the program.
pub(crate) const COMMAND: Command = Command {
    name: "beat",
    about: "Renews the Lease of a member cluster in the management cluster",
    start,
};

/// For each request.
const LIMIT: Duration = Duration::from_secs(5);
/// Renewals in one duration of the Lease.
const RENEWALS: u32 = 3;
/// Durations that the controller knows.
const DURATIONS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];

fn start(program: Program, args: Vec<OsString>) -> ExitCode {
    let arguments = match Parsed::from(Arguments::try_parse_from(args)) {
        Parsed::Run(arguments) => arguments,
        Parsed::Print { text, is_error } => return print_output(&text, is_error),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = runtime
        .map_err(anyhow::Error::new)
        .and_then(|runtime| runtime.block_on(beat(program, &arguments)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_output(&format!("error: {error:#}\n"), true),
    }
}

/// Renews until the process ends, or once.
async fn beat(program: Program, arguments: &Arguments) -> anyhow::Result<()> {
    let hub = following_client(program, Some(arguments.kubeconfig.clone())).await;
    let hub = hub.context("cannot use --kubeconfig")?;
    let member = following_client(program, arguments.member_kubeconfig.clone()).await;
    let member = member.context(
        "cannot reach the API server of this cluster; run in a pod with a service account, or name \
         --member-kubeconfig",
    )?;
    let mut rounds = interval(arguments.lease_duration / RENEWALS);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = String::new();
    loop {
        rounds.tick().await;
        let said = readyz(&member).await;
        let renewed = renew(&hub, arguments, &said).await;
        let renewed = renewed.with_context(|| format!("cannot renew Lease {}", arguments.lease));
        if arguments.once {
            return renewed;
        }
        let line = match renewed {
            Ok(()) => format!("renewing Lease {}: /readyz says {said}\n", arguments.lease),
            Err(error) => format!("{error:#}\n"),
        };
        // Only what is new.
        if line != told {
            to_stderr(&line);
            told = line;
        }
    }
}

/// `ok`, or a short code for what `/readyz` said.
async fn readyz(member: &kube::Client) -> String {
    let Ok(request) = Request::get("/readyz").body(Body::empty()) else {
        return "unreachable".to_owned();
    };
    match client::answer(member, request, LIMIT).await {
        Ok(Answer { status: StatusCode::OK, .. }) => "ok".to_owned(),
        Ok(Answer { status, .. }) => format!("http-{}", status.as_u16()),
        Err(_) => "unreachable".to_owned(),
    }
}

async fn renew(hub: &kube::Client, arguments: &Arguments, said: &str) -> anyhow::Result<()> {
    let path = LEASES.object_path(&arguments.lease);
    let get = Request::get(&path).header(header::ACCEPT, "application/json");
    let lease = send(hub, get.body(Body::empty())?).await?;
    let mut lease: Value = serde_json::from_slice(&lease).context("the answer is no Lease")?;
    set(&mut lease, arguments.lease_duration, said, wall_now())?;
    let put = Request::put(&path).header(header::CONTENT_TYPE, "application/json");
    send(hub, put.body(serde_json::to_vec(&lease)?.into())?).await.map(drop)
}

/// Puts into the Lease what a renewal says, and leaves the rest as it is.
fn set(lease: &mut Value, duration: Duration, said: &str, now: Timestamp) -> anyhow::Result<()> {
    let object = |value: &mut Value| value.is_object() || value.is_null();
    if !lease.is_object() || !object(&mut lease["spec"]) || !object(&mut lease["metadata"]) {
        bail!("the answer is no Lease");
    }
    lease["spec"]["renewTime"] = format!("{now:.6}").into();
    lease["spec"]["leaseDurationSeconds"] = duration.as_secs().into();
    let annotations = &mut lease["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[READYZ] = said.into();
    Ok(())
}

async fn send(hub: &kube::Client, request: Request<Body>) -> anyhow::Result<bytes::Bytes> {
    let Answer { status, body, .. } = client::answer(hub, request, LIMIT).await?;
    match status {
        StatusCode::OK => Ok(body),
        StatusCode::NOT_FOUND => {
            bail!("it does not exist; an administrator of the management cluster creates it")
        }
        StatusCode::FORBIDDEN => bail!("the right to get and update it is missing"),
        status => bail!("the API server answered with status {status}"),
    }
}

const ABOUT: &str = "Runs in a member cluster and renews the Lease of that cluster in the management cluster, so that \
    cluster-health does not publish the cluster as offline when only its probes do not reach it. The Lease is created by an \
    administrator; the user of --kubeconfig needs the right to get and update it, and no other.";
const EXAMPLES: &str = "Example:
  infra-controller-manager beat --kubeconfig=management.conf --lease=beats/kubefed-0f3c0a52-6d0c-4c5e-9f6e-3d1f5a2b7c11";

#[derive(Debug, Parser)]
#[command(name = "infra-controller-manager beat", no_binary_name = true, about = ABOUT, after_help = EXAMPLES)]
struct Arguments {
    /// Kubeconfig of the management cluster.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// The Lease to renew: FLAVOUR-UID of the object that represents this cluster, with the flavour kubefed, tke,
    /// clusterprofile or capi, in --cluster-health-beats-namespace of the controller.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = lease)]
    lease: String,
    /// Kubeconfig of the member cluster. Default: the service account of the pod.
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: Option<PathBuf>,
    /// Duration of the Lease, which is renewed three times in it; 10s to 10m.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    lease_duration: Duration,
    /// Renew once and end.
    #[arg(long)]
    once: bool,
}

fn lease(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) => Ok(text.to_owned()),
        _ => Err("it is not NAMESPACE/NAME".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let value: GoDuration = text.parse().map_err(|error| format!("{error}"))?;
    let value = value.to_std();
    if value < DURATIONS[0] || value > DURATIONS[1] {
        return Err("it is not between 10s and 10m".to_owned());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Parsed<Arguments> {
        Arguments::try_parse_from(args.iter().map(OsString::from)).into()
    }

    #[test]
    fn arguments_are_read() {
        let args = ["--kubeconfig=hub", "--lease=beats/tke-1", "--lease-duration=30s", "--once"];
        let Parsed::Run(arguments) = parse(&args) else { panic!("they are refused") };
        assert_eq!(
            (&*arguments.lease, arguments.lease_duration),
            ("beats/tke-1", Duration::from_secs(30))
        );
        assert!(arguments.once && arguments.member_kubeconfig.is_none());
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused() {
        let rows: [&[&str]; 6] = [
            &["--lease=a/b"],
            &["--kubeconfig=k"],
            &["--kubeconfig=k", "--lease=b"],
            &["--kubeconfig=k", "--lease=a/../b"],
            &["--kubeconfig=k", "--lease=a/b", "--lease-duration=9s"],
            &["--kubeconfig=k", "--lease=a/b", "--lease-duration=11m"],
        ];
        for args in rows {
            assert!(matches!(parse(args), Parsed::Print { is_error: true, .. }), "{args:?}");
        }
    }

    #[test]
    fn a_renewal_leaves_everything_else_as_it_is() {
        let now: Timestamp = "2026-11-24T12:00:00.1234567Z".parse().unwrap();
        let mut lease = json!({
            "metadata": {"name": "tke-1", "annotations": {"a": "b"}},
            "spec": {"holderIdentity": "x"}, "more": 1,
        });
        set(&mut lease, Duration::from_secs(60), "http-500", now).unwrap();
        let expected = json!({
            "metadata": {"name": "tke-1", "annotations": {"a": "b", READYZ: "http-500"}},
            "spec": {
                "holderIdentity": "x", "leaseDurationSeconds": 60,
                "renewTime": "2026-11-24T12:00:00.123456Z",
            },
            "more": 1,
        });
        assert_eq!(lease, expected);
        let mut bare = json!({"metadata": {"name": "tke-1"}});
        set(&mut bare, Duration::from_secs(60), "ok", now).unwrap();
        assert_eq!(bare["metadata"]["annotations"][READYZ], "ok");
        for odd in [json!([]), json!("x"), json!({"spec": 1}), json!({"metadata": []})] {
            assert!(set(&mut odd.clone(), Duration::from_secs(60), "ok", now).is_err(), "{odd}");
        }
    }
}
