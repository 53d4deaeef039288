//! [`Judge`]: judges one request of the API server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use flags::GoDuration;
use http::{Method, StatusCode, Uri};
use resilience::LogGate;
use serde_json::{Value, json};
use serving::{PageRequest, PeerCertificate, Reply, reply};
use tokio::time::{Instant, timeout_at};
use tracing::warn;
use validation::{Environment, Findings, Kind, Operation, Question, validate};

use super::memory_budget::{MemoryBudget, OverBudget, Reserved};
use super::metrics::WebhookMetrics;
use super::object_caches::ObjectCaches;
use super::options::WebhookOptions;
use super::review;
use super::review::{Review, Subject};
use super::serving::LOG_EVERY;
use crate::api::secret::wipe_json;
use crate::api::tke::CLUSTER_CREDENTIALS;
use crate::credential_policy::may_ask;
use crate::network_checker::NetworkChecker;
use crate::{Asker, StoredObjects};

/// Default timeout of an API server for a webhook.
const WAITS: Duration = Duration::from_secs(10);
/// The longest that it may be told to wait.
const WAITS_MOST: Duration = Duration::from_secs(30);

/// Questions of the network about one object: a Cluster of our schema has 64 machines and 32 addresses.
const MOST_QUESTIONS: usize = 128;
/// Why the others are not asked.
const TOO_MANY: &str = "the object needs too many network checks";

/// Judges requests, as many at once as the memory budget allows.
pub(super) struct Judge {
    options: WebhookOptions,
    caches: ObjectCaches,
    network: NetworkChecker,
    /// The management API.
    api: kube::Client,
    metrics: WebhookMetrics,
    memory: MemoryBudget,
    busy_log: LogGate,
}

/// Other requests had all turns to ask the network.
struct Busy;

impl Judge {
    pub(super) fn new(
        options: WebhookOptions,
        caches: ObjectCaches,
        network: NetworkChecker,
        api: kube::Client,
        metrics: WebhookMetrics,
    ) -> Self {
        let (memory, busy_log) = (MemoryBudget::new(), LogGate::new(LOG_EVERY));
        Self { options, caches, network, api, metrics, memory, busy_log }
    }

    /// The page that judges objects.
    pub(super) async fn answer(self: Arc<Self>, request: PageRequest) -> Reply {
        let end = Instant::now() + budget(&request.uri);
        let (review, _reserved) = match self.review(&request, end).await {
            Ok(review) => review,
            Err(refusal) => return refusal,
        };
        let findings = match &review.subject {
            Some(subject) => {
                let asker = self.asker(&request, subject);
                self.findings(subject, asker, end).await
            }
            None => Ok(Findings::default()),
        };
        let Ok(findings) = findings else { return self.busy() };
        self.metrics.judged(&findings);
        reply::json(StatusCode::OK, review.answer(&findings))
    }

    /// The page that copies the addresses of new Clusters to where the API server keeps them.
    pub(super) async fn mutate(self: Arc<Self>, request: PageRequest) -> Reply {
        let end = Instant::now() + budget(&request.uri);
        let (review, _reserved) = match self.review(&request, end).await {
            Ok(review) => review,
            Err(refusal) => return refusal,
        };
        let patch = review.subject.as_ref().and_then(review::patch);
        reply::json(StatusCode::OK, review.patched(patch.as_ref()))
    }

    /// The review in a request, with its reserved memory.
    async fn review(
        &self,
        request: &PageRequest,
        end: Instant,
    ) -> Result<(Review, Reserved<'_>), Reply> {
        if request.method != Method::POST {
            let why = "an AdmissionReview is posted here";
            return Err(reply::failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", why));
        }
        let memory = self.memory.reserve(&request.body, end).await.map_err(|none| {
            self.metrics.unreadable();
            none.reply()
        })?;
        let review = Review::read(&request.body).map_err(|why| {
            self.metrics.unreadable();
            reply::failure(StatusCode::BAD_REQUEST, "BadRequest", why)
        })?;
        Ok((review, memory))
    }

    /// For whom the network would be asked.
    fn asker(&self, request: &PageRequest, subject: &Subject) -> Asker {
        let PeerCertificate::Trusted(_) = request.peer.certificate else {
            return Asker::UnauthenticatedReview;
        };
        let is_new_cluster = subject.kind == Kind::Cluster && subject.old.is_none();
        let name = subject.object["metadata"]["name"].as_str().unwrap_or_default();
        let name_is_taken = is_new_cluster && self.caches.has_cluster(name).unwrap_or(true);
        Asker::AuthenticatedReview { name_is_taken }
    }

    /// All questions of the network that may be asked at once are those of other requests: the failure policy of the
    /// registration says what becomes of the object.
    fn busy(&self) -> Reply {
        self.metrics.busy();
        if self.busy_log.pass(Instant::now().into_std()).is_some() {
            warn!(
                "Too many reviews wait for network checks, so the webhook refuses reviews; \
                 --webhook-failure-policy decides about their objects"
            );
        }
        OverBudget::Taken.reply()
    }

    /// Errors of the object. The network is asked only where nothing else is wrong, and never for
    /// a dry run.
    async fn findings(
        &self,
        subject: &Subject,
        asker: Asker,
        end: Instant,
    ) -> Result<Findings, Busy> {
        let Subject { kind, object, old, is_dry_run } = subject;
        let operation = match old {
            None => Operation::Create,
            Some(old) => Operation::Update { old },
        };
        let mut environment = self.caches.environment(*kind, object, &self.options.environment);
        if *kind == Kind::Cluster
            && may_ask(asker).is_ok()
            && old.as_ref().is_none_or(|old| credential(old) != credential(object))
        {
            self.add_credential(object, &mut environment, end).await;
        }
        let findings = validate(*kind, object, operation, &environment);
        let asks = findings.unchecked.iter().filter_map(|unchecked| unchecked.asks.clone());
        let questions: BTreeSet<Question> = asks.filter(|asks| self.network.asks(asks)).collect();
        let questions: Vec<Question> = questions.into_iter().take(MOST_QUESTIONS).collect();
        if *is_dry_run || questions.is_empty() || !findings.errors.is_empty() {
            return Ok(findings);
        }
        let objects = StoredObjects::new(Vec::new(), Some(self.api.clone()));
        let answers = self.network.answers(asker, &questions, object, &objects, end).await;
        if answers.is_busy {
            return Err(Busy);
        }
        environment.network_checks = answers.known;
        self.metrics.answered(&environment.network_checks, questions.len());
        let mut findings = validate(*kind, object, operation, &environment);
        let unanswered = findings.unchecked.iter().filter_map(|unchecked| {
            let asked = unchecked.asks.as_ref().filter(|asks| self.network.asks(asks))?;
            let why = answers.not_checked.iter().find(|(question, _)| question == asked);
            let why = why.map_or(TOO_MANY, |(_, why)| why);
            let text = format!("{}: not checked: {}: {why}", unchecked.field, unchecked.question);
            Some(kube_api::printable(&text))
        });
        let told: Vec<String> = unanswered.collect();
        findings.warnings.extend(told);
        Ok(findings)
    }

    /// The ClusterCredential that a Cluster names: which of its fields are there, and none of them.
    async fn add_credential(&self, cluster: &Value, known: &mut Environment, end: Instant) {
        let name = credential(cluster);
        if !crate::api::is_name(name) {
            return;
        }
        let objects = StoredObjects::new(Vec::new(), Some(self.api.clone()));
        let read = timeout_at(end, objects.find(&CLUSTER_CREDENTIALS, name)).await;
        let found = match read {
            Ok(Ok(Some(text))) => {
                let mut whole: Value = serde_json::from_slice(&text).unwrap_or_default();
                transport::wipe(text);
                let outline = outline(name, &whole);
                wipe_json(&mut whole);
                vec![Arc::new(outline)]
            }
            Ok(Ok(None)) => Vec::new(),
            // It is not known, so nothing is refused for it.
            Ok(Err(_)) | Err(_) => return,
        };
        known.cluster_credentials = Some(found);
    }
}

/// The name of the ClusterCredential that a Cluster names.
fn credential(cluster: &Value) -> &str {
    cluster["spec"]["clusterCredentialRef"]["name"].as_str().unwrap_or_default()
}

/// Paths of the fields, without their values.
fn outline(name: &str, credential: &Value) -> Value {
    let mut outline = json!({ "metadata": { "name": name } });
    for field in ["clientCert", "clientKey"] {
        if credential[field].as_str().is_some_and(|text| !text.is_empty()) {
            outline[field] = json!("eA==");
        }
    }
    outline
}

/// Usable part of the API server's timeout: the rest is for the way back.
fn budget(uri: &Uri) -> Duration {
    let given = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "timeout")
        .and_then(|(_, text)| text.parse::<GoDuration>().ok());
    let waits = given.map_or(WAITS, |given| given.to_std().min(WAITS_MOST));
    waits * 4 / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_there_before_the_api_server_stops_waiting() {
        for (uri, expected) in [
            ("/validate?timeout=5s", 4),
            ("/validate?a=b&timeout=10s", 8),
            ("/validate", 8),
            ("/validate?timeout=soon", 8),
            ("/validate?timeout=1h", 24),
        ] {
            assert_eq!(budget(&uri.parse().unwrap()), Duration::from_secs(expected), "{uri}");
        }
    }

    #[test]
    fn nothing_of_a_credential_is_known_but_what_it_has() {
        let credential = json!({"metadata": {"name": "x"}, "token": "planted",
            "clientCert": "planted", "clientKey": ""});
        let expected = json!({"metadata": {"name": "cc"}, "clientCert": "eA=="});
        assert_eq!(outline("cc", &credential), expected);
        assert_eq!(outline("cc", &Value::Null), json!({"metadata": {"name": "cc"}}));
    }
}
