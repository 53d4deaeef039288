//! Other programs that assign pod CIDRs, by their leases, the command lines of their pods and their
//! ConfigMaps; and a `--controllers` of kube-controller-manager that disables more than its allocator.

use std::collections::{BTreeMap, BTreeSet};

use cidr::IpNet;
use client::AnswerError;
use flags::Values;
use http::StatusCode;
use jiff::Timestamp;
use node_ipam::Ranges;
use serde::Deserialize;
use serde_json::Value;

use super::cluster::Cluster;
use super::leases::Lease;
use super::report::{Check, Report};
use super::stock::{self, Pod};

/// Leases of other allocators, with what disables each. A lease alone does not prove that its holder
/// assigns pod CIDRs.
const LEASES: [(&str, &str); 4] = [
    ("cloud-controller-manager", "verify that it runs without --allocate-node-cidrs"),
    ("node-ipam-controller", "remove sigs.k8s.io/node-ipam-controller from the cluster"),
    ("aws-ipam-controller-leader-election", "remove Gardener's aws-ipam-controller"),
    ("kops-controller-leader", "verify that the IPAM of kops-controller is disabled"),
];

/// Pods of cloud controller managers, by the labels that their charts set.
const CLOUD_PODS: [&str; 2] = [
    "component%20in%20(cloud-controller-manager)",
    "k8s-app%20in%20(cloud-controller-manager,aws-cloud-controller-manager,\
     gcp-cloud-controller-manager,openstack-cloud-controller-manager)",
];
const CLOUD_PROGRAM: &str = "cloud-controller-manager";

/// What kubeadm needs of `--controllers`, by both names of each.
const NEEDED: [&[&str]; 3] = [
    &["*"],
    &["bootstrapsigner", "bootstrap-signer-controller"],
    &["tokencleaner", "token-cleaner-controller"],
];
const SET_ALL: &str = "set --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller: without \
    * the other controllers do not run, without the others kubeadm join fails";

const SET_REST: &str = "set --controllers=*,-node-ipam-controller, or verify that the cluster needs \
    none of the controllers that the list leaves out";

/// The namespace of all of them.
const NAMESPACE: &str = "kube-system";

#[derive(Deserialize)]
struct Named<T> {
    metadata: Metadata,
    #[serde(flatten)]
    object: T,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConfigMap {
    data: BTreeMap<String, String>,
}

/// Looks for all of them.
pub(super) async fn check(cluster: &Cluster, values: &Values, now: Timestamp, report: &mut Report) {
    let found = async {
        check_leases(cluster, now, report).await?;
        let kubeadm = config_map(cluster, "kubeadm-config").await;
        let is_kubeadms = matches!(kubeadm, Ok(Some(_)));
        check_pods(cluster, is_kubeadms, report).await?;
        check_config_maps(cluster, &kubeadm?.unwrap_or_default(), values, report).await
    };
    if let Err(error) = found.await {
        let message = format!("cannot look for other allocators of pod CIDRs: {error}");
        let advice = "allow the identity of --kubeconfig to list leases, pods, configmaps and \
            ciliumnodes, or verify that no other program assigns pod CIDRs";
        report.warn(Check::Allocators, message, advice);
    }
}

async fn check_leases(
    cluster: &Cluster,
    now: Timestamp,
    report: &mut Report,
) -> Result<(), AnswerError> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases?");
    for Named { metadata: Metadata { name }, object } in cluster.list::<Named<Lease>>(&path).await?
    {
        let known = LEASES.iter().find(|(lease, _)| *lease == name);
        if let (Some((_, advice)), Some(holder)) = (known, object.holder(now)) {
            let message = format!("lease {NAMESPACE}/{name} is held by {holder}");
            report.warn(Check::Allocators, message, advice);
        }
    }
    Ok(())
}

async fn check_pods(
    cluster: &Cluster,
    is_kubeadms: bool,
    report: &mut Report,
) -> Result<(), AnswerError> {
    let mut found = BTreeSet::new();
    for selector in CLOUD_PODS {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}");
        let mut pods = cluster.list::<Pod>(&path).await?;
        pods.retain(|pod| pod.command_lines().any(|line| allocates(&line)));
        found.extend(pods.iter().map(|pod| pod.name().to_owned()));
    }
    for name in found {
        let message = format!("pod {name} has --allocate-node-cidrs");
        report.error(Check::Allocators, message, "set its flag --allocate-node-cidrs=false");
    }
    for pod in stock::pods(cluster).await? {
        for line in pod.command_lines().filter(|line| stock::is_stock(line)) {
            judge_controllers(
                &format!("pod {}", pod.name()),
                controllers(&line).as_deref(),
                is_kubeadms,
                report,
            );
        }
    }
    Ok(())
}

/// Whether this is a cloud controller manager that assigns pod CIDRs.
fn allocates(line: &[String]) -> bool {
    let is_cloud = line.first().is_some_and(|program| program.ends_with(CLOUD_PROGRAM));
    let value = |it: &String| {
        it.trim_start_matches('-').strip_prefix("allocate-node-cidrs").map(str::to_owned)
    };
    let last = line.iter().rev().find_map(value);
    is_cloud && last.is_some_and(|value| matches!(&*value, "" | "=true" | "=1" | "=t"))
}

/// The value of `--controllers`; the last one counts.
fn controllers(line: &[String]) -> Option<String> {
    let mut found = None;
    for (at, argument) in line.iter().enumerate() {
        match argument.trim_start_matches('-').strip_prefix("controllers") {
            Some("") => found = line.get(at + 1).cloned(),
            Some(value) => found = value.strip_prefix('=').map(str::to_owned).or(found),
            None => {}
        }
    }
    found
}

/// `place` says where the flag is set; `None` means its default. Only kubeadm needs more than `*`.
fn judge_controllers(place: &str, given: Option<&str>, is_kubeadms: bool, report: &mut Report) {
    let Some(given) = given else { return };
    let has = |names: &[&str]| given.split(',').any(|name| names.contains(&name.trim()));
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|names| !has(names))
        .filter_map(|names| names.first().copied())
        .collect();
    let message = |missing: &str| format!("{place} has --controllers={given}, without {missing}");
    if is_kubeadms && !missing.is_empty() {
        report.error(Check::Allocators, message(&missing.join(", ")), SET_ALL);
    } else if missing.contains(&"*") {
        report.warn(Check::Allocators, message("*"), SET_REST);
    }
}

/// The data of a ConfigMap; `None` if there is no such one.
async fn config_map(
    cluster: &Cluster,
    name: &str,
) -> Result<Option<BTreeMap<String, String>>, AnswerError> {
    let path =
        format!("/api/v1/namespaces/{NAMESPACE}/configmaps?fieldSelector=metadata.name%3D{name}");
    let found = cluster.list::<ConfigMap>(&path).await?;
    Ok(found.into_iter().next().map(|found| found.data))
}

async fn check_config_maps(
    cluster: &Cluster,
    kubeadm: &BTreeMap<String, String>,
    values: &Values,
    report: &mut Report,
) -> Result<(), AnswerError> {
    let read = async |name: &str| {
        Ok::<_, AnswerError>(config_map(cluster, name).await?.unwrap_or_default())
    };
    if let Some(text) = kubeadm.get("ClusterConfiguration") {
        let place = format!("ConfigMap {NAMESPACE}/kubeadm-config");
        judge_controllers(&place, of_kubeadm(text).as_deref(), true, report);
    }
    if is_antreas(read("antrea-config").await?.get("antrea-controller.conf")) {
        let message = format!("ConfigMap {NAMESPACE}/antrea-config has enableNodeIPAM");
        report.error(Check::Allocators, message, "set nodeIPAM.enableNodeIPAM to false in it");
    }
    let cilium = read("cilium-config").await?;
    match cilium.get("ipam").map(String::as_str) {
        Some(mode @ ("cluster-pool" | "multi-pool")) => {
            check_cilium(cluster, mode, values, report).await
        }
        _ => Ok(()),
    }
}

/// `--controllers` of the extra arguments, which are a map or a list of names and values.
fn of_kubeadm(text: &str) -> Option<String> {
    let config: Value = serde_saphyr::from_str(text).ok()?;
    let arguments = &config["controllerManager"]["extraArgs"];
    let of_list = || {
        let named = arguments.as_array()?.iter().rfind(|it| it["name"] == "controllers")?;
        named["value"].as_str()
    };
    arguments["controllers"].as_str().or_else(of_list).map(str::to_owned)
}

fn is_antreas(text: Option<&String>) -> bool {
    let config = text.and_then(|text| serde_saphyr::from_str::<Value>(text).ok());
    config.is_some_and(|config| config["nodeIPAM"]["enableNodeIPAM"] == true)
}

/// Cilium's operator assigns pod CIDRs to CiliumNodes only, so only the addresses can collide.
async fn check_cilium(
    cluster: &Cluster,
    mode: &str,
    values: &Values,
    report: &mut Report,
) -> Result<(), AnswerError> {
    let nodes = match cluster.list::<Value>("/apis/cilium.io/v2/ciliumnodes?").await {
        Err(AnswerError::Refused { status: StatusCode::NOT_FOUND, .. }) => return Ok(()),
        other => other?,
    };
    let pools = Ranges::of(values).map(|ranges| ranges.pools).unwrap_or_default();
    let pools: Vec<IpNet> = pools.iter().map(cidr::Pool::cidr).collect();
    match nodes.iter().find_map(|node| overlap(node, &pools)) {
        Some((name, cidr, pool)) => {
            let message = format!(
                "CiliumNode {name} has {cidr}, which overlaps the cluster CIDR {pool}: \
                 cilium-config has ipam: {mode}"
            );
            let advice = "set ipam: kubernetes in cilium-config, or choose another --cluster-cidr";
            report.error(Check::Allocators, message, advice);
        }
        None => report.warn(
            Check::Allocators,
            format!("cilium-config has ipam: {mode}, so Cilium does not use pod CIDRs of Nodes"),
            "set ipam: kubernetes in cilium-config if it should use them",
        ),
    }
    Ok(())
}

/// The first pod CIDR of a CiliumNode that overlaps a pool: name, CIDR, pool.
fn overlap(node: &Value, pools: &[IpNet]) -> Option<(String, IpNet, IpNet)> {
    let cidrs = node["spec"]["ipam"]["podCIDRs"].as_array()?;
    let cidrs = cidrs.iter().filter_map(|it| cidr::parse(it.as_str()?).ok());
    let overlapping = cidrs.into_iter().find_map(|cidr| {
        let pool = pools.iter().find(|pool| pool.contains(&cidr) || cidr.contains(*pool))?;
        Some((cidr, *pool))
    });
    let (cidr, pool) = overlapping?;
    Some((node["metadata"]["name"].as_str().unwrap_or_default().to_owned(), cidr, pool))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check_command::report::Severity;

    fn line(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_cloud_controller_manager_that_assigns_is_known_by_its_flag() {
        for (text, expected) in [
            ("/bin/aws-cloud-controller-manager --allocate-node-cidrs", true),
            ("cloud-controller-manager --allocate-node-cidrs=true --v=2", true),
            ("cloud-controller-manager --allocate-node-cidrs --allocate-node-cidrs=false", false),
            ("cloud-controller-manager --v=2", false),
            ("kube-controller-manager --allocate-node-cidrs=true", false),
        ] {
            assert_eq!(allocates(&line(text)), expected, "{text}");
        }
    }

    #[test]
    fn controllers_that_kubeadm_needs_and_the_flag_leaves_out_are_named() {
        let missing = |given: &str| {
            let mut report = Report::default();
            judge_controllers("pod a", controllers(&line(given)).as_deref(), true, &mut report);
            report.lines().first().map(|line| line.message.clone())
        };
        assert_eq!(missing("kcm --v=2"), None);
        assert_eq!(missing("kcm --controllers=*,bootstrapsigner,tokencleaner,-nodeipam"), None);
        assert_eq!(
            missing("kcm --controllers *,bootstrap-signer-controller,token-cleaner-controller"),
            None
        );
        let told = missing("kcm --controllers=-node-ipam-controller,tokencleaner");
        let expected = "pod a has --controllers=-node-ipam-controller,tokencleaner, \
            without *, bootstrapsigner";
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[test]
    fn without_kubeadm_a_list_without_all_is_a_warning_and_other_lists_are_nothing() {
        for (given, is_kubeadms, errors, warnings) in [
            ("-nodeipam", false, 0, 1),
            ("-nodeipam", true, 1, 0),
            ("*,-nodeipam", false, 0, 0),
            ("*,-nodeipam", true, 1, 0),
        ] {
            let mut report = Report::default();
            judge_controllers("pod a", Some(given), is_kubeadms, &mut report);
            let count =
                |severity| report.lines().iter().filter(|line| line.severity == severity).count();
            let counts = (count(Severity::Error), count(Severity::Warning));
            assert_eq!(counts, (errors, warnings), "{given} {is_kubeadms}");
        }
    }

    #[test]
    fn both_forms_of_extra_arguments_of_kubeadm_are_read() {
        let map = "controllerManager:\n  extraArgs:\n    controllers: \"-nodeipam\"\n";
        let list = "controllerManager:\n  extraArgs:\n  - name: v\n    value: \"2\"\n  \
            - name: controllers\n    value: \"-nodeipam\"\n";
        for text in [map, list] {
            assert_eq!(of_kubeadm(text).as_deref(), Some("-nodeipam"), "{text}");
        }
        for text in ["", "controllerManager: {}", ": no yaml", "controllerManager:\n  extraArgs: 7"]
        {
            assert_eq!(of_kubeadm(text), None, "{text}");
        }
    }

    #[test]
    fn antrea_assigns_only_with_its_option() {
        for (text, expected) in [
            ("nodeIPAM:\n  enableNodeIPAM: true\n", true),
            ("nodeIPAM:\n  enableNodeIPAM: false\n", false),
            ("nodeIPAM: {}", false),
        ] {
            assert_eq!(is_antreas(Some(&text.to_owned())), expected, "{text}");
        }
        assert!(!is_antreas(None));
    }

    #[test]
    fn a_cilium_node_inside_or_around_a_pool_overlaps_it() {
        let pools = ["10.0.0.0/16".parse().unwrap()];
        for (cidr, expected) in
            [("10.0.7.0/24", true), ("10.0.0.0/8", true), ("10.1.0.0/24", false)]
        {
            let node = json!({"metadata": {"name": "a"}, "spec": {"ipam": {"podCIDRs": [cidr]}}});
            assert_eq!(overlap(&node, &pools).is_some(), expected, "{cidr}");
        }
        assert_eq!(overlap(&json!({"spec": {}}), &pools), None);
    }
}
