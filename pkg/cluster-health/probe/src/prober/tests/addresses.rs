//! A cluster with several addresses is well when one of them is.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::FutureExt as _;

use super::*;

#[tokio::test]
async fn the_next_address_is_tried_and_asked_first_from_then_on() {
    let server = Server::plain(|_| Reply::Status(200, "ok")).await;
    let dead = format!("http://{}", closed_port());
    let bench = Bench::new(&inputs(&[dead.clone(), server.url(), dead]));
    let probed = bench.probe().await;
    assert_eq!(conclusion(&probed), (Verdict::Ok, None));
    assert_eq!((probed.report.endpoints.down, probed.report.endpoints.total), (1, 3));
    assert_eq!(probed.attempts[0].finding.code(), Some(Code::ConnectRefused));
    let probed = bench.probe().await;
    assert_eq!((probed.attempts.len(), probed.report.endpoints.down), (1, 1));
}

#[tokio::test]
async fn an_address_that_is_down_is_not_forgotten_until_it_answers_again() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let first = Server::plain(move |_| {
        let there = Reply::Status(503, "not ready, and there");
        if up.load(Ordering::SeqCst) { there } else { Reply::Close }
    })
    .await;
    let second = Server::plain(|_| Reply::Status(200, "ok")).await;
    let bench = Bench::new(&inputs(&[first.url(), second.url()]));
    let down = |probed: &Probed| (probed.report.endpoints.down, probed.report.endpoints.total);
    assert_eq!(down(&bench.probe().await), (1, 2));
    assert_eq!(down(&bench.probe().await), (1, 2), "only the second was asked");
    bench.prober.look_around(&bench.client, AMPLE).await;
    assert_eq!(down(&bench.probe().await), (1, 2), "it was asked, and is silent");
    is_up.store(true, Ordering::SeqCst);
    bench.prober.look_around(&bench.client, AMPLE).await;
    assert_eq!(down(&bench.probe().await), (0, 2));
    assert_eq!(bench.client.endpoints().down, 0);
}

#[tokio::test]
async fn silent_addresses_are_asked_at_the_same_time() {
    let well = Server::plain(|_| Reply::Status(200, "ok")).await;
    let mut servers = Vec::new();
    for _ in 0..20 {
        servers.push(Server::plain(|_| Reply::Hang).await);
    }
    let urls: Vec<_> = std::iter::once(&well).chain(&servers).map(Server::url).collect();
    let bench = Bench::new(&inputs(&urls));
    bench.probe().await;
    let (limit, began) = (std::time::Duration::from_secs(2), std::time::Instant::now());
    bench.prober.look_around(&bench.client, limit).await;
    // One after the other they take 90 s.
    assert!(began.elapsed() < 15 * limit, "{:?}", began.elapsed());
    assert_eq!(bench.client.endpoints().down, 20);
}

#[tokio::test]
async fn one_connection_that_is_lost_makes_no_dead_address() {
    let well = Server::plain(|_| Reply::Status(200, "ok")).await;
    let lossy = Server::plain(|asked| match asked.connection {
        0 => Reply::Reset,
        _ => Reply::Status(200, "ok"),
    })
    .await;
    let bench = Bench::new(&inputs(&[well.url(), lossy.url()]));
    bench.probe().await;
    bench.prober.look_around(&bench.client, AMPLE).await;
    assert_eq!(bench.client.endpoints().down, 0);
}

#[tokio::test]
async fn an_address_that_swallows_everything_leaves_time_for_the_others() {
    let server = Server::plain(|_| Reply::Status(200, "ok")).await;
    let hole = BlackHole::open().await;
    let addresses = [format!("http://{}", hole.address), server.url()];
    let bench = Bench::new(&inputs(&addresses)).within(Duration::from_secs(10));
    let probed = bench.probe().await;
    assert_eq!(conclusion(&probed), (Verdict::Ok, None));
    assert_eq!(probed.attempts[0].finding.code(), Some(Code::ConnectTimeout));
    assert_eq!(&*probed.attempts[0].address, hole.address.to_string());
}

#[tokio::test]
async fn addresses_that_swallow_everything_are_looked_up_again() {
    let hole = BlackHole::open().await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lookups);
    let names = Names::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(vec!["127.0.0.1".parse().unwrap()])).boxed()
    });
    let url = format!("http://api.example:{}", hole.address.port());
    let bench = Bench::with(&inputs(&[url]), ConnectionLimits::default(), names);
    let bench = bench.within(Duration::from_secs(5));
    for probes in 1..=2 {
        bench.probe().await;
        assert!(lookups.load(Ordering::SeqCst) >= probes, "its address may have changed");
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_tried_three_times() {
    let dead = format!("http://{}", closed_port());
    let probed = Bench::new(&inputs(&[dead])).probe().await;
    assert_eq!(conclusion(&probed), (Verdict::Unreachable, Some(Code::ConnectRefused)));
    assert_eq!(probed.attempts.len(), 3);
    let waits: Vec<_> = probed
        .attempts
        .windows(2)
        .map(|pair| pair[1].after.saturating_sub(pair[0].after + pair[0].took))
        .collect();
    assert!(waits.iter().all(|wait| *wait >= Duration::from_millis(95)), "{waits:?}");
}
