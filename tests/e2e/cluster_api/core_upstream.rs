//! Upstream's AWS provider makes the clusters of `aws_moved.rs`, as they are recorded, and the product takes its place by
//! the steps of `deploy/clusterctl/README.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::aws_proxy::Call;
use tests::cluster_api_core::ClusterApiCore;
use tests::poll::poll;
use tests::programs::{product, workspace};
use tests::temp_dir::TempDir;
use tests::{PATIENCE, Process};

use crate::aws_ownership_cases::ADOPT;
use crate::aws_recording::Recording;
use crate::aws_stage::{REGION, is_ready, ours, spec};
use crate::core_stage::{AWS_CLUSTERS, CLUSTERS, CoreStage, cluster, is_provisioned};
use crate::scene::{INFRASTRUCTURE, OUR_KINDS, condition};

/// Writes what was made into the recordings.
const RECORD: &str = "UPSTREAM_RECORD";

async fn start(stage: &CoreStage, provider: &ClusterApiCore) -> Process {
    let url = stage.proxy.url();
    // The product has no use for this right, without which upstream's provider does not end a deletion.
    stage.proxy.permit("tagging:GetResources");
    let services = ["ec2", "elasticloadbalancing", "sts", "tagging"];
    let services: Vec<_> = services.iter().map(|name| format!("{name}={url}")).collect();
    let endpoints = format!("--service-endpoints={REGION}:{}", services.join(","));
    let args = ["--feature-gates=EKS=false", "--sync-period=5s", "--v=4", &endpoints];
    let variables = [
        ("AWS_ACCESS_KEY_ID", "AKIATEST"),
        ("AWS_SECRET_ACCESS_KEY", "planted-secret"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ];
    let kubeconfig = stage.plane.admin_kubeconfig();
    provider.start_with(&kubeconfig, &args, &variables).await
}

/// The specs of the clusters, by name.
fn specs() -> [(&'static str, Value); 3] {
    let mut network = spec("10.1.1.0/24");
    network["network"].as_object_mut().unwrap().remove("natGateways");
    for (place, id) in ["public", "private"].into_iter().enumerate() {
        network["network"]["subnets"][place]["id"] = json!(id);
    }
    network["controlPlaneLoadBalancer"] = json!({"loadBalancerType": "nlb",
        "dnsResolutionCheck": "None", "additionalListeners": [{"port": 9345}]});
    let classic = json!({"region": REGION, "bastion": {"enabled": true},
        "controlPlaneLoadBalancer": {"dnsResolutionCheck": "None"}});
    let dual_stack = json!({"region": REGION, "network": {"vpc": {"ipv6": {}}},
        "controlPlaneLoadBalancer": {"loadBalancerType": "nlb", "dnsResolutionCheck": "None"}});
    [("classic", classic), ("network", network), ("dual-stack", dual_stack)]
}

/// An object as another API server takes it, without the pause in which it is recorded.
fn moved(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    let times = ["generation", "creationTimestamp", "managedFields"];
    for own in ["uid", "resourceVersion", "annotations"].into_iter().chain(times) {
        metadata.remove(own);
    }
    for owner in
        metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten()
    {
        owner["uid"] = json!("<owner>");
    }
    for of in [
        "/status/conditions",
        "/status/v1beta2/conditions",
        "/status/deprecated/v1beta1/conditions",
    ] {
        for condition in object.pointer_mut(of).and_then(Value::as_array_mut).into_iter().flatten()
        {
            condition["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
        }
    }
    object
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn upstreams_provider_makes_the_recorded_clusters_and_the_product_takes_its_place() {
    let Some((stage, provider)) = CoreStage::set_upstream().await else { return };
    let before = stage.totals().await;
    let upstream = start(&stage, &provider).await;
    for (name, spec) in specs() {
        stage.proxy.forget();
        stage.create(&ours(name, &spec));
        stage.create(&cluster(name));
        stage.until(AWS_CLUSTERS, name, "is ready", |it| it["status"]["ready"] == true).await;
        let calls = stage.proxy.calls();
        let writes = calls.iter().filter(|call| call.is_write()).count();
        println!(
            "{name}: upstream's provider needs {} calls, {writes} of them writes",
            calls.len()
        );
        stage.until(CLUSTERS, name, "is provisioned", is_provisioned).await;
        // Upstream writes in each pass.
        stage.run(&format!("annotate {AWS_CLUSTERS} {name} cluster.x-k8s.io/paused="));
        let is_paused = |it: &Value| condition(it, "Paused")["status"] == "True";
        stage.until(AWS_CLUSTERS, name, "is paused", is_paused).await;
        let mut objects = Vec::new();
        for kind in [CLUSTERS, AWS_CLUSTERS] {
            objects.push(moved(stage.find(kind, name).await.unwrap()));
        }
        let recording = Recording::of(objects, &stage.proxy.done());
        if std::env::var_os(RECORD).is_some() {
            recording.write(name);
        }
        assert_eq!(recording.actions(), Recording::read(name).actions(), "{name}: see {RECORD}");
    }
    assert!(upstream.is_running());
    let manager = take_over(&stage, upstream).await;
    for (name, _) in specs() {
        stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
        stage.until_gone(AWS_CLUSTERS, name).await;
    }
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.finish(manager).await;
}

/// What a pass of upstream's provider calls when nothing changes: what is between two looks at the subnets, once it
/// repeats itself; and how many calls came before.
fn at_rest(calls: &[Call]) -> Option<(usize, Vec<&Call>)> {
    let looks = calls.iter().enumerate().filter(|(_, call)| call.action == "DescribeSubnets");
    let looks: Vec<_> = looks.map(|(place, _)| place).collect();
    let sorted = |from: usize, to: usize| {
        let mut pass: Vec<_> = calls[from..to].iter().collect();
        pass.sort_by_key(|call| &call.action);
        pass
    };
    let names = |pass: &[&Call]| pass.iter().map(|call| call.action.clone()).collect::<Vec<_>>();
    looks.windows(3).find_map(|it| {
        let (pass, next) = (sorted(it[0], it[1]), sorted(it[1], it[2]));
        (names(&pass) == names(&next)).then_some((it[0], pass))
    })
}

fn writes(calls: &[Call]) -> usize {
    calls.iter().filter(|call| call.is_write()).count()
}

/// README.md has these numbers.
#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn upstreams_provider_makes_more_calls_and_writes_when_nothing_changes() {
    let Some((stage, provider)) = CoreStage::set_upstream().await else { return };
    let before = stage.totals().await;
    let upstream = start(&stage, &provider).await;
    for ((name, spec), pass) in specs().into_iter().zip([[17, 1], [18, 2], [19, 2]]) {
        stage.proxy.forget();
        stage.create(&ours(name, &spec));
        stage.create(&cluster(name));
        stage.until(AWS_CLUSTERS, name, "is ready", |it| it["status"]["ready"] == true).await;
        let made = stage.proxy.calls();
        stage.proxy.forget();
        let rest = poll("upstream's passes are equal", async || {
            let calls = stage.proxy.calls();
            at_rest(&calls).map(|(before, pass)| {
                let written = pass.iter().filter(|call| call.is_write()).count();
                (before, [pass.len() - written, written])
            })
        });
        let (repair, found) = rest.await;
        stage.proxy.forget();
        stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
        stage.until_gone(AWS_CLUSTERS, name).await;
        let gone = stage.proxy.calls();
        println!(
            "{name}: create {} calls ({} writes), {repair} more until it repeats itself, each pass {found:?}, delete {} ({} writes)",
            made.len(),
            writes(&made),
            gone.len(),
            writes(&gone)
        );
        assert_eq!(found, pass, "{name}");
    }
    assert_eq!(stage.totals().await, before, "nothing is left");
    assert!(upstream.is_running());
}

/// The calls that make a resource each.
const MAKING: [&str; 13] = [
    "CreateVpc",
    "CreateSubnet",
    "CreateInternetGateway",
    "CreateEgressOnlyInternetGateway",
    "AllocateAddress",
    "CreateNatGateway",
    "CreateRouteTable",
    "CreateRoute",
    "CreateSecurityGroup",
    "RunInstances",
    "CreateLoadBalancer",
    "CreateTargetGroup",
    "CreateListener",
];

/// Counts them in a list of calls. Each call begins with its name.
fn inventory<'a>(calls: impl Iterator<Item = &'a str> + Clone) -> BTreeMap<&'static str, usize> {
    let count = |name: &str| calls.clone().filter(|it| it.split(' ').next() == Some(name)).count();
    MAKING.into_iter().map(|name| (name, count(name))).filter(|(_, count)| *count > 0).collect()
}

/// The specs of the AWSClusters in the templates of the pinned module, each once, with the region of the test.
fn templates() -> Vec<Value> {
    let list = ["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api-provider-aws/v2"];
    let folder = Command::new("go")
        .args(list)
        .current_dir(workspace().join("tests/cluster-api-provider-aws"))
        .env("GOFLAGS", "-mod=readonly")
        .output()
        .unwrap();
    let folder = String::from_utf8(folder.stdout).unwrap();
    let mut specs = Vec::new();
    for file in std::fs::read_dir(Path::new(folder.trim()).join("templates")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let is_one = |text: &&str| text.lines().any(|line| line == "kind: AWSCluster");
        for text in text.split("\n---").filter(is_one) {
            let text = text.replace("${AWS_REGION}", REGION).replace("${", "").replace("}\"", "\"");
            let object: Value = serde_saphyr::from_str(&text).unwrap();
            if !specs.contains(&object["spec"]) {
                specs.push(object["spec"].clone());
            }
        }
    }
    specs
}

/// What the product would make, or the fields that it refuses.
fn planned(object: &Value) -> Value {
    let folder = TempDir::new("template").unwrap();
    let file = folder.join("object.json");
    std::fs::write(&file, object.to_string()).unwrap();
    let zones = ["a", "b", "c"].map(|zone| format!("{REGION}{zone}")).join(",");
    let mut plan = Command::new(product());
    plan.args(["plan", "-o", "json", "--zones", &zones, "-f"]).arg(file);
    serde_json::from_slice::<Value>(&plan.output().unwrap().stdout).unwrap()[0].take()
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn upstreams_templates_lead_to_what_upstreams_provider_makes_or_are_refused() {
    let Some((stage, provider)) = CoreStage::set_upstream().await else { return };
    let upstream = start(&stage, &provider).await;
    let (mut made, mut refused) = (0, 0);
    for (number, mut spec) in templates().into_iter().enumerate() {
        let name = format!("template-{number}");
        spec["controlPlaneLoadBalancer"]["dnsResolutionCheck"] = json!("None");
        let object = ours(&name, &spec);
        let plan = planned(&object);
        if let Some(errors) = plan["errors"].as_array() {
            assert!(
                errors[0].as_str().unwrap().contains("not supported yet"),
                "{spec}: {errors:?}"
            );
            refused += 1;
            continue;
        }
        stage.proxy.forget();
        stage.create(&object);
        stage.create(&cluster(&name));
        stage.until(AWS_CLUSTERS, &name, "is ready", |it| it["status"]["ready"] == true).await;
        let done = stage.proxy.done();
        let theirs = inventory(done.iter().map(|(call, _)| &*call.action));
        let writes = plan["writes"].as_array().unwrap();
        let ours = inventory(writes.iter().map(|it| it.as_str().unwrap()));
        println!("{spec}: {theirs:?}");
        assert_eq!(ours, theirs, "{spec}");
        made += 1;
        stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
        stage.until_gone(AWS_CLUSTERS, &name).await;
    }
    assert!(made >= 4 && refused >= 1, "{made} made, {refused} refused");
    assert!(upstream.is_running());
}

/// The product takes the place of upstream's provider, whose clusters are paused.
async fn take_over(stage: &CoreStage, upstream: Process) -> Process {
    upstream.terminate();
    upstream.exit(PATIENCE).await;
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let all = stage.run(&format!("get {kind} -o name"));
        for webhooks in all.lines().filter(|name| name.contains("cluster-api-provider-aws")) {
            stage.run(&format!("delete {webhooks}"));
        }
    }
    for kind in OUR_KINDS {
        stage.run(&format!("replace -f config/crd/{INFRASTRUCTURE}_{kind}.yaml"));
    }
    stage.await_crds();
    stage.proxy.forget();
    let manager = stage.product("");
    for (name, _) in specs() {
        let of = format!("{AWS_CLUSTERS} {name}");
        stage.run(&format!("annotate {of} {ADOPT}=true cluster.x-k8s.io/paused-"));
        let is_adopted = |it: &Value| is_ready(it) && condition(it, "Ready")["status"] == "True";
        stage.until(AWS_CLUSTERS, name, "is adopted", is_adopted).await;
    }
    let others: Vec<_> = stage.writes().into_iter().filter(|it| !it.contains("Tags")).collect();
    assert_eq!(others, [""; 0], "an adoption writes tags alone");
    manager
}
