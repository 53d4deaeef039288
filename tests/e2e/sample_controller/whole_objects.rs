//! `objects` against a real API server: its preconditions, subresources, finalizers and answers are
//! those that the crate's own naive server has.

use std::sync::Arc;

use http::Method;
use objects::{
    Apply, Created, Deletion, Draft, Dynamic, Error, Object, ObjectClient, Outcome, Part, Why,
};
use sample::{Item, SHIPMENTS, Shipment};
use serde_json::{Value, json};
use tests::{Cut, Fault, FaultProxy, Match};

use crate::scene::{Scene, clients, objects};

const KEY: &str = "default/a";
const OURS: &str = "sample.example.org/ours";

/// A shipment with fields that the type does not know.
fn draft() -> Draft<Dynamic> {
    let body = json!({"spec": {
        "items": [{"name": "cup", "colour": "red"}],
        "carrier": {"group": "g", "kind": "K", "name": "n", "since": 1962},
        "insured": true,
    }});
    Draft::new(body.as_object().unwrap().clone())
}

async fn made(scene: &Scene) -> Arc<Object<Shipment>> {
    let client = scene.objects::<Dynamic>(&SHIPMENTS);
    client.create(KEY, &draft()).await.unwrap();
    now(scene).await.unwrap()
}

async fn now(scene: &Scene) -> Option<Arc<Object<Shipment>>> {
    scene.objects::<Shipment>(&SHIPMENTS).read(KEY).await.unwrap()
}

fn pack(_: &Object<Shipment>, draft: &mut Draft<Shipment>) {
    draft.body.spec.items.push(Item { name: "pan".into() });
}

fn refused(result: Result<impl std::fmt::Debug, Error>) -> Why {
    result.unwrap_err().why
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_objects_are_written_as_the_server_takes_them() {
    let scene = Scene::set().await;
    unknown_fields_survive_patches(&scene).await;
    status_and_the_rest_are_written_apart(&scene).await;
    finalizers_hold_until_ours_is_removed(&scene).await;
    another_object_of_the_same_name_is_left_alone(&scene).await;
    applied_fields_have_an_owner(&scene).await;
    lost_answers_are_settled(&scene).await;
}

async fn end(scene: &Scene) {
    let client = scene.objects::<Shipment>(&SHIPMENTS);
    let Some(object) = now(scene).await else { return };
    client.delete(&object).await.unwrap();
    client.remove_finalizer(&object, OURS).await.unwrap();
    assert!(now(scene).await.is_none());
}

async fn unknown_fields_survive_patches(scene: &Scene) {
    let client = scene.objects::<Shipment>(&SHIPMENTS);
    let stale = made(scene).await;
    let first = client.change(&stale, pack).await.unwrap();
    assert!(first.changed);
    // From the stale copy: the server's conflict leads to a fresh one.
    let add = |_: &Object<Shipment>, draft: &mut Draft<Shipment>| {
        draft.metadata.labels.insert("late".into(), "yes".into());
    };
    let whole = client.change(&stale, add).await.unwrap().object.whole();
    assert_eq!(
        whole["spec"],
        json!({
            "items": [{"name": "cup", "colour": "red"}, {"name": "pan"}],
            "carrier": {"group": "g", "kind": "K", "name": "n", "since": 1962},
            "insured": true,
        })
    );
    assert_eq!(whole["metadata"]["labels"], json!({"late": "yes"}));
    let fresh = now(scene).await.unwrap();
    assert!(!client.change(&fresh, |_, _| {}).await.unwrap().changed);
    let version = now(scene).await.unwrap().metadata.resource_version;
    assert_eq!(version, fresh.metadata.resource_version);
    end(scene).await;
}

async fn status_and_the_rest_are_written_apart(scene: &Scene) {
    let client = scene.objects::<Shipment>(&SHIPMENTS);
    let shipment = made(scene).await;
    let shown = client.change_status(&shipment, |_, status| status.writes = 1).await.unwrap();
    assert_eq!(shown.object.status.writes, 1);
    assert_eq!(shown.object.metadata.generation, 1, "what is wanted has not changed");
    let changed = client.change(&shown.object, pack).await.unwrap().object;
    assert_eq!((changed.status.writes, changed.metadata.generation), (1, 2));
    end(scene).await;
}

async fn finalizers_hold_until_ours_is_removed(scene: &Scene) {
    let client = scene.objects::<Shipment>(&SHIPMENTS);
    let writes = client.own_writes();
    let shipment = made(scene).await;
    let held = client.add_finalizer(&shipment, OURS).await.unwrap().object;
    let Deletion::Pending(going) = client.delete(&held).await.unwrap() else {
        panic!("a finalizer holds it");
    };
    assert!(matches!(refused(client.add_finalizer(&going, "late/one").await), Why::Deleting));
    let stale = client.add_finalizer(&held, "late/one").await;
    assert!(matches!(refused(stale), Why::Deleting), "the stale copy does not show it");
    client.remove_finalizer(&going, OURS).await.unwrap();
    assert!(now(scene).await.is_none());
    assert!(client.remove_finalizer(&going, OURS).await.unwrap().is_none());
    let last = writes.last(KEY).unwrap();
    assert_eq!(last.deleted.as_deref(), Some(&*going.metadata.uid));
}

async fn another_object_of_the_same_name_is_left_alone(scene: &Scene) {
    let client = scene.objects::<Shipment>(&SHIPMENTS);
    let old = made(scene).await;
    client.delete(&old).await.unwrap();
    assert!(matches!(refused(client.change(&old, pack).await), Why::Gone));
    let new = made(scene).await;
    assert!(matches!(refused(client.change(&old, pack).await), Why::Gone));
    let status = client.change_status(&old, |_, status| status.writes = 9).await;
    assert!(matches!(refused(status), Why::Gone));
    let deletion = client.delete(&old).await.unwrap();
    assert!(matches!(deletion, Deletion::Gone));
    let left = now(scene).await.unwrap();
    assert_eq!(left.metadata.resource_version, new.metadata.resource_version);
    end(scene).await;
}

async fn applied_fields_have_an_owner(scene: &Scene) {
    let clients = clients(&scene.plane.admin_kubeconfig()).await;
    let client = |manager| -> ObjectClient<Shipment> { objects(&clients, &SHIPMENTS, manager) };
    let shipment = made(scene).await;
    let apply = |phase: &str, force| Apply {
        fields: json!({"status": {"phase": phase}}),
        uid: Some(shipment.metadata.uid.to_string()),
        force,
        part: Part::Status,
    };
    client("one").apply(KEY, &apply("Loaded", false)).await.unwrap();
    let other = client("two");
    let conflict = other.apply(KEY, &apply("NoCarrier", false)).await;
    assert!(matches!(refused(conflict), Why::Owned { .. }));
    let taken = other.apply(KEY, &apply("NoCarrier", true)).await.unwrap();
    let again = other.apply(KEY, &apply("NoCarrier", true)).await.unwrap();
    assert_eq!(taken.metadata.resource_version, again.metadata.resource_version);
    end(scene).await;
    // The UID keeps it from making a new object.
    let error = other.apply(KEY, &Apply { part: Part::Main, ..apply("Loaded", true) }).await;
    assert_eq!(error.unwrap_err().outcome(), Outcome::NotWritten);
    assert!(now(scene).await.is_none());
}

async fn lost_answers_are_settled(scene: &Scene) {
    let proxy = FaultProxy::start(&scene.plane, "admin", &["system:masters"]).await;
    let clients = clients(proxy.kubeconfig()).await;
    let client: ObjectClient<Dynamic> = objects(&clients, &SHIPMENTS, "proxied");
    let lose = |method: Method| {
        proxy.on(Match::method(method)).times(1).then(Fault::LoseAnswer(Cut::Stream))
    };
    let lost = lose(Method::POST);
    let made = client.create_if_absent(KEY, &draft()).await.unwrap();
    assert!(matches!(made, Created::Existing(_)));
    lost.hit(1).await;

    let (Created::New(object) | Created::Existing(object)) = made;
    let lost = lose(Method::PATCH);
    let insure = |_: &Object<Dynamic>, draft: &mut Draft<Dynamic>| {
        draft.body["spec"]["insured"] = Value::Bool(false);
    };
    let written = client.change(&object, insure).await.unwrap();
    assert!(written.changed && written.object.body["spec"]["insured"] == false);
    lost.hit(1).await;
    assert_eq!(proxy.requests_like(&Match::method(Method::PATCH)).len(), 1, "sent once");

    let lost = lose(Method::DELETE);
    let deletion = client.delete(&object).await.unwrap();
    assert!(matches!(deletion, Deletion::Gone));
    lost.hit(1).await;
}
