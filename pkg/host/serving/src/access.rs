//! What a page asks of its peers.

/// The access rule of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whatever the guard of the listener says.
    Authorized,
    /// A certificate of the listener's client CA.
    TrustedCertificate,
}
