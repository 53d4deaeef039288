//! No write names what is not ours: checked on what AWS really has, whatever a read has shown.

use aws_network::{Action, ElbAction, ElbV2Action, Identity, Tags};

use crate::cloud::Cloud;

impl Cloud {
    /// Panics when an action changes or deletes something that this cluster may not touch.
    pub(crate) fn check_owned(&self, identity: &Identity, action: &Action) {
        for id in changed(action) {
            let Some(tags) = self.tags_of(&id) else { continue };
            let is_ours = identity.owns(&tags)
                || identity.is_service_balancer(&tags)
                || self.groups.get(&id).is_some_and(|it| identity.is_service_group(&tags, &it.name))
                // A VPC that has lost its tags gets them back.
                || (id.starts_with("vpc-0") && !tags.contains_key(&identity.owner_tag));
            assert!(is_ours, "{action:?} names {id}, which is not ours: {tags:?}");
        }
    }

    fn tags_of(&self, id: &str) -> Option<Tags> {
        macro_rules! kinds {
            ($($kind:ident)*) => {$(
                if let Some(found) = self.$kind.get(id) {
                    return Some(found.tags.clone());
                }
            )*};
        }
        kinds!(vpcs subnets gateways addresses nats tables groups instances network target_groups);
        if let Some(found) = self.classic.get(id) {
            return found.tags.clone();
        }
        let tables = self.tables.all().into_iter();
        let mut used = tables.filter(|table| table.associations.iter().any(|it| it.id == id));
        used.next().map(|table| table.tags).or_else(|| {
            let balancers = self.network.all().into_iter();
            let mut with = balancers.filter(|it| it.listeners.iter().any(|it| it.arn == id));
            let target = with.next()?.listeners.into_iter().find(|it| it.arn == id)?.target_group;
            self.target_groups.get(&target).map(|group| group.tags.clone())
        })
    }
}

/// What exists and is changed or deleted.
fn changed(action: &Action) -> Vec<String> {
    match action {
        Action::CreateSubnet { vpc, .. }
        | Action::CreateRouteTable { vpc, .. }
        | Action::EnableDnsSupport { vpc }
        | Action::EnableDnsHostnames { vpc }
        | Action::DeleteVpc { vpc } => vec![vpc.clone()],
        Action::SetMapPublicIp { subnet, .. } | Action::DeleteSubnet { subnet } => {
            vec![subnet.clone()]
        }
        Action::AttachInternetGateway { gateway, vpc }
        | Action::DetachInternetGateway { gateway, vpc } => vec![gateway.clone(), vpc.clone()],
        Action::DeleteInternetGateway { gateway } => vec![gateway.clone()],
        Action::CreateNatGateway { allocation, .. } | Action::ReleaseAddress { allocation } => {
            vec![allocation.clone()]
        }
        Action::DeleteNatGateway { nat_gateway } => vec![nat_gateway.clone()],
        Action::CreateRoute { table, .. }
        | Action::ReplaceRoute { table, .. }
        | Action::DeleteRoute { table }
        | Action::AssociateRouteTable { table, .. }
        | Action::DeleteRouteTable { table } => vec![table.clone()],
        Action::ReplaceAssociation { association, table } => {
            vec![association.clone(), table.clone()]
        }
        Action::DisassociateRouteTable { association } => vec![association.clone()],
        Action::AuthorizeIngress { group, .. }
        | Action::RevokeIngress { group, .. }
        | Action::DescribeIngress { group, .. }
        | Action::DeleteSecurityGroup { group } => vec![group.clone()],
        Action::TerminateInstances { instances: all }
        | Action::CreateTags { resources: all, .. }
        | Action::DeleteTags { resources: all, .. } => all.clone(),
        Action::Elb(action) => changed_classic(action),
        Action::ElbV2(action) => changed_network(action),
        _ => Vec::new(),
    }
}

fn changed_classic(action: &ElbAction) -> Vec<String> {
    match action {
        ElbAction::Create { .. } => Vec::new(),
        ElbAction::ConfigureHealthCheck { name, .. }
        | ElbAction::ModifyAttributes { name, .. }
        | ElbAction::AttachSubnets { name, .. }
        | ElbAction::DetachSubnets { name, .. }
        | ElbAction::ApplyGroups { name, .. }
        | ElbAction::CreateListeners { name, .. }
        | ElbAction::DeleteListeners { name, .. }
        | ElbAction::AddTags { name, .. }
        | ElbAction::RemoveTags { name, .. }
        | ElbAction::Delete { name } => vec![name.clone()],
    }
}

fn changed_network(action: &ElbV2Action) -> Vec<String> {
    match action {
        ElbV2Action::Create { .. } | ElbV2Action::CreateTargetGroup { .. } => Vec::new(),
        ElbV2Action::SetCrossZone { load_balancer, .. }
        | ElbV2Action::SetSubnets { load_balancer, .. }
        | ElbV2Action::SetGroups { load_balancer, .. }
        | ElbV2Action::Delete { load_balancer } => vec![load_balancer.clone()],
        ElbV2Action::CreateListener { load_balancer, target_group, .. } => {
            vec![load_balancer.clone(), target_group.clone()]
        }
        ElbV2Action::ConfigureHealthCheck { target_group, .. }
        | ElbV2Action::SetPreserveClientIp { target_group, .. }
        | ElbV2Action::DeleteTargetGroup { target_group } => vec![target_group.clone()],
        ElbV2Action::DeleteListener { listener } => vec![listener.clone()],
        ElbV2Action::AddTags { arns, .. } | ElbV2Action::RemoveTags { arns, .. } => arns.clone(),
    }
}
