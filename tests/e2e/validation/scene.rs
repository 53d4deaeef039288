//! A webhook of the test's own, and the registration of any webhook.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster_health::webhook_registration::Authority;
use prometheus::Registry;
use serde_json::{Value, json};
use serving::{
    CertificateSource, Everyone, ListenerOptions, Pages, Server, ServingMetrics,
    SuppliedCertificate,
};
use tests::kubectl::Kubectl;
use tests::programs::workspace;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A day, for the validity of certificates.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// A listener of the test, until it is dropped.
pub(crate) struct Webhook {
    pub(crate) port: u16,
    /// PEM.
    pub(crate) bundle: String,
    _stop: DropGuard,
}

impl Webhook {
    /// Serves these pages with a certificate that is good for a day from `made` on.
    pub(crate) async fn start(pages: Pages, made: SystemTime) -> Self {
        let authority = Authority::make(made, DAY).unwrap();
        let leaf = authority.sign(&["127.0.0.1".to_owned()], made, DAY).unwrap();
        let supplied = SuppliedCertificate::new(&leaf.certificate, &leaf.key).unwrap();
        let options = ListenerOptions {
            name: "webhook",
            bind_address: [127, 0, 0, 1].into(),
            port: 0,
            certificate: CertificateSource::Supplied(supplied),
            ..ListenerOptions::default()
        };
        let server = Server::bind(&options).await.unwrap();
        let port = server.local_addrs().next().unwrap().port();
        let metrics = ServingMetrics::new(&Registry::new()).unwrap();
        let stop = CancellationToken::new();
        let end = stop.clone();
        tokio::spawn(async move { server.serve(pages, Arc::new(Everyone), &metrics, end).await });
        Self { port, bundle: authority.certificate().to_owned(), _stop: stop.drop_guard() }
    }
}

/// The way in which an API server calls a webhook.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) port: u16,
    pub(crate) path: &'a str,
    /// PEM; without one it is for the product to write it.
    pub(crate) bundle: Option<&'a str>,
    pub(crate) policy: &'a str,
    pub(crate) timeout: u32,
}

/// The shipped registration, with another way to the webhook.
pub(crate) fn registration(call: &Call<'_>) -> Value {
    let text = std::fs::read_to_string(workspace().join("config/webhook/validation.yaml")).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let mut found =
        objects.into_iter().find(|it| it["kind"] == "ValidatingWebhookConfiguration").unwrap();
    for webhook in found["webhooks"].as_array_mut().unwrap() {
        let url = format!("https://127.0.0.1:{}{}", call.port, call.path);
        webhook["clientConfig"] = json!({ "url": url });
        if let Some(bundle) = call.bundle {
            webhook["clientConfig"]["caBundle"] = json!(STANDARD.encode(bundle));
        }
        webhook["failurePolicy"] = json!(call.policy);
        webhook["timeoutSeconds"] = json!(call.timeout);
    }
    found
}

/// Puts a registration in the place of the one that is there.
pub(crate) fn register(kubectl: &Kubectl, registration: &Value) {
    let kind = "validatingwebhookconfiguration";
    kubectl.run(&format!("delete {kind} infra-controller-manager --ignore-not-found"));
    kubectl.create(registration);
}
