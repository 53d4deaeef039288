//! Request metrics under stock's names, which dashboards and alerts query, and three of our
//! own. Registered once by `cmd`; each client keeps its children, so that a request looks
//! up no label but that of a status other than 200.
//!
//! The path of a request is never a label. `verb` is the HTTP method, as in stock.

use std::sync::OnceLock;
use std::time::Duration;

use http::{Method, StatusCode};
use metrics::{Held, SeriesByLabel};
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, Registry};

use crate::identity::metrics::{CertificateMetrics, PluginMetrics};
use crate::throttle::signals::LATENCY_BUCKETS;

/// Stock's size buckets, 64 B to 16 MiB.
const SIZE_BUCKETS: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// Code of an attempt without an answer, as stock writes it.
const NO_ANSWER: &str = "<error>";

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OTHER"];

fn index(method: &Method) -> usize {
    METHODS.iter().position(|m| *m == method.as_str()).unwrap_or(METHODS.len() - 1)
}

/// The registered families; clones share them. Made once per process and given to every
/// [`Clients`](crate::Clients).
#[derive(Clone)]
pub struct RequestMetrics {
    requests: IntCounterVec,
    duration: HistogramVec,
    limiter: HistogramVec,
    request_size: HistogramVec,
    response_size: HistogramVec,
    server_duration: HistogramVec,
    server_throttled: IntCounterVec,
    fenced: IntCounter,
    pub(crate) plugins: PluginMetrics,
    pub(crate) certificates: CertificateMetrics,
    /// The host of a member cluster goes with its last client (`rule:series-end-with-their-thing`).
    hosts: SeriesByLabel,
    /// Series with the label `client`, which end with their client.
    clients: SeriesByLabel,
}

impl RequestMetrics {
    /// Registers the families.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let r = registry;
        let requests = metrics::counter(
            r,
            "rest_client_requests_total",
            "[ALPHA] HTTP requests to the API server, each attempt counted, by answer",
            &["code", "method", "host"],
        )?;
        let of_host = |name: &str, help: &str, buckets: &[f64]| {
            metrics::histogram(r, name, help, &["verb", "host"], buckets)
        };
        let duration = of_host(
            "rest_client_request_duration_seconds",
            "[ALPHA] Time of a request with its waits, watches excluded",
            &LATENCY_BUCKETS,
        )?;
        let limiter = of_host(
            "rest_client_rate_limiter_duration_seconds",
            "[ALPHA] Time a request waited for the client-side rate limiter",
            &LATENCY_BUCKETS,
        )?;
        let request_size = of_host(
            "rest_client_request_size_bytes",
            "[ALPHA] Size of request bodies",
            &SIZE_BUCKETS,
        )?;
        let response_size = of_host(
            "rest_client_response_size_bytes",
            "[ALPHA] Size of response bodies, watches excluded",
            &SIZE_BUCKETS,
        )?;
        Ok(Self {
            requests,
            duration,
            limiter,
            request_size,
            response_size,
            server_duration: metrics::histogram(
                r,
                "icm_server_request_duration_seconds",
                "Time of one attempt on the network and in the API server, client-side waits excluded",
                &["client", "verb"],
                &LATENCY_BUCKETS,
            )?,
            server_throttled: metrics::counter(
                r,
                "icm_client_server_throttled_total",
                "Answers 429 of the API server's priority and fairness, by FlowSchema UID",
                &["client", "flow_schema"],
            )?,
            fenced: metrics::register(
                r,
                IntCounter::new(
                    "icm_fenced_requests_total",
                    "Writes that were not sent because the leader lease was not held",
                )?,
            )?,
            plugins: PluginMetrics::new(r)?,
            certificates: CertificateMetrics::new(r)?,
            hosts: SeriesByLabel::default(),
            clients: SeriesByLabel::default(),
        })
    }

    /// The children of the client `agent` of the server `host`.
    pub(crate) fn for_client(&self, host: &str, agent: &str) -> ClientMetrics {
        ClientMetrics {
            families: self.clone(),
            host: host.to_owned(),
            agent: agent.to_owned(),
            verbs: Default::default(),
            of_host: self.hosts.hold(host),
            of_client: self.clients.hold(agent),
        }
    }
}

/// Metrics of one client.
pub(crate) struct ClientMetrics {
    families: RequestMetrics,
    host: String,
    agent: String,
    verbs: [OnceLock<Verb>; METHODS.len()],
    /// Where the series with the label `host` are taken from.
    of_host: Held,
    /// The children of the families with the label `client`.
    of_client: Held,
}

/// Children of one verb, made when it is first used.
struct Verb {
    /// Attempts answered 200, which nearly all are.
    ok: IntCounter,
    duration: Histogram,
    limiter: Histogram,
    request_size: Histogram,
    response_size: Histogram,
    server_duration: Histogram,
}

impl ClientMetrics {
    fn verb(&self, method: &Method) -> &Verb {
        let i = index(method);
        self.verbs[i].get_or_init(|| {
            let verb_host = &[METHODS[i], self.host.as_str()];
            let (f, of_host) = (&self.families, &self.of_host);
            Verb {
                ok: of_host.series(&f.requests, &["200", METHODS[i], &self.host]),
                duration: of_host.series(&f.duration, verb_host),
                limiter: of_host.series(&f.limiter, verb_host),
                request_size: of_host.series(&f.request_size, verb_host),
                response_size: of_host.series(&f.response_size, verb_host),
                server_duration: self
                    .of_client
                    .series(&f.server_duration, &[&self.agent, METHODS[i]]),
            }
        })
    }

    /// One attempt ended, with an answer or (`None`) without.
    pub(crate) fn attempt(
        &self,
        method: &Method,
        status: Option<StatusCode>,
        watch: bool,
        request_size: u64,
        latency: Duration,
    ) {
        let verb = self.verb(method);
        if status == Some(StatusCode::OK) {
            verb.ok.inc();
        } else {
            let code = status.as_ref().map_or(NO_ANSWER, StatusCode::as_str);
            let name = METHODS[index(method)];
            self.of_host.series(&self.families.requests, &[code, name, &self.host]).inc();
        }
        if watch {
            return;
        }
        verb.server_duration.observe(latency.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bytes")]
        verb.request_size.observe(request_size as f64);
    }

    /// A request that is no watch ended, its waits included.
    pub(crate) fn request(&self, method: &Method, time: Duration) {
        self.verb(method).duration.observe(time.as_secs_f64());
    }

    /// An attempt passed the throttle.
    pub(crate) fn limiter(&self, method: &Method, wait: Duration) {
        self.verb(method).limiter.observe(wait.as_secs_f64());
    }

    /// Where the size of an answer goes once it is read.
    pub(crate) fn response_size(&self, method: &Method) -> Histogram {
        self.verb(method).response_size.clone()
    }

    /// The server answered 429.
    pub(crate) fn server_throttled(&self, flow_schema: &str) {
        let family = &self.families.server_throttled;
        self.of_client.series(family, &[&self.agent, flow_schema]).inc();
    }

    /// The fence refused a write.
    pub(crate) fn fenced(&self) {
        self.families.fenced.inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    /// rule:series-end-with-their-thing
    #[test]
    fn the_series_of_a_client_end_with_it_and_those_of_its_host_with_the_last_one() {
        let registry = Registry::new();
        let metrics = RequestMetrics::new(&registry).unwrap();
        let client = |agent: &str| {
            let client = metrics.for_client("host", agent);
            client.attempt(&Method::GET, Some(StatusCode::OK), false, 1, Duration::ZERO);
            client.server_throttled("a-flow-schema");
            client
        };
        let shown = |text: &str| {
            let page = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
            page.contains(text)
        };
        let (one, other) = (client("one"), client("other"));
        drop(one);
        assert!(!shown("client=\"one\"") && shown("client=\"other\"") && shown("host=\"host\""));
        drop(other);
        assert!(!shown("client=\"other\"") && !shown("a-flow-schema") && !shown("host=\"host\""));
    }
}
