//! Tests of the double in memory and on a port.

use std::time::Duration;

use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use http::Request;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::{ApiServer, Reply, client};

fn post(uri: &str) -> Request<Body> {
    Request::post(uri).header("x-name", "a").body(Body::from(b"{\"a\":1}".to_vec())).unwrap()
}

async fn answer(client: &kube::Client, uri: &str) -> (u16, String) {
    let response = client.send(post(uri)).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn each_request_is_shown_to_the_script_and_recorded() {
    let server = ApiServer::new(Reply::stored);
    assert_eq!(
        answer(&server.client(), "/nodes?limit=1").await,
        (200, json!({"a": 1}).to_string())
    );
    answer(&server.client(), "/pods").await;
    let asked = server.until_asked(2).await;
    assert_eq!((asked[0].number, asked[1].number), (0, 1));
    assert_eq!((asked[0].method().as_str(), asked[0].path()), ("POST", "/nodes"));
    assert_eq!((asked[0].query(), asked[0].header("x-name")), ("limit=1", "a"));
    assert_eq!((asked[1].query(), asked[1].header("x-other")), ("", ""));
}

#[tokio::test]
async fn a_watch_is_one_event_a_line() {
    let client = client(|_| Reply::Watch(stream::iter([json!({"n": 1}), Value::Null]).boxed()));
    assert_eq!(answer(&client, "/").await, (200, "{\"n\":1}\nnull\n".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_reply_can_come_later_and_ask_for_patience() {
    let busy = || Reply::RetryAfter(429, 7, json!({}));
    let client =
        client(move |_| Reply::Later(sleep(Duration::from_secs(3)).map(move |()| busy()).boxed()));
    let began = Instant::now();
    let response = client.send(post("/")).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(3));
    assert_eq!(response.headers()["retry-after"], "7");
}

#[tokio::test]
async fn a_failure_is_that_of_the_call() {
    let client = client(|asked| match asked.path() {
        "/refused" => Reply::Refused,
        _ => Reply::Fails("own words".into()),
    });
    for (path, text) in [("/refused", "connection refused"), ("/failed", "own words")] {
        let error = client.send(post(path)).await.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_lasts() {
    let client = client(|_| Reply::Silence);
    let answer = tokio::time::timeout(Duration::from_secs(3600), client.send(post("/"))).await;
    assert!(answer.is_err());
}

#[tokio::test]
async fn on_a_port_it_answers_alike_and_a_failure_closes_the_connection() {
    let server = ApiServer::new(|asked| match asked.path() {
        "/gone" => Reply::Refused,
        _ => Reply::failure(404, "NotFound"),
    });
    let loopback = server.listen().await;
    let address = loopback.url.strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let mut text = String::new();
    for path in ["/a", "/gone"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
    }
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 404 "), "{text}");
    assert!(text.contains("\"reason\":\"NotFound\""), "{text}");
    assert_eq!(server.asked().len(), 2);
    drop(loopback);
    let closed = async { while TcpStream::connect(&address).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(30), closed).await.expect("the port is closed");
}
