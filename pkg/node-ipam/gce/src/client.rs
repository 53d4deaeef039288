//! [`Client`]: the calls of Google that Nodes' pod ranges take.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cidr::IpNet;
use http::{HeaderValue, Method};
use resilience::Fence;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::error::Operation;
use super::exchange::Limits;
use super::metadata::Channel;
use crate::config::Config;
use crate::error::GceError;
use crate::exchange::{Call, Exchange, IsWanted};
use crate::instance::{AliasRange, FIELDS, Instance, NetworkInterface, ProviderId};
use crate::metadata::Metadata;
use crate::metrics::Metrics;
use crate::tokens::{ClientError, Tokens};

/// VMs of one page; the most that Google gives.
const PAGE: u32 = 500;
/// More pages than any zone has: 50,000 VMs. They stay in memory until all are read.
const PAGES: usize = 100;
/// After this time waiting for an operation ends; the caller reads the VM again.
const OPERATION: Duration = Duration::from_secs(120);
/// Between two looks at an operation: the first comes soon, the others at a steady pace.
const LOOKS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(2)];

/// Calls Google for one project. Clones share connections, token and limits.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    exchange: Exchange,
    config: Config,
    metadata: Metadata,
    project: OnceCell<String>,
}

impl Client {
    /// A client that writes only while the fence is open, and never with `dry_run`. Nothing is
    /// called yet; `env` reads the environment.
    ///
    /// # Errors
    /// The credentials that are meant, or a proxy, cannot be used.
    pub fn new(
        config: Config,
        metrics: Metrics,
        fence: Fence,
        dry_run: bool,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ClientError> {
        let tokens = Tokens::from(&config.tokens, env, metrics.clone())?;
        let api = config.api.parse().map_err(GceError::not_sent)?;
        let channel = Channel::to(&api, env)?;
        let metadata = Metadata::find(env)?;
        let agent = format!(
            "infra-controller-manager/{} ({})",
            env!("CARGO_PKG_VERSION"),
            kube_api::go::platform()
        );
        let agent = HeaderValue::from_str(&agent).map_err(GceError::not_sent)?;
        let limits = Limits::new();
        let exchange = Exchange { channel, tokens, limits, metrics, fence, dry_run, agent };
        let project = OnceCell::new();
        Ok(Self(Arc::new(Inner { exchange, config, metadata, project })))
    }

    /// One VM.
    ///
    /// # Errors
    /// It is not there or not in our project, or the call failed.
    pub async fn instance(&self, vm: &ProviderId) -> Result<Instance, GceError> {
        let (url, what) = (self.url(vm, &format!("?fields={FIELDS}")).await?, format!("VM {vm}"));
        self.0.exchange.make(&Call::get("instances.get", &url, &what)).await
    }

    /// All VMs of a zone, page by page.
    ///
    /// # Errors
    /// A page could not be read: no part of a list is a list.
    pub async fn instances(&self, zone: &str) -> Result<Vec<Instance>, GceError> {
        let (project, what) = (self.project().await?, format!("zone {zone}"));
        let all = format!("{}projects/{project}/zones/{zone}/instances", self.0.config.api);
        let fields = format!("items({FIELDS}),nextPageToken");
        let (mut found, mut token) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            let size = PAGE.to_string();
            let pairs = [("maxResults", &*size), ("fields", &fields), ("pageToken", &token)];
            let url = format!("{all}?{}", query(&pairs));
            let call = Call::get("instances.list", &url, &what);
            let page: Page = self.0.exchange.make(&call).await?;
            found.extend(page.items);
            token = page.next_page_token;
            if token.is_empty() {
                return Ok(found);
            }
        }
        Err(GceError::unanswered(format!("the list of {what} has too many pages")))
    }

    /// Adds an alias to those of a VM, and returns when it works. An alias that is there already is
    /// not requested again, so a call with an unknown outcome may be repeated
    /// (`rule:alias-is-read-before-it-is-written`). `known` are the aliases by which the caller has
    /// decided so, and `is_wanted` is asked when the write is about to be sent.
    ///
    /// # Errors
    /// The VM may have it by now only after [`GceError::Unanswered`]; with [`GceError::Stale`] it
    /// has other aliases than were known.
    pub async fn add_alias(
        &self,
        vm: &ProviderId,
        range: IpNet,
        known: &[IpNet],
        is_wanted: IsWanted<'_>,
    ) -> Result<(), GceError> {
        match self.try_add_alias(vm, range, known, is_wanted).await {
            Err(GceError::Stale) => self.try_add_alias(vm, range, known, is_wanted).await,
            other => other,
        }
    }

    async fn try_add_alias(
        &self,
        vm: &ProviderId,
        range: IpNet,
        known: &[IpNet],
        is_wanted: IsWanted<'_>,
    ) -> Result<(), GceError> {
        let instance = self.instance(vm).await?;
        let Some(interface) = instance.primary() else {
            return Err(GceError::NotFound { what: format!("a network interface of VM {vm}") });
        };
        let aliases = interface.aliases().map_err(GceError::not_sent)?;
        if aliases.contains(&range) {
            return Ok(());
        }
        // A VM that somebody else has given an alias meanwhile must not end up with two.
        if aliases != known {
            return Err(GceError::Stale);
        }
        let body = self.change_of(interface, range)?;
        let request = Uuid::new_v4().to_string();
        let pairs = [("networkInterface", &*interface.name), ("requestId", &request)];
        let path = format!("/updateNetworkInterface?{}", query(&pairs));
        let (url, what) = (self.url(vm, &path).await?, format!("VM {vm}"));
        let call = Call {
            name: "instances.updateNetworkInterface",
            method: Method::PATCH,
            url: &url,
            body,
            what: &what,
            is_wanted: Some(is_wanted),
        };
        let begun: Operation = self.0.exchange.make(&call).await?;
        self.end_of(begun, &vm.zone).await
    }

    /// The list of aliases is replaced as a whole, so those that are there are sent back.
    fn change_of(&self, interface: &NetworkInterface, range: IpNet) -> Result<Bytes, GceError> {
        let mut aliases = interface.alias_ip_ranges.clone();
        aliases.push(AliasRange {
            ip_cidr_range: cidr::canonical(&range),
            subnetwork_range_name: self.0.config.secondary_range.clone(),
        });
        let (name, fingerprint) = (&interface.name, &interface.fingerprint);
        let change = Change { name, fingerprint, alias_ip_ranges: aliases };
        serde_json::to_vec(&change).map(Bytes::from).map_err(GceError::not_sent)
    }

    /// Waits for the end of an operation; a look that fails says nothing about it.
    async fn end_of(&self, begun: Operation, zone: &str) -> Result<(), GceError> {
        let (mut operation, started) = (begun, Instant::now());
        let project = self.project().await?;
        let base = format!("{}projects/{project}/zones/{zone}/operations/", self.0.config.api);
        let (url, what) =
            (format!("{base}{}", operation.name), format!("operation {}", operation.name));
        let call = Call::get("zoneOperations.get", &url, &what);
        let mut pauses = LOOKS.into_iter().chain(std::iter::repeat(LOOKS[LOOKS.len() - 1]));
        loop {
            if let Some(outcome) = operation.outcome() {
                return outcome;
            }
            if started.elapsed() > OPERATION {
                return Err(GceError::unanswered(format!(
                    "{what} did not finish within {OPERATION:?}"
                )));
            }
            sleep(pauses.next().unwrap_or(OPERATION)).await;
            match self.0.exchange.make(&call).await {
                Ok(looked) => operation = looked,
                Err(GceError::NotFound { .. } | GceError::Forbidden { .. }) => {
                    return Err(GceError::unanswered(format!(
                        "the state of {what} cannot be read"
                    )));
                }
                Err(_) => {}
            }
        }
    }

    /// The address of a VM, or of something below it.
    async fn url(&self, vm: &ProviderId, below: &str) -> Result<String, GceError> {
        let project = self.project().await?;
        // Whoever may write Nodes could have us call any project (`rule:one-project-is-called`).
        if vm.project != project {
            return Err(GceError::NotSent {
                reason: format!("VM {vm} does not belong to project {project}"),
            });
        }
        let ProviderId { zone, instance, .. } = vm;
        let api = &self.0.config.api;
        Ok(format!("{api}projects/{project}/zones/{zone}/instances/{instance}{below}"))
    }

    async fn project(&self) -> Result<&str, GceError> {
        if let Some(project) = &self.0.config.project {
            return Ok(project);
        }
        let asked = self.0.project.get_or_try_init(|| self.0.metadata.project()).await?;
        Ok(asked)
    }
}

/// A query of those pairs that have a value.
fn query(pairs: &[(&str, &str)]) -> String {
    let given = pairs.iter().filter(|(_, value)| !value.is_empty());
    form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Page {
    items: Vec<Instance>,
    next_page_token: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change<'a> {
    name: &'a str,
    fingerprint: &'a str,
    alias_ip_ranges: Vec<AliasRange>,
}

#[cfg(test)]
mod tests;
