//! The targets of the guard: the own API server, the reference endpoints of `--cluster-health-guard-endpoints`, and the
//! network of this machine; and [`GuardStatus`], what the guard found last.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::{Caller, Clients, ConfigError, Profile};
use futures::future::{BoxFuture, join, join_all};
use health::{GuardPolicy, GuardState, Verdict};
use http::Request;
use kube::client::Body;
use parking_lot::Mutex;
use probe::{Address, Inputs, Order, Prober, WaivedChecks};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use transport::{Asker, Resolver};

/// The answers of the targets in one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Whether the own API server answered, with any status.
    pub api: bool,
    /// Whether each reference endpoint answered.
    pub references: Vec<bool>,
    /// Whether this machine lost its network: no interface is up, or there is no default route.
    pub local_down: bool,
}

/// The targets of the guard, in addition to the members.
pub(crate) trait Targets: Send + Sync + 'static {
    /// The number of reference endpoints.
    fn references(&self) -> usize;

    /// Asks all targets at once, each within `limit`: the references over new connections, the API server over a
    /// connection that no other client uses.
    fn ask(&self, limit: Duration) -> BoxFuture<'_, Answers>;
}

/// The guard of one run, as configured.
#[derive(Clone)]
pub(crate) struct Guarding {
    pub policy: GuardPolicy,
    pub targets: Arc<dyn Targets>,
}

/// What the guard found last, for metrics and pages. A member that begins to wait asks here for a round.
pub(crate) struct GuardStatus {
    is_on: bool,
    asked: Notify,
    last: Mutex<Option<GuardView>>,
}

/// State of the guard after a round.
#[derive(Clone, Debug)]
pub(crate) struct GuardView {
    pub state: GuardState,
    pub ratio: f64,
    pub waiting: usize,
    pub answers: Answers,
}

impl GuardStatus {
    /// The status before the first round; without a guard, for ever.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on, asked: Notify::new(), last: Mutex::default() }
    }

    /// Whether there is a guard.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A member begins to wait: the next round comes as soon as the spacing allows.
    pub(crate) fn ask(&self) {
        self.asked.notify_one();
    }

    /// The state after the last round; `None` without a guard, and before the first round.
    pub(crate) fn view(&self) -> Option<GuardView> {
        self.last.lock().clone()
    }

    /// Waits until a member begins to wait.
    pub(crate) async fn is_asked(&self) {
        self.asked.notified().await;
    }

    /// Shows the state after a round.
    pub(crate) fn show(&self, view: GuardView) {
        *self.last.lock() = Some(view);
    }

    /// Whether silence of members says something about them: the network works, also in an outage of many.
    pub(crate) fn is_clear(&self) -> bool {
        let works =
            |view: &GuardView| matches!(view.state, GuardState::Clear | GuardState::MassOutage);
        self.last.lock().as_ref().is_none_or(works)
    }
}

/// Any answer will do, and this path needs no right of ours.
const API_PATH: &str = "/livez";
const USER_AGENT: &str = "infra-controller-manager/guard";

/// An endpoint that is reached on the same way as the members, and that is usually up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// `tcp://host:port`: a connection can be opened.
    Tcp(Address),
    /// `https://…`: the server answers, whatever its certificate and the status.
    Https(Address),
}

/// A text that names no reference endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it must be tcp://host:port or https://host, without a user name")]
pub(crate) struct ReferenceError;

impl Reference {
    /// Reads an endpoint as the flag writes it.
    ///
    /// # Errors
    /// The text has another form.
    pub(crate) fn parse(text: &str) -> Result<Self, ReferenceError> {
        let address = |text: &str| Address::parse(text).map_err(|_| ReferenceError);
        match text.split_once("://") {
            Some(("tcp", rest)) if has_port(rest) && !rest.contains('/') => {
                Ok(Self::Tcp(address(&format!("https://{rest}"))?))
            }
            Some(("https", _)) => Ok(Self::Https(address(text)?)),
            _ => Err(ReferenceError),
        }
    }
}

fn has_port(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

/// The targets outside of tests.
pub(crate) struct NetworkTargets {
    api: Caller,
    references: Vec<Asked>,
    prober: Arc<Prober>,
    resolver: Resolver,
    local: LocalNetwork,
}

enum Asked {
    Tcp(Address),
    Https(Arc<probe::Client>),
}

impl NetworkTargets {
    /// The client for the own API server. It stops for no 429, which is an answer, and has a connection of its own: a
    /// shared one could hang while the network works.
    pub(crate) fn api_caller(clients: &Clients) -> Result<Caller, ConfigError> {
        clients.caller(Profile { own_connection: true, ..Profile::root("cluster-health-guard") })
    }

    /// Asks nothing yet.
    ///
    /// # Errors
    /// A client of an endpoint cannot be made.
    pub(crate) fn new(
        api: Caller,
        references: &[Reference],
        prober: Arc<Prober>,
        resolver: Resolver,
    ) -> Result<Self, probe::Problem> {
        let asked = |reference: &Reference| -> Result<Asked, probe::Problem> {
            match reference {
                Reference::Tcp(address) => Ok(Asked::Tcp(address.clone())),
                Reference::Https(address) => {
                    let inputs = Inputs {
                        addresses: vec![address.clone()],
                        tls: WaivedChecks { everything: true, ..WaivedChecks::default() },
                        user_agent: USER_AGENT.to_owned(),
                        ..Inputs::default()
                    };
                    Ok(Asked::Https(Arc::new(prober.client(&inputs)?)))
                }
            }
        };
        let references = references.iter().map(asked).collect::<Result<_, _>>()?;
        Ok(Self { api, references, prober, resolver, local: LocalNetwork::default() })
    }

    async fn api_answers(&self, limit: Duration) -> bool {
        let Ok(request) = Request::get(API_PATH).body(Body::empty()) else { return false };
        matches!(timeout(limit, self.api.answer(request, limit)).await, Ok(Ok(_)))
    }

    async fn answers(&self, reference: &Asked, limit: Duration) -> bool {
        let answered = async {
            match reference {
                Asked::Tcp(address) => self.connects(address).await,
                Asked::Https(client) => {
                    client.close_connection();
                    let order = Order::once(limit, false);
                    let probed = self.prober.probe(client, &order).await;
                    probed.report.finding.verdict() != Verdict::Unreachable
                }
            }
        };
        timeout(limit, answered).await.unwrap_or(false)
    }

    async fn connects(&self, address: &Address) -> bool {
        let server = address.server();
        let (Some(host), Some(port)) = (server.host(), server.port_u16()) else { return false };
        let Ok(found) = self.resolver.addresses(host, port, &Asker::default()).await else {
            return false;
        };
        for address in found {
            if TcpStream::connect(address).await.is_ok() {
                return true;
            }
        }
        self.resolver.forget(host);
        false
    }
}

impl Targets for NetworkTargets {
    fn references(&self) -> usize {
        self.references.len()
    }

    fn ask(&self, limit: Duration) -> BoxFuture<'_, Answers> {
        // A little less, so that a target in time is not lost with one that is late.
        let limit = limit.mul_f64(0.95);
        Box::pin(async move {
            let references = join_all(self.references.iter().map(|it| self.answers(it, limit)));
            let (api, references) = join(self.api_answers(limit), references).await;
            Answers { api, references, local_down: self.local.is_down() }
        })
    }
}

/// Whether this machine lost its network. One that never had a default route, as in a network of its own, has none to lose.
#[derive(Default)]
struct LocalNetwork {
    was_up: AtomicBool,
}

impl LocalNetwork {
    fn is_down(&self) -> bool {
        let up = has_interface() && has_default_route();
        if up {
            self.was_up.store(true, Ordering::Relaxed);
        }
        !up && self.was_up.load(Ordering::Relaxed)
    }
}

/// Whether an interface but the loopback is up.
fn has_interface() -> bool {
    const UP: u32 = 1;
    let Ok(interfaces) = fs::read_dir("/sys/class/net") else { return false };
    interfaces.flatten().filter(|it| it.file_name() != "lo").any(|it| {
        let flags = fs::read_to_string(it.path().join("flags")).unwrap_or_default();
        let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16);
        flags.is_ok_and(|flags| flags & UP != 0)
    })
}

fn has_default_route() -> bool {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    is_default_v4(&read("/proc/net/route")) || is_default_v6(&read("/proc/net/ipv6_route"))
}

/// Whether a line of `/proc/net/route` leads everywhere.
fn is_default_v4(routes: &str) -> bool {
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_default = |fields: Vec<String>| {
        fields.get(1).is_some_and(|to| to == "00000000")
            && fields.get(7).is_some_and(|mask| mask == "00000000")
    };
    routes.lines().map(fields).any(is_default)
}

/// Whether a line of `/proc/net/ipv6_route` leads everywhere, and not to the loopback, which stands for no route.
fn is_default_v6(routes: &str) -> bool {
    routes.lines().any(|line| {
        line.starts_with("00000000000000000000000000000000 00 ")
            && !line.trim_end().ends_with(" lo")
    })
}

#[cfg(test)]
mod tests {
    use api_server_double::{ApiServer, Reply};
    use client::{ClientOptions, RequestMetrics};
    use probe::{ConnectionLimits, Meters};
    use prometheus::Registry;
    use serde_json::json;
    use transport::{DialPolicy, Names};

    use super::*;

    async fn clients(master: String) -> Clients {
        let options = ClientOptions {
            kubeconfig: None,
            master: Some(master),
            product: "test".into(),
            version: "v0".into(),
            commit: "0".into(),
        };
        Clients::load(&options, &RequestMetrics::new(&Registry::new()).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn an_api_server_that_refuses_every_request_answers_each_round() {
        const ROUNDS: usize = 40;
        let server = ApiServer::new(|_| Reply::RetryAfter(429, 600, json!({})));
        let loopback = server.listen().await;
        let api = NetworkTargets::api_caller(&clients(loopback.url.clone()).await).unwrap();
        let resolver = || Resolver::new(Names::default(), DialPolicy::default());
        let meters = Meters::new(&Registry::new()).unwrap();
        let prober = Arc::new(Prober::new(meters, ConnectionLimits::default(), resolver()));
        let targets = NetworkTargets::new(api, &[], prober, resolver()).unwrap();
        for round in 0..ROUNDS {
            let answers = targets.ask(Duration::from_secs(30)).await;
            assert!(answers.api, "{round}");
        }
        assert_eq!(server.asked().len(), ROUNDS);
    }

    #[test]
    fn references_have_one_of_two_forms() {
        for text in ["tcp://10.0.0.1:53", "tcp://[fd00::1]:53", "https://example.com/x"] {
            assert!(Reference::parse(text).is_ok(), "{text}");
        }
        for text in [
            "10.0.0.1:53",
            "tcp://10.0.0.1",
            "tcp://a:53/x",
            "http://example.com",
            "https://user:word@example.com",
            "tcp://user@a:53",
            "",
        ] {
            assert_eq!(Reference::parse(text), Err(ReferenceError), "{text}");
        }
    }

    #[test]
    fn a_default_route_is_recognised() {
        let header =
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let local = "eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let default = "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
        assert!(!is_default_v4(&format!("{header}{local}")));
        assert!(is_default_v4(&format!("{header}{default}{local}")));
        let zero = "0".repeat(32);
        let none =
            format!("{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n");
        let default =
            format!("{zero} 00 {zero} 00 fe80 00000400 00000001 00000000 00000003     eth0\n");
        assert!(!is_default_v6(&none));
        assert!(is_default_v6(&(none + &default)));
    }
}
