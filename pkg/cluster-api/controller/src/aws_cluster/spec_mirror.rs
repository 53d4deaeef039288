//! `--mirror-ids-to-spec`: writes the ids of what was created into the spec, as upstream does for its
//! Machines. The copies decide no more than ids of a user would: deletion follows tags all the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_network::{NetworkIds, SubnetIds};
use objects::{Error, Object};
use serde_json::Value;

use super::aws_clusters::AwsClusters;
use crate::api::aws_cluster::{AwsCluster, AwsClusterSpec, Subnet};
use crate::api::{Dialect, TOPOLOGY_OWNED_LABEL};

impl AwsClusters {
    /// Writes where everything lies into the spec of an AWSCluster whose owner is of this dialect.
    pub(super) async fn mirror(
        &self,
        object: &Arc<Object<AwsCluster>>,
        owner: Dialect,
        ids: &NetworkIds,
    ) -> Result<(), Error> {
        let written = self.client.change(object, |_, draft| {
            let is_of_topology = draft.metadata.labels.contains_key(TOPOLOGY_OWNED_LABEL);
            mirror(&mut draft.body.spec, owner, ids, is_of_topology);
        });
        written.await.map(drop)
    }
}

/// Writes the ids in the words in which the network is written, or else in those of the owner. The subnets of an object
/// that the core keeps by server-side apply are left: the list has one owner, so core and this program would write it in
/// turns.
fn mirror(spec: &mut AwsClusterSpec, owner: Dialect, ids: &NetworkIds, is_of_topology: bool) {
    let is_said = spec.network().is_some();
    let is_older = spec.network_spec.is_some() || (!is_said && owner == Dialect::V1Alpha2);
    let network = if is_older { &mut spec.network_spec } else { &mut spec.network };
    let network = network.get_or_insert_default();
    if network.subnets.is_empty() && !is_of_topology {
        // Those that were chosen for it.
        network.subnets = vec![Subnet::default(); ids.subnets.len()];
    }
    if network.subnets.len() != ids.subnets.len() && !is_of_topology {
        return;
    }
    let vpc = network.vpc.get_or_insert_default();
    fill(&mut vpc.id, &ids.vpc);
    fill(&mut vpc.cidr_block, &ids.cidr.to_string());
    note(&mut vpc.others, "internetGatewayId", ids.internet_gateway.as_deref());
    note(&mut vpc.others, "carrierGatewayId", ids.carrier_gateway.as_deref());
    if is_of_topology {
        return;
    }
    for (subnet, ids) in network.subnets.iter_mut().zip(&ids.subnets) {
        if is_older {
            mirror_older(subnet, ids);
        } else {
            mirror_newer(subnet, ids);
        }
        fill(&mut subnet.cidr_block, &ids.cidr.to_string());
        fill(&mut subnet.availability_zone, &ids.zone);
        if ids.public {
            subnet.is_public = Some(true);
        }
        if let Some(ipv6) = ids.ipv6 {
            subnet.is_ipv6 = Some(true);
            fill(&mut subnet.ipv6_cidr_block, &ipv6.to_string());
        }
        note(&mut subnet.others, "routeTableId", ids.route_table.as_deref());
        note(&mut subnet.others, "natGatewayId", ids.nat_gateway.as_deref());
    }
}

/// The id is that of AWS.
fn mirror_older(subnet: &mut Subnet, ids: &SubnetIds) {
    fill(&mut subnet.id, &ids.id);
}

/// The id is that of AWS for a subnet that was there before, and otherwise the name.
fn mirror_newer(subnet: &mut Subnet, ids: &SubnetIds) {
    fill(&mut subnet.id, if ids.name.is_empty() { &ids.id } else { &ids.name });
    if let Some(edge) = &ids.edge {
        // Upstream's machines use no subnet of an edge zone by themselves.
        fill(&mut subnet.zone_type, edge.zone_type.word());
        edge.parent.iter().for_each(|parent| fill(&mut subnet.parent_zone_name, parent));
    }
    let is_name = subnet.id.as_ref() != Some(&ids.id);
    note(&mut subnet.others, "resourceID", is_name.then_some(&*ids.id));
}

/// Sets a field that the user left empty.
fn fill(field: &mut Option<String>, text: &str) {
    if field.as_ref().is_none_or(String::is_empty) {
        *field = Some(text.to_owned());
    }
}

fn note(fields: &mut BTreeMap<String, Value>, name: &str, id: Option<&str>) {
    match id {
        Some(id) => drop(fields.insert(name.to_owned(), id.into())),
        None => drop(fields.remove(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ids() -> NetworkIds {
        let subnet = |id: &str, name: &str, cidr: &str, public| SubnetIds {
            id: id.to_owned(),
            name: name.to_owned(),
            cidr: cidr.parse().unwrap(),
            ipv6: None,
            zone: "us-east-2a".to_owned(),
            edge: None,
            public,
            route_table: Some(format!("rtb-of-{id}")),
            nat_gateway: public.then(|| "nat-1".to_owned()),
        };
        NetworkIds {
            vpc: "vpc-1".to_owned(),
            cidr: "10.0.0.0/16".parse().unwrap(),
            internet_gateway: Some("igw-1".to_owned()),
            carrier_gateway: None,
            subnets: vec![
                subnet("subnet-1", "c-public", "10.0.0.0/20", true),
                subnet("subnet-2", "", "10.0.64.0/18", false),
            ],
        }
    }

    fn mirrored(spec: Value, owner: Dialect) -> Value {
        let mut spec: AwsClusterSpec = serde_json::from_value(spec).unwrap();
        mirror(&mut spec, owner, &ids(), false);
        let once = serde_json::to_value(&spec).unwrap();
        mirror(&mut spec, owner, &ids(), false);
        assert_eq!(serde_json::to_value(&spec).unwrap(), once, "and nothing more the next time");
        once
    }

    #[test]
    fn ids_are_written_in_the_words_of_the_network_or_of_its_owner() {
        let vpc = json!({"id": "vpc-1", "cidrBlock": "10.0.0.0/16", "internetGatewayId": "igw-1"});
        let newer = json!({"region": "us-east-2", "network": {"vpc": vpc, "subnets": [
            {"id": "c-public", "resourceID": "subnet-1", "cidrBlock": "10.0.0.0/20", "isPublic": true,
                "availabilityZone": "us-east-2a", "routeTableId": "rtb-of-subnet-1", "natGatewayId": "nat-1"},
            {"id": "subnet-2", "cidrBlock": "10.0.64.0/18", "availabilityZone": "us-east-2a",
                "routeTableId": "rtb-of-subnet-2"}]}});
        assert_eq!(mirrored(json!({"region": "us-east-2"}), Dialect::V1Beta2), newer);
        let older = mirrored(json!({"region": "us-east-2"}), Dialect::V1Alpha2);
        let network = &older["networkSpec"];
        assert_eq!(network["vpc"], vpc);
        assert_eq!(network["subnets"][0]["id"], "subnet-1");
        assert_eq!(network["subnets"][0].get("resourceID"), None);
        assert_eq!(older.get("network"), None);
        // Only one of them is ever set.
        let said = json!({"region": "us-east-2", "network": {"vpc": {"cidrBlock": "10.0.0.0/16"}}});
        assert_eq!(mirrored(said, Dialect::V1Alpha2), newer);
    }

    #[test]
    fn what_a_user_has_said_stays_and_what_is_of_another_number_is_left() {
        let said = json!({"region": "us-east-2", "network": {"subnets": [
            {"id": "mine", "cidrBlock": "10.0.0.0/20", "tags": {"a": "b"}},
            {"id": "subnet-2", "natGatewayId": "nat-of-old", "zoneType": "availability-zone"}]}});
        let subnets = &mirrored(said, Dialect::V1Beta2)["network"]["subnets"];
        assert_eq!(
            (&subnets[0]["id"], &subnets[0]["resourceID"]),
            (&json!("mine"), &json!("subnet-1"))
        );
        assert_eq!(subnets[0]["tags"], json!({"a": "b"}));
        assert_eq!((subnets[1].get("natGatewayId"), subnets[1].get("resourceID")), (None, None));
        assert_eq!(subnets[1]["zoneType"], "availability-zone");
        let other = json!({"region": "us-east-2", "network": {"subnets": [{"id": "subnet-1"}]}});
        assert_eq!(mirrored(other.clone(), Dialect::V1Beta2), other);
    }

    #[test]
    fn a_subnet_that_was_chosen_with_ipv6_has_it_in_the_spec_too() {
        let mut ids = ids();
        ids.subnets[0].ipv6 = Some("2600:db8:0:105::/64".parse().unwrap());
        let said = json!({"region": "us-east-2", "network": {"vpc": {"ipv6": {}}}});
        let mut spec: AwsClusterSpec = serde_json::from_value(said).unwrap();
        mirror(&mut spec, Dialect::V1Beta2, &ids, false);
        let network = &serde_json::to_value(&spec).unwrap()["network"];
        assert_eq!(network["vpc"]["ipv6"], json!({}));
        let of = |number: usize| {
            let subnet = &network["subnets"][number];
            [subnet["isIpv6"].clone(), subnet["ipv6CidrBlock"].clone()]
        };
        assert_eq!(of(0), [json!(true), json!("2600:db8:0:105::/64")]);
        assert_eq!(of(1), [json!(null), json!(null)]);
    }

    #[test]
    fn the_subnets_of_an_object_of_a_topology_are_left() {
        let vpc = json!({"id": "vpc-1", "cidrBlock": "10.0.0.0/16", "internetGatewayId": "igw-1"});
        for subnets in [json!([]), json!([{"id": "a"}]), json!([{"id": "a"}, {"id": "b"}])] {
            let said = json!({"region": "us-east-2", "network": {"subnets": subnets}});
            let mut spec: AwsClusterSpec = serde_json::from_value(said).unwrap();
            mirror(&mut spec, Dialect::V1Beta2, &ids(), true);
            let network = &serde_json::to_value(&spec).unwrap()["network"];
            assert_eq!(network["vpc"], vpc);
            assert_eq!(network.get("subnets").unwrap_or(&json!([])), &subnets);
        }
    }
}
