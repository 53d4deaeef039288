//! Until when a credential is good, as far as it says so itself. Read to warn in time, never to
//! decide whether it is used: the server's clock may be another.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use transport::Validity;
use zeroize::Zeroizing;

/// The end of a JSON web token; none for a token of another kind, or one that lasts for ever.
pub(crate) fn of_token(token: &SecretString) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Claims {
        exp: i64,
    }
    let mut parts = token.expose_secret().trim().split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = Zeroizing::new(URL_SAFE_NO_PAD.decode(claims).ok()?);
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims.exp).ok()
}

/// The end of a certificate's validity.
pub(crate) fn of_certificate(validity: Validity) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(validity.to).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_token_is_read_where_it_has_one() {
        let token = |claims: &str| format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims));
        let rows = [
            (token(r#"{"sub":"a","exp":1800000000}"#), Some(1_800_000_000)),
            (token(r#"{"sub":"a"}"#), None),
            (token(r#"{"exp":"soon"}"#), None),
            (token(&format!(r#"{{"exp":{}}}"#, i64::MAX)), None),
            ("e30.!.sig".into(), None),
            ("opaque".into(), None),
            (String::new(), None),
        ];
        for (token, end) in rows {
            let end = end.map(|second| Timestamp::from_second(second).unwrap());
            assert_eq!(of_token(&token.into()), end);
        }
    }
}
