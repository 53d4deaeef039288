//! [`Region::marked`]: everything in a region that carries the mark of an owner, whoever that is.
//! Who looks for what has outlived its owner asks for it.

use aws_network::{AwsResource, Instance, NatGateway, Tags};

use super::instances::{if_offered, if_permitted};
use super::{Describe, filter};
use crate::call::AwsError;
use crate::region::Region;

/// A resource with the mark of an owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Marked {
    /// The value of the mark.
    pub owner: String,
    /// Kind, one of [`Marked::KINDS`].
    pub kind: &'static str,
    /// Id, or name of a load balancer or a target group.
    pub id: String,
}

impl Marked {
    /// The kinds of resources that are looked for.
    pub const KINDS: [&str; 12] = [
        "vpc",
        "subnet",
        "internet_gateway",
        "egress_only_gateway",
        "carrier_gateway",
        "elastic_ip",
        "nat_gateway",
        "route_table",
        "security_group",
        "instance",
        "load_balancer",
        "target_group",
    ];
}

impl Region {
    /// Everything that carries a tag with this key and has not ended. Other than by one read of all
    /// tags, which AWS shows for a while, and emulations of AWS always.
    pub async fn marked(&self, key: &str) -> Result<Vec<Marked>, AwsError> {
        let mut all = Found { key, marked: Vec::new() };
        let describe = Describe { region: self, cluster_tag: "" };
        let has_key = || filter("tag-key", key);
        all.take("vpc", describe.vpcs_where(has_key()).await?);
        all.take("subnet", describe.subnets(has_key()).await?);
        all.take("internet_gateway", describe.internet_gateways(has_key()).await?);
        // Policies of earlier releases do not permit these.
        let egress_only = describe.egress_only_gateways(Some(has_key())).await;
        all.take("egress_only_gateway", if_permitted(egress_only)?);
        let carriers = describe.carrier_gateways(has_key()).await;
        let carriers = if_permitted(if_offered(carriers))?;
        all.take("carrier_gateway", carriers);
        all.take("elastic_ip", describe.addresses(has_key()).await?);
        let nats = describe.nat_gateways(has_key()).await?;
        all.take("nat_gateway", nats.into_iter().filter(NatGateway::is_live));
        all.take("route_table", describe.route_tables(has_key()).await?);
        all.take("security_group", describe.security_groups(has_key()).await?);
        let instances = describe.instances_where(vec![has_key()]).await?;
        all.take("instance", instances.into_iter().filter(Instance::is_live));
        // No call finds load balancers and target groups by their tags.
        let names = describe.classic_names().await?;
        all.mark("load_balancer", describe.classic_tags(&names).await?);
        all.mark("load_balancer", describe.network_balancer_tags().await?);
        all.mark("target_group", describe.target_group_tags().await?);
        all.marked.sort();
        Ok(all.marked)
    }
}

/// Resources with a tag of this key.
struct Found<'a> {
    key: &'a str,
    marked: Vec<Marked>,
}

impl Found<'_> {
    fn take(&mut self, kind: &'static str, all: impl IntoIterator<Item = impl AwsResource>) {
        let tags = |found: &dyn AwsResource| found.known_tags().cloned().unwrap_or_default();
        self.mark(kind, all.into_iter().map(|found| (found.id().to_owned(), tags(&found))));
    }

    fn mark(&mut self, kind: &'static str, all: impl IntoIterator<Item = (String, Tags)>) {
        debug_assert!(Marked::KINDS.contains(&kind), "{kind}");
        let mark = |(id, tags): (String, Tags)| {
            Some(Marked { owner: tags.get(self.key)?.clone(), kind, id })
        };
        self.marked.extend(all.into_iter().filter_map(mark));
    }
}
