//! Finalizers, creation, deletion, apply.

use kube_api::OwnWrite;
use serde_json::json;

use crate::testing::{Fault, Server, Widget};
use crate::{Apply, Created, Deletion, Draft, Dynamic, Merge, Outcome, Part, Why};

const OURS: &str = "example.org/ours";

fn hold(server: &Server, finalizers: &[&str]) {
    let finalizers = json!(finalizers);
    server.0.lock().change_as_another(|object| object["metadata"]["finalizers"] = finalizers);
}

fn mark_deleted(server: &Server) {
    server.0.lock().change_as_another(|object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    });
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_added_once_and_the_others_stay() {
    let server = Server::with_widget();
    hold(&server, &["other"]);
    let client = server.client::<Widget>();
    assert!(client.add_finalizer(&server.widget(), OURS).await.unwrap().changed);
    assert!(!client.add_finalizer(&server.widget(), OURS).await.unwrap().changed);
    assert_eq!(server.raw()["metadata"]["finalizers"], json!(["other", OURS]));
}

#[tokio::test(start_paused = true)]
async fn nothing_new_is_built_on_an_object_that_is_being_deleted() {
    let server = Server::with_widget();
    hold(&server, &["other"]);
    let stale = server.widget::<Widget>();
    mark_deleted(&server);
    let client = server.client::<Widget>();
    // The stale copy does not show the deletion; the server's conflict leads to it.
    let error = client.add_finalizer(&stale, OURS).await.unwrap_err();
    assert!(matches!(error.why, Why::Deleting), "{error}");
    assert_eq!(server.raw()["metadata"]["finalizers"], json!(["other"]));
}

#[tokio::test(start_paused = true)]
async fn only_our_own_finalizer_is_removed_even_when_another_came_meanwhile() {
    let server = Server::with_widget();
    hold(&server, &["other", OURS]);
    let stale = server.widget::<Widget>();
    hold(&server, &["other", OURS, "late"]);
    let client = server.client::<Widget>();
    assert!(client.remove_finalizer(&stale, OURS).await.unwrap().unwrap().changed);
    assert_eq!(server.raw()["metadata"]["finalizers"], json!(["other", "late"]));
}

#[tokio::test(start_paused = true)]
async fn removing_the_last_finalizer_ends_the_object_and_the_cache_must_show_that() {
    let server = Server::with_widget();
    hold(&server, &[OURS]);
    mark_deleted(&server);
    let last = server.widget::<Widget>();
    let client = server.client::<Widget>();
    client.remove_finalizer(&last, OURS).await.unwrap();
    assert!(server.0.lock().objects.is_empty());
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::deleted("u1".into())));
    assert!(client.remove_finalizer(&last, OURS).await.unwrap().is_none(), "gone is done");
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_time_of_grace_outlives_its_last_finalizer() {
    let server = Server::with_widget();
    hold(&server, &[OURS]);
    server.0.lock().change_as_another(|object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    });
    let last = server.widget::<Widget>();
    let client = server.client::<Widget>();
    let there = client.remove_finalizer(&last, OURS).await.unwrap().unwrap().object;
    assert!(there.metadata.finalizers.is_empty() && !there.metadata.has_ended());
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::version(4)));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_the_removal_of_the_last_finalizer_is_no_error() {
    let server = Server::with_widget();
    hold(&server, &[OURS]);
    mark_deleted(&server);
    let last = server.widget::<Widget>();
    server.fail(Fault::LostAnswer);
    assert!(server.client::<Widget>().remove_finalizer(&last, OURS).await.unwrap().is_none());
}

fn draft() -> Draft<Dynamic> {
    let mut draft = Draft::new(json!({"spec": {"colour": "green"}}).as_object().unwrap().clone());
    draft.metadata.labels.insert("made-by".into(), "us".into());
    draft
}

#[tokio::test(start_paused = true)]
async fn a_new_object_says_what_it_is() {
    let server = Server::default();
    let client = server.client::<Dynamic>();
    let Created::New(made) = client.create_if_absent("ns/a", &draft()).await.unwrap() else {
        panic!("there was none");
    };
    assert_eq!(&*made.metadata.key, "ns/a");
    let raw = server.raw();
    assert_eq!((&raw["apiVersion"], &raw["kind"]), (&json!("example.org/v1"), &json!("Widget")));
    assert_eq!(raw["metadata"]["labels"], json!({"made-by": "us"}));
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::version(1)));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_there_is_left_as_it_is() {
    let server = Server::with_widget();
    let client = server.client::<Dynamic>();
    let error = client.create("ns/a", &draft()).await.unwrap_err();
    assert!(matches!(error.why, Why::Exists), "{error}");
    let there = client.create_if_absent("ns/a", &draft()).await.unwrap();
    assert!(matches!(&there, Created::Existing(object) if object.body["spec"]["colour"] == "red"));
}

#[tokio::test(start_paused = true)]
async fn a_creation_of_unknown_outcome_is_looked_for_and_repeated_when_it_was_not_made() {
    let server = Server::default();
    server.fail(Fault::LostAnswer);
    let made = server.client::<Dynamic>().create_if_absent("ns/a", &draft()).await.unwrap();
    assert!(matches!(made, Created::Existing(_)));
    assert_eq!(server.writes(), 1);

    let server = Server::default();
    server.fail(Fault::LostRequest);
    let made = server.client::<Dynamic>().create_if_absent("ns/a", &draft()).await.unwrap();
    assert!(matches!(made, Created::New(_)));

    let server = Server::default();
    for _ in 0..3 {
        server.fail(Fault::LostRequest);
    }
    let error = server.client::<Dynamic>().create_if_absent("ns/a", &draft()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown);
    assert_eq!(server.writes(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_of_the_object_that_was_seen() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let old = server.widget::<Widget>();
    server.0.lock().change_as_another(|object| object["metadata"]["uid"] = json!("u9"));
    let deletion = client.delete(&old).await.unwrap();
    assert!(matches!(deletion, Deletion::Gone), "the one that was seen is gone");
    assert_eq!(server.raw()["metadata"]["uid"], "u9", "its successor is not");
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::deleted("u1".into())));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_takes_a_later_version_of_the_object_too() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let old = server.widget::<Widget>();
    server.0.lock().change_as_another(|object| object["spec"]["colour"] = json!("blue"));
    let deletion = client.delete(&old).await.unwrap();
    assert!(matches!(deletion, Deletion::Gone));
    assert!(server.0.lock().objects.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_finalizers_hold_is_pending() {
    let server = Server::with_widget();
    hold(&server, &["other"]);
    let client = server.client::<Widget>();
    let deletion = client.delete(&server.widget()).await.unwrap();
    assert!(matches!(deletion, Deletion::Pending(object) if object.metadata.deleting()));
    assert_eq!(client.own_writes().last("ns/a"), Some(OwnWrite::version(3)));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_unknown_outcome_is_looked_for() {
    let server = Server::with_widget();
    server.fail(Fault::LostAnswer);
    let client = server.client::<Widget>();
    let widget = server.widget();
    let deletion = client.delete(&widget).await.unwrap();
    assert!(matches!(deletion, Deletion::Gone));

    let server = Server::with_widget();
    server.fail(Fault::LostRequest);
    let client = server.client::<Widget>();
    let error = client.delete(&widget).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "it may be deleted yet");
}

#[tokio::test(start_paused = true)]
async fn applied_fields_say_which_object_they_are_for_and_whose_they_are() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let apply = Apply {
        fields: json!({"status": {"ready": true}}),
        uid: Some("u1".into()),
        force: true,
        part: Part::Status,
    };
    assert!(client.apply("ns/a", &apply).await.unwrap().status.ready);
    let (_, uri, body) = server.0.lock().seen[0].clone();
    assert!(uri.ends_with("/widgets/a/status?fieldManager=test&force=true"), "{uri}");
    assert_eq!(
        body,
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "status": {"ready": true},
            "metadata": {"namespace": "ns", "name": "a", "uid": "u1"}})
    );
    let odd = Apply { fields: json!([1]), ..apply };
    let error = client.apply("ns/a", &odd).await.unwrap_err();
    assert!(matches!(error.why, Why::Encode), "{error}");
}

#[tokio::test(start_paused = true)]
async fn merged_fields_are_for_one_version_of_one_object_and_send_what_they_change() {
    let server = Server::with_widget();
    let client = server.client::<Widget>();
    let widget = server.widget::<Widget>();
    let fields = json!({"status": {"ready": true, "reason": ""}});
    let merge = Merge { fields: fields.clone(), over: widget.whole(), part: Part::Status };
    client.merge("ns/a", &merge).await.unwrap();
    let (method, uri, body) = server.0.lock().seen[0].clone();
    assert_eq!(method, http::Method::PATCH);
    assert!(uri.ends_with("/widgets/a/status?fieldManager=test"), "{uri}");
    let version = widget.metadata.resource_version.to_string();
    assert_eq!(
        body,
        json!({"metadata": {"uid": "u1", "resourceVersion": version}, "status": fields["status"]})
    );
    let error = client.merge("ns/a", &merge).await.unwrap_err();
    assert!(matches!(error.why, Why::Conflict { .. }), "it was changed since: {error}");

    let now = server.widget::<Widget>();
    let same = Merge { fields, over: now.whole(), part: Part::Status };
    let writes = server.writes();
    client.merge("ns/a", &same).await.unwrap();
    assert_eq!(server.writes(), writes, "nothing is different");
    let odd = Merge { fields: json!([1]), ..same };
    assert!(matches!(client.merge("ns/a", &odd).await.unwrap_err().why, Why::Encode));
}
