//! A status that several programs write, as the server answers when they disagree.

use api_server_double::{ApiServer, Asked, Reply};
use events::EventMetrics;
use prometheus::Registry;
use serde_json::json;

use super::*;
use crate::engine::gauges::{Exposed, Metrics};
use crate::engine::tests::scene::KIND;

const OURS: &str = "infra-controller-manager/Healthy";
const THEIRS: &str = "ControlPlaneHealthy";

struct Shared(MemberId);

impl Pending for Shared {
    fn flavour(&self) -> &'static str {
        "fake"
    }

    fn resource(&self) -> &'static Resource {
        &KIND
    }

    fn object(&self) -> &MemberId {
        &self.0
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn write(&self, _: health::Moment) -> Option<StatusWrite> {
        let conditions = json!([{"type": OURS}, {"type": THEIRS}]);
        Some(StatusWrite::Shared(json!({"status": {"conditions": conditions}})))
    }
}

/// A server on which other field managers own the conditions of these types.
fn server(owned: &'static [&'static str]) -> ApiServer {
    ApiServer::new(move |asked| {
        if asked.path().contains("/events") {
            return Reply::Json(201, asked.json());
        }
        let sent = types(asked);
        let is_refused = |kind: &&&str| sent.iter().any(|it| it == **kind);
        let refused = owned.iter().filter(is_refused).map(|kind| {
            let field = format!(".status.conditions[type=\"{kind}\"].status");
            json!({"reason": "FieldManagerConflict", "field": field})
        });
        let causes: Vec<_> = refused.collect();
        if causes.is_empty() || asked.query().contains("force=true") {
            let mut object = asked.json();
            object["metadata"]["resourceVersion"] = "2".into();
            return Reply::Json(200, object);
        }
        Reply::Json(
            409,
            json!({"kind": "Status", "reason": "Conflict", "details": {"causes": causes}}),
        )
    })
}

fn types(asked: &Asked) -> Vec<String> {
    let conditions = asked.json()["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().map(|it| it["type"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The applies of two writes: whether each was forced, and the conditions in it; and the number of events.
async fn written(owned: &'static [&'static str]) -> (Vec<(bool, Vec<String>)>, usize) {
    let (server, metrics) = (server(owned), Registry::new());
    let limit = Duration::from_secs(5);
    let client = ObjectClient::new(server.client(), KIND.clone(), "fake", limit);
    let clients = HashMap::from([(KindKey::from(&KIND), client)]);
    let event_metrics = EventMetrics::new(&metrics).unwrap();
    let (recorder, _broadcaster) = events::start(server.client(), "fake", "fake", event_metrics);
    let writer = Writer::new(clients, None, Ownership::default(), recorder);
    let exposed = Exposed { per_cluster: false, audit: false };
    let counters = Metrics::new(&metrics, exposed).unwrap().counters;
    let object = Shared(MemberId { uid: "u".into(), key: "ns/a".into() });
    for _ in 0..2 {
        let outcome = writer.write(&object, &counters).await;
        assert!(matches!(outcome.written, Written::Done));
    }
    sleep(Duration::from_secs(5)).await;
    let asked = server.asked();
    let (events, applies): (Vec<_>, Vec<_>) =
        asked.iter().partition(|asked| asked.path().contains("/events"));
    let applies = applies.iter().map(|it| (it.query().contains("force=true"), types(it)));
    (applies.collect(), events.len())
}

/// rule:a-shared-status-is-shared
#[tokio::test(start_paused = true)]
async fn what_others_own_is_left_out_and_told_once_and_what_is_ours_by_its_name_is_taken_back() {
    let (ours, theirs) = (OURS.to_owned(), THEIRS.to_owned());
    let (all, rest) = (vec![ours.clone(), theirs.clone()], vec![ours]);
    let unforced = (false, all.clone());
    assert_eq!(written(&[]).await, (vec![unforced.clone(), unforced.clone()], 0));
    let left_out = vec![unforced.clone(), (false, rest.clone()), (false, rest.clone())];
    assert_eq!(written(&[THEIRS]).await, (left_out, 1));
    let taken_back = vec![unforced.clone(), (true, all.clone()), unforced.clone(), (true, all)];
    assert_eq!(written(&[OURS]).await, (taken_back, 0));
    let both = vec![unforced, (true, rest.clone()), (false, rest.clone()), (true, rest)];
    assert_eq!(written(&[OURS, THEIRS]).await, (both, 1));
}
