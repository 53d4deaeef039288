//! [`ClientRoots`]: CAs that vouch for clients.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
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
    pub(super) fn judge(&self, chain: &[CertificateDer<'_>]) -> Result<Good, Refused> {
        let Some((leaf, others)) = chain.split_first() else {
            return Err(webpki::Error::BadDer.into());
        };
        let algorithms = ring::default_provider().signature_verification_algorithms.all;
        let (purpose, now) = (Purpose::Client, UnixTime::now());
        self.0.judge(leaf, others, &Terms { purpose, now, any_date: false, algorithms })
    }
}
