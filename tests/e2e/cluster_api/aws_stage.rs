//! A management cluster, an emulation of AWS, and the product between them.

use std::ops::Deref;
use std::path::Path;

use serde_json::{Value, json};
use tests::aws_proxy::{AwsProxy, Call, Fate};
use tests::aws_totals::{Totals, totals};
use tests::kubectl::IDENTITY;
use tests::moto::Moto;
use tests::poll::poll;
use tests::pool::Lent;
use tests::process::Launch;
use tests::{PATIENCE, Process};

use crate::scene::{Scene, aws_cluster, launch};

/// The region and the name of the sample.
pub(crate) const REGION: &str = "us-east-2";
pub(crate) const NAME: &str = "testnetwork3";

/// Flags with which no call waits for its turn, and no name has to resolve.
const ARGS: &str = "--dns-resolution-check=None --aws-read-qps=1000 --aws-write-qps=1000 \
                    --aws-read-burst=1000 --aws-write-burst=1000";

/// The default rates of the product.
pub(crate) const DEFAULT_RATES: &str =
    "--aws-read-qps=20 --aws-write-qps=5 --aws-read-burst=40 --aws-write-burst=50";

pub(crate) struct Stage {
    scene: Scene,
    pub(crate) proxy: AwsProxy,
    _moto: Lent<Moto>,
}

impl Deref for Stage {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.scene
    }
}

impl Stage {
    /// Starts a stage; `None`, with a message, where the tests on moto are left out.
    pub(crate) async fn set() -> Option<Self> {
        Self::set_at(Scene::set).await
    }

    /// Like [`Self::set`], with this scene.
    pub(crate) async fn set_at(scene: impl AsyncFnOnce() -> Scene) -> Option<Self> {
        if tests::moto::is_left_out() {
            return None;
        }
        let moto = Moto::lend().await;
        let proxy = AwsProxy::start(&moto).await;
        proxy.reset().await;
        Some(Self { scene: scene().await, proxy, _moto: moto })
    }

    /// The product with an account of this AWS.
    pub(crate) fn launch(&self, args: &str) -> Launch {
        self.launch_by(&self.plane.kubeconfig(IDENTITY, &[]).unwrap(), args)
    }

    /// Like [`Self::launch`], with this kubeconfig.
    pub(crate) fn launch_by(&self, kubeconfig: &Path, args: &str) -> Launch {
        launch(kubeconfig, ARGS)
            .args(args.split_whitespace())
            .env("AWS_ENDPOINT_URL", &self.proxy.url())
            .env("AWS_ACCESS_KEY_ID", "AKIATEST")
            .env("AWS_SECRET_ACCESS_KEY", "planted-secret")
    }

    /// Starts only the controller of AWSClusters, with these arguments.
    pub(crate) fn start_with_aws(&self, args: &str) -> Process {
        self.launch(args).args(["--leader-elect=false"]).start()
    }

    /// The resources in the region in addition to `before`.
    pub(crate) async fn added(&self, before: &Totals) -> Totals {
        let mut now = totals(self.proxy.upstream(), REGION).await;
        for (kind, count) in &mut now {
            *count -= before[kind];
        }
        now.retain(|_, count| *count > 0);
        now
    }

    pub(crate) async fn totals(&self) -> Totals {
        totals(self.proxy.upstream(), REGION).await
    }

    /// Waits until the region has these resources in addition to `before`.
    pub(crate) async fn until_added(&self, before: &Totals, wanted: &Totals) {
        let what = format!("AWS has {wanted:?}");
        poll(&what, async || (self.added(before).await == *wanted).then_some(())).await;
    }

    /// The names of the writes since they were last forgotten.
    pub(crate) fn writes(&self) -> Vec<String> {
        let calls = self.proxy.calls().into_iter();
        calls.filter(Call::is_write).map(|call| call.action).collect()
    }

    /// Waits until a call has killed the one who made it.
    pub(crate) async fn died(&self) {
        let died = tokio::time::timeout(PATIENCE, self.proxy.died()).await;
        died.unwrap_or_else(|_| panic!("no process died; there were {:?}", self.writes()));
    }

    /// Kills the process that makes the `number`th call of this name, from 0, before the answer arrives.
    pub(crate) fn die_after(&self, action: &'static str, number: usize) {
        self.die_at(Fate::CrashAfter, action, number);
    }

    /// Like [`Self::die_after`], by this fate of the call.
    pub(crate) fn die_at(&self, fate: Fate, action: &'static str, number: usize) {
        let mut seen = 0;
        self.proxy.decide(move |_, call| {
            let hit = call.action == action && seen == number;
            seen += usize::from(call.action == action);
            if hit { fate.clone() } else { Fate::Pass }
        });
    }
}

/// Totals of the sample with this number of NAT gateways: all created resources, and what a VPC has
/// by itself.
pub(crate) fn sample(nat_gateways: usize) -> Totals {
    let counts = [
        ("Vpcs", 1),
        ("Subnets", 6),
        ("InternetGateways", 1),
        ("Addresses", nat_gateways),
        ("NatGateways", nat_gateways),
        ("RouteTables", 6 + 1),
        ("SecurityGroups", 5 + 1),
        ("Instances", 1),
        ("ClassicLoadBalancers", 1),
    ];
    counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect()
}

/// Whether an AWSCluster is ready; its endpoint must be published then.
pub(crate) fn is_ready(object: &Value) -> bool {
    let ready = object["status"]["ready"] == true;
    assert!(!ready || object["spec"]["controlPlaneEndpoint"]["port"] == 6443, "endpoint first");
    ready
}

/// An AWSCluster that the product reconciles.
pub(crate) fn ours(name: &str, spec: &Value) -> Value {
    let mut object = aws_cluster("v1beta2", name, spec);
    object["metadata"].as_object_mut().unwrap().remove("annotations");
    object
}

/// Two subnets in one zone.
pub(crate) fn spec(private: &str) -> Value {
    json!({"region": REGION, "network": {"vpc": {"cidrBlock": "10.1.0.0/16"},
        "natGateways": {"mode": "None"}, "subnets": [
        {"cidrBlock": "10.1.0.0/24", "availabilityZone": format!("{REGION}a"), "isPublic": true},
        {"cidrBlock": private, "availabilityZone": format!("{REGION}a")}]}})
}
