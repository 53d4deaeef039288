//! A management cluster with the CRDs, a member, and the product between them.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Value, json};
use tests::control_plane::{ADMIN_GROUP, ControlPlane, Identity};
use tests::kubectl::{Kubectl, hub, table};
use tests::member::member;
use tests::planted::{Discreet, Planted};
use tests::pool::Lent;
use tests::{PATIENCE, Process, eventually, poll};

/// Token in credentials; no other place may contain it.
const PLANTED: &str = "planted-5f0c2d1e-token";

pub(crate) struct Scene {
    pub(crate) hub: Lent<Kubectl>,
    pub(crate) member: Lent<ControlPlane>,
    client: Client,
    planted: Planted,
}

impl Scene {
    pub(crate) async fn set() -> Self {
        let (hub, member) = futures::join!(hub(), member());
        let planted = Planted::default();
        planted.plant(PLANTED);
        let client = hub.plane.client().await;
        Self { hub, member, client, planted }
    }

    /// Makes an imported cluster whose address stands in its spec.
    pub(crate) fn import(&self, name: &str) {
        self.hub.create(&Self::cluster_at(name, &[port(self.member.url())]));
    }

    /// An imported cluster that is reached at these ports.
    pub(crate) fn cluster_at(name: &str, ports: &[u16]) -> Value {
        let addresses: Vec<_> = ports.iter().map(|port| address(*port)).collect();
        json!({
            "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"tenantID": "t", "type": "Imported", "addresses": addresses},
        })
    }

    /// Makes the credential of an administrator of the member.
    pub(crate) fn admit(&self, cluster: &str) {
        let identity = self.administrator(Duration::from_secs(3600));
        self.hub.create(&self.credential(cluster, cluster, &pair(&identity)));
    }

    /// Makes a credential that the member refuses.
    pub(crate) fn admit_a_stranger(&self, cluster: &str) {
        let name = format!("{cluster}-stranger");
        self.hub.create(&self.credential(&name, cluster, &json!({"token": PLANTED})));
    }

    /// Makes a machine of a cluster that its installer has done with.
    pub(crate) fn enlist(&self, name: &str, cluster: &str, ip: &str) {
        self.hub.create(&json!({
            "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": name},
            "spec": {"tenantID": "t", "type": "Baremetal", "clusterName": cluster, "ip": ip,
                "port": 22, "username": "root", "password": STANDARD.encode(PLANTED)},
        }));
        self.hub.patch_status(&format!("mc {name}"), &json!({"phase": "Running"}));
    }

    /// A certificate of an administrator of the member that ends so long from now.
    pub(crate) fn administrator(&self, life: Duration) -> Identity {
        self.member.client_certificate("admin", &[ADMIN_GROUP], life).unwrap()
    }

    /// A credential with the CA of the member and these fields. No output may contain the token
    /// and the key.
    pub(crate) fn credential(&self, name: &str, cluster: &str, fields: &Value) -> Value {
        let text = |field: &str| fields[field].as_str().map(str::to_owned);
        let key = text("clientKey").map(|key| STANDARD.decode(key).unwrap());
        let key = key.map(|key| String::from_utf8(key).unwrap());
        for secret in key.into_iter().chain(text("token")) {
            self.planted.plant(&secret);
        }
        let mut credential = json!({
            "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
            "metadata": {"name": format!("cc-{name}")}, "tenantID": "t", "clusterName": cluster,
            "caCert": STANDARD.encode(self.member.ca_pem()), "bootstrapToken": PLANTED,
        });
        let more = fields.as_object().unwrap().clone();
        credential.as_object_mut().unwrap().extend(more);
        credential
    }

    /// Starts the product as an administrator.
    pub(crate) fn start(&self, args: &str) -> Discreet {
        let flags = "--healthcheck-period=2s --cluster-health-tke-timeout=1s";
        self.start_by(&self.hub.plane.admin_kubeconfig(), &format!("{flags} {args}"))
    }

    /// Starts the product by another way to the management cluster.
    pub(crate) fn start_by(&self, kubeconfig: &Path, args: &str) -> Discreet {
        let manager = Process::with_kubeconfig(kubeconfig)
            .args(["--controllers=cluster-health-controller", "--leader-elect=false", "--v=4"])
            .args(["--cluster-health-confirm-interval=1s"])
            .args(args.split_whitespace())
            .start();
        Discreet::new(manager, &self.planted, &self.hub)
    }

    pub(crate) fn cluster(&self, name: &str) -> Value {
        self.hub.object(&format!("cls {name}"))
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

    /// Like [`Self::until`], for an object of any kind.
    pub(crate) async fn until_of(
        &self,
        kind: &str,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let what = format!("{name} {what}");
        let path = format!("/apis/platform.tkestack.io/v1/{kind}s/{name}");
        poll(&what, async || {
            let request = http::Request::get(&path).body(Vec::new()).unwrap();
            let object: Value = self.client.request(request).await.ok()?;
            wanted(&object["status"]).then(|| object["status"].clone())
        })
        .await
    }

    /// Waits until kubectl prints these lines: a busy machine makes a probe late now and then.
    pub(crate) async fn prints(&self, command: &str, lines: &[&[&str]]) {
        eventually(&format!("kubectl {command} prints {lines:?}"), || {
            let printed = table(&self.hub.run(command));
            lines.iter().all(|line| printed.iter().any(|printed| printed == line))
        })
        .await;
    }

    /// Waits for an event of this reason. Events are written independently of the status.
    pub(crate) async fn has_event(&self, reason: &str) {
        eventually(&format!("there is an event {reason}"), || {
            let reasons = self.hub.run("get events -A -o jsonpath={.items[*].reason}");
            reasons.split_whitespace().any(|reported| reported == reason)
        })
        .await;
    }

    /// Stops and continues the API server of the member.
    pub(crate) fn freeze(&self, frozen: bool) {
        if frozen {
            self.member.freeze_api_server();
        } else {
            self.member.thaw_api_server();
        }
    }

    /// Ends the product.
    pub(crate) async fn end(&self, manager: Discreet) {
        manager.terminate();
        assert!(manager.exit(PATIENCE).await.success());
    }
}

/// An address on this machine.
pub(crate) fn address(port: u16) -> Value {
    json!({"type": "Real", "host": "127.0.0.1", "port": port})
}

pub(crate) fn port(url: &str) -> u16 {
    url.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// A client certificate and key as fields of a ClusterCredential.
pub(crate) fn pair(identity: &Identity) -> Value {
    let (certificate, key) = (&identity.certificate_pem, &identity.key_pem);
    json!({"clientCert": STANDARD.encode(certificate), "clientKey": STANDARD.encode(key)})
}

/// The condition of this type.
pub(crate) fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array();
    conditions.into_iter().flatten().find(|it| it["type"] == kind).unwrap_or(&Value::Null)
}
