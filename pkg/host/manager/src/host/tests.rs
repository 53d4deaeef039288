use std::collections::BTreeMap;
use std::sync::Arc;

use api_server_double::{Reply, client};
use client::{Profile, ThrottleMetrics};
use election::Won;
use events::{EventMetrics, ObjectRef};
use futures::future::pending;
use informer::Format;
use log_capture::Capture;
use prometheus::Registry;
use resilience::Fence;
use serving::{Access, Everyone, Health, Page, Pages, Peer, PeerCertificate, ServingMetrics};
use tokio::time::{Instant, sleep};

use super::*;
use crate::testing::{Fake, Run};
use crate::{Context, Placement, Runner};

const LIMIT: Duration = Duration::from_secs(10);

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A host of tasks that have nothing to do with an API server.
struct Tasks(Running);

impl Tasks {
    fn with_limit(shutdown_timeout: Duration) -> Self {
        Self(Running::new(shutdown_timeout))
    }

    /// A controller that ends so long after it is asked to.
    fn and(mut self, name: &'static str, takes: Duration, unknown_writes: usize) -> Self {
        let stop = self.0.stop.clone();
        self.0.names.push(name);
        self.0.controllers.push(tokio::spawn(async move {
            stop.cancelled().await;
            sleep(takes).await;
            (name, Stopped { unknown_writes })
        }));
        self
    }

    async fn stop(mut self) -> (Ended, Duration) {
        let began = Instant::now();
        (self.0.stop().await, began.elapsed())
    }
}

#[tokio::test(start_paused = true)]
async fn all_are_waited_for() {
    let (ended, took) =
        Tasks::with_limit(LIMIT).and("a", secs(1), 0).and("b", secs(9), 0).stop().await;
    assert_eq!(ended, Ended::Clean);
    assert!(took >= secs(9) && took < LIMIT, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn unknown_writes_of_all_are_added_up() {
    let tasks = Tasks::with_limit(LIMIT).and("a", secs(1), 2).and("b", secs(0), 0);
    assert_eq!(tasks.and("c", secs(2), 3).stop().await.0, Ended::UnknownWrites(5));
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_task_panics_leaves_an_unknown_write() {
    let tasks = Tasks::with_limit(LIMIT).and("a", secs(1), 0);
    tasks.0.controllers.push(tokio::spawn(async { panic!("beyond all supervision") }));
    assert_eq!(tasks.stop().await.0, Ended::UnknownWrites(1));
}

#[tokio::test(start_paused = true)]
async fn controllers_that_do_not_stop_are_logged_every_third_of_the_limit_and_named_after_it() {
    let captured = Capture::begin();
    let tasks = Tasks::with_limit(LIMIT).and("slow", secs(3600), 0).and("quick", secs(1), 0);
    let (ended, took) = tasks.and("never", secs(7200), 0).stop().await;
    assert_eq!(ended, Ended::TimedOut(vec!["slow", "never"]));
    assert!(took >= LIMIT && took < LIMIT + secs(1), "{took:?}");
    let told = captured.with("Controllers have not stopped yet");
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told.iter().all(|line| line.contains(r#"["slow", "never"]"#)), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_it_waits_as_long_as_it_takes_and_keeps_telling() {
    let captured = Capture::begin();
    let (ended, took) = Tasks::with_limit(Duration::ZERO).and("slow", secs(3600), 0).stop().await;
    assert_eq!(ended, Ended::Clean);
    assert!(took >= secs(3600));
    assert!(captured.with("Controllers have not stopped yet").len() >= 300);
}

async fn options(registry: &Registry) -> HostOptions {
    // Nothing of this is contacted: what the controllers do is up to the test.
    let clients = crate::testing::clients(registry).await;
    HostOptions {
        event_client: clients.build(Profile::root("events")).unwrap(),
        clients,
        registry: registry.clone(),
        health: Health::new(),
        pages: Pages::new(),
        listeners: ServingMetrics::new(registry).unwrap(),
        fence: Fence::always_open(),
        product: "test",
        identity: "test".to_owned(),
        format: Format::default(),
        min_resync: secs(12 * 3600),
        service_accounts: false,
        work_rate: (20.0, 30),
        own_rates: BTreeMap::new(),
        dry_run: false,
        lease: ObjectRef::lease("kube-system", "test", ""),
        throttle_metrics: ThrottleMetrics::new(registry).unwrap(),
        event_metrics: EventMetrics::new(registry).unwrap(),
        start_interval: secs(10),
        shutdown_timeout: LIMIT,
        write_timeout: secs(5),
    }
}

fn until_stopped(context: Context) -> Run {
    Box::pin(async move {
        context.stop.cancelled().await;
        Ok(Stopped::default())
    })
}

fn running(registry: &Registry) -> Vec<(String, i64)> {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == "running_managed_controllers");
    let metrics = family.map(prometheus::proto::MetricFamily::get_metric).unwrap_or_default();
    #[allow(clippy::cast_possible_truncation, reason = "0 or 1")]
    let value = |metric: &prometheus::proto::Metric| metric.get_gauge().get_value() as i64;
    let name = |metric: &prometheus::proto::Metric| {
        let labels = metric.get_label();
        labels.iter().find(|label| label.name() == "name").map(|label| label.value().to_owned())
    };
    metrics.iter().map(|metric| (name(metric).unwrap_or_default(), value(metric))).collect()
}

#[tokio::test(start_paused = true)]
async fn controllers_start_one_interval_apart_and_all_are_stopped() {
    let registry = Registry::new();
    let options = options(&registry).await;
    let planned =
        [("first-controller", "first"), ("second-controller", "second")].map(|(name, alias)| {
            Hosted { name, alias, by_name: false, runner: Fake::runner(|_, c| until_stopped(c)) }
        });
    let host = Host::start(&options, planned.into()).unwrap();
    sleep(secs(9)).await;
    assert_eq!(running(&registry), [("first".into(), 1), ("second".into(), 0)]);
    sleep(secs(12)).await;
    assert_eq!(running(&registry), [("first".into(), 1), ("second".into(), 1)]);
    assert_eq!(host.stop().await, Ended::Clean);
    assert_eq!(running(&registry), [("first".into(), 0), ("second".into(), 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_was_not_yet_started_is_stopped_without_being_run() {
    let registry = Registry::new();
    let options = options(&registry).await;
    let never: Arc<dyn Runner> = Fake::runner(|_, _| panic!("started after the stop"));
    let first = Fake::runner(|_, context| until_stopped(context));
    let planned = [("first", first), ("second", never)].map(|(name, runner)| Hosted {
        name,
        alias: name,
        by_name: false,
        runner,
    });
    let host = Host::start(&options, planned.into()).unwrap();
    sleep(secs(1)).await;
    assert_eq!(host.stop().await, Ended::Clean);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_does_not_stop_is_named_after_the_limit() {
    let registry = Registry::new();
    let options = options(&registry).await;
    let stuck = Hosted {
        name: "stuck-controller",
        alias: "stuck",
        by_name: false,
        runner: Fake::runner(|_, _| Box::pin(pending())),
    };
    let host = Host::start(&options, vec![stuck]).unwrap();
    sleep(secs(1)).await;
    assert_eq!(host.stop().await, Ended::TimedOut(vec!["stuck-controller"]));
}

#[tokio::test(start_paused = true)]
async fn a_controller_has_a_page_on_the_secure_port_and_adds_its_own() {
    let registry = Registry::new();
    let options = options(&registry).await;
    let runner = Fake::runner(|_, context: Context| {
        context.pages.add(Page::new("/debug/controllers/first", Access::Authorized, async |_| {
            serving::reply::text(http::StatusCode::OK, "nothing waits\n")
        }));
        until_stopped(context)
    });
    let status = async |path: &str| {
        let peer = Peer::new("10.1.2.3".parse().unwrap(), PeerCertificate::Absent);
        let request = http::Request::get(path).body(String::new()).unwrap();
        serving::answer(&options.pages, &Everyone, peer, request).await.status().as_u16()
    };
    let hosted = Hosted { name: "first-controller", alias: "first", by_name: false, runner };
    crate::reserve_pages(&options.pages, std::slice::from_ref(&hosted));
    let pages = ["/debug/controllers/first", "/debug/controllers/first-controller/"];
    for path in pages {
        assert_eq!(status(path).await, 503, "it is a standby: {path}");
    }
    let host = Host::start(&options, vec![hosted]);
    sleep(secs(1)).await;
    for path in pages {
        assert_eq!(status(path).await, 200, "{path}");
    }
    host.unwrap().stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_of_all_controllers_are_flushed_side_by_side_when_their_server_is_silent() {
    let registry = Registry::new();
    let client = client(|_| Reply::Silence);
    let options = HostOptions { event_client: client, ..options(&registry).await };
    let hosted = ["first", "second", "third"].map(|name| Hosted {
        name,
        alias: name,
        by_name: false,
        runner: Fake::runner(|_, context| {
            let node = events::ObjectRef::node("n", "u");
            context.recorder.event(node, events::EventType::Normal, "Told", "once".to_owned());
            until_stopped(context)
        }),
    });
    let options = HostOptions { start_interval: Duration::ZERO, ..options };
    let host = Host::start(&options, hosted.into()).unwrap();
    sleep(secs(1)).await;
    let began = Instant::now();
    assert_eq!(host.stop().await, Ended::Clean);
    assert_eq!(began.elapsed(), EVENT_FLUSH, "the time of one, not of three");
}

#[tokio::test(start_paused = true)]
async fn a_controller_asked_for_by_name_takes_any_crd_and_one_of_the_star_only_ours() {
    let registry = Registry::new();
    let options = HostOptions { start_interval: Duration::ZERO, ..options(&registry).await };
    let (seen, mut labels) = tokio::sync::mpsc::unbounded_channel();
    let hosted = [("named", true), ("starred", false)].map(|(name, by_name)| {
        let seen = seen.clone();
        let runner = Fake::runner(move |_, context| {
            let kind = kube_api::Kind::named("example.io", "Widget");
            seen.send((name, context.informers.source(kind).managed_by)).unwrap();
            until_stopped(context)
        });
        Hosted { name, alias: name, by_name, runner }
    });
    let host = Host::start(&options, hosted.into()).unwrap();
    let mut found = [labels.recv().await.unwrap(), labels.recv().await.unwrap()];
    found.sort();
    assert_eq!(found, [("named", None), ("starred", Some("test".into()))]);
    assert_eq!(host.stop().await, Ended::Clean);
}

/// rule:every-replica-has-its-own-fence
#[tokio::test(start_paused = true)]
async fn a_controller_of_every_replica_starts_before_there_is_a_leader_and_opens_its_own_fence() {
    let registry = Registry::new();
    let options = options(&registry).await;
    let options = HostOptions { start_interval: Duration::ZERO, fence: Fence::closed(), ..options };
    let (seen, mut fences) = tokio::sync::mpsc::unbounded_channel();
    let hosted = |name: &'static str, placement| {
        let seen = seen.clone();
        let runner = Fake::placed(placement, move |_, context| {
            seen.send((name, context.fence.clone(), context.won)).unwrap();
            until_stopped(context)
        });
        Hosted { name, alias: name, by_name: false, runner }
    };
    let mut host =
        Host::start(&options, vec![hosted("everywhere", Placement::EveryReplica)]).unwrap();
    let (_, own, won) = fences.recv().await.unwrap();
    assert_eq!(won, Won::default());
    assert!(own.check().is_err(), "no lease has opened it");
    options.fence.open_for(options.fence.read_clocks(), secs(3600));
    assert!(own.check().is_err(), "it is not the leader's");
    let won = Won { transitions: 3, lease_went_back: true };
    host.start_more(&options, vec![hosted("leading", Placement::Leader)], won).unwrap();
    let (name, leaders, seen_by_it) = fences.recv().await.unwrap();
    assert_eq!((name, seen_by_it), ("leading", won));
    own.close();
    assert!(leaders.check().is_ok());
    assert_eq!(host.stop().await, Ended::Clean);
    let both = [("everywhere".into(), 0), ("leading".into(), 0)];
    assert_eq!(running(&registry), both, "one stop ends both");
}

#[test]
fn caches_tell_of_everything_again_after_one_to_two_periods_or_never() {
    let hour = Duration::from_secs(3600);
    for _ in 0..100 {
        assert!((hour..2 * hour).contains(&resync(hour).unwrap()));
    }
    assert!(resync(Duration::from_nanos(u64::MAX)).is_some(), "292 years");
    assert_eq!(resync(Duration::ZERO), None);
}
