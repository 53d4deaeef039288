//! The TLS flags of the HTTPS server, judged.

use flags::Values;
use serving::TlsChoice;

use super::table::serving::{TLS_CIPHER_SUITES, TLS_CURVE_PREFERENCES, TLS_MIN_VERSION};

/// What to serve with, and what cannot be.
pub fn tls_choice(values: &Values) -> TlsChoice {
    TlsChoice::new(
        &values.get(&TLS_MIN_VERSION),
        &values.get(&TLS_CIPHER_SUITES),
        &values.get(&TLS_CURVE_PREFERENCES),
    )
}
