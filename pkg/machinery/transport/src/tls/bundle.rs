//! [`Bundle`]: what a set of certificates vouches for, with the checks that were not waived.

use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, OtherError, RootCertStore};

use super::anchors::anchors;
use super::error::TlsError;
use super::fields::Fields;
use super::material::Waived;
use super::refusal::Refusal;
use super::restated::{OverOriginal, Restated};

type Algorithms = [&'static dyn SignatureVerificationAlgorithm];

/// Certificates that are trusted, as authorities or as themselves.
#[derive(Debug)]
pub(super) struct Bundle {
    roots: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
    waived: Waived,
    fields: Fields,
}

impl Bundle {
    pub(super) fn new(
        certificates: &[CertificateDer<'static>],
        waived: Waived,
        fields: Fields,
    ) -> Result<Self, TlsError> {
        let roots = anchors(certificates, fields)?;
        Ok(Self { roots, certificates: certificates.to_vec(), waived, fields })
    }

    /// Whether the certificate, with what the server sent beside it, may speak for `name`.
    pub(super) fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
        algorithms: &Algorithms,
    ) -> Result<(), Error> {
        let shown = Shown::new(end_entity, intermediates, self.waived);
        let certificate = ParsedCertificate::try_from(shown.end_entity(end_entity));
        let certificate = certificate.map_err(|error| Refusal::explain(error, self.fields))?;
        let signed = match shown.verify(&certificate, intermediates, &self.roots, now, algorithms) {
            Err(error) if is_about_issuer(&error) && self.holds(end_entity) => Ok(()),
            verdict => verdict,
        };
        let named = |()| {
            let waived = self.waived.name;
            if waived { Ok(()) } else { verify_server_name(&certificate, name) }
        };
        signed.and_then(named).map_err(|error| Refusal::explain(error, self.fields))
    }

    fn holds(&self, certificate: &CertificateDer<'_>) -> bool {
        self.certificates.iter().any(|known| known == certificate)
    }
}

/// Whether `error` is about the issuer alone. webpki judges the validity of the certificate before
/// either of the two, so the dates are good. Of an authority (CA:TRUE) it has not looked at the
/// extended key usage then. That is harmless: the operator trusts this very certificate, whose key
/// could sign a server's certificate with any usage.
fn is_about_issuer(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
            matches!(cause.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
        }
        _ => false,
    }
}

/// What a server showed, as far as it had to be restated: the end entity first.
struct Shown {
    restated: Vec<Restated>,
    dateless: bool,
}

impl Shown {
    fn new(end_entity: &CertificateDer<'_>, others: &[CertificateDer<'_>], waived: Waived) -> Self {
        let restated = if waived.dates {
            let all = std::iter::once(end_entity).chain(others);
            all.map_while(Restated::without_dates).collect()
        } else {
            // An issuer of version 1 is none, to Go neither.
            Restated::as_version_3(end_entity).into_iter().collect()
        };
        Self { restated, dateless: waived.dates }
    }

    fn end_entity<'a>(&'a self, original: &'a CertificateDer<'a>) -> &'a CertificateDer<'a> {
        self.restated.first().map_or(original, |restated| restated.der())
    }

    fn verify(
        &self,
        certificate: &ParsedCertificate<'_>,
        intermediates: &[CertificateDer<'_>],
        roots: &RootCertStore,
        now: UnixTime,
        algorithms: &Algorithms,
    ) -> Result<(), Error> {
        let check = verify_server_cert_signed_by_trust_anchor;
        if self.restated.is_empty() {
            return check(certificate, roots, intermediates, now, algorithms);
        }
        let over = |&algorithm| OverOriginal { algorithm, restated: &self.restated };
        let over_original: Vec<_> = algorithms.iter().map(over).collect();
        let algorithms: Vec<_> = over_original.iter().map(|over| over as _).collect();
        if !self.dateless {
            return check(certificate, roots, intermediates, now, &algorithms);
        }
        let dateless: Vec<_> = self.restated[1..].iter().map(|one| one.der().clone()).collect();
        check(certificate, roots, &dateless, now, &algorithms)
    }
}
