//! Change and write.

use std::time::Duration;

use kube_api::OwnWrite;
use serde_json::json;
use tokio::time::Instant;

use crate::testing::{ATTEMPT, Fault, Fields, Server, Status, WIDGETS, Widget, refusal};
use crate::{Draft, Object, ObjectClient, OpenWrites, Outcome, Schema, Why};

fn enlarge(_: &Object<Widget>, draft: &mut Draft<Widget>) {
    draft.body.spec.sizes.insert("m".into(), 2);
}

fn recount(_: &Object<Widget>, draft: &mut Draft<Widget>) {
    draft.body.spec.sizes.insert("s".into(), 7);
}

fn recolour(object: &mut serde_json::Value) {
    object["spec"]["colour"] = json!("blue");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_one_patch_and_keeps_what_the_type_does_not_know() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let written = client.change(&server.widget(), enlarge).await.unwrap();
    assert!(written.changed);
    assert_eq!(written.object.body.spec.sizes["m"], 2);
    assert_eq!(server.raw()["spec"], json!({"sizes": {"s": 1, "m": 2}, "colour": "red"}));
    assert_eq!(server.0.lock().seen.len(), 1, "the copy in the cache was new enough");
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::version(2)));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_comes_to_nothing_is_not_sent() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let written = client.change(&server.widget(), |_, _| {}).await.unwrap();
    assert!(!written.changed);
    let written = client.change_status(&server.widget(), |_, _| {}).await.unwrap();
    assert!(!written.changed);
    assert!(server.0.lock().seen.is_empty());
    assert!(client.own_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_the_change_is_made_again_on_the_new_object() {
    let server = Server::with_widget();
    server.fail(Fault::Overtaken(recolour));
    let client = server.client::<Widget>();
    let written = client.change(&server.widget(), enlarge).await.unwrap();
    assert!(written.changed);
    assert_eq!(server.raw()["spec"], json!({"sizes": {"s": 1, "m": 2}, "colour": "blue"}));
}

#[tokio::test(start_paused = true)]
async fn who_is_overtaken_five_times_gives_way_and_has_written_nothing() {
    let server = Server::with_widget();
    let repaint = |object: &mut serde_json::Value| {
        let turn = object["spec"]["turn"].as_u64().unwrap_or_default();
        object["spec"]["turn"] = json!(turn + 1);
    };
    for _ in 0..5 {
        server.fail(Fault::Overtaken(repaint));
    }
    let client = server.client::<Widget>();
    let error = client.change(&server.widget(), enlarge).await.unwrap_err();
    assert!(matches!(error.why, Why::Conflict { attempts: 5 }), "{error}");
    assert_eq!(error.outcome(), Outcome::NotWritten);
    assert_eq!(server.writes(), 5);
    assert_eq!(server.raw()["spec"]["sizes"], json!({"s": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_settled_by_a_read_and_nothing_is_sent_twice() {
    let server = Server::with_widget();
    server.fail(Fault::LostAnswer);
    let client = server.client::<Widget>();
    let written = client.change(&server.widget(), enlarge).await.unwrap();
    assert!(written.changed, "ours is what the read shows");
    assert_eq!(server.writes(), 1);
    // The cache must show it, although no answer told its version.
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::version(2)));
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_is_sent_again() {
    let server = Server::with_widget();
    server.fail(Fault::LostRequest);
    let written = server.client::<Widget>().change(&server.widget(), enlarge).await.unwrap();
    assert!(written.changed);
    assert_eq!(server.writes(), 2);
    assert_eq!(server.raw()["spec"]["sizes"]["m"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_may_yet_be_carried_out_is_not_denied_by_a_later_refusal() {
    let server = Server::with_widget();
    server.fail(Fault::LostRequest);
    let (code, body) = refusal(403, "Forbidden", "a");
    server.fail(Fault::Answered(code, body));
    let client = server.client::<Widget>();
    let error = client.change(&server.widget(), enlarge).await.unwrap_err();
    assert!(matches!(&error.why, Why::Open { last, .. } if matches!(**last, Why::Refused { .. })));
    assert_eq!(error.outcome(), Outcome::Unknown);
    assert!(error.settled_at().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_the_object_has_another_version_is_final() {
    let server = Server::with_widget();
    server.fail(Fault::LostRequest);
    let (code, body) = refusal(403, "Forbidden", "a");
    server.fail(Fault::Answered(code, body));
    let client = server.client::<Widget>();
    let stale = server.widget();
    server.0.lock().change_as_another(recolour);
    let error = client.change(&stale, enlarge).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotWritten, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_read_after_the_servers_own_limit_ends_the_doubt() {
    let server = Server::with_widget();
    server.fail(Fault::LostAtTheLimit);
    let (code, body) = refusal(403, "Forbidden", "a");
    server.fail(Fault::Answered(code, body));
    let client = server.client::<Widget>();
    let error = client.change(&server.widget(), enlarge).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotWritten, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_stops_can_wait_until_nothing_of_it_can_be_carried_out_any_more() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let began = Instant::now();
    client.clone().open_writes().settled().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing is open");

    server.fail(Fault::LostAnswer);
    server.0.lock().read_faults.push_back(Some(Fault::NotSent));
    client.change(&server.widget(), enlarge).await.unwrap_err();
    let began = Instant::now();
    client.clone().open_writes().settled().await;
    assert!(began.elapsed() > ATTEMPT / 2, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_that_cannot_be_read_stays_unknown() {
    let server = Server::with_widget();
    server.fail(Fault::LostAnswer);
    server.0.lock().read_faults.push_back(Some(Fault::NotSent));
    let client = server.client::<Widget>();
    let error = client.change(&server.widget(), enlarge).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_never_sent_is_repeated_only_by_the_caller() {
    let server = Server::with_widget();
    server.fail(Fault::NotSent);
    let client = server.client::<Widget>();
    let error = client.change(&server.widget(), enlarge).await.unwrap_err();
    assert_eq!((error.outcome(), error.label()), (Outcome::NotWritten, "not_sent"));
    assert_eq!(server.0.lock().seen.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_same_name_is_another_object() {
    let server = Server::with_widget();
    let old = server.widget::<Widget>();
    server.0.lock().change_as_another(|object| object["metadata"]["uid"] = json!("u9"));
    let client = server.client::<Widget>();
    let error = client.change(&old, enlarge).await.unwrap_err();
    assert!(matches!(error.why, Why::Gone), "{error}");
    assert_eq!(server.raw()["spec"]["sizes"], json!({"s": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_foreign_404_does_not_mean_that_the_object_is_gone() {
    let server = Server::with_widget();
    server.fail(Fault::Answered(404, json!("404 page not found")));
    let client = server.client::<Widget>();
    let error = client.change(&server.widget(), enlarge).await.unwrap_err();
    assert!(matches!(error.why, Why::Refused { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_decoded_counts_as_written_and_is_noted() {
    let server = Server::with_widget();
    let odd = json!({"metadata": {"namespace": "ns", "name": "a", "uid": "u1",
        "resourceVersion": "5"}, "spec": {"sizes": "hunter2"}});
    server.fail(Fault::Answered(200, odd));
    let client = server.client::<Widget>();
    let error = client.change(&server.widget(), enlarge).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Written, "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::version(5)));
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_on_its_own_path() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let widget = server.widget();
    let written = client.change_status(&widget, |_, status| status.ready = true);
    assert!(written.await.unwrap().object.status.ready);
    let seen = server.0.lock().seen.clone();
    assert!(seen[0].1.contains("/widgets/a/status?"), "{}", seen[0].1);
    assert_eq!(server.raw()["spec"]["colour"], "red");
}

#[tokio::test(start_paused = true)]
async fn writes_through_another_client_are_own_writes_too() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let other = client.through(server.kube());
    other.change_status(&server.widget(), |_, status| status.ready = true).await.unwrap();
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::version(2)));
}

#[tokio::test(start_paused = true)]
async fn writes_are_noted_only_once_somebody_waits_for_them() {
    let server = Server::with_widget();
    let client = ObjectClient::<Widget>::new(server.kube(), WIDGETS, "test", ATTEMPT);
    client.change(&server.widget(), enlarge).await.unwrap();
    assert!(client.own_writes().is_empty());
    client.change(&server.widget(), |_, draft| draft.body.spec.sizes.clear()).await.unwrap();
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::version(3)));
}

#[tokio::test(start_paused = true)]
async fn clients_that_share_their_open_writes_are_settled_together() {
    let server = Server::with_widget();
    let open = OpenWrites::default();
    let [one, _other] = [(); 2].map(|()| server.client::<Widget>().noting(&open));
    server.fail(Fault::LostAnswer);
    server.0.lock().read_faults.push_back(Some(Fault::NotSent));
    one.change(&server.widget(), enlarge).await.unwrap_err();
    let began = Instant::now();
    open.settled().await;
    assert!(began.elapsed() > ATTEMPT / 2, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_change_from_a_cache_that_lags_begins_with_the_newest_answer() {
    let server = Server::with_widget();
    let (client, cached) = (server.client::<Widget>(), server.widget());
    client.change(&cached, enlarge).await.unwrap();
    let ready = client.change_status(&cached, |_, status| status.ready = true).await.unwrap();
    assert_eq!(ready.object.body.spec.sizes["m"], 2);
    assert!(!client.change(&cached, enlarge).await.unwrap().changed);
    assert_eq!(server.0.lock().seen.len(), 2, "two writes, and no conflict of our own making");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_server_does_not_have_any_more_costs_one_conflict() {
    let server = Server::with_widget();
    let (client, cached) = (server.client::<Widget>(), server.widget());
    let before = server.raw();
    client.change(&cached, enlarge).await.unwrap();
    // The server's store was restored from a copy.
    server.0.lock().objects.insert("ns/a".into(), before);
    client.change_status(&cached, |_, status| status.ready = true).await.unwrap();
    assert_eq!(server.writes(), 1 + 2, "a conflict, and then the server's own copy");
    assert_eq!(server.raw()["spec"]["sizes"], json!({"s": 1}));
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_another_object_of_the_same_name_is_not_taken() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    client.change(&server.widget(), enlarge).await.unwrap();
    server.0.lock().change_as_another(|object| object["metadata"]["uid"] = json!("u9"));
    client.change(&server.widget(), recount).await.unwrap();
    assert_eq!(server.0.lock().seen.len(), 2);
}

/// A kind that keeps only the sizes of its spec.
#[derive(Debug)]
enum Reduced {}

impl Schema for Reduced {
    type Body = Fields;
    type Status = Status;
    const KEPT_OF_SPEC: Option<&'static [&'static str]> = Some(&["sizes"]);
}

/// rule:unneeded-secrets-are-dropped
#[tokio::test(start_paused = true)]
async fn a_write_erases_nothing_of_what_is_not_kept() {
    let server = Server::with_widget();
    let client = server.client::<Reduced>();
    let widget = client.read("ns/a").await.unwrap().unwrap();
    assert!(!widget.whole().to_string().contains("red"));
    let enlarge = |_: &Object<Reduced>, draft: &mut Draft<Reduced>| {
        draft.body.spec.sizes.insert("m".into(), 2);
    };
    client.change(&widget, enlarge).await.unwrap();
    assert_eq!(server.raw()["spec"], json!({"sizes": {"s": 1, "m": 2}, "colour": "red"}));
}
