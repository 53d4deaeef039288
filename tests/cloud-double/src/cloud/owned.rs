//! Checks every write against the resources that AWS really has: none names a resource of others.

use aws_network::{Action, Identity, Tags};

use super::Cloud;

impl Cloud {
    /// What an action changes or deletes that this cluster may not touch, if it does.
    pub fn touched_of_others(&self, identity: &Identity, action: &Action) -> Option<String> {
        let mut named = action.changes().into_iter();
        named.find_map(|id| {
            let tags = self.tags_of(id)?;
            let is_ours = identity.owns(&tags)
                || identity.is_service_balancer(&tags)
                || self.groups.get(id).is_some_and(|it| identity.is_service_group(&tags, &it.name))
                // A VPC that has lost its tags gets them back.
                || (id.starts_with("vpc-0") && !tags.contains_key(&identity.owner_tag));
            (!is_ours).then(|| format!("{action:?} names {id}, which is not ours: {tags:?}"))
        })
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
