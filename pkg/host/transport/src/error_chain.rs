//! An error with everything that led to it, in one line. Read by whoever logs or wraps an error of
//! hyper or kube, whose own text stops at "client error (Connect)".

use std::error::Error;
use std::fmt;

/// What kube puts before every error of our own layers; it says nothing.
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

#[cfg(test)]
mod tests {
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
    fn every_cause_is_told_once_however_deep_it_lies() {
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
}
