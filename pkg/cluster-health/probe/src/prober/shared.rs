//! [`Shared`]: what the clients of all member clusters have in common. No connection.

use std::time::Duration;

use transport::{Resolver, TlsConfigs};

use crate::client::Environment;
use crate::meters::Meters;

/// TLS configurations of the same material, the addresses of hosts, and limits.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tls: TlsConfigs,
    pub(super) resolver: Resolver,
    pub(super) environment: Environment,
    pub(super) meters: Meters,
    pub(super) limits: ConnectionLimits,
}

impl Shared {
    pub(super) fn new(meters: Meters, limits: ConnectionLimits, resolver: Resolver) -> Self {
        let environment: Environment = |name| std::env::var(name).ok();
        Self { tls: TlsConfigs::default(), resolver, environment, meters, limits }
    }
}

/// How long a connection may be used.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// A connection is replaced after this, give or take a tenth; zero for one probe only
    pub max_age: Duration,
    /// A connection that carried nothing for this long is not used again.
    pub idle_max: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(300), idle_max: Duration::from_secs(90) }
    }
}
