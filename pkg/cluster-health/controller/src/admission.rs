//! [`ValidationWebhook`]: the webhook that the API server asks before it stores a Cluster, a Machine or
//! a KubeFedCluster, in every replica, whoever leads. It adds to the judgement of `validation` what only
//! the other objects and the network know (`rule:the-webhook-helps-and-never-hurts`).
//!
//! | file | holds |
//! |---|---|
//! | `flags.rs`, `options.rs` | its flags, judged |
//! | `serving.rs` | the listener, its certificate and its registration |
//! | `review.rs` | AdmissionReview, in and out. Pure |
//! | `judge.rs` | one request, judged |
//! | `memory_budget.rs` | how much may be judged at once |
//! | `object_caches.rs`, `pruned_object.rs` | the stored objects that rules compare a new object with; the fields that are kept of them |
//! | `metrics.rs` | what was asked and answered |

use std::sync::Arc;
use std::time::Duration;

use ::flags::{Problem, Spec, Values};
use ::serving::{Access, Page, Pages};
use futures::future::BoxFuture;
use manager::command::Command;
use manager::{Configured, Context, Controller, Failure, Permission, Placement, Runner, Stopped};
use resilience::LogGate;
use tokio::time::{Instant, sleep};
use tracing::warn;

use self::flags::FLAGS;
use self::judge::Judge;
use self::metrics::WebhookMetrics;
use self::object_caches::ObjectCaches;
use self::options::{WebhookOptions, judge};
use self::serving::{LOG_EVERY, REGISTRATION, SECRET, SECRET_NAMESPACE, serve};

use crate::network_checker::{NetworkChecker, NetworkOptions};
use crate::validate_command::COMMAND;

mod flags;
mod judge;
mod memory_budget;
mod metrics;
mod object_caches;
mod options;
mod pruned_object;
mod review;
mod serving;

pub use review::{Review, Subject};

const NAME: &str = "validation-webhook-controller";
const PATH: &str = "/validate";
/// Copies addresses of new Clusters.
const MUTATE: &str = "/mutate";
/// An object may have 1.5 MiB in the store, and there may be two of them in a request.
const BODY: usize = 4 * 1024 * 1024;
const BETWEEN_LOOKUPS: Duration = Duration::from_secs(1);

/// Judges objects before the API server stores them.
#[derive(Debug)]
pub struct ValidationWebhook;

impl Controller for ValidationWebhook {
    // Its port may be taken on hosts that run other controllers.
    fn is_on_by_default(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["validation-webhook"]
    }

    fn flags(&self) -> &'static [Spec] {
        FLAGS
    }

    fn commands(&self) -> &'static [Command] {
        &[COMMAND]
    }

    fn configure(&self, values: &Values) -> Result<Configured, Vec<Problem>> {
        let options = judge(values)?;
        let mut warnings = Vec::new();
        if options.client_ca.is_none() {
            let mut warning = "The webhook has no --webhook-client-ca-file and cannot \
                authenticate callers: it dials no address and reads no credential for a review"
                .to_owned();
            if !options.address.is_loopback() {
                warning += "; other hosts can call it because of --webhook-bind-address";
            }
            warnings.push(warning);
        }
        Ok(Configured::run(Webhook { options }).with_warnings(warnings))
    }
}

struct Webhook {
    options: WebhookOptions,
}

const REGISTRATIONS: &str = "admissionregistration.k8s.io";
/// Rights that the controller uses under its own name. Its objects are watched by the process.
static RIGHTS: [Permission; 7] = [
    Permission::new("get", REGISTRATIONS, "validatingwebhookconfigurations").named(REGISTRATION),
    Permission::new("patch", REGISTRATIONS, "validatingwebhookconfigurations").named(REGISTRATION),
    Permission::new("get", REGISTRATIONS, "mutatingwebhookconfigurations").named(REGISTRATION),
    Permission::new("patch", REGISTRATIONS, "mutatingwebhookconfigurations").named(REGISTRATION),
    Permission::new("get", "platform.tkestack.io", "clustercredentials"),
    Permission::new("get", "", "secrets").in_namespace(SECRET_NAMESPACE).named(SECRET),
    Permission::new("patch", "", "secrets").in_namespace(SECRET_NAMESPACE).named(SECRET),
];
/// Rights that it does not need when the operator supplies a certificate.
const FOR_THE_SECRET: usize = 2;

impl Runner for Webhook {
    fn placement(&self) -> Placement {
        Placement::EveryReplica
    }

    fn service_account(&self) -> &'static str {
        NAME
    }

    fn permissions(&self) -> &'static [Permission] {
        match self.options.cert_dir {
            None => &RIGHTS,
            Some(_) => &RIGHTS[..RIGHTS.len() - FOR_THE_SECRET],
        }
    }

    fn manifest(&self) -> Option<&'static str> {
        Some("config/rbac/validation-webhook.yaml")
    }

    fn event_component(&self) -> &'static str {
        NAME
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move {
            // Each of its writes is of one version of its object, so no lease is needed.
            context.fence.open_for(context.fence.read_clocks(), Duration::MAX);
            let pages = context.stop.run_until_cancelled(self.pages_of(&context)).await;
            if let Some(pages) = pages {
                serve(&context, &self.options, pages?).await?;
            }
            context.fence.close();
            Ok(Stopped::default())
        })
    }
}

impl Webhook {
    async fn pages_of(&self, context: &Context) -> Result<Pages, Failure> {
        let mut options = self.options.clone();
        let own = own_addresses(context.clients.factory().server()).await;
        options.network.policy = options.network.policy.without(own);
        let network: NetworkOptions = options.network.clone();
        let known = ObjectCaches::new(context, network.secret_namespace.as_deref());
        let metrics = context.metrics(WebhookMetrics::new)?;
        let checker = NetworkChecker::new(network)?;
        let (api, has_ca) = (context.client.clone(), options.client_ca.is_some());
        let judge = Arc::new(Judge::new(options, known, checker, api, metrics));
        let access = if has_ca { Access::TrustedCertificate } else { Access::Authorized };
        let mutating = Arc::clone(&judge);
        let page = Page::new(PATH, access, move |request| Arc::clone(&judge).answer(request));
        let pages = Pages::new();
        pages.add(page.with_body_limit(BODY));
        let page = Page::new(MUTATE, access, move |request| Arc::clone(&mutating).mutate(request));
        pages.add(page.with_body_limit(BODY));
        Ok(pages)
    }
}

/// Where the management API itself is. Without its address nothing is judged: objects could have it dialled.
async fn own_addresses(server: &str) -> Vec<std::net::SocketAddr> {
    let Ok(uri) = server.parse::<http::Uri>() else { return Vec::new() };
    let Some(host) = uri.host() else { return Vec::new() };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(443);
    let failed = LogGate::new(LOG_EVERY);
    loop {
        match tokio::net::lookup_host((&*host, port)).await {
            Ok(found) => return found.collect(),
            Err(err) => {
                if failed.pass(Instant::now().into_std()).is_some() {
                    warn!(%err, "Cannot find the addresses of the API server, which the webhook \
                        must not dial; trying again");
                }
                sleep(BETWEEN_LOOKUPS).await;
            }
        }
    }
}
