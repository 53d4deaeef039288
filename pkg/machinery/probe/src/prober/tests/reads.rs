//! Reads that are no probes.

use super::*;

const MOST: usize = 1 << 20;

#[tokio::test]
async fn reads_share_a_connection_that_no_probe_uses() {
    let server = Server::plain(|asked: &Asked| match &*asked.path {
        "/version" => Reply::Status(200, "1.36"),
        _ => Reply::Status(200, "ok"),
    })
    .await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let mut reader = bench.prober.reader(&bench.client);
    for _ in 0..2 {
        let read = reader.get("/version", MOST, AMPLE).await.unwrap();
        assert_eq!((read.status.as_u16(), &*read.body), (200, &b"1.36"[..]));
        bench.probe().await;
    }
    assert_eq!(server.connections(), 2);
    drop(reader);
    server.closed(1).await;
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_replaced() {
    let server =
        Server::plain(|_| Reply::Last("HTTP/1.1 403 Forbidden\r\ncontent-length: 1\r\n\r\nx"))
            .await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let mut reader = bench.prober.reader(&bench.client);
    for _ in 0..3 {
        let read = reader.get("/api/v1/nodes?limit=1", MOST, AMPLE).await.unwrap();
        assert_eq!(read.status.as_u16(), 403);
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn an_address_that_cannot_be_reached_gives_way_to_the_next_one() {
    let server = Server::plain(|_| Reply::Status(200, "here")).await;
    let closed = format!("http://{}", closed_port().await);
    let bench = Bench::new(&inputs(&[closed, server.url()]));
    let read = bench.prober.reader(&bench.client).get("/version", MOST, AMPLE).await.unwrap();
    assert_eq!(&*read.body, b"here");
}

#[tokio::test]
async fn a_read_ends_in_time_and_at_its_length() {
    let server = Server::plain(|asked: &Asked| match &*asked.path {
        "/long" => Reply::Status(200, "longer than eight"),
        _ => Reply::Hang,
    })
    .await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let mut reader = bench.prober.reader(&bench.client);
    let late = reader.get("/never", MOST, SHORT).await.unwrap_err();
    assert_eq!(late.code, Code::Timeout);
    let long = reader.get("/long", 8, AMPLE).await.unwrap_err();
    assert_eq!(long.to_string(), "cannot read from the cluster: the answer is longer than 8 bytes");
}
