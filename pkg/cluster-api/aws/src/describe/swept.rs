//! Queries of clusters at rest, answered from a sweep: each kind of resource is read at once for all of
//! them, by their VPCs or for every cluster tag of the region, and filtered on our side as a read of one
//! cluster is. So a cluster sees what its own reads would show. Each cluster reads two things for itself
//! at its deep check: attributes, and the listeners and tags of load balancers; those of an adopted classic
//! load balancer at each look.

use aws_network::{
    ANY_CLUSTER_TAG, AwsResource, ClassicLoadBalancer, Instance, Observed, Query, Reply, Scope,
    Timestamp,
};
use aws_sdk_ec2::types::Filter;

use super::instances::bastion_filter;
use super::{Describe, filter, filter_of};
use crate::call::AwsError;
use crate::polls::{Asker, Found, Polls};

/// The answer to a query and when its read began; none where a sweep does not answer it.
type Swept = Result<Option<(Reply, Timestamp)>, AwsError>;

impl Describe<'_> {
    /// Whether a sweep would serve other clusters, too. Otherwise it costs more than it saves.
    pub(crate) fn shares_sweeps(self) -> bool {
        self.region.sweep().subnets.askers() > 1
    }

    /// Has the next sweep read what a cluster reads for itself now.
    pub(crate) fn note(self, query: &Query, now: Timestamp) {
        let sweep = self.region.sweep();
        let (tag, of) =
            (self.asker(&Scope::Tagged), |id: &String| self.asker(&Scope::Vpc(id.clone())));
        match query {
            Query::TaggedVpcs => sweep.tagged_vpcs.note(tag, now),
            Query::Vpc(id) => sweep.vpcs.note(of(id), now),
            Query::Subnets(Scope::Vpc(id)) => sweep.subnets.note(of(id), now),
            Query::InternetGateways(Scope::Tagged) => sweep.gateways.note(tag, now),
            Query::InternetGateways(Scope::Vpc(id)) => sweep.attached_gateways.note(of(id), now),
            Query::EgressOnlyGateways(scope) => {
                sweep.egress_only_gateways.note(self.asker(scope), now);
            }
            Query::CarrierGateways(Scope::Vpc(id)) => sweep.carrier_gateways.note(of(id), now),
            Query::Addresses => sweep.addresses.note(tag, now),
            Query::NatGateways(Scope::Vpc(id)) => sweep.nat_gateways.note(of(id), now),
            Query::RouteTables(Scope::Vpc(id)) => sweep.route_tables.note(of(id), now),
            Query::SecurityGroups(Scope::Vpc(id)) => sweep.security_groups.note(of(id), now),
            Query::Bastions(_) => sweep.bastions.note(tag, now),
            Query::ClassicLoadBalancers(_) => sweep.classic.note(tag, now),
            Query::NetworkLoadBalancers(_) => {
                sweep.network.note(tag.clone(), now);
                sweep.target_groups.note(tag, now);
            }
            _ => {}
        }
    }

    /// Answers a query from a sweep. `earlier` is what the last pass saw of network load balancers;
    /// none at a deep check, which reads them.
    pub(crate) async fn swept(
        self,
        query: &Query,
        earlier: Option<&Observed>,
        clock: impl Fn() -> Timestamp,
    ) -> Swept {
        let (sweep, tagged) = (self.region.sweep(), &Scope::Tagged);
        // Nobody's: what a resource of one cluster lacks does not fail the sweep of all, but for its VPC
        // (`rule:only-ours-spoils-an-answer`). It differs, so the cluster reads it for itself.
        let all = Describe { cluster_tag: "", ..self };
        macro_rules! of_scope {
            ($reply:ident, $polls:ident, $scope:expr, $read:expr) => {
                self.of_scope(&sweep.$polls, $scope, "vpc-id", $read, clock)
                    .await
                    .map(|found| found.map(|(found, began)| (Reply::$reply(found), began)))
            };
        }
        match query {
            Query::TaggedVpcs => of_scope!(Vpcs, tagged_vpcs, tagged, |it| all.vpcs_where(it)),
            Query::Vpc(id) => {
                of_scope!(Vpcs, vpcs, &Scope::Vpc(id.clone()), |it| all.vpcs_where(it))
            }
            Query::Subnets(scope @ Scope::Vpc(_)) => {
                of_scope!(Subnets, subnets, scope, |it| all.subnets(it))
            }
            Query::InternetGateways(Scope::Tagged) => {
                of_scope!(InternetGateways, gateways, tagged, |it| all.internet_gateways(it))
            }
            Query::InternetGateways(scope) => {
                let read = |it| all.internet_gateways(it);
                let polls = &sweep.attached_gateways;
                let found = self.of_scope(polls, scope, "attachment.vpc-id", read, clock).await?;
                Ok(found.map(|(found, began)| (Reply::InternetGateways(found), began)))
            }
            Query::EgressOnlyGateways(scope) => {
                // No filter selects those of a VPC.
                let read = |_| all.egress_only_gateways(None);
                of_scope!(EgressOnlyGateways, egress_only_gateways, scope, read)
            }
            Query::CarrierGateways(scope @ Scope::Vpc(_)) => {
                of_scope!(CarrierGateways, carrier_gateways, scope, |it| all.carrier_gateways(it))
            }
            Query::Addresses => of_scope!(Addresses, addresses, tagged, |it| all.addresses(it)),
            Query::NatGateways(scope @ Scope::Vpc(_)) => {
                of_scope!(NatGateways, nat_gateways, scope, |it| all.nat_gateways(it))
            }
            Query::RouteTables(scope @ Scope::Vpc(_)) => {
                of_scope!(RouteTables, route_tables, scope, |it| all.route_tables(it))
            }
            Query::SecurityGroups(scope @ Scope::Vpc(_)) => {
                of_scope!(SecurityGroups, security_groups, scope, |it| all.security_groups(it))
            }
            Query::Bastions(recorded) => {
                let read = |it| all.instances_where(vec![it, bastion_filter()]);
                let found = self.of_scope(&sweep.bastions, tagged, "", read, clock).await?;
                let is_whole = |found: &[Instance]| {
                    recorded.iter().all(|id| found.iter().any(|instance| instance.id == *id))
                };
                // One that has lost its role is found by its id.
                Ok(found
                    .filter(|(found, _)| is_whole(found))
                    .map(|(found, began)| (Reply::Bastions(found), began)))
            }
            Query::ClassicLoadBalancers(lookup) => {
                let found = sweep.classic.share(self.asker(tagged), clock, |_| all.all_classic());
                let meant = |it: &&ClassicLoadBalancer| lookup.names.contains(&it.name);
                let is_by_name = lookup.vpc.is_none();
                Ok(found.await?.filter(|_| is_by_name).map(|(found, began)| {
                    let found = found.iter().filter(meant).cloned().collect();
                    (Reply::ClassicLoadBalancers(found), began)
                }))
            }
            Query::NetworkLoadBalancers(lookup) => {
                let Some(earlier) = earlier.filter(|_| lookup.vpc.is_none()) else {
                    return Ok(None);
                };
                let asker = || self.asker(tagged);
                let found = sweep.network.share(asker(), &clock, |_| all.all_network()).await?;
                let groups =
                    sweep.target_groups.share(asker(), &clock, |_| all.all_target_groups());
                let (Some((found, began)), Some((groups, later))) = (found, groups.await?) else {
                    return Ok(None);
                };
                let reply = earlier.completed(&lookup.names, &found, &groups);
                Ok(reply.map(|reply| (reply, began.min(later))))
            }
            _ => Ok(None),
        }
    }

    /// What lies in a scope, read for all scopes of that kind at once.
    async fn of_scope<T, F>(
        self,
        polls: &Polls<T>,
        scope: &Scope,
        of_vpc: &str,
        read: impl Fn(Filter) -> F,
        clock: impl Fn() -> Timestamp,
    ) -> Result<Option<(Vec<T>, Timestamp)>, AwsError>
    where
        T: AwsResource + Clone,
        F: Future<Output = Result<Vec<T>, AwsError>>,
    {
        let fetch = |values| {
            read(match scope {
                Scope::Tagged => filter("tag-key", ANY_CLUSTER_TAG),
                Scope::Vpc(_) => filter_of(of_vpc, values),
            })
        };
        let found: Option<Found<T>> = polls.share(self.asker(scope), clock, fetch).await?;
        Ok(found.map(|(found, began)| (self.among(scope, &found), began)))
    }

    fn asker(self, scope: &Scope) -> Asker {
        let cluster_tag = self.cluster_tag.to_owned();
        let value = match scope {
            Scope::Tagged => cluster_tag.clone(),
            Scope::Vpc(id) => id.clone(),
        };
        Asker { cluster_tag, value }
    }
}
