//! Tags as each of the three SDKs has them.

use aws_network::Tags;

pub(super) fn of_ec2(tags: Option<Vec<aws_sdk_ec2::types::Tag>>) -> Tags {
    let pair = |tag: aws_sdk_ec2::types::Tag| Some((tag.key?, tag.value.unwrap_or_default()));
    tags.unwrap_or_default().into_iter().filter_map(pair).collect()
}

pub(super) fn of_elb(tags: Option<Vec<aws_sdk_elasticloadbalancing::types::Tag>>) -> Tags {
    let pair =
        |tag: aws_sdk_elasticloadbalancing::types::Tag| (tag.key, tag.value.unwrap_or_default());
    tags.unwrap_or_default().into_iter().map(pair).collect()
}

pub(super) fn of_elbv2(tags: Option<Vec<aws_sdk_elasticloadbalancingv2::types::Tag>>) -> Tags {
    let pair = |tag: aws_sdk_elasticloadbalancingv2::types::Tag| {
        Some((tag.key?, tag.value.unwrap_or_default()))
    };
    tags.unwrap_or_default().into_iter().filter_map(pair).collect()
}
