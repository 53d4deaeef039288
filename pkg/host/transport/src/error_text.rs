//! Errors as text: [`ErrorChain`] prints an error with its causes in one line, [`PemProblem`] says what is
//! wrong with a PEM text without printing any of it.

use std::error::Error;
use std::fmt;

use rustls_pki_types::pem;

/// The prefix that kube puts before every error of our own layers.
const KUBE_PREFIX: &str = "ServiceError: ";

/// Displays an error and, after colons, each of its causes that it does not tell itself.
pub struct ErrorChain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = self.0.to_string();
        f.write_str(told.strip_prefix(KUBE_PREFIX).unwrap_or(&told))?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let next = error.to_string();
            // Many libraries print their cause as well.
            if !told.ends_with(&next) {
                write!(f, ": {next}")?;
                told = next;
            }
            cause = error.source();
        }
        Ok(())
    }
}

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
    /// The longest certificate or key.
    #[error("a section is too large")]
    TooLarge,
    /// The text has no section of the expected kind.
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

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    fn chain(texts: &[&'static str]) -> Option<Box<Layer>> {
        let (text, rest) = texts.split_first()?;
        Some(Box::new(Layer { text, source: chain(rest) }))
    }

    #[test]
    fn every_cause_is_reported_once_however_deep_it_lies() {
        // (texts from the outermost error inwards, the line)
        let rows: [(&[&str], &str); 5] = [
            (&["cannot connect"], "cannot connect"),
            (
                &["cannot connect", "client error", "refused"],
                "cannot connect: client error: refused",
            ),
            (
                &["service: client error", "client error", "refused"],
                "service: client error: refused",
            ),
            (&["a: b: c", "b: c", "c"], "a: b: c"),
            (&["ServiceError: no route", "no route"], "no route"),
        ];
        for (texts, line) in rows {
            assert_eq!(ErrorChain(&chain(texts).unwrap()).to_string(), line);
        }
    }

    #[test]
    fn an_unreadable_key_is_reported_without_its_content() {
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
