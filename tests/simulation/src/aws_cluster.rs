//! An AWSCluster: a user creates it with its Cluster, changes it, and deletes the Cluster; what AWS must have at rest
//! (C9, C10).

use std::time::Duration;

use cloud_double::differences;
use http::Method;
use rand::RngExt as _;
use rand::rngs::SmallRng;
use resilience::wall_now;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::cloud::{Aws, CLUSTER, REGION};
use crate::clusters::{GROUP, NAMESPACE, is_deleting, is_provisioned, key, path_of, says_ready};
use crate::members::CRDS;
use crate::plan::Number;
use crate::world::{State, World};

/// Flags of the controller of AWSClusters.
pub(crate) const FLAGS: [&str; 4] = [
    // No name resolves here.
    "--dns-resolution-check=None",
    "--prune-subnets=true",
    "--sync-period=10s",
    // A deep check writes its time into the status, also at rest.
    "--deep-check-period=8760h",
];
/// A network is as it should be after this time: NAT gateways that failed are made again, and waits doubled up to five
/// minutes.
const SETTLES: Duration = Duration::from_secs(900);
/// So long nothing is written to AWS before it counts as settled: reads may lag, and lost calls are awaited.
const QUIET: Duration = Duration::from_secs(120);
const KIND: &str = "awsclusters";
/// One in so many steps of the user.
const EDITS_OF: u32 = 24;

fn path() -> String {
    format!("{}/{CLUSTER}", path_of(KIND))
}

/// The subnets in the first so many zones.
fn subnets(zones: usize) -> Value {
    let all = ["a", "b", "c"].into_iter().enumerate().take(zones).flat_map(|(nth, zone)| {
        let subnet = |name: &str, at: usize, is_public: bool| {
            json!({
                "id": format!("{name}-{zone}"), "availabilityZone": format!("{REGION}{zone}"),
                "cidrBlock": format!("10.66.0.{}/27", at * 32), "isPublic": is_public,
            })
        };
        [subnet("public", 2 * nth, true), subnet("private", 2 * nth + 1, false)]
    });
    all.collect()
}

/// The policy; a single one stays in the zone where it is, so its zone is given.
fn nat_gateways(mode: &str) -> Value {
    let zone = (mode == "Single").then(|| format!("{REGION}a"));
    json!({"mode": mode, "availabilityZone": zone})
}

fn spec(zones: usize, nat_gateways: &Value) -> Value {
    let mut nat_gateways = nat_gateways.clone();
    if let Some(fields) = nat_gateways.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    json!({
        "region": REGION,
        "network": {
            "vpc": {"cidrBlock": "10.66.0.0/24"},
            "subnets": subnets(zones),
            "natGateways": nat_gateways,
        },
    })
}

impl State {
    /// Makes the kind, the AWSCluster and its Cluster.
    pub(crate) fn register_aws_cluster(&mut self) {
        let metadata = json!({"name": format!("{KIND}.{GROUP}"), "labels": {
            "app.kubernetes.io/managed-by": "infra-controller-manager",
            "cluster.x-k8s.io/v1beta2": "v1beta2",
        }});
        self.edit_at(Method::POST, CRDS.to_owned(), &json!({"metadata": metadata}));
        self.add_aws_cluster(&spec(2, &nat_gateways("Single")));
    }

    fn add_aws_cluster(&mut self, spec: &Value) {
        let metadata = json!({"name": CLUSTER, "namespace": NAMESPACE});
        let object = json!({"metadata": metadata, "spec": spec});
        self.edit_at(Method::POST, path_of(KIND), &object);
        let reference = |kind: &str| json!({"apiGroup": GROUP, "kind": kind, "name": CLUSTER});
        let spec = json!({
            "infrastructureRef": reference("AWSCluster"),
            "controlPlaneRef": reference("OtherControlPlane"),
        });
        let object = json!({"metadata": metadata, "spec": spec});
        self.edit_at(Method::POST, path_of("clusters"), &object);
        self.note_owner();
    }

    fn note_owner(&mut self) {
        let object = self.store.get(&key(KIND, CLUSTER));
        let uid = object.and_then(|it| it["metadata"]["uid"].as_str()).map(str::to_owned);
        if let (Some(uid), Some(aws)) = (uid, &mut self.aws) {
            aws.owner = uid;
        }
    }

    /// A user creates the Cluster again, deletes it, or changes the AWSCluster.
    pub(crate) fn edit_aws_cluster(&mut self, number: Number, rng: &mut SmallRng) {
        if rng.random_range(0..EDITS_OF) != 0 {
            return;
        }
        let choice = rng.random_range(0..8);
        let objects = [key("clusters", CLUSTER), key(KIND, CLUSTER)];
        let [cluster, infrastructure] = objects.map(|it| self.store.get(&it).cloned());
        let (Some(cluster), Some(infrastructure)) = (&cluster, &infrastructure) else {
            if cluster.is_none() && infrastructure.is_none() {
                self.count(number, "AWSCluster created");
                let mode = ["PerAZ", "Single", "None"][rng.random_range(0..3)];
                self.add_aws_cluster(&spec(rng.random_range(1..=3), &nat_gateways(mode)));
            }
            return;
        };
        if is_deleting(cluster) || is_deleting(infrastructure) {
            return;
        }
        // Without its finalizer the Cluster would go at once.
        if choice == 0 && cluster["metadata"]["finalizers"].is_array() {
            self.count(number, "AWSCluster deleted");
            self.remove_cluster(CLUSTER);
            return;
        }
        self.count(number, "AWSCluster changed");
        let change = match choice {
            1..3 => json!({"network": {"natGateways": nat_gateways("PerAZ")}}),
            3 => json!({"network": {"natGateways": nat_gateways("None")}}),
            4 => json!({"network": {"natGateways": nat_gateways("Single")}}),
            5 => json!({"additionalTags": {"at": number.to_string()}}),
            _ => json!({"network": {"subnets": subnets(rng.random_range(1..=3))}}),
        };
        self.edit_at(Method::PATCH, path(), &json!({"spec": change}));
    }

    /// When its AWSCluster goes, nothing of the cluster is left, and all of others is there as it was (C9).
    pub(crate) fn judge_end_on_aws(&mut self) {
        let left = self.aws.as_ref().map(|aws| differences(&aws.inventory(), &aws.foreign));
        if let Some(left) = left.filter(|it| !it.is_empty()) {
            self.violate(format!("C9: the AWSCluster is gone, and AWS has {left:#?}"));
        }
    }

    /// Why the cluster is not as it should be at rest.
    fn unsettled_on_aws(&self) -> Option<String> {
        let objects = [key("clusters", CLUSTER), key(KIND, CLUSTER)];
        let left = || {
            let aws = self.aws.as_ref()?;
            let left = differences(&aws.inventory(), &aws.foreign);
            (!left.is_empty()).then(|| format!("is gone, and AWS has {left:#?}"))
        };
        match objects.map(|it| self.store.get(&it)) {
            [None, None] => left(),
            [None, Some(_)] => Some("is gone without its AWSCluster".to_owned()),
            [Some(cluster), _] if is_deleting(cluster) => Some("is still being deleted".to_owned()),
            [Some(cluster), Some(found)] if says_ready(cluster) && is_provisioned(found) => {
                let conditions = found["status"]["conditions"].as_array()?;
                let bad =
                    conditions.iter().find(|it| it["type"] == "Ready" && it["status"] != "True");
                bad.map(|it| format!("has the condition {it}"))
            }
            [Some(_), found] => Some(format!("is not ready: {:?}", found.map(|it| &it["status"]))),
        }
    }

    /// Age of the stored intent to create this resource, by the clock of the process that asks.
    pub(crate) fn age_of_intent(&self, made: &str) -> Option<Duration> {
        let object = self.store.get(&key(KIND, CLUSTER))?;
        let since = object["status"]["pendingCreates"][made].as_str()?;
        wall_now().duration_since(since.parse().ok()?).try_into().ok()
    }

    fn writes_to_aws(&self) -> u64 {
        self.aws.as_ref().map_or(0, |aws| aws.writes)
    }
}

/// Waits until the cluster on AWS is ready or gone, and nothing is written to AWS any more.
pub(crate) async fn at_rest(world: &World) {
    if world.with(|state| state.aws.is_none()) {
        return;
    }
    let (limit, mut writes, mut since) = (Instant::now() + SETTLES, 0, Instant::now());
    while since.elapsed() < QUIET {
        let (why, sent) = world.with(|state| (state.unsettled_on_aws(), state.writes_to_aws()));
        if why.is_some() || sent != writes {
            (writes, since) = (sent, Instant::now());
        }
        if Instant::now() >= limit {
            let why = why.unwrap_or_else(|| "is written to".to_owned());
            world.with(|state| state.violate(format!("C10: {CLUSTER} {why} {SETTLES:?} later")));
            return;
        }
        sleep(Duration::from_millis(250)).await;
    }
}

/// The network at rest is that of a cluster that is made at once and without faults, and nothing of either is left
/// after its deletion (C9).
pub(crate) async fn ends_as_a_new_one(world: &World) {
    let Some(is_there) = world.with(|state| {
        state.aws.as_ref()?;
        Some(state.store.get(&key(KIND, CLUSTER)).is_some())
    }) else {
        return;
    };
    if !is_there {
        world.with(|state| state.add_aws_cluster(&spec(2, &nat_gateways("PerAZ"))));
        at_rest(world).await;
    }
    let (spec, found) = world.with(|state| {
        let object = state.store.get(&key(KIND, CLUSTER));
        let mut spec = object.map(|it| it["spec"].clone()).unwrap_or_default();
        if let Some(fields) = spec.as_object_mut() {
            fields.remove("controlPlaneEndpoint");
        }
        let found = state.aws.as_ref().map(Aws::inventory).unwrap_or_default();
        state.remove_cluster(CLUSTER);
        (spec, found)
    });
    at_rest(world).await;
    world.with(|state| {
        state.note(|| "the Cluster on AWS is made again".to_owned());
        state.add_aws_cluster(&spec);
    });
    at_rest(world).await;
    world.with(|state| {
        let wanted = state.aws.as_ref().map(Aws::inventory).unwrap_or_default();
        let differing = differences(&found, &wanted);
        if !differing.is_empty() {
            state.violate(format!("C9: the network differs from a new one: {differing:#?}"));
        }
        state.remove_cluster(CLUSTER);
    });
    at_rest(world).await;
}
