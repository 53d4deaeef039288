//! [`Judge`]: judges one request of the API server.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Uri};
use pflag::GoDuration;
use serde_json::{Value, json};
use serving::{PageRequest, Reply, reply};
use tokio::time::{Instant, timeout_at};
use validation::{Environment, Findings, Kind, Operation, Question, validate};

use super::known::Known;
use super::metrics::WebhookMetrics;
use super::options::WebhookOptions;
use super::review::{Review, Subject};
use super::room::Room;
use crate::StoredObjects;
use crate::api::tke::CLUSTER_CREDENTIALS;
use crate::network::NetworkChecker;

/// What an API server waits unless it says so: its default.
const WAITS: Duration = Duration::from_secs(10);
/// The longest that it may be told to wait.
const WAITS_MOST: Duration = Duration::from_secs(30);

/// Judges requests, as many at once as there is room for.
pub(super) struct Judge {
    options: WebhookOptions,
    known: Known,
    network: NetworkChecker,
    /// The management API.
    api: kube::Client,
    metrics: WebhookMetrics,
    room: Room,
}

impl Judge {
    pub(super) fn new(
        options: WebhookOptions,
        known: Known,
        network: NetworkChecker,
        api: kube::Client,
        metrics: WebhookMetrics,
    ) -> Self {
        Self { options, known, network, api, metrics, room: Room::new() }
    }

    /// The page.
    pub(super) async fn answer(self: Arc<Self>, request: PageRequest) -> Reply {
        if request.method != Method::POST {
            let why = "an AdmissionReview is posted here";
            return reply::failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", why);
        }
        let end = Instant::now() + budget(&request.uri);
        let _room = match self.room.hold(&request.body, end).await {
            Ok(room) => room,
            Err(none) => {
                self.metrics.unreadable();
                return none.reply();
            }
        };
        match Review::read(&request.body) {
            Ok(review) => {
                let findings = match &review.subject {
                    Some(subject) => self.findings(subject, end).await,
                    None => Findings::default(),
                };
                self.metrics.judged(&findings);
                reply::json(StatusCode::OK, review.answer(&findings))
            }
            Err(why) => {
                self.metrics.unreadable();
                reply::failure(StatusCode::BAD_REQUEST, "BadRequest", why)
            }
        }
    }

    /// What is wrong with it. The network is asked only where nothing else is wrong, and never for
    /// a dry run.
    async fn findings(&self, subject: &Subject, end: Instant) -> Findings {
        let Subject { kind, object, old, is_dry_run } = subject;
        let operation = match old {
            None => Operation::Create,
            Some(old) => Operation::Update { old },
        };
        let mut environment = self.known.environment(*kind, object, &self.options.environment);
        if *kind == Kind::Cluster
            && old.as_ref().is_none_or(|old| credential(old) != credential(object))
        {
            self.add_credential(object, &mut environment, end).await;
        }
        let findings = validate(*kind, object, operation, &environment);
        let asks = findings.unchecked.iter().filter_map(|unchecked| unchecked.asks.clone());
        let questions: Vec<Question> = asks.filter(|asks| self.network.asks(asks)).collect();
        if *is_dry_run || questions.is_empty() || !findings.errors.is_empty() {
            return findings;
        }
        let objects = StoredObjects::new(Vec::new(), Some(self.api.clone()));
        environment.network_checks = self.network.answers(&questions, object, &objects, end).await;
        self.metrics.answered(&environment.network_checks, questions.len());
        let mut findings = validate(*kind, object, operation, &environment);
        let unanswered = findings.unchecked.iter().filter(|unchecked| {
            unchecked.asks.as_ref().is_some_and(|asks| questions.contains(asks))
        });
        let told = unanswered.map(|it| format!("{}: not checked: {}", it.field, it.question));
        findings.warnings.extend(told.collect::<Vec<_>>());
        findings
    }

    /// The ClusterCredential that a Cluster names: which of its fields are there, and none of them.
    async fn add_credential(&self, cluster: &Value, known: &mut Environment, end: Instant) {
        let name = credential(cluster);
        if !crate::object_name::is_name(name) {
            return;
        }
        let objects = StoredObjects::new(Vec::new(), Some(self.api.clone()));
        let read = timeout_at(end, objects.find(&CLUSTER_CREDENTIALS, name)).await;
        let found = match read {
            Ok(Ok(Some(text))) => {
                let whole: Value = serde_json::from_slice(&text).unwrap_or_default();
                crate::secret_data::wipe(text);
                vec![outline(name, &whole)]
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

/// That fields are there, without what they are.
fn outline(name: &str, credential: &Value) -> Value {
    let mut outline = json!({ "metadata": { "name": name } });
    for field in ["clientCert", "clientKey"] {
        if credential[field].as_str().is_some_and(|text| !text.is_empty()) {
            outline[field] = json!("eA==");
        }
    }
    outline
}

/// What may be used up of the time that the API server waits: some is for the way back.
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
