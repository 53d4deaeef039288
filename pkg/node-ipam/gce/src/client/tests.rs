//! The calls, on the stub of Google.

use gce_stub::{Fault, GceStub};
use prometheus::Registry;
use resilience::Fence;
use transport::SendPermit;

use super::*;

const ZONE: &str = "europe-west1-b";
const WRITE: &str = "instances.updateNetworkInterface";

fn client(stub: &GceStub, fence: Fence) -> Client {
    client_of(stub, fence, false)
}

fn client_of(stub: &GceStub, fence: Fence, dry_run: bool) -> Client {
    let host = stub.host.clone();
    let env = move |name: &str| (name == "GCE_METADATA_HOST").then(|| host.clone());
    let config = Config::parse(&stub.config()).unwrap();
    let metrics = Metrics::new(&Registry::new()).unwrap();
    Client::new(config, metrics, fence, dry_run, &env).unwrap()
}

async fn begin() -> (GceStub, Client) {
    let stub = GceStub::start().await;
    let client = client(&stub, Fence::always_open());
    (stub, client)
}

fn vm(name: &str) -> ProviderId {
    ProviderId::parse(&GceStub::provider_id(ZONE, name)).unwrap()
}

/// A caller that has read no alias of the VM.
async fn add(client: &Client, name: &str, range: &str) -> Result<(), GceError> {
    client.add_alias(&vm(name), net(range), &[], &|| true).await
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_list_is_read_page_by_page_and_is_of_one_zone() {
    let (stub, client) = begin().await;
    for index in 0..95 {
        stub.add_vm(ZONE, &format!("vm-{index}"), &[&format!("10.0.{index}.0/24")]);
    }
    stub.add_vm("europe-west1-c", "elsewhere", &[]);
    let all = client.instances(ZONE).await.unwrap();
    assert_eq!(all.len(), 95);
    let seven = all.iter().find(|vm| vm.name == "vm-7").unwrap();
    assert_eq!(seven.pod_ranges().unwrap().aliases, [net("10.0.7.0/24")]);
    assert_eq!(*seven, client.instance(&vm("vm-7")).await.unwrap());
    assert_eq!(stub.count("instances.list"), 3);
    assert_eq!(client.instances("europe-west1-d").await.unwrap(), []);
}

#[tokio::test]
async fn a_list_whose_pages_never_end_is_given_up_after_a_hundred() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "vm", &[]);
    stub.fail("instances.list", 110, Fault::NoLastPage);
    let error = client.instances(ZONE).await.unwrap_err().to_string();
    assert!(error.contains("the list of zone europe-west1-b has too many pages"), "{error}");
    assert_eq!(stub.count("instances.list"), 100);
}

#[tokio::test]
async fn a_page_that_fails_spoils_the_list() {
    let (stub, client) = begin().await;
    for index in 0..50 {
        stub.add_vm(ZONE, &format!("vm-{index}"), &[]);
    }
    stub.pages_of(49);
    stub.fail("instances.list", 1, Fault::Status(503, "backendError"));
    assert!(matches!(client.instances(ZONE).await, Err(GceError::Unanswered { .. })));
    assert_eq!(client.instances(ZONE).await.unwrap().len(), 50);
}

/// `rule:alias-is-read-before-it-is-written`
#[tokio::test]
async fn an_alias_is_added_once_and_the_others_stay() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "a", &["10.9.0.0/28"]);
    let (range, known) = (net("10.0.1.0/24"), [net("10.9.0.0/28")]);
    client.add_alias(&vm("a"), range, &known, &|| true).await.unwrap();
    assert_eq!(stub.aliases(ZONE, "a"), ["10.9.0.0/28", "10.0.1.0/24"]);
    client.add_alias(&vm("a"), range, &known, &|| true).await.unwrap();
    assert_eq!(stub.count(WRITE), 1);
}

/// `rule:alias-is-read-before-it-is-written`
#[tokio::test]
async fn a_vm_that_somebody_else_has_given_an_alias_meanwhile_gets_no_second_one() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "a", &["10.9.0.0/28"]);
    assert_eq!(add(&client, "a", "10.0.1.0/24").await, Err(GceError::Stale));
    assert_eq!((stub.count(WRITE), stub.aliases(ZONE, "a")), (0, vec!["10.9.0.0/28".to_owned()]));
}

/// `rule:dry-run-writes-nothing-to-google`
#[tokio::test]
async fn a_dry_run_reads_vms_and_writes_to_none() {
    let stub = GceStub::start().await;
    stub.add_vm(ZONE, "a", &[]);
    let client = client_of(&stub, Fence::always_open(), true);
    assert_eq!(client.instance(&vm("a")).await.unwrap().name, "a");
    assert_eq!(add(&client, "a", "10.0.1.0/24").await, Err(GceError::DryRun));
    assert_eq!((stub.count(WRITE), stub.aliases(ZONE, "a")), (0, Vec::new()));
}

#[tokio::test]
async fn a_vm_without_an_interface_is_given_none() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "a", &[]);
    stub.take_interfaces(ZONE, "a");
    let ended = add(&client, "a", "10.0.1.0/24").await;
    assert!(
        matches!(&ended, Err(GceError::NotFound { what }) if what.starts_with("a network interface")),
        "{ended:?}"
    );
    assert_eq!(stub.count(WRITE), 0);
}

#[tokio::test]
async fn who_wanted_a_write_can_call_it_back_until_it_leaves() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "a", &[]);
    let withdrawn = client.add_alias(&vm("a"), net("10.0.1.0/24"), &[], &|| false).await;
    assert_eq!((withdrawn, stub.count(WRITE)), (Err(GceError::Withdrawn), 0));
}

/// `rule:alias-is-read-before-it-is-written`
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_when_it_is_tried_again() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "a", &[]);
    stub.fail(WRITE, 1, Fault::LostAnswer);
    let lost = add(&client, "a", "10.0.1.0/24").await;
    assert!(matches!(lost, Err(GceError::Unanswered { .. })), "{lost:?}");
    // Operations go on by themselves.
    for _ in 0..2 {
        client.instance(&vm("a")).await.unwrap();
    }
    add(&client, "a", "10.0.1.0/24").await.unwrap();
    assert_eq!((stub.count(WRITE), stub.aliases(ZONE, "a")), (1, vec!["10.0.1.0/24".to_owned()]));
}

#[tokio::test]
async fn a_stale_fingerprint_is_read_again_once() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "a", &[]);
    stub.fail(WRITE, 1, Fault::Status(412, "conditionNotMet"));
    add(&client, "a", "10.0.1.0/24").await.unwrap();
    stub.add_vm(ZONE, "b", &[]);
    stub.fail(WRITE, 2, Fault::Status(412, "conditionNotMet"));
    let again = add(&client, "b", "10.0.2.0/24").await;
    assert_eq!(again, Err(GceError::Stale));
}

#[tokio::test]
async fn an_operation_that_fails_late_is_reported_with_its_code() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "a", &[]);
    stub.add_vm(ZONE, "b", &["10.0.0.0/23"]);
    let taken = add(&client, "a", "10.0.1.0/24").await.unwrap_err();
    assert!(taken.to_string().contains("IP_IN_USE_BY_ANOTHER_RESOURCE"), "{taken}");
    let outside = add(&client, "a", "172.16.0.0/24").await.unwrap_err();
    assert!(outside.to_string().contains("INVALID_USAGE"), "{outside}");
    assert_eq!(stub.aliases(ZONE, "a"), [""; 0]);
}

#[tokio::test]
async fn a_look_that_fails_says_nothing_about_the_operation() {
    let (stub, client) = begin().await;
    stub.add_vm(ZONE, "a", &[]);
    stub.fail("zoneOperations.get", 1, Fault::Status(503, "backendError"));
    add(&client, "a", "10.0.1.0/24").await.unwrap();
}

/// `rule:one-project-is-called`
#[tokio::test]
async fn a_vm_of_another_project_is_not_asked_for() {
    let (stub, client) = begin().await;
    let other = ProviderId::parse("gce://another-project/z/a").unwrap();
    let refused = client.instance(&other).await.unwrap_err();
    assert!(matches!(refused, GceError::NotSent { .. }), "{refused}");
    assert_eq!(stub.calls(), []);
}

#[tokio::test]
async fn without_a_project_in_the_file_it_is_that_of_our_own_vm() {
    let stub = GceStub::start().await;
    let host = stub.host.clone();
    let env = move |name: &str| (name == "GCE_METADATA_HOST").then(|| host.clone());
    let config = format!("[global]\napi-endpoint = http://{}/compute/v1", stub.host);
    let metrics = Metrics::new(&Registry::new()).unwrap();
    let config = Config::parse(&config).unwrap();
    let client = Client::new(config, metrics, Fence::always_open(), false, &env).unwrap();
    stub.add_vm(ZONE, "a", &[]);
    assert_eq!(client.instance(&vm("a")).await.unwrap().name, "a");
}

#[tokio::test]
async fn a_closed_fence_stops_writes_and_no_reads() {
    let stub = GceStub::start().await;
    stub.add_vm(ZONE, "a", &[]);
    let client = client(&stub, Fence::closed());
    let fenced = add(&client, "a", "10.0.1.0/24").await;
    assert!(matches!(fenced, Err(GceError::NotSent { .. })), "{fenced:?}");
    assert_eq!((stub.count("instances.get"), stub.count(WRITE)), (1, 0));
}

/// `rule:held-up-writes-are-asked-again`
#[tokio::test]
async fn a_write_that_is_on_its_way_to_the_wire_asks_the_fence_again() {
    let stub = GceStub::start().await;
    let fence = Fence::always_open();
    let client = client(&stub, fence.clone());
    let asked = |is_wanted: Option<IsWanted<'_>>| {
        let (name, method, url) = ("x", Method::PATCH, "https://x/");
        let call = Call { name, method, url, body: Bytes::new(), what: "x", is_wanted };
        let bearer = HeaderValue::from_static("Bearer x");
        let request = client.0.exchange.request(&call, &bearer).unwrap();
        request.extensions().get::<SendPermit>().cloned()
    };
    assert!(asked(None).is_none(), "a read");
    let write = asked(Some(&|| true)).unwrap();
    assert!(write.ask());
    fence.close();
    assert!(!write.ask());
}
