//! The cases of whose a network is: what building comes to, what blocks a deletion, and the way out.

use serde_json::{Value, json};

use crate::aws_stage::{Stage, ours, spec};
use crate::aws_upstream::{Balancer, Foreign};
use crate::scene::condition;

pub(crate) const ADOPT: &str = "aws.cluster.x-k8s.io/adopt";
const ABANDON: &str = "aws.cluster.x-k8s.io/allow-abandon";
pub(crate) const OWNER: &str = "aws.cluster.x-k8s.io/owner-id";
const FINALIZER: &str = "awscluster.infrastructure.cluster.x-k8s.io";

/// One case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) object: Value,
    /// The condition that building comes to, and how its message begins.
    pub(crate) built: (&'static str, String),
    /// Message of a blocked deletion; `None` when the deletion ends.
    pub(crate) blocked: Option<String>,
    /// The annotation that lets it end then.
    pub(crate) way_out: &'static str,
}

/// The expected condition of a cluster that can be built.
pub(crate) fn ready() -> (&'static str, String) {
    ("Ready", String::new())
}

fn conflict(vpc: &str) -> (&'static str, String) {
    let message = format!(
        "{vpc} has the tag of this cluster but no owner-id: set the annotation {ADOPT}=true to adopt it, or \
         remove the tag"
    );
    ("VpcReady", message)
}

/// A deletion that leaves these, the first two and so many more.
fn left(first: &[&str], more: usize, ways: &str) -> String {
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let have = if first.len() > 1 { "have" } else { "has" };
    let first = first.join(", ");
    format!(
        "cannot finish deletion: {first}{more} {have} the cluster tag but not the owner-id of this AWSCluster; {ways} the annotation {ABANDON}=true to \
         keep them"
    )
}

impl Case {
    fn new(name: &'static str, spec: &Value) -> Self {
        let object = ours(name, spec);
        Self { name, object, built: ready(), blocked: None, way_out: "" }
    }

    fn annotated(mut self, annotation: &str, value: &str) -> Self {
        self.object["metadata"]["annotations"][annotation] = json!(value);
        self
    }

    fn says(self, kind: &'static str, message: &str) -> Self {
        Self { built: (kind, message.to_owned()), ..self }
    }

    fn blocked(self, message: String, way_out: &'static str) -> Self {
        Self { blocked: Some(message), way_out, ..self }
    }

    pub(crate) fn is_built(&self, object: &Value) -> bool {
        let (kind, message) = &self.built;
        let found = condition(object, kind);
        let is_true = found["status"] == "True";
        let said = found["message"].as_str().unwrap_or_default();
        is_true == message.is_empty() && said.starts_with(message)
    }
}

/// A spec with a NAT gateway.
fn managed() -> Value {
    let mut spec = spec("10.1.1.0/24");
    spec["network"]["natGateways"]["mode"] = json!("PerAZ");
    spec
}

/// A spec with an existing VPC, with its ids in the spec as upstream writes them.
fn with_ids(mut spec: Value, foreign: &Foreign<'_>) -> Value {
    spec["network"]["vpc"]["id"] = json!(foreign.vpc);
    for (place, id) in foreign.subnets.iter().enumerate() {
        spec["network"]["subnets"][place]["id"] = json!(id);
    }
    spec
}

fn with_network_balancer(mut spec: Value) -> Value {
    spec["controlPlaneLoadBalancer"] = json!({"loadBalancerType": "nlb"});
    spec
}

/// Networks that end with their clusters, since these adopt them.
pub(crate) async fn adopted(stage: &Stage) -> (Vec<Foreign<'_>>, Vec<Case>) {
    let (mut all, mut cases) = (Vec::new(), Vec::new());
    for (name, balancer) in [
        ("classic", Balancer::Classic),
        ("network", Balancer::Network),
        ("late", Balancer::Network),
        ("half", Balancer::Classic),
    ] {
        let mut foreign = Foreign::of(stage.proxy.upstream(), name);
        foreign.network(balancer).await;
        all.push(foreign);
    }
    let ways = format!("set the annotation {ADOPT}=true to delete them, or");
    let [classic, _, _, half] = &all[..] else { panic!() };
    let first = [&*classic.vpc, &*classic.subnets[0]];
    let mut case = Case::new("classic", &managed()).blocked(left(&first, 12, &ways), ADOPT);
    case.built = conflict(&classic.vpc);
    cases.push(case);
    let spec = with_network_balancer(managed());
    cases.push(Case::new("network", &spec).annotated(ADOPT, "true"));
    // Its deletion began before it was ever looked at.
    let mut late = Case::new("late", &spec).annotated(ADOPT, "true");
    late.object["metadata"]["finalizers"] = json!([FINALIZER]);
    late.object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "late"});
    cases.push(late);
    // An adoption that was broken off after its first write.
    half.mark(&half.vpc, "half-owner").await;
    let subnets = half.subnets.iter().zip(["10.1.0.0/24", "10.1.1.0/24"]);
    let message = subnets
        .map(|(id, cidr)| format!("{id} has {cidr} and does not belong to this cluster"))
        .min()
        .unwrap();
    let case = Case::new("half", &managed()).annotated(OWNER, "half-owner");
    cases.push(case.says("SubnetsReady", &message));
    (all, cases)
}

/// Networks that stay.
pub(crate) async fn left_alone(stage: &Stage) -> (Vec<Foreign<'_>>, Vec<Case>) {
    let new = |name: &str| Foreign::of(stage.proxy.upstream(), name);
    let (mut ids, mut eks) = (new("ids"), new("eks"));
    let (mut byo, mut shared, mut taken) = (new("byo"), new("shared"), new("taken"));
    ids.network(Balancer::Network).await;
    eks.network(Balancer::Classic).await;
    eks.group_of_role("node-eks-additional").await;
    let mut cases = Vec::new();

    let ways = format!("set the annotation {ADOPT}=true to delete them, or");
    let first = [&*ids.vpc, &*ids.subnets[0]];
    let mut spec = with_network_balancer(with_ids(managed(), &ids));
    spec["controlPlaneEndpoint"] = json!({"host": "api.example.org", "port": 6443});
    let mut case = Case::new("ids", &spec).blocked(left(&first, 14, &ways), ABANDON);
    case.built = conflict(&ids.vpc);
    cases.push(case);

    let first = [&*eks.vpc, &*eks.subnets[0]];
    let ways = "an EKS cluster uses the VPC, which cannot be adopted; set";
    let message = format!("{} belongs to an EKS cluster, which cannot be adopted", eks.vpc);
    let case = Case::new("eks", &managed()).annotated(ADOPT, "true").says("VpcReady", &message);
    cases.push(case.blocked(left(&first, 13, ways), ABANDON));

    byo.users_vpc().await;
    byo.group("database").await;
    cases.push(Case::new("byo", &with_ids(spec_of_user(), &byo)));

    shared.users_vpc().await;
    let tag = "sigs.k8s.io/cluster-api-provider-aws/cluster/shared";
    shared.tag(&shared.vpc, &[(tag.to_owned(), "shared".to_owned())]).await;
    let named = shared.group_of_role("node").await;
    let mut spec = with_ids(spec_of_user(), &shared);
    spec["network"]["securityGroupOverrides"] = json!({"node": named});
    cases.push(Case::new("shared", &spec));

    taken.users_vpc().await;
    let group = taken.group_of_role("node").await;
    taken.mark(&group, "another").await;
    let message = format!(
        "{group} has the name taken-node and owner-id another: it belongs to another cluster"
    );
    let case = Case::new("taken", &with_ids(spec_of_user(), &taken));
    let ways = format!("set the annotation {OWNER}=another to delete them, or");
    let case = case.says("ClusterSecurityGroupsReady", &message);
    cases.push(case.blocked(left(&[&group], 0, &ways), ABANDON));
    (vec![ids, eks, byo, shared, taken], cases)
}

/// A spec with a VPC of a user, which gets no NAT gateways.
fn spec_of_user() -> Value {
    spec("10.1.1.0/24")
}

/// Clusters without a network of others.
pub(crate) fn of_their_own() -> Vec<Case> {
    let mut cases = vec![
        Case::new("plain", &with_network_balancer(spec("10.1.1.0/24"))),
        Case::new("restored", &spec("10.1.1.0/24")),
    ];
    let mut overriding = managed();
    overriding["network"]["securityGroupOverrides"] = json!({"node": "sg-0123456789abcdef0"});
    let message = "cannot use spec.network.securityGroupOverrides: requires an unmanaged \
                   spec.network.vpc.id";
    cases.push(Case::new("overriding", &overriding).says("Ready", message));
    for (name, kind) in [("role", "AWSClusterRoleIdentity"), ("static", "AWSClusterStaticIdentity")]
    {
        let mut spec = managed();
        spec["identityRef"] = json!({"kind": kind, "name": "absent"});
        let message =
            format!("cannot use {kind} absent: it is not served or does not exist; create it");
        let blocked = format!(
            "{message}; no created resource is known; if nothing was created, set the annotation {ABANDON}=true to finish the deletion"
        );
        let case = Case::new(name, &spec).says("PrincipalCredentialRetrieved", &message);
        cases.push(case.blocked(blocked, ABANDON));
    }
    cases
}
