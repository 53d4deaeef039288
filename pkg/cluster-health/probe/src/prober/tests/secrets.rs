use std::fmt::Write as _;

use secrecy::ExposeSecret as _;

use super::certificates::{Authority, NOW};
use super::*;
use crate::inputs::Impersonation;

/// Secrets that must not appear in any text.
const PLANTED: [&str; 5] = [TOKEN, "proxy-pass", "proxy-user", "jane-the-impersonated", "team-x"];

fn loaded(addresses: &[String], ca: &Authority) -> Inputs {
    let who = Impersonation {
        user: PLANTED[3].into(),
        groups: vec![PLANTED[4].into()],
        ..Impersonation::default()
    };
    Inputs { pair: Some(ca.client(NOW)), impersonate: Some(who), ..inputs(addresses) }
}

/// Everything that a probe and a client show of themselves.
async fn shown(inputs: &Inputs) -> String {
    let bench = Bench::new(inputs).within(SHORT).reading();
    let probed = bench.probe().await;
    let mut text = bench.metrics();
    let (client, prober) = (&bench.client, &bench.prober);
    write!(text, "{inputs:?} {inputs:#?} {client:?} {prober:?} {probed:?} {probed:#?}").unwrap();
    write!(text, "{} {}", probed.report.finding, inputs.fingerprint()).unwrap();
    text
}

#[tokio::test]
async fn whatever_a_server_does_no_secret_is_shown() {
    let ca = Authority::new();
    let echo = |asked: &Asked| match asked.connection {
        0 => Reply::Status(401, "you said hunter2-the-token"),
        _ => Reply::Status(500, "Bearer hunter2-the-token"),
    };
    let replies = [Reply::Status(200, "ok"), Reply::Close, Reply::Reset, Reply::Hang];
    let mut servers = vec![Server::plain(echo).await];
    for reply in replies {
        servers.push(Server::plain(move |_| reply.clone()).await);
    }
    let stranger = Authority::new().server("127.0.0.1", NOW, None);
    servers.push(Server::start(Some(stranger), |_| Reply::Close).await);
    let mut all = Vec::new();
    for server in &servers {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{}", server.address);
            let proxied = format!("http://proxy-user:proxy-pass@{}", server.address);
            all.push(loaded(std::slice::from_ref(&url), &ca));
            all.push(Inputs { proxy: Some(proxied.into()), ..loaded(&[url], &ca) });
        }
    }
    let shown = futures::future::join_all(all.iter().map(shown)).await;
    for (inputs, shown) in all.iter().zip(shown) {
        let key = inputs.pair.as_ref().unwrap().key.expose_secret();
        let key = String::from_utf8(key.to_vec()).unwrap();
        for secret in PLANTED.into_iter().chain(key.lines().filter(|line| line.len() > 20)) {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}
