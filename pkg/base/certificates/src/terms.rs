//! [`Terms`]: what a chain is judged by.

use rustls_pki_types::{SignatureVerificationAlgorithm, UnixTime};

/// What a certificate has to be good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For a client of ours to trust it.
    Server,
    /// For a server of ours to trust it.
    Client,
}

/// What a chain is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// What it has to be good for.
    pub purpose: Purpose,
    /// The time of the judgement.
    pub now: UnixTime,
    /// Whether dates do not count, neither those of the chain nor those of the authorities.
    pub any_date: bool,
    /// What signatures are checked with.
    pub algorithms: &'a [&'static dyn SignatureVerificationAlgorithm],
}
