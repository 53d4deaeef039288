//! Classic load balancers.

use aws_network::{
    Answer, ClassicAttributes, ClassicListener, ElbAction, HealthCheck, Scheme, Tags,
};
use aws_sdk_elasticloadbalancing::Client;
use aws_sdk_elasticloadbalancing::types::{
    self, ConnectionSettings, CrossZoneLoadBalancing, Listener, LoadBalancerAttributes, Tag,
    TagKeyOnly,
};

use super::{Performed, done, unbuildable};
use crate::call::AwsError;

pub(crate) async fn perform(elb: &Client, action: &ElbAction) -> Performed {
    match action {
        ElbAction::Create { name, scheme, listeners, subnets, groups, tags, .. } => {
            // AWS takes the word only where it differs from what it does without it.
            let scheme = (*scheme == Scheme::Internal).then(|| "internal".to_owned());
            let call = elb
                .create_load_balancer()
                .load_balancer_name(name)
                .set_scheme(scheme)
                .set_listeners(Some(all(listeners)?))
                .set_subnets(Some(subnets.clone()))
                .set_security_groups(Some(groups.clone()))
                .set_tags(Some(tag_list(tags)?));
            let dns_name = call.send().await?.dns_name;
            Ok(Answer { id: name.clone(), address: None, dns_name })
        }
        ElbAction::ConfigureHealthCheck { name, check } => {
            let call = elb.configure_health_check().load_balancer_name(name);
            done(call.health_check(health_check(check)?).send().await)
        }
        ElbAction::ModifyAttributes { name, attributes: wanted } => {
            let call = elb.modify_load_balancer_attributes().load_balancer_name(name);
            done(call.load_balancer_attributes(attributes(wanted)?).send().await)
        }
        ElbAction::AttachSubnets { name, subnets } => {
            let call = elb.attach_load_balancer_to_subnets().load_balancer_name(name);
            done(call.set_subnets(Some(subnets.clone())).send().await)
        }
        ElbAction::DetachSubnets { name, subnets } => {
            let call = elb.detach_load_balancer_from_subnets().load_balancer_name(name);
            done(call.set_subnets(Some(subnets.clone())).send().await)
        }
        ElbAction::ApplyGroups { name, groups } => {
            let call = elb.apply_security_groups_to_load_balancer().load_balancer_name(name);
            done(call.set_security_groups(Some(groups.clone())).send().await)
        }
        ElbAction::CreateListeners { name, listeners } => {
            let call = elb.create_load_balancer_listeners().load_balancer_name(name);
            done(call.set_listeners(Some(all(listeners)?)).send().await)
        }
        ElbAction::DeleteListeners { name, ports } => {
            let ports = ports.iter().copied().map(i32::from).collect();
            let call = elb.delete_load_balancer_listeners().load_balancer_name(name);
            done(call.set_load_balancer_ports(Some(ports)).send().await)
        }
        ElbAction::AddTags { name, tags } => {
            let call = elb.add_tags().load_balancer_names(name);
            done(call.set_tags(Some(tag_list(tags)?)).send().await)
        }
        ElbAction::RemoveTags { name, keys } => {
            let keys = keys.iter().map(|key| TagKeyOnly::builder().key(key).build()).collect();
            done(elb.remove_tags().load_balancer_names(name).set_tags(Some(keys)).send().await)
        }
        ElbAction::Delete { name } => {
            done(elb.delete_load_balancer().load_balancer_name(name).send().await)
        }
    }
}

fn all(listeners: &[ClassicListener]) -> Result<Vec<Listener>, AwsError> {
    let one = |listener: &ClassicListener| {
        Listener::builder()
            .protocol("TCP")
            .load_balancer_port(i32::from(listener.port))
            .instance_protocol("TCP")
            .instance_port(i32::from(listener.instance_port))
            .build()
    };
    listeners.iter().map(one).collect::<Result<_, _>>().map_err(unbuildable)
}

fn tag_list(tags: &Tags) -> Result<Vec<Tag>, AwsError> {
    let one = |(key, value): (&String, &String)| Tag::builder().key(key).value(value).build();
    tags.iter().map(one).collect::<Result<_, _>>().map_err(unbuildable)
}

fn attributes(wanted: &ClassicAttributes) -> Result<LoadBalancerAttributes, AwsError> {
    let idle = i32::try_from(wanted.idle_timeout).map_err(unbuildable)?;
    let connections =
        ConnectionSettings::builder().idle_timeout(idle).build().map_err(unbuildable)?;
    let cross_zone = CrossZoneLoadBalancing::builder().enabled(wanted.cross_zone).build();
    let builder = LoadBalancerAttributes::builder().connection_settings(connections);
    Ok(builder.cross_zone_load_balancing(cross_zone).build())
}

fn health_check(check: &HealthCheck) -> Result<types::HealthCheck, AwsError> {
    let number = |value: u32| i32::try_from(value).map_err(unbuildable);
    let path = check.path.as_deref().unwrap_or_default();
    let check = types::HealthCheck::builder()
        .target(format!("{}:{}{path}", check.protocol, check.port))
        .interval(number(check.interval)?)
        .timeout(number(check.timeout)?)
        .healthy_threshold(number(check.healthy)?)
        .unhealthy_threshold(number(check.unhealthy)?);
    check.build().map_err(unbuildable)
}
