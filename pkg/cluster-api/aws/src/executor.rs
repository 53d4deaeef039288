//! [`Executor`]: carries out what a pass of one cluster asks for.

use aws_network::{Action, Identity, Outcome, Query, Reply, Scope, Timestamp};
use resilience::Fence;
use tokio::time::Instant;

use crate::attempts;
use crate::call::Call;
use crate::call_error::CallError;
use crate::describe::Describe;
use crate::gate::Gate;
use crate::limits::{Class, Service};
use crate::perform::perform;
use crate::polls::Asker;
use crate::region::Region;

/// Reads and writes for one cluster.
#[derive(Clone, Debug)]
pub struct Executor {
    region: Region,
    fence: Fence,
    cluster_tag: String,
}

impl Executor {
    /// One that asks `fence` before each write.
    pub fn new(region: Region, identity: &Identity, fence: Fence) -> Self {
        Self { region, fence, cluster_tag: identity.cluster_tag() }
    }

    /// Answers a query as a whole. What does not exist is missing from the reply.
    ///
    /// # Errors
    /// AWS has refused one of the calls, or not answered it.
    pub async fn read(&self, query: &Query) -> Result<Reply, CallError> {
        self.describe().answer(query).await
    }

    /// Answers a query about what takes its time, and tells when the read began. NAT gateways,
    /// which take minutes, are read for all clusters of the region at once
    /// (`rule:clusters-wait-together`).
    ///
    /// # Errors
    /// AWS has refused one of the calls, or not answered it.
    pub(crate) async fn poll(
        &self,
        query: &Query,
        clock: impl Fn() -> Timestamp,
    ) -> Result<(Reply, Timestamp), CallError> {
        let (describe, tag) = (self.describe(), &self.cluster_tag);
        let Query::NatGateways(scope) = query else {
            let began = clock();
            return Ok((self.read(query).await?, began));
        };
        let (polls, filter, value) = match scope {
            Scope::Vpc(id) => (self.region.nats_by_vpc(), "vpc-id", id),
            Scope::Tagged => (self.region.nats_by_tag(), "tag-key", tag),
        };
        let asker = Asker { cluster_tag: tag.clone(), value: value.clone() };
        let fetch = |values| describe.nat_gateways_of(filter, values);
        let (mut found, began) = polls.ask(asker, clock, fetch).await?;
        found.retain(|nat| describe.is_in(scope, &nat.vpc, &nat.tags));
        Ok((Reply::NatGateways(found), began))
    }

    /// Has what was read for others before now not serve this cluster.
    pub(crate) fn has_written(&self, now: Timestamp) {
        self.region.nats_by_vpc().wrote(&self.cluster_tag, now);
        self.region.nats_by_tag().wrote(&self.cluster_tag, now);
    }

    /// The zones of the region that may be used, in order.
    ///
    /// # Errors
    /// AWS has refused the call, or not answered it.
    pub async fn zones(&self) -> Result<Vec<String>, CallError> {
        self.describe().zones().await
    }

    fn describe(&self) -> Describe<'_> {
        Describe { region: &self.region, cluster_tag: &self.cluster_tag }
    }

    /// Carries out a write, unless the fence is closed or `leaves_by` has passed.
    pub async fn write(&self, action: &Action, leaves_by: Instant) -> Outcome {
        let call = call_of(action);
        let sent = attempts::send(&self.region, call, Some(leaves_by), || async {
            let gate = Gate::new(&self.fence, leaves_by);
            let performed = Box::pin(perform(&self.region, &gate, action)).await;
            performed.map_err(|error| as_seen_by(&gate, error))
        });
        match sent.await {
            Ok(answer) => Outcome::Done(answer),
            Err(error) => {
                tracing::debug!(operation = call.operation, %error, "A write to AWS has failed");
                match error {
                    CallError::Refused(refused) => Outcome::Refused(refused),
                    CallError::Unanswered { .. } => Outcome::Unknown,
                    CallError::NotSent { .. } => Outcome::NotSent,
                }
            }
        }
    }
}

/// What the gate did not let pass was not sent, whatever went wrong.
fn as_seen_by(gate: &Gate, error: CallError) -> CallError {
    match error {
        CallError::Unanswered { reason } if !gate.has_passed() => CallError::NotSent { reason },
        error => error,
    }
}

fn call_of(action: &Action) -> Call {
    let service = match action {
        Action::Elb(_) | Action::ElbV2(_) => Service::LoadBalancers,
        _ => Service::Ec2,
    };
    let class = match action {
        Action::RunBastion { .. } => Class::Run,
        _ => Class::Write,
    };
    let (operation, is_repeatable) = (action.operation(), action.is_repeatable());
    Call { service, class, operation, is_repeatable }
}
