//! The side towards the product: accepts connections, ends TLS, hands requests to `exchange`.

use std::net::Ipv4Addr;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::exchange;
use super::freeze::Freezable;
use super::state::State;
use crate::pki::Identity;

/// Streams on one connection, as kube-apiserver allows them by default.
const MAX_STREAMS: u32 = 100;

/// Serves on a free loopback port until `stop`; returns the port.
pub(super) async fn start(
    state: Arc<State>,
    identity: Identity,
    stop: CancellationToken,
) -> anyhow::Result<u16> {
    let mut tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate], identity.key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tls = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        // Connections still open end with `stop`, too: each holds a child of it.
        while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
            tokio::spawn(serve(Arc::clone(&state), tls.clone(), stream, stop.child_token()));
        }
    });
    Ok(port)
}

async fn serve(
    state: Arc<State>,
    tls: TlsAcceptor,
    stream: TcpStream,
    cut: CancellationToken,
) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let io = Freezable { stream, freezer: Arc::clone(&state.freezer), cut: cut.clone() };
    let connection = async {
        let io = TokioIo::new(tls.accept(io).await?);
        let service =
            service_fn(|request| exchange::answer(Arc::clone(&state), cut.clone(), request));
        let mut server = auto::Builder::new(TokioExecutor::new());
        server.http1().timer(TokioTimer::new());
        server.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
        // The client is free to hang up as it likes, so an error here tells nothing.
        let _hung_up = server.serve_connection(io, service).await.is_err();
        anyhow::Ok(())
    };
    cut.run_until_cancelled(connection).await.unwrap_or(Ok(()))
}
