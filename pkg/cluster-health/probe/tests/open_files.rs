//! A probe in a process that may open no more files: alone in its program, since the others would
//! have to do without as well.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use health::Code;
use probe::{Address, ConnectionLimits, Inputs, Meters, Names, Order, Prober, WaivedChecks};
use prometheus::{Encoder as _, Registry, TextEncoder};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Opens files until there is no room for another.
fn fill() -> Vec<std::fs::File> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).unwrap();
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
}

#[tokio::test]
async fn a_process_that_may_open_no_more_files_blames_nobody() {
    let registry = Registry::new();
    let meters = Meters::new(&registry).unwrap();
    let prober = Prober::new(meters, ConnectionLimits::default(), Names::default());
    let full = fill();
    for address in ["https://127.0.0.1:1", "https://api.example.invalid", "https://localhost:1"] {
        let inputs = Inputs {
            addresses: vec![Address::parse(address).unwrap()],
            tls: WaivedChecks { everything: true, ..WaivedChecks::default() },
            ..Inputs::default()
        };
        let client = Arc::new(prober.client(&inputs).unwrap());
        let order = Order {
            budget: Duration::from_secs(20),
            authenticated_read: false,
            next_in: Duration::from_secs(10),
            newest: &|| None,
            reread: None,
        };
        let report = prober.probe(&client, &order).await.report;
        assert_eq!(report.finding.code(), Some(Code::OwnLimit), "{address}: {report:?}");
        let detail = report.detail.unwrap();
        assert_eq!(&*detail, "this process can open no more connections: too many open files");
    }
    drop(full);
    let mut text = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("clusterhealth_tls_handshakes_total{outcome=\"own-limit\"}"), "{text}");
}
