//! Certificates of clients: [`ClientRoots`] are the CAs, a [`ShownChain`] is what a client showed on one
//! connection, [`AnyClient`] lets every certificate into the handshake, to be verified afterwards.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tracing::debug;
use transport::PemProblem;
use transport::certificates::{Authorities, Good, Purpose, Refused, Terms};

/// CAs, each trusted as a root for clients. Clones share them.
#[derive(Clone, Debug)]
pub struct ClientRoots(Arc<Authorities>);

/// Roots read again from a file that did not change are the same roots.
impl PartialEq for ClientRoots {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.certificates() == other.0.certificates()
    }
}

impl ClientRoots {
    /// Takes every certificate of a PEM text that may sign others for a root.
    ///
    /// # Errors
    /// Says in lower case what is wrong with the text, and no word of it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let certificates = certificates.map_err(|error| PemProblem::from(error).to_string())?;
        let authorities = Authorities::new(certificates);
        if let Some(error) = authorities.unreadable() {
            return Err(format!("one of its certificates cannot be read: {error}"));
        }
        if authorities.certificates().is_empty() {
            return Err("it holds no certificate in PEM".to_owned());
        }
        Ok(Self(Arc::new(authorities)))
    }

    /// Whether a chain, leaf first, leads to one of these, is valid now, and is for clients.
    pub(crate) fn judge(&self, chain: &[CertificateDer<'_>]) -> Result<Good, Refused> {
        let Some((leaf, others)) = chain.split_first() else {
            return Err(webpki::Error::BadDer.into());
        };
        let algorithms = ring::default_provider().signature_verification_algorithms.all;
        let (purpose, now) = (Purpose::Client, UnixTime::now());
        self.0.judge(leaf, others, &Terms { purpose, now, any_date: false, algorithms })
    }
}

/// Judgements of the process at once; further ones wait in order.
pub(crate) const AT_ONCE: usize = 2;
/// The CAs of clients and of proxies, by which a chain is judged at the same time.
const CHECKS: usize = 2;

pub(crate) static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// The chain that a client has shown, leaf first, and whose key it has. Clones share the checks.
#[derive(Clone)]
pub struct ShownChain(Arc<Shown>);

struct Shown {
    certificates: Vec<CertificateDer<'static>>,
    checks: Mutex<Vec<ChainCheck>>,
    judging: tokio::sync::Mutex<()>,
}

struct ChainCheck {
    roots: ClientRoots,
    /// The last second in which a good chain is good; none for a bad one.
    until: Option<u64>,
}

impl ShownChain {
    /// A chain without a check yet.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Self {
        let (checks, judging) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Shown { certificates, checks, judging }))
    }

    /// The certificates, leaf first.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0.certificates
    }

    /// Whether one of `roots` vouches for the chain now (`rule:chains-are-bounded`). A chain is verified
    /// once for the same roots, on a blocking thread, and to the end when no caller waits any more.
    pub async fn is_vouched_for_by(&self, roots: &ClientRoots) -> bool {
        if let Some(check) = self.checked(roots) {
            return check;
        }
        let (shown, roots) = (self.clone(), roots.clone());
        let judging = tokio::spawn(async move { shown.judge(roots).await });
        judging.await.unwrap_or(false)
    }

    pub(crate) fn checked(&self, roots: &ClientRoots) -> Option<bool> {
        let checks = self.0.checks.lock();
        let check = checks.iter().find(|check| check.roots == *roots)?;
        match check.until {
            None => Some(false),
            // One that has ended is judged again.
            Some(until) => (UnixTime::now().as_secs() <= until).then_some(true),
        }
    }

    #[cfg(test)]
    pub(crate) fn end_checks(&self, until: u64) {
        self.0.checks.lock().iter_mut().for_each(|check| check.until = Some(until));
    }

    async fn judge(&self, roots: ClientRoots) -> bool {
        let _alone = self.0.judging.lock().await;
        if let Some(check) = self.checked(&roots) {
            return check;
        }
        let turn = TURNS.acquire().await;
        let (shown, judged_by) = (self.clone(), roots.clone());
        let judged = spawn_blocking(move || {
            let judged = judged_by.judge(shown.certificates());
            drop(turn);
            judged
        });
        let until = match judged.await {
            Ok(Ok(good)) => Some(good.until),
            Ok(Err(err)) => {
                debug!(v = 3, logger = "serving", %err, "Client certificate is not trusted");
                None
            }
            // The runtime ends.
            Err(_) => return false,
        };
        let mut checks = self.0.checks.lock();
        checks.retain(|check| check.roots != roots);
        checks.insert(0, ChainCheck { roots, until });
        checks.truncate(CHECKS);
        until.is_some()
    }
}

impl fmt::Debug for ShownChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShownChain({} certificates)", self.certificates().len())
    }
}

/// Chains are the same when their certificates are, whatever was found about them.
impl PartialEq for ShownChain {
    fn eq(&self, other: &Self) -> bool {
        self.certificates() == other.certificates()
    }
}

impl Eq for ShownChain {}

/// Asks for a certificate and leaves the judgement to others.
#[derive(Debug)]
pub(crate) struct AnyClient(WebPkiSupportedAlgorithms);

impl Default for AnyClient {
    fn default() -> Self {
        Self(ring::default_provider().signature_verification_algorithms)
    }
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None, so that a client sends the certificate that it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        transport::certificates::bounded(leaf, others)
            .map_err(|refused| Error::Other(OtherError(Arc::new(refused))))?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
