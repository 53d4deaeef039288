//! Many writers at once, on a server that loses requests and answers, against a naive model: a set
//! of what each writer was told to be written.

use std::collections::{BTreeSet, VecDeque};

use futures::future::join_all;
use proptest::prelude::*;
use serde_json::json;

use crate::Outcome;
use crate::testing::{Fault, Server, Widget};

/// Failures of the writes, in the order in which they come.
fn faults() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..6_u8, 0..40)
}

fn fault(number: u8) -> Option<Fault> {
    match number {
        0 => Some(Fault::LostAnswer),
        1 => Some(Fault::LostRequest),
        2 => Some(Fault::NotSent),
        3 => Some(Fault::Answered(503, json!({}))),
        4 => Some(Fault::Overtaken(|object| {
            let count = object["spec"]["foreign"].as_u64().unwrap_or_default();
            object["spec"]["foreign"] = json!(count + 1);
        })),
        _ => None,
    }
}

fn overtakings(faults: &VecDeque<Option<Fault>>) -> usize {
    faults.iter().filter(|fault| matches!(fault, Some(Fault::Overtaken(_)))).count()
}

/// Every writer adds a size of its own, all at once, all from the same stale copy.
async fn write_all(server: &Server, writers: usize) -> (BTreeSet<String>, BTreeSet<String>) {
    let stale = server.widget::<Widget>();
    let client = server.client::<Widget>();
    let writes = (0..writers).map(|writer| {
        let (client, stale) = (client.clone(), stale.clone());
        async move {
            let name = format!("w{writer}");
            let result = client.change(&stale, |_, draft| {
                draft.body.spec.sizes.insert(name.clone(), 1);
            });
            (result.await, name)
        }
    });
    let (mut written, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for (result, name) in join_all(writes).await {
        match result.map_err(|error| error.outcome()) {
            Ok(_) => written.insert(name),
            Err(Outcome::NotWritten) => refused.insert(name),
            Err(_) => false,
        };
    }
    (written, refused)
}

proptest! {
    #[test]
    fn concurrent_writers_lose_no_update_and_get_the_true_outcome(
        script in faults(),
        writers in 1..8_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let server = Server::with_widget();
        let overtakings = overtakings(&script.iter().copied().map(fault).collect());
        server.0.lock().faults.extend(script.into_iter().map(fault));
        let (written, refused) = runtime.block_on(write_all(&server, writers));

        let raw = server.raw();
        let sizes: BTreeSet<_> = raw["spec"]["sizes"].as_object().unwrap().keys().cloned().collect();
        prop_assert!(written.is_subset(&sizes), "lost: {written:?} of {sizes:?}");
        prop_assert!(refused.is_disjoint(&sizes), "written after all: {refused:?} of {sizes:?}");
        prop_assert_eq!(&raw["spec"]["colour"], "red");
        let left = self::overtakings(&server.0.lock().faults);
        let foreign = raw["spec"]["foreign"].as_u64().unwrap_or_default();
        prop_assert_eq!(foreign, u64::try_from(overtakings - left).unwrap(), "a foreign update");
    }
}
