//! `--version` and the version lists of `--emulated-version` and its kin.

use std::fmt;

use super::{SyntaxError, boolean};

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
pub fn request(text: &str) -> Result<VersionRequest, SyntaxError> {
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
pub fn component(text: &str) -> Result<(), SyntaxError> {
    let version = text.strip_prefix("kube=").unwrap_or(text);
    let number = |part: &str| part.parse::<u16>().is_ok() && !part.starts_with('+');
    match version.split_once('.') {
        Some((major, minor)) if number(major) && number(minor) => Ok(()),
        _ => Err(SyntaxError::ComponentVersion(text.to_owned())),
    }
}
