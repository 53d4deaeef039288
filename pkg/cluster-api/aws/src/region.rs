//! [`Region`]: the APIs of one region, and what all calls to them share. [`Options`]: how AWS is
//! called.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_network::NatGateway;
use aws_smithy_runtime_api::client::http::SharedHttpClient;

use crate::call::Call;
use crate::callers::{AccountGuard, Callers};
use crate::gate::WriteGate;
use crate::limits::{Class, Limits, Rates};
use crate::metrics::Metrics;
use crate::polls::{Polls, Terms};
use crate::sweep::Sweep;

/// The APIs of one region with the credentials of one account, and a number of reads. Clones are the
/// same.
#[derive(Clone, Debug)]
pub struct Region(Arc<Inner>, Arc<AtomicU32>);

#[derive(Debug)]
struct Inner {
    name: String,
    controller: &'static str,
    http: SharedHttpClient,
    ec2: aws_sdk_ec2::Client,
    elb: aws_sdk_elasticloadbalancing::Client,
    elbv2: aws_sdk_elasticloadbalancingv2::Client,
    sts: aws_sdk_sts::Client,
    guard: Option<AccountGuard>,
    limits: Arc<Limits>,
    metrics: Metrics,
    nats_by_vpc: Polls<NatGateway>,
    nats_by_tag: Polls<NatGateway>,
    sweep: Sweep,
}

impl Region {
    /// With a configuration for this region.
    pub(crate) fn new(
        name: &str,
        config: &SdkConfig,
        http: SharedHttpClient,
        options: &Options,
        metrics: Metrics,
        account: Option<(&str, Callers)>,
        limits: Arc<Limits>,
    ) -> Self {
        let said = options.region_endpoints.get(name).cloned().unwrap_or_default();
        let mut ec2 = aws_sdk_ec2::config::Builder::from(config);
        let mut elb = aws_sdk_elasticloadbalancing::config::Builder::from(config);
        let mut elbv2 = aws_sdk_elasticloadbalancingv2::config::Builder::from(config);
        let mut sts = aws_sdk_sts::config::Builder::from(config);
        if let Some(url) = &said.ec2 {
            ec2 = ec2.endpoint_url(url);
        }
        if let Some(url) = &said.load_balancing {
            (elb, elbv2) = (elb.endpoint_url(url), elbv2.endpoint_url(url));
        }
        if let Some(url) = &said.sts {
            sts = sts.endpoint_url(url);
        }
        let sts = aws_sdk_sts::Client::from_conf(sts.build());
        let guard = account.map(|(account, callers)| {
            let (account, sts, http) = (account.into(), sts.clone(), http.clone());
            AccountGuard { account, callers, sts, http }
        });
        if let Some(guard) = &guard {
            let guarded = guard.before(http.clone());
            ec2 = ec2.http_client(guarded.clone());
            (elb, elbv2) = (elb.http_client(guarded.clone()), elbv2.http_client(guarded));
        }
        let inner = Inner {
            name: name.to_owned(),
            controller: options.controller,
            http,
            ec2: aws_sdk_ec2::Client::from_conf(ec2.build()),
            elb: aws_sdk_elasticloadbalancing::Client::from_conf(elb.build()),
            elbv2: aws_sdk_elasticloadbalancingv2::Client::from_conf(elbv2.build()),
            sts,
            guard,
            limits,
            metrics,
            nats_by_vpc: Polls::new(Terms::AWAITED),
            nats_by_tag: Polls::new(Terms::AWAITED),
            sweep: Sweep::new(options.sync_period),
        };
        Self(Arc::new(inner), Arc::default())
    }

    /// The same region, with no reads counted yet.
    pub(crate) fn counting(self) -> Self {
        Self(self.0, Arc::default())
    }

    /// Counts a request.
    pub(crate) fn count(&self, call: Call) {
        if call.class == Class::Read {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of the requests that read.
    pub(crate) fn reads(&self) -> u32 {
        self.1.load(Ordering::Relaxed)
    }

    /// Name, such as `us-east-2`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn ec2(&self) -> &aws_sdk_ec2::Client {
        &self.0.ec2
    }

    pub(crate) fn elb(&self) -> &aws_sdk_elasticloadbalancing::Client {
        &self.0.elb
    }

    pub(crate) fn elbv2(&self) -> &aws_sdk_elasticloadbalancingv2::Client {
        &self.0.elbv2
    }

    pub(crate) fn sts(&self) -> &aws_sdk_sts::Client {
        &self.0.sts
    }

    /// A gate before the connections, and the guard of the account before the gate: it may ask STS,
    /// and the fence is asked last.
    fn gated(&self, gate: &WriteGate) -> SharedHttpClient {
        let gated = gate.before(self.0.http.clone());
        self.0.guard.as_ref().map_or(gated.clone(), |guard| guard.before(gated))
    }

    /// EC2 behind a gate.
    pub(crate) fn gated_ec2(&self, gate: &WriteGate) -> aws_sdk_ec2::Client {
        let config = self.0.ec2.config().to_builder().http_client(self.gated(gate));
        aws_sdk_ec2::Client::from_conf(config.build())
    }

    /// The API of classic load balancers behind a gate.
    pub(crate) fn gated_elb(&self, gate: &WriteGate) -> aws_sdk_elasticloadbalancing::Client {
        let config = self.0.elb.config().to_builder().http_client(self.gated(gate));
        aws_sdk_elasticloadbalancing::Client::from_conf(config.build())
    }

    /// The API of the second generation of load balancers behind a gate.
    pub(crate) fn gated_elbv2(&self, gate: &WriteGate) -> aws_sdk_elasticloadbalancingv2::Client {
        let config = self.0.elbv2.config().to_builder().http_client(self.gated(gate));
        aws_sdk_elasticloadbalancingv2::Client::from_conf(config.build())
    }

    /// NAT gateways that clusters wait for, by their VPC.
    pub(crate) fn nats_by_vpc(&self) -> &Polls<NatGateway> {
        &self.0.nats_by_vpc
    }

    /// NAT gateways that clusters wait for, by the key of their cluster's tag.
    pub(crate) fn nats_by_tag(&self) -> &Polls<NatGateway> {
        &self.0.nats_by_tag
    }

    /// What was read last for all clusters at rest.
    pub(crate) fn sweep(&self) -> &Sweep {
        &self.0.sweep
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn labels(&self, call: Call) -> [&str; 4] {
        [self.0.controller, call.service.as_str(), &self.0.name, call.operation]
    }

    /// The labels of a call of STS, which has no rate of its own.
    pub(crate) fn sts_labels(&self, operation: &'static str) -> [&str; 4] {
        [self.0.controller, "sts", &self.0.name, operation]
    }
}

/// Where the APIs of one region are, as URLs, as far as that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// EC2.
    pub ec2: Option<String>,
    /// STS, which says which account the credentials belong to.
    pub sts: Option<String>,
    /// Classic and network load balancers.
    pub load_balancing: Option<String>,
}

/// How AWS is called.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `controller` label of metrics.
    pub controller: &'static str,
    /// Where all APIs are, when that is not AWS; `AWS_ENDPOINT_URL` and its kin count otherwise.
    pub endpoint: Option<String>,
    /// Where the APIs of some regions are, by the region's name. They win over `endpoint`.
    pub region_endpoints: BTreeMap<String, Endpoints>,
    /// Credentials; without them the usual places are searched: environment, profile, web identity,
    /// container, instance.
    pub credentials: Option<Credentials>,
    /// The time limit of one request, with its credentials and its connection.
    pub request_timeout: Duration,
    /// How often, in each region and for each API.
    pub rates: Rates,
    /// How often a cluster at rest is looked at.
    pub sync_period: Duration,
}

impl Options {
    /// Time limit of a request unless a flag sets another.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
}
