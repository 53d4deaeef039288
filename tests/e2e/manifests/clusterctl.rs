//! `deploy/clusterctl`: the package is what clusterctl expects, it is made of the manifests of this repository, and the API
//! server takes it. `scripts/nightly core` installs it with clusterctl itself.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;

use infra_controller_manager::controllers::ALL;
use infra_controller_manager::settings::{self, ProcessSettings};
use infra_controller_manager::{build, flags};
use serde_json::{Value, json};
use tests::clusterctl::{NAMESPACE, arguments, components, packaged, variables};
use tests::kubectl::Kubectl;
use tests::programs::workspace;

use crate::files::{apply, manifest};

const PROVIDER: (&str, &str) = ("cluster.x-k8s.io/provider", "infrastructure-icm-aws");
/// Kinds of the package without a namespace.
const GLOBAL: [&str; 4] =
    ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"];
const COMPONENTS: &str = "infrastructure-components.yaml";

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn deployment(objects: &[Value]) -> &Value {
    let [deployment] = of_kind(objects, "Deployment")[..] else { panic!("one Deployment") };
    deployment
}

#[test]
fn the_package_has_one_namespace_one_manager_and_the_label_of_the_provider_on_everything() {
    let objects = components();
    let names: Vec<_> =
        of_kind(&objects, "Namespace").iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(names, [NAMESPACE]);
    for object in &objects {
        let (kind, metadata) = (object["kind"].as_str().unwrap(), &object["metadata"]);
        assert_eq!(metadata["labels"][PROVIDER.0], PROVIDER.1, "{kind} {}", metadata["name"]);
        let namespace = (!GLOBAL.contains(&kind)).then_some(NAMESPACE);
        assert_eq!(metadata["namespace"].as_str(), namespace, "{kind} {}", metadata["name"]);
        for subject in object["subjects"].as_array().into_iter().flatten() {
            assert_eq!(subject["namespace"], NAMESPACE, "{object}");
        }
    }
    let containers = &deployment(&objects)["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().unwrap().len(), 1);
    assert_eq!(containers[0]["name"], "manager");
    let mut args = containers[0]["args"].as_array().unwrap().iter();
    assert!(args.any(|arg| arg.as_str().unwrap().starts_with("--namespace=")));
}

#[test]
fn the_variables_are_of_this_provider_and_only_the_image_has_no_default() {
    let text = packaged(COMPONENTS);
    let variables = variables(&text);
    assert!(variables.iter().all(|(name, _)| name.starts_with("ICM_AWS_")), "{variables:?}");
    // clusterctl takes an empty default as no default.
    let is_needed = |(_, default): &&(&str, Option<&str>)| default.is_none_or(str::is_empty);
    let needed: Vec<_> = variables.iter().filter(is_needed).collect();
    assert_eq!(needed, [&("ICM_AWS_IMAGE", None)], "no image is published");
}

#[test]
fn the_crds_are_those_of_config_crd_and_keep_the_contract_that_the_metadata_names() {
    let objects = components();
    let mut packaged: Vec<_> = of_kind(&objects, "CustomResourceDefinition");
    packaged.sort_by_key(|crd| crd["metadata"]["name"].as_str());
    let folder = workspace().join("config/crd");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("infrastructure.cluster.x-k8s.io_"))
        .collect();
    files.sort();
    let ours: Vec<_> =
        files.iter().map(|it| manifest(&format!("config/crd/{it}")).remove(0)).collect();
    assert_eq!(packaged, ours.iter().collect::<Vec<_>>());

    let metadata: Value = serde_saphyr::from_str(&self::packaged("metadata.yaml")).unwrap();
    let version = env!("CARGO_PKG_VERSION").split('.').take(2);
    let version: Vec<u64> = version.map(|number| number.parse().unwrap()).collect();
    let mut series = metadata["releaseSeries"].as_array().unwrap().iter();
    let is_this = |it: &&Value| it["major"] == version[0] && it["minor"] == version[1];
    let contract = series.find(is_this).unwrap()["contract"].as_str().unwrap();
    let label = format!("cluster.x-k8s.io/{contract}");
    let of_contract = |it: &&&Value| it["metadata"]["labels"][&label].is_string();
    assert_eq!(packaged.iter().filter(of_contract).count(), 2, "AWSClusters and their templates");
}

/// A difference is a decision: name, image, flags and credentials.
#[test]
fn the_deployment_equals_that_of_the_chart_in_all_that_is_not_of_clusterctl() {
    let chart = manifest("deploy/helm/golden/hosted.yaml");
    let objects = components();
    let both = [deployment(&chart), deployment(&objects)];
    let [ours, packaged] = both.map(|it| it["spec"]["template"]["spec"]["containers"][0].clone());
    for field in
        ["startupProbe", "livenessProbe", "readinessProbe", "ports", "resources", "securityContext"]
    {
        assert_eq!(packaged[field], ours[field], "{field}");
    }
    for path in [
        "/spec/replicas",
        "/spec/strategy",
        "/spec/template/spec/terminationGracePeriodSeconds",
        "/spec/template/spec/securityContext",
    ] {
        let [ours, packaged] = both.map(|it| it.pointer(path).unwrap());
        assert_eq!(packaged, ours, "{path}");
    }
}

#[test]
fn the_program_takes_the_command_line_of_the_package() {
    let objects = components();
    let container = &deployment(&objects)["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["infra-controller-manager"]));
    let args = arguments(deployment(&objects));
    let line = ["infra-controller-manager".to_owned()].into_iter().chain(args).map(OsString::from);
    let known = settings::known(ALL).unwrap();
    let parsed = flags::parse(line, &settings::controller_flags(ALL), &known, &build::INFO);
    let Ok(flags::Parsed::Run(values)) = parsed else { panic!("it runs nothing") };
    let settings = ProcessSettings::new(&values, &known, ALL);
    let settings = settings.unwrap_or_else(|problems| panic!("{problems:?}"));
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
}

/// The core of Cluster API, its kubeadm provider and upstream's Machines have kinds that are not here.
#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_takes_the_package_and_what_is_ours_in_its_templates() {
    let kubectl = Kubectl::without_crds().await;
    let client = kubectl.plane.client().await;
    let objects = components();
    for object in &objects {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        let applied = apply(&client, object).await;
        applied.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
    }
    kubectl.await_crds();
    let mut taken = BTreeSet::new();
    for file in ["cluster-template.yaml", "clusterclass-minimal.yaml"] {
        let text =
            packaged(file).replace("${CLUSTER_NAME}", "one").replace("${AWS_REGION}", "us-east-2");
        let text = text.replace("${ICM_AWS_NAT_MODE:=PerAZ}", "PerAZ");
        let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for mut object in all {
            let kind = object["kind"].as_str().unwrap().to_owned();
            if ["AWSCluster", "AWSClusterTemplate"].contains(&&*kind) {
                object["metadata"]["namespace"] = json!("default");
                apply(&client, &object).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
                taken.insert(kind);
            }
        }
    }
    assert_eq!(taken.len(), 2, "{taken:?}");
}
