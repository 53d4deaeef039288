//! [`PemProblem`]: what is wrong with a PEM text, without a word of it. The parser's own error
//! quotes the line that it cannot read, and a private key whose newlines got lost is one line.

use rustls::pki_types::pem;

/// Why a text is not PEM. Never holds any of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PemProblem {
    /// A section without its last line; what newlines that became spaces look like.
    #[error("a section has no END line; check that the line breaks are there")]
    Truncated,
    /// The first line of a section is not one.
    #[error("a BEGIN line is malformed; check that the line breaks are there")]
    BadHeader,
    /// Between the BEGIN and the END line stands something else.
    #[error("a section is not base64")]
    Base64,
    /// No certificate or key is that long.
    #[error("a section is too large")]
    TooLarge,
    /// Anything else.
    #[error("it cannot be parsed")]
    Unreadable,
}

impl From<pem::Error> for PemProblem {
    fn from(error: pem::Error) -> Self {
        match error {
            pem::Error::MissingSectionEnd { .. } => Self::Truncated,
            pem::Error::IllegalSectionStart { .. } => Self::BadHeader,
            pem::Error::Base64Decode(_) => Self::Base64,
            pem::Error::SectionTooLarge => Self::TooLarge,
            _ => Self::Unreadable,
        }
    }
}
