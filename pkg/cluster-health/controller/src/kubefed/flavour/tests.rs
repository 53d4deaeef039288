//! The known zones and identities of members.

use std::sync::atomic::{AtomicUsize, Ordering};

use memory_search::Mark;
use probe::{Address, Inputs, WaivedChecks};
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::engine::FlavourRegistry;
use crate::engine::follow::subscribe;
use crate::engine::now;
use crate::engine::tests::scene::Scene;
use crate::engine::{Connection, ResolvedFrom};
use crate::kubefed::testing::{flavour, sent};
use crate::testing::informer;

/// With the cache of the objects, which has the member `fed/one`.
async fn flavour_of_one() -> (KubeFed, Arc<Object<KubeFedCluster>>, MemberId) {
    let flavour = flavour(false);
    let object = sent(|it| it["status"] = json!({"zones": ["as-stored"]}));
    let (_, told) = unbounded_channel();
    let cache = informer(&KUBEFED_CLUSTERS, vec![object], told).await;
    flavour.objects.set(&cache, Arc::new(|| true));
    let member = MemberId { uid: "u1".into(), key: "fed/one".into() };
    let object = flavour.objects.get(&member).unwrap();
    (flavour, object, member)
}

/// From now on the member is reached at `endpoint`, with this token.
fn connect(flavour: &KubeFed, member: &MemberId, endpoint: &str, token: Option<&Mark>) {
    let inputs = Inputs {
        addresses: vec![Address::parse(endpoint).unwrap()],
        token: token.map(|token| token.secret().as_str().into()),
        tls: WaivedChecks { everything: true, ..WaivedChecks::default() },
        ..Inputs::default()
    };
    let client = flavour.prober.client(&inputs).map(Arc::new);
    let resolved_from = ResolvedFrom { access: 0, credential: None, secret: None };
    let connection = Connection { resolved_from, client, resolved_at: None };
    if flavour.connections.set(member, connection, &[endpoint.into()]) {
        flavour.retargeted(member);
    }
}

#[test]
fn a_config_holds_in_its_namespace_and_nowhere_else() {
    let flavour = flavour(false);
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

#[tokio::test(start_paused = true)]
async fn where_a_member_is_holds_for_the_client_that_read_it_and_for_its_address() {
    let (flavour, object, member) = flavour_of_one().await;
    let zones = || flavour.held(&object).zones;
    let connect = |endpoint| connect(&flavour, &member, endpoint, None);
    let found = |zone: &str| {
        Ok(Some(Topology { zones: vec![zone.to_owned()], region: None, spread: false }))
    };
    let due = || flavour.due_for_survey(|_| true).len();
    connect("https://10.0.0.1:6443");
    let first = flavour.client(&member).unwrap();
    assert_eq!((due(), due()), (1, 0));
    assert!(flavour.surveyed(&member, &first, &found("a")));
    assert_eq!(zones(), ["a"]);

    // Its credential was rotated.
    connect("https://10.0.0.1:6443");
    assert!(!flavour.surveyed(&member, &first, &found("b")));
    assert_eq!((zones(), due()), (vec!["a".to_owned()], 1), "it is read again");

    let second = flavour.client(&member).unwrap();
    connect("https://10.0.0.2:6443");
    assert_eq!(zones(), ["as-stored"], "nothing is known of the other one");
    assert_eq!(due(), 1);
    assert!(!flavour.surveyed(&member, &second, &found("c")));
    assert_eq!(zones(), ["as-stored"]);
}

/// rule:nothing-outlives-its-object, rule:secrets-are-never-shown
#[test]
fn the_token_of_a_member_that_is_gone_or_has_another_one_is_wiped() {
    let (flavour, first, second) = (flavour(false), Mark::random(), Mark::random());
    let member = MemberId { uid: "u1".into(), key: "fed/one".into() };
    connect(&flavour, &member, "https://10.0.0.1", Some(&first));
    assert!(first.is_in_memory());
    connect(&flavour, &member, "https://10.0.0.1", Some(&second));
    assert!(!first.is_in_memory(), "after a rotation");
    assert!(second.is_in_memory());
    flavour.removed(&member);
    assert!(!second.is_in_memory(), "after the deletion");
}

/// rule:a-restart-changes-nothing
#[tokio::test(start_paused = true)]
async fn several_regions_are_news_unless_the_object_said_so_before_this_process() {
    let (flavour, _, member) = flavour_of_one().await;
    let topology =
        |zone: &str| Topology { zones: vec![zone.to_owned()], region: None, spread: true };
    connect(&flavour, &member, "https://10.0.0.1:6443", None);
    let client = flavour.client(&member).unwrap();
    let is_news = |zone: &str| {
        flavour.due_for_survey(|_| true);
        flavour.surveyed(&member, &client, &Ok(Some(topology(zone))))
    };
    assert!(!is_news("as-stored"), "the process before this one told it");
    assert!(is_news("other"));
    assert!(!is_news("other"), "it was told");
    assert!(is_news("as-stored"), "it has changed again");
}

/// The status that is written with this record.
fn written(flavour: &KubeFed, member: &MemberId, record: Option<&str>) -> serde_json::Value {
    let now = now();
    let published = health::Published::seed(Health::Ready, now.wall, now.wall, None);
    let (published, message, paused) = (Some(&published), "", false);
    let write = flavour.write(
        member,
        &Statement { published, message, record, within: None, checks: None, paused, now },
    );
    match write.unwrap() {
        StatusWrite::Apply(fields)
        | StatusWrite::Shared(fields)
        | StatusWrite::Merge { fields, .. } => fields["status"].clone(),
    }
}

/// rule:a-record-costs-no-write
#[tokio::test(start_paused = true)]
async fn a_record_is_written_where_the_schema_keeps_it_and_never_changes_the_fingerprint() {
    const LINE: &str = "The CRD has no status.availability";
    let captured = log_capture::Capture::begin();
    for (has_the_field, lines) in [(true, 0), (false, 1)] {
        let (flavour, object, member) = flavour_of_one().await;
        flavour.objects.keep_records_where(Arc::new(move || has_the_field));
        let [first, second] = ["v1.1.", "v1.2."].map(|it| written(&flavour, &member, Some(it)));
        let kept = |record| if has_the_field { json!(record) } else { json!(null) };
        assert_eq!(first["availability"], kept("v1.1."));
        assert_eq!(second["availability"], kept("v1.2."));
        assert_eq!(written(&flavour, &member, None).get("availability"), None);
        assert_eq!(captured.with(LINE).len(), lines, "one line at most");

        let with = |record: &str| {
            let conditions = json!([{"type": "Ready", "status": "True"},
                {"type": "Offline", "status": "False"}]);
            let object = sent(|it| {
                it["status"] = json!({"conditions": conditions, "availability": record});
            });
            Object::<KubeFedCluster>::read(object).unwrap()
        };
        let [old, new] = ["v1.1.", "v1.2."].map(with);
        assert_eq!(flavour.record(&new), Some("v1.2."));
        assert!(flavour.shown(&old).is_some() && flavour.shown(&old) == flavour.shown(&new));
        assert_eq!(flavour.record(&object), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_is_looked_at_again_for_another_objective_and_not_for_its_status() {
    let scene = Scene::new(0);
    let (changes, told) = unbounded_channel();
    let cache = informer(&KUBEFED_CLUSTERS, vec![sent(|_| {})], told).await;
    let flavour = Arc::new(flavour(false));
    flavour.objects.set(&cache, Arc::new(|| true));
    let engine = Arc::clone(&scene.clusters);
    let registry = FlavourRegistry::new(Arc::clone(&flavour) as Arc<dyn Flavour>, engine);
    let looks = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&looks);
    let _following = subscribe(&cache, &registry, &flavour, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let objective = |text: &'static str| {
        move |it: &mut serde_json::Value| {
            it["metadata"]["annotations"] = json!({"infra-controller-manager/objective": text});
        }
    };
    let status = |it: &mut serde_json::Value| it["status"] = json!({"zones": ["a"]});
    let change = async |version: u64, edit: &dyn Fn(&mut serde_json::Value)| {
        let object = sent(|it| {
            it["metadata"]["resourceVersion"] = version.to_string().into();
            edit(it);
        });
        changes.send(json!({"type": "MODIFIED", "object": object})).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        looks.load(Ordering::Relaxed)
    };
    let first = looks.load(Ordering::Relaxed);
    assert_eq!(change(9, &status).await, first);
    assert_eq!(change(10, &objective("99")).await, first + 1);
    assert_eq!(change(11, &objective("99")).await, first + 1);
    assert_eq!(change(12, &objective("99.5")).await, first + 2);
}
