//! `deploy/helm`: the golden files are those of the chart, the API server takes what is in them, and the
//! program takes its command lines. `scripts/check-deploy` compares them with what helm itself makes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::Command;

use infra_controller_manager::controllers::ALL;
use infra_controller_manager::settings::{self, ProcessSettings};
use infra_controller_manager::{build, flags};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};
use tests::cluster;
use tests::programs::workspace;

use crate::files::{dry_run, manifest};

const DEPLOYMENTS: [&str; 2] = ["default", "monitored"];
const STATIC: &str = "static-manifest";

fn golden(case: &str) -> Vec<Value> {
    manifest(&format!("deploy/helm/golden/{case}.yaml"))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    found.next().unwrap_or_else(|| panic!("there is no {kind}"))
}

fn container(case: &str) -> Container {
    let objects = golden(case);
    let spec = if case == STATIC {
        serde_json::from_value::<Pod>(of_kind(&objects, "Pod").clone()).unwrap().spec.unwrap()
    } else {
        let deployment = of_kind(&objects, "Deployment").clone();
        let deployment: Deployment = serde_json::from_value(deployment).unwrap();
        deployment.spec.template.spec.unwrap()
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
    for case in DEPLOYMENTS.into_iter().chain([STATIC]) {
        let command = container(case).command.unwrap();
        assert_eq!(command[0], "infra-controller-manager");
        let line = command.iter().map(|argument| argument.replace("$(HOST_IP)", "10.0.0.1"));
        let line = line.map(OsString::from);
        let flags = settings::controller_flags(ALL);
        let parsed = flags::parse(line, &flags, &known, &build::INFO);
        let Ok(flags::Parsed::Run(values)) = parsed else { panic!("{case} runs nothing") };
        let settings = ProcessSettings::new(&values, &known, ALL);
        let settings = settings.unwrap_or_else(|problems| panic!("{case}: {problems:?}"));
        assert!(settings.warnings.is_empty(), "{case}: {:?}", settings.warnings);
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
    }
    assert_eq!(golden, ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_takes_what_the_chart_makes() {
    // Kinds of operators that are not here.
    const FOREIGN: [&str; 2] = ["monitoring.coreos.com/v1", "cert-manager.io/v1"];
    let cluster = cluster().await;
    let client = cluster.client().await;
    let mut taken = BTreeSet::new();
    for case in DEPLOYMENTS.into_iter().chain([STATIC]) {
        for object in golden(case) {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("kube-system");
            let is_foreign = FOREIGN.contains(&object["apiVersion"].as_str().unwrap());
            if is_foreign || namespace != "kube-system" {
                continue;
            }
            dry_run(&client, &object).await.unwrap_or_else(|error| panic!("{case}: {error}"));
            taken.insert(object["kind"].as_str().unwrap().to_owned());
        }
    }
    for kind in ["ClusterRole", "Deployment", "Pod", "PodDisruptionBudget", "Role", "Service"] {
        assert!(taken.contains(kind), "{kind} is not among {taken:?}");
    }
}
