//! Pages and objects that are longer than the informer takes.

use std::sync::Arc;
use std::time::Duration;

use api_server_double::{ApiServer, Reply};
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use kube_api::{Cached, Decoding, Metadata, Node, StaticKind};
use parking_lot::Mutex;
use prometheus::Registry;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::informer::tests::{PRODUCT, start};
use crate::request::Format;
use crate::stream::{LONGEST_MESSAGE, LONGEST_PAGE};
use crate::testing::node;
use crate::{FirstList, Informer, InformerMetrics, Source};

/// A server without streamed lists.
struct Sizes {
    /// Name, version and length of each object.
    objects: Vec<(&'static str, u64, usize)>,
    /// Place of an object that the next watch delivers.
    changed: Option<usize>,
    /// Blanks of any length, made once.
    blanks: Bytes,
}

impl Sizes {
    fn answer(&mut self, query: &str, only_metadata: bool) -> Reply {
        let query: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let get = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        if get("sendInitialEvents").is_some() {
            return Reply::failure(400, "BadRequest");
        }
        if get("watch").is_some() {
            let mut event = Vec::new();
            if let Some(place) = self.changed.take() {
                event.push(Bytes::from("{\"type\":\"MODIFIED\",\"object\":"));
                event.extend(self.object(place, false));
                event.push(Bytes::from("}\n"));
            }
            let body = stream::iter(event).map(Ok).chain(stream::pending());
            return Reply::Body("application/json", body.boxed());
        }
        let limit = match get("resourceVersion").map(AsRef::as_ref) {
            // As an API server that lists from its cache.
            Some("0") => usize::MAX,
            _ => get("limit").unwrap().parse().unwrap(),
        };
        let from: usize = get("continue").map_or(0, |token| token.parse().unwrap());
        let to = from.saturating_add(limit).min(self.objects.len());
        let next = if to < self.objects.len() { to.to_string() } else { String::new() };
        let version = self.objects.iter().map(|(_, version, _)| version.to_string()).max();
        let metadata = json!({"resourceVersion": version, "continue": next});
        let mut body = vec![Bytes::from(format!("{{\"metadata\":{metadata},\"items\":["))];
        for place in from..to {
            body.push(if place > from { ",".into() } else { Bytes::new() });
            body.extend(self.object(place, only_metadata));
        }
        body.push("]}".into());
        Reply::Body("application/json", stream::iter(body).map(Ok).boxed())
    }

    /// An object with blanks up to its length, or its metadata.
    fn object(&self, place: usize, only_metadata: bool) -> [Bytes; 2] {
        let (name, version, length) = self.objects[place];
        let blanks = if only_metadata { 0 } else { length };
        [self.blanks.slice(..blanks), node(name, version).to_string().into()]
    }
}

fn serve(objects: &[(&'static str, u64, usize)]) -> (ApiServer, Arc<Mutex<Sizes>>) {
    let blanks = vec![b' '; LONGEST_MESSAGE].into();
    let sizes = Sizes { objects: objects.to_vec(), changed: None, blanks };
    let sizes = Arc::new(Mutex::new(sizes));
    let served = Arc::clone(&sizes);
    let server = ApiServer::new(move |asked| {
        let only_metadata = asked.header("accept").contains("as=PartialObjectMetadataList");
        served.lock().answer(asked.query(), only_metadata)
    });
    (server, sizes)
}

/// Objects of a tolerant collection; whole copies are requested.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Whole(Metadata);

impl Cached for Whole {
    const DECODING: Decoding = Decoding::Tolerant;

    fn key(&self) -> &Arc<str> {
        self.0.key()
    }

    fn uid(&self) -> &str {
        self.0.uid()
    }

    fn resource_version(&self) -> u64 {
        self.0.resource_version()
    }
}

/// A running informer of that server.
fn informer<T: Cached>(server: &ApiServer, first_list: FirstList) -> Informer<T> {
    let metrics = InformerMetrics::new(&Registry::new(), PRODUCT).unwrap();
    let mut source = Source::new(crate::Server::own(server.client()), Node::KIND);
    source.first_list = first_list;
    let informer = Informer::new(source, &metrics, Format::Json);
    let running = informer.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    informer
}

fn names<T: Cached>(informer: &Informer<T>) -> Vec<String> {
    let mut names: Vec<_> =
        informer.frozen(|objects| objects.keys().map(ToString::to_string).collect());
    names.sort();
    names
}

/// The limits of the pages that were requested.
fn limits(server: &ApiServer) -> Vec<String> {
    let limit_of = |query: &str| {
        let mut query = form_urlencoded::parse(query.as_bytes());
        query.find(|(key, _)| key == "limit").map(|(_, limit)| limit.into_owned())
    };
    server.asked().iter().filter_map(|asked| limit_of(asked.query())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_long_is_asked_for_with_half_of_the_objects() {
    let mut run = start();
    run.server.streamed_list().await.refuse(400, "BadRequest");
    for limit in ["500", "250"] {
        let call = run.server.page().await;
        assert_eq!((call.get("limit"), call.get("continue")), (Some(limit), None));
        call.stream().raw(vec![b' '; LONGEST_PAGE + 1]);
    }
    let call = run.server.page().await;
    assert_eq!(call.get("limit"), Some("125"));
    let mut long = node("a", 1);
    long["padding"] = "x".repeat(LONGEST_PAGE / 2).into();
    call.page(10, "next", &[long]);
    let call = run.server.page().await;
    assert_eq!((call.get("limit"), call.get("continue")), (Some("125"), Some("next")));
    call.page(10, "last", &[node("b", 2)]);
    let call = run.server.page().await;
    assert_eq!(call.get("limit"), Some("250"), "a short page is followed by longer ones");
    call.page(10, "", &[node("c", 3)]);
    assert_eq!(run.deltas.next(3).await, ["added a@1", "added b@2", "added c@3"]);
}

#[tokio::test(start_paused = true)]
async fn objects_of_ten_megabytes_are_listed_beside_small_ones() {
    let (server, _) = serve(&[("a", 5, 0), ("b", 2, 10 << 20), ("c", 3, 10 << 20), ("d", 4, 0)]);
    let informer: Informer<Node> = informer(&server, FirstList::Consistent);
    informer.synced().await;
    assert_eq!(names(&informer), ["a", "b", "c", "d"]);
    let limits = limits(&server);
    assert_eq!(limits[..9], ["500", "250", "125", "63", "32", "16", "8", "4", "2"]);
    assert!(limits.len() < 16, "{limits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_from_the_cache_of_the_server_that_is_too_long_is_read_in_parts_from_the_store() {
    let (server, _) = serve(&[("a", 5, 10 << 20), ("b", 2, 10 << 20)]);
    let informer: Informer<Whole> = informer(&server, FirstList::Cached);
    informer.synced().await;
    assert_eq!(names(&informer), ["a", "b"]);
    let asked = server.asked();
    let of_cache = asked.iter().filter(|it| it.query().contains("resourceVersion=0")).count();
    assert_eq!(of_cache, 2, "the streamed list and one page");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_long_stops_no_other_object_of_a_tolerant_collection() {
    let (server, sizes) =
        serve(&[("a", 5, 0), ("b", 2, 0), ("c", 3, LONGEST_MESSAGE), ("d", 4, 0)]);
    let informer: Informer<Whole> = informer(&server, FirstList::Consistent);
    informer.synced().await;
    assert_eq!(names(&informer), ["a", "b", "d"]);
    let unreadable = || informer.cache.shared.unreadables.named();
    assert_eq!(unreadable(), ["c".into()]);
    assert_eq!(informer.blocked(), None);

    // Now "c" can be read, and "b" cannot: neither in the list, nor in the watch after it.
    {
        let mut sizes = sizes.lock();
        sizes.objects[1] = ("b", 6, LONGEST_MESSAGE);
        sizes.objects[2] = ("c", 7, 0);
        sizes.changed = Some(1);
    }
    sleep(Duration::from_secs(1)).await;
    informer.cache.shared.demand_list(Instant::now());
    let watches = || {
        let asked = server.asked();
        asked
            .iter()
            .filter(|it| it.query().contains("watch=true&") && !it.query().contains("sendInitial"))
            .count()
    };
    while watches() < 3 {
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(names(&informer), ["a", "b", "c", "d"], "the last good copy stays");
    assert_eq!(unreadable(), ["b".into()]);
}

#[tokio::test(start_paused = true)]
async fn a_strict_collection_names_the_object_that_is_too_long() {
    let (server, sizes) = serve(&[("a", 5, 0), ("b", 2, LONGEST_MESSAGE), ("c", 3, 0)]);
    let informer: Informer<Node> = informer(&server, FirstList::Consistent);
    while informer.blocked().is_none() {
        sleep(Duration::from_secs(1)).await;
    }
    let blocked = informer.blocked().unwrap();
    let text = "cannot read object \"b\": cannot take a message of more than 33554432 bytes";
    assert!(blocked.starts_with(text), "{blocked}");
    assert!(!informer.is_synced());
    sizes.lock().objects[1] = ("b", 6, 0);
    informer.synced().await;
    assert_eq!((names(&informer).len(), informer.blocked()), (3, None));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_more_objects_than_asked_for_leaves_none_out() {
    let (mut run, page) = (start(), Bytes::from(vec![b' '; LONGEST_MESSAGE + 1]));
    run.server.streamed_list().await.refuse(400, "BadRequest");
    let mut call = run.server.call().await;
    while !call.accept().contains("as=PartialObjectMetadataList") {
        call.stream().raw(page.clone());
        call = run.server.call().await;
    }
    call.page(5, "", &[node("a", 1), node("b", 2)]);
    assert_eq!(run.server.call().await.get("limit"), Some("1"), "the list begins again");
    assert!(!run.informer.is_synced());
}
