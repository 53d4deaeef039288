//! Until when a credential is good, as far as it says so itself. Read to warn in time, never to
//! decide whether it is used: the server's clock may be another.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use health::Lifetime;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use transport::Validity;
use zeroize::Zeroizing;

/// The lifetime of a JSON web token; none for a token of another kind, or one that never expires.
pub(crate) fn of_token(token: &SecretString) -> Option<Lifetime> {
    #[derive(Deserialize)]
    struct Claims {
        exp: i64,
        /// Whatever it is: only a number of seconds counts.
        iat: Option<serde_json::Value>,
    }
    let mut parts = token.expose_secret().trim().split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = Zeroizing::new(URL_SAFE_NO_PAD.decode(claims).ok()?);
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    let from = claims.iat.and_then(|iat| Timestamp::from_second(iat.as_i64()?).ok());
    Some(Lifetime { from, to: Timestamp::from_second(claims.exp).ok()? })
}

/// The lifetime of a certificate.
pub(crate) fn of_certificate(validity: Validity) -> Option<Lifetime> {
    let time = |seconds: u64| Timestamp::from_second(i64::try_from(seconds).ok()?).ok();
    Some(Lifetime { from: time(validity.from), to: time(validity.to)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lifetime_of_a_token_is_read_where_it_has_an_end() {
        let token = |claims: &str| format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims));
        let rows = [
            (token(r#"{"sub":"a","exp":1800000000}"#), Some((None, 1_800_000_000))),
            (
                token(r#"{"exp":1800000000,"iat":1700000000}"#),
                Some((Some(1_700_000_000), 1_800_000_000)),
            ),
            (token(r#"{"exp":1800000000,"iat":"today"}"#), Some((None, 1_800_000_000))),
            (token(r#"{"sub":"a"}"#), None),
            (token(r#"{"exp":"soon"}"#), None),
            (token(&format!(r#"{{"exp":{}}}"#, i64::MAX)), None),
            ("e30.!.sig".into(), None),
            ("opaque".into(), None),
            (String::new(), None),
        ];
        for (token, lifetime) in rows {
            let found = of_token(&token.into());
            let seconds = found.map(|it| (it.from.map(Timestamp::as_second), it.to.as_second()));
            assert_eq!(seconds, lifetime);
        }
    }
}
