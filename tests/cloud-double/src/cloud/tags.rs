//! Tags of EC2.

use aws_network::Tags;

use super::ec2::DONE;
use super::{Called, Cloud};

impl Cloud {
    pub(super) fn create_tags(&mut self, ids: &[String], tags: &Tags) -> Called {
        self.edit_tags(ids, &|found| found.extend(tags.clone()))
    }

    pub(super) fn delete_tags(&mut self, ids: &[String], keys: &[String]) -> Called {
        self.edit_tags(ids, &|found| found.retain(|key, _| !keys.contains(key)))
    }

    fn edit_tags(&mut self, ids: &[String], change: &dyn Fn(&mut Tags)) -> Called {
        let now = self.now;
        macro_rules! kinds {
            ($id:ident: $($kind:ident)*) => {
                [$(self.$kind.get($id).is_some()),*].contains(&true)
            };
        }
        for id in ids {
            if !kinds!(id: vpcs subnets gateways egress_only carriers addresses nats tables groups instances)
            {
                return Err("InvalidID.NotFound");
            }
        }
        for id in ids {
            macro_rules! edit {
                ($($kind:ident)*) => {$(self.$kind.edit(id, now, |found| change(&mut found.tags));)*};
            }
            edit!(vpcs subnets gateways egress_only carriers addresses nats tables groups instances);
        }
        DONE
    }
}
