//! Which path answers what (host.md 5.4). Pure: method, URI and peer in, reply out.

use std::collections::BTreeSet;
use std::net::IpAddr;

use http::{Method, StatusCode, Uri};
use prometheus::{Registry, TextEncoder};
use tracing::error;

use crate::health::Endpoint;
use crate::reply::{self, Reply};
use crate::{BuildInfo, Health, access, metrics};

/// What the server serves.
#[derive(Clone)]
pub struct Routes {
    /// The checks behind `/healthz`, `/livez` and `/readyz`.
    pub health: Health,
    /// Every series of `/metrics`; the server adds its own.
    pub registry: Registry,
    /// The document of `/version`.
    pub version: BuildInfo,
}

impl Routes {
    /// Answers one request. Health paths answer to everyone and to any method, as stock's do;
    /// their sub-paths and everything else to loopback peers only.
    pub(crate) fn answer(&self, peer: IpAddr, method: &Method, uri: &Uri) -> Reply {
        let path = uri.path();
        if let Some(endpoint) = health_path(path) {
            return self.health_of(endpoint, uri.query().unwrap_or_default());
        }
        if let Some(refusal) = access::refusal(peer, method, path) {
            return refusal;
        }
        match path {
            "/metrics" => self.metrics(),
            "/metrics/slis" if method == Method::DELETE => {
                self.health.reset_slis();
                reply::text(StatusCode::OK, "metrics reset\n")
            }
            "/metrics/slis" => self.slis(),
            "/version" => reply::json(StatusCode::OK, self.version.to_json()),
            _ => self.single_check(path).unwrap_or_else(reply::not_found),
        }
    }

    fn health_of(&self, endpoint: Endpoint, query: &str) -> Reply {
        let mut verbose = false;
        let mut excluded = BTreeSet::new();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match key.as_ref() {
                "verbose" => verbose = true,
                "exclude" => {
                    excluded.insert(value.into_owned());
                }
                _ => {}
            }
        }
        let report = self.health.report(endpoint, excluded);
        let status =
            if report.failed() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
        reply::text(status, report.body(verbose))
    }

    /// `/healthz/<check>`: for those who may ask, so the reason is part of the answer.
    fn single_check(&self, path: &str) -> Option<Reply> {
        let (parent, name) = path.rsplit_once('/')?;
        Some(match self.health.run_one(health_path(parent)?, name)? {
            Ok(()) => reply::text(StatusCode::OK, "ok"),
            Err(reason) => reply::text(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("internal server error: {reason}\n"),
            ),
        })
    }

    fn metrics(&self) -> Reply {
        let families = self.registry.gather();
        match TextEncoder::new().encode_to_string(&families) {
            Ok(page) => reply::metrics(page, metrics::process_start(&families)),
            Err(err) => {
                error!(logger = "serving", %err, "Cannot encode metrics");
                reply::text(StatusCode::INTERNAL_SERVER_ERROR, "cannot encode metrics\n")
            }
        }
    }

    fn slis(&self) -> Reply {
        let start = metrics::process_start(&self.registry.gather());
        let process = start.map_or_else(String::new, |start| {
            let name = metrics::START_TIME;
            format!(
                "# HELP {name} Start of the process in seconds since 1970.\n\
                 # TYPE {name} gauge\n{name} {start}\n"
            )
        });
        reply::metrics(self.health.slis() + &process, start)
    }
}

fn health_path(path: &str) -> Option<Endpoint> {
    let name = path.strip_prefix('/')?;
    Endpoint::EVERY.into_iter().find(|endpoint| endpoint.name() == name)
}

#[cfg(test)]
mod tests;
