//! The tags that each resource shall carry. Names and keys are upstream's, so that either finds
//! what the other made.

use cidr::IpNet;

use crate::desired::{Desired, DesiredSubnet};
use crate::identity::{ROLE_TAG, Tags};
use crate::names::{resource_name, security_group_name};
use crate::role::Role;
use crate::spec::Dialect;

/// Key of the tag that tells for which zone an elastic IP or a NAT gateway is.
pub const NAT_ZONE_TAG: &str = "aws.cluster.x-k8s.io/nat-az";

/// Key of the tag that tells for which subnet, by CIDR, a route table is.
pub const ROUTE_TABLE_TAG: &str = "aws.cluster.x-k8s.io/route-table-subnet";

/// Key of the tag that tells which attempt a NAT gateway or a bastion was, from the second on.
pub const ATTEMPT_TAG: &str = "aws.cluster.x-k8s.io/attempt";

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

    pub(crate) fn vpc_tags(&self) -> Tags {
        self.named("common", "vpc")
    }

    pub(crate) fn internet_gateway_tags(&self) -> Tags {
        self.named("common", "igw")
    }

    pub(crate) fn subnet_tags(&self, subnet: &DesiredSubnet, zone: &str) -> Tags {
        let (role, balancers) =
            if subnet.public { ("public", "elb") } else { ("private", "internal-elb") };
        let mut tags = self.named(role, &format!("subnet-{role}-{zone}"));
        if let Some(name) = &subnet.name {
            tags.insert(NAME_TAG.to_owned(), name.clone());
        }
        tags.insert(format!("kubernetes.io/role/{balancers}"), "1".to_owned());
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
        if self.dialect == Dialect::Current {
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

/// What an adopted elastic IP may keep: upstream has changed its name and role
/// (`rule:upstreams-names-are-kept`).
pub(crate) fn without_name_and_role(mut tags: Tags) -> Tags {
    tags.remove(NAME_TAG);
    tags.remove(ROLE_TAG);
    tags
}
