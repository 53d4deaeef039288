//! What the API server itself noted of everything that the product asked for: with the roles of
//! `config/rbac` nothing was refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;
use kube::config::AuthInfo;
use serde_json::{Value, json};
use tests::control_plane::{ControlPlane, MANAGER_USER, Options};
use tests::temp_dir::TempDir;
use tests::{Observer, PATIENCE, Process, create_nodes, mk_node};

use crate::files::{apply, manifest};
use crate::rbac::{BINDINGS, GROUPS, ROLES, USER};

const SHIPPED: [&str; 5] = [
    BINDINGS,
    ROLES,
    "config/rbac/delegated-auth.yaml",
    "config/rbac/metrics-reader.yaml",
    "config/rbac/node-ipam-records.yaml",
];
/// User that node-ipam works as.
const ACCOUNT: &str = "system:serviceaccount:kube-system:node-controller";
/// Two blocks of /24.
const POOL: &str = "--cluster-cidr=10.0.0.0/23";

/// A control plane that notes every request, and the roles.
async fn audited(folder: &TempDir) -> ControlPlane {
    let at = |name: &str| folder.join(name).display().to_string();
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    });
    fs::write(at("policy.json"), policy.to_string()).unwrap();
    let api_server_args = vec![
        format!("--audit-policy-file={}", at("policy.json")),
        format!("--audit-log-path={}", at("audit.log")),
    ];
    let plane = ControlPlane::start(Options { api_server_args }).await.unwrap();
    let client = plane.client().await;
    for object in SHIPPED.iter().flat_map(|path| manifest(path)) {
        apply(&client, &object).await.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
    plane
}

/// The product under the shipped identity, which also asks who its own readers are.
fn product(kubeconfig: &Path, args: &[&str]) -> Process {
    Process::with_kubeconfig(kubeconfig)
        .guarded_by(kubeconfig)
        .args(["--use-service-account-credentials=true", "--allocate-node-cidrs=true", POOL])
        .args(args.iter().copied())
        .start()
}

async fn ends(process: Process) {
    process.terminate();
    assert!(process.exit(PATIENCE).await.success());
}

/// Requests with verb, path and answer code, by user.
fn noted(folder: &TempDir) -> BTreeMap<String, Vec<String>> {
    let mut noted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in fs::read_to_string(folder.join("audit.log")).unwrap().lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let code = entry["responseStatus"]["code"].as_u64().unwrap_or_default();
        let decision = text(&entry["annotations"]["authorization.k8s.io/decision"]);
        let request =
            format!("{} {} {code} {decision}", text(&entry["verb"]), text(&entry["requestURI"]));
        noted.entry(text(&entry["user"]["username"])).or_default().push(request);
    }
    noted
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_shipped_roles_the_audit_log_holds_nothing_forbidden() {
    let folder = TempDir::new("audit").unwrap();
    let plane = audited(&folder).await;
    let client = plane.client().await;
    let nodes = Observer::start(&client).await;
    let kubeconfig = plane.kubeconfig(USER, &GROUPS).unwrap();

    let leader = product(&kubeconfig, &[]);
    leader.line("Controller starting...").await;
    let standby = product(&kubeconfig, &[]);
    let dry = product(&kubeconfig, &["--dry-run", "--cluster-cidr=10.8.0.0/16"]);
    create_nodes(&client, ["a", "b", "c"].map(mk_node)).await;
    nodes.until("two of three have a CIDR", |now| now.assigned() == 2).await;
    leader.line("Node has no pod CIDR").await;
    dry.line("Would set node PodCIDR").await;
    for token in [None, Some("of-no-user".to_owned())] {
        let credentials = AuthInfo { token: token.map(Into::into), ..AuthInfo::default() };
        let request = http::Request::get("/metrics").body(kube::client::Body::empty()).unwrap();
        let (code, body) = tests::process::ask(leader.port(), credentials, request).await.unwrap();
        assert!([401, 403].contains(&code), "{code} {body}");
    }
    ends(leader).await;
    standby.line("Controller starting...").await;
    let served = nodes.now();
    let served = ["a", "b", "c"].into_iter().find(|name| !served.cidrs(name).is_empty()).unwrap();
    let api = Api::<Node>::all(client.clone());
    api.delete(served, &DeleteParams::default()).await.unwrap();
    nodes.until("the third has its block", |now| now.assigned() == 2).await;
    ends(standby).await;
    ends(dry).await;
    let flag = format!("--kubeconfig={}", plane.manager_kubeconfig().display());
    let check = Process::bare()
        .args(["check", &flag, "--allocate-node-cidrs", POOL])
        .args(["--use-service-account-credentials", "--stock-healthz="])
        .start();
    let status = check.exit(PATIENCE).await;
    assert!(status.success(), "check ended with {status}: {:#?}", check.lines());

    let noted = noted(&folder);
    for (user, part) in [
        (USER, "leases/infra-controller-manager"),
        (USER, "leases/infra-controller-manager-dry-run"),
        (USER, "/tokenreviews"),
        (USER, "/subjectaccessreviews"),
        (USER, "/events"),
        (ACCOUNT, "/nodes/"),
        (ACCOUNT, "dryRun=All"),
        (MANAGER_USER, "/pods"),
    ] {
        assert!(noted[user].iter().any(|it| it.contains(part)), "{user} {part}: {noted:#?}");
        let is_refused =
            |it: &&String| it.ends_with(" forbid") || it.contains(" 401 ") || it.contains(" 403 ");
        let refused: Vec<_> = noted[user].iter().filter(is_refused).collect();
        assert!(refused.is_empty(), "{user}: {refused:#?}");
    }
    let requests: Vec<_> = noted.iter().map(|(user, all)| (user, all.len())).collect();
    eprintln!("requests in the audit log: {requests:?}");
}
