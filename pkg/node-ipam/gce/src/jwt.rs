//! [`Signer`]: signs what a service account says of itself (RFC 7523, RS256).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::json;

/// The longest that Google takes.
const LIFETIME: i64 = 3600;

/// The private key of a service account.
pub(crate) struct Signer {
    key: RsaKeyPair,
    key_id: String,
}

/// What is claimed.
pub(crate) struct Claims<'a> {
    pub(crate) account: &'a str,
    pub(crate) audience: &'a str,
    pub(crate) scope: &'a str,
    /// Seconds since 1970.
    pub(crate) now: i64,
}

/// The key is none that can sign so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use private_key: it must be an RSA key of 2048 bits or more in PEM")]
pub(crate) struct BadKey;

impl Signer {
    /// Reads the key from PEM.
    pub(crate) fn from_pem(pem: &str, key_id: String) -> Result<Self, BadKey> {
        let key = match PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| BadKey)? {
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
            _ => return Err(BadKey),
        };
        Ok(Self { key: key.map_err(|_| BadKey)?, key_id })
    }

    /// The signed claims.
    pub(crate) fn sign(&self, claims: &Claims<'_>) -> Result<String, BadKey> {
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.key_id});
        let body = json!({
            "iss": claims.account, "sub": claims.account, "aud": claims.audience,
            "scope": claims.scope, "iat": claims.now, "exp": claims.now.saturating_add(LIFETIME),
        });
        let encode = |json: serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let mut token = format!("{}.{}", encode(header), encode(body));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let random = SystemRandom::new();
        let signed = self.key.sign(&RSA_PKCS1_SHA256, &random, token.as_bytes(), &mut signature);
        signed.map_err(|_| BadKey)?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    #[test]
    fn claims_are_signed_so_that_the_public_key_proves_them() {
        let signer = Signer::from_pem(gce_stub::SERVICE_ACCOUNT_KEY, "key-1".into()).unwrap();
        let claims = Claims { account: "a@p", audience: "https://t/x", scope: "s", now: 1_000 };
        let token = signer.sign(&claims).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, signer.key.public());
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        public.verify(signed.as_bytes(), &signature).unwrap();
        let parts: Vec<Value> = signed
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        let [header, body] = &parts[..] else { panic!("{token}") };
        assert_eq!(*header, json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"}));
        let expected = json!({
            "iss": "a@p", "sub": "a@p", "aud": "https://t/x", "scope": "s", "iat": 1000, "exp": 4600,
        });
        assert_eq!(*body, expected);
    }

    #[test]
    fn what_is_no_rsa_key_is_refused() {
        for pem in ["", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            assert!(Signer::from_pem(pem, String::new()).is_err(), "{pem:?}");
        }
    }
}
