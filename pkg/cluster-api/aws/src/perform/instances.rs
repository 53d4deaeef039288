//! Bastions and network interfaces.

use aws_network::BastionLaunch;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{
    HttpTokensState, InstanceMetadataOptionsRequest, InstanceNetworkInterfaceSpecification,
    InstanceType, ResourceType,
};

use super::performed::{DONE, Performed, made};
use super::tags::specification;

pub(super) async fn run(ec2: &Client, launch: &BastionLaunch) -> Performed {
    let session_tokens_only =
        InstanceMetadataOptionsRequest::builder().http_tokens(HttpTokensState::Required).build();
    // What the subnet gives its instances may change between the plan and the launch, and an instance
    // without a public address never gets one.
    let interface = InstanceNetworkInterfaceSpecification::builder()
        .device_index(0)
        .subnet_id(&launch.subnet)
        .groups(&launch.group)
        .associate_public_ip_address(true)
        .build();
    let call = ec2
        .run_instances()
        .min_count(1)
        .max_count(1)
        .image_id(&launch.image)
        .instance_type(InstanceType::from(launch.instance_type.as_str()))
        .set_key_name(launch.key.clone())
        .network_interfaces(interface)
        .metadata_options(session_tokens_only)
        .client_token(&launch.token)
        .tag_specifications(specification(ResourceType::Instance, &launch.tags))
        .tag_specifications(specification(ResourceType::Volume, &launch.tags));
    let instance = call.send().await?.instances.unwrap_or_default().into_iter().next();
    made(instance.and_then(|instance| instance.instance_id), "id of the instance")
}

pub(super) async fn terminate(ec2: &Client, instances: &[String]) -> Performed {
    ec2.terminate_instances().set_instance_ids(Some(instances.to_vec())).send().await?;
    DONE
}

pub(super) async fn delete_interface(ec2: &Client, interface: &str) -> Performed {
    ec2.delete_network_interface().network_interface_id(interface).send().await?;
    DONE
}
