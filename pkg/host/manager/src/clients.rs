//! [`ClientSource`]: further clients for a controller that needs more than one.

use client::{
    Caller, Clients, ConfigError, Identity, Profile, Throttle, ThrottleError, ThrottleMetrics,
};
use resilience::Fence;

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The rate is not valid.
    #[error(transparent)]
    Rate(#[from] ThrottleError),
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Makes clients that belong to one controller.
#[derive(Clone)]
pub struct ClientSource {
    clients: Clients,
    identity: Identity,
    agent: String,
    fence: Fence,
    throttle_metrics: ThrottleMetrics,
    dry_run: bool,
}

impl ClientSource {
    /// The source of the controller that acts as this service account of kube-system, or as the
    /// process itself.
    pub(crate) fn new(
        clients: Clients,
        account: &str,
        by_account: bool,
        fence: Fence,
        throttle_metrics: ThrottleMetrics,
    ) -> Self {
        let (agent, identity) = if by_account {
            let identity =
                Identity::ServiceAccount { namespace: "kube-system".into(), name: account.into() };
            (format!("system:serviceaccount:kube-system:{account}"), identity)
        } else {
            (account.to_owned(), Identity::Root)
        };
        Self { clients, identity, agent, fence, throttle_metrics, dry_run: false }
    }

    /// This source for a process that stores nothing but its lease.
    pub(crate) fn with_dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// A client of this cluster with the controller's identity, behind the leader's fence and a
    /// throttle of its own. `purpose` names the throttle in metrics and logs; a negative `qps` is
    /// unlimited.
    ///
    /// # Errors
    /// The rate is no rate, or the configuration cannot be used.
    pub fn for_purpose(
        &self,
        purpose: &str,
        (qps, burst): (f64, u32),
    ) -> Result<kube::Client, ClientError> {
        Ok(self.caller(purpose, (qps, burst))?.kube())
    }

    /// A client as [`for_purpose`](Self::for_purpose) makes it, for raw requests.
    ///
    /// # Errors
    /// As [`for_purpose`](Self::for_purpose).
    pub fn caller(&self, purpose: &str, (qps, burst): (f64, u32)) -> Result<Caller, ClientError> {
        let throttle = Throttle::new(purpose, qps, burst, &self.throttle_metrics)?;
        let (fence, dry_run) = (Some(self.fence.clone()), self.dry_run);
        Ok(self.clients.caller(Profile { throttle, fence, dry_run, ..self.unfenced_profile() })?)
    }

    /// The source of clients of another cluster, whose kubeconfig an object holds; it acts as that
    /// kubeconfig's user, behind the same fence. The kubeconfig is not followed: whoever watches
    /// the object asks again.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, or names something on this machine.
    pub async fn of_cluster(&self, kubeconfig: &str) -> Result<Self, ClientError> {
        let clients = self.clients.of_object(kubeconfig).await?;
        Ok(Self { clients, identity: Identity::Root, ..self.clone() })
    }

    /// The factory for clients of this cluster, for a profile of the controller's own.
    pub fn factory(&self) -> &Clients {
        &self.clients
    }

    /// Reads and questions of the controller that no throttle may delay.
    pub(crate) fn unthrottled(&self) -> Result<kube::Client, ClientError> {
        Ok(self.clients.build(self.unfenced_profile())?)
    }

    fn unfenced_profile(&self) -> Profile {
        Profile { identity: self.identity.clone(), ..Profile::root(&self.agent) }
    }
}

#[cfg(test)]
mod tests;
