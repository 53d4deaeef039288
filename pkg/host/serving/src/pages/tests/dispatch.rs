//! Work of the server around a handler.

use super::*;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::{Everyone, PageRequest, PeerCertificate, ShownChain};

fn peer(address: &str, certificate: PeerCertificate) -> Peer {
    Peer::new(address.parse().unwrap(), certificate)
}

fn stranger() -> Peer {
    peer("10.1.2.3", PeerCertificate::Absent)
}

/// Pages with one, at `/page`.
fn pages<F>(
    access: Access,
    body_limit: usize,
    handler: impl Fn(PageRequest) -> F + Send + Sync + 'static,
) -> Pages
where
    F: Future<Output = Reply> + Send + 'static,
{
    let pages = Pages::new();
    pages.add(Page::new("/page", access, handler).with_body_limit(body_limit));
    pages
}

async fn echo(request: PageRequest) -> Reply {
    reply::text(StatusCode::OK, request.body)
}

fn post(body: &str) -> Request<Full<Bytes>> {
    Request::post("/page").body(Full::from(body.to_owned())).unwrap()
}

async fn body_of(reply: Reply) -> String {
    String::from_utf8(reply.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_body_up_to_the_limit_reaches_the_handler_and_a_longer_one_is_413() {
    let pages = pages(Access::Authorized, 5, echo);
    let reply = answer(&pages, &Everyone, stranger(), post("12345")).await;
    assert_eq!((reply.status().as_u16(), &*body_of(reply).await), (200, "12345"));
    let reply = answer(&pages, &Everyone, stranger(), post("123456")).await;
    assert_eq!(reply.status(), 413);
    let status = body_of(reply).await;
    assert!(status.contains("\"reason\":\"RequestEntityTooLarge\""), "{status}");
}

#[tokio::test]
async fn bodies_that_are_too_many_at_once_are_429_until_others_are_answered() {
    let (answered, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (told, waits) = (Arc::clone(&answered), Arc::clone(&go_on));
    let pages = pages(Access::Authorized, 4, move |request| {
        let (told, waits) = (Arc::clone(&told), Arc::clone(&waits));
        async move {
            told.add_permits(1);
            waits.acquire().await.unwrap().forget();
            echo(request).await
        }
    });
    let held: Vec<_> = (0..8)
        .map(|_| {
            let pages = pages.clone();
            tokio::spawn(async move { answer(&pages, &Everyone, stranger(), post("1234")).await })
        })
        .collect();
    answered.acquire_many(8).await.unwrap().forget();
    let reply = answer(&pages, &Everyone, stranger(), post("1")).await;
    assert_eq!(reply.status(), 429);
    assert!(body_of(reply).await.contains("too many large requests at once"));
    go_on.add_permits(9);
    for one in held {
        assert_eq!(one.await.unwrap().status(), 200);
    }
    assert_eq!(answer(&pages, &Everyone, stranger(), post("1")).await.status(), 200);
}

#[tokio::test]
async fn an_announced_length_over_the_limit_is_413_before_a_byte_is_read() {
    let pages = pages(Access::Authorized, 5, echo);
    let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let request = Request::post("/page").header(CONTENT_LENGTH, 6).body(never).unwrap();
    assert_eq!(answer(&pages, &Everyone, stranger(), request).await.status(), 413);
}

#[tokio::test]
async fn a_page_without_a_limit_reads_no_body() {
    let pages = pages(Access::Authorized, 0, echo);
    let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let reply =
        answer(&pages, &Everyone, stranger(), Request::post("/page").body(never).unwrap()).await;
    assert_eq!((reply.status().as_u16(), &*body_of(reply).await), (200, ""));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_400() {
    let pages = pages(Access::Authorized, 5, echo);
    let broken = [Ok(Frame::data(Bytes::from("1"))), Err(std::io::Error::other("reset"))];
    let body = StreamBody::new(futures::stream::iter(broken));
    let request = Request::post("/page").body(body).unwrap();
    assert_eq!(answer(&pages, &Everyone, stranger(), request).await.status(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_answer_is_504_after_a_minute() {
    let pages = pages(Access::Authorized, 0, |_| std::future::pending());
    let start = Instant::now();
    let reply = answer(&pages, &Everyone, stranger(), post("")).await;
    assert_eq!((reply.status().as_u16(), start.elapsed().as_secs()), (504, 60));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_504_after_a_minute() {
    let pages = pages(Access::Authorized, 5, echo);
    let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let reply =
        answer(&pages, &Everyone, stranger(), Request::post("/page").body(never).unwrap()).await;
    assert_eq!(reply.status(), 504);
}

#[tokio::test]
async fn a_handler_that_panics_is_500_before_and_after_its_first_wait() {
    let first =
        pages(Access::Authorized, 0, |_| -> std::future::Ready<Reply> { panic!("at once") });
    let later = pages(Access::Authorized, 0, |_| async {
        tokio::task::yield_now().await;
        panic!("later")
    });
    for pages in [first, later] {
        let reply = answer(&pages, &Everyone, stranger(), post("")).await;
        assert_eq!(reply.status(), 500);
        assert!(!body_of(reply).await.contains("later"), "the text is for the log");
    }
}

#[tokio::test]
async fn handlers_see_headers_but_no_credentials() {
    let pages = pages(Access::Authorized, 0, async |request: PageRequest| {
        let seen: Vec<_> = request.headers.keys().map(|name| name.as_str().to_owned()).collect();
        reply::text(StatusCode::OK, seen.join(","))
    });
    let request = Request::get("/page").header(AUTHORIZATION, "Bearer t").header("x-a", "1");
    let reply =
        answer(&pages, &Everyone, stranger(), request.body(Full::<Bytes>::default()).unwrap())
            .await;
    assert_eq!(body_of(reply).await, "x-a");
}

#[tokio::test]
async fn every_reply_forbids_caches_unless_the_handler_says_otherwise() {
    let refused = pages(Access::TrustedCertificate, 0, echo);
    let refused = answer(&refused, &Everyone, stranger(), post("")).await;
    let missing = answer(&Pages::new(), &Everyone, stranger(), post("")).await;
    let plain = answer(&pages(Access::Authorized, 0, echo), &Everyone, stranger(), post("")).await;
    let codes = [&refused, &missing, &plain].map(|reply| reply.status().as_u16());
    assert_eq!(codes, [401, 404, 200]);
    for reply in [refused, missing, plain] {
        assert_eq!(reply.headers()[CACHE_CONTROL], "no-cache, private");
    }
    let own = pages(Access::Authorized, 0, async |_| {
        let mut reply = reply::text(StatusCode::OK, "");
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        reply
    });
    assert_eq!(
        answer(&own, &Everyone, stranger(), post("")).await.headers()[CACHE_CONTROL],
        "no-store"
    );
}

#[tokio::test]
async fn access_is_a_table_of_the_rule_and_the_certificate() {
    use Access::{Authorized, TrustedCertificate};
    use PeerCertificate::{Absent, Shown, Trusted, Untrusted};
    for (access, certificate, expected) in [
        (Authorized, Absent, 200),
        (Authorized, Shown(ShownChain::new(Vec::new())), 200),
        (Authorized, Trusted(ShownChain::new(Vec::new())), 200),
        (Authorized, Untrusted, 401),
        (TrustedCertificate, Absent, 401),
        (TrustedCertificate, Shown(ShownChain::new(Vec::new())), 401),
        (TrustedCertificate, Trusted(ShownChain::new(Vec::new())), 200),
        (TrustedCertificate, Untrusted, 401),
    ] {
        for address in ["127.0.0.1", "10.1.2.3"] {
            let peer = peer(address, certificate.clone());
            let reply = answer(&pages(access, 0, echo), &Everyone, peer, post("")).await;
            assert_eq!(reply.status(), expected, "{access:?} {certificate:?} from {address}");
        }
    }
}
