//! `deploy/helm`: the golden files are those of the chart, the API server takes what is in them, and the
//! program takes its command lines. `scripts/check-deploy` compares them with what helm itself makes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::Command;

use infra_controller_manager::controllers::ALL;
use infra_controller_manager::settings::{self, ProcessSettings};
use infra_controller_manager::{build, flags};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use serde_json::{Value, json};
use tests::cluster;
use tests::programs::workspace;

use crate::files::{apply, dry_run, manifest};

const WORKLOADS: [&str; 4] = ["default", "hosted", "monitored", "webhook"];
const STATIC: &str = "static-manifest";

fn golden(case: &str) -> Vec<Value> {
    manifest(&format!("deploy/helm/golden/{case}.yaml"))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    found.next().unwrap_or_else(|| panic!("there is no {kind}"))
}

/// The pod of a Deployment or a DaemonSet; their templates have one form.
fn pod_of(objects: &[Value]) -> PodSpec {
    let is_workload = |object: &&Value| object["spec"]["template"].is_object();
    let workload = objects.iter().find(is_workload).expect("a Deployment or a DaemonSet");
    serde_json::from_value(workload["spec"]["template"]["spec"].clone()).unwrap()
}

fn container(case: &str) -> Container {
    let objects = golden(case);
    let spec = if case == STATIC {
        serde_json::from_value::<Pod>(of_kind(&objects, "Pod").clone()).unwrap().spec.unwrap()
    } else {
        pod_of(&objects)
    };
    let [container] = &spec.containers[..] else { panic!("one container") };
    container.clone()
}

#[test]
fn the_golden_files_are_those_of_the_chart_as_it_is() {
    let check = Command::new("sha256sum")
        .args(["--check", "--quiet", "golden/SHA256SUMS"])
        .current_dir(workspace().join("deploy/helm"))
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success(), "run scripts/check-deploy --update: {reported}");
}

#[test]
fn the_program_takes_the_command_lines_of_the_chart() {
    let known = settings::known(ALL).unwrap();
    for case in WORKLOADS.into_iter().chain([STATIC]) {
        let command = container(case).command.unwrap();
        assert_eq!(command[0], "infra-controller-manager");
        let line = command.iter().map(|argument| argument.replace("$(HOST_IP)", "10.0.0.1"));
        let line = line.map(OsString::from);
        let flags = settings::controller_flags(ALL);
        let parsed = flags::parse(line, &flags, &known, &build::INFO);
        let Ok(flags::Parsed::Run(values)) = parsed else { panic!("{case} runs nothing") };
        let settings = ProcessSettings::new(&values, &known, ALL);
        let settings = settings.unwrap_or_else(|problems| panic!("{case}: {problems:?}"));
        // Who calls the webhook is for the operator to say.
        let is_known = |warning: &String| warning.contains("no --webhook-client-ca-file");
        let others: Vec<_> = settings.warnings.iter().filter(|it| !is_known(it)).collect();
        assert!(others.is_empty(), "{case}: {others:?}");
    }
}

#[test]
fn the_static_manifest_of_the_chart_equals_deploy_static_pod() {
    let mut ours = manifest("deploy/static-pod/infra-controller-manager.yaml").remove(0);
    let mut golden = golden(STATIC).remove(0);
    for pod in [&mut ours, &mut golden] {
        let command = &mut pod["spec"]["containers"][0]["command"];
        let flags: BTreeSet<_> =
            command.as_array().unwrap().iter().map(|flag| flag.as_str().unwrap()).collect();
        *command = json!(flags);
        // The file has a placeholder that no kubelet accepts.
        pod["spec"]["containers"][0]["image"] = json!("image");
    }
    assert_eq!(golden, ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_takes_what_the_chart_makes() {
    // Kinds of operators that are not here.
    const FOREIGN: [&str; 2] = ["monitoring.coreos.com/v1", "cert-manager.io/v1"];
    let cluster = cluster().await;
    let client = cluster.client().await;
    for name in ["infra", "kube-federation-system", "tenant-a"] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply(&client, &namespace).await.unwrap();
    }
    let mut taken = BTreeSet::new();
    for case in WORKLOADS.into_iter().chain([STATIC]) {
        for object in golden(case) {
            if FOREIGN.contains(&object["apiVersion"].as_str().unwrap()) {
                continue;
            }
            dry_run(&client, &object).await.unwrap_or_else(|error| panic!("{case}: {error}"));
            taken.insert(object["kind"].as_str().unwrap().to_owned());
        }
    }
    for kind in [
        "ClusterRole",
        "DaemonSet",
        "Deployment",
        "Pod",
        "PodDisruptionBudget",
        "Role",
        "Secret",
        "Service",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    ] {
        assert!(taken.contains(kind), "{kind} is not among {taken:?}");
    }
}

/// The names of all objects of a kind.
fn named<'a>(objects: &'a [Value], kind: &str) -> BTreeSet<&'a str> {
    let of_kind = objects.iter().filter(|object| object["kind"] == kind);
    of_kind.map(|object| object["metadata"]["name"].as_str().unwrap()).collect()
}

/// Renaming must reach every reference, or an account is without its rights.
#[test]
fn a_release_of_another_name_and_namespace_refers_to_its_own_objects_only() {
    let objects = golden("webhook");
    let accounts = named(&objects, "ServiceAccount");
    let account = pod_of(&objects).service_account_name.unwrap();
    assert_eq!(account, "webhook-infra-controller-manager");
    assert!(accounts.contains(&*account), "{accounts:?}");
    for binding in objects.iter().filter(|object| object["roleRef"].is_object()) {
        let (kind, role) = (&binding["roleRef"]["kind"], &binding["roleRef"]["name"]);
        let (kind, role) = (kind.as_str().unwrap(), role.as_str().unwrap());
        let of_kubernetes = role.starts_with("system:") || role.starts_with("extension-");
        assert!(of_kubernetes || named(&objects, kind).contains(role), "{role}");
        let subjects = binding["subjects"].as_array().unwrap();
        for subject in subjects.iter().filter(|subject| subject["kind"] != "User") {
            let own = subject["name"] == *account;
            let namespace = if own { "infra" } else { "kube-system" };
            assert_eq!(subject["namespace"], namespace, "{subject}");
            assert_ne!(subject["name"], "infra-controller-manager");
        }
    }
    let policy = of_kind(&objects, "ValidatingAdmissionPolicyBinding");
    let policy = policy["spec"]["policyName"].as_str().unwrap();
    assert!(named(&objects, "ValidatingAdmissionPolicy").contains(policy), "{policy}");
    let policy = of_kind(&objects, "ValidatingAdmissionPolicy").to_string();
    assert!(policy.contains(&format!("'system:serviceaccount:infra:{account}'")), "{policy}");
    let roles = objects.iter().filter(|object| object["kind"] == "Role");
    let leases: Vec<_> = roles
        .flat_map(|role| role["rules"].as_array().unwrap())
        .filter(|rule| rule["resources"] == json!(["leases"]) && !rule["resourceNames"].is_null())
        .collect();
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0]["resourceNames"], json!(["icm-webhook", "icm-webhook-dry-run"]));
}

/// Before Nodes have pod CIDRs there are no pods of cluster DNS, and perhaps no way to Services.
#[test]
fn on_the_network_of_the_host_the_pods_need_neither_services_nor_cluster_dns() {
    let pod = pod_of(&golden("default"));
    assert_eq!((pod.host_network, pod.dns_policy.as_deref()), (Some(true), Some("Default")));
    let env = container("default").env.unwrap();
    let names: Vec<_> = env.iter().map(|variable| &*variable.name).collect();
    // A variable refers to those before it.
    assert_eq!(names, ["HOST_IP", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]);
    assert_eq!(env[1].value.as_deref(), Some("$(HOST_IP)"));
    let service = container("webhook").env.unwrap();
    assert!(service.iter().all(|variable| !variable.name.starts_with("KUBERNETES_")));
    assert_eq!(pod_of(&golden("hosted")).host_network, None);
}
