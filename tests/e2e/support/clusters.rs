//! Control planes: identities, tokens, and being lent clean.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::config::KubeConfigOptions;
use kube::{Api, Client};
use serde_json::json;
use tests::control_plane::{MANAGER_USER, client_from};
use tests::nodes::set_cidrs;
use tests::{
    FaultProxy, Observer, assert_never_shared, cluster, create_nodes, delete_nodes, mk_node, poll,
};

async fn who_am_i(client: &Client) -> (String, Vec<String>) {
    let review = SelfSubjectReview::default();
    let review = Api::all(client.clone()).create(&PostParams::default(), &review).await.unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    (user.username.unwrap(), user.groups.unwrap())
}

/// A token of a fresh service account `kube-system/node-controller`.
async fn token(client: &Client) -> String {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "kube-system");
    let account = serde_json::from_value(json!({"metadata": {"name": "node-controller"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
    let answer = accounts
        .create_token_request("node-controller", &PostParams::default(), &request)
        .await
        .unwrap();
    answer.status.unwrap().token.unwrap()
}

#[tokio::test]
async fn a_certificate_carries_user_and_groups_and_rbac_judges_them() {
    let cluster = cluster().await;
    let both = cluster.kubeconfig("ann", &["red", "blue"]).unwrap();
    let (name, groups) = who_am_i(&client_from(&both).await.unwrap()).await;
    assert_eq!(name, "ann");
    assert_eq!(groups, ["red", "blue", "system:authenticated"]);
    assert!(cluster.kubeconfig("ann", &["1", "2", "3"]).is_err());

    mk_node("a").create(&cluster.client().await).await;
    let manager = client_from(&cluster.manager_kubeconfig()).await.unwrap();
    let refused = set_cidrs(&manager, "a", &["10.0.0.0/24"]).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.is_forbidden()));
}

#[tokio::test]
async fn a_service_account_token_works_directly_and_through_the_proxy() {
    let cluster = cluster().await;
    let admin = cluster.client().await;
    mk_node("a").create(&admin).await;
    let token = token(&client_from(&cluster.manager_kubeconfig()).await.unwrap()).await;
    let proxy = FaultProxy::start(&cluster, MANAGER_USER, &[]).await;

    for kubeconfig in [cluster.manager_kubeconfig().as_path(), proxy.kubeconfig()] {
        let client = client_with_token(kubeconfig, &token).await;
        let (name, _) = who_am_i(&client).await;
        assert_eq!(name, "system:serviceaccount:kube-system:node-controller");
        set_cidrs(&client, "a", &["10.0.0.0/24"]).await.unwrap();
    }
    let (name, _) = who_am_i(&client_from(proxy.kubeconfig()).await.unwrap()).await;
    assert_eq!(name, MANAGER_USER);
}

/// The kubeconfig's server, a token instead of the certificate.
async fn client_with_token(kubeconfig: &std::path::Path, token: &str) -> Client {
    let mut file = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let auth = serde_json::from_value(json!({"token": token})).unwrap();
    file.auth_infos[0].auth_info = Some(auth);
    let config =
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_control_plane_is_lent_clean() {
    let url = {
        let cluster = cluster().await;
        let client = cluster.client().await;
        mk_node("held").finalizer("test.example/hold").create(&client).await;
        create_nodes(&client, (0..20).map(|n| mk_node(format!("n-{n}")))).await;
        token(&client).await;
        let event = json!({
            "metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": "held"},
            "reason": "Test", "reportingComponent": "t", "reportingInstance": "t", "action": "a",
        });
        let event: Event = serde_json::from_value(event).unwrap();
        let events = Api::<Event>::namespaced(client.clone(), "default");
        events.create(&PostParams::default(), &event).await.unwrap();
        let lease: Lease = serde_json::from_value(json!({"metadata": {"name": "l"}})).unwrap();
        let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
        leases.create(&PostParams::default(), &lease).await.unwrap();
        cluster.url().to_owned()
    };
    // Other tests may have either control plane in the meantime.
    let same = async || Some(cluster().await).filter(|cluster| cluster.url() == url);
    let cluster = poll("the same control plane once more", same).await;
    let client = cluster.client().await;
    let list = ListParams::default();
    assert_eq!(Api::<Node>::all(client.clone()).list(&list).await.unwrap().items, []);
    assert_eq!(Api::<Event>::all(client.clone()).list(&list).await.unwrap().items, []);
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "kube-system");
    assert_eq!(accounts.list(&list).await.unwrap().items, []);
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
    assert!(leases.get_opt("l").await.unwrap().is_none());
}

#[tokio::test]
async fn the_observer_sees_every_state_of_every_node_once() {
    let cluster = cluster().await;
    let client = cluster.client().await;
    mk_node("early").cidr("10.0.0.0/24").create(&client).await;
    let observer = Observer::start(&client).await;
    assert_eq!(observer.now().cidrs("early"), ["10.0.0.0/24"]);

    mk_node("a").label("x", "y").padded(3_400).create(&client).await;
    set_cidrs(&client, "a", &["10.0.1.0/24", "fd00::/64"]).await.unwrap();
    delete_nodes(&client, ["a"]).await;
    mk_node("a").cidr("10.0.1.0/24").create(&client).await;
    observer.until("the second a is there", |now| now.cidrs("a").len() == 1).await;

    let history = observer.history();
    assert!(history.is_sorted_by(|x, y| x.resource_version < y.resource_version));
    let of_a: Vec<_> = history
        .iter()
        .filter(|seen| &*seen.name == "a")
        .map(|seen| (seen.pod_cidrs.len(), seen.deleted))
        .collect();
    // The server fills in podCIDR from podCIDRs and counts no further state for it.
    assert_eq!(of_a, [(0, false), (2, false), (2, true), (1, false)]);
    assert_never_shared(&history, &[]);
}
