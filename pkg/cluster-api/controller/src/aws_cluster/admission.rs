//! In which account AWS is called for an AWSCluster: the one in which its cluster was made, and no
//! other (`rule:an-awscluster-stays-in-its-account`).

use std::sync::Arc;

use aws::{AwsError, Executor, Region};
use aws_network::{Identity, LogicalId, Query, Reply};
use objects::{Error, Object};
use resilience::Fence;

use super::aws_clusters::AwsClusters;
use super::report::{Denial, denial};
use super::stored_memory;
use crate::api::ACCOUNT_ANNOTATION;
use crate::api::aws_cluster::AwsCluster;

const WRONG_ACCOUNT: &str = "WrongAccount";
const UNKNOWN: &str = "AccountUnknown";

/// AWS, as far as it may be called for an AWSCluster.
#[derive(Debug)]
pub(super) struct Access {
    region: Region,
    fence: Fence,
    /// Why AWS is read only, if it is.
    pub(super) doubt: Option<Denial>,
}

/// Whether AWS may be called.
#[derive(Debug)]
pub(super) enum Admission {
    Granted(Access),
    Denied(Denial),
    /// The account was written into the object, whose watch leads on.
    Noted,
}

impl Access {
    /// The client that calls AWS for this cluster.
    pub(super) fn executor(&self, identity: &Identity) -> Executor {
        Executor::new(self.region.clone(), identity, self.fence.clone())
    }
}

impl AwsClusters {
    /// Finds out whether AWS may be called, and notes the account before anything is made in it.
    pub(super) async fn admission(
        &self,
        object: &Arc<Object<AwsCluster>>,
    ) -> Result<Admission, Error> {
        let metadata = &object.metadata;
        let noted = metadata.annotations.get(ACCOUNT_ANNOTATION);
        let region = &object.body.spec.region;
        let credentials = match self.identities.account(object).await {
            Ok(credentials) => credentials,
            Err(denial) => return Ok(Admission::Denied(denial)),
        };
        let caller = credentials.caller(region, noted.map(String::as_str)).await;
        let account = match (caller, noted) {
            (Ok(account), _) => account,
            (Err(error), _) => {
                if let Some(denial) = denial(&error) {
                    return Ok(Admission::Denied(denial));
                }
                let message = format!("cannot find the account of the credentials: {error}");
                let doubt = Some(Denial::new(UNKNOWN, message));
                let region = credentials.region(region);
                return Ok(Admission::Granted(Access { region, fence: Fence::closed(), doubt }));
            }
        };
        let region = credentials.region_of(region, &account);
        let granted = || {
            let (region, fence) = (region.clone(), self.fence.clone());
            Admission::Granted(Access { region, fence, doubt: None })
        };
        match noted {
            Some(noted) if *noted == account => return Ok(granted()),
            Some(noted) => {
                let message = format!(
                    "the credentials belong to account {account}, but the cluster is in account \
                     {noted}"
                );
                return Ok(Admission::Denied(Denial::new(WRONG_ACCOUNT, message)));
            }
            None => {}
        }
        let is_missing = match recorded_vpc(object) {
            None => None,
            Some(vpc) => match self.shows(&region, &vpc).await {
                Ok(is_shown) => Some(vpc).filter(|_| !is_shown),
                Err(error) => {
                    let message = format!("cannot look for {vpc} of the cluster: {error}");
                    return Ok(Admission::Denied(Denial::new(UNKNOWN, message)));
                }
            },
        };
        if let Some(vpc) = is_missing {
            let message = format!(
                "the credentials belong to account {account}, which has no {vpc} of the cluster; \
                 set the annotation {ACCOUNT_ANNOTATION} to the account of the cluster"
            );
            return Ok(Admission::Denied(Denial::new(WRONG_ACCOUNT, message)));
        }
        if self.options.plan_only {
            return Ok(granted());
        }
        let written = self.client.change(object, |_, draft| {
            let annotations = &mut draft.metadata.annotations;
            annotations.entry(ACCOUNT_ANNOTATION.to_owned()).or_insert_with(|| account.clone());
        });
        written.await?;
        Ok(Admission::Noted)
    }

    /// Whether an account has a VPC. Ids are unique in all of AWS.
    async fn shows(&self, region: &Region, vpc: &str) -> Result<bool, AwsError> {
        let no_owner = Identity {
            cluster: String::new(),
            owner_id: String::new(),
            owner_tag: self.options.owner_tag_key.clone(),
            adopt: false,
        };
        let executor = Executor::new(region.clone(), &no_owner, Fence::closed());
        let read = executor.read(&Query::Vpc(vpc.to_owned())).await?;
        Ok(matches!(read, Reply::Vpcs(found) if !found.is_empty()))
    }
}

/// The VPC that an object says it has which an earlier release, or upstream, has made ready.
fn recorded_vpc(object: &Object<AwsCluster>) -> Option<String> {
    let memory = stored_memory::read(object);
    let published = object.status.resources.as_ref().and_then(|it| it.vpc.as_ref());
    let recorded = memory.id(&LogicalId::Vpc).map(str::to_owned);
    let named = || object.body.spec.network()?.vpc.as_ref()?.id.clone();
    let was_ready = object.status.was_ready();
    let found = recorded.or_else(|| published.map(|vpc| vpc.id.clone()));
    found.or_else(|| named().filter(|_| was_ready)).filter(|id| !id.is_empty())
}
