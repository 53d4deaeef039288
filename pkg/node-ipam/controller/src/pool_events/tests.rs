//! Crossings of servable Nodes, compared with a naive model, and the events of an allocator at work.

use api_server_double::{ApiServer, Reply};
use cidr::Pool;
use events::EventMetrics;
use kube_api::Node;
use prometheus::Registry;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

fn servable(object: Option<&str>, is_serving: bool, nodes: u128) -> Servable {
    let object = object.map(|name| (name.into(), name.into()));
    Servable { object, is_serving, nodes, scarcest: "10.0.0.0/24, 10.9.0.0/24".to_owned() }
}

#[test]
fn each_crossing_is_reported_once_with_what_can_be_done() {
    let mut known = None;
    let mut look = |nodes| {
        let at_start = HashSet::from([None]);
        let crossings = crossings(&mut known, &[servable(None, true, nodes)], &at_start);
        crossings.into_iter().map(|(_, reason, message)| (reason, message)).collect::<Vec<_>>()
    };
    assert_eq!(look(0), [], "the process before has reported it");
    let room = |text: &str| {
        vec![(
            HAS_ROOM,
            format!("There is room again: {text} can get a pod CIDR of the cluster CIDRs"),
        )]
    };
    assert_eq!(look(1), room("one more Node"));
    assert_eq!(look(5), []);
    let full = "No further Node can get a pod CIDR of the cluster CIDRs: all blocks of 10.0.0.0/24, \
                10.9.0.0/24 are in use; delete Nodes, or add a range";
    assert_eq!(look(0), [(FULL, full.to_owned())]);
    assert_eq!(look(0), []);
    assert_eq!(look(7), room("7 more Nodes"));
}

proptest! {
    #[test]
    fn crossings_are_those_of_two_looks_in_a_row_at_an_object_that_serves(
        looks in prop::collection::vec(prop::array::uniform3((0..3_u128, any::<bool>())), 1..30),
    ) {
        let mut known = None;
        let mut before = [false; 3];
        for look in looks {
            let all: Vec<_> = ["a", "b", "c"].iter().zip(look)
                .map(|(name, (nodes, is_serving))| servable(Some(name), is_serving, nodes))
                .collect();
            let told = crossings(&mut known, &all, &HashSet::new());
            let told: Vec<_> = told.iter()
                .map(|(object, reason, _)| (object.as_ref().unwrap().0.to_string(), *reason))
                .collect();
            let mut expected = Vec::new();
            for (index, (nodes, is_serving)) in look.into_iter().enumerate() {
                let is_full = is_serving && nodes == 0;
                match (before[index], is_full) {
                    (false, true) => expected.push((["a", "b", "c"][index].to_owned(), FULL)),
                    (true, false) if is_serving => {
                        expected.push((["a", "b", "c"][index].to_owned(), HAS_ROOM));
                    }
                    _ => {}
                }
                before[index] = is_full;
            }
            prop_assert_eq!(told, expected);
        }
    }
}

fn assign(allocator: &Mutex<Allocator>, name: &str) {
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
    }))
    .unwrap();
    let mut allocator = allocator.lock();
    drop(allocator.observe(&node, Instant::now()));
    drop(allocator.assign(&name.into()));
}

/// 300 Nodes for 256 blocks are reported within 5 s, and a freed block that another Node takes at
/// once is not.
#[tokio::test(start_paused = true)]
async fn a_pool_that_becomes_full_is_reported_within_five_seconds_and_once() {
    let server = ApiServer::new(Reply::stored);
    let metrics = EventMetrics::new(&Registry::new()).unwrap();
    let (recorder, _broadcaster) = events::start(server.client(), "cidrAllocator", "test", metrics);
    let pools = [("10.0.0.0/16", 24), ("fd00::/48", 64)]
        .map(|(range, mask)| Pool::new(range.parse().unwrap(), mask, 16).unwrap());
    let allocator = Arc::new(Mutex::new(Allocator::new(pools.to_vec(), &[])));
    let (stop, lease) = (CancellationToken::new(), ObjectRef::lease("kube-system", "icm", ""));
    let (watched, stopping) = (Arc::clone(&allocator), stop.clone());
    let task = tokio::spawn(async move { report(&watched, &recorder, &lease, &stopping).await });
    let told = async |seconds| {
        sleep(Duration::from_secs(seconds)).await;
        let asked = server.asked();
        let reason = |event: Value| event["reason"].as_str().unwrap().to_owned();
        asked.iter().map(|asked| reason(asked.json())).collect::<Vec<_>>()
    };
    // All of them come at the start, before the first look.
    assign(&allocator, "first");
    for index in 0..299 {
        assign(&allocator, &format!("n{index}"));
    }
    assert_eq!(allocator.lock().snapshot().servable[0].nodes, 0, "IPv4 is the scarcer family");
    assert_eq!(told(5).await, [FULL]);
    drop(allocator.lock().gone("first", Instant::now()));
    assert_eq!(told(295).await, [FULL], "the next Node in line has the block");
    for index in 0..50 {
        drop(allocator.lock().gone(&format!("n{index}"), Instant::now()));
    }
    assert_eq!(told(5).await, [FULL, HAS_ROOM]);
    let event = server.asked().last().unwrap().json();
    assert_eq!(event["involvedObject"]["kind"], "Lease");
    assert_eq!(
        event["message"],
        "There is room again: 7 more Nodes can get a pod CIDR of the cluster CIDRs"
    );
    stop.cancel();
    assert!(task.await.unwrap().is_ok());
}
