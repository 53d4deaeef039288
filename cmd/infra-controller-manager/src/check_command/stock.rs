//! Whether kube-controller-manager still assigns pod CIDRs: by the command lines of its pods, and by
//! the health of the one on this host, which lists its controllers while it leads.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use ::flags::Values;
use ::flags::controllers::Known;
use client::AnswerError;
use http::Request;
use kube::client::Body;
use manager::command::client_of_stranger;
use node_ipam::Ranges;
use serde::Deserialize;
use tokio::time::timeout;

use super::cluster::Cluster;
use super::report::{Check, Report};
use crate::flags::table::generic::CONTROLLERS;
use crate::flags::{self, Parsed};
use crate::{build, controllers, settings};

/// Canonical name of the controller, there and here.
pub(super) const NODE_IPAM: &str = "node-ipam-controller";
const PROGRAM: &str = "kube-controller-manager";
const TURN_OFF: &str = "disable it on every control-plane node before this program starts: \
    --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller";
/// Flags of ranges that are the same here and there, unless a change is meant.
const SAME: [&str; 2] = ["cluster-cidr", "service-cluster-ip-range"];
/// For the health of a program on this host.
const LIMIT: Duration = Duration::from_secs(5);

/// Reads the health at `url`, unless that is empty. No answer is no finding: kube-controller-manager may
/// run on other hosts. True if a leader lists its controllers.
pub(super) async fn ask_health(url: &str, report: &mut Report) -> bool {
    if url.is_empty() {
        return false;
    }
    match timeout(LIMIT, health(url)).await {
        Ok(Ok((body, livez))) => judge_health(url, &body, livez, report),
        Ok(Err(_)) | Err(_) => {
            report.note(Check::Stock, format!("{PROGRAM} does not answer at {url}"));
            false
        }
    }
}

/// Warns that kube-controller-manager leads, and neither health nor pods show its controllers.
pub(super) fn warn_of_silence(report: &mut Report) {
    let message = format!("{PROGRAM} leads, and it is unknown whether it assigns pod CIDRs");
    let advice = format!(
        "verify that its {NODE_IPAM} is disabled, or run check on its host with --stock-healthz"
    );
    report.warn(Check::Stock, message, &advice);
}

/// The checks of `url`, and whether there is `/livez`.
async fn health(url: &str) -> anyhow::Result<(String, bool)> {
    let base: http::Uri = url.parse()?;
    let path = base.path();
    let scheme = base.scheme_str().unwrap_or("https");
    let host = base.authority().map_or("", |authority| authority.as_str());
    let client = client_of_stranger(build::PROGRAM, &format!("{scheme}://{host}")).await?;
    let get = async |path: String| {
        client.send(Request::get(path).body(Body::empty())?).await.map_err(anyhow::Error::from)
    };
    let body = get(format!("{path}?verbose")).await?.into_body().collect_bytes().await?;
    let livez = get("/livez".to_owned()).await?.status().is_success();
    Ok((String::from_utf8_lossy(&body).into_owned(), livez))
}

/// kube-controller-manager has no `/livez`, this program has. It lists its controllers while it leads.
fn judge_health(url: &str, body: &str, livez: bool, report: &mut Report) -> bool {
    let checks = || {
        body.lines().filter_map(|line| {
            let check = line.strip_prefix("[+]").or_else(|| line.strip_prefix("[-]"))?;
            check.split(' ').next()
        })
    };
    let leads = !livez && checks().any(|check| check.ends_with("-controller"));
    if livez {
        report.note(Check::Stock, format!("the server at {url} is not {PROGRAM}"));
    } else if checks().any(|check| check == NODE_IPAM) {
        let message = format!("{PROGRAM} at {url} leads and runs {NODE_IPAM}");
        report.error(Check::Stock, message, TURN_OFF);
    } else if leads {
        report.note(Check::Stock, format!("{PROGRAM} at {url} leads and does not run {NODE_IPAM}"));
    } else if body.contains("check passed") {
        report.note(
            Check::Stock,
            format!("{PROGRAM} at {url} does not lead: another instance leads"),
        );
    } else {
        report
            .note(Check::Stock, format!("the server at {url} is not healthy, or is not {PROGRAM}"));
    }
    leads
}

/// A pod, as far as it matters.
#[derive(Deserialize)]
pub(super) struct Pod {
    metadata: PodMetadata,
    spec: PodSpec,
}

#[derive(Deserialize)]
struct PodMetadata {
    name: String,
}

#[derive(Deserialize)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    args: Vec<String>,
}

impl Pod {
    /// The name of the pod.
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The command line of each container.
    pub(super) fn command_lines(&self) -> impl Iterator<Item = Vec<String>> {
        let containers = self.spec.containers.iter();
        containers.map(|it| it.command.iter().chain(&it.args).cloned().collect())
    }
}

/// The pods of kube-controller-manager, as kubeadm labels them.
pub(super) async fn pods(cluster: &Cluster) -> Result<Vec<Pod>, AnswerError> {
    let path = format!("/api/v1/namespaces/kube-system/pods?labelSelector=component%3D{PROGRAM}");
    cluster.list(&path).await
}

/// Whether this is a command line of kube-controller-manager.
pub(super) fn is_stock(line: &[String]) -> bool {
    line.first().and_then(|program| Path::new(program).file_name()) == Some(PROGRAM.as_ref())
}

/// Reads the command lines of its pods, as kubeadm labels them. Whether there are any.
/// `ours` are the flags here.
pub(super) async fn check_pods(
    cluster: &Cluster,
    ours: &Values,
    known: &Known,
    report: &mut Report,
) -> bool {
    match pods(cluster).await {
        Ok(pods) => {
            let lines: Vec<_> = pods.iter().filter_map(command_line).collect();
            if lines.is_empty() {
                let message = format!("found no pods of {PROGRAM} whose flags can be read");
                report.note(Check::Stock, message);
            }
            for (pod, args) in &lines {
                judge_pod(pod, args, ours, known, report);
            }
            !lines.is_empty()
        }
        Err(error) => {
            let message = format!("cannot list the pods of {PROGRAM}: {error}");
            report.warn(Check::Stock, message, "verify that its node-ipam-controller is disabled");
            true
        }
    }
}

/// The pod's name and the command line of the program in it.
fn command_line(pod: &Pod) -> Option<(&str, Vec<OsString>)> {
    let line = pod.command_lines().find(|line| is_stock(line))?;
    Some((pod.name(), line.into_iter().map(OsString::from).collect()))
}

fn judge_pod(pod: &str, args: &[OsString], ours: &Values, known: &Known, report: &mut Report) {
    let own = settings::controller_flags(controllers::ALL);
    let theirs = match flags::parse(args.iter().cloned(), &own, known, &build::INFO) {
        Ok(Parsed::Run(values)) => values,
        Ok(Parsed::Print(_)) => return,
        Err(error) => {
            let message = format!("cannot read the flags of pod {pod}: {}", error.message());
            report.warn(Check::Stock, message, "verify that its node-ipam-controller is disabled");
            return;
        }
    };
    let value = |values: &Values, name: &str| {
        values.effective().find(|(known, _)| *known == name).map(|(_, value)| value)
    };
    let selected = known.select(&theirs.get(&CONTROLLERS));
    // A name that this program does not know is another one's.
    let is_on = selected.map_or(true, |selected| selected.is_enabled(NODE_IPAM));
    if is_on && value(&theirs, "allocate-node-cidrs").as_deref() == Some("true") {
        report.error(Check::Stock, format!("pod {pod} runs {NODE_IPAM}"), TURN_OFF);
    } else {
        report.note(Check::Stock, format!("pod {pod} assigns no pod CIDRs"));
    }
    for name in SAME.into_iter().filter(|name| theirs.is_set(name)) {
        let (theirs, ours) = (value(&theirs, name), value(ours, name));
        if let (Some(theirs), Some(ours)) = (theirs, ours)
            && theirs != ours
        {
            let message = format!("pod {pod} has --{name}={theirs}, this program has {ours:?}");
            report.warn(Check::Stock, message, "set the same value, unless you want to change it");
        }
    }
    judge_masks(pod, args, ours, known, report);
}

/// The sizes of blocks there and here. There, also where nothing is given out any more.
fn judge_masks(pod: &str, args: &[OsString], ours: &Values, known: &Known, report: &mut Report) {
    let on = OsString::from("--allocate-node-cidrs=true");
    let line = args.iter().cloned().chain([on]);
    let own = settings::controller_flags(controllers::ALL);
    let Ok(Parsed::Run(theirs)) = flags::parse(line, &own, known, &build::INFO) else { return };
    let (Some(theirs), Some(ours)) = (Ranges::of(&theirs), Ranges::of(ours)) else { return };
    for their in &theirs.pools {
        let same_family = || ours.pools.iter().filter(|our| our.family() == their.family());
        if let Some(our) = same_family().find(|our| our.mask() != their.mask()) {
            let (mask, here) = (their.mask(), our.mask());
            let message = format!(
                "pod {pod} assigns blocks of /{mask} from {}, this program assigns /{here}",
                their.cidr()
            );
            report.error(
                Check::Stock,
                message,
                "set --node-cidr-mask-size to the value of kube-controller-manager",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::report::Severity;
    use super::super::tests::{known, values};
    use super::*;

    fn judged(args: &[&str]) -> Vec<(Severity, String)> {
        let line: Vec<_> = [PROGRAM].iter().chain(args).map(OsString::from).collect();
        let ours = values(&["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"]);
        let mut report = Report::default();
        judge_pod("kcm-a", &line, &ours, &known(), &mut report);
        report.lines().iter().map(|line| (line.severity, line.message.clone())).collect()
    }

    #[test]
    fn a_pod_that_allocates_is_an_error_whatever_turns_it_on() {
        const ON: &str = "--allocate-node-cidrs=true";
        let runs = [(Severity::Error, "pod kcm-a runs node-ipam-controller".to_owned())];
        let quiet = [(Severity::Note, "pod kcm-a assigns no pod CIDRs".to_owned())];
        for (args, expected) in [
            (&[ON][..], &runs),
            (&[ON, "--controllers=*,bootstrapsigner,tokencleaner"], &runs),
            (&[ON, "--controllers=nodeipam"], &runs),
            (&[ON, "--controllers=some-day-controller"], &runs),
            (&[ON, "--controllers=*,-node-ipam-controller"], &quiet),
            (&[ON, "--controllers=*,-nodeipam"], &quiet),
            (&[ON, "--controllers=deployment"], &quiet),
            (&["--allocate-node-cidrs=false"], &quiet),
            (&[], &quiet),
        ] {
            assert_eq!(judged(args), expected, "{args:?}");
        }
    }

    #[test]
    fn other_ranges_than_ours_and_flags_that_cannot_be_read_are_reported() {
        let off = "--controllers=-nodeipam";
        assert_eq!(judged(&[off, "--cluster-cidr=10.0.0.0/16"]).len(), 1);
        let other = "pod kcm-a has --cluster-cidr=10.1.0.0/16, this program has \"10.0.0.0/16\"";
        assert_eq!(
            judged(&[off, "--cluster-cidr=10.1.0.0/16"])[1],
            (Severity::Warning, other.into())
        );
        let (severity, message) = judged(&["--flag-of-some-day"]).remove(0);
        assert_eq!(severity, Severity::Warning);
        assert!(message.contains("unknown flag: --flag-of-some-day"), "{message}");
    }

    #[test]
    fn another_size_of_blocks_than_there_is_an_error() {
        let range = "--cluster-cidr=10.0.0.0/16";
        let masks = |args: &[&str]| {
            let mut found = judged(&[&["--controllers=-nodeipam", range], args].concat());
            found.retain(|(_, message)| message.contains("blocks of"));
            found
        };
        let other = "pod kcm-a assigns blocks of /25 from 10.0.0.0/16, this program assigns /24";
        let error = [(Severity::Error, other.to_owned())];
        for args in [
            &["--node-cidr-mask-size=25"][..],
            &["--node-cidr-mask-size-ipv4=25"],
            &["--allocate-node-cidrs", "--node-cidr-mask-size=25"],
            &["--allocate-node-cidrs=false", "--node-cidr-mask-size=25"],
        ] {
            assert_eq!(masks(args), error, "{args:?}");
        }
        for args in [&[][..], &["--node-cidr-mask-size=24"], &["--node-cidr-mask-size-ipv4=24"]] {
            assert_eq!(masks(args), [], "{args:?}");
        }
    }

    #[test]
    fn the_command_line_is_that_of_the_program_and_no_sidecar() {
        let pod = |containers| {
            let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers}});
            serde_json::from_value::<Pod>(pod).unwrap()
        };
        let sidecar = json!({"command": ["/bin/sh", "-c", "kube-controller-manager"]});
        let stock = json!({"command": ["/usr/bin/kube-controller-manager"], "args": ["--v=2"]});
        let found = pod(json!([sidecar, stock]));
        let line = ["/usr/bin/kube-controller-manager", "--v=2"].map(OsString::from).to_vec();
        assert_eq!(command_line(&found), Some(("a", line)));
        assert_eq!(command_line(&pod(json!([sidecar, {}]))), None);
    }

    #[test]
    fn health_shows_of_the_controller_and_this_program_is_not_mistaken_for_the_other() {
        let judged = |body: &str, livez| {
            let mut report = Report::default();
            let told = judge_health("https://here/healthz", body, livez, &mut report);
            (report.lines()[0].severity, told)
        };
        let body =
            |check: &str| format!("[+]leaderElection ok\n[+]{check} ok\nhealthz check passed\n");
        assert_eq!(judged(&body("node-ipam-controller"), false), (Severity::Error, true));
        let failing = "[-]node-ipam-controller failed: reason withheld\nhealthz check failed\n";
        assert_eq!(judged(failing, false), (Severity::Error, true));
        assert_eq!(judged(&body("node-ipam-controller"), true), (Severity::Note, false));
        assert_eq!(judged(&body("node-lifecycle-controller"), false), (Severity::Note, true));
        assert_eq!(judged(&body("ping"), false), (Severity::Note, false), "it stands by");
        assert_eq!(judged("<html>", false), (Severity::Note, false));
    }
}
