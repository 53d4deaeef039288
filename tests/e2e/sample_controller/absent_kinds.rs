//! A custom kind whose CRD is absent, of another program, ours, without a label, and deleted, while its informer runs
//! (rule:absent-kinds-are-dormant).

use std::sync::Arc;

use informer::{Delta, Format, Informer, InformerMetrics, Server, Session, Subscription};
use kube_api::{Kind, Metadata};
use manager::{Informers, InformersOptions};
use objects::{Draft, Dynamic};
use prometheus::Registry;
use sample::{VANS, crds};
use tests::PATIENCE;
use tests::poll::eventually;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::scene::Scene;

const VAN: &str = "default/van-0";

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_is_dormant_until_it_is_served_as_ours_and_whenever_it_is_so_no_longer() {
    let scene = Scene::bare().await;
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    let informers = informers(&scene, stop);
    let vans = vans_of(&informers);
    eventually("a kind without a CRD is dormant", || vans.is_dormant()).await;
    assert!(!vans.is_synced());

    // Served, but with the label of another program.
    scene.install(&VANS).await;
    scene.hand_to(&VANS, Some("somebody-else")).await;
    scene.objects::<Dynamic>(&VANS).create(VAN, &van()).await.unwrap();
    let everybodys = vans_of(&informers.of_any_owner());
    eventually("an informer for CRDs of any owner sees it", || everybodys.get(VAN).is_some()).await;
    // It was ours for a moment, when it was installed.
    eventually("a kind of another program is dormant", || vans.is_dormant()).await;

    let session = Session::new();
    let vans = vans_of(&informers).in_session(session.clone());
    let (_reported, mut news) = news_of(&vans);
    scene.hand_to(&VANS, Some(crds::PRODUCT)).await;
    let labelled = Instant::now();
    eventually("the kind is ours", || !vans.is_dormant() && vans.get(VAN).is_some()).await;
    eprintln!("watched {:?} after it was labelled as ours", labelled.elapsed());

    // The objects still exist: no handler may see a deletion.
    scene.hand_to(&VANS, None).await;
    timeout(PATIENCE, session.ended()).await.expect("the session ends");
    while let Ok(van) = news.try_recv() {
        assert!(van.is_some(), "no handler saw a deletion");
    }
    eventually("the kind without a label is dormant", || vans.is_dormant()).await;

    let vans = vans_of(&informers.of_run());
    let (_reported, mut news) = news_of(&vans);
    scene.hand_to(&VANS, Some(crds::PRODUCT)).await;
    assert!(next(&mut news).await.is_some(), "it is ours again");
    scene.remove(&VANS).await;
    // Being deleted comes first.
    while let Some(van) = next(&mut news).await {
        assert!(van.deleting, "the CRD takes its objects with it: {van:?}");
    }
    eventually("without a CRD it is dormant again", || vans.is_dormant()).await;
}

fn informers(scene: &Scene, stop: CancellationToken) -> Informers {
    let options = InformersOptions {
        server: Server::own(scene.client()),
        format: Format::default(),
        product: crds::PRODUCT,
        resync: None,
        stop,
    };
    Informers::new(options, InformerMetrics::new(&Registry::new(), "test").unwrap())
}

/// An informer of Vans by a name learnt at run time, as in `carriers.rs` of the sample.
fn vans_of(informers: &Informers) -> Informer<Metadata> {
    let kind = Kind::named(VANS.group.to_string(), VANS.kind.to_string());
    informers.get_from(informers.source(kind))
}

fn van() -> Draft<Dynamic> {
    let van = serde_json::json!({"spec": {"wheels": 4}});
    Draft::new(van.as_object().unwrap().clone())
}

type News = UnboundedReceiver<Option<Arc<Metadata>>>;

/// A subscription that sends each created or changed van, and `None` for a deleted one.
fn news_of(vans: &Informer<Metadata>) -> (Subscription<Metadata>, News) {
    let (reported, news) = unbounded_channel();
    let subscription = vans.subscribe(move |delta| match delta {
        Delta::Added(van) | Delta::Updated { new: van, .. } => {
            reported.send(Some(Arc::clone(van))).ok();
        }
        Delta::Deleted(_) => {
            reported.send(None).ok();
        }
        Delta::ListStarts | Delta::ListEnds => {}
    });
    (subscription, news)
}

async fn next(news: &mut News) -> Option<Arc<Metadata>> {
    timeout(PATIENCE, news.recv()).await.expect("in time").expect("the session goes on")
}
