//! Bastions, the image for them, and network interfaces.

use aws_network::{Instance, InstanceState, NetworkInterface, ROLE_TAG, Role};
use aws_sdk_ec2::types::{self, Filter, InstanceStateName, NetworkInterfaceStatus};

use crate::call::Call;
use crate::call_error::CallError;

use super::flaws::Flaws;
use super::pages::pages;
use super::{Describe, PAGE, filter, tags};

/// Canonical, by the beginning of the region's name.
const IMAGE_OWNERS: [(&str, &str); 3] =
    [("us-gov-", "513442679011"), ("cn-", "837727238323"), ("", "099720109477")];

impl Describe<'_> {
    pub(super) async fn bastions(self, recorded: Option<&str>) -> Result<Vec<Instance>, CallError> {
        let bastion = Role::Bastion.as_str();
        let role = filter(&format!("tag:{ROLE_TAG}"), bastion);
        let mut found = self.instances_where(vec![self.tag_filter(), role]).await?;
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
    ) -> Result<Vec<Instance>, CallError> {
        let request =
            self.region.ec2().describe_instances().set_filters(Some(filters)).max_results(PAGE);
        let reservations = pages(
            self.region,
            Call::ec2_read("DescribeInstances"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.reservations, page.next_token),
        );
        let instances = reservations.await?.into_iter().filter_map(|one| one.instances);
        self.admit(instances.flatten().map(instance), |instance| &instance.tags)
    }

    /// The newest of Canonical's Ubuntu 24.04.
    pub(super) async fn bastion_image(self) -> Result<Option<String>, CallError> {
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
        let found = pages(
            self.region,
            Call::ec2_read("DescribeImages"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.images, page.next_token),
        );
        let newest = found.await?.into_iter().max_by_key(|image| image.creation_date.clone());
        Ok(newest.and_then(|image| image.image_id))
    }

    pub(super) async fn interfaces(self, vpc: &str) -> Result<Vec<NetworkInterface>, CallError> {
        let request = self
            .region
            .ec2()
            .describe_network_interfaces()
            .filters(filter("vpc-id", vpc))
            .max_results(PAGE);
        let found = pages(
            self.region,
            Call::ec2_read("DescribeNetworkInterfaces"),
            |token| request.clone().set_next_token(token).send(),
            |page| (page.network_interfaces, page.next_token),
        );
        let found = found.await?.into_iter();
        Ok(found.filter(|one| one.vpc_id.as_deref() == Some(vpc)).filter_map(interface).collect())
    }
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
        tags: tags::of_ec2(instance.tags),
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
