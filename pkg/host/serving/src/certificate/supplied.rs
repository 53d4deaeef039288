//! [`SuppliedCertificate`]: a pair that whoever made it replaces while a listener shows it.

use std::fmt;
use std::sync::Arc;

use super::Current;
use super::pair::Pair;
use crate::ServeError;

/// The pair of a listener whose owner makes it, and makes it anew. Clones are the same pair.
#[derive(Clone)]
pub struct SuppliedCertificate(Arc<Current>);

impl SuppliedCertificate {
    /// Begins with this pair in PEM: the chain, leaf first, and the key of the leaf.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(chain: &str, key: &str) -> Result<Self, ServeError> {
        Ok(Self(Current::new(Self::read(chain, key)?)))
    }

    /// Shows this pair in the handshakes that come.
    ///
    /// # Errors
    /// They cannot be used; the pair that was there stays (rule:bad-files-keep-the-old).
    pub fn replace(&self, chain: &str, key: &str) -> Result<(), ServeError> {
        self.0.replace(Self::read(chain, key)?);
        Ok(())
    }

    pub(super) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.0)
    }

    fn read(chain: &str, key: &str) -> Result<rustls::sign::CertifiedKey, ServeError> {
        Pair { chain: chain.into(), key: key.into() }.certified_key("supplied")
    }
}

/// Its key is nobody's business.
impl fmt::Debug for SuppliedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SuppliedCertificate(..)")
    }
}
