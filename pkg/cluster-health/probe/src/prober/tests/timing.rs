use futures::FutureExt as _;

use super::*;

/// Probes that hang take their time and not much more, for whatever else this machine does.
fn assert_in_time(probed: &Probed) {
    let took = probed.report.took;
    assert!(took < SHORT + Duration::from_secs(20), "{took:?}");
    assert!(took >= SHORT * 9 / 10, "{took:?}");
}

async fn probe_hanging(inputs: &Inputs, names: Names) -> Probed {
    let bench = Bench::with(inputs, ConnectionLimits::default(), names).within(SHORT);
    let probed = bench.probe().await;
    assert_in_time(&probed);
    probed
}

#[tokio::test]
async fn whatever_hangs_the_probe_ends_and_says_where_it_was() {
    let hanging = Server::plain(|_| Reply::Hang).await;
    let dribbling =
        Server::plain(|_| Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no".to_vec()))
            .await;
    let headers = Server::plain(|_| Reply::Bytes(b"HTTP/1.1 200 OK\r\nx:".to_vec())).await;
    let hole = BlackHole::open().await;
    let tls = format!("https://{}", hanging.address);
    // (address, code, verdict, what was waited for)
    let rows = [
        (hanging.url(), Code::Timeout, Verdict::Unreachable, Some("the answer")),
        (headers.url(), Code::Timeout, Verdict::Unreachable, Some("the answer")),
        (dribbling.url(), Code::Timeout, Verdict::Unhealthy, None),
        (tls, Code::Timeout, Verdict::Unreachable, Some("TLS")),
        (format!("http://{}", hole.address), Code::ConnectTimeout, Verdict::Unreachable, None),
        ("http://no-answer.example".into(), Code::Dns, Verdict::Unreachable, Some("the address")),
    ];
    let probes = rows.map(|(url, code, verdict, words)| async move {
        let names = Names::new(|_| std::future::pending().boxed());
        let probed = probe_hanging(&inputs(std::slice::from_ref(&url)), names).await;
        assert_eq!(conclusion(&probed), (verdict, Some(code)), "{url}: {:?}", probed.attempts);
        if let Some(words) = words {
            let detail = probed.report.detail.unwrap();
            assert!(detail.contains(words), "{url}: {detail}");
        }
    });
    futures::future::join_all(probes).await;
}

#[tokio::test]
async fn a_name_without_address_is_told_as_such() {
    let names = Names::new(|_| std::future::ready(Ok(vec![])).boxed());
    let inputs = inputs(&["http://nowhere.example".into()]);
    let probed = Bench::with(&inputs, ConnectionLimits::default(), names).probe().await;
    assert_eq!(conclusion(&probed), (Verdict::Unreachable, Some(Code::Dns)));
}

#[tokio::test]
async fn the_times_of_the_phases_are_told_as_far_as_they_were_passed() {
    let server = Server::plain(|_| Reply::Status(200, "ok")).await;
    let names = Names::new(|_| std::future::ready(Ok(vec!["127.0.0.1".parse().unwrap()])).boxed());
    let url = format!("http://api.example:{}", server.address.port());
    let bench = Bench::with(&inputs(&[url]), ConnectionLimits::default(), names);
    let first = bench.probe().await.attempts[0].timings;
    assert!(first.dns.is_some() && first.tcp.is_some() && first.first_byte.is_some());
    assert!(first.tls.is_none() && first.proxy.is_none());
    let second = bench.probe().await;
    assert!(second.attempts[0].reused);
    let second = second.attempts[0].timings;
    assert!(second.dns.is_none() && second.tcp.is_none() && second.first_byte.is_some());
}
