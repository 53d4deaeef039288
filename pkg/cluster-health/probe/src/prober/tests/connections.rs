//! Reuse of connections.

use crate::link::Link;

use super::*;

const OK: Reply = Reply::Status(200, "ok");

fn limits(max_age: Duration) -> ConnectionLimits {
    ConnectionLimits { max_age, ..ConnectionLimits::default() }
}

#[tokio::test]
async fn probes_share_a_connection_while_it_is_young() {
    let server = Server::plain(|_| OK).await;
    let bench = Bench::new(&inputs(&[server.url()]));
    for _ in 0..3 {
        assert_eq!(conclusion(&bench.probe().await), (Verdict::Ok, None));
        let session = bench.client.session.lock();
        assert!(
            session.link.as_ref().is_some_and(Link::is_at_rest),
            "it keeps the buffers of HTTP"
        );
    }
    assert_eq!(server.connections(), 1);
    assert!(bench.metrics().contains("clusterhealth_connections 1"));
    assert!(bench.metrics().contains("clusterhealth_tls_handshakes_total{outcome=\"ok\"} 1"));
    drop(bench);
    server.closed(1).await;
}

#[tokio::test]
async fn a_connection_that_is_too_old_is_replaced() {
    let server = Server::plain(|_| OK).await;
    let inputs = inputs(&[server.url()]);
    let bench = Bench::with(&inputs, limits(Duration::ZERO), Names::default()).reading();
    bench.probe().await;
    server.closed(1).await;
    assert!(bench.metrics().contains("clusterhealth_connections 0"));
    bench.probe().await;
    assert_eq!(server.connections(), 2, "one for each probe, with both of its requests");
    assert_eq!(server.paths().len(), 4);
}

#[tokio::test]
async fn a_connection_that_would_idle_too_long_is_closed() {
    let server = Server::plain(|_| OK).await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let bench = Bench { next_in: Duration::from_secs(300), ..bench };
    bench.probe().await;
    server.closed(1).await;
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_costs_no_attempt() {
    let closing = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let server = Server::plain(move |_| Reply::Bytes(closing.to_vec())).await;
    let bench = Bench::new(&inputs(&[server.url()]));
    for _ in 0..2 {
        let probed = bench.probe().await;
        assert_eq!(conclusion(&probed), (Verdict::Ok, None));
        assert_eq!(probed.attempts.len(), 1);
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_connection_on_which_more_came_than_was_asked_for_is_never_used_again() {
    let more = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\n\r\n";
    let server = Server::plain(move |_| Reply::Bytes(more.to_vec())).await;
    let bench = Bench::new(&inputs(&[server.url()]));
    for connections in 1..=2 {
        let probed = bench.probe().await;
        assert_eq!(conclusion(&probed), (Verdict::Ok, None));
        assert_eq!((probed.attempts.len(), server.connections()), (1, connections));
    }
}

#[tokio::test]
async fn a_connection_that_ends_at_rest_costs_no_attempt() {
    let (stream, far) = tokio::io::duplex(1024);
    let meters = Meters::new(&Registry::new()).unwrap();
    let link = Link::new(Box::new(stream), 0, Duration::from_secs(9), None, meters.open());
    let mut link = link.at_rest(Duration::from_secs(9)).expect("it is open");
    assert!(link.is_open());
    drop(far);
    assert!(!link.is_open() && !link.is_open());
    assert!(link.at_rest(Duration::from_secs(9)).is_none());
}

#[tokio::test]
async fn a_connection_that_went_silent_gets_half_the_time_and_is_never_used_again() {
    const BUDGET: Duration = Duration::from_secs(8);
    // A machine that stands still takes from the time as well: then once more.
    for _ in 0..5 {
        let took = silent_connection_got(BUDGET).await;
        assert!(took >= BUDGET * 4 / 10, "{took:?}");
        if took <= BUDGET * 6 / 10 {
            return;
        }
    }
    panic!("it got more than half of the time again and again");
}

/// How long a probe waited at a connection that had gone silent.
async fn silent_connection_got(budget: Duration) -> Duration {
    let server = Server::plain(|asked| match (asked.connection, asked.path.as_str()) {
        (0, "/api/v1/namespaces?limit=1") => Reply::Hang,
        _ => OK,
    })
    .await;
    let bench = Bench::new(&inputs(&[server.url()])).within(budget);
    bench.probe().await;
    let bench = bench.reading();
    let probed = bench.probe().await;
    assert_eq!(conclusion(&probed), (Verdict::Ok, None));
    let silent = &probed.attempts[1];
    assert!(silent.reused, "{silent:?}");
    assert_eq!(server.connections(), 2);
    server.closed(1).await;
    silent.took
}

#[tokio::test]
async fn a_probe_that_is_given_up_closes_its_connection() {
    let server = Server::plain(|_| Reply::Hang).await;
    let bench = Bench::new(&inputs(&[server.url()]));
    let mut probe = Box::pin(bench.probe());
    while server.heads().is_empty() {
        assert!(futures::poll!(&mut probe).is_pending());
        tokio::task::yield_now().await;
    }
    drop(probe);
    server.closed(1).await;
    assert!(bench.metrics().contains("clusterhealth_connections 0"));
}
