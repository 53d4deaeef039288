//! A management cluster with the CRDs, a member, and the product between them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::control_plane::{ADMIN_GROUP, ControlPlane, Options};
use tests::kubectl::Kubectl;
use tests::{PATIENCE, Process, poll};

/// In credentials, and nowhere else.
pub(crate) const PLANTED: &str = "planted-5f0c2d1e-token";

pub(crate) struct Scene {
    pub(crate) hub: Kubectl,
    pub(crate) member: ControlPlane,
    /// The member's key of its administrator, as it must never be seen.
    key: String,
}

impl Scene {
    pub(crate) async fn set() -> Self {
        let hub = Kubectl::with_crds().await;
        let member = ControlPlane::start(Options::default()).await.expect("a member starts");
        Self { hub, member, key: String::new() }
    }

    /// Makes an imported cluster whose address stands in its spec.
    pub(crate) fn import(&self, name: &str) {
        let port: u16 = self.member.url().rsplit_once(':').unwrap().1.parse().unwrap();
        self.hub.create(&json!({
            "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"tenantID": "t", "type": "Imported",
                "addresses": [{"type": "Real", "host": "127.0.0.1", "port": port}]},
        }));
    }

    /// Makes the credential of an administrator of the member.
    pub(crate) fn admit(&mut self, cluster: &str) {
        let life = std::time::Duration::from_secs(3600);
        let identity = self.member.client_certificate("admin", &[ADMIN_GROUP], life).unwrap();
        let ca = std::fs::read_to_string(self.member.dir().join("ca.crt")).unwrap();
        let base64 = |pem: &str| STANDARD.encode(pem);
        self.key = identity.key_pem.lines().nth(1).map(str::to_owned).unwrap();
        self.hub.create(&json!({
            "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
            "metadata": {"name": format!("cc-{cluster}")}, "tenantID": "t", "clusterName": cluster,
            "caCert": base64(&ca), "clientCert": base64(&identity.certificate_pem),
            "clientKey": base64(&identity.key_pem), "bootstrapToken": PLANTED,
        }));
    }

    /// Makes a credential that the member refuses.
    pub(crate) fn admit_a_stranger(&self, cluster: &str) {
        let ca = std::fs::read_to_string(self.member.dir().join("ca.crt")).unwrap();
        self.hub.create(&json!({
            "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
            "metadata": {"name": format!("cc-{cluster}-stranger")}, "tenantID": "t",
            "clusterName": cluster, "caCert": STANDARD.encode(ca), "token": PLANTED,
        }));
    }

    /// Makes a machine of a cluster that its installer has done with.
    pub(crate) fn enlist(&self, name: &str, cluster: &str, ip: &str) {
        self.hub.create(&json!({
            "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": name},
            "spec": {"tenantID": "t", "type": "Baremetal", "clusterName": cluster, "ip": ip,
                "port": 22, "username": "root", "password": STANDARD.encode(PLANTED)},
        }));
        self.hub.patch_status(&format!("machine {name}"), &json!({"phase": "Running"}));
    }

    pub(crate) fn start(&self, args: &str) -> Process {
        Process::with_kubeconfig(&self.hub.plane.admin_kubeconfig())
            .program(Path::new(env!("CARGO_BIN_EXE_cluster-health")))
            .args(["--v=2", "--cluster-health-confirm-interval=1s", "--healthcheck-period=2s"])
            .args(["--cluster-health-tke-timeout=1s", "--controllers=cluster-health-controller"])
            .args(args.split_whitespace())
            .start()
    }

    pub(crate) fn cluster(&self, name: &str) -> Value {
        self.hub.object(&format!("cluster {name}"))
    }

    /// Waits until the status of a cluster is as wanted.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        self.until_of("cluster", name, what, wanted).await
    }

    /// The same of an object of any kind.
    pub(crate) async fn until_of(
        &self,
        kind: &str,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let what = format!("{name} {what}");
        poll(&what, async || {
            let status = self.hub.object(&format!("{kind} {name}"))["status"].clone();
            wanted(&status).then_some(status)
        })
        .await
    }

    /// Stops and continues the API server of the member.
    pub(crate) fn freeze(&self, frozen: bool) {
        let [_, api_server] = self.member.pids();
        let pid = Pid::from_raw(i32::try_from(api_server).unwrap()).unwrap();
        kill_process(pid, if frozen { Signal::STOP } else { Signal::CONT }).unwrap();
    }

    /// Ends the product; nothing that it said or wrote holds a secret.
    pub(crate) async fn end(&self, manager: Process) {
        let (_, metrics) = manager.get("/metrics").await.unwrap();
        let (_, page) = manager.get("/debug/controllers/cluster-health").await.unwrap();
        manager.terminate();
        assert!(manager.exit(PATIENCE).await.success());
        let events = self.hub.run("get events -A -o json");
        let clusters = self.hub.run("get clusters -o json");
        let texts = [manager.lines().join("\n"), metrics, page, events, clusters];
        for text in texts {
            assert!(!text.contains(PLANTED), "{text}");
            assert!(self.key.is_empty() || !text.contains(&self.key), "{text}");
        }
    }
}

/// The condition of this type.
pub(crate) fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array();
    conditions.into_iter().flatten().find(|it| it["type"] == kind).unwrap_or(&Value::Null)
}
