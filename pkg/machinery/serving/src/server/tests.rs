//! Peers of other hosts, as the door sees them: the sockets are of this host, the addresses are not.

use std::net::{IpAddr, Ipv4Addr};

use prometheus::{IntGauge, Registry};
use tokio::io::AsyncReadExt;

use super::*;
use crate::door::MOST_STRANGERS;
use crate::{BuildInfo, Health};

const PATIENCE: Duration = Duration::from_secs(10);
const STRANGER: &str = "192.0.2.7";

/// A door with the socket that its peers connect to.
struct Entrance {
    listener: TcpListener,
    door: Door,
    metrics: ServerMetrics,
}

impl Entrance {
    async fn build() -> Self {
        let bind_address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let options = ServingOptions { bind_address, port: 0, ..ServingOptions::default() };
        let Server { listener, tls, .. } = Server::bind(&options).await.unwrap();
        let registry = Registry::new();
        let metrics = ServerMetrics::new(&registry).unwrap();
        let version = BuildInfo { version: "0.0.0", commit: "c", rustc: "r", k8s_compat: "k" };
        let routes = Routes { health: Health::new(), registry, version };
        let stop = CancellationToken::new();
        let connections = Connections::new(routes, tls, 0, metrics.clone(), stop.clone());
        let rejected = metrics.rejected.clone();
        let door = Door::new(Arc::new(connections), TaskTracker::new(), stop, rejected);
        Self { listener, door, metrics }
    }

    /// A peer at `address` that connects and says nothing.
    async fn knock(&self, address: &str) -> TcpStream {
        let peer = TcpStream::connect(self.listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = self.listener.accept().await.unwrap();
        self.door.let_in(stream, address.parse().unwrap());
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
async fn strangers_over_the_limit_are_closed_and_counted_while_local_peers_get_in() {
    let entrance = Entrance::build().await;
    let most = i64::try_from(MOST_STRANGERS).unwrap();
    let mut strangers = Vec::new();
    for _ in 0..MOST_STRANGERS {
        strangers.push(entrance.knock(STRANGER).await);
    }
    entrance.until_open(most).await;
    assert_eq!(entrance.metrics.rejected.get(), 0);

    let mut one_too_many = entrance.knock(STRANGER).await;
    let closed = timeout(PATIENCE, one_too_many.read(&mut [0])).await.expect("closes at once");
    assert_eq!(closed.unwrap(), 0);
    assert_eq!(entrance.metrics.rejected.get(), 1);

    let _local = [
        entrance.knock("127.0.0.1").await,
        entrance.knock("::1").await,
        entrance.knock("::ffff:127.0.0.1").await,
    ];
    entrance.until_open(most + 3).await;
    assert_eq!(entrance.metrics.rejected.get(), 1);

    strangers.pop();
    entrance.until_open(most + 2).await;
    let _next = entrance.knock(STRANGER).await;
    entrance.until_open(most + 3).await;
    assert_eq!(entrance.metrics.rejected.get(), 1, "a seat that was left is free again");
}
