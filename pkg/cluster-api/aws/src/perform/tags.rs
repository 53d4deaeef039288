//! Tags of resources of EC2.

use aws_network::Tags;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};

use super::performed::{DONE, Performed};

/// The tags of a resource that is being created.
pub(super) fn specification(kind: ResourceType, tags: &Tags) -> TagSpecification {
    TagSpecification::builder().resource_type(kind).set_tags(Some(list(tags))).build()
}

fn list(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

pub(super) async fn create(ec2: &Client, resources: &[String], tags: &Tags) -> Performed {
    let call = ec2.create_tags().set_resources(Some(resources.to_vec()));
    call.set_tags(Some(list(tags))).send().await?;
    DONE
}

pub(super) async fn delete(ec2: &Client, resources: &[String], keys: &[String]) -> Performed {
    let keys = keys.iter().map(|key| Tag::builder().key(key).build()).collect();
    let call = ec2.delete_tags().set_resources(Some(resources.to_vec()));
    call.set_tags(Some(keys)).send().await?;
    DONE
}
