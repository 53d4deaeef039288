//! Writes to tags, folded. One call may name resources of any kind.

use crate::identity::Tags;
use crate::observed::Observed;

pub(super) fn add(seen: &mut Observed, resources: &[String], tags: &Tags) {
    edit(seen, resources, &|found| {
        found.extend(tags.iter().map(|(key, value)| (key.clone(), value.clone())));
    });
}

pub(super) fn remove(seen: &mut Observed, resources: &[String], keys: &[String]) {
    edit(seen, resources, &|found| found.retain(|key, _| !keys.contains(key)));
}

fn edit(seen: &mut Observed, ids: &[String], change: &dyn Fn(&mut Tags)) {
    macro_rules! kinds {
        ($($kind:ident)*) => {$(
            if seen.$kind.all().iter().any(|found| ids.contains(&found.id)) {
                seen.$kind.edit_where(|found| ids.contains(&found.id), |found| change(&mut found.tags));
            }
        )*};
    }
    kinds!(vpcs subnets internet_gateways addresses nat_gateways route_tables security_groups bastions);
}
