//! [`Describe`]: queries answered by describe calls, all pages of them. Of what is not the
//! cluster's little is needed, so an unusual shape of it is no error (`answers.rs`). Filters that
//! AWS applies are applied again on our side.

use aws_network::{AwsResource, Query, Reply, Scope, Tags};
use aws_sdk_ec2::types::Filter;

use crate::call::AwsError;
use crate::region::Region;

mod answers;
mod classic;
mod gateways;
mod groups;
mod instances;
mod marked;
mod network_balancers;
mod swept;
mod vpcs;

pub use marked::Marked;

/// Results in one page of EC2. AWS allows fewer of some kinds (`gateways.rs`).
const PAGE: i32 = 1000;

/// The describe calls for one cluster.
#[derive(Clone, Copy)]
pub(crate) struct Describe<'a> {
    pub(crate) region: &'a Region,
    pub(crate) cluster_tag: &'a str,
}

impl Describe<'_> {
    pub(crate) async fn answer(self, query: &Query) -> Result<Reply, AwsError> {
        Ok(match query {
            Query::TaggedVpcs => {
                Reply::Vpcs(self.within(&Scope::Tagged, self.vpcs_where(self.tag_filter()).await?))
            }
            Query::Vpc(id) => {
                // By filter and not by id, for an id that does not exist would be an error.
                let scope = &Scope::Vpc(id.clone());
                Reply::Vpcs(self.within(scope, self.vpcs_where(self.filter(scope)).await?))
            }
            Query::VpcAttributes(id) => self.vpc_attributes(id).await?,
            Query::Subnets(scope) => {
                Reply::Subnets(self.within(scope, self.subnets(self.filter(scope)).await?))
            }
            Query::InternetGateways(scope) => {
                let filter = match scope {
                    Scope::Tagged => self.tag_filter(),
                    Scope::Vpc(id) => filter("attachment.vpc-id", id),
                };
                Reply::InternetGateways(self.within(scope, self.internet_gateways(filter).await?))
            }
            Query::EgressOnlyGateways(scope) => {
                let filter = (*scope == Scope::Tagged).then(|| self.tag_filter());
                let found = self.egress_only_gateways(filter).await?;
                Reply::EgressOnlyGateways(self.within(scope, found))
            }
            Query::CarrierGateways(scope) => {
                let found = self.carrier_gateways(self.filter(scope)).await?;
                Reply::CarrierGateways(self.within(scope, found))
            }
            Query::Addresses => {
                let found = self.addresses(self.tag_filter()).await?;
                Reply::Addresses(self.within(&Scope::Tagged, found))
            }
            Query::NatGateways(scope) => {
                Reply::NatGateways(self.within(scope, self.nat_gateways(self.filter(scope)).await?))
            }
            Query::RouteTables(scope) => {
                Reply::RouteTables(self.within(scope, self.route_tables(self.filter(scope)).await?))
            }
            Query::SecurityGroups(scope) => {
                let found = self.security_groups(self.filter(scope)).await?;
                Reply::SecurityGroups(self.within(scope, found))
            }
            Query::Bastions(recorded) => Reply::Bastions(self.bastions(recorded.as_deref()).await?),
            Query::BastionImage => Reply::BastionImage(self.bastion_image().await?),
            Query::ClassicLoadBalancers(lookup) => {
                Reply::ClassicLoadBalancers(self.classic(lookup).await?)
            }
            Query::ClassicAttributes(name) => self.classic_attributes(name).await?,
            Query::ClassicTags(names) => Reply::ClassicTags(self.classic_tags(names).await?),
            Query::NetworkLoadBalancers(lookup) => self.network_balancers(lookup).await?,
            Query::NetworkAttributes { load_balancer, target_groups } => {
                self.network_attributes(load_balancer, target_groups).await?
            }
            Query::Residents(vpc) => Reply::Residents(self.residents(vpc).await?),
            Query::NetworkInterfaces(vpc) => Reply::NetworkInterfaces(self.interfaces(vpc).await?),
        })
    }

    /// A filter of EC2 for what lies in a scope.
    fn filter(self, scope: &Scope) -> Filter {
        match scope {
            Scope::Tagged => self.tag_filter(),
            Scope::Vpc(id) => filter("vpc-id", id),
        }
    }

    fn tag_filter(self) -> Filter {
        filter(&format!("tag:{}", self.cluster_tag), "owned")
    }

    fn is_tagged(self, tags: &Tags) -> bool {
        tags.get(self.cluster_tag).is_some_and(|value| value == "owned")
    }

    /// The resources that lie in a scope.
    pub(crate) fn within<T: AwsResource>(self, scope: &Scope, mut found: Vec<T>) -> Vec<T> {
        found.retain(|one| self.is_within(scope, one));
        found
    }

    /// Copies of the resources that lie in a scope.
    pub(crate) fn among<T: AwsResource + Clone>(self, scope: &Scope, found: &[T]) -> Vec<T> {
        found.iter().filter(|one| self.is_within(scope, *one)).cloned().collect()
    }

    fn is_within(self, scope: &Scope, one: &impl AwsResource) -> bool {
        match scope {
            Scope::Tagged => one.known_tags().is_some_and(|tags| self.is_tagged(tags)),
            Scope::Vpc(id) => one.vpc() == Some(id),
        }
    }
}

fn filter(name: &str, value: &str) -> Filter {
    filter_of(name, vec![value.to_owned()])
}

/// A filter for one of several values.
pub(crate) fn filter_of(name: &str, values: Vec<String>) -> Filter {
    Filter::builder().name(name).set_values(Some(values)).build()
}

/// A required field of an answer (`rule:only-ours-spoils-an-answer`).
fn required<T>(value: Option<T>, what: &'static str) -> Result<T, AwsError> {
    value.ok_or_else(|| AwsError::without(what))
}

/// A text of an answer in its own form.
fn parsed<T: std::str::FromStr>(text: Option<&str>, what: &'static str) -> Result<T, AwsError> {
    text.and_then(|text| text.parse().ok()).ok_or_else(|| AwsError::without(what))
}
