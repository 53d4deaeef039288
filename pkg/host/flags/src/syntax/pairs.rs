//! Values made of pairs: string maps, certificate pairs and vmodule patterns.

use std::fmt;

use super::{SyntaxError, csv, number};

/// `key=value,…` in the order given. With a single `=` the text is one entry, commas included, as
/// in pflag: `metric,label=v` is the key `metric,label`.
pub fn map(text: &str) -> Result<Vec<(String, String)>, SyntaxError> {
    let entries = match text.matches('=').count() {
        0 if text.is_empty() => return Ok(Vec::new()),
        0 => return Err(SyntaxError::KeyValue(text.to_owned())),
        1 => vec![text.trim_matches('"').to_owned()],
        _ => csv::read(text)?,
    };
    entries.into_iter().map(key_value).collect()
}

fn key_value(entry: String) -> Result<(String, String), SyntaxError> {
    match entry.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(SyntaxError::KeyValue(entry)),
    }
}

/// A certificate and its key, served for the names that match (`--tls-sni-cert-key`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertKey {
    /// Path of the PEM certificate chain.
    pub cert: String,
    /// Path of the PEM private key.
    pub key: String,
    /// Domain patterns; empty means the names inside the certificate.
    pub names: Vec<String>,
}

/// `cert,key` or `cert,key:pattern,…`; blanks around the parts are dropped.
pub fn cert_key(text: &str) -> Result<NamedCertKey, SyntaxError> {
    let (files, names) = match text.split_once(':') {
        Some((_, names)) if names.trim().is_empty() => return Err(SyntaxError::NoNames),
        Some((files, names)) => (files, names.split(',').map(|n| n.trim().to_owned()).collect()),
        None => (text, Vec::new()),
    };
    match files.split(',').map(str::trim).collect::<Vec<_>>()[..] {
        [cert, key] if !cert.is_empty() && !key.is_empty() => {
            Ok(NamedCertKey { cert: cert.to_owned(), key: key.to_owned(), names })
        }
        _ => Err(SyntaxError::CertKey),
    }
}

impl fmt::Display for NamedCertKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.cert, self.key)?;
        if !self.names.is_empty() {
            write!(f, ":{}", self.names.join(","))?;
        }
        Ok(())
    }
}

/// Patterns with their log levels, `pattern=N,…`; empty entries are skipped. Levels beyond 255 say
/// no more than 255.
pub fn vmodule(text: &str) -> Result<Vec<(String, u8)>, SyntaxError> {
    text.split(',').filter(|entry| !entry.is_empty()).map(level).collect()
}

fn level(entry: &str) -> Result<(String, u8), SyntaxError> {
    let bad = || SyntaxError::VModule(entry.to_owned());
    let (pattern, level) = entry.split_once('=').ok_or_else(bad)?;
    let level = number::verbosity(level).map_err(|_| bad())?;
    if pattern.is_empty() {
        return Err(bad());
    }
    Ok((pattern.to_owned(), u8::try_from(level).unwrap_or(u8::MAX)))
}
