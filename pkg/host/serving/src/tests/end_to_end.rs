//! The server as well-behaved clients see it.

use super::*;
use std::net::Ipv6Addr;

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::{Access, Endpoints, Page, ServeError, reply};

#[tokio::test]
async fn http1_and_http2_give_the_same_bytes() {
    let server = start(&loopback()).await;
    server.health.add("shutdown", Endpoints::READY, || Err("stopping".to_owned()));
    for (alpn, version) in [("http/1.1", Version::HTTP_11), ("h2", Version::HTTP_2)] {
        let healthy = server.get(&[alpn], "/livez").await;
        assert_eq!((healthy.status, healthy.version), (200, version));
        assert_eq!(healthy.body, "ok");
        assert_eq!(healthy.headers["content-length"], "2");
        assert_eq!(healthy.headers["cache-control"], "no-cache, private");
        let failing = server.get(&[alpn], "/readyz").await;
        assert_eq!(failing.status, 500);
        assert_eq!(
            failing.body,
            "[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n"
        );
        assert_eq!(server.get(&[alpn], "/nothing").await.status, 404);
        let metrics = server.get(&[alpn], "/metrics").await;
        assert!(
            metrics.body.contains("icm_serving_connections{listener=\"secure\"} 1\n"),
            "{}",
            metrics.body
        );
    }
}

#[tokio::test]
async fn http2_is_preferred_and_can_be_switched_off() {
    let both = ["http/1.1", "h2"];
    let server = start(&loopback()).await;
    assert_eq!(server.get(&both, "/healthz").await.version, Version::HTTP_2);
    assert_eq!(server.get(&[], "/healthz").await.version, Version::HTTP_11);
    let server = start(&ListenerOptions { disable_http2: true, ..loopback() }).await;
    assert_eq!(server.get(&both, "/healthz").await.version, Version::HTTP_11);
}

#[tokio::test]
async fn an_unspecified_address_serves_both_families() {
    let unspecified: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    for bind_address in unspecified {
        let mut server = start(&ListenerOptions { bind_address, ..loopback() }).await;
        let port = server.address.port();
        let mut homes: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into()];
        // A host without IPv6 is served on IPv4 alone.
        if server.address.is_ipv6() && std::net::TcpListener::bind("[::1]:0").is_ok() {
            homes.push(Ipv6Addr::LOCALHOST.into());
        }
        for home in homes {
            server.address = SocketAddr::new(home, port);
            assert_eq!(server.get(&["h2"], "/metrics").await.status, 200, "from {home}");
        }
    }
}

#[tokio::test]
async fn a_taken_port_is_named_with_a_way_out() {
    let server = start(&loopback()).await;
    let port = server.address.port();
    for bind_address in ["127.0.0.1", "0.0.0.0"] {
        let bind_address = bind_address.parse().unwrap();
        let options = ListenerOptions { bind_address, port, ..loopback() };
        let error = Server::bind(&options).await.err().unwrap();
        assert!(matches!(error, ServeError::AddressInUse { .. }), "{error}");
        assert!(error.to_string().contains(&format!("port {port} is in use")), "{error}");
        assert!(error.to_string().contains("--secure-port"), "{error}");
    }
    let address = "0.0.0.0:10257".parse().unwrap();
    let message = ServeError::AddressInUse { address, port_flag: "--secure-port" }.to_string();
    assert!(message.contains("kube-controller-manager"), "{message}");
    assert!(message.contains("--secure-port=10267"), "{message}");
}

#[tokio::test]
async fn further_addresses_are_served_at_the_same_port_with_the_same_certificate() {
    let further_addresses = vec!["127.0.0.2".parse().unwrap(), "127.0.0.3".parse().unwrap()];
    let mut server = start(&ListenerOptions { further_addresses, ..loopback() }).await;
    let port = server.address.port();
    let mut shown = Vec::new();
    for address in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
        server.address = SocketAddr::new(address.parse().unwrap(), port);
        assert_eq!(server.get(&["h2"], "/livez").await.status, 200, "{address}");
        let stream = server.connect(&["h2"]).await;
        shown.push(stream.get_ref().1.peer_certificates().unwrap().to_vec());
    }
    assert!(shown.windows(2).all(|two| two[0] == two[1]));
    server.stop.cancel();
    server.task.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err(), "all sockets are closed");
}

#[tokio::test]
async fn an_address_that_is_not_of_this_host_is_named() {
    let further_addresses = vec!["192.0.2.1".parse().unwrap()];
    let options = ListenerOptions { further_addresses, ..loopback() };
    let error = Server::bind(&options).await.err().unwrap().to_string();
    assert!(error.contains("cannot listen on 192.0.2.1:"), "{error}");
}

#[tokio::test]
async fn a_port_is_shared_only_when_both_permit_it() {
    let sharing = ListenerOptions { permit_port_sharing: true, ..loopback() };
    let first = start(&sharing).await;
    let port = first.address.port();
    assert!(Server::bind(&ListenerOptions { port, ..sharing }).await.is_ok());
    assert!(Server::bind(&ListenerOptions { port, ..loopback() }).await.is_err());
}

/// What `--permit-address-sharing` promises.
#[tokio::test]
async fn a_restart_waits_for_no_old_connection() {
    let server = start(&loopback()).await;
    let port = server.address.port();
    let mut open = server.connect(&["http/1.1"]).await;
    // A server that has not read everything resets its connection.
    open.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok") {
        assert!(open.read_buf(&mut answer).await.unwrap() > 0, "{answer:?}");
    }
    // The side that closes first keeps its address for a minute.
    server.stop.cancel();
    server.task.await.unwrap();
    open.read_to_end(&mut Vec::new()).await.ok();
    drop(open);
    assert!(Server::bind(&ListenerOptions { port, ..loopback() }).await.is_ok());
}

#[tokio::test]
async fn the_stop_closes_idle_connections_at_once() {
    let server = start(&loopback()).await;
    let mut idle = server.connect(&["http/1.1"]).await;
    idle.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = [0; 15];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");

    // On the paused clock, which a machine that stands still does not move.
    tokio::time::pause();
    let stopped = Instant::now();
    server.stop.cancel();
    server.task.await.unwrap();
    assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
    idle.read_to_end(&mut Vec::new()).await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err(), "the port is free again");
}

#[tokio::test]
async fn a_request_under_way_is_answered_after_the_stop() {
    let server = start(&loopback()).await;
    let mut slow = server.connect(&["http/1.1"]).await;
    slow.write_all(b"GET /livez HTTP/1.1\r\nho").await.unwrap();
    // The server has seen the first half when it has served somebody who came later.
    server.get(&["h2"], "/livez").await;
    server.stop.cancel();
    tokio::task::yield_now().await;
    slow.write_all(b"st: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nok"), "{answer}");
    server.task.await.unwrap();
}

#[tokio::test]
async fn the_stop_waits_no_longer_than_two_seconds_for_a_peer_that_does_not_finish() {
    let server = start(&loopback()).await;
    let mut stuck = server.connect(&["http/1.1"]).await;
    stuck.write_all(b"GET /livez HTTP/1.1\r\nho").await.unwrap();
    server.get(&["h2"], "/livez").await;
    tokio::time::pause();
    let stopped = Instant::now();
    server.stop.cancel();
    server.task.await.unwrap();
    let took = stopped.elapsed();
    assert!(took < Duration::from_millis(2500), "{took:?}");
}

#[tokio::test]
async fn head_has_the_length_of_the_body_and_no_body() {
    let server = start(&loopback()).await;
    for alpn in ["http/1.1", "h2"] {
        let request = Request::head(format!("https://{}/livez", server.address));
        let answer =
            send(server.connect(&[alpn]).await, request.body(Full::default()).unwrap()).await;
        assert_eq!((answer.status, &*answer.body), (200, ""), "{alpn}");
        assert_eq!(answer.headers["content-length"], "2", "{alpn}");
    }
}

#[tokio::test]
async fn a_page_that_takes_its_time_is_not_taken_for_an_idle_connection() {
    let server = start(&loopback()).await;
    for alpn in ["http/1.1", "h2"] {
        server.pages.add(Page::new("/slow", Access::Authorized, |_| async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            reply::text(StatusCode::OK, "done")
        }));
        let stream = server.connect(&[alpn]).await;
        tokio::time::pause();
        // Half of the idle time passes before the request, half of it within.
        tokio::time::sleep(Duration::from_secs(if alpn == "h2" { 60 } else { 20 })).await;
        let request = Request::get(format!("https://{}/slow", server.address));
        let answer = send(stream, request.body(Full::default()).unwrap()).await;
        assert_eq!((answer.status, &*answer.body), (200, "done"), "{alpn}");
        tokio::time::resume();
    }
}
