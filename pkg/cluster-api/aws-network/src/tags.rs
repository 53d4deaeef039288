//! The names and tags that each resource shall carry, which are upstream's, so that either provider
//! finds what the other made; and [`TagDrift`], which corrects the tags of many resources in few
//! calls.

use std::collections::{BTreeMap, BTreeSet};

use blake2::digest::consts::U28;
use blake2::{Blake2b, Digest};
use cidr::IpNet;

use crate::action::Action;
use crate::desired::{Desired, DesiredSubnet};
use crate::identity::{ROLE_TAG, Tags};
use crate::rule::Role;
use crate::spec::{Dialect, LoadBalancerKind};

/// Key of the tag with the zone of an elastic IP or a NAT gateway.
pub const NAT_ZONE_TAG: &str = "aws.cluster.x-k8s.io/nat-az";

/// Key of the tag with the CIDR of the subnet of a route table.
pub const ROUTE_TABLE_TAG: &str = "aws.cluster.x-k8s.io/route-table-subnet";

/// Key of the tag that says that a VPC is used with IPv6.
pub(crate) const IPV6_TAG: &str = "aws.cluster.x-k8s.io/ipv6";

/// Key of the tag with the number of the attempt that created a NAT gateway or a bastion, from the second on.
pub const ATTEMPT_TAG: &str = "aws.cluster.x-k8s.io/attempt";

/// Keys of the tags of public and private subnets for load balancers of Services.
pub(crate) const BALANCER_TAGS: [&str; 2] =
    ["kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"];

/// The key of the tag that the console shows as the name.
pub(crate) const NAME_TAG: &str = "Name";

impl Desired {
    fn tags(&self, role: &str, name: String) -> Tags {
        let mut tags = self.additional_tags.clone();
        tags.extend(self.identity.base_tags(role));
        tags.insert(NAME_TAG.to_owned(), name);
        tags
    }

    fn named(&self, role: &str, suffix: &str) -> Tags {
        self.tags(role, resource_name(&self.identity.cluster, suffix))
    }

    pub(crate) fn vpc_tags(&self, has_ipv6: bool) -> Tags {
        let mut tags = self.named("common", "vpc");
        if has_ipv6 {
            tags.insert(IPV6_TAG.to_owned(), "true".to_owned());
        }
        tags
    }

    pub(crate) fn internet_gateway_tags(&self) -> Tags {
        self.named("common", "igw")
    }

    /// Upstream gives it the name of the internet gateway.
    pub(crate) fn carrier_gateway_tags(&self) -> Tags {
        self.internet_gateway_tags()
    }

    pub(crate) fn egress_only_gateway_tags(&self) -> Tags {
        self.named("common", "eigw")
    }

    pub(crate) fn subnet_tags(&self, subnet: &DesiredSubnet, zone: &str) -> Tags {
        let [of_public, of_private] = BALANCER_TAGS;
        let (role, balancers) =
            if subnet.public { ("public", of_public) } else { ("private", of_private) };
        let mut tags = self.named(role, &format!("subnet-{role}-{zone}"));
        if let Some(name) = &subnet.name {
            tags.insert(NAME_TAG.to_owned(), name.clone());
        }
        // Load balancers of Services are not put into edge zones.
        if self.edge_zones.find(zone).is_none() {
            tags.insert(balancers.to_owned(), "1".to_owned());
        }
        let used = if self.dialect == Dialect::V1Alpha2 { "shared" } else { "owned" };
        tags.insert(self.identity.kubernetes_tag(), used.to_owned());
        tags.extend(subnet.tags.clone());
        // Not even the spec may take away what we find our own by.
        tags.extend(self.identity.base_tags(role));
        tags
    }

    pub(crate) fn address_tags(&self, zone: &str) -> Tags {
        let mut tags = self.named("common", "eip-common");
        tags.insert(NAT_ZONE_TAG.to_owned(), zone.to_owned());
        tags
    }

    pub(crate) fn nat_gateway_tags(&self, zone: &str, attempt: u32) -> Tags {
        let mut tags = self.named("common", "nat");
        tags.insert(NAT_ZONE_TAG.to_owned(), zone.to_owned());
        note_attempt(&mut tags, attempt);
        tags
    }

    pub(crate) fn route_table_tags(&self, public: bool, zone: &str, cidr: IpNet) -> Tags {
        let role = if public { "public" } else { "private" };
        let mut tags = self.named("common", &format!("rt-{role}-{zone}"));
        tags.insert(ROUTE_TABLE_TAG.to_owned(), cidr.to_string());
        if self.dialect == Dialect::V1Beta2 {
            tags.insert(self.identity.kubernetes_tag(), "owned".to_owned());
        }
        tags
    }

    pub(crate) fn security_group_tags(&self, role: Role) -> Tags {
        let name = security_group_name(&self.identity.cluster, role.as_str());
        let mut tags = self.tags(role.as_str(), name);
        if role == Role::Lb {
            tags.insert(self.identity.kubernetes_tag(), "owned".to_owned());
        }
        tags
    }

    pub(crate) fn bastion_tags(&self, attempt: u32) -> Tags {
        let mut tags = self.named("bastion", "bastion");
        note_attempt(&mut tags, attempt);
        tags
    }

    pub(crate) fn load_balancer_tags(&self, name: &str) -> Tags {
        self.tags("apiserver", name.to_owned())
    }
}

fn note_attempt(tags: &mut Tags, attempt: u32) {
    if attempt > 0 {
        tags.insert(ATTEMPT_TAG.to_owned(), attempt.to_string());
    }
}

/// The attempt that a resource was.
pub(crate) fn attempt_of(tags: &Tags) -> u32 {
    tags.get(ATTEMPT_TAG).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Tags without those that an adopted elastic IP may keep: upstream has changed name and role.
pub(crate) fn without_name_and_role(mut tags: Tags) -> Tags {
    tags.remove(NAME_TAG);
    tags.remove(ROLE_TAG);
    tags
}

/// The longest name that a load balancer may have.
const LOAD_BALANCER_NAME: usize = 32;

const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The name of a load balancer for which the spec has none.
pub fn default_load_balancer_name(
    kind: LoadBalancerKind,
    namespace: &str,
    cluster: &str,
) -> String {
    match kind {
        LoadBalancerKind::Classic => load_balancer_name(cluster),
        LoadBalancerKind::Network => load_balancer_name(&format!("{namespace}-{cluster}")),
    }
}

/// The name of the load balancer of a cluster's API server. Upstream gives a network load balancer
/// of the current dialect the namespace and the cluster, joined by a dash, as `cluster`.
pub(crate) fn load_balancer_name(cluster: &str) -> String {
    let plain = format!("{}-apiserver", cluster.replace('.', "-"));
    if plain.len() <= LOAD_BALANCER_NAME { plain } else { format!("{}-k8s", hashed(cluster)) }
}

/// The name of the target group of an additional listener.
pub(crate) fn target_group_name(balancer: &str, port: u16) -> String {
    format!("{}-k8s", hashed(&format!("{balancer}:{port}")))
}

/// The 28 bytes of BLAKE2b, each as one digit of base 36.
fn hashed(text: &str) -> String {
    let digest = Blake2b::<U28>::digest(text.as_bytes());
    digest.iter().map(|byte| char::from(BASE36[usize::from(*byte) % BASE36.len()])).collect()
}

/// The Name tag of a resource of the cluster.
pub(crate) fn resource_name(cluster: &str, suffix: &str) -> String {
    format!("{cluster}-{suffix}")
}

/// The name of a security group. AWS refuses names that begin with `sg-`.
pub(crate) fn security_group_name(cluster: &str, role: &str) -> String {
    let at = if cluster.starts_with("sg-") { "@" } else { "" };
    format!("{at}{cluster}-{role}")
}

/// EC2 takes so many resources in a call.
const RESOURCES_IN_A_CALL: usize = 500;

/// Tags to set and to remove, by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TagDrift {
    set: BTreeMap<(String, String), BTreeSet<String>>,
    remove: BTreeMap<String, BTreeSet<String>>,
}

/// The difference: tags to set, and keys to remove. Keys of others are left alone
/// (`rule:settings-of-others-stay`).
pub(crate) fn difference(
    present: &Tags,
    wanted: &Tags,
    retired: &BTreeSet<String>,
) -> (Tags, Vec<String>) {
    let is_missing = |(key, value): &(&String, &String)| present.get(*key) != Some(*value);
    let owned = |(key, value): (&String, &String)| (key.clone(), value.clone());
    let set = wanted.iter().filter(is_missing).map(owned).collect();
    let is_retired = |key: &&String| present.contains_key(*key) && !wanted.contains_key(*key);
    (set, retired.iter().filter(is_retired).cloned().collect())
}

impl TagDrift {
    /// Notes what differs on a resource.
    pub(crate) fn compare(
        &mut self,
        id: &str,
        present: &Tags,
        wanted: &Tags,
        retired: &BTreeSet<String>,
    ) {
        let (set, remove) = difference(present, wanted, retired);
        for tag in set {
            self.set.entry(tag).or_default().insert(id.to_owned());
        }
        for key in remove {
            self.remove.entry(key).or_default().insert(id.to_owned());
        }
    }

    /// The calls: one for each set of resources that lack the same tags.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let set = by_resources(&self.set);
        let remove = by_resources(&self.remove);
        let mut actions = Vec::new();
        for (resources, tags) in set {
            let tags: Tags = tags.into_iter().collect();
            for some in resources.chunks(RESOURCES_IN_A_CALL) {
                actions.push(Action::CreateTags { resources: some.to_vec(), tags: tags.clone() });
            }
        }
        for (resources, keys) in remove {
            for some in resources.chunks(RESOURCES_IN_A_CALL) {
                actions.push(Action::DeleteTags { resources: some.to_vec(), keys: keys.clone() });
            }
        }
        actions
    }
}

fn by_resources<K: Clone>(all: &BTreeMap<K, BTreeSet<String>>) -> BTreeMap<Vec<String>, Vec<K>> {
    let mut calls: BTreeMap<Vec<String>, Vec<K>> = BTreeMap::new();
    for (what, resources) in all {
        calls.entry(resources.iter().cloned().collect()).or_default().push(what.clone());
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cluster-api-provider-aws#889
    #[test]
    fn short_names_of_load_balancers_are_readable_and_long_ones_hashed_as_upstream_does() {
        for (cluster, name) in [
            ("testnetwork3", "testnetwork3-apiserver"),
            ("a.b.c", "a-b-c-apiserver"),
            ("0123456789012345678901", "0123456789012345678901-apiserver"),
            ("01234567890123456789012", "26o3cjil5at5qn27vukn5x09b3ql-k8s"),
            ("anotherverylongtoolongname", "t8gnrbbifaaf5d0k4xmwui3xwvip-k8s"),
        ] {
            assert_eq!(load_balancer_name(cluster), name);
            assert!(name.len() <= LOAD_BALANCER_NAME);
        }
    }

    #[test]
    fn a_security_group_never_has_a_name_that_reads_as_an_id() {
        assert_eq!(security_group_name("seed", "node"), "seed-node");
        assert_eq!(security_group_name("sg-seed", "node"), "@sg-seed-node");
    }

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn keys(keys: &[&str]) -> BTreeSet<String> {
        keys.iter().map(|&key| key.to_owned()).collect()
    }

    #[test]
    fn resources_that_lack_the_same_tags_are_corrected_by_one_call() {
        let mut drift = TagDrift::default();
        let none = BTreeSet::new();
        for id in ["a", "b"] {
            drift.compare(id, &tags(&[]), &tags(&[("owner", "us"), ("Name", id)]), &none);
        }
        drift.compare(
            "c",
            &tags(&[("Name", "c"), ("owner", "them")]),
            &tags(&[("owner", "us"), ("Name", "c")]),
            &none,
        );
        let calls: Vec<_> = drift
            .actions()
            .into_iter()
            .map(|action| match action {
                Action::CreateTags { resources, tags } => (resources.join(","), tags),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            calls,
            [
                ("a".to_owned(), tags(&[("Name", "a")])),
                ("a,b,c".to_owned(), tags(&[("owner", "us")])),
                ("b".to_owned(), tags(&[("Name", "b")])),
            ]
        );
    }

    #[test]
    fn only_keys_that_were_ours_are_removed() {
        let mut drift = TagDrift::default();
        let present = tags(&[("ours", "1"), ("theirs", "2"), ("kept", "3")]);
        drift.compare(
            "a",
            &present,
            &tags(&[("kept", "3")]),
            &keys(&["ours", "kept", "never-there"]),
        );
        assert_eq!(
            drift.actions(),
            [Action::DeleteTags { resources: vec!["a".to_owned()], keys: vec!["ours".to_owned()] }]
        );
    }

    #[test]
    fn a_call_names_no_more_resources_than_aws_takes() {
        let mut drift = TagDrift::default();
        for number in 0..=RESOURCES_IN_A_CALL {
            drift.compare(&format!("{number}"), &tags(&[]), &tags(&[("a", "b")]), &BTreeSet::new());
        }
        let sizes: Vec<_> = drift
            .actions()
            .iter()
            .map(|action| match action {
                Action::CreateTags { resources, .. } => resources.len(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sizes, [RESOURCES_IN_A_CALL, 1]);
    }
}
