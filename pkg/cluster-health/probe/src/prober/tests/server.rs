//! A server on loopback that does with each request what a script says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use transport::Duplex;

/// Reaction to a request.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// An answer with this status and body.
    Status(u16, &'static str),
    /// Sends these bytes, and keeps the connection open.
    Bytes(Vec<u8>),
    /// Sends these bytes, and closes the connection.
    Last(&'static str),
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing.
    Hang,
}

/// A request, as the script sees it: numbers begin at 0.
pub(super) struct Asked {
    pub(super) connection: usize,
    pub(super) path: String,
    pub(super) head: String,
}

type Script = dyn Fn(&Asked) -> Reply + Send + Sync;

/// Ends with the test.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    heads: Mutex<Vec<String>>,
    /// Connections that the client has closed.
    closed: AtomicUsize,
}

impl Server {
    pub(super) async fn start(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, script) = (Arc::new(Seen::default()), Arc::new(script) as Arc<Script>);
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&seen);
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                let (seen, script, tls) = (Arc::clone(&shared), Arc::clone(&script), tls.clone());
                open.spawn(async move { serve(stream, tls, number, &seen, &*script).await });
            }
        });
        Self { address, seen, _tasks: tasks }
    }

    pub(super) async fn plain(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(None, script).await
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Waits until the client has closed `count` connections.
    pub(super) async fn closed(&self, count: usize) {
        while self.seen.closed.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }

    /// The heads of all requests.
    pub(super) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().clone()
    }

    /// The paths of all requests.
    pub(super) fn paths(&self) -> Vec<String> {
        self.heads().iter().map(|head| path_of(head)).collect()
    }
}

fn path_of(head: &str) -> String {
    head.split(' ').nth(1).unwrap_or_default().to_owned()
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    connection: usize,
    seen: &Seen,
    script: &Script,
) {
    let socket = socket2::SockRef::from(&stream).try_clone().unwrap();
    let mut stream: Box<dyn Duplex> = match tls {
        None => Box::new(stream),
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => Box::new(stream),
            Err(_) => return,
        },
    };
    while let Some(head) = read_head(&mut stream).await {
        let path = path_of(&head);
        seen.heads.lock().push(head.clone());
        match script(&Asked { connection, path, head }) {
            Reply::Status(status, body) => {
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} Reason\r\nContent-Length: {length}\r\nLocation: /stolen\r\n\r\n{body}"
                );
                drop(stream.write_all(answer.as_bytes()).await);
            }
            Reply::Bytes(bytes) => drop(stream.write_all(&bytes).await),
            Reply::Last(text) => return drop(stream.write_all(text.as_bytes()).await),
            Reply::Close => return,
            Reply::Reset => return socket.set_linger(Some(std::time::Duration::ZERO)).unwrap(),
            Reply::Hang => {}
        }
        drop(stream.flush().await);
    }
    seen.closed.fetch_add(1, Ordering::SeqCst);
}

async fn read_head(stream: &mut Box<dyn Duplex>) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// A port that answers no SYN, for as long as it lives.
pub(super) struct BlackHole {
    pub(super) address: SocketAddr,
    _listener: TcpListener,
    _waiting: JoinSet<()>,
}

impl BlackHole {
    /// A listener that accepts no connection, with a full queue.
    pub(super) async fn open() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let (connected, mut queue) = tokio::sync::mpsc::unbounded_channel();
        let mut waiting = JoinSet::new();
        for _ in 0..8 {
            let connected = connected.clone();
            waiting.spawn(async move {
                let stream = TcpStream::connect(address).await;
                connected.send(()).ok();
                std::future::pending::<()>().await;
                drop(stream);
            });
        }
        // A backlog of one holds two.
        queue.recv().await.unwrap();
        queue.recv().await.unwrap();
        Self { address, _listener: listener, _waiting: waiting }
    }
}

/// A port without a listener, now or later: it is reserved until the process ends.
pub(super) fn closed_port() -> SocketAddr {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    std::mem::forget(socket);
    address
}
