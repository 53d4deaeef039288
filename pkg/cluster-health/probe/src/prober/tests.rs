//! Probes of servers on loopback that do what servers and networks do wrong.

use std::sync::Arc;
use std::time::Duration;

use health::{Code, Verdict};
use prometheus::{Encoder as _, Registry, TextEncoder};
use secrecy::SecretString;
use transport::{DialPolicy, Names};

use super::*;
use crate::inputs::WaivedChecks;
use server::{Asked, BlackHole, Reply, Server, closed_port};
use validation::Address;

mod addresses;
mod answers;
mod certificates;
mod connections;
mod proxies;
mod reads;
mod secrets;
mod server;
mod timing;
mod tls;

const TOKEN: &str = "hunter2-the-token";
/// Long enough for a machine that does other things as well.
const AMPLE: Duration = Duration::from_secs(60);
/// For probes that run out of time, after they have come as far as they can on any machine.
const SHORT: Duration = Duration::from_secs(3);

/// A prober and a client of it.
struct Bench {
    prober: Prober,
    client: Arc<Client>,
    registry: Registry,
    budget: Duration,
    authenticated_read: bool,
    next_in: Duration,
}

impl Bench {
    fn new(inputs: &Inputs) -> Self {
        Self::with(inputs, ConnectionLimits::default(), Names::default())
    }

    fn with(inputs: &Inputs, limits: ConnectionLimits, resolver: impl Into<Resolver>) -> Self {
        let registry = Registry::new();
        let prober = Prober::new(Meters::new(&registry).unwrap(), limits, resolver);
        Self::of(prober, inputs, registry)
    }

    /// With nothing but these variables in the environment.
    fn in_environment(inputs: &Inputs, names: Names, environment: Environment) -> Self {
        let (registry, limits) = (Registry::new(), ConnectionLimits::default());
        let prober = Prober::new(Meters::new(&registry).unwrap(), limits, names);
        Self::of(prober.in_environment(environment), inputs, registry)
    }

    fn of(prober: Prober, inputs: &Inputs, registry: Registry) -> Self {
        let client = Arc::new(prober.client(inputs).unwrap());
        let (authenticated_read, next_in) = (false, Duration::from_secs(10));
        Self { prober, client, registry, budget: AMPLE, authenticated_read, next_in }
    }

    fn within(self, budget: Duration) -> Self {
        Self { budget, ..self }
    }

    fn reading(self) -> Self {
        Self { authenticated_read: true, ..self }
    }

    async fn probe(&self) -> Probed {
        self.probe_beside(|| None).await
    }

    /// A probe while `newest` is the client of the newest inputs.
    async fn probe_beside(&self, newest: impl Fn() -> Option<Arc<Client>> + Send + Sync) -> Probed {
        self.probe_by(&newest, None).await
    }

    async fn probe_by(
        &self,
        newest: &(dyn Fn() -> Option<Arc<Client>> + Send + Sync),
        reread: Option<&dyn Reread>,
    ) -> Probed {
        let Self { budget, authenticated_read, next_in, .. } = *self;
        let order = Order { budget, authenticated_read, next_in, newest, reread };
        self.prober.probe(&self.client, &order).await
    }

    fn metrics(&self) -> String {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }
}

fn inputs(addresses: &[String]) -> Inputs {
    Inputs {
        addresses: addresses.iter().map(|url| Address::parse(url).unwrap()).collect(),
        token: Some(SecretString::from(TOKEN)),
        // Reading the authorities of the system takes a while.
        tls: WaivedChecks { everything: true, ..WaivedChecks::default() },
        allow_plaintext: true,
        user_agent: "test/1".into(),
        ..Inputs::default()
    }
}

fn conclusion(probed: &Probed) -> (Verdict, Option<Code>) {
    (probed.report.finding.verdict(), probed.report.finding.code())
}

async fn probe_plain(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (Probed, Server) {
    let server = Server::plain(script).await;
    let probed = Bench::new(&inputs(&[server.url()])).probe().await;
    (probed, server)
}
