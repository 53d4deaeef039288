//! The way through a proxy: a tunnel inside an open connection to it.

use http::Uri;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{Service as _, ServiceExt as _};

use super::error::ProxyFault;
use super::stream::{Duplex, secure, server_name};
use crate::endpoint::Endpoint;
use crate::proxy::{Kind, Proxy};

pub(super) async fn tunnel(
    endpoint: &Endpoint,
    proxy: &Proxy,
    server: &Uri,
    tcp: TcpStream,
) -> Result<Box<dyn Duplex>, ProxyFault> {
    let to_proxy: Box<dyn Duplex> = match proxy.kind() {
        Some(Kind::Https) => {
            let tls = endpoint.proxy_tls.as_ref().unwrap_or(&endpoint.tls);
            let name = server_name(&proxy.uri()).map_err(|_| ProxyFault::NoHost)?;
            Box::new(secure(tls, name, tcp).await.map_err(ProxyFault::of_tls)?)
        }
        Some(Kind::Http | Kind::Socks5) | None => Box::new(tcp),
    };
    let mut open = Some(TokioIo::new(to_proxy));
    let once = tower::service_fn(move |_: Uri| {
        let open = open.take().ok_or_else(|| std::io::Error::other("taken twice"));
        std::future::ready(open)
    });
    let tunnelled = if proxy.kind() == Some(Kind::Socks5) {
        let mut socks = SocksV5::new(proxy.uri(), once);
        if let Some((user, password)) = proxy.login() {
            socks = socks.with_auth(user, password);
        }
        socks.call(server.clone()).await.map_err(|error| ProxyFault::refused(&error))?
    } else {
        let mut http = Tunnel::new(proxy.uri(), once);
        if let Some(login) = proxy.basic_auth() {
            http = http.with_auth(login);
        }
        http.ready().await.map_err(|error| ProxyFault::refused(&error))?;
        http.call(server.clone()).await.map_err(|error| ProxyFault::refused(&error))?
    };
    Ok(tunnelled.into_inner())
}
