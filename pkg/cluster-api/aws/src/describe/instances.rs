//! Bastions, and what else lies in a VPC: instances and network interfaces.

use aws_network::{
    Instance, InstanceState, NetworkInterface, ROLE_TAG, Refusal, Role, classify_read,
};
use aws_sdk_ec2::types::{self, Filter, InstanceStateName, NetworkInterfaceStatus};

use super::answers::{Flaws, ec2_pages, one, tags_of_ec2};
use super::{Describe, PAGE, filter};
use crate::call::{AwsError, Call};

/// Canonical, by the beginning of the region's name.
const IMAGE_OWNERS: [(&str, &str); 3] =
    [("us-gov-", "513442679011"), ("cn-", "837727238323"), ("", "099720109477")];

impl Describe<'_> {
    pub(super) async fn bastions(self, recorded: Option<&str>) -> Result<Vec<Instance>, AwsError> {
        let bastion = Role::Bastion.as_str();
        let mut found = self.instances_where(vec![self.tag_filter(), bastion_filter()]).await?;
        found.retain(|instance| {
            self.is_tagged(&instance.tags)
                && instance.tags.get(ROLE_TAG).is_some_and(|role| role == bastion)
        });
        // A filter, not an id of the request: AWS refuses ids that it does not know.
        if let Some(id) = recorded.filter(|id| found.iter().all(|instance| instance.id != *id)) {
            let filters = vec![self.tag_filter(), filter("instance-id", id)];
            found.extend(self.instances_where(filters).await?);
        }
        Ok(found)
    }

    pub(super) async fn instances_where(
        self,
        filters: Vec<Filter>,
    ) -> Result<Vec<Instance>, AwsError> {
        let request = self.region.ec2().describe_instances().set_filters(Some(filters));
        let request = request.max_results(PAGE);
        let reservations = ec2_pages!(self, "DescribeInstances", request, reservations)?;
        let instances = reservations.into_iter().filter_map(|one| one.instances);
        self.admit(instances.flatten().map(instance))
    }

    /// The newest of Canonical's Ubuntu 24.04.
    pub(super) async fn bastion_image(self) -> Result<Option<String>, AwsError> {
        let region = self.region.name();
        let owner = IMAGE_OWNERS.iter().find(|(start, _)| region.starts_with(start));
        let request = self
            .region
            .ec2()
            .describe_images()
            .set_owners(owner.map(|(_, id)| vec![(*id).to_owned()]))
            .filters(filter("description", "Canonical, Ubuntu, 24.04*amd64*"))
            .filters(filter("architecture", "x86_64"))
            .filters(filter("virtualization-type", "hvm"))
            .filters(filter("state", "available"))
            .max_results(PAGE);
        let found = ec2_pages!(self, "DescribeImages", request, images)?;
        let newest = found.into_iter().max_by_key(|image| image.creation_date.clone());
        Ok(newest.and_then(|image| image.image_id))
    }

    pub(super) async fn interfaces(self, vpc: &str) -> Result<Vec<NetworkInterface>, AwsError> {
        let request = self.region.ec2().describe_network_interfaces();
        let request = request.filters(filter("vpc-id", vpc)).max_results(PAGE);
        let found = ec2_pages!(self, "DescribeNetworkInterfaces", request, network_interfaces)?;
        let here = found.into_iter().filter(|one| one.vpc_id.as_deref() == Some(vpc));
        Ok(here.filter_map(interface).collect())
    }
}

/// Instances with the role of a bastion.
pub(super) fn bastion_filter() -> Filter {
    filter(&format!("tag:{ROLE_TAG}"), Role::Bastion.as_str())
}

fn instance(instance: types::Instance) -> (Instance, Flaws) {
    let mut flaws = Flaws::default();
    let state = instance.state.and_then(|state| state.name);
    let launched = instance.launch_time.map(|time| time.secs()).unwrap_or_default();
    let state = instance_state(state.as_ref());
    let instance = Instance {
        id: flaws.id(instance.instance_id, "id of an instance"),
        vpc: instance.vpc_id.unwrap_or_default(),
        state: flaws.needed(state, "known state of an instance", InstanceState::Running),
        launched: u64::try_from(launched).unwrap_or_default(),
        public_ip: instance.public_ip_address.and_then(|text| text.parse().ok()),
        tags: tags_of_ec2(instance.tags),
    };
    (instance, flaws)
}

fn instance_state(state: Option<&InstanceStateName>) -> Option<InstanceState> {
    match state {
        Some(InstanceStateName::Pending) => Some(InstanceState::Pending),
        Some(InstanceStateName::Running) => Some(InstanceState::Running),
        Some(InstanceStateName::Stopping | InstanceStateName::Stopped) => {
            Some(InstanceState::Stopped)
        }
        Some(InstanceStateName::ShuttingDown) => Some(InstanceState::ShuttingDown),
        Some(InstanceStateName::Terminated) => Some(InstanceState::Terminated),
        _ => None,
    }
}

fn interface(interface: types::NetworkInterface) -> Option<NetworkInterface> {
    let groups = interface.groups.unwrap_or_default().into_iter();
    Some(NetworkInterface {
        id: interface.network_interface_id?,
        available: interface.status == Some(NetworkInterfaceStatus::Available),
        description: interface.description.unwrap_or_default(),
        requester: interface.requester_id.unwrap_or_default(),
        groups: groups.filter_map(|group| group.group_id).collect(),
    })
}

impl Describe<'_> {
    /// Ids of endpoints, VPN gateways, egress-only and carrier gateways, and network ACLs of a VPC. Of those
    /// that these credentials may not read, or AWS does not offer here, nothing is said: nothing but a message
    /// rests on it.
    pub(super) async fn residents(self, vpc: &str) -> Result<Vec<String>, AwsError> {
        let mut found = if_permitted(self.endpoints(vpc).await)?;
        found.extend(if_permitted(self.vpn_gateways(vpc).await)?);
        let mut gateways = if_permitted(self.egress_only_gateways(None).await)?;
        gateways.retain(|gateway| gateway.attached_to.as_deref() == Some(vpc));
        found.extend(gateways.into_iter().map(|gateway| gateway.id));
        let gateways = self.carrier_gateways(filter("vpc-id", vpc)).await;
        let gateways = if_permitted(if_offered(gateways))?;
        found.extend(gateways.into_iter().map(|gateway| gateway.id));
        found.extend(if_permitted(self.network_acls(vpc).await)?);
        Ok(found)
    }

    async fn endpoints(self, vpc: &str) -> Result<Vec<String>, AwsError> {
        let request = self.region.ec2().describe_vpc_endpoints();
        let request = request.filters(filter("vpc-id", vpc)).max_results(PAGE);
        let found = ec2_pages!(self, "DescribeVpcEndpoints", request, vpc_endpoints)?;
        let here = found.into_iter().filter(|one| one.vpc_id.as_deref() == Some(vpc));
        Ok(here.filter_map(|one| one.vpc_endpoint_id).collect())
    }

    /// This call has no pages.
    async fn vpn_gateways(self, vpc: &str) -> Result<Vec<String>, AwsError> {
        let request = self.region.ec2().describe_vpn_gateways();
        let request = request.filters(filter("attachment.vpc-id", vpc));
        let call = Call::ec2_read("DescribeVpnGateways");
        let answer = one(self.region, call, || request.clone().send()).await?;
        let is_here = |one: &types::VpnGateway| {
            let mut attachments = one.vpc_attachments.iter().flatten();
            attachments.any(|attachment| attachment.vpc_id.as_deref() == Some(vpc))
        };
        let here = answer.vpn_gateways.into_iter().flatten().filter(is_here);
        Ok(here.filter_map(|one| one.vpn_gateway_id).collect())
    }

    /// Network ACLs that are not deleted with the VPC.
    async fn network_acls(self, vpc: &str) -> Result<Vec<String>, AwsError> {
        let request = self.region.ec2().describe_network_acls();
        let request = request.filters(filter("vpc-id", vpc)).max_results(PAGE);
        let found = ec2_pages!(self, "DescribeNetworkAcls", request, network_acls)?;
        let is_here = |one: &types::NetworkAcl| {
            one.vpc_id.as_deref() == Some(vpc) && one.is_default != Some(true)
        };
        let here = found.into_iter().filter(is_here);
        Ok(here.filter_map(|one| one.network_acl_id).collect())
    }
}

/// Nothing, where AWS does not offer what is read: partitions without wavelength zones have no carrier gateways.
pub(super) fn if_offered<T>(read: Result<Vec<T>, AwsError>) -> Result<Vec<T>, AwsError> {
    match read {
        Err(error)
            if ["InvalidAction", "Unsupported", "UnsupportedOperation"].contains(&error.code()) =>
        {
            Ok(Vec::new())
        }
        read => read,
    }
}

/// Nothing, where the credentials may not read it.
pub(super) fn if_permitted<T>(read: Result<Vec<T>, AwsError>) -> Result<Vec<T>, AwsError> {
    match read {
        Err(error)
            if error.refused().is_some_and(|it| classify_read(it) == Refusal::Permission) =>
        {
            Ok(Vec::new())
        }
        read => read,
    }
}
