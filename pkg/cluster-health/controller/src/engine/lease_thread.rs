//! [`LeaseThread`]: the thread on which a replica renews its lease, with its own runtime and its own
//! connection.

use std::sync::Arc;
use std::{io, thread};

use client::{Clients, Profile};
use election::{ReplicaGroup, ReplicaLeases};
use health::{LEADER, hash};
use manager::{Context, Failure};
use resilience::panics::contain_call;
use resilience::task;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument as _, Span, error};

use super::cluster_registry::ClusterRegistry;
use super::ownership::Share;
use super::shard_coordinator::{ShardCoordinator, group};

/// A thread that renews. Dropped, it ends and leaves the lease to run out.
pub(crate) struct LeaseThread {
    stop: DropGuard,
    release: oneshot::Sender<()>,
    /// Closed when the thread has ended.
    ended: oneshot::Receiver<()>,
}

impl LeaseThread {
    /// Starts to renew the lease of this replica, and to share the clusters out.
    ///
    /// # Errors
    /// There is no thread to be had, or the client cannot be built.
    pub(crate) async fn start(
        context: &Context,
        share: &Arc<Share>,
        clusters: &Arc<ClusterRegistry>,
    ) -> Result<Self, Failure> {
        let (stop, (release, released)) = (CancellationToken::new(), oneshot::channel());
        let ((running, ended), (began, outcome)) = (oneshot::channel(), oneshot::channel());
        let (clients, until) = (context.clients.factory().clone(), stop.clone());
        let (group, name) = (group(&share.namespace), share.name.clone());
        let (share, clusters, span) = (Arc::clone(share), Arc::clone(clusters), Span::current());
        let renewing = async move |leases| {
            let mut share_out = ShardCoordinator::new(leases, share, clusters);
            share_out.run(&until).await;
            if released.await.is_ok() {
                share_out.release().await;
            }
        };
        if resilience::is_simulated() {
            let leases = leases(&clients, group, name)?;
            tokio::spawn(task(async move {
                let _running: oneshot::Sender<()> = running;
                renewing(leases).await;
            }));
            return Ok(Self { stop: stop.drop_guard(), release, ended });
        }
        thread::Builder::new()
            .name("shard-lease".to_owned())
            .spawn(move || {
                // Dropped with the thread.
                let _running: oneshot::Sender<()> = running;
                let renew = || match prepare(&clients, group, name) {
                    Ok((runtime, leases)) => {
                        began.send(Ok(())).ok();
                        runtime.block_on(renewing(leases).instrument(span));
                    }
                    Err(failure) => drop(began.send(Err(failure))),
                };
                if let Err(panic) = contain_call(renew) {
                    error!(%panic, "The thread of the lease of this replica panicked");
                }
            })
            .map_err(Failure::new)?;
        let ended_at_once =
            || Failure::new(io::Error::other("the thread of the lease ended at once"));
        outcome.await.map_err(|_| ended_at_once())??;
        Ok(Self { stop: stop.drop_guard(), release, ended })
    }

    /// Waits until it has ended by itself, which it should not: without it nothing is ours.
    pub(crate) async fn lost(&mut self) -> Failure {
        // Nothing is ever sent: this is the end of the thread.
        drop((&mut self.ended).await);
        Failure::new("the thread of the lease of this replica ended")
    }

    /// Gives the lease back; for when nothing is probed and written any more.
    pub(crate) async fn release(self) {
        let Self { stop, release, ended } = self;
        release.send(()).ok();
        drop(stop);
        // What has said its last word is not to be asked again.
        if !ended.is_terminated() {
            drop(ended.await);
        }
    }
}

/// Inside the thread: the client starts a task in the runtime that makes its calls.
fn prepare(
    clients: &Clients,
    group: ReplicaGroup,
    identity: String,
) -> Result<(runtime::Runtime, ReplicaLeases), Failure> {
    let runtime =
        runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::new)?;
    let leases = {
        let _inside = runtime.enter();
        leases(clients, group, identity)?
    };
    Ok((runtime, leases))
}

fn leases(
    clients: &Clients,
    group: ReplicaGroup,
    identity: String,
) -> Result<ReplicaLeases, Failure> {
    let profile = Profile { own_connection: true, ..Profile::root("cluster-health-shard") };
    let client = clients.build(profile).map_err(Failure::new)?;
    let name = lease_name(&identity);
    Ok(ReplicaLeases::new(client, group, identity, name))
}

/// The name of the lease of a replica.
pub(crate) fn lease_name(replica: &str) -> String {
    match replica {
        // It is that of the leader before this one, too.
        LEADER => format!("cluster-health-{LEADER}"),
        _ => format!("cluster-health-{:016x}", hash(replica)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// A thread that ends on its own when `ends`, else when the lease is given back.
    fn thread_that(ends: bool) -> (LeaseThread, mpsc::Receiver<bool>) {
        let (stop, (release, released)) = (CancellationToken::new(), oneshot::channel());
        let ((running, ended), (said, told)) = (oneshot::channel(), mpsc::channel());
        thread::spawn(move || {
            let _running: oneshot::Sender<()> = running;
            if !ends {
                said.send(released.blocking_recv().is_ok()).ok();
            }
        });
        (LeaseThread { stop: stop.drop_guard(), release, ended }, told)
    }

    #[tokio::test]
    async fn a_thread_that_ended_by_itself_is_a_failure_and_can_still_be_released() {
        let (mut lease, _) = thread_that(true);
        let failure = lease.lost().await;
        assert!(failure.to_string().contains("the thread of the lease of this replica ended"));
        lease.release().await;
    }

    #[tokio::test]
    async fn a_release_waits_for_the_end_of_the_thread() {
        let (lease, told) = thread_that(false);
        lease.release().await;
        assert_eq!(told.recv_timeout(Duration::ZERO), Ok(true));
    }
}
