//! What is wrong with a PEM file, without a word of it. The parser's own error quotes the line that
//! it cannot read, and a private key whose newlines got lost is one line. For the pair and the
//! client CAs.

use rustls::pki_types::pem::Error;

/// What `error` says, without what it quotes.
pub(crate) fn pem_problem(error: &Error) -> &'static str {
    match error {
        Error::MissingSectionEnd { .. } => {
            "a section of its PEM has no END line; check that the line breaks are there"
        }
        Error::IllegalSectionStart { .. } => {
            "a BEGIN line of its PEM is malformed; check that the line breaks are there"
        }
        Error::Base64Decode(_) => "a section of its PEM is not base64",
        Error::NoItemsFound => "the file holds none in PEM",
        Error::SectionTooLarge => "a section of its PEM is too large",
        _ => "it cannot be parsed as PEM",
    }
}
