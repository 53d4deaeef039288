//! [`Limits`]: one bucket for each service and class of calls of an account's region, shared by all
//! clusters in it (`rule:a-throttle-slows-everybody`). `requests.rs` waits here before each
//! request.

use std::collections::HashMap;

use parking_lot::Mutex as SyncMutex;
use resilience::{Rate, TokenBucket};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// The API of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Service {
    /// EC2.
    Ec2,
    /// Classic and network load balancers, which AWS meters together.
    LoadBalancers,
}

/// The class of a call, for rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// A describe call.
    Read,
    /// A call that changes something.
    Write,
    /// RunInstances, which AWS allows less often.
    Run,
}

impl Service {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::LoadBalancers => "elasticloadbalancing",
        }
    }
}

impl Class {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Run => "run",
        }
    }
}

/// The rates that flags set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Rate of describe calls.
    pub read: Rate,
    /// Rate of calls that change something.
    pub write: Rate,
}

impl Default for Rates {
    /// Below what AWS allows for each action alone: 20 reads in a second after 100, 5 writes after
    /// 50.
    fn default() -> Self {
        Self {
            read: Rate { per_second: 20.0, burst: 40 },
            write: Rate { per_second: 5.0, burst: 50 },
        }
    }
}

const RUN: Rate = Rate { per_second: 2.0, burst: 5 };

/// The buckets of one region of one account.
#[derive(Debug)]
pub(crate) struct Limits(HashMap<(Service, Class), Limit>);

#[derive(Debug)]
struct Limit {
    bucket: SyncMutex<TokenBucket>,
    /// First come, first served: tokio's lock is fair.
    queue: Mutex<()>,
}

impl Limits {
    pub(crate) fn new(rates: Rates) -> Self {
        let limit = |rate| {
            let bucket = SyncMutex::new(TokenBucket::new(rate, Instant::now()));
            Limit { bucket, queue: Mutex::default() }
        };
        let mut all = HashMap::new();
        for service in [Service::Ec2, Service::LoadBalancers] {
            all.insert((service, Class::Read), limit(rates.read));
            all.insert((service, Class::Write), limit(rates.write));
            all.insert((service, Class::Run), limit(RUN));
        }
        Self(all)
    }

    /// Waits until a call may be sent. Giving up takes no token.
    pub(crate) async fn wait(&self, service: Service, class: Class) {
        let Some(limit) = self.0.get(&(service, class)) else { return };
        let _turn = limit.queue.lock().await;
        loop {
            let taken = limit.bucket.lock().take(Instant::now());
            match taken {
                Ok(()) => return,
                Err(wait) => sleep(wait).await,
            }
        }
    }

    /// AWS has refused a call as one too many.
    pub(crate) fn throttled(&self, service: Service, class: Class) {
        if let Some(limit) = self.0.get(&(service, class)) {
            limit.bucket.lock().throttled(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limits() -> Limits {
        let rate = Rate { per_second: 1.0, burst: 2 };
        Limits::new(Rates { read: rate, write: rate })
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_one_class_wait_in_line_and_others_do_not() {
        let (limits, start) = (limits(), Instant::now());
        for _ in 0..4 {
            limits.wait(Service::Ec2, Class::Read).await;
        }
        let waited = start.elapsed();
        assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(3), "{waited:?}");
        limits.wait(Service::Ec2, Class::Write).await;
        limits.wait(Service::LoadBalancers, Class::Read).await;
        assert_eq!(start.elapsed(), waited);
    }

    /// cluster-api-provider-aws#1275, #2794
    #[tokio::test(start_paused = true)]
    async fn a_throttled_class_slows_down_for_everybody() {
        let (limits, start) = (limits(), Instant::now());
        limits.throttled(Service::Ec2, Class::Write);
        limits.wait(Service::Ec2, Class::Write).await;
        let waited = start.elapsed();
        assert!(waited >= Duration::from_secs(2), "{waited:?}");
    }
}
