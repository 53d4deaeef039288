//! [`Connections`]: what the SDK sends, over connections of our own kind instead of its own, which
//! would be another copy of HTTP and TLS in the program.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use parking_lot::Mutex;
use tokio::time::timeout;
use transport::{Endpoint, Protocol, Proxy, TlsConfigs, Trust, Wire};

/// More than a page of anything that is read.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// The connections to AWS, and to whoever gives credentials for it. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Connections(Arc<Inner>);

#[derive(Default)]
struct Inner {
    configs: TlsConfigs,
    wires: Mutex<HashMap<Whereto, Wire>>,
}

/// A server, as in the address of a request, and how long a connection to it may take to open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Whereto {
    server: String,
    connect_timeout: Option<Duration>,
}

impl Connections {
    /// Through the proxy that the environment names.
    fn wire(&self, uri: &Uri, connect_timeout: Option<Duration>) -> Result<Wire, ConnectorError> {
        let (scheme, authority) = (uri.scheme_str(), uri.authority());
        let server =
            format!("{}://{}", scheme.unwrap_or_default(), authority.map_or("", |it| it.as_str()));
        let whereto = Whereto { server, connect_timeout };
        let mut wires = self.0.wires.lock();
        if let Some(known) = wires.get(&whereto) {
            return Ok(known.clone());
        }
        let (configs, trust) = (&self.0.configs, Trust::system());
        let endpoint = Endpoint::new(configs, &trust, None, Protocol::Http1);
        let mut endpoint = endpoint.map_err(|error| ConnectorError::user(error.into()))?;
        let proxy = Proxy::from_environment(uri, |name| std::env::var(name).ok());
        if let Some(proxy) = proxy.map_err(|error| {
            ConnectorError::user(format!("HTTPS_PROXY cannot be used: {error}").into())
        })? {
            let through = endpoint.through(proxy, configs, &trust);
            endpoint = through.map_err(|error| ConnectorError::user(error.into()))?;
        }
        if let Some(limit) = connect_timeout {
            endpoint = endpoint.opened_within(limit);
        }
        let wire = transport::open(&endpoint);
        wires.insert(whereto, wire.clone());
        Ok(wire)
    }

    async fn exchange(
        self,
        request: HttpRequest,
        settings: HttpConnectorSettings,
    ) -> Result<HttpResponse, ConnectorError> {
        let request = request.try_into_http1x();
        let (head, body) =
            request.map_err(|error| ConnectorError::user(error.into()))?.into_parts();
        let body = body.bytes().map(Bytes::copy_from_slice);
        let body = body.ok_or_else(|| ConnectorError::user("its body is a stream".into()))?;
        let wire = self.wire(&head.uri, settings.connect_timeout())?;
        let sent = wire.send(Request::from_parts(head, Full::new(body)));
        let answer = match settings.read_timeout() {
            Some(limit) => {
                let limit = limit + settings.connect_timeout().unwrap_or_default();
                timeout(limit, sent).await.map_err(|late| ConnectorError::timeout(late.into()))?
            }
            None => sent.await,
        };
        let (head, body) = answer.map_err(|error| ConnectorError::io(error.into()))?.into_parts();
        let body = Limited::new(body, LARGEST_ANSWER).collect().await;
        let body = SdkBody::from(body.map_err(ConnectorError::io)?.to_bytes());
        let answer = HttpResponse::try_from(Response::from_parts(head, body));
        answer.map_err(|error| ConnectorError::other(error.into(), None))
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.wires.lock().keys()).finish()
    }
}

impl HttpClient for Connections {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let (connections, settings) = (self.clone(), settings.clone());
        SharedHttpConnector::new(Connector { connections, settings })
    }
}

#[derive(Debug)]
struct Connector {
    connections: Connections,
    settings: HttpConnectorSettings,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (connections, settings) = (self.connections.clone(), self.settings.clone());
        HttpConnectorFuture::new(connections.exchange(request, settings))
    }
}

/// A client that leaves each request, with the connector of another client, to `send`.
pub(crate) fn interposed<F>(client: SharedHttpClient, send: F) -> SharedHttpClient
where
    F: Fn(HttpRequest, SharedHttpConnector) -> HttpConnectorFuture + Clone + Send + Sync + 'static,
{
    http_client_fn(move |settings, components| {
        let connector = client.http_connector(settings, components);
        SharedHttpConnector::new(Interposed { connector, send: send.clone() })
    })
}

struct Interposed<F> {
    connector: SharedHttpConnector,
    send: F,
}

impl<F> fmt::Debug for Interposed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connector.fmt(f)
    }
}

impl<F> HttpConnector for Interposed<F>
where
    F: Fn(HttpRequest, SharedHttpConnector) -> HttpConnectorFuture + Send + Sync,
{
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        (self.send)(request, self.connector.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// Reads a request until it has `end`.
    async fn take(stream: &mut TcpStream, end: &str) -> String {
        let mut taken = String::new();
        while !taken.ends_with(end) {
            let mut piece = [0; 1024];
            let length = stream.read(&mut piece).await.unwrap();
            assert!(length > 0, "it ends with {taken:?}");
            taken.push_str(std::str::from_utf8(&piece[..length]).unwrap());
        }
        taken
    }

    fn request(address: SocketAddr) -> HttpRequest {
        let request = Request::post(format!("http://{address}/"));
        HttpRequest::try_from(request.body(SdkBody::from("Action=DescribeVpcs")).unwrap()).unwrap()
    }

    fn within(connect: u64, read: u64) -> HttpConnectorSettings {
        let settings = HttpConnectorSettings::builder();
        let settings = settings.connect_timeout(Duration::from_millis(connect));
        settings.read_timeout(Duration::from_millis(read)).build()
    }

    #[tokio::test]
    async fn requests_to_one_server_go_over_one_connection_and_answers_come_whole() {
        let (listener, address) = listener().await;
        let connections = Connections::default();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            for _ in 0..2 {
                let taken = take(&mut stream, "Action=DescribeVpcs").await;
                assert!(taken.starts_with("POST / HTTP/1.1\r\n"), "{taken}");
                let answer = "HTTP/1.1 400 Bad Request\r\nx-amzn-requestid: 7\r\ncontent-length: 4\r\n\r\n<e/>";
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let client = async {
            for _ in 0..2 {
                let settings = HttpConnectorSettings::default();
                let answer =
                    connections.clone().exchange(request(address), settings).await.unwrap();
                assert_eq!(answer.status().as_u16(), 400);
                assert_eq!(answer.headers().get("x-amzn-requestid"), Some("7"));
                assert_eq!(answer.body().bytes(), Some(&b"<e/>"[..]));
            }
        };
        futures::join!(server, client);
    }

    #[tokio::test]
    async fn an_answer_that_does_not_come_in_time_is_given_up() {
        let (_silent, address) = listener().await;
        let late =
            Connections::default().exchange(request(address), within(50, 50)).await.unwrap_err();
        assert!(late.is_timeout(), "{late:?}");
    }
}
