//! What carries the tag of the cluster and is not ours. A deletion leaves it, and does not end
//! silently over it (`rule:a-deletion-names-what-it-leaves`).

use crate::identity::Tags;
use crate::plan::Other;
use crate::resources::InstanceState;

use super::ending::Ending;

pub(super) fn seen(ending: &Ending<'_>) -> Vec<Other> {
    let seen = ending.observed;
    let mut others = Vec::new();
    let mut take = |id: &str, tags: &Tags| {
        let identity = &ending.removal.identity;
        if identity.is_of_cluster(tags) && !ending.is_ours(tags, id) {
            let owner_id = tags.get(&identity.owner_tag).cloned();
            others.push(Other { id: id.to_owned(), owner_id });
        }
    };
    seen.vpcs.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.subnets.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.internet_gateways.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.addresses.all().iter().for_each(|found| take(&found.id, &found.tags));
    let nats = seen.nat_gateways.all().iter().filter(|found| !found.is_gone());
    nats.for_each(|found| take(&found.id, &found.tags));
    seen.route_tables.all().iter().for_each(|found| take(&found.id, &found.tags));
    let named = &ending.removal.named_groups;
    let groups = seen.security_groups.all().iter().filter(|found| !named.contains(&found.id));
    groups.for_each(|found| take(&found.id, &found.tags));
    let instances = seen.bastions.all().iter();
    let live = instances.filter(|found| found.state != InstanceState::Terminated);
    live.for_each(|found| take(&found.id, &found.tags));
    for found in seen.classic.all() {
        found.tags.iter().for_each(|tags| take(&found.name, tags));
    }
    seen.network.all().iter().for_each(|found| take(&found.arn, &found.tags));
    seen.target_groups.all().iter().for_each(|found| take(&found.arn, &found.tags));
    others
}
