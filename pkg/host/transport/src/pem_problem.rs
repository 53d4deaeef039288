//! [`PemProblem`]: what is wrong with a PEM text, without a word of it. The parser's own error
//! quotes the line that it cannot read, and a private key whose newlines got lost is one line.
//!
//! For what is sent (`transport`) and what is served (`serving`).

use rustls_pki_types::pem;

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
    /// There is no section of what was looked for.
    #[error("it has no such section")]
    Missing,
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
            pem::Error::NoItemsFound => Self::Missing,
            _ => Self::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::PrivateKeyDer;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn a_key_that_cannot_be_read_is_told_of_without_a_word_of_it() {
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        for (text, problem) in [
            (format!("{begin}\nhunter2=\n"), PemProblem::Truncated),
            (format!("{begin} hunter2= {end}"), PemProblem::Truncated),
            ("-----BEGIN PRIVATE KEY\nhunter2=\n".to_owned(), PemProblem::BadHeader),
            (format!("{begin}\nhunter2!\n{end}\n"), PemProblem::Base64),
            ("hunter2\n".to_owned(), PemProblem::Missing),
        ] {
            let told =
                PemProblem::from(PrivateKeyDer::from_pem_slice(text.as_bytes()).unwrap_err());
            assert_eq!(told, problem, "{text}");
            assert!(!format!("{told} {told:?}").contains("hunter2"), "{told}");
        }
    }
}
