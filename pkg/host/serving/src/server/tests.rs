//! Peers of other hosts: the sockets are of this host, the addresses are not.

use super::*;
use std::net::Ipv4Addr;

use prometheus::{IntGauge, Registry};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::connection::ListenerMetrics;
use crate::{ListenerOptions, Pages, ServingMetrics, TlsOptions};

const PATIENCE: Duration = Duration::from_secs(10);
const OWN: &str = "198.51.100.1";
const REMOTE: &str = "192.0.2.7";
const REMOTE_BOUNDS: Bounds = crate::server::REMOTE;

/// An acceptor and its metrics.
struct Entrance {
    acceptor: Acceptor,
    metrics: ListenerMetrics,
}

impl Entrance {
    async fn build() -> Self {
        let bind_address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let options = ListenerOptions { bind_address, port: 0, ..ListenerOptions::default() };
        let (listener, _) = listen(&options).unwrap().remove(0);
        let source = crate::CertificateSource::Memory;
        let reloader =
            crate::reloader::Reloader::load(&source, &[], vec![bind_address], None).await.unwrap();
        let tls =
            TlsOptions::default().server_config(reloader.certificates(), false, true).unwrap();
        let metrics = ServingMetrics::new(&Registry::new()).unwrap().of("secure");
        let stop = CancellationToken::new();
        let connections = Arc::new(Connections {
            pages: Pages::new(),
            acceptor: Arc::new(tls).into(),
            guard: crate::guard::SharedGuard::new(Arc::new(crate::Everyone)),
            clients: crate::guard::Clients::Ignored,
            max_streams: 0,
            metrics: metrics.clone(),
            stop: stop.clone(),
        });
        let rejected = metrics.rejected.clone();
        let admission = Admission::new(connections, TaskTracker::new(), stop, rejected);
        let acceptor = Acceptor::new(listener, admission);
        Self { acceptor, metrics }
    }

    /// A peer at `address` that connects and says nothing.
    async fn knock(&self, address: &str) -> TcpStream {
        let own = self.acceptor.listener.local_addr().unwrap();
        let peer = TcpStream::connect(own).await.unwrap();
        let (stream, _) = self.acceptor.accept().await;
        self.acceptor.admission.admit(stream, address.parse().unwrap(), OWN.parse().unwrap());
        peer
    }

    async fn until_open(&self, wanted: i64) {
        let reached = async {
            while self.metrics.connections.get() != wanted {
                tokio::task::yield_now().await;
            }
        };
        let open: &IntGauge = &self.metrics.connections;
        assert!(timeout(PATIENCE, reached).await.is_ok(), "{} are open", open.get());
    }
}

#[tokio::test]
async fn a_remote_source_over_its_limit_evicts_its_own_oldest_connection_only() {
    let entrance = Entrance::build().await;
    let most = i64::try_from(REMOTE_BOUNDS.of_one_source).unwrap();
    let mut flood = Vec::new();
    for _ in 0..300 {
        flood.push(entrance.knock(REMOTE).await);
    }
    entrance.until_open(most).await;
    let evicted = u64::try_from(300 - REMOTE_BOUNDS.of_one_source).unwrap();
    assert_eq!(entrance.metrics.rejected.get(), evicted);
    let closed = timeout(PATIENCE, flood[0].read(&mut [0])).await.expect("the oldest is closed");
    assert_eq!(closed.unwrap_or(0), 0);

    let _others = [
        entrance.knock("192.0.2.8").await,
        entrance.knock("127.0.0.1").await,
        entrance.knock("::1").await,
        entrance.knock("::ffff:127.0.0.1").await,
        // A probe of the kubelet on the host network.
        entrance.knock(OWN).await,
        entrance.knock(&format!("::ffff:{OWN}")).await,
    ];
    entrance.until_open(most + 6).await;

    flood.pop();
    entrance.until_open(most + 5).await;
}

#[tokio::test]
async fn the_remote_places_are_full_and_another_source_gets_in() {
    let entrance = Entrance::build().await;
    let most = i64::try_from(REMOTE_BOUNDS.of_all).unwrap();
    let mut flood = Vec::new();
    for host in 0..10 {
        for _ in 0..REMOTE_BOUNDS.of_one_source {
            flood.push(entrance.knock(&format!("198.51.100.{}", 10 + host)).await);
        }
    }
    entrance.until_open(most).await;
    let rejected = entrance.metrics.rejected.get();
    let _prometheus = entrance.knock("192.0.2.8").await;
    let counted = async {
        while entrance.metrics.rejected.get() == rejected {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, counted).await.expect("one of the flood makes room");
    entrance.until_open(most).await;
}
