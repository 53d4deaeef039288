//! Values made of parts: CSV lists, maps, feature gates, certificate pairs, vmodule patterns, versions.

use std::fmt;

use crate::syntax::{SyntaxError, boolean, verbosity};

/// The fields of `text`; nothing for an empty text.
///
/// A line break at the very end is dropped, since YAML block scalars leave one.
pub fn csv(text: &str) -> Result<Vec<String>, SyntaxError> {
    let mut rest = text.trim_end_matches(['\n', '\r']);
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let mut fields = Vec::new();
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => plain_field(rest)?,
        };
        fields.push(field);
        match after {
            Some(more) => rest = more,
            None => return Ok(fields),
        }
    }
}

/// A field and, when a comma ended it, what follows the comma.
type Field<'a> = (String, Option<&'a str>);

fn plain_field(text: &str) -> Result<Field<'_>, SyntaxError> {
    let (field, after) = match text.split_once(',') {
        Some((field, after)) => (field, Some(after)),
        None => (text, None),
    };
    if field.contains('"') {
        return Err(SyntaxError::BareQuote);
    }
    if field.contains(['\n', '\r']) {
        return Err(SyntaxError::LineBreak);
    }
    Ok((field.to_owned(), after))
}

/// `text` starts behind the opening quote.
fn quoted_field(text: &str) -> Result<Field<'_>, SyntaxError> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (inside, after) = rest.split_once('"').ok_or(SyntaxError::UnclosedQuote)?;
        field.push_str(inside);
        if let Some(more) = after.strip_prefix('"') {
            field.push('"');
            rest = more;
        } else if after.is_empty() {
            return Ok((field, None));
        } else if let Some(more) = after.strip_prefix(',') {
            return Ok((field, Some(more)));
        } else {
            return Err(SyntaxError::UnclosedQuote);
        }
    }
}

/// The inverse of [`csv`], for printing effective values.
pub fn write_csv<T: AsRef<str>>(fields: impl IntoIterator<Item = T>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|field| quote(field.as_ref())).collect();
    fields.join(",")
}

fn quote(field: &str) -> String {
    // An empty field alone would read back as an empty list, so it is always quoted.
    if field.is_empty() || field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// The component a gate belongs to when none is named.
pub const DEFAULT_COMPONENT: &str = "kube";

/// One setting of one gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateSetting {
    /// `kube` unless the user named another.
    pub component: String,
    /// The gate's name.
    pub name: String,
    /// The value that the user set.
    pub enabled: bool,
}

/// The settings in the order given; blank entries are skipped as upstream does.
pub fn gates(text: &str) -> Result<Vec<GateSetting>, SyntaxError> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(gate).collect()
}

fn gate(entry: &str) -> Result<GateSetting, SyntaxError> {
    let bad = || SyntaxError::Gate(entry.to_owned());
    let (name, word) = entry.split_once('=').ok_or_else(bad)?;
    let (component, name) = name.split_once(':').unwrap_or((DEFAULT_COMPONENT, name));
    let (component, name) = (component.trim(), name.trim());
    if component.is_empty() || name.is_empty() || name.contains(':') {
        return Err(bad());
    }
    let enabled = boolean(word.trim()).map_err(|_| bad())?;
    Ok(GateSetting { component: component.to_owned(), name: name.to_owned(), enabled })
}

impl fmt::Display for GateSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.component != DEFAULT_COMPONENT {
            write!(f, "{}:", self.component)?;
        }
        write!(f, "{}={}", self.name, self.enabled)
    }
}

/// `key=value,…` in the order given. With a single `=` the text is one entry, commas included, as
/// in pflag: `metric,label=v` is the key `metric,label`.
pub fn string_map(text: &str) -> Result<Vec<(String, String)>, SyntaxError> {
    let entries = match text.matches('=').count() {
        0 if text.is_empty() => return Ok(Vec::new()),
        0 => return Err(SyntaxError::KeyValue(text.to_owned())),
        1 => vec![text.trim_matches('"').to_owned()],
        _ => csv(text)?,
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
    let level = verbosity(level).map_err(|_| bad())?;
    if pattern.is_empty() {
        return Err(bad());
    }
    Ok((pattern.to_owned(), u8::try_from(level).unwrap_or(u8::MAX)))
}

/// What `--version` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VersionRequest {
    /// Nothing: run.
    #[default]
    No,
    /// One line with product and version, then exit 0.
    Print,
    /// Every field of the build, then exit 0.
    Raw,
    /// Run, and report this version.
    Override(String),
}

/// Reads the value of `--version`; whether an override is plausible is for its reader to say.
pub fn version(text: &str) -> Result<VersionRequest, SyntaxError> {
    if text == "raw" {
        return Ok(VersionRequest::Raw);
    }
    if text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Ok(VersionRequest::Override(text.to_owned()));
    }
    match boolean(text) {
        Ok(true) => Ok(VersionRequest::Print),
        Ok(false) => Ok(VersionRequest::No),
        Err(_) => Err(SyntaxError::Version),
    }
}

impl fmt::Display for VersionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VersionRequest::No => "false",
            VersionRequest::Print => "true",
            VersionRequest::Raw => "raw",
            VersionRequest::Override(version) => version,
        })
    }
}

/// Checks one `[kube=]MAJOR.MINOR`.
pub fn component_version(text: &str) -> Result<(), SyntaxError> {
    let entry = text.strip_prefix("kube=").unwrap_or(text);
    let number = |part: &str| part.parse::<u16>().is_ok() && !part.starts_with('+');
    match entry.split_once('.') {
        Some((major, minor)) if number(major) && number(minor) => Ok(()),
        _ => Err(SyntaxError::ComponentVersion(text.to_owned())),
    }
}
