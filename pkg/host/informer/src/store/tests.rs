//! Deltas that subscribers get, under concurrency.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kube_api::Node;

use super::*;

fn node(name: &str, version: u64) -> Node {
    Node {
        name: name.into(),
        uid: "u".into(),
        resource_version: version,
        deleting: false,
        is_selected: true,
        pod_cidrs: kube_api::PodCidrs::default(),
    }
}

fn store() -> Store<Node> {
    Store::new("nodes".into())
}

fn subscribe(store: &Store<Node>, handler: Handler<Node>) {
    store.subscribe(handler, Session::new());
}

#[test]
fn a_handler_finds_its_change_in_the_store_already() {
    let store = Arc::new(store());
    let (seen, read) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&store));
    let log = Arc::clone(&seen);
    subscribe(
        &store,
        Box::new(move |delta| {
            let (Delta::Added(object)
            | Delta::Updated { new: object, .. }
            | Delta::Deleted(object)) = delta
            else {
                return;
            };
            log.lock().push(read.get(&object.name).map(|found| found.resource_version));
        }),
    );
    store.upsert(node("a", 1));
    store.upsert(node("a", 2));
    store.remove(node("a", 3));
    store.replace([Arc::new(node("b", 4))].into_iter().collect());
    assert_eq!(*seen.lock(), [Some(1), Some(2), None, Some(4)]);
}

#[test]
fn the_differences_of_a_list_stand_between_its_start_and_its_end_in_the_order_of_names() {
    let store = store();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    for name in ["w", "z", "x", "y"] {
        store.upsert(node(name, 1));
    }
    subscribe(
        &store,
        Box::new(move |delta| {
            log.lock().push(match delta {
                Delta::Added(new) => format!("added {}", new.name),
                Delta::Updated { new, .. } => format!("updated {}", new.name),
                Delta::Deleted(last) => format!("deleted {}", last.name),
                Delta::ListStarts => "start".to_owned(),
                Delta::ListEnds => "end".to_owned(),
            });
        }),
    );
    store.replace(["c", "a", "b"].map(|name| Arc::new(node(name, 2))).into_iter().collect());
    let expected = [
        "start",
        "deleted w",
        "deleted x",
        "deleted y",
        "deleted z",
        "added a",
        "added b",
        "added c",
        "end",
    ];
    assert_eq!(seen.lock()[4..], expected);
}

#[test]
fn a_subscriber_that_joins_under_load_misses_nothing_and_sees_nothing_twice() {
    const LAST: u64 = 20_000;
    let store = Arc::new(store());
    let finished = Arc::new(AtomicBool::new(false));
    let subscribers: Vec<_> = (0..4)
        .map(|_| {
            let (store, finished) = (Arc::clone(&store), Arc::clone(&finished));
            thread::spawn(move || {
                let mut chains = Vec::new();
                while !finished.load(Ordering::SeqCst) {
                    let chain = Arc::new(Mutex::new(None::<u64>));
                    chains.push(Arc::clone(&chain));
                    subscribe(
                        &store,
                        Box::new(move |delta| {
                            let mut last = chain.lock();
                            match delta {
                                Delta::Added(new) => {
                                    assert_eq!(last.replace(new.resource_version), None);
                                }
                                Delta::Updated { old, new } => {
                                    assert_eq!(*last, Some(old.resource_version));
                                    *last = Some(new.resource_version);
                                }
                                other => panic!("{other:?} never happened"),
                            }
                        }),
                    );
                    thread::sleep(Duration::from_millis(2));
                }
                chains
            })
        })
        .collect();
    (1..=LAST).for_each(|version| store.upsert(node("a", version)));
    finished.store(true, Ordering::SeqCst);
    for subscriber in subscribers {
        let chains = subscriber.join().unwrap();
        assert!(chains.iter().all(|chain| *chain.lock() == Some(LAST)), "{} chains", chains.len());
    }
}

#[test]
fn nothing_is_delivered_while_the_store_is_frozen() {
    let store = Arc::new(store());
    let (deliver, delivered) = mpsc::channel();
    subscribe(&store, Box::new(move |_| deliver.send(()).unwrap()));
    let writer = store.frozen(|objects| {
        let other = Arc::clone(&store);
        let writer = thread::spawn(move || other.upsert(node("a", 1)));
        // That nothing happens cannot be awaited, only given some time.
        assert!(delivered.recv_timeout(Duration::from_millis(100)).is_err());
        assert!(objects.is_empty());
        writer
    });
    writer.join().unwrap();
    delivered.recv_timeout(Duration::from_secs(60)).expect("the delta must follow");
}

#[test]
fn a_reader_that_freezes_the_store_waits_for_the_delivery_under_way() {
    let store = Arc::new(store());
    let (enter, entered) = mpsc::channel();
    let (finish, finished) = mpsc::channel::<()>();
    let finished = Mutex::new(finished);
    subscribe(
        &store,
        Box::new(move |_| {
            enter.send(()).unwrap();
            finished.lock().recv().unwrap();
        }),
    );
    let (writing, reading) = (Arc::clone(&store), Arc::clone(&store));
    let writer = thread::spawn(move || writing.upsert(node("a", 1)));
    entered.recv().unwrap();
    let (read, was_read) = mpsc::channel();
    let reader = thread::spawn(move || reading.frozen(|objects| read.send(objects.len()).unwrap()));
    // That nothing happens cannot be awaited, only given some time.
    assert!(was_read.recv_timeout(Duration::from_millis(100)).is_err());
    finish.send(()).unwrap();
    assert_eq!(was_read.recv_timeout(Duration::from_secs(60)), Ok(1));
    writer.join().unwrap();
    reader.join().unwrap();
}

#[test]
fn the_same_version_is_no_change_but_can_be_a_deletion() {
    let store = store();
    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    subscribe(&store, Box::new(move |_| *count.lock() += 1));
    store.upsert(node("a", 5));
    let first = store.get("a").unwrap();
    store.upsert(node("a", 5));
    assert!(Arc::ptr_eq(&first, &store.get("a").unwrap()));
    assert_eq!(*told.lock(), 1);
    store.remove(node("a", 4));
    assert_eq!(store.len(), 1);
    store.remove(node("a", 5));
    assert_eq!((store.len(), *told.lock()), (0, 2));
}

#[test]
fn a_deletion_that_cannot_be_read_ends_what_is_not_newer() {
    let store = store();
    store.upsert(node("a", 5));
    for (version, left) in [(4, 1), (5, 0)] {
        store.remove_unread("a", version);
        assert_eq!(store.len(), left, "deleted at {version}");
    }
    store.upsert(node("a", 6));
    store.remove_unread("a", 9);
    assert_eq!(store.len(), 0);
}

#[test]
fn the_key_of_an_entry_is_the_name_of_its_object() {
    let store = store();
    store.upsert(node("a", 1));
    store.upsert(node("a", 2));
    store.frozen(|objects| {
        let (key, object) = (objects.keys().next().unwrap(), objects.values().next().unwrap());
        assert_eq!((object.resource_version, objects.len()), (2, 1));
        assert!(Arc::ptr_eq(key, &object.name), "a name must be held once");
        assert_eq!(Arc::strong_count(key), 1);
    });
}

#[test]
fn a_changed_object_holds_the_name_and_uid_of_its_older_copy() {
    let store = store();
    store.upsert(node("a", 1));
    let older = store.get("a").unwrap();
    store.upsert(node("a", 2));
    let newer = store.get("a").unwrap();
    assert_eq!((older.resource_version, newer.resource_version), (1, 2));
    assert!(Arc::ptr_eq(&older.name, &newer.name));
    assert!(Arc::ptr_eq(&older.uid, &newer.uid));
    let successor = Node { uid: "other".into(), ..node("a", 3) };
    store.upsert(successor);
    assert_eq!(store.get("a").unwrap().uid(), "other");
}

#[test]
fn a_handler_that_leaves_during_a_delivery_is_freed_before_the_next() {
    let store = Arc::new(store());
    let (held, place) = (Arc::new(()), Arc::new(Mutex::new(None::<Membership>)));
    let (kept, own, leaving) = (Arc::clone(&held), Arc::clone(&place), Arc::downgrade(&store));
    let membership = store.subscribe(
        Box::new(move |_| {
            assert!(Arc::strong_count(&kept) > 0, "it keeps this as long as it lives");
            // As dropping a subscription does.
            if let (Some(own), Some(store)) = (own.lock().take(), leaving.upgrade()) {
                own.leave();
                store.sweep();
            }
        }),
        Session::new(),
    );
    *place.lock() = Some(membership);
    store.upsert(node("a", 1));
    assert_eq!(Arc::strong_count(&held), 2, "it is running");
    store.upsert(node("b", 2));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_redelivery_shows_every_handler_of_every_object_as_it_is() {
    let store = Arc::new(store());
    let seen = Arc::new(Mutex::new(Vec::new()));
    for version in [1, 2] {
        store.upsert(node("b", version));
        store.upsert(node("a", version));
    }
    for handler in ["one", "other"] {
        let (log, read) = (Arc::clone(&seen), Arc::clone(&store));
        subscribe(
            &store,
            Box::new(move |delta| {
                let Delta::Updated { old, new } = delta else { return };
                assert!(Arc::ptr_eq(old, new) && read.get(&new.name).is_some());
                log.lock().push(format!("{handler} {} {}", new.name, new.resource_version));
            }),
        );
    }
    store.redeliver();
    assert_eq!(*seen.lock(), ["one a 2", "other a 2", "one b 2", "other b 2"]);
}
