//! What is remembered of where members are.

use health::Code;
use memory_search::Mark;
use probe::{Address, ConnectionLimits, Inputs, Meters, Names, Problem, TlsOptions};
use prometheus::Registry;
use serde_json::json;

use super::*;
use crate::engine::Misconfigured;
use crate::kubefed::testing::{cluster, policy};

fn flavour() -> KubeFed {
    let meters = Meters::new(&Registry::new()).unwrap();
    let members = probe::Prober::new(meters, ConnectionLimits::default(), Names::default());
    let options = KubeFedOptions { namespace: None, config: None, policy: policy(), zones: true };
    KubeFed::new(options, false, Arc::new(members), None)
}

/// The member as it is reached at `endpoint`, from now on by a new client.
fn remember(flavour: &KubeFed, endpoint: &str) -> Arc<Object<KubeFedCluster>> {
    let object = Arc::new(cluster(|it| {
        it["spec"]["apiEndpoint"] = endpoint.into();
        it["status"] = json!({"zones": ["as-stored"]});
    }));
    let inputs = Inputs {
        addresses: vec![Address::parse(endpoint).unwrap()],
        tls: TlsOptions { everything: true, ..TlsOptions::default() },
        ..Inputs::default()
    };
    let newest = NewestClient::of(flavour.prober.client(&inputs).unwrap());
    let problem = Problem::new(Code::SecretMissing, "never asked");
    let prober = Misconfigured { code: problem.code(), detail: "never asked".into() };
    let known = KnownMember {
        object: Arc::clone(&object),
        secret: None,
        inputs: 1,
        prober: Arc::new(prober),
        newest,
    };
    flavour.remember(&object.metadata.uid, known);
    object
}

/// rule:kubefed-config-wins
#[test]
fn a_config_holds_in_its_namespace_and_nowhere_else() {
    let flavour = flavour();
    let said = |value: serde_json::Value| serde_json::from_value(value).unwrap();
    let period = |namespace: &str| flavour.policy_in(namespace).cadence.period.as_secs();
    let (slow, odd): (ClusterHealthCheck, _) =
        (said(json!({"period": "30s"})), said(json!({"period": "20s", "timeout": "40s"})));
    assert_eq!(flavour.configure("fed", Some(&slow)), [""; 0]);
    let wrong = flavour.configure("other", Some(&odd));
    assert!(wrong[0].contains("the timeout of 40s"), "{wrong:?}");
    assert_eq!((period("fed"), period("other"), period("third")), (30, 20, 10));
    flavour.configure("other", None);
    assert_eq!((period("fed"), period("other")), (30, 10));
}

/// rule:another-target-has-no-address-in-common, rule:a-lost-credential-ends-its-client
#[tokio::test(start_paused = true)]
async fn where_a_member_is_holds_for_the_client_that_read_it_and_for_its_address() {
    let flavour = flavour();
    let zones = |object: &Object<KubeFedCluster>| flavour.held(object).zones;
    let found = |zone: &str| {
        Ok(Some(Topology { zones: vec![zone.to_owned()], region: None, spread: false }))
    };
    let due = || flavour.due_for_survey(|_| true).len();
    let object = remember(&flavour, "https://10.0.0.1:6443");
    let member =
        Cluster { uid: Arc::clone(&object.metadata.uid), key: Arc::clone(&object.metadata.key) };
    let first = flavour.client(&member.uid).unwrap();
    assert_eq!((due(), due()), (1, 0));
    assert!(flavour.surveyed(&member, &first, &found("a")));
    assert_eq!(zones(&object), ["a"]);

    // Its credential was rotated.
    remember(&flavour, "https://10.0.0.1:6443");
    assert!(!flavour.surveyed(&member, &first, &found("b")));
    assert_eq!((zones(&object), due()), (vec!["a".to_owned()], 1), "it is read again");

    let second = flavour.client(&member.uid).unwrap();
    remember(&flavour, "https://10.0.0.2:6443");
    assert_eq!(zones(&object), ["as-stored"], "nothing is known of the other one");
    assert_eq!(due(), 1);
    assert!(!flavour.surveyed(&member, &second, &found("c")));
    assert_eq!(zones(&object), ["as-stored"]);
}

/// rule:nothing-outlives-its-object, rule:secrets-are-never-shown
#[test]
fn the_token_of_a_member_that_is_gone_or_has_another_one_is_wiped() {
    let flavour = flavour();
    let (first, second) = (Mark::random(), Mark::random());
    let client = |token: &Mark| {
        let inputs = Inputs {
            addresses: vec![Address::parse("https://10.0.0.1").unwrap()],
            token: Some(token.secret().as_str().into()),
            tls: TlsOptions { everything: true, ..TlsOptions::default() },
            ..Inputs::default()
        };
        flavour.prober.client(&inputs).unwrap()
    };
    let object = remember(&flavour, "https://10.0.0.1");
    let uid = &object.metadata.uid;
    let hold = |token: &Mark| {
        let known = flavour.known(uid).unwrap();
        flavour.remember(uid, KnownMember { newest: NewestClient::of(client(token)), ..known });
    };
    hold(&first);
    assert!(first.is_in_memory());
    hold(&second);
    assert!(!first.is_in_memory(), "after a rotation");
    assert!(second.is_in_memory());
    flavour.removed(&Cluster { uid: Arc::clone(uid), key: Arc::clone(&object.metadata.key) });
    assert!(!second.is_in_memory(), "after the deletion");
}

/// rule:a-restart-changes-nothing
#[test]
fn several_regions_are_news_unless_the_object_said_so_before_this_process() {
    let flavour = flavour();
    let topology =
        |zone: &str| Topology { zones: vec![zone.to_owned()], region: None, spread: true };
    let object = remember(&flavour, "https://10.0.0.1:6443");
    let member =
        Cluster { uid: Arc::clone(&object.metadata.uid), key: Arc::clone(&object.metadata.key) };
    let client = flavour.client(&member.uid).unwrap();
    let is_news = |zone: &str| {
        flavour.due_for_survey(|_| true);
        flavour.surveyed(&member, &client, &Ok(Some(topology(zone))))
    };
    assert!(!is_news("as-stored"), "the process before this one told it");
    assert!(is_news("other"));
    assert!(!is_news("other"), "it was told");
    assert!(is_news("as-stored"), "it has changed again");
}
