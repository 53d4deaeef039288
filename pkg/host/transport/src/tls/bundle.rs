//! [`Bundle`]: what a set of certificates vouches for, with the checks that were not waived.

use crate::certificates::{Authorities, Purpose, Refused, Terms, readable};
use rustls::Error;
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use webpki::EndEntityCert;

use super::error::TlsError;
use super::fields::Fields;
use super::material::Waived;
use super::refusal::Refusal;

/// Certificates that are trusted, as authorities or as themselves.
#[derive(Debug)]
pub(super) struct Bundle {
    authorities: Authorities,
    waived: Waived,
    fields: Fields,
}

impl Bundle {
    /// As Go does, what cannot be read is left out, unless nothing is left.
    pub(super) fn new(
        bundle: &[CertificateDer<'static>],
        waived: Waived,
        fields: Fields,
    ) -> Result<Self, TlsError> {
        let authorities = Authorities::new(bundle.to_vec());
        if authorities.certificates().is_empty() {
            return Err(match authorities.unreadable() {
                Some(error) => TlsError::Authority(error.clone()),
                None => TlsError::NoSystemTrust(fields.ca),
            });
        }
        Ok(Self { authorities, waived, fields })
    }

    /// Whether the certificate, with what the server sent beside it, may speak for `name`.
    pub(super) fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
        algorithms: &[&'static dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Error> {
        let (purpose, any_date) = (Purpose::Server, self.waived.dates);
        let terms = Terms { purpose, now, any_date, algorithms };
        let judged = self.authorities.judge(end_entity, intermediates, &terms);
        let named = |_| if self.waived.name { Ok(()) } else { is_for(end_entity, name) };
        judged.and_then(named).map_err(|refused| Refusal::explain(refused, self.fields))
    }
}

fn is_for(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Refused> {
    let certificate = readable(certificate);
    let certificate = EndEntityCert::try_from(&*certificate)?;
    Ok(certificate.verify_is_valid_for_subject_name(name)?)
}
