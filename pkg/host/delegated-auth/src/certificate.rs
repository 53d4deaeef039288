//! What a client's certificate says of its owner. Whether that is to be believed is decided
//! elsewhere.

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::user::User;

/// The part of a certificate that counts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Empty when it has none.
    pub(crate) common_name: String,
    organizations: Vec<String>,
    /// When the certificate ends, in Unix seconds.
    pub(crate) ends: i64,
}

impl Subject {
    /// `None` for a certificate that cannot be read, or whose names are no text.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let name = parsed.subject();
        let common_names = name.iter_common_name().map(|entry| entry.as_str().map(str::to_owned));
        let organizations = name.iter_organization().map(|entry| entry.as_str().map(str::to_owned));
        Some(Self {
            // Of several the last one counts, as in Go.
            common_name: common_names
                .collect::<Result<Vec<_>, _>>()
                .ok()?
                .pop()
                .unwrap_or_default(),
            organizations: organizations.collect::<Result<_, _>>().ok()?,
            ends: parsed.validity().not_after.timestamp(),
        })
    }

    /// The common name is the user, each organization a group; `None` without a name.
    pub(crate) fn into_user(self) -> Option<User> {
        let Self { common_name: name, organizations: groups, .. } = self;
        let user = User { name, groups, ..User::default() };
        (!user.name.is_empty()).then(|| user.authenticated())
    }
}

#[cfg(test)]
mod tests;
