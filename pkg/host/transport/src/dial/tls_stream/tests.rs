use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio_rustls::{TlsAcceptor, server};

use super::*;

const NAME: &str = "member.example";
const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

/// Both ends of a connection whose pipe holds so many bytes.
async fn connected(
    version: &'static SupportedProtocolVersion,
    pipe: usize,
) -> (TlsStream<DuplexStream>, server::TlsStream<DuplexStream>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([NAME.to_owned()]).unwrap().self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        );
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (near, far) = duplex(pipe);
    let mut server = server.unwrap();
    if pipe < 1000 {
        // They would fill the pipe before anybody reads.
        server.send_tls13_tickets = 0;
    }
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let client = Arc::new(client);
    let name = ServerName::try_from(NAME).unwrap();
    let (client, server) =
        tokio::join!(TlsStream::connect(&client, name, near), acceptor.accept(far));
    (client.unwrap(), server.unwrap())
}

fn buffers(stream: &TlsStream<DuplexStream>) -> [usize; 3] {
    [&stream.incoming, &stream.plain, &stream.outgoing].map(Vec::capacity)
}

#[tokio::test]
async fn what_both_ends_send_arrives_and_no_buffer_is_left() {
    let pipes = [10, 100, 1 << 16];
    for (version, pipe) in VERSIONS.into_iter().flat_map(|it| pipes.map(|pipe| (it, pipe))) {
        let (mut client, mut server) = connected(version, pipe).await;
        assert_eq!(client.certificates().map(<[_]>::len), Some(1));
        let sent: Vec<u8> = (0..30_000_u32).map(|number| number.to_le_bytes()[1]).collect();
        let serving = async {
            let mut read = vec![0; sent.len()];
            server.read_exact(&mut read).await.unwrap();
            server.write_all(&read).await.unwrap();
            server.flush().await.unwrap();
            server
        };
        let (mut read, mut piece) = (Vec::new(), [0; 1000]);
        let asking = async {
            client.write_all(&sent).await.unwrap();
            client.flush().await.unwrap();
            while read.len() < sent.len() {
                let length = client.read(&mut piece).await.unwrap();
                read.extend_from_slice(&piece[..length]);
            }
        };
        let (_server, ()) = tokio::join!(serving, asking);
        assert!(read == sent, "{version:?}");
        let waiting = futures::poll!(Box::pin(client.read(&mut piece)));
        assert!(waiting.is_pending());
        assert_eq!(buffers(&client), [0; 3], "{version:?}");
    }
}

#[tokio::test]
async fn keys_that_the_server_renews_are_taken_over_and_answered() {
    let (mut client, mut server) = connected(&version::TLS13, 1 << 16).await;
    for round in 0..3_u8 {
        server.get_mut().1.refresh_traffic_keys().unwrap();
        server.write_all(&[round; 10]).await.unwrap();
        server.flush().await.unwrap();
        let mut read = [0; 10];
        client.read_exact(&mut read).await.unwrap();
        assert_eq!(read, [round; 10]);
        client.write_all(&[round; 10]).await.unwrap();
        client.flush().await.unwrap();
        server.read_exact(&mut read).await.unwrap();
        assert_eq!(read, [round; 10]);
    }
}

#[tokio::test]
async fn an_end_without_a_closing_alert_is_an_error() {
    for version in VERSIONS {
        let (mut client, mut server) = connected(version, 1 << 16).await;
        server.write_all(b"last").await.unwrap();
        server.shutdown().await.unwrap();
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"last");

        let (mut client, server) = connected(version, 1 << 16).await;
        drop(server);
        let error = client.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[tokio::test]
async fn a_closing_alert_is_sent_at_the_shutdown() {
    for version in VERSIONS {
        let (mut client, mut server) = connected(version, 1 << 16).await;
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0; 10]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn bytes_that_are_no_tls_are_refused_with_an_alert() {
    let (client, server) = connected(&version::TLS13, 1 << 16).await;
    let (mut client, (mut wire, mut server)) = (client, server.into_inner());
    wire.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let error = client.read(&mut [0; 10]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    wire.write_all(b"more").await.unwrap();
    let error = client.read(&mut [0; 10]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(client.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    let mut alert = vec![0; 1000];
    let length = wire.read(&mut alert).await.unwrap();
    server.read_tls(&mut &alert[..length]).unwrap();
    let told = server.process_new_packets().unwrap_err();
    assert!(matches!(told, rustls::Error::AlertReceived(_)), "{told}");
}
