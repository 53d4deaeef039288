//! [`Region::marked`]: everything in a region that carries the mark of an owner, whoever that is.
//! Who looks for what has outlived its owner asks for it.

use aws_network::{Instance, NatGateway, Tags};

use super::{Describe, filter};
use crate::call::AwsError;
use crate::region::Region;

const KINDS: [&str; 10] = [
    "vpc",
    "subnet",
    "internet_gateway",
    "elastic_ip",
    "nat_gateway",
    "route_table",
    "security_group",
    "instance",
    "load_balancer",
    "target_group",
];

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
    pub const KINDS: [&str; 10] = KINDS;
}

impl Region {
    /// Everything that carries a tag with this key and has not ended. Other than by one read of all
    /// tags, which AWS shows for a while, and emulations of AWS always.
    ///
    /// # Errors
    /// AWS has refused one of the calls, or not answered it.
    pub async fn marked(&self, key: &str) -> Result<Vec<Marked>, AwsError> {
        let mut all = Found { key, marked: Vec::new() };
        self.marked_in_ec2(&mut all).await?;
        self.marked_balancers(&mut all).await?;
        all.marked.sort();
        Ok(all.marked)
    }

    async fn marked_in_ec2(&self, all: &mut Found<'_>) -> Result<(), AwsError> {
        let [
            vpc,
            subnet,
            internet_gateway,
            elastic_ip,
            nat_gateway,
            route_table,
            group,
            instance,
            ..,
        ] = KINDS;
        let describe = self.describe();
        let has_key = || filter("tag-key", all.key);
        let (vpcs, subnets) =
            (describe.vpcs_where(has_key()).await?, describe.subnets_where(has_key()).await?);
        let gateways = describe.internet_gateways_where(has_key()).await?;
        let addresses = describe.addresses_where(has_key()).await?;
        let nats = describe.nat_gateways_where(has_key()).await?;
        let tables = describe.route_tables_where(has_key()).await?;
        let groups = describe.security_groups_where(has_key()).await?;
        let instances = describe.instances_where(vec![has_key()]).await?;
        all.take(vpc, vpcs.into_iter().map(|it| (it.id, it.tags)));
        all.take(subnet, subnets.into_iter().map(|it| (it.id, it.tags)));
        all.take(internet_gateway, gateways.into_iter().map(|it| (it.id, it.tags)));
        all.take(elastic_ip, addresses.into_iter().map(|it| (it.id, it.tags)));
        let nats = nats.into_iter().filter(NatGateway::is_live);
        all.take(nat_gateway, nats.map(|it| (it.id, it.tags)));
        all.take(route_table, tables.into_iter().map(|it| (it.id, it.tags)));
        all.take(group, groups.into_iter().map(|it| (it.id, it.tags)));
        let instances = instances.into_iter().filter(Instance::is_live);
        all.take(instance, instances.map(|it| (it.id, it.tags)));
        Ok(())
    }

    /// Load balancers of both generations, and target groups, which no call finds by their tags.
    async fn marked_balancers(&self, all: &mut Found<'_>) -> Result<(), AwsError> {
        let [.., balancer, group] = KINDS;
        let describe = self.describe();
        let names = describe.classic_names().await?;
        all.take(balancer, describe.classic_tags(&names).await?);
        all.take(balancer, describe.network_balancer_tags().await?);
        all.take(group, describe.target_group_tags().await?);
        Ok(())
    }

    /// The describe calls, for no cluster in particular.
    fn describe(&self) -> Describe<'_> {
        Describe { region: self, cluster_tag: "" }
    }
}

/// Resources with a tag of this key.
struct Found<'a> {
    key: &'a str,
    marked: Vec<Marked>,
}

impl Found<'_> {
    fn take(&mut self, kind: &'static str, all: impl IntoIterator<Item = (String, Tags)>) {
        let mark = |(id, tags): (String, Tags)| {
            Some(Marked { owner: tags.get(self.key)?.clone(), kind, id })
        };
        self.marked.extend(all.into_iter().filter_map(mark));
    }
}
