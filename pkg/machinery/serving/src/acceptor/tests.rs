//! Peers of other hosts: the sockets are of this host, the addresses are not.

use std::net::Ipv4Addr;

use prometheus::{IntGauge, Registry};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::*;
use crate::metrics::ListenerMetrics;
use crate::{ListenerOptions, Pages, ServingMetrics, TlsOptions};

const PATIENCE: Duration = Duration::from_secs(10);
const OWN: &str = "198.51.100.1";
const REMOTE: &str = "192.0.2.7";

/// An acceptor and its metrics.
struct Entrance {
    acceptor: Acceptor,
    metrics: ListenerMetrics,
}

impl Entrance {
    async fn build() -> Self {
        let bind_address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let options = ListenerOptions { bind_address, port: 0, ..ListenerOptions::default() };
        let (listener, _) = listener::listen(&options).unwrap().remove(0);
        let source = crate::CertificateSource::Memory;
        let reloader = crate::certificate::Reloader::load(&source, &[], vec![bind_address], None)
            .await
            .unwrap();
        let tls =
            TlsOptions::default().server_config(reloader.certificates(), false, true).unwrap();
        let metrics = ServingMetrics::new(&Registry::new()).unwrap().of("secure");
        let stop = CancellationToken::new();
        let connections = Arc::new(Connections {
            pages: Pages::new(),
            acceptor: Arc::new(tls).into(),
            guard: crate::guard::SharedGuard::new(Arc::new(crate::Everyone)),
            clients: crate::client_ca::Clients::Ignored,
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
async fn remote_peers_over_the_limit_are_closed_and_counted_while_those_of_this_host_are_served() {
    let entrance = Entrance::build().await;
    let most = i64::try_from(REMOTE_CONNECTIONS).unwrap();
    let mut remote = Vec::new();
    for _ in 0..REMOTE_CONNECTIONS {
        remote.push(entrance.knock(REMOTE).await);
    }
    entrance.until_open(most).await;
    assert_eq!(entrance.metrics.rejected.get(), 0);

    let mut one_too_many = entrance.knock(REMOTE).await;
    let closed = timeout(PATIENCE, one_too_many.read(&mut [0])).await.expect("closes at once");
    assert_eq!(closed.unwrap(), 0);
    assert_eq!(entrance.metrics.rejected.get(), 1);

    let _local = [
        entrance.knock("127.0.0.1").await,
        entrance.knock("::1").await,
        entrance.knock("::ffff:127.0.0.1").await,
        // A probe of the kubelet on the host network.
        entrance.knock(OWN).await,
        entrance.knock(&format!("::ffff:{OWN}")).await,
    ];
    entrance.until_open(most + 5).await;
    assert_eq!(entrance.metrics.rejected.get(), 1);

    remote.pop();
    entrance.until_open(most + 4).await;
    let _next = entrance.knock(REMOTE).await;
    entrance.until_open(most + 5).await;
    assert_eq!(entrance.metrics.rejected.get(), 1, "a slot that was left is free again");
}
