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
async fn a_borrowing_read_uses_the_connection_of_probes_and_gives_it_back() {
    let server = Server::plain(|_| Reply::Status(200, "ok")).await;
    let bench = Bench::new(&inputs(&[server.url()]));
    for _ in 0..3 {
        bench.probe().await;
        let mut reader = bench.prober.borrowing_reader(&bench.client);
        for _ in 0..2 {
            assert_eq!(&*reader.get("/version", MOST, AMPLE).await.unwrap().body, b"ok");
        }
    }
    assert_eq!(server.connections(), 1);
    // Where probes keep none, none is left.
    bench.client.close_connection();
    bench.prober.borrowing_reader(&bench.client).get("/version", MOST, AMPLE).await.unwrap();
    server.closed(2).await;
}

#[tokio::test]
async fn a_probe_waits_for_no_borrowing_read_and_keeps_its_own_connection() {
    let server = Server::plain(|asked: &Asked| match &*asked.path {
        "/hanging" => Reply::Hang,
        _ => Reply::Status(200, "ok"),
    })
    .await;
    let bench = Bench::new(&inputs(&[server.url()]));
    bench.probe().await;
    let mut hanging = bench.prober.borrowing_reader(&bench.client);
    assert_eq!(hanging.get("/hanging", MOST, SHORT).await.unwrap_err().code, Code::Timeout);
    assert_eq!(conclusion(&bench.probe().await), (Verdict::Ok, None));
    let mut reader = bench.prober.borrowing_reader(&bench.client);
    reader.get("/version", MOST, AMPLE).await.unwrap();
    let before = server.connections();
    assert_eq!(conclusion(&bench.probe().await), (Verdict::Ok, None));
    assert_eq!(server.connections(), before + 1, "the probe opens its own");
    drop(reader);
    bench.probe().await;
    assert_eq!(server.connections(), before + 1, "and that is kept");
    // A connection that has to be closed is not given back.
    let reader = bench.prober.borrowing_reader(&bench.client);
    bench.client.close_connection();
    drop(reader);
    bench.probe().await;
    assert_eq!(server.connections(), before + 2);
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
    let closed = format!("http://{}", closed_port());
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

#[tokio::test]
async fn an_address_that_is_silent_leaves_time_for_the_next_one() {
    let (hole, server) =
        (BlackHole::open().await, Server::plain(|_| Reply::Status(200, "here")).await);
    let bench = Bench::new(&inputs(&[format!("http://{}", hole.address), server.url()]));
    let mut reader = bench.prober.reader(&bench.client);
    let read = reader.get("/version", MOST, Duration::from_secs(8)).await.unwrap();
    assert_eq!(&*read.body, b"here");
}

#[tokio::test]
async fn a_connection_that_went_silent_leaves_time_for_a_new_one() {
    let server = Server::plain(|asked| match (asked.connection, &*asked.path) {
        (0, "/second") => Reply::Hang,
        _ => Reply::Status(200, "here"),
    })
    .await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let mut reader = bench.prober.reader(&bench.client);
    reader.get("/first", MOST, AMPLE).await.unwrap();
    let read = reader.get("/second", MOST, Duration::from_secs(8)).await.unwrap();
    assert_eq!((&*read.body, server.connections()), (&b"here"[..], 2));
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_fetched_again() {
    let server = Server::plain(|_| Reply::Status(200, "longer than eight")).await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let mut reader = bench.prober.reader(&bench.client);
    reader.get("/first", MOST, AMPLE).await.unwrap();
    assert_eq!(reader.get("/second", 8, AMPLE).await.unwrap_err().code, Code::Body);
    assert_eq!(server.paths(), ["/first", "/second"]);
}

#[tokio::test]
async fn a_read_in_pieces_hands_on_what_comes_and_keeps_nothing_of_it() {
    let server = Server::plain(|asked: &Asked| match &*asked.path {
        "/short" => Reply::Status(200, "12345678"),
        "/refused" => Reply::Status(403, "hidden"),
        "/broken" => Reply::Last("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n1234"),
        _ => Reply::Status(200, "longer than eight"),
    })
    .await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let mut reader = bench.prober.reader(&bench.client);
    let mut read = async |path: &str, goes_on: bool| {
        let mut seen = Vec::new();
        let mut take = |bytes: &[u8]| {
            seen.extend_from_slice(bytes);
            goes_on
        };
        let status = reader.get_in_pieces(path, 8, AMPLE, &mut take).await;
        let status = status.map(|status| status.as_u16()).map_err(|error| error.code);
        (status, String::from_utf8(seen).unwrap())
    };
    for _ in 0..2 {
        assert_eq!(read("/short", true).await, (Ok(200), "12345678".to_owned()));
    }
    assert_eq!(server.connections(), 1, "the connection is kept");
    assert_eq!(read("/short", false).await.0, Ok(200), "whoever reads has had enough");
    assert_eq!(read("/refused", true).await, (Ok(403), String::new()));
    assert_eq!(read("/long", true).await.0, Err(Code::Body));
    let asked = server.paths().len();
    assert!(read("/broken", true).await.0.is_err());
    assert_eq!(server.paths().len(), asked + 1, "what came of it was taken");
}

#[tokio::test]
async fn a_connection_that_is_too_old_or_idled_too_long_carries_no_other_read() {
    let defaults = ConnectionLimits::default();
    for limits in [
        ConnectionLimits { max_age: Duration::ZERO, ..defaults },
        ConnectionLimits { idle_max: Duration::ZERO, ..defaults },
    ] {
        let server = Server::plain(|_| Reply::Status(200, "here")).await;
        let bench = Bench::with(&inputs(&[server.url()]), limits, Names::default());
        let mut reader = bench.prober.reader(&bench.client);
        for _ in 0..2 {
            reader.get("/version", MOST, AMPLE).await.unwrap();
        }
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn the_clock_of_the_server_is_read_with_the_answer() {
    let server = Server::plain(|asked: &Asked| match &*asked.path {
        "/dated" => Reply::Last(
            "HTTP/1.1 200 OK\r\ndate: Tue, 24 Nov 2026 12:00:00 GMT\r\ncontent-length: 0\r\n\r\n",
        ),
        _ => Reply::Last("HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 0\r\n\r\n"),
    })
    .await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let mut reader = bench.prober.reader(&bench.client);
    let dated = reader.get("/dated", MOST, AMPLE).await.unwrap();
    assert_eq!(dated.date, Some("2026-11-24T12:00:00Z".parse().unwrap()));
    assert_eq!(reader.get("/other", MOST, AMPLE).await.unwrap().date, None);
}
