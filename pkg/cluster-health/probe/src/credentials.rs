//! The credentials of a client: the headers that hold them, and until when they are good, as far as they say so
//! themselves. The end is read to warn in time, never to decide whether a credential is used: the server's clock may be
//! another. Headers with a secret are marked as such and lie in buffers that are overwritten when the last request that
//! has them is gone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use health::{Code, Lifetime};
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use transport::{Validity, sensitive_header};
use zeroize::Zeroizing;

use crate::failure::Problem;
use crate::inputs::{Impersonation, Inputs};

/// Keys of `Impersonate-Extra-` are percent-encoded except for these.
const TOKEN_MARKS: &[u8] = b"!#$&'*+-.^_`|~";

/// All headers but `Host`, which differs by address.
pub(crate) fn headers(inputs: &Inputs) -> Result<HeaderMap, Problem> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    let agent = HeaderValue::from_str(&inputs.user_agent);
    headers.insert(USER_AGENT, agent.unwrap_or(HeaderValue::from_static("probe")));
    if let Some(token) = &inputs.token {
        headers.insert(AUTHORIZATION, bearer(token)?);
    }
    if let Some(who) = &inputs.impersonate {
        impersonate(&mut headers, who)?;
    }
    Ok(headers)
}

fn bearer(token: &SecretString) -> Result<HeaderValue, Problem> {
    let token = token.expose_secret().trim();
    if token.is_empty() {
        return Err(Problem::new(Code::TokenEmpty, "the token is empty"));
    }
    sensitive_header(&["Bearer ", token]).ok_or_else(|| {
        let text = "the token holds a line break or another character that no header may have";
        Problem::new(Code::TokenEmpty, text)
    })
}

fn impersonate(headers: &mut HeaderMap, who: &Impersonation) -> Result<(), Problem> {
    let refused = || {
        Problem::new(
            Code::BadImpersonation,
            "cannot impersonate: a name has characters that no header may have",
        )
    };
    let mut add = |name: &str, value: &str| -> Result<(), Problem> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        headers.append(name, sensitive_header(&[value]).ok_or_else(refused)?);
        Ok::<_, Problem>(())
    };
    if !who.user.is_empty() {
        add("impersonate-user", &who.user)?;
    }
    for group in &who.groups {
        add("impersonate-group", group)?;
    }
    for (key, values) in &who.extra {
        let name = format!("impersonate-extra-{}", escaped(key));
        values.iter().try_for_each(|value| add(&name, value))?;
    }
    Ok(())
}

fn escaped(key: &str) -> String {
    let key = key.to_ascii_lowercase();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || TOKEN_MARKS.contains(byte);
    let each = key.bytes().map(|byte| {
        if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") }
    });
    each.collect()
}

/// The lifetime of a JSON web token; none for a token of another kind, or one that never expires.
pub(crate) fn lifetime_of_token(token: &SecretString) -> Option<Lifetime> {
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
pub(crate) fn lifetime_of_certificate(validity: Validity) -> Option<Lifetime> {
    let time = |seconds: u64| Timestamp::from_second(i64::try_from(seconds).ok()?).ok();
    Some(Lifetime { from: time(validity.from), to: time(validity.to)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_token(token: &str) -> Inputs {
        Inputs { token: Some(token.into()), user_agent: "agent/1".into(), ..Inputs::default() }
    }

    #[test]
    fn a_token_is_sent_without_the_blanks_around_it_and_shown_by_nobody() {
        let headers = headers(&with_token(" hunter2\n")).unwrap();
        assert_eq!(headers[AUTHORIZATION], "Bearer hunter2");
        assert_eq!(headers[USER_AGENT], "agent/1");
        assert!(!format!("{headers:?}").contains("hunter2"));
    }

    #[test]
    fn a_token_that_is_none_is_told_without_a_word_of_it() {
        for token in ["", " \n", "hun\nter2", "hunter2\u{7f}x"] {
            let problem = headers(&with_token(token)).unwrap_err();
            assert_eq!(problem.code(), Code::TokenEmpty);
            assert!(!problem.to_string().contains("hun"), "{problem}");
        }
    }

    #[test]
    fn whoever_is_impersonated_is_named_in_headers() {
        let extra = [("Scopes/A".to_owned(), vec!["view".to_owned(), "edit".to_owned()])];
        let who = Impersonation {
            user: "jane".into(),
            groups: vec!["a".into(), "b".into()],
            extra: extra.into(),
        };
        let inputs = Inputs { impersonate: Some(who), ..with_token("t") };
        let headers = headers(&inputs).unwrap();
        let all = |name: &str| headers.get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all("impersonate-user"), ["jane"]);
        assert_eq!(all("impersonate-group"), ["a", "b"]);
        assert_eq!(all("impersonate-extra-scopes%2fa"), ["view", "edit"]);
        assert!(!format!("{headers:?}").contains("jane"));
        assert!(!format!("{inputs:?}").contains("jane"));
    }

    #[test]
    fn a_name_that_cannot_be_sent_is_named_as_the_mistake() {
        let who = Impersonation { user: "ja\nne".into(), ..Impersonation::default() };
        let problem = headers(&Inputs { impersonate: Some(who), ..with_token("t") }).unwrap_err();
        assert_eq!(problem.code(), Code::BadImpersonation);
        assert!(!problem.to_string().contains("ja"), "{problem}");
    }

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
            let found = lifetime_of_token(&token.into());
            let seconds = found.map(|it| (it.from.map(Timestamp::as_second), it.to.as_second()));
            assert_eq!(seconds, lifetime);
        }
    }
}
