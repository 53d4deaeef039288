use super::*;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::{DigitallySignedStruct, Error, ServerConfig, SignatureScheme};
use tokio_rustls::TlsAcceptor;

/// Takes every server, when somebody has said so: a judgement that takes long.
#[derive(Debug)]
struct Slow(Mutex<Receiver<()>>);

impl ServerCertVerifier for Slow {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let said = self.0.lock();
        // What was said before the judgement does not count.
        while said.try_recv().is_ok() {}
        let said = said.recv_timeout(Duration::from_secs(30));
        said.map_err(|_| Error::General("no other task has run meanwhile".into()))?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn acceptor() -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::default().self_signed(&key).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let server = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key);
    Arc::new(server.unwrap()).into()
}

/// On a runtime with one thread.
#[tokio::test]
async fn other_tasks_run_while_the_certificate_of_a_server_is_judged() {
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move { acceptor().accept(far).await });
    let (say, said) = channel();
    let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Slow(Mutex::new(said))))
        .with_no_client_auth();
    let name = ServerName::try_from("member").unwrap();
    let (client, mut secured) = (Arc::new(client), None);
    let mut handshake = std::pin::pin!(secure(&client, name, near));
    // The judgement waits for this task, which goes on only if it is not on its thread.
    while secured.is_none() {
        tokio::select! {
            biased;
            outcome = &mut handshake => secured = Some(outcome),
            () = tokio::task::yield_now() => say.send(()).unwrap_or_default(),
        }
    }
    assert!(secured.unwrap().is_ok());
}

#[test]
fn an_ipv6_address_on_a_machine_without_ipv6_is_no_limit_of_this_process() {
    let (v4, v6) = ("192.0.2.1:443".parse().unwrap(), "[2001:db8::1]:443".parse().unwrap());
    // (addresses of the host, those that are dialled, whether an unavailable address is our limit)
    let rows =
        [(vec![v6], vec![v6], false), (vec![v6, v4], vec![v4], true), (vec![v4], vec![v4], true)];
    for (found, dialled, is_own) in rows {
        let (addresses, has_source) = dialable(found, SocketAddr::is_ipv4);
        assert_eq!(addresses, dialled);
        let error = io::Error::from(rustix::io::Errno::ADDRNOTAVAIL);
        let error = refused(&error, has_source);
        assert_eq!(matches!(error, DialError::OwnLimit(_)), is_own, "{error:?}");
        assert_eq!(matches!(error, DialError::Connect(_)), !is_own, "{error:?}");
    }
    assert!(matches!(
        refused(&io::Error::from(rustix::io::Errno::MFILE), false),
        DialError::OwnLimit(_)
    ));
    assert!(has_source(&v4));
}
