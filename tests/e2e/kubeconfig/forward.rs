//! A plain TCP way to the API server at another address, which can be cut.

use std::net::SocketAddr;

use tests::Cluster;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Forwards until dropped.
pub(crate) struct Forward {
    address: SocketAddr,
    server: String,
    accepting: JoinSet<()>,
}

impl Forward {
    /// Listens at `host`, an address of the loopback interface, on a free port.
    pub(crate) async fn at(host: &str, cluster: &Cluster) -> Self {
        Self::to(host, cluster.url()).await
    }

    /// Like [`Self::at`], to the server of this URL.
    pub(crate) async fn to(host: &str, url: &str) -> Self {
        let server = url.strip_prefix("https://").unwrap().to_owned();
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = accept(listener, server.clone());
        Self { address, server, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Ends all connections; new ones are taken as before.
    pub(crate) async fn cut(&mut self) {
        self.accepting.shutdown().await;
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.accepting = accept(listener, self.server.clone());
    }
}

fn accept(listener: TcpListener, server: String) -> JoinSet<()> {
    let mut accepting = JoinSet::new();
    accepting.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut near, _)) = listener.accept().await {
            let server = server.clone();
            connections.spawn(async move {
                if let Ok(mut far) = TcpStream::connect(&server).await {
                    drop(copy_bidirectional(&mut near, &mut far).await);
                }
            });
        }
    });
    accepting
}
