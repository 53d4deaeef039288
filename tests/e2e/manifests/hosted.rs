//! A control plane that is hosted as pods of another cluster (`deploy/HOSTED.md`), as the chart makes it:
//! one kubeconfig for the cluster that is served, another one for who reads metrics.

use kube::client::Body;
use kube::config::AuthInfo;
use tests::kubectl::Kubectl;
use tests::{Observer, Process, mk_node};

use crate::files::{apply, manifest};
use crate::rbac::{GROUPS, USER};

const GOLDEN: &str = "deploy/helm/golden/hosted.yaml";
const ACCOUNT: &str = "system:serviceaccount:tenant-a:tenant-infra-controller-manager";
/// Of a test are addresses, ports and files.
const OF_THE_TEST: [&str; 3] = ["--kubeconfig=", "--bind-address=", "--secure-port="];

/// What the chart runs, but for [`OF_THE_TEST`].
fn arguments() -> Vec<String> {
    let objects = manifest(GOLDEN);
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let command = &deployment["spec"]["template"]["spec"]["containers"][0]["command"];
    let words = command.as_array().unwrap().iter().skip(1);
    let words = words.map(|word| word.as_str().unwrap().to_owned());
    words.filter(|word| !OF_THE_TEST.iter().any(|flag| word.starts_with(flag))).collect()
}

async fn metrics(manager: &Process, token: &str) -> u16 {
    let credentials = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
    let request = http::Request::get("/metrics").body(Body::empty()).unwrap();
    tests::process::ask(manager.port(), credentials, request).await.unwrap().0
}

/// A token of a new service account that may read metrics.
fn scraper(cluster: &Kubectl, role: &str) -> String {
    cluster.run("create namespace monitoring");
    cluster.run("create serviceaccount prometheus -n monitoring");
    cluster.run(&format!(
        "create clusterrolebinding scraper --clusterrole={role} --serviceaccount=monitoring:prometheus"
    ));
    cluster.run("create token prometheus -n monitoring").trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_control_plane_is_served_by_one_kubeconfig_and_guarded_by_another() {
    let (served, hosting) = (Kubectl::without_crds().await, Kubectl::without_crds().await);
    for file in ["role", "role-binding", "metrics-reader"] {
        served.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    hosting.run("create namespace tenant-a");
    let client = hosting.plane.client().await;
    for object in manifest(GOLDEN) {
        let group = object["apiVersion"].as_str().unwrap();
        if group.starts_with("rbac.") || object["kind"] == "ServiceAccount" {
            apply(&client, &object).await.unwrap();
        }
    }
    let nodes = Observer::start(&served.plane.client().await).await;
    let manager = Process::with_kubeconfig(&served.plane.kubeconfig(USER, &GROUPS).unwrap())
        .guarded_by(&hosting.plane.kubeconfig(ACCOUNT, &["system:serviceaccounts"]).unwrap())
        .args(arguments())
        .start();
    mk_node("a").create(&served.plane.client().await).await;
    nodes.until("the Node has a CIDR", |now| !now.cidrs("a").is_empty()).await;
    assert_eq!(nodes.now().cidrs("a"), ["10.36.0.0/24"]);
    let lease = served.object("lease infra-controller-manager -n kube-system");
    assert!(lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty()));

    let own = scraper(&hosting, "tenant-infra-controller-manager-metrics-reader");
    assert_eq!(metrics(&manager, &own).await, 200);
    let of_tenant = scraper(&served, "infra-controller-manager-metrics-reader");
    assert_eq!(metrics(&manager, &of_tenant).await, 401, "tenants do not read it");
}
