//! The listener of the webhook: bound once there is a certificate, and kept in order with the API
//! server until the end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::webhook_registration::{Keeper, Leaf, Lives, Round, Wanted};
use kube_api::Resource;
use manager::{Context, Failure};
use resilience::{LogGate, wall_now};
use serving::{
    CertificateSource, ClientCertificates, Endpoints, Everyone, ListenerOptions, Pages, Server,
    SuppliedCertificate,
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{error, info, warn};

use super::options::WebhookOptions;

/// Names of the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration in `config/webhook`.
pub(super) const REGISTRATION: &str = "infra-controller-manager";
/// Where its authority is kept.
pub(super) const SECRET_NAMESPACE: &str = "kube-system";
pub(super) const SECRET: &str = "infra-controller-manager-webhook";
const SECRETS: Resource = Resource::namespaced("", "v1", "Secret", "secrets");
const VALIDATING: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
);
const MUTATING: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
);
/// How often secret and registration are looked at.
const ROUND: Duration = Duration::from_secs(5);
/// Between the first rounds, until there is a certificate.
const FIRST: Duration = Duration::from_secs(1);
pub(super) const LOG_EVERY: Duration = Duration::from_secs(600);

/// Serves `pages` until the end of the run.
///
/// # Errors
/// The listener ended by itself, or a certificate of ours cannot be used.
pub(super) async fn serve(
    context: &Context,
    options: &WebhookOptions,
    pages: Pages,
) -> Result<(), Failure> {
    let mut keeping = Keeping::new(context, options);
    let Some(first) = context.stop.run_until_cancelled(keeping.first(options)).await else {
        return Ok(());
    };
    let (certificate, supplied) = first?;
    let options = listener(options, certificate);
    let Some(server) = context.stop.run_until_cancelled(bound(context, &options)).await else {
        return Ok(());
    };
    for address in server.local_addrs() {
        info!(%address, "Serving the validating webhook");
    }
    let serving = server.serve(pages, Arc::new(Everyone), &context.listeners, context.stop.clone());
    tokio::select! {
        () = serving => {
            let ended = || Failure::new("the listener of the webhook ended");
            if context.stop.is_cancelled() { Ok(()) } else { Err(ended()) }
        }
        never = keeping.run(supplied) => match never {},
    }
}

/// Tries until the port is ours. That it is not makes the process unready, so that no Service leads
/// here, and stops nothing else (`rule:the-webhook-helps-and-never-hurts`).
async fn bound(context: &Context, options: &ListenerOptions) -> Server {
    let is_bound = Arc::new(AtomicBool::new(false));
    let shown = Arc::clone(&is_bound);
    context.health.add("validation-webhook", Endpoints::READY, move || {
        let is_bound = shown.load(Ordering::Relaxed);
        if is_bound { Ok(()) } else { Err("the webhook does not listen yet".to_owned()) }
    });
    let failed = LogGate::new(LOG_EVERY);
    loop {
        match Server::bind(options).await {
            Ok(server) => {
                is_bound.store(true, Ordering::Relaxed);
                return server;
            }
            Err(err) => {
                if failed.pass(Instant::now().into_std()).is_some() {
                    error!(%err, "Cannot serve the validating webhook; trying again");
                }
                sleep(ROUND).await;
            }
        }
    }
}

fn listener(options: &WebhookOptions, certificate: CertificateSource) -> ListenerOptions {
    ListenerOptions {
        name: "webhook",
        port_flag: "--webhook-bind-address",
        bind_address: options.address,
        port: options.port,
        certificate,
        client_certificates: match &options.client_ca {
            Some(file) => ClientCertificates::Of(file.clone()),
            None => ClientCertificates::Ignored,
        },
        ..ListenerOptions::default()
    }
}

fn files(folder: &Path) -> CertificateSource {
    CertificateSource::Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") }
}

/// The rounds of the keeper and their log.
struct Keeping {
    keeper: Keeper,
    failed: LogGate,
    /// The last reported state.
    is_registered: Option<bool>,
}

impl Keeping {
    fn new(context: &Context, options: &WebhookOptions) -> Self {
        let secret = format!("{SECRET_NAMESPACE}/{SECRET}");
        let wanted = Wanted {
            registration: REGISTRATION.to_owned(),
            secret: options.cert_dir.is_none().then_some(secret),
            failure_policy: options.failure_policy,
            lives: Lives::default(),
        };
        let registrations = vec![context.objects(VALIDATING), context.objects(MUTATING)];
        let keeper = Keeper::new(context.objects(SECRETS), registrations, wanted);
        Self { keeper, failed: LogGate::new(LOG_EVERY), is_registered: None }
    }

    /// The certificate to begin with, tried until there is one.
    async fn first(
        &mut self,
        options: &WebhookOptions,
    ) -> Result<(CertificateSource, Option<SuppliedCertificate>), Failure> {
        if let Some(folder) = &options.cert_dir {
            return Ok((files(folder), None));
        }
        loop {
            if let Some(Leaf { certificate, key, .. }) = self.round().await {
                let supplied =
                    SuppliedCertificate::new(&certificate, &key).map_err(Failure::new)?;
                return Ok((CertificateSource::Supplied(supplied.clone()), Some(supplied)));
            }
            sleep(FIRST).await;
        }
    }

    /// Repeats the rounds until it is cancelled.
    async fn run(&mut self, supplied: Option<SuppliedCertificate>) -> std::convert::Infallible {
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            let (leaf, supplied) = (self.round().await, supplied.as_ref());
            let Some((leaf, supplied)) = leaf.zip(supplied) else { continue };
            if let Err(err) = supplied.replace(&leaf.certificate, &leaf.key) {
                error!(%err, "Cannot load the new serving certificate of the webhook");
            }
        }
    }

    async fn round(&mut self) -> Option<Leaf> {
        match self.keeper.round(wall_now().into()).await {
            Ok(Round { is_registered, leaf }) => {
                if self.failed.reset() {
                    info!("The webhook configurations and their CA bundle are up to date again");
                }
                if self.is_registered.replace(is_registered) != Some(is_registered) {
                    log_registration(is_registered);
                }
                leaf
            }
            Err(err) => {
                if self.failed.pass(Instant::now().into_std()).is_some() {
                    warn!(%err, "Cannot update the webhook configurations or their CA bundle; trying again");
                }
                None
            }
        }
    }
}

fn log_registration(is_registered: bool) {
    if is_registered {
        info!(
            registration = REGISTRATION,
            "ValidatingWebhookConfiguration and MutatingWebhookConfiguration are in place"
        );
    } else {
        warn!(
            registration = REGISTRATION,
            "ValidatingWebhookConfiguration or MutatingWebhookConfiguration not found; apply config/webhook"
        );
    }
}
