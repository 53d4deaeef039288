//! One VM and many, on the stub of Google.

use gce_stub::{Fault, GceStub};
use prometheus::Registry;
use resilience::Fence;
use tokio::task::JoinSet;

use super::*;
use crate::{Config, Metrics};

const ZONE: &str = "europe-west1-b";

async fn begin(vms: usize) -> (GceStub, Arc<Readings>) {
    let stub = GceStub::start().await;
    stub.pages_of(500);
    for index in 0..vms {
        stub.add_vm(ZONE, &name(index), &[&format!("10.0.{index}.0/24")]);
    }
    let host = stub.host.clone();
    let env = move |name: &str| (name == "GCE_METADATA_HOST").then(|| host.clone());
    let (config, metrics) =
        (Config::parse(&stub.config()).unwrap(), Metrics::new(&Registry::new()));
    let client = Client::new(config, metrics.unwrap(), Fence::always_open(), false, &env).unwrap();
    (stub, Arc::new(Readings::new(client)))
}

fn name(index: usize) -> String {
    format!("vm-{index}")
}

/// Reads so many VMs at once; those that were found.
async fn read_all(readings: &Arc<Readings>, vms: usize, not_before: Instant) -> usize {
    let mut all = JoinSet::new();
    for index in 0..vms {
        let readings = Arc::clone(readings);
        all.spawn(async move {
            let vm = ProviderId::parse(&GceStub::provider_id(ZONE, &name(index))).unwrap();
            let found = readings.read(&vm, not_before).await;
            usize::from(found.is_ok_and(|found| found.name == name(index)))
        });
    }
    all.join_all().await.into_iter().sum()
}

fn counts(stub: &GceStub) -> (usize, usize) {
    (stub.count("instances.get"), stub.count("instances.list"))
}

#[tokio::test]
async fn a_hundred_vms_of_a_zone_cost_one_list_in_each_period() {
    let (stub, readings) = begin(100).await;
    let start = Instant::now();
    assert_eq!(read_all(&readings, 100, start).await, 100);
    assert_eq!(counts(&stub), (0, 1));
    // Whoever takes what is not older than that.
    assert_eq!(read_all(&readings, 100, start).await, 100);
    assert_eq!(counts(&stub), (0, 1));
    // The next period, in which they do not come together.
    let next = Instant::now();
    for index in 0..100 {
        let vm = ProviderId::parse(&GceStub::provider_id(ZONE, &name(index))).unwrap();
        assert_eq!(readings.read(&vm, next).await.unwrap().name, name(index));
    }
    assert_eq!(counts(&stub), (0, 2));
}

#[tokio::test]
async fn a_few_vms_are_read_one_by_one() {
    let (stub, readings) = begin(100).await;
    assert_eq!(read_all(&readings, 20, Instant::now()).await, 20);
    assert_eq!(counts(&stub), (20, 0));
}

#[tokio::test]
async fn a_vm_that_is_not_listed_is_not_there() {
    let (stub, readings) = begin(30).await;
    assert_eq!(read_all(&readings, 31, Instant::now()).await, 30);
    assert_eq!(counts(&stub), (0, 1));
}

#[tokio::test]
async fn a_list_that_fails_is_asked_for_once_by_all_who_wait() {
    let (stub, readings) = begin(40).await;
    stub.fail("instances.list", 1, Fault::Status(403, "quotaExceeded"));
    assert_eq!(read_all(&readings, 40, Instant::now()).await, 0);
    assert_eq!(counts(&stub), (0, 1));
}

/// A read that is given up does not hold up the others.
#[tokio::test]
async fn who_lists_and_is_given_up_is_followed_by_the_next() {
    let (stub, readings) = begin(40).await;
    stub.delay(Duration::from_millis(200));
    let all = read_all(&readings, 40, Instant::now());
    given_up(all, Duration::from_millis(150)).await;
    assert_eq!(read_all(&readings, 40, Instant::now()).await, 40);
}

async fn given_up(reading: impl Future<Output = usize>, limit: Duration) {
    // Whether it ends in time is all the same.
    let _in_time = tokio::time::timeout(limit, reading).await.is_ok();
}
